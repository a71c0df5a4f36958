//! Completions that a lane waits for beside its timers, such as those of an io_uring.

use std::time::Duration;

/// Operations that the system executes for the workers of a lane, and whose completions it reports in a
/// queue that belongs to the lane.
///
/// Another thread wakes the lane by [`Lane::wakeup_counter`](crate::Lane::wakeup_counter), which the source
/// watches while it waits.
pub trait CompletionSource {
    /// Whether operations are to be submitted or completions to be taken. Costs no system call.
    fn is_due(&self) -> bool;

    /// Submits the operations that workers queued, and adds the tasks whose operations have completed to
    /// `ready`. If there are none, waits for the first completion or a wakeup: for at most `timeout`,
    /// without one for as long as it takes, and not at all if it is zero.
    fn turn(&self, timeout: Option<Duration>, ready: &mut Vec<u32>);
}
