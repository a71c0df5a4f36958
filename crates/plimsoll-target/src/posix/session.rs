//! One worker's state.

use super::aio::{AioThreadPool, SessionAioQueue};
use super::calls::SystemCalls;
use super::names::CheckedParents;
use crate::session_types::SessionSpec;
use plimsoll_lane::Lane;
use std::sync::Arc;

pub(crate) struct PosixSession {
    pub(super) calls: SystemCalls,
    pub(super) lane: Lane,
    pub(super) parents: Box<CheckedParents>,
    pub(super) queue: SessionAioQueue,
}

impl PosixSession {
    pub(super) fn new(
        calls: SystemCalls,
        pool: Arc<AioThreadPool>,
        lane: &Lane,
        spec: &SessionSpec,
    ) -> Self {
        Self {
            calls,
            lane: lane.clone(),
            parents: Box::default(),
            queue: SessionAioQueue::new(pool, spec.clock.clone()),
        }
    }
}
