//! Filesets during a run: which files exist, which are busy, and which one is next.

pub(crate) mod bits;
mod entries;
mod open_counts;
mod waits;

pub use entries::BlockCursor;
pub(crate) use entries::{Choice, Existence, RankPart};
pub(crate) use waits::{EntryPool, Want};

use open_counts::OpenCounts;
use plimsoll_plan::{DirId, FileId, FilesetId, Layout};
use plimsoll_target::{FilesetEntry, Session};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

/// A fileset in use.
///
/// With the layout, a file of a tree that is a table takes twelve bytes: four for its directory and eight
/// for its size (none if all are of one size); a file of a tree that is a formula takes none. Two bits
/// per file say whether it is idle and exists, and four bytes count how often it is open once a file of
/// its chunk was opened. Workers of mixes keep books of their own, so that a fileset that only they work
/// on has neither.
pub struct FilesetState {
    /// Index in the Plan.
    pub id: FilesetId,
    /// The tree.
    pub layout: Arc<Layout>,
    pub(crate) files: EntryPool,
    pub(crate) leaf_dirs: EntryPool,
    open: OpenCounts,
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
        Self {
            id,
            files: EntryPool::new(layout.files(), |at| layout.initial_files(at), part),
            leaf_dirs: EntryPool::new(layout.leaf_dirs(), |at| layout.initial_leaf_dirs(at), part),
            open: OpenCounts::new(layout.files()),
            layout,
            next_dir: AtomicU32::new(0),
        }
    }

    /// The state of a fileset whose entries are never chosen here, since only mixes work on it: it has
    /// nothing but the layout.
    pub(crate) fn without_entries(id: FilesetId, layout: Arc<Layout>) -> Self {
        let nothing = || EntryPool::new(0, |_| 0, RankPart::ALL_ENTRIES);
        Self {
            id,
            files: nothing(),
            leaf_dirs: nothing(),
            open: OpenCounts::new(0),
            layout,
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
        self.open.increment(file.0);
    }

    pub(crate) fn dec_open(&self, file: FileId) {
        self.open.decrement(file.0);
    }

    pub(crate) fn open_count(&self, file: FileId) -> u32 {
        self.open.get(file.0)
    }

    /// Ends the work on a file: it is idle again.
    #[inline]
    pub(crate) fn release(&self, file: FileId, now: Existence) {
        self.files.release(file.0, now);
    }
}
