//! Completion times of operations: a bit for each short slot of an interval, set by the first completion in the slot.
//!
//! The sets of several lanes or ranks are united at the end of an interval, so that finding times without completions
//! needs no communication between lanes.

use crate::Nanos;
use plimsoll_runtime::sync::atomic::{AtomicU64, Ordering::Relaxed};
use serde::{Deserialize, Serialize};

/// Number of slots into which an interval is divided, at most; the resolution of completion times is a slot.
const SLOTS_PER_INTERVAL: u32 = 512;

const SLOT_WORDS: usize = SLOTS_PER_INTERVAL as usize / 64;

/// Slot length as a power of two in nanoseconds: the smallest length with which the slots cover an interval.
pub(crate) fn slot_shift(interval: Nanos) -> u32 {
    let bits = u64::BITS - interval.saturating_sub(1).leading_zeros();
    bits.saturating_sub(SLOTS_PER_INTERVAL.ilog2())
}

/// Slots of a row in an interval, written by the row's lane.
#[derive(Default)]
pub(crate) struct CompletionMarks {
    /// Number of the latest marked slot, plus one: a repeated mark is skipped.
    latest: AtomicU64,
    words: [AtomicU64; SLOT_WORDS],
}

impl CompletionMarks {
    /// Marks a completion at `end` in an interval that began at `base`. The slot is usually marked already.
    #[inline]
    pub(crate) fn mark(&self, base: Nanos, end: Nanos, shift: u32) {
        let slot = end.saturating_sub(base) >> shift;
        if slot + 1 != self.latest.load(Relaxed) {
            self.mark_slot(slot);
        }
    }

    #[cold]
    #[inline(never)]
    fn mark_slot(&self, slot: u64) {
        let word = &self.words[(slot / 64) as usize % SLOT_WORDS];
        word.store(word.load(Relaxed) | 1 << (slot % 64), Relaxed);
        self.latest.store(slot + 1, Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.latest.store(0, Relaxed);
        self.words.iter().for_each(|w| w.store(0, Relaxed));
    }
}

/// Set of the slots of an interval in which at least one operation completed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotSet([u64; SLOT_WORDS]);

impl SlotSet {
    pub(crate) fn add_marks(&mut self, marks: &CompletionMarks) {
        for (mine, theirs) in self.0.iter_mut().zip(&marks.words) {
            *mine |= theirs.load(Relaxed);
        }
    }

    /// Adds the slots of another set.
    pub fn union(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    /// Calls `visit` with the number of each slot of the set, in order.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(u64)) {
        for (at, word) in (0..).zip(self.0) {
            let mut rest = word;
            while rest != 0 {
                visit(64 * at + u64::from(rest.trailing_zeros()));
                rest &= rest - 1;
            }
        }
    }
}

/// Slots of an interval in which operations completed, for each row of the results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completions {
    /// Slot length in nanoseconds; 0 if nothing is known.
    pub slot_ns: Nanos,
    /// Slots with successful operations, one entry per row of the results.
    pub rows: Vec<SlotSet>,
    /// Slots with failed operations, which are completions too; one entry per row of the results.
    pub failed: Vec<SlotSet>,
}

impl Completions {
    /// Adds the completions of other lanes or ranks in the same interval.
    pub fn union(&mut self, other: &Self) {
        let rows = self.rows.len();
        assert_eq!(rows, other.rows.len(), "one entry per row");
        assert_eq!(rows, other.failed.len(), "one entry per row");
        self.slot_ns = self.slot_ns.max(other.slot_ns);
        let rows = self.rows.iter_mut().zip(&other.rows);
        for (mine, theirs) in rows.chain(self.failed.iter_mut().zip(&other.failed)) {
            mine.union(theirs);
        }
    }

    /// Completions of an interval in which nothing has completed, in slots of `slot_ns` nanoseconds, for `rows` rows of
    /// the results.
    #[must_use]
    pub fn new(slot_ns: Nanos, rows: usize) -> Self {
        Self {
            slot_ns,
            rows: vec![SlotSet::default(); rows],
            failed: vec![SlotSet::default(); rows],
        }
    }

    /// Slots in which operations of a row completed, successfully or not.
    #[must_use]
    pub fn of_row(&self, row: usize) -> SlotSet {
        let mut slots = self.rows[row];
        slots.union(&self.failed[row]);
        slots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_has_no_more_slots_than_bits() {
        for interval in [1, 511, 512, 513, 1_000_000_000, 60_000_000_000, u64::MAX] {
            let shift = slot_shift(interval);
            let slots = ((interval - 1) >> shift) + 1;
            assert!(
                slots <= u64::from(SLOTS_PER_INTERVAL),
                "{interval}: {slots}"
            );
            assert!(
                interval <= 512 || slots > u64::from(SLOTS_PER_INTERVAL) / 2,
                "{interval}: {slots}"
            );
        }
    }

    #[test]
    fn marks_are_visited_in_order() {
        let marks = CompletionMarks::default();
        for slot in [0u64, 0, 63, 64, 64, 511] {
            marks.mark(100, 100 + (slot << 3), 3);
            marks.mark(100, 107 + (slot << 3), 3);
        }
        let mut set = SlotSet::default();
        set.add_marks(&marks);
        let mut seen = Vec::new();
        set.for_each(|slot| seen.push(slot));
        assert_eq!(seen, [0, 63, 64, 511]);
        marks.clear();
        // Completions of asynchronous operations on several files are noticed out of order.
        for slot in [7u64, 6, 3, 7] {
            marks.mark(100, 100 + (slot << 3), 3);
        }
        let mut set = SlotSet::default();
        set.add_marks(&marks);
        seen.clear();
        set.for_each(|slot| seen.push(slot));
        assert_eq!(seen, [3, 6, 7]);
        marks.clear();
        let mut empty = SlotSet::default();
        empty.add_marks(&marks);
        assert_eq!(empty, SlotSet::default());
    }
}
