//! Collection of the measurements of surviving ranks after a failure.
//!
//! After a failure there are no collective calls: a rank may be gone, or at another point of the program. Each rank
//! therefore sends its value to its parent once, unrequested, and waits only for the values of its children, skipping
//! children that are gone or late.

use super::TreeGroup;
use crate::frame::{Call, CallId, MAX_PAYLOAD, encode_part};
use crate::link::{Link, PollRate};
use std::time::{Duration, Instant};

/// Collective call id of survivors' values, with a fixed number: after a failure, ranks may be at different calls.
const SURVIVORS: CallId = CallId {
    call: Call::Survivors,
    number: 0,
};

impl<L: Link> TreeGroup<L> {
    /// Combines the values of this rank and of ranks below that arrive in time; returns the result at rank 0.
    pub(super) fn combine_survivors(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
        limit: Duration,
    ) -> Option<Vec<u8>> {
        if self.check().is_ok() || !L::REPORTS_PEER_EXIT {
            return None;
        }
        // Half the limit: a rank must give up its children before the rank's own parent gives up.
        let limit = match self.parent() {
            None => limit,
            Some(_) => limit / 2,
        };
        let deadline = plimsoll_runtime::now() + limit;
        let mut value = mine;
        for child in self.children() {
            if let Some(theirs) = self.survivor_value(child, deadline) {
                value = combine(value, theirs);
            }
        }
        let Some(parent) = self.parent() else {
            return Some(value);
        };
        let mut rest = &value[..];
        loop {
            let (now, later) = rest.split_at(rest.len().min(MAX_PAYLOAD));
            let frame = encode_part(SURVIVORS, later.is_empty(), now);
            self.link.send(parent, frame, &mut || {
                self.process_incoming();
            });
            if later.is_empty() {
                return None;
            }
            rest = later;
        }
    }

    /// Value of a child; `None` if the child is gone, or the value is incomplete at the deadline.
    fn survivor_value(&self, child: usize, deadline: Instant) -> Option<Vec<u8>> {
        let is_complete = || {
            let parts = &self.state.borrow().heard[child].parts;
            parts.iter().any(|part| part.id == SURVIVORS && part.last)
        };
        let left = deadline.saturating_duration_since(plimsoll_runtime::now());
        self.wait_until(PollRate::Fast, Some(left), || {
            is_complete() || self.state.borrow().heard[child].ended
        });
        if !is_complete() {
            return None;
        }
        // Parts of earlier collective calls are discarded.
        let parts = std::mem::take(&mut self.state.borrow_mut().heard[child].parts);
        let parts = parts.into_iter().filter(|part| part.id == SURVIVORS);
        Some(parts.flat_map(|part| part.payload).collect())
    }
}
