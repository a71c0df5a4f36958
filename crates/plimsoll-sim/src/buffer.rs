//! Write buffers: a log in non-volatile memory, or the dirty data of a write-back cache.

use crate::flow::Operation;
use crate::instance::FlowId;
use crate::system::MAX_GROUPS;
use plimsoll_measure::Nanos;
use std::collections::VecDeque;

/// Minimum space of an operation in bytes: a change without data has a record, too.
const MIN_RECORD_BYTES: u64 = 512;

/// A buffered operation whose draining has not begun.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Undrained {
    pub(crate) operation: Operation,
    /// Number of the operation's bytes that were buffered and are to be drained.
    pub(crate) bytes: u64,
    /// Node of each group at which the operation was buffered.
    pub(crate) nodes: [u32; MAX_GROUPS],
}

/// Buffer space of an operation of `bytes`.
fn record_bytes(bytes: u64) -> u64 {
    bytes.max(MIN_RECORD_BYTES)
}

/// Instance of a buffer: a log, or the dirty bytes of a write-back cache.
#[derive(Debug)]
pub(crate) struct Buffer {
    capacity: u64,
    pub(crate) used: u64,
    /// Operations that wait for space, first come, first served.
    pub(crate) waiting: VecDeque<FlowId>,
    /// Buffered operations whose draining has not begun, in order of arrival.
    pub(crate) undrained: VecDeque<Undrained>,
    pub(crate) draining: u32,
    changed_at: Nanos,
    /// Time integral of the number of bytes in the buffer, in byte-nanoseconds.
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

    /// Reserves space for an operation of `bytes`; `false` if the buffer is too full. An operation larger than the
    /// buffer fits only an empty buffer.
    pub(crate) fn reserve(&mut self, now: Nanos, bytes: u64) -> bool {
        let bytes = record_bytes(bytes);
        if self.used > 0 && self.used.saturating_add(bytes) > self.capacity {
            return false;
        }
        self.advance(now);
        self.used += bytes;
        self.most_used = self.most_used.max(self.used);
        true
    }

    /// Frees the space of a drained operation of `bytes`.
    pub(crate) fn release(&mut self, now: Nanos, bytes: u64) {
        let bytes = record_bytes(bytes);
        self.advance(now);
        assert!(self.used >= bytes, "{bytes} bytes drained of {}", self.used);
        self.used -= bytes;
    }

    /// Restarts the maximum fill at the start of a window.
    pub(crate) fn begin_window(&mut self) {
        self.most_used = self.used;
    }

    /// ∫ bytes used dt up to now, in byte-nanoseconds.
    pub(crate) fn used_byte_ns(&self, now: Nanos) -> u128 {
        self.used_byte_ns + u128::from(now - self.changed_at) * u128::from(self.used)
    }

    fn advance(&mut self, now: Nanos) {
        self.used_byte_ns = self.used_byte_ns(now);
        self.changed_at = now;
    }
}
