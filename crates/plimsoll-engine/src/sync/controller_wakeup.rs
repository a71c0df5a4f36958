//! Waking the controller of a run.

use super::lock;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Wakes the controller when it has something to do, such as when a lane has ended.
#[derive(Default)]
pub(crate) struct ControllerWakeup {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl ControllerWakeup {
    pub(crate) fn ring(&self) {
        *lock(&self.rung) = true;
        self.changed.notify_all();
    }

    /// Waits for a ring, at most for this time.
    pub(crate) fn wait(&self, at_most: Duration) {
        let rung = lock(&self.rung);
        let (mut rung, _) = self
            .changed
            .wait_timeout_while(rung, at_most, |rung| !*rung)
            .unwrap_or_else(PoisonError::into_inner);
        *rung = false;
    }
}
