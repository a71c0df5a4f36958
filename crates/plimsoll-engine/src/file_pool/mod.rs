//! Filesets during a run: the files that exist, the files that are busy, and the file that is next.
//!
//! A worker that finds no idle entry of the wanted kind waits as long as any entry is busy, because a busy entry may
//! become one of the wanted kind. The fileset is exhausted when no entry is busy; all waiters for the kind are then
//! informed. A single worker visits entries one by one.

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
/// The layout takes twelve bytes for a file of a tree that is a table: four for the file's directory and eight for the
/// file's size (none if all files have the same size). A file of a tree that is a formula takes no memory in the
/// layout. Two bits per file record whether the file is idle and exists. An open count of four bytes per file is
/// allocated when a file of the same chunk is first opened. Workers of mixes keep their own records, so a fileset of
/// mixes alone has neither bits nor counts.
pub struct FilesetState {
    /// Index of the fileset in the Plan.
    pub id: FilesetId,
    /// Tree of the fileset.
    pub layout: Arc<Layout>,
    pub(crate) files: EntryPool,
    pub(crate) leaf_dirs: EntryPool,
    open: OpenCounts,
    next_dir: AtomicU32,
}

impl FilesetState {
    /// The state at the start of a run with one rank: every entry of `layout` is idle.
    #[must_use]
    pub fn new(id: FilesetId, layout: Arc<Layout>) -> Self {
        Self::part(id, layout, RankPart::ALL_ENTRIES)
    }

    /// The state of a rank's part of a fileset; the rank never chooses entries of other parts.
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

    /// The state of a fileset that only mixes and jobs use: a layout without entries, because mixes and jobs choose
    /// files by themselves.
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

    /// Chooses the next existing file and releases the file at once, for a benchmark of choosing. `None` if no file is
    /// idle.
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

    /// Number of files that exist on the target now, idle or busy.
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

    /// A directory of the tree: directory `index` modulo the number of directories, or the next directory in
    /// round-robin order.
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

    /// Ends the work on a file, which becomes idle with the existence `now`, and serves the waiters.
    #[inline]
    pub(crate) fn release(&self, file: FileId, now: Existence) {
        self.files.release(file.0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{EntriesPerDir, Fileset, Plan, Value};

    /// A tree of 60 files, about half of which exist, in directories of four entries.
    fn layout() -> Arc<Layout> {
        let fileset = Fileset {
            prealloc_percent: 50,
            leaf_dirs: 8,
            width: EntriesPerDir {
                mean: 4.0,
                gamma_shape: None,
            },
            ..Fileset::new("f", 60, Value::Const(1))
        };
        let plan = Plan {
            filesets: vec![fileset],
            ..Plan::empty("test")
        };
        Arc::new(Layout::new(&plan, FilesetId(0)).unwrap())
    }

    fn exists(layout: &Layout, file: u32) -> bool {
        layout.initial_files(file / 64) >> (file % 64) & 1 == 1
    }

    #[test]
    fn existing_files_are_touched_in_their_order_by_every_rank() {
        let layout = layout();
        for (rank, ranks) in [(0, 1), (0, 2), (1, 2)] {
            let part = RankPart { rank, ranks };
            let state = FilesetState::part(FilesetId(0), layout.clone(), part);
            let ours = (0..60).filter(|f| f % ranks == rank && exists(&layout, *f));
            let ours: Vec<u32> = ours.collect();
            assert_eq!(state.existing_count(), ours.len() as u64);
            let mut cursor = BlockCursor::default();
            for file in ours.iter().chain(&ours) {
                assert_eq!(state.touch_next(&mut cursor), Some(FileId(*file)));
            }
            // A choice skips a busy file, and finds a deleted file no more.
            assert_eq!(state.files.claim(ours[0]), Choice::Taken(ours[0]));
            assert_eq!(state.touch_next(&mut cursor), Some(FileId(ours[1])));
            state.files.set_existence(Existence::Missing);
            state.release(FileId(ours[0]), Existence::Missing);
            assert_eq!(state.existing_count(), ours.len() as u64 - 1);
            assert_eq!(state.files.claim(ours[0]), Choice::None);
            assert!(state.files.are_idle());
        }
        let whole = FilesetState::new(FilesetId(0), layout.clone());
        let existing = (0..60).filter(|f| exists(&layout, *f)).count();
        assert_eq!(whole.existing_count(), existing as u64);
    }

    #[test]
    fn a_fileset_without_entries_has_only_its_tree() {
        let state = FilesetState::without_entries(FilesetId(0), layout());
        assert_eq!(state.existing_count(), 0);
        assert_eq!(state.touch_next(&mut BlockCursor::default()), None);
        assert_eq!((state.files.len(), state.leaf_dirs.len()), (0, 0));
        assert_eq!(state.pick_dir(Some(1)), DirId(1));
    }

    #[test]
    fn directories_are_listed_by_number_or_in_turn() {
        let state = FilesetState::new(FilesetId(0), layout());
        let dirs = state.layout.dirs();
        assert!(dirs > 3, "{dirs}");
        for number in [0, 1, 3, dirs - 1] {
            assert_eq!(state.pick_dir(Some(number.into())), DirId(number));
            let around = u64::from(dirs) * 1_000_000_007 + u64::from(number);
            assert_eq!(state.pick_dir(Some(around)), DirId(number));
        }
        for round in 0..2 * dirs {
            assert_eq!(state.pick_dir(None), DirId(round % dirs));
        }
        assert_eq!(state.leaf_dirs.len(), 8);
    }

    #[test]
    fn files_are_counted_as_often_as_they_are_open() {
        let state = FilesetState::new(FilesetId(0), layout());
        for _ in 0..3 {
            state.inc_open(FileId(7));
        }
        state.inc_open(FileId(59));
        state.dec_open(FileId(7));
        let open = [7, 59, 8].map(|f| state.open_count(FileId(f)));
        assert_eq!(open, [2, 1, 0]);
    }
}
