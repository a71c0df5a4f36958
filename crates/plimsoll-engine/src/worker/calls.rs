//! Operations of many calls: signs of life of the target, and the end of an operation between two calls.

use super::WorkerContext;
use plimsoll_lane::Lane;
use plimsoll_measure::{InFlight, Nanos, STALL_NS};
use plimsoll_target::OpError;
use rustix::io::Errno;
use std::sync::Arc;

/// Counts the completed calls of an operation with many calls, and ends the operation if the run is over.
pub(crate) struct CallSequence {
    lane: Lane,
    in_flight: Arc<InFlight>,
}

impl CallSequence {
    /// Called before each call; `done` is 0 before the first call. Before every further call, notes the completion of
    /// the preceding call, which is a sign of life of the target, and ends the operation if the run is over, because an
    /// operation may last for minutes.
    #[inline]
    pub(crate) fn next(&self, done: u64) -> Result<(), OpError> {
        if done > 0 {
            let now = self.lane.now();
            self.in_flight.call_completed(now);
            if now >= self.lane.deadline() {
                return Err(OpError(Errno::CANCELED));
            }
        }
        Ok(())
    }
}

impl WorkerContext {
    /// Plans the calls of the next operation, which transfers `total` bytes, at most `piece` bytes per call.
    pub(crate) fn calls(&self, total: u64, piece: u64) -> CallSequence {
        let calls = total.div_ceil(piece.max(1));
        self.in_flight.plan_calls(calls, piece.min(total));
        self.call_sequence()
    }

    /// Plans the calls of the next operation, which transfers no data.
    pub(crate) fn calls_without_data(&self, calls: u64) -> CallSequence {
        self.in_flight.plan_calls(calls, 0);
        self.call_sequence()
    }

    fn call_sequence(&self) -> CallSequence {
        CallSequence {
            lane: self.lane.clone(),
            in_flight: self.in_flight.clone(),
        }
    }

    /// Notes an operation that took so long that it may have been a stall. Must be called before the operation is
    /// recorded.
    #[inline(always)]
    pub(crate) fn note_if_long(&self, start: Nanos, end: Nanos) {
        if end.saturating_sub(start) >= STALL_NS {
            self.in_flight.note_long(end);
        }
    }
}
