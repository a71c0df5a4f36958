//! Choice of entries of a fileset in round-robin order, among existing or missing entries.

use super::bits::{Bits, LINE_BITS};
use plimsoll_runtime::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use plimsoll_runtime::sync::atomic::{AtomicU32, AtomicU64};

/// Minimum number of blocks of a set with at least as many entries, so that every worker visits the whole set. A
/// smaller set has one block per entry.
const MIN_BLOCKS_PER_SET: u32 = 64;

/// Kind of an entry: on the target, the file or directory of the entry exists or is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existence {
    Existing,
    /// The file or directory was not created yet, or was removed.
    Missing,
}

impl Existence {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Existing => Self::Missing,
            Self::Missing => Self::Existing,
        }
    }
}

/// Result of a worker's search for an idle entry of a kind: the entry that was taken, or the reason for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Entry that the search found idle and has made busy for the caller.
    Taken(u32),
    /// No entry of the wanted kind is idle, but a busy entry may become an idle entry of the kind.
    AllBusy,
    /// No entry is of the wanted kind, and no busy entry may change to the kind.
    None,
}

/// A worker's position in its current block of entries.
///
/// A shared cursor sweeps over a set. Workers advance the shared cursor by a block of entries at a time, so that the
/// cursor is rarely written and two workers do not write the same cache lines. Small sets have blocks of one entry, so
/// that the order is exact.
#[derive(Debug, Clone, Copy, Default)]
pub struct BlockCursor {
    next: u32,
    end: u32,
}

#[repr(align(64))]
#[derive(Default)]
struct SharedPosition(AtomicU32);

/// The entries of one of several processes: the entries whose number is `rank` modulo `ranks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankPart {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

impl RankPart {
    /// The part of the only process of a run: all entries.
    pub(crate) const ALL_ENTRIES: Self = Self { rank: 0, ranks: 1 };

    /// Bits of the entries of the part among the 64 entries from `64 · i` on, in a set of `len` entries.
    fn mask(self, i: usize, len: u32) -> u64 {
        let first = i as u32 * 64;
        let existing = match len - first {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        if self == Self::ALL_ENTRIES {
            return existing;
        }
        let ours = (0..64).filter(|bit| self.has(first + bit));
        existing & ours.fold(0, |word, bit| word | 1 << bit)
    }

    /// Number of entries of the part in a set of `len` entries.
    fn count(self, len: u32) -> u64 {
        u64::from(len.saturating_sub(self.rank).div_ceil(self.ranks))
    }

    /// Whether entry `i` belongs to this rank's part, in which every `ranks`-th entry lies.
    fn has(self, i: u32) -> bool {
        i % self.ranks == self.rank
    }
}

/// Entries of a fileset: its files, or its leaf directories.
pub(crate) struct Entries {
    idle_existing: Bits,
    idle_missing: Bits,
    /// Number of the fileset's entries that exist, idle or busy.
    count: AtomicU64,
    /// Incremented whenever an entry is created or deleted.
    changes: AtomicU64,
    /// For each kind of entry, the number, modulo the number of blocks, of the block that the next worker searches.
    cursors: [SharedPosition; 2],
    block: u32,
    part: RankPart,
    /// Word in which the latest search found a busy entry.
    busy: AtomicU32,
}

impl Entries {
    /// Entries below `len`. `initial(at)` has the bits of the existing entries among the 64 entries from `64 · at` on.
    /// Entries outside the part are neither existing nor missing.
    pub(crate) fn new(len: u32, initial: impl Fn(u32) -> u64, part: RankPart) -> Self {
        // Bits of the existing entries and of the missing entries, for each word of 64 entries.
        let words = || {
            (0..len.div_ceil(64)).map(|at| {
                let (word, own) = (initial(at), part.mask(at as usize, len));
                (word & own, !word & own)
            })
        };
        let mut count = 0;
        let existing = words().map(|(existing, _)| {
            count += u64::from(existing.count_ones());
            existing
        });
        let idle_existing = Bits::new(len, existing);
        let idle_missing = Bits::new(len, words().map(|(_, missing)| missing));
        // The block size is a power of two, so that the blocks of a large set begin at cache lines.
        let block = 1 << (len / MIN_BLOCKS_PER_SET).clamp(1, LINE_BITS).ilog2();
        Self {
            idle_existing,
            idle_missing,
            count: AtomicU64::new(count),
            changes: AtomicU64::new(0),
            cursors: Default::default(),
            block,
            part,
            busy: AtomicU32::new(0),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.idle_existing.len()
    }

    /// Number of existing entries, idle or busy.
    pub(crate) fn existing_count(&self) -> u64 {
        self.count.load(Acquire)
    }

    /// Whether the entry exists and is idle.
    #[cfg(test)]
    pub(crate) fn is_idle_existing(&self, i: u32) -> bool {
        self.idle_existing.contains(i)
    }

    /// Whether the entry is missing and idle.
    #[cfg(test)]
    pub(crate) fn is_idle_missing(&self, i: u32) -> bool {
        self.idle_missing.contains(i)
    }

    #[inline]
    fn set(&self, kind: Existence) -> &Bits {
        match kind {
            Existence::Existing => &self.idle_existing,
            Existence::Missing => &self.idle_missing,
        }
    }

    /// Takes the next idle entry of the kind.
    #[inline(always)]
    pub(crate) fn choose(&self, kind: Existence, cursor: &mut BlockCursor) -> Choice {
        match self.set(kind).take_near(cursor.next, cursor.end) {
            Some(i) => {
                cursor.next = i + 1;
                Choice::Taken(i)
            }
            None => self.choose_slow_path(kind, cursor),
        }
    }

    #[inline(never)]
    fn choose_slow_path(&self, kind: Existence, cursor: &mut BlockCursor) -> Choice {
        let set = self.set(kind);
        loop {
            if let Some(i) = set.next(cursor.next, cursor.end) {
                cursor.next = i + 1;
                if set.take(i) {
                    return Choice::Taken(i);
                }
                continue;
            }
            if !self.next_block(kind, cursor) {
                return self.nothing(kind);
            }
        }
    }

    /// Moves the cursor to the next block with an idle entry of the kind; `false` if no entry of the kind is idle.
    #[cold]
    fn next_block(&self, kind: Existence, cursor: &mut BlockCursor) -> bool {
        let (set, shared, len) = (self.set(kind), &self.cursors[kind as usize].0, self.len());
        if len == 0 {
            return false;
        }
        let blocks = len.div_ceil(self.block);
        let block = shared.fetch_add(1, AcqRel) % blocks;
        let begin = block * self.block;
        let end = (begin + self.block).min(len);
        if set.next(begin, end).is_some() {
            *cursor = BlockCursor { next: begin, end };
            return true;
        }
        // The summaries find an entry outside the searched block, and the shared cursor jumps to the block of the
        // entry.
        let Some(i) = set.next(end, len).or_else(|| set.next(0, begin)) else {
            return false;
        };
        let found = i / self.block;
        shared.store((found + 1) % blocks, Relaxed);
        *cursor = BlockCursor {
            next: i,
            end: ((found + 1) * self.block).min(len),
        };
        true
    }

    /// Takes entry `number` (modulo the size of the set) if the entry is idle and of the kind, otherwise the next idle
    /// entry of the kind.
    pub(crate) fn choose_at(&self, kind: Existence, number: u64) -> Choice {
        let (set, len) = (self.set(kind), self.len());
        if len == 0 {
            return Choice::None;
        }
        let from = (number % u64::from(len)) as u32;
        while let Some(i) = set.next(from, len).or_else(|| set.next(0, from)) {
            if set.take(i) {
                return Choice::Taken(i);
            }
        }
        self.nothing(kind)
    }

    /// Takes entry `i` if the entry exists and is idle. `Choice::None` if the entry is missing and idle, or belongs to
    /// another rank; `Choice::AllBusy` if the entry is busy.
    pub(crate) fn claim(&self, i: u32) -> Choice {
        if self.idle_existing.take(i) {
            Choice::Taken(i)
        } else if self.idle_missing.contains(i) || !self.part.has(i) {
            Choice::None
        } else {
            Choice::AllBusy
        }
    }

    /// The result of a search that found no idle entry of the kind. `Choice::None` requires that no entry is of the
    /// kind, idle or busy, and that no other entry is busy, because a busy entry may change its kind.
    #[cold]
    pub(super) fn nothing(&self, kind: Existence) -> Choice {
        loop {
            let before = self.changes.load(Acquire);
            // The count is read first, because an entry that is released and taken during the search may never be seen
            // idle or busy.
            if self.count_of(kind) > 0 || self.is_one_busy() {
                return Choice::AllBusy;
            }
            // If no entry has changed its kind since `before`, no busy entry has changed to the wanted kind during the
            // search.
            if self.changes.load(Acquire) == before {
                return Choice::None;
            }
        }
    }

    /// Number of entries of the kind, idle or busy.
    fn count_of(&self, kind: Existence) -> u64 {
        match kind {
            Existence::Existing => self.existing_count(),
            Existence::Missing => self.part.count(self.len()) - self.existing_count(),
        }
    }

    /// Whether an entry of the kind is idle.
    pub(super) fn has_idle(&self, kind: Existence) -> bool {
        self.set(kind).next(0, self.len()).is_some()
    }

    /// Whether an entry of the part is busy. Begins with the word in which the latest search found a busy entry.
    fn is_one_busy(&self) -> bool {
        let words = self.len().div_ceil(64);
        let hint = self.busy.load(Relaxed).min(words);
        let at = (hint..words).chain(0..hint).find(|at| {
            let at = *at as usize;
            let idle = self.idle_existing.word(at) | self.idle_missing.word(at);
            !idle & self.part.mask(at, self.len()) != 0
        });
        if let Some(at) = at {
            self.busy.store(at, Relaxed);
        }
        at.is_some()
    }

    /// Whether no entry is busy, and the number of existing entries equals the count.
    pub(crate) fn are_idle(&self) -> bool {
        let words = 0..self.len().div_ceil(64) as usize;
        let existing = words.map(|at| u64::from(self.idle_existing.word(at).count_ones()));
        !self.is_one_busy() && existing.sum::<u64>() == self.existing_count()
    }

    /// Makes the taken entry `i` idle, as an entry of the kind `now`.
    #[inline]
    pub(super) fn put(&self, i: u32, now: Existence) {
        self.set(now).insert(i);
    }

    /// Counts the creation or deletion of a taken entry.
    pub(crate) fn set_existence(&self, now: Existence) {
        self.changes.fetch_add(1, AcqRel);
        match now {
            Existence::Existing => {
                let before = self.count.fetch_add(1, AcqRel);
                debug_assert!(
                    before < u64::from(self.len()),
                    "more entries exist than there are"
                );
            }
            Existence::Missing => {
                let before = self.count.fetch_sub(1, AcqRel);
                debug_assert!(before > 0, "fewer than 0 entries exist");
            }
        }
    }
}

#[cfg(test)]
mod tests;
