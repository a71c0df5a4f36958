//! Waking the controller of a run.

use plimsoll_runtime::Monitor;
use std::time::Duration;

/// Wakes the controller, for example when a lane has ended.
#[derive(Default)]
pub(crate) struct ControllerWakeup {
    rung: Monitor<bool>,
}

impl ControllerWakeup {
    pub(crate) fn ring(&self) {
        self.rung.update(|rung| *rung = true);
    }

    /// Waits for a ring for at most `at_most`.
    pub(crate) fn wait(&self, at_most: Duration) {
        *self.rung.wait_timeout_while(at_most, |rung| !*rung) = false;
    }
}
