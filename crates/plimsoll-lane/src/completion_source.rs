//! Completions that a lane waits for in addition to its timers, such as the completions of an io_uring.

use std::time::Duration;

/// Operations that the system executes for the workers of a lane. The system reports the completions in a queue that
/// belongs to the lane.
///
/// Another thread wakes the lane by [`Lane::wakeup_counter`](crate::Lane::wakeup_counter), which the source watches
/// during a wait.
pub trait CompletionSource {
    /// Whether a turn would submit operations or take completions. Makes no system call.
    fn is_due(&self) -> bool;

    /// Submits the operations that workers queued, and adds the tasks whose operations have completed to `ready`. If no
    /// operation has completed, waits for the first completion or a wakeup: for at most `timeout`, without limit if
    /// `timeout` is `None`, and not at all if `timeout` is zero.
    fn turn(&self, timeout: Option<Duration>, ready: &mut Vec<u32>);
}
