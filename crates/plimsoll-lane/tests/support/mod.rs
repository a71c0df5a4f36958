//! Lanes for tests.

use plimsoll_lane::{Deadline, Lane, LaneKind};
use plimsoll_measure::Clock;
use std::sync::Arc;

pub fn lane(kind: LaneKind) -> (Lane, Arc<Deadline>) {
    let deadline = Arc::new(Deadline::default());
    let clock = if kind == LaneKind::Virtual {
        Clock::simulated()
    } else {
        Clock::real()
    };
    (Lane::new(kind, clock, deadline.clone()), deadline)
}
