//! The work directory of a run: guarded, populated, cleaned.
//!
//! Only rank 0 claims, marks and removes the directory. Other ranks look for the directory after rank 0 has claimed it,
//! because NFS clients cache for up to a minute that a file is missing; the other ranks recognise the directory by rank
//! 0's holder. If another run removes the directory after this run has opened the directory and before the claim, this
//! run connects again.

mod claiming;
mod leaving;

pub(crate) use claiming::ClaimError;

use super::claim::{ClaimId, RemoteOwner};
use super::marker::{self, Marker, Tree, TreeState};
use super::removal::{self, Leftovers, RetryWindow};
use super::setup_pool::{SetupError, SetupPool};
use super::{EngineError, Settings, path_in, setup_error};
use plimsoll_measure::Cleanup;
use plimsoll_plan::{FilesetId, Layout, Plan, RelPath, shell_word};
use plimsoll_target::{EntryKind, OpError, SetupSession};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// A guarded directory that this process has claimed.
pub(super) struct GuardedDir {
    guard: RelPath,
    pub(super) marker: Marker,
    claim: ClaimId,
}

/// The work directory of a run, with the guarded directories that this process has claimed.
pub(crate) struct ClaimedWorkDir<'a> {
    pub(super) setup_pool: &'a SetupPool,
    pub(super) plan: &'a Plan,
    guarded: Vec<GuardedDir>,
    /// Guarded directories that have a marker.
    marked: Vec<RelPath>,
    /// Directories that Plimsoll made and that no marker records: guarded directories, and directories above them.
    made: BTreeSet<String>,
    pub(super) populated: Vec<FilesetId>,
    /// Whether another process of the run claimed the directories, and cleans them.
    of_another: bool,
    others: RemoteOwner,
}

impl<'a> ClaimedWorkDir<'a> {
    /// The work directory of a process that did not claim the directory.
    pub(crate) fn claimed_elsewhere(pool: &'a SetupPool, plan: &'a Plan) -> Self {
        Self::new(pool, plan, true)
    }

    fn new(setup_pool: &'a SetupPool, plan: &'a Plan, of_another: bool) -> Self {
        Self {
            setup_pool,
            plan,
            guarded: vec![],
            marked: vec![],
            made: BTreeSet::new(),
            populated: vec![],
            of_another,
            others: RemoteOwner::Refuse,
        }
    }

    /// Whether this process claimed the directories.
    pub(crate) fn is_ours(&self) -> bool {
        !self.of_another
    }

    /// Creates the directories above `guard`; returns the directories that were missing.
    pub(super) fn make_dirs_above(&self, guard: &RelPath) -> Result<Vec<String>, SetupError> {
        let mut made = Vec::new();
        for (at, _) in guard.as_str().match_indices('/') {
            let above = &guard.as_str()[..at];
            if self.make_dir(above)? {
                made.push(above.to_string());
            }
        }
        Ok(made)
    }

    /// Creates a directory; `false` if the directory exists.
    fn make_dir(&self, path: &str) -> Result<bool, SetupError> {
        match self.setup_pool.at(path, async |s| s.make_dir().await) {
            Ok(()) => Ok(true),
            Err(OpError(Errno::EXIST)) => Ok(false),
            Err(e) => Err(SetupError::failed("make directory", path.as_bytes(), e)),
        }
    }

    pub(super) fn guard_of(&mut self, root: &RelPath) -> Option<&mut GuardedDir> {
        let above = |g: &RelPath| {
            g.as_str().is_empty()
                || root == g
                || root.as_str().starts_with(&format!("{}/", g.as_str()))
        };
        self.guarded.iter_mut().find(|g| above(&g.guard))
    }

    /// Records a tree in the marker; with `None`, removes the tree's record.
    pub(super) fn note_tree(
        &mut self,
        root: &RelPath,
        tree: Option<Tree>,
    ) -> Result<(), SetupError> {
        let pool = self.setup_pool;
        // A directory that could not be claimed has no marker.
        let Some(guarded) = self.guard_of(root) else {
            return Ok(());
        };
        guarded.marker.trees.retain(|t| t.root != *root);
        guarded.marker.trees.extend(tree);
        marker::write(pool, &guarded.guard, &guarded.marker)
    }

    /// Records the state of a fileset's tree in the marker.
    pub(super) fn note(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        state: TreeState,
    ) -> Result<(), SetupError> {
        let root = self.plan.root_of(id);
        let tree = Tree::of_layout(&root, layout, state);
        self.note_tree(&root, Some(tree))
    }

    /// The record of the tree with the root `root` in the marker of its guarded directory; `None` without a record.
    pub(super) fn tree_at(&mut self, root: &RelPath) -> Option<&mut Tree> {
        let mut trees = self.guard_of(root)?.marker.trees.iter_mut();
        trees.find(|t| t.root == *root)
    }

    /// Refuses a root with foreign files, because only a tree that the marker lists may be replaced.
    pub(super) fn claim_root(&mut self, id: FilesetId) -> Result<(), EngineError> {
        let root = self.plan.root_of(id);
        if self.tree_at(&root).is_some() {
            return Ok(());
        }
        marker::check_vacant(self.setup_pool, self.plan, &root).map_err(EngineError::refused)
    }

    /// Removes the tree of an earlier run at `root`, which may be the guarded directory with the marker in it.
    pub(super) fn clear_root(
        &mut self,
        root: &RelPath,
        tell: &mut dyn FnMut(),
    ) -> Result<(), SetupError> {
        let mut patience = RetryWindow::default();
        let left = removal::remove(self.setup_pool, root.as_str(), None, &mut patience, tell);
        let foreign = left
            .foreign
            .iter()
            .find(|p| !marker::is_own_path(root.as_str(), p) && !p.ends_with(b"/lost+found"));
        let exists = OpError(Errno::EXIST);
        match foreign {
            Some(path) => Err(SetupError::failed("make a tree beside", path, exists)),
            None => left.into_refused().0.into_iter().next().map_or(Ok(()), Err),
        }
    }

    /// Records in the marker that workers are about to change the trees.
    pub(crate) fn mark_in_use(&mut self) -> Result<(), EngineError> {
        for id in self.populated.clone() {
            let changes = self.plan.changes_tree(id) && !self.plan.fileset(id).grows;
            let root = self.plan.root_of(id);
            if let Some(tree) = self.tree_at(&root).filter(|_| changes) {
                let state = TreeState::Used;
                let tree = Tree {
                    state,
                    ..tree.clone()
                };
                let noted = self.note_tree(&root, Some(tree));
                noted.map_err(|e| self.failed(e))?;
            }
        }
        Ok(())
    }

    /// Continues with `pool`, which unlike the run's pool is not stopped with the run.
    pub(crate) fn work_with(&mut self, pool: &'a SetupPool) {
        self.setup_pool = pool;
    }

    /// Releases the guarded directories. Unless `keep`, removes exactly the files and directories that the run created.
    /// Returns the remaining entries.
    pub(crate) fn release(&mut self, keep: bool) -> Leftovers {
        if !keep {
            return self.clean();
        }
        let mut left = Leftovers::default();
        let mut patience = RetryWindow::default();
        for GuardedDir { guard, claim, .. } in &self.guarded {
            left.note(self.release_patiently(guard, claim, &mut patience));
        }
        left
    }

    /// Removes the trees of this run, and leaves the claimed directories.
    fn clean(&mut self) -> Leftovers {
        let populated = std::mem::take(&mut self.populated);
        let roots = populated.into_iter().map(|id| self.plan.root_of(id));
        let pattern = self.plan.pattern().map(|p| p.root.clone());
        let mut roots: Vec<RelPath> = roots.chain(pattern).collect();
        roots.retain(|root| self.guard_of(root).is_some());
        self.clean_roots(roots)
    }

    /// Removes every tree that the markers list.
    pub(crate) fn clean_listed(&mut self) -> Leftovers {
        let trees = self.guarded.iter().flat_map(|g| &g.marker.trees);
        let roots = trees.map(|t| t.root.clone()).collect();
        self.clean_roots(roots)
    }

    fn clean_roots(&mut self, roots: Vec<RelPath>) -> Leftovers {
        let (mut left, mut patience) = (Leftovers::default(), RetryWindow::default());
        for root in roots {
            if !left.is_gone {
                left.add(self.remove_tree(&root, &mut patience));
            }
        }
        for guarded in std::mem::take(&mut self.guarded).into_iter().rev() {
            if !left.is_gone {
                let done = self.leave(guarded, &mut patience, &mut left);
                left.note(done);
            }
        }
        // Directories in `made` have no marker. Each directory is removed before the directory above; a directory with
        // entries stays.
        for dir in std::mem::take(&mut self.made).into_iter().rev() {
            if left.is_clean() {
                left.note(self.remove_if_empty(&dir, &mut patience));
            } else if !left.is_gone {
                let stays = OpError(Errno::NOTEMPTY);
                let path = dir.as_bytes();
                left.refused(SetupError::failed("remove directory", path, stays));
            }
        }
        left
    }

    /// Removes a tree. The marker lists the tree until the removal is complete.
    fn remove_tree(&mut self, root: &RelPath, patience: &mut RetryWindow) -> Leftovers {
        let names = self.tree_at(root).and_then(|tree| tree.names.clone());
        let names = names.as_ref();
        let mut left = removal::remove(self.setup_pool, root.as_str(), names, patience, || ());
        left.foreign
            .retain(|p| !marker::is_own_path(root.as_str(), p));
        if left.is_clean() {
            // The marker still lists the tree, so that after a crash no remains are taken for a user's files.
            let removed = self.remove_empty_above(root, patience);
            left.note(removed.and_then(|()| self.forget_tree(root, patience)));
        }
        left
    }

    /// Removes the record of a removed tree. A server may free the space of removed files later than their names.
    fn forget_tree(
        &mut self,
        root: &RelPath,
        patience: &mut RetryWindow,
    ) -> Result<(), SetupError> {
        let mut attempt = 0;
        loop {
            match self.note_tree(root, None) {
                Err(e) if e.is_lack_of_room() && patience.wait(attempt) => attempt += 1,
                done => return done,
            }
        }
    }

    /// Removes the directories between a guarded directory and a tree's root, all of which Plimsoll created.
    fn remove_empty_above(
        &mut self,
        root: &RelPath,
        patience: &mut RetryWindow,
    ) -> Result<(), SetupError> {
        let Some(guard) = self.guard_of(root).map(|g| g.guard.as_str().len()) else {
            return Ok(());
        };
        let mut path = root.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            if above.len() <= guard {
                break;
            }
            self.remove_if_empty(above, patience)?;
            path = above;
        }
        Ok(())
    }

    fn remove_dir(&self, path: &str) -> Result<(), OpError> {
        let remove = async |s: &mut dyn SetupSession| s.remove(EntryKind::Dir).await;
        self.setup_pool.at(path, remove)
    }

    fn remove_file(&self, path: &str) -> Result<(), SetupError> {
        let remove = async |s: &mut dyn SetupSession| s.remove(EntryKind::File).await;
        match self.setup_pool.at(path, remove) {
            Ok(()) | Err(OpError(Errno::NOENT)) => Ok(()),
            Err(e) => Err(SetupError::failed("remove", path.as_bytes(), e)),
        }
    }

    /// Sentences on the entries that a removal left. With `settings`, the last sentence names the commands that remove
    /// the entries later.
    pub(crate) fn cleanup(&self, left: Leftovers, settings: Option<&Settings>) -> Cleanup {
        let text = |p: Vec<u8>| String::from_utf8_lossy(&p).into_owned();
        let foreign = left.foreign.clone().into_iter().map(text).collect();
        let (refused, more) = left.into_refused();
        let mut unremoved: Vec<String> = refused
            .into_iter()
            .map(|e| match e {
                SetupError::Stopped => "an interrupt ended the removal of the files".into(),
                e => setup_error(self.setup_pool, self.plan, e).to_string(),
            })
            .collect();
        if more > 0 {
            unremoved.push(format!("{more} more could not be removed"));
        }
        if let Some(settings) = settings.filter(|_| !unremoved.is_empty()) {
            unremoved.extend(self.cleanup_hint(settings));
        }
        Cleanup { foreign, unremoved }
    }

    /// A sentence with the `plimsoll clean` commands that remove the remaining entries; `None` if no directory has a
    /// marker.
    pub(crate) fn cleanup_hint(&self, settings: &Settings) -> Option<String> {
        let commands = clean_commands(self.plan, &self.marked, &settings.target)?;
        Some(format!(
            "the clean-up is not complete: {commands} removes what is left"
        ))
    }

    pub(crate) fn failed(&self, e: SetupError) -> EngineError {
        setup_error(self.setup_pool, self.plan, e)
    }
}

/// The commands that clean guarded directories; `None` if `guards` is empty.
pub(crate) fn clean_commands(plan: &Plan, guards: &[RelPath], target: &str) -> Option<String> {
    let target = match target {
        plimsoll_target::DEFAULT_TARGET => String::new(),
        url => format!(" --target {}", shell_word(url)),
    };
    let commands = guards
        .iter()
        .map(|guard| path_in(plan, guard.as_str()))
        .map(|dir| format!("`plimsoll clean{target} {}`", shell_word(&dir)));
    let commands: Vec<String> = commands.collect();
    (!commands.is_empty()).then(|| commands.join(" and "))
}
