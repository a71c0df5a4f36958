//! The target that wraps another target and verifies contents.

use super::ledger::Ledger;
use super::session_state::VerifyingSession;
use crate::error::OpError;
use crate::session::Target;
use crate::session_types::{DataSet, Descriptors, DirectIo, SessionSpec, Space};
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_measure::{LongReplies, SimulatedWindow};
use plimsoll_plan::OpKind;
use std::sync::Arc;

/// A target whose sessions write contents that can be verified, and verify the contents that they
/// read.
pub(crate) struct VerifyingTarget<T> {
    inner: T,
    ledger: Arc<Ledger>,
}

impl<T: Target> VerifyingTarget<T> {
    pub(crate) fn new(inner: T, ledger: Arc<Ledger>) -> Self {
        Self { inner, ledger }
    }
}

impl<T: Target> Target for VerifyingTarget<T> {
    type Session = VerifyingSession<T::Session>;
    type Verifying = Self;

    fn verifying(self, _: Arc<Ledger>) -> Self {
        self
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn lane_kind(&self) -> LaneKind {
        self.inner.lane_kind()
    }

    fn can_be_virtual(&self) -> bool {
        self.inner.can_be_virtual()
    }

    fn take_simulated_windows(&self) -> Vec<(u32, SimulatedWindow)> {
        self.inner.take_simulated_windows()
    }

    fn keeps_files(&self) -> bool {
        self.inner.keeps_files()
    }

    fn descriptors(&self) -> Descriptors {
        self.inner.descriptors()
    }

    fn exists(&self) -> bool {
        self.inner.exists()
    }

    fn created_work_dir(&self) -> bool {
        self.inner.created_work_dir()
    }

    fn remove_work_dir(&self) -> Result<(), OpError> {
        self.inner.remove_work_dir()
    }

    fn writable(&self) -> Result<(), OpError> {
        self.inner.writable()
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        self.inner.space()
    }

    fn direct_io(&self) -> DirectIo {
        self.inner.direct_io()
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        self.inner.uncacheable_reason()
    }

    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        self.inner.unsupported_reason(kind)
    }

    fn remarks(&self, data_set: &dyn Fn() -> DataSet) -> Vec<String> {
        self.inner.remarks(data_set)
    }

    fn explain(&self, e: OpError) -> String {
        self.inner.explain(e)
    }

    fn take_long_replies(&self) -> Vec<LongReplies> {
        self.inner.take_long_replies()
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<Self::Session, OpError> {
        let inner = self.inner.session(lane, spec)?;
        VerifyingSession::new(inner, self.ledger.clone(), spec.buffer)
    }
}
