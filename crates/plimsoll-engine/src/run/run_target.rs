//! A connected target behind one type: only the workers are compiled for each target.

use crate::worker::{Worker, WorkerContext};
use plimsoll_lane::{Lane, Task};
use plimsoll_plan::WorkDirSpec;
use plimsoll_target::{
    Ledger, OneFileSession, OpError, Purpose, SessionSpec, SetupSession, Target, TargetError,
    Visitor,
};
use std::sync::Arc;

/// A target whose type of session is hidden behind trait objects, so that only workers are compiled for each target.
pub(crate) trait RunTarget: Target {
    /// Creates a session for unmeasured work: claiming directories, populating, verifying, removing.
    ///
    /// # Errors
    /// The target's error if no session can be created.
    fn setup_session(
        &self,
        lane: &Lane,
        spec: &SessionSpec,
    ) -> Result<Box<dyn SetupSession>, OpError>;

    /// Creates a worker with a session of its own, as the task of a lane.
    ///
    /// # Errors
    /// The target's error if no session can be created.
    fn worker(
        &self,
        lane: &Lane,
        spec: &SessionSpec,
        context: WorkerContext,
    ) -> Result<Task<'static>, OpError>;
}

impl<T: Target> RunTarget for T {
    fn setup_session(
        &self,
        lane: &Lane,
        spec: &SessionSpec,
    ) -> Result<Box<dyn SetupSession>, OpError> {
        Ok(Box::new(OneFileSession::new(self.session(lane, spec)?)))
    }

    fn worker(
        &self,
        lane: &Lane,
        spec: &SessionSpec,
        context: WorkerContext,
    ) -> Result<Task<'static>, OpError> {
        let session = self.session(lane, spec)?;
        Ok(Worker::new(session, context).into_task(&spec.content))
    }
}

/// Connects to the target of a URL. With a `ledger`, sessions record the written data and compare the read data.
///
/// # Errors
/// See [`TargetError`].
pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
    ledger: Option<Arc<Ledger>>,
) -> Result<Arc<dyn RunTarget>, TargetError> {
    match ledger {
        Some(ledger) => plimsoll_target::connect_verifying(url, place, purpose, ledger, Connection),
        None => plimsoll_target::connect(url, place, purpose, Connection),
    }
}

struct Connection;

impl Visitor for Connection {
    type Output = Arc<dyn RunTarget>;

    fn visit<T: Target>(self, target: T) -> Self::Output {
        Arc::new(target)
    }
}
