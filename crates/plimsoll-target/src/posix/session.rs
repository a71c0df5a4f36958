//! One worker's state.

use super::aio::{AioThreadPool, SessionAioQueue};
use super::calls::SystemCalls;
use super::names::CheckedParents;
use crate::error::OpError;
use crate::session_types::SessionSpec;
use plimsoll_lane::Lane;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(crate) struct PosixSession {
    pub(super) calls: SystemCalls,
    pub(super) lane: Lane,
    pub(super) parents: Box<CheckedParents>,
    pub(super) queue: SessionAioQueue,
}

impl PosixSession {
    pub(super) fn new(
        root: Arc<OwnedFd>,
        pool: Arc<AioThreadPool>,
        lane: &Lane,
        spec: &SessionSpec,
    ) -> Result<Self, OpError> {
        Ok(Self {
            calls: SystemCalls::new(root, spec)?,
            lane: lane.clone(),
            parents: Box::default(),
            queue: SessionAioQueue::new(pool, spec.clock.clone()),
        })
    }
}
