//! Trees that grow from load point to load point: what is missing is made, what a point changed
//! is put right, and the rest is left as it is.

use super::marker::{self, Tree, TreeState};
use super::setup_pool::{BulkTask, SetupError, SetupPool};
use super::tree::{self, Progress, content_of, fill, path_of};
use super::work_dir::ClaimedWorkDir;
use plimsoll_plan::{FileId, FilesetId, Layout, Stream};
use plimsoll_target::{EntryKind, OpError, OpenHow, OpenMode, Session, Target};
use rustix::io::Errno;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

impl<T: Target> ClaimedWorkDir<'_, T> {
    /// How many files, from the first, an earlier run laid out in a tree that grows.
    pub(super) fn files_made(&mut self, id: FilesetId, layout: &Layout) -> Option<u64> {
        let root = self.plan.root_of(id);
        let known = self.guard_of(&root)?;
        let tree = known.marker.trees.iter().find(|t| t.root == root)?;
        tree.files_made(layout)
    }

    /// Makes the directories of a tree that grows, as far as they are missing; its spare ones as
    /// the run begins with them.
    pub(super) fn begin_growth(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        tell: &mut dyn FnMut(),
    ) -> Result<(), SetupError> {
        let root = self.plan.root_of(id);
        if self.files_made(id, layout).is_none() {
            self.note(id, layout, TreeState::Making)?;
            self.clear_root(&root, tell)?;
        }
        self.make_dirs_above(&root)?;
        tree::make_dirs(self.setup_pool, layout, true, &mut *tell)?;
        if self.files_made(id, layout).is_none() {
            self.note_growth(id, layout, 0)?;
        }
        let used = self.plan.leaf_dirs_used(id);
        let mend = RepairLeafDirs {
            layout,
            first: used.start,
        };
        self.setup_pool
            .all(used.end - used.start, &mend, &mut *tell)
    }

    /// Notes in the marker how far a tree has grown.
    pub(super) fn note_growth(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        made: u64,
    ) -> Result<(), SetupError> {
        let made = self
            .files_made(id, layout)
            .map_or(made, |old| old.max(made));
        let root = self.plan.root_of(id);
        let tree = Tree {
            root: root.clone(),
            fingerprint: marker::fingerprint_hex(layout),
            state: TreeState::Growing,
            made: Some(made),
            names: None,
            shape: None,
        };
        self.note_tree(&root, Some(tree))
    }
}

/// Puts right the files of a tree whose numbers are in `part`; the directories are there.
pub(super) fn repair_files<T: Target>(
    pool: &SetupPool<T>,
    layout: &Layout,
    part: Range<u64>,
    progress: &Progress,
    tell: impl FnMut(),
) -> Result<(), SetupError> {
    let files = RepairFiles {
        layout,
        content: content_of(pool, layout),
        progress,
        first: part.start,
    };
    pool.all(part.end - part.start, &files, tell)
}

struct RepairFiles<'a> {
    layout: &'a Layout,
    /// What the bytes of the files follow from.
    content: Stream,
    /// What was made or put right.
    progress: &'a Progress,
    first: u64,
}

impl RepairFiles<'_> {
    async fn repair<S: Session>(&self, session: &mut S, file: FileId) -> Result<(), OpError> {
        session.locate(|p| self.layout.push_file(file, p));
        let found = match session.stat().await {
            Err(OpError(Errno::NOENT)) => None,
            other => Some(other?),
        };
        let want = self
            .layout
            .starts_with(file)
            .then(|| self.layout.size(file));
        let (size, from) = match (want, found) {
            (_, Some(found)) if found.kind != EntryKind::File => {
                return Err(OpError(Errno::EXIST));
            }
            (None, None) => return Ok(()),
            (Some(size), Some(found)) if found.size == size => return Ok(()),
            (None, Some(_)) => {
                self.progress.files.fetch_add(1, Relaxed);
                return session.remove(EntryKind::File).await;
            }
            (Some(size), found) => (size, found.map_or(0, |f| f.size)),
        };
        self.progress.files.fetch_add(1, Relaxed);
        let how = OpenHow {
            create: found.is_none(),
            ..OpenHow::plain(OpenMode::Write)
        };
        let handle = session.open(how).await?;
        // A file that grows twice does not grow by the same bytes.
        let content = self.content.branch(u64::from(file.0));
        session.begin_content(match from {
            0 => content,
            from => content.branch(from),
        });
        let done = match from > size {
            true => session.truncate(&handle, size).await,
            false => fill(session, &handle, from..size, self.progress).await,
        };
        session.close(handle).await.and(done)
    }
}

impl<S: Session> BulkTask<S> for RepairFiles<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        let file = FileId((self.first + index) as u32);
        self.repair(session, file).await.map_err(|e| {
            let path = path_of(|p| self.layout.push_file(file, p));
            SetupError::failed("make file", &path, e)
        })
    }
}

struct RepairLeafDirs<'a> {
    layout: &'a Layout,
    first: u64,
}

impl<S: Session> BulkTask<S> for RepairLeafDirs<'_> {
    async fn item(&self, session: &mut S, index: u64) -> Result<(), SetupError> {
        let leaf = (self.first + index) as u32;
        session.locate(|p| self.layout.push_leaf_dir(leaf, p));
        let done = match self.layout.starts_with_leaf_dir(leaf) {
            true => session.make_dir().await,
            false => session.remove(EntryKind::Dir).await,
        };
        match done {
            Ok(()) | Err(OpError(Errno::EXIST | Errno::NOENT)) => Ok(()),
            Err(e) => {
                let path = path_of(|p| self.layout.push_leaf_dir(leaf, p));
                Err(SetupError::failed("make or remove directory", &path, e))
            }
        }
    }
}
