//! Events of a lane in virtual time that belong to no worker, such as the events of a simulated system.

use plimsoll_measure::Nanos;

/// Events of a virtual lane in addition to the timers of the lane's workers.
pub trait TimedEvents {
    /// Handles events up to `limit` until an event may let a task proceed. Returns the time of this event; `None` if
    /// there is no event up to `limit`. A returned time does not imply that a task can proceed.
    ///
    /// The lane has no timer and no deadline before `limit`.
    fn proceed(&self, limit: Nanos) -> Option<Nanos>;

    /// Handles all events up to `now`, and adds the tasks that can proceed to `ready`. The lane calls this method with
    /// the new time whenever the time has advanced.
    fn advance(&self, now: Nanos, ready: &mut Vec<u32>);
}
