//! Trees that grow from load point to load point: missing files are created, files that a load point changed are
//! repaired, and all other files are left unchanged.
//!
//! The marker has the state `growing` and the number of leading files that were created. A check of every file in use
//! finds files that a load point changed or that a killed process left incomplete.

use super::marker::{Tree, TreeState};
use super::setup_pool::{BulkTask, SetupError};
use super::tree;
use super::work_dir::ClaimedWorkDir;
use plimsoll_plan::{FilesetId, Layout};
use plimsoll_target::{EntryKind, OpError, SetupSession};
use rustix::io::Errno;

impl ClaimedWorkDir<'_> {
    /// Number of leading files that earlier runs created in a growing tree; `None` if the tree is not this layout's
    /// growing tree.
    pub(super) fn files_made(&mut self, id: FilesetId, layout: &Layout) -> Option<u64> {
        let root = self.plan.root_of(id);
        self.tree_at(&root)?.files_made(layout)
    }

    /// Creates the missing directories of a growing tree, and restores the tree's leaf directories. Removes the
    /// existing tree first if the run is verified, or if the marker does not record the tree as growing.
    pub(super) fn begin_growth(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        tell: &mut dyn FnMut(),
    ) -> Result<(), SetupError> {
        let root = self.plan.root_of(id);
        if self.plan.options.verify || self.files_made(id, layout).is_none() {
            self.note(id, layout, TreeState::Making)?;
            self.clear_root(&root, tell)?;
        }
        self.make_dirs_above(&root)?;
        tree::make_dirs(self.setup_pool, layout, &mut *tell)?;
        if self.files_made(id, layout).is_none() {
            self.note_growth(id, layout, 0)?;
        }
        let used = self.plan.leaf_dirs_used(id);
        let first = used.start;
        let repair = RepairLeafDirs { layout, first };
        self.setup_pool.all(used.end - first, &repair, tell)
    }

    /// Records in the marker that at least the first `made` files of a growing tree exist; the recorded number never
    /// decreases.
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
            made: Some(made),
            ..Tree::of_layout(&root, layout, TreeState::Growing)
        };
        self.note_tree(&root, Some(tree))
    }
}

struct RepairLeafDirs<'a> {
    layout: &'a Layout,
    first: u64,
}

impl BulkTask for RepairLeafDirs<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let leaf = (self.first + index) as u32;
        session.locate(|p| self.layout.push_leaf_dir(leaf, p));
        let done = match self.layout.starts_with_leaf_dir(leaf) {
            true => tree::ensure_dir(session).await,
            false => match session.remove(EntryKind::Dir).await {
                Err(OpError(Errno::NOENT)) => Ok(()),
                done => done,
            },
        };
        done.map_err(|e| {
            SetupError::failed_at(
                "make or remove directory",
                |p| self.layout.push_leaf_dir(leaf, p),
                e,
            )
        })
    }
}
