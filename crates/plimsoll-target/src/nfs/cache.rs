//! What a client keeps of what the server said, as the clients of kernels do.

use crate::session_types::{Attributes, RpcRows};
use plimsoll_measure::{Nanos, OpTimes};
pub(crate) use plimsoll_plan::CACHED_DATA;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Names whose attributes are kept; above that all are forgotten.
const MAX_CACHED_NAMES: usize = 1 << 18;

/// Row of attributes that were kept still.
pub(crate) const CACHED_ATTRIBUTES: &str = "attribute cache hits";

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CacheModel {
    /// Nothing: every operation goes to the server.
    None,
    /// Attributes of names, for a while.
    Attributes,
    /// These, and size and data of a file from when it is opened until it is closed.
    OpenToClose,
}

/// What a server promises of a name, by a number: that nobody else changes it as long as the promise
/// holds. Versions without such promises give none.
pub(crate) type DelegationId = Option<u64>;

/// Attributes by path, until when they count, and as long as which promise they count besides.
type Names = HashMap<Box<[u8]>, (Attributes, Nanos, DelegationId)>;

/// What is kept of files by path, and as long as which promise.
type DelegatedFiles = HashMap<Box<[u8]>, (u64, Rc<CachedFile>)>;

/// What the sessions of a lane keep together.
pub(crate) struct Cache {
    model: CacheModel,
    /// How long attributes count, in nanoseconds.
    timeout: Nanos,
    /// By path: the attributes, and until when they count.
    names: RefCell<Names>,
    /// What is kept of files as long as a promise holds, by path.
    promised: RefCell<DelegatedFiles>,
    rows: Option<RpcRows>,
    attributes_row: Option<u32>,
    data_row: Option<u32>,
}

impl Cache {
    pub(crate) fn new(model: CacheModel, timeout: Nanos, rows: Option<RpcRows>) -> Self {
        let row = |name| rows.as_ref().and_then(|rows| rows.row(name));
        Self {
            model,
            timeout,
            names: RefCell::default(),
            promised: RefCell::default(),
            attributes_row: row(CACHED_ATTRIBUTES),
            data_row: row(CACHED_DATA),
            rows,
        }
    }

    /// An answer was still kept, and this number of bytes of data.
    fn count_hit(&self, row: Option<u32>, now: Nanos, bytes: u64) {
        if let (Some(rows), Some(row)) = (&self.rows, row) {
            rows.recorder.record(row, OpTimes::unpaced(now, now), bytes);
        }
    }

    /// Attributes of a name, if they are kept still, and whether they are because of the promise
    /// that holds now.
    pub(crate) fn name(
        &self,
        path: &[u8],
        now: Nanos,
        promise: impl FnOnce() -> DelegationId,
    ) -> Option<(Attributes, bool)> {
        if self.model == CacheModel::None {
            return None;
        }
        let (attributes, until, promised) = self.names.borrow().get(path).copied()?;
        let holds = promised.is_some() && promise() == promised;
        if now >= until && !holds {
            return None;
        }
        self.count_hit(self.attributes_row, now, 0);
        Some((attributes, holds))
    }

    /// The server said what a name has, and promises as much.
    pub(crate) fn store_attributes(
        &self,
        path: &[u8],
        attributes: Attributes,
        now: Nanos,
        promise: impl FnOnce() -> DelegationId,
    ) {
        if self.model == CacheModel::None {
            return;
        }
        let mut names = self.names.borrow_mut();
        if names.len() >= MAX_CACHED_NAMES {
            names.clear();
        }
        names.insert(path.into(), (attributes, now + self.timeout, promise()));
    }

    /// A name has something else, or nothing.
    pub(crate) fn invalidate(&self, path: &[u8]) {
        if self.model != CacheModel::None {
            self.names.borrow_mut().remove(path);
            self.promised.borrow_mut().remove(path);
        }
    }

    /// An open file was changed.
    pub(crate) fn invalidate_other_opens(&self, kept: &Rc<CachedFile>) {
        self.names.borrow_mut().remove(&kept.path);
        let mut promised = self.promised.borrow_mut();
        // What another open keeps knows nothing of it.
        if promised
            .get(&kept.path)
            .is_some_and(|(_, k)| !Rc::ptr_eq(k, kept))
        {
            promised.remove(&kept.path);
        }
    }

    /// What names below a directory have may be something else.
    pub(crate) fn invalidate_below(&self, dir: &[u8]) {
        if self.model != CacheModel::None {
            let below = |p: &[u8]| {
                let rest = p.strip_prefix(dir);
                rest.is_some_and(|r| r.is_empty() || r[0] == b'/')
            };
            self.names.borrow_mut().retain(|p, _| !below(p));
            self.promised.borrow_mut().retain(|p, _| !below(p));
        }
    }

    /// What is kept of a file that is opened: what was kept before, if the server has promised since
    /// then that nobody changes it.
    pub(crate) fn open(
        &self,
        path: &[u8],
        promise: impl FnOnce() -> DelegationId,
    ) -> Option<Rc<CachedFile>> {
        let data = match self.model {
            CacheModel::None => return None,
            CacheModel::Attributes => false,
            CacheModel::OpenToClose => true,
        };
        let promise = promise().filter(|_| data);
        let mut promised = self.promised.borrow_mut();
        if let (Some(number), Some((since, kept))) = (promise, promised.get(path))
            && number == *since
        {
            kept.promised.set(true);
            return Some(kept.clone());
        }
        let kept = Rc::new(CachedFile {
            path: path.into(),
            data,
            promised: Cell::new(false),
            attributes: Cell::new(None),
            ranges: RefCell::default(),
        });
        if let Some(number) = promise {
            if promised.len() >= MAX_CACHED_NAMES {
                promised.clear();
            }
            promised.insert(path.into(), (number, kept.clone()));
        }
        Some(kept)
    }

    /// Attributes of an open file, if they are kept.
    pub(crate) fn open_attributes(
        &self,
        kept: Option<&CachedFile>,
        now: Nanos,
    ) -> Option<Attributes> {
        let attributes = kept.filter(|k| k.data)?.attributes.get()?;
        self.count_hit(self.attributes_row, now, 0);
        Some(attributes)
    }

    /// How many bytes there are in a range of an open file, if all of them are kept.
    pub(crate) fn data(
        &self,
        kept: Option<&CachedFile>,
        (offset, len): (u64, u64),
        now: Nanos,
    ) -> Option<u64> {
        let there = kept.filter(|k| k.data)?.read(offset, len)?;
        self.count_hit(self.data_row, now, there);
        Some(there)
    }
}

/// What is kept of an open file.
pub(crate) struct CachedFile {
    /// Its name.
    pub(crate) path: Box<[u8]>,
    /// Its attributes and data are.
    data: bool,
    /// Some of it is from before the file was opened, by the server's promise.
    promised: Cell<bool>,
    attributes: Cell<Option<Attributes>>,
    /// Data that were read or written: begins of ranges, and their ends. None touch.
    ranges: RefCell<BTreeMap<u64, u64>>,
}

impl CachedFile {
    /// Whether some of it is from before the file was opened.
    pub(crate) fn has_cached_before_open(&self) -> bool {
        self.promised.get()
    }

    /// The server said what the file has.
    pub(crate) fn note_attributes(&self, attributes: Attributes) {
        self.attributes.set(Some(attributes));
    }

    /// How many bytes there are in a range, if all of them are kept.
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

    /// A range is kept from now on.
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

    /// Of `asked` bytes so many were read.
    pub(crate) fn note_read(&self, offset: u64, asked: u64, read: u64) {
        if !self.data {
            return;
        }
        self.add(offset, read);
        if read < asked && read > 0 {
            // The file ends there.
            self.set_size(offset + read);
        }
    }

    /// So many bytes were written.
    pub(crate) fn note_write(&self, offset: u64, len: u64) {
        if !self.data || len == 0 {
            return;
        }
        self.add(offset, len);
        if let Some(known) = self.attributes.get() {
            self.set_size(known.size.max(offset.saturating_add(len)));
        }
    }

    /// The file was cut, or made longer.
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
        // Of an open file nothing is kept in this model.
        let kept = cache.open(b"f", || None).unwrap();
        kept.note_attributes(file(9));
        kept.note_write(0, 9);
        assert_eq!(cache.open_attributes(Some(&kept), 0), None);
        assert_eq!(cache.data(Some(&kept), (0, 9), 0), None);
        let none = Cache::new(CacheModel::None, 100, None);
        none.store_attributes(b"f", file(5), 0, || None);
        assert!(none.name(b"f", 0, || None).is_none() && none.open(b"f", || None).is_none());
    }

    /// What is promised counts as long as the promise does, for names and from one open to the next.
    #[test]
    fn promises_outlast_times_and_closes() {
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
        // They share what they write.
        again.note_write(5, 2);
        cache.invalidate_other_opens(&again);
        assert_eq!(cache.data(Some(&first), (0, 9), 0), Some(7));
        assert_eq!(cache.name(b"f", 1050, || Some(7)), None);
        for promise in [Some(8), None] {
            assert_eq!(cache.data(Some(&open(promise)), (0, 1), 0), None);
        }
        // What another open wrote is in none of them.
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
        /// What is kept is what was read or written and not cut off, as a map of bytes says it.
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
