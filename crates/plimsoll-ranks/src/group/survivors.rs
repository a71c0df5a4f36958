//! Collection of the measurements of surviving ranks after a failure.
//!
//! Collective calls are impossible after a failure: a rank may be gone, or at another point of the program. Each rank
//! therefore sends its value to its parent once, unrequested, and waits only for the values of its children, skipping
//! children that are gone or late.

use super::Ranks;
use crate::frame::{Call, CallId};
use crate::link::PollRate;
use std::time::{Duration, Instant};

/// Collective call id of survivors' values, with a fixed number: after a failure, ranks may be at different calls.
const SURVIVORS: CallId = CallId {
    call: Call::Survivors,
    number: 0,
};

impl Ranks {
    /// After a failure, combines the bytes of the ranks that can still be reached, as [`reduce`](Self::reduce) does.
    /// Rank 0 waits at most `limit` for the bytes of other ranks, and returns the combined bytes. The result is `None`
    /// at ranks other than 0, without a failure, and with MPI, where the launcher ends all ranks of a group that has
    /// lost a rank.
    pub fn reduce_survivors(
        &self,
        mine: Vec<u8>,
        combine: &mut dyn FnMut(Vec<u8>, Vec<u8>) -> Vec<u8>,
        limit: Duration,
    ) -> Option<Vec<u8>> {
        if self.check().is_ok() || self.link.is_closed_collectively() {
            return None;
        }
        // Half the limit: a child of rank 0 must give up its own children before rank 0 gives up the child.
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
            rest = self.send_part(parent, SURVIVORS, rest);
            if rest.is_empty() {
                return None;
            }
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
