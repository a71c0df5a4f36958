//! Events of a lane in virtual time that belong to no worker, such as those of a simulated system.

use plimsoll_measure::Nanos;

/// Events beside the timers of a lane's workers.
pub trait TimedEvents {
    /// Time of the next event; none if nothing is scheduled.
    fn next_event(&self) -> Option<Nanos>;

    /// Handles all events up to `now`, and adds the tasks that can proceed to `ready`.
    fn advance(&self, now: Nanos, ready: &mut Vec<u32>);
}
