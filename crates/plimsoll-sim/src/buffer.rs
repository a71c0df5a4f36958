//! Buffers of written bytes: a log in non-volatile memory, or the dirty data of a write-back cache.

use crate::flow::Operation;
use crate::instance::FlowId;
use crate::system::MAX_GROUPS;
use plimsoll_measure::Nanos;
use std::collections::VecDeque;

/// One instance of a buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    capacity: u64,
    pub(crate) used: u64,
    /// Operations that wait for room, in the order they came.
    pub(crate) waiting: VecDeque<FlowId>,
    /// Operations whose bytes have to be drained, in their order, with the bytes and the nodes chosen.
    pub(crate) undrained: VecDeque<(Operation, u64, [u32; MAX_GROUPS])>,
    pub(crate) draining: u32,
    changed_at: Nanos,
    /// ∫ bytes used dt.
    used_byte_ns: u128,
    pub(crate) most_used: u64,
}

impl Buffer {
    pub(crate) fn new(capacity: u64) -> Self {
        Self {
            capacity,
            used: 0,
            waiting: VecDeque::new(),
            undrained: VecDeque::new(),
            draining: 0,
            changed_at: 0,
            used_byte_ns: 0,
            most_used: 0,
        }
    }

    /// Takes room for `bytes`, if there is; what is larger than the whole fits an empty buffer.
    pub(crate) fn reserve(&mut self, now: Nanos, bytes: u64) -> bool {
        if self.used > 0 && self.used + bytes > self.capacity {
            return false;
        }
        self.advance(now);
        self.used += bytes;
        self.most_used = self.most_used.max(self.used);
        true
    }

    /// Bytes have been drained.
    pub(crate) fn release(&mut self, now: Nanos, bytes: u64) {
        self.advance(now);
        assert!(self.used >= bytes, "{bytes} bytes drained of {}", self.used);
        self.used -= bytes;
    }

    /// ∫ bytes used dt up to now.
    pub(crate) fn used_byte_ns(&self, now: Nanos) -> u128 {
        self.used_byte_ns + u128::from(now - self.changed_at) * u128::from(self.used)
    }

    fn advance(&mut self, now: Nanos) {
        self.used_byte_ns = self.used_byte_ns(now);
        self.changed_at = now;
    }
}
