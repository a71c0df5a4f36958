//! Limits of operations in flight.

use crate::instance::FlowId;
use std::collections::VecDeque;

/// One instance of a limit on operations in flight.
#[derive(Debug)]
pub(crate) struct Limit {
    maximum: u32,
    in_flight: u32,
    waiting: VecDeque<FlowId>,
}

impl Limit {
    pub(crate) fn new(maximum: u32) -> Self {
        Self {
            maximum,
            in_flight: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Admits a flow and returns `true`, or queues the flow if the limit is reached.
    pub(crate) fn acquire(&mut self, flow: FlowId) -> bool {
        if self.in_flight < self.maximum {
            self.in_flight += 1;
            return true;
        }
        self.waiting.push_back(flow);
        false
    }

    /// Empties the queue and returns the queued flows.
    pub(crate) fn take_waiting(&mut self) -> VecDeque<FlowId> {
        std::mem::take(&mut self.waiting)
    }

    /// Ends the use of the limit by a flow. Returns the first queued flow, which is thereby admitted.
    pub(crate) fn release(&mut self) -> Option<FlowId> {
        assert!(
            self.in_flight > 0,
            "a flow leaves a limit that none has passed"
        );
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.in_flight -= 1;
        }
        next
    }
}
