//! Filesets during a run: which files exist, which are busy, and which one is next.

pub(crate) mod bits;
mod entries;
mod waits;

pub use entries::BlockCursor;
pub(crate) use entries::{Choice, Existence, RankPart};
pub(crate) use waits::{EntryPool, Want};

use plimsoll_plan::{DirId, FileId, FilesetId, Layout};
use plimsoll_target::{FilesetEntry, Session};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// A fileset in use.
///
/// Sixteen bytes per file with the layout: four for the directory, eight for the size (none if
/// all are of one size), four for the open count, and two bits.
pub struct FilesetState {
    /// Index in the Plan.
    pub id: FilesetId,
    /// The tree.
    pub layout: Arc<Layout>,
    pub(crate) files: EntryPool,
    pub(crate) leaf_dirs: EntryPool,
    open: Box<[AtomicU32]>,
    next_dir: AtomicU32,
}

impl FilesetState {
    /// The state at the start of a run.
    #[must_use]
    pub fn new(id: FilesetId, layout: Arc<Layout>) -> Self {
        Self::part(id, layout, RankPart::ALL_ENTRIES)
    }

    /// The state of a rank's part of a fileset; the other entries are never chosen.
    pub(crate) fn part(id: FilesetId, layout: Arc<Layout>, part: RankPart) -> Self {
        let open = (0..layout.files()).map(|_| AtomicU32::new(0)).collect();
        Self {
            id,
            files: EntryPool::new(layout.files(), layout.initial_files(), part),
            leaf_dirs: EntryPool::new(layout.leaf_dirs(), layout.initial_leaf_dirs(), part),
            layout,
            open,
            next_dir: AtomicU32::new(0),
        }
    }

    /// Chooses the next existing file and releases it at once, for a benchmark of choosing. `None`
    /// if no file is idle.
    #[must_use]
    pub fn touch_next(&self, cursor: &mut BlockCursor) -> Option<FileId> {
        match self.files.choose(Existence::Existing, cursor) {
            Choice::Taken(i) => {
                self.files.release(i, Existence::Existing);
                Some(FileId(i))
            }
            _ => None,
        }
    }

    /// The number of existing files.
    #[must_use]
    pub fn existing_count(&self) -> u64 {
        self.files.existing_count()
    }

    /// Passes the file's path to the session for its next operation.
    #[inline(always)]
    pub(crate) fn locate(&self, file: FileId, session: &mut impl Session) {
        self.locate_entry(FilesetEntry::File(file), session);
    }

    /// Passes the name of an entry to the session for its next operation.
    #[inline(always)]
    pub(crate) fn locate_entry(&self, entry: FilesetEntry, session: &mut impl Session) {
        session.locate_entry(self.id, &self.layout, entry);
    }

    /// A directory of the tree: the one of this number, or the next in round-robin order.
    pub(crate) fn pick_dir(&self, index: Option<u64>) -> DirId {
        let dirs = self.layout.dirs();
        let number = match index {
            Some(i) => (i % u64::from(dirs)) as u32,
            None => self.next_dir.fetch_add(1, Relaxed) % dirs,
        };
        DirId(number)
    }

    pub(crate) fn inc_open(&self, file: FileId) {
        let before = self.open[file.0 as usize].fetch_add(1, AcqRel);
        debug_assert!(before < u32::MAX, "an open count wraps");
    }

    pub(crate) fn dec_open(&self, file: FileId) {
        let before = self.open[file.0 as usize].fetch_sub(1, AcqRel);
        debug_assert!(before > 0, "a file is closed that is not open");
    }

    pub(crate) fn open_count(&self, file: FileId) -> u32 {
        self.open[file.0 as usize].load(Acquire)
    }

    /// Ends the work on a file: it is idle again.
    #[inline]
    pub(crate) fn release(&self, file: FileId, now: Existence) {
        self.files.release(file.0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{Access, EntriesPerDir, Fileset, Plan, RelPath, Value};

    /// More workers than 16 bits count may have one file open; a delete has to see them.
    #[test]
    fn a_file_may_be_open_more_often_than_16_bits_count() {
        let fileset = Fileset {
            name: "set".into(),
            path: RelPath::default(),
            entries: 1,
            leaf_dirs: 0,
            width: EntriesPerDir {
                mean: 1.0,
                gamma_shape: None,
            },
            depth: None,
            size: Value::Const(0),
            prealloc_percent: 100,
            parallel_prealloc: false,
            reuse: false,
            trust_tree: false,
            grows: false,
            letters: None,
            access: Access::ReadWrite,
            cached: None,
            location: None,
        };
        let plan = Plan {
            filesets: vec![fileset],
            ..Plan::empty("test")
        };
        let layout = Layout::new(&plan, FilesetId(0)).unwrap();
        let set = FilesetState::new(FilesetId(0), Arc::new(layout));
        for _ in 0..1 << 16 {
            set.inc_open(FileId(0));
        }
        assert_eq!(set.open_count(FileId(0)), 1 << 16);
        for _ in 0..1 << 16 {
            set.dec_open(FileId(0));
        }
        assert_eq!(set.open_count(FileId(0)), 0);
    }
}
