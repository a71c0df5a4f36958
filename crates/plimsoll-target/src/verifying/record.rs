//! The knowledge about one file: its contents, and the acknowledged part of the contents.

use super::stamp::Stamp;
use plimsoll_runtime::sync::lock;
use std::sync::Mutex;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// Maximum number of remembered acknowledged ranges beyond the first hole of a file.
const MAX_RANGES: usize = 64;

/// A file during its existence: a file that is deleted and created again gets a new record.
///
/// Contents follow from the file and the offset, so overlapping writes may arrive in any order. The knowledge is a
/// lower bound: the file has at least `length` bytes, the first `solid` bytes have their contents, and each later byte
/// has its content or is zero. Truncations change the `epoch`: reads and writes during a change prove nothing about
/// lengths and zeros.
#[derive(Debug)]
pub(crate) struct FileRecord {
    /// The fileset and the number of the file whose contents this file has, 32 bits each.
    origin: AtomicU64,
    generation: AtomicU32,
    length: AtomicU64,
    solid: AtomicU64,
    /// The end of the file if all begun writes succeed: the next append begins here.
    end: AtomicU64,
    epoch: AtomicU64,
    /// Number of truncations in progress.
    truncations: AtomicU32,
    /// Whether the contents are unknown and cannot be checked.
    is_unknown: AtomicBool,
    /// Whether other processes truncate the file, so that the length is unknown.
    has_foreign_lengths: bool,
    /// Acknowledged byte ranges beyond `solid`, sorted and disjoint. All changes of the record are made with this mutex
    /// held.
    beyond: Mutex<Vec<(u64, u64)>>,
}

/// The knowledge about a file at an instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    epoch: u64,
    /// Lower bound of the file's length in bytes.
    pub(crate) length: u64,
    /// Number of leading bytes that have their contents.
    pub(crate) solid: u64,
}

impl Known {
    /// Whether no truncation began or ended between the two instants.
    pub(crate) fn is_same_epoch(self, other: Self) -> bool {
        self.epoch == other.epoch
    }
}

impl FileRecord {
    /// The record of a file whose first `length` bytes have their contents.
    pub(crate) fn new(fileset: u32, file: u32, generation: u32, length: u64) -> Self {
        Self {
            origin: AtomicU64::new(u64::from(fileset) << 32 | u64::from(file)),
            generation: AtomicU32::new(generation),
            length: AtomicU64::new(length),
            solid: AtomicU64::new(length),
            end: AtomicU64::new(length),
            epoch: AtomicU64::new(0),
            truncations: AtomicU32::new(0),
            is_unknown: AtomicBool::new(false),
            has_foreign_lengths: false,
            beyond: Mutex::default(),
        }
    }

    /// The record of a file whose length other processes may change: its known length is 0, and appends begin at `end`.
    pub(crate) fn of_unknown_length(fileset: u32, file: u32, end: u64) -> Self {
        let mut record = Self::new(fileset, file, 0, 0);
        record.has_foreign_lengths = true;
        record.end.store(end, SeqCst);
        record
    }

    /// The identity of the file's contents, in the run with this seed.
    pub(crate) fn stamp(&self, seed: u32) -> Stamp {
        let origin = self.origin.load(SeqCst);
        Stamp {
            seed,
            owner: self.generation.load(SeqCst),
            set: (origin >> 32) as u32,
            number: origin & u64::from(u32::MAX),
            offset: 0,
        }
    }

    /// Gives this file the origin and the generation of `other`, whose contents were copied into this file.
    pub(crate) fn take_contents_of(&self, other: &Self) {
        self.origin.store(other.origin.load(SeqCst), SeqCst);
        self.generation.store(other.generation.load(SeqCst), SeqCst);
    }

    /// Whether the contents of the file cannot be checked.
    pub(crate) fn is_unknown(&self) -> bool {
        self.is_unknown.load(SeqCst)
    }

    /// Notes that the file has unknown contents.
    pub(crate) fn set_unknown(&self) {
        self.is_unknown.store(true, SeqCst);
    }

    /// The knowledge at this instant; nothing is known during a truncation.
    pub(crate) fn known(&self) -> Known {
        let epoch = self.epoch.load(SeqCst);
        match self.truncations.load(SeqCst) {
            0 => Known {
                epoch,
                length: self.length.load(SeqCst),
                solid: self.solid.load(SeqCst),
            },
            _ => Known {
                epoch,
                length: 0,
                solid: 0,
            },
        }
    }

    /// The knowledge that has held from the instant of `before` until now.
    pub(crate) fn known_since(&self, before: Known) -> Known {
        match self.epoch.load(SeqCst) == before.epoch {
            true => before,
            false => Known {
                length: 0,
                solid: 0,
                ..before
            },
        }
    }

    /// Reserves the position of an append of `len` bytes.
    pub(crate) fn reserve_append(&self, len: u64) -> u64 {
        self.end.fetch_add(len, SeqCst)
    }

    /// Notes that a write up to `end` begins; returns the knowledge before the write.
    pub(crate) fn begin_write(&self, end: u64) -> Known {
        self.end.fetch_max(end, SeqCst);
        self.known()
    }

    /// Notes the acknowledgement of a write that began at the instant of `before`.
    pub(crate) fn acknowledge(&self, before: Known, begin: u64, end: u64) {
        // Another process may have cut the written range off.
        if self.has_foreign_lengths {
            return;
        }
        // Most writes are within the known part of the file.
        if begin == end || (end <= before.solid && self.solid.load(SeqCst) >= end) {
            return;
        }
        let mut beyond = lock(&self.beyond);
        if self.epoch.load(SeqCst) != before.epoch || self.truncations.load(SeqCst) > 0 {
            // A truncation may have cut the written range off.
            return;
        }
        self.length.fetch_max(end, SeqCst);
        insert(&mut beyond, (begin, end));
        let mut solid = self.solid.load(SeqCst);
        let joined = beyond.iter().take_while(|(begin, end)| {
            let joins = *begin <= solid;
            if joins {
                solid = solid.max(*end);
            }
            joins
        });
        let joined = joined.count();
        beyond.drain(..joined);
        self.solid.store(solid, SeqCst);
    }

    /// Notes that a truncation to `len` begins, which may take effect from now on. Returns the epoch of the truncation.
    pub(crate) fn begin_truncate(&self, len: u64) -> u64 {
        let mut beyond = lock(&self.beyond);
        self.truncations.fetch_add(1, SeqCst);
        self.length.fetch_min(len, SeqCst);
        self.solid.fetch_min(len, SeqCst);
        cut(&mut beyond, len);
        self.epoch.fetch_add(1, SeqCst) + 1
    }

    /// Notes the end of a truncation to `len` bytes that began in `epoch`. The length of the file is known only after a
    /// successful truncation during which no other truncation began or ended.
    pub(crate) fn end_truncate(&self, epoch: u64, len: u64, has_succeeded: bool) {
        let _beyond = lock(&self.beyond);
        if has_succeeded && self.epoch.load(SeqCst) == epoch {
            // An equal epoch means that no other truncation began or ended in the meantime.
            if !self.has_foreign_lengths {
                self.length.store(len, SeqCst);
            }
            self.end.store(len, SeqCst);
        }
        self.truncations.fetch_sub(1, SeqCst);
        self.epoch.fetch_add(1, SeqCst);
    }

    /// The end of the bytes from `offset` on that must not be zero, because their writes were acknowledged; at most
    /// `offset + len`; used only when files are reread.
    pub(crate) fn trusted_until(&self, offset: u64, len: u64) -> u64 {
        let end = offset + len;
        let solid = self.known().solid;
        if offset < solid {
            return solid.min(end);
        }
        let beyond = lock(&self.beyond);
        let found = beyond.iter().find(|(b, e)| *b <= offset && offset < *e);
        found.map_or(offset, |(_, e)| end.min(*e))
    }

    /// The end of the part of `[offset, end)` for which the knowledge is the same as for its first
    /// byte.
    pub(crate) fn next_boundary(&self, offset: u64, end: u64) -> u64 {
        let solid = self.known().solid;
        if offset < solid {
            return solid.min(end);
        }
        let beyond = lock(&self.beyond);
        let bounds = beyond.iter().flat_map(|(b, e)| [*b, *e]);
        bounds.filter(|b| *b > offset).fold(end, u64::min)
    }
}

/// Adds a byte range to sorted disjoint ranges, and merges ranges that touch. If the ranges become more than the
/// maximum number of remembered ranges, the smallest range is forgotten.
fn insert(ranges: &mut Vec<(u64, u64)>, (mut begin, mut end): (u64, u64)) {
    let first = ranges.partition_point(|(_, e)| *e < begin);
    let behind = ranges.partition_point(|(b, _)| *b <= end);
    if first < behind {
        begin = begin.min(ranges[first].0);
        end = end.max(ranges[behind - 1].1);
    }
    ranges.splice(first..behind.max(first), [(begin, end)]);
    if ranges.len() > MAX_RANGES {
        let smallest = (0..ranges.len()).min_by_key(|i| ranges[*i].1 - ranges[*i].0);
        ranges.remove(smallest.expect("there are ranges"));
    }
}

/// Removes all bytes beyond `len`.
fn cut(ranges: &mut Vec<(u64, u64)>, len: u64) {
    ranges.retain_mut(|(begin, end)| {
        *end = len.min(*end);
        begin < end
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(record: &FileRecord, begin: u64, end: u64) {
        let before = record.begin_write(end);
        record.acknowledge(before, begin, end);
    }

    #[test]
    fn a_write_beyond_the_end_leaves_a_hole_until_it_is_filled() {
        let record = FileRecord::new(0, 0, 0, 100);
        write(&record, 200, 300);
        assert_eq!((record.known().length, record.known().solid), (300, 100));
        assert_eq!(record.trusted_until(50, 10), 60);
        assert_eq!(record.trusted_until(150, 100), 150);
        assert_eq!(record.trusted_until(250, 100), 300);
        assert_eq!(record.next_boundary(150, 1000), 200);
        write(&record, 100, 200);
        assert_eq!(record.known().solid, 300);
    }

    #[test]
    fn a_write_during_a_truncation_proves_nothing() {
        let record = FileRecord::new(0, 0, 0, 100);
        let before = record.begin_write(500);
        let epoch = record.begin_truncate(10);
        record.acknowledge(before, 0, 500);
        assert_eq!(record.known().length, 0, "a truncation is in progress");
        record.end_truncate(epoch, 10, true);
        assert_eq!((record.known().length, record.known().solid), (10, 10));
        record.acknowledge(before, 0, 500);
        assert_eq!((record.known().length, record.known().solid), (10, 10));
    }

    #[test]
    fn truncations_at_once_leave_the_smaller_length() {
        let record = FileRecord::new(0, 0, 0, 100);
        let (a, b) = (record.begin_truncate(80), record.begin_truncate(30));
        record.end_truncate(b, 30, true);
        record.end_truncate(a, 80, true);
        assert_eq!((record.known().length, record.known().solid), (30, 30));
        let c = record.begin_truncate(70);
        record.end_truncate(c, 70, true);
        assert_eq!((record.known().length, record.known().solid), (70, 30));
    }

    #[test]
    fn appends_begin_where_the_last_one_ends() {
        let record = FileRecord::new(0, 0, 0, 100);
        assert_eq!(record.reserve_append(10), 100);
        assert_eq!(record.reserve_append(5), 110);
        let before = record.known();
        record.acknowledge(before, 110, 115);
        assert_eq!(record.known().solid, 100);
        record.acknowledge(before, 100, 110);
        assert_eq!((record.known().length, record.known().solid), (115, 115));
    }

    proptest! {
        /// The known ranges contain only written bytes, by comparison with a map of bytes.
        #[test]
        fn what_is_known_is_what_was_written(
            steps in prop::collection::vec((0u64..400, 1u64..60, any::<bool>()), 0..60),
        ) {
            let record = FileRecord::new(0, 0, 0, 50);
            let (mut bytes, mut len) = (vec![false; 600], 50);
            bytes[..50].fill(true);
            for (at, size, is_cut) in steps {
                if is_cut && at % 3 == 0 {
                    let epoch = record.begin_truncate(at);
                    record.end_truncate(epoch, at, true);
                    bytes[at as usize..].fill(false);
                    len = at;
                } else {
                    write(&record, at, at + size);
                    bytes[at as usize..(at + size) as usize].fill(true);
                    len = len.max(at + size);
                }
                prop_assert_eq!(record.known().length, len);
                let solid = bytes.iter().take_while(|b| **b).count() as u64;
                prop_assert_eq!(record.known().solid, solid);
                let mut at = 0;
                while at < len {
                    let next = record.next_boundary(at, len);
                    prop_assert!(next > at);
                    let trusted = record.trusted_until(at, next - at);
                    prop_assert!(trusted == at || trusted == next, "one kind of bytes");
                    for (i, b) in bytes[at as usize..next as usize].iter().enumerate() {
                        prop_assert_eq!(*b, trusted == next, "byte {}", at + i as u64);
                    }
                    at = next;
                }
            }
        }
    }
}
