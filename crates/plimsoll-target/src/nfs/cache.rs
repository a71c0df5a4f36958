//! The client's cache of attributes and data, modelled on the caches of kernel clients.

use crate::session_types::{Attributes, RpcRows};
use plimsoll_measure::{Nanos, OpTimes};
pub(crate) use plimsoll_plan::CACHED_DATA;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Maximum number of names with cached attributes; a full cache is emptied.
const MAX_CACHED_NAMES: usize = 1 << 18;

/// Row of attributes that the cache served.
pub(crate) const CACHED_ATTRIBUTES: &str = "attribute cache hits";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CacheModel {
    /// Client without a cache: every operation calls the server.
    None,
    /// Cache of the attributes of names, until the lifetime of the attributes ends.
    Attributes,
    /// Cache of the attributes of names until the lifetime of the attributes ends, and of the size and data of a file
    /// while the file is open (close-to-open).
    OpenToClose,
}

/// The client's number of the delegation that guarantees cached attributes or data; `None` without a delegation, and
/// always on NFSv3.
pub(crate) type DelegationId = Option<u64>;

/// Attributes by path, the instant of their expiry, and the delegation that keeps the attributes valid beyond the
/// expiry.
type Names = HashMap<Box<[u8]>, (Attributes, Nanos, DelegationId)>;

/// Cached files by path, each with the delegation that keeps the cached data valid.
type DelegatedFiles = HashMap<Box<[u8]>, (u64, Rc<CachedFile>)>;

/// The cache that the sessions of a lane share.
pub(crate) struct Cache {
    model: CacheModel,
    /// Lifetime of attributes, in nanoseconds.
    lifetime: Nanos,
    names: RefCell<Names>,
    delegated: RefCell<DelegatedFiles>,
    rows: Option<RpcRows>,
    attributes_row: Option<u32>,
    data_row: Option<u32>,
}

impl Cache {
    pub(crate) fn new(model: CacheModel, lifetime: Nanos, rows: Option<RpcRows>) -> Self {
        let row = |name| rows.as_ref().and_then(|rows| rows.row(name));
        Self {
            model,
            lifetime,
            names: RefCell::default(),
            delegated: RefCell::default(),
            attributes_row: row(CACHED_ATTRIBUTES),
            data_row: row(CACHED_DATA),
            rows,
        }
    }

    /// Records an operation of `bytes` bytes that the cache answered, with latency 0, in the results' row `row`.
    fn count_hit(&self, row: Option<u32>, now: Nanos, bytes: u64) {
        if let (Some(rows), Some(row)) = (&self.rows, row) {
            rows.recorder.record(row, OpTimes::unpaced(now, now), bytes);
        }
    }

    /// The valid attributes of a name, and whether a held delegation makes the attributes valid; counts a hit in the
    /// results.
    pub(crate) fn name(
        &self,
        path: &[u8],
        now: Nanos,
        delegation: impl FnOnce() -> DelegationId,
    ) -> Option<(Attributes, bool)> {
        if self.model == CacheModel::None {
            return None;
        }
        let (attributes, expiry, since) = self.names.borrow().get(path).copied()?;
        let is_delegated = since.is_some() && delegation() == since;
        if now >= expiry && !is_delegated {
            return None;
        }
        self.count_hit(self.attributes_row, now, 0);
        Some((attributes, is_delegated))
    }

    /// Stores the attributes that the server returned for a name.
    pub(crate) fn store_attributes(
        &self,
        path: &[u8],
        attributes: Attributes,
        now: Nanos,
        delegation: impl FnOnce() -> DelegationId,
    ) {
        if self.model == CacheModel::None {
            return;
        }
        let mut names = self.names.borrow_mut();
        if names.len() >= MAX_CACHED_NAMES {
            names.clear();
        }
        names.insert(path.into(), (attributes, now + self.lifetime, delegation()));
    }

    /// Drops the cached attributes and data of a name.
    pub(crate) fn invalidate(&self, path: &[u8]) {
        if self.model != CacheModel::None {
            self.names.borrow_mut().remove(path);
            self.delegated.borrow_mut().remove(path);
        }
    }

    /// Drops the cached attributes of a file and the data cached by other opens; `cached` stays.
    pub(crate) fn invalidate_other_opens(&self, cached: &Rc<CachedFile>) {
        self.names.borrow_mut().remove(&cached.path);
        let mut delegated = self.delegated.borrow_mut();
        let other = delegated.get(&cached.path);
        if other.is_some_and(|(_, other)| !Rc::ptr_eq(other, cached)) {
            delegated.remove(&cached.path);
        }
    }

    /// Drops the cached attributes and data of a directory and of all names below the directory.
    pub(crate) fn invalidate_below(&self, dir: &[u8]) {
        if self.model != CacheModel::None {
            let below = |p: &[u8]| {
                let rest = p.strip_prefix(dir);
                rest.is_some_and(|r| r.is_empty() || r[0] == b'/')
            };
            self.names.borrow_mut().retain(|p, _| !below(p));
            self.delegated.borrow_mut().retain(|p, _| !below(p));
        }
    }

    /// The cache of a file that is being opened: the cache of an earlier open if the delegation has
    /// been held since that open.
    pub(crate) fn open(
        &self,
        path: &[u8],
        delegation: impl FnOnce() -> DelegationId,
    ) -> Option<Rc<CachedFile>> {
        let data = match self.model {
            CacheModel::None => return None,
            CacheModel::Attributes => false,
            CacheModel::OpenToClose => true,
        };
        let delegation = delegation().filter(|_| data);
        let mut delegated = self.delegated.borrow_mut();
        if let (Some(number), Some((since, cached))) = (delegation, delegated.get(path))
            && number == *since
        {
            cached.reopened.set(true);
            return Some(cached.clone());
        }
        let cached = Rc::new(CachedFile {
            path: path.into(),
            data,
            reopened: Cell::new(false),
            attributes: Cell::new(None),
            ranges: RefCell::default(),
        });
        if let Some(number) = delegation {
            if delegated.len() >= MAX_CACHED_NAMES {
                delegated.clear();
            }
            delegated.insert(path.into(), (number, cached.clone()));
        }
        Some(cached)
    }

    pub(crate) fn open_attributes(
        &self,
        cached: Option<&CachedFile>,
        now: Nanos,
    ) -> Option<Attributes> {
        let attributes = cached.filter(|c| c.data)?.attributes.get()?;
        self.count_hit(self.attributes_row, now, 0);
        Some(attributes)
    }

    /// The number of bytes in a range of an open file, if all bytes of the range are cached; counts a hit in the
    /// results.
    pub(crate) fn data(
        &self,
        cached: Option<&CachedFile>,
        (offset, len): (u64, u64),
        now: Nanos,
    ) -> Option<u64> {
        let bytes = cached.filter(|c| c.data)?.read(offset, len)?;
        self.count_hit(self.data_row, now, bytes);
        Some(bytes)
    }
}

pub(crate) struct CachedFile {
    pub(crate) path: Box<[u8]>,
    /// Whether attributes and data are cached.
    data: bool,
    /// Whether the cache was taken over from an earlier open under a delegation.
    reopened: Cell<bool>,
    attributes: Cell<Option<Attributes>>,
    /// Cached ranges of read or written data: end by begin. No two ranges overlap or touch.
    ranges: RefCell<BTreeMap<u64, u64>>,
}

impl CachedFile {
    /// Whether the cache was taken over from an earlier open under a delegation.
    pub(crate) fn has_cached_before_open(&self) -> bool {
        self.reopened.get()
    }

    /// Stores the attributes that the server returned.
    pub(crate) fn note_attributes(&self, attributes: Attributes) {
        self.attributes.set(Some(attributes));
    }

    /// The number of bytes in a range, if all bytes of the range are cached.
    fn read(&self, offset: u64, len: u64) -> Option<u64> {
        let size = self.attributes.get()?.size;
        let end = offset.saturating_add(len).min(size);
        if offset >= end {
            return Some(0);
        }
        let ranges = self.ranges.borrow();
        let (_, range_end) = ranges.range(..=offset).next_back()?;
        (*range_end >= end).then_some(end - offset)
    }

    /// Adds the bytes from `offset` to `offset + len` to the cached ranges of the file, and merges ranges that touch.
    fn add(&self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        let (mut begin, mut end) = (offset, offset.saturating_add(len));
        let mut ranges = self.ranges.borrow_mut();
        while let Some((b, e)) = ranges.range(..=end).next_back().map(|(b, e)| (*b, *e)) {
            if e < begin {
                break;
            }
            ranges.remove(&b);
            begin = begin.min(b);
            end = end.max(e);
        }
        ranges.insert(begin, end);
    }

    /// Notes a read of `requested` bytes that returned `read` bytes.
    pub(crate) fn note_read(&self, offset: u64, requested: u64, read: u64) {
        if !self.data {
            return;
        }
        self.add(offset, read);
        if read < requested && read > 0 {
            // A short read shows the end of the file.
            self.set_size(offset + read);
        }
    }

    /// Notes a write of `len` bytes.
    pub(crate) fn note_write(&self, offset: u64, len: u64) {
        if !self.data || len == 0 {
            return;
        }
        self.add(offset, len);
        if let Some(known) = self.attributes.get() {
            self.set_size(known.size.max(offset.saturating_add(len)));
        }
    }

    /// Notes a truncation to `len` bytes.
    pub(crate) fn note_truncate(&self, len: u64) {
        let mut ranges = self.ranges.borrow_mut();
        ranges.retain(|begin, _| *begin < len);
        if let Some(end) = ranges.values_mut().next_back() {
            *end = (*end).min(len);
        }
        drop(ranges);
        self.set_size(len);
    }

    fn set_size(&self, size: u64) {
        if let Some(known) = self.attributes.get() {
            self.attributes.set(Some(Attributes { size, ..known }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_types::EntryKind;
    use proptest::prelude::*;

    fn file(size: u64) -> Attributes {
        Attributes {
            kind: EntryKind::File,
            size,
            changed_ns: None,
        }
    }

    #[test]
    fn attributes_count_for_a_while() {
        let cache = Cache::new(CacheModel::Attributes, 100, None);
        let name = |path: &[u8], now| cache.name(path, now, || None).map(|(a, _)| a);
        cache.store_attributes(b"d/f", file(5), 1000, || None);
        cache.store_attributes(b"d", file(1), 1000, || None);
        cache.store_attributes(b"df", file(2), 1000, || None);
        assert_eq!(name(b"d/f", 1099), Some(file(5)));
        assert_eq!(name(b"d/f", 1100), None);
        cache.invalidate_below(b"d");
        assert_eq!((name(b"d/f", 1000), name(b"d", 1000)), (None, None));
        assert_eq!(name(b"df", 1000), Some(file(2)));
        cache.invalidate(b"df");
        assert_eq!(name(b"df", 1000), None);
        // The `Attributes` model caches nothing of an open file.
        let kept = cache.open(b"f", || None).unwrap();
        kept.note_attributes(file(9));
        kept.note_write(0, 9);
        assert_eq!(cache.open_attributes(Some(&kept), 0), None);
        assert_eq!(cache.data(Some(&kept), (0, 9), 0), None);
        let none = Cache::new(CacheModel::None, 100, None);
        none.store_attributes(b"f", file(5), 0, || None);
        assert!(none.name(b"f", 0, || None).is_none() && none.open(b"f", || None).is_none());
    }

    /// Cached names and files are valid while their delegation is held, even across opens.
    #[test]
    fn delegations_outlast_lifetimes_and_closes() {
        let cache = Cache::new(CacheModel::OpenToClose, 100, None);
        cache.store_attributes(b"f", file(5), 1000, || Some(7));
        assert_eq!(cache.name(b"f", 1050, || None), Some((file(5), false)));
        assert_eq!(cache.name(b"f", 5000, || Some(7)), Some((file(5), true)));
        assert_eq!(cache.name(b"f", 5000, || Some(8)), None);
        assert_eq!(cache.name(b"f", 5000, || None), None);
        let open = |promise| cache.open(b"f", || promise).unwrap();
        let first = open(Some(7));
        first.note_attributes(file(5));
        first.note_read(0, 9, 5);
        assert!(!first.has_cached_before_open());
        let again = open(Some(7));
        assert!(again.has_cached_before_open());
        assert_eq!(cache.data(Some(&again), (1, 9), 0), Some(4));
        // Both opens share one cache.
        again.note_write(5, 2);
        cache.invalidate_other_opens(&again);
        assert_eq!(cache.data(Some(&first), (0, 9), 0), Some(7));
        assert_eq!(cache.name(b"f", 1050, || Some(7)), None);
        for promise in [Some(8), None] {
            assert_eq!(cache.data(Some(&open(promise)), (0, 1), 0), None);
        }
        // An open without a delegation does not share its cache.
        let other = open(None);
        let third = open(Some(8));
        assert!(third.has_cached_before_open());
        cache.invalidate_other_opens(&other);
        assert!(!open(Some(8)).has_cached_before_open());
        cache.invalidate(b"f");
        assert!(!open(Some(8)).has_cached_before_open());
        cache.invalidate_below(b"");
        assert!(
            open(Some(8)).has_cached_before_open(),
            "it is below no directory of that name"
        );
    }

    proptest! {
        /// Exactly the bytes that were read or written and not truncated are cached.
        #[test]
        fn ranges_are_those_of_a_map(
            size in 0u64..60,
            steps in prop::collection::vec((0u8..4, 0u64..60, 0u64..20), 0..30),
        ) {
            let cache = Cache::new(CacheModel::OpenToClose, 1, None);
            let kept = cache.open(b"f", || None).unwrap();
            kept.note_attributes(file(size));
            let (mut size, mut bytes) = (size, [false; 100]);
            for (step, offset, len) in steps {
                let end = offset + len;
                match step {
                    0 => {
                        let read = end.min(size).saturating_sub(offset);
                        kept.note_read(offset, len, read);
                        bytes[offset as usize..(offset + read) as usize].fill(true);
                    }
                    1 => {
                        kept.note_write(offset, len);
                        bytes[offset as usize..end as usize].fill(true);
                        size = if len > 0 { size.max(end) } else { size };
                    }
                    2 => {
                        kept.note_truncate(offset);
                        bytes[offset as usize..].fill(false);
                        size = offset;
                    }
                    _ => {
                        let there = end.min(size).saturating_sub(offset);
                        let range = offset as usize..(offset + there) as usize;
                        let all = bytes[range].iter().all(|b| *b);
                        let want = all.then_some(there);
                        prop_assert_eq!(cache.data(Some(&kept), (offset, len), 0), want);
                    }
                }
                prop_assert_eq!(cache.open_attributes(Some(&kept), 0), Some(file(size)));
            }
        }
    }
}
