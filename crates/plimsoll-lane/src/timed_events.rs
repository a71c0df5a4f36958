//! Events of a lane in virtual time that belong to no worker, such as those of a simulated system.

use plimsoll_measure::Nanos;

/// Events beside the timers of a lane's workers.
pub trait TimedEvents {
    /// Handles events up to `limit` until one lets a task proceed. Returns the time of that event, which
    /// may also be one at which no task can; none if there are no events up to `limit`.
    ///
    /// Nothing else happens on the lane before `limit`.
    fn proceed(&self, limit: Nanos) -> Option<Nanos>;

    /// Handles all events up to `now`, and adds the tasks that can proceed to `ready`. Called whenever the
    /// lane's time has advanced, with the new time.
    fn advance(&self, now: Nanos, ready: &mut Vec<u32>);
}
