//! The target that wraps another target and verifies contents.

use super::ledger::Ledger;
use super::session_state::VerifyingSession;
use crate::any::AnyTarget;
use crate::error::OpError;
use crate::session::{Target, forward_properties};
use crate::session_types::SessionSpec;
use plimsoll_lane::Lane;
use std::sync::Arc;

/// The target of a verified run, around the target under load: sessions write contents that name their file and offset,
/// and check the contents of reads.
pub(crate) struct VerifyingTarget {
    pub(crate) inner: AnyTarget,
    pub(crate) ledger: Arc<Ledger>,
}

impl Target for VerifyingTarget {
    type Session = VerifyingSession;

    forward_properties!(all self => self.inner);

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<Self::Session, OpError> {
        let inner = self.inner.session(lane, spec)?;
        VerifyingSession::new(inner, self.ledger.clone(), spec.buffer)
    }
}
