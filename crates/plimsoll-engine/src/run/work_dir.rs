//! The work directory through a run: guarded, populated, cleaned.

use super::marker::{self, GuardState, Marker, OwnerProcess, RemoteOwner, Tree, TreeState};
use super::removal::{self, Leftovers, RetryWindow};
use super::setup_pool::{SetupError, SetupPool};
use super::{EngineError, Settings, path_in, setup_error};
use crate::outcome::Cleanup;
use plimsoll_plan::{FilesetId, Plan, RelPath};
use plimsoll_target::{EntryKind, OpError, Session, Target};
use rustix::io::Errno;

/// A guarded directory and its marker.
pub(super) struct GuardedDir {
    guard: RelPath,
    pub(super) marker: Marker,
}

/// The work directory of a run.
pub(crate) struct ClaimedWorkDir<'a, T: Target> {
    pub(super) setup_pool: &'a SetupPool<T>,
    pub(super) plan: &'a Plan,
    guarded: Vec<GuardedDir>,
    /// Guarded directories that have a marker.
    marked: Vec<RelPath>,
    /// Directories above the guarded ones that did not exist, outermost first.
    made_above: Vec<String>,
    pub(super) populated: Vec<FilesetId>,
    /// Another process of the run claimed the directories, and cleans them.
    of_another: bool,
}

impl<'a, T: Target> ClaimedWorkDir<'a, T> {
    /// The work directory as a process sees it that did not claim it.
    pub(crate) fn claimed_elsewhere(pool: &'a SetupPool<T>, plan: &'a Plan) -> Self {
        Self {
            setup_pool: pool,
            plan,
            guarded: vec![],
            marked: vec![],
            made_above: vec![],
            populated: vec![],
            of_another: true,
        }
    }

    /// Whether this process claimed the directories.
    pub(crate) fn is_ours(&self) -> bool {
        !self.of_another
    }

    /// Checks the guarded directories and puts markers into them.
    pub(crate) fn claim(
        pool: &'a SetupPool<T>,
        plan: &'a Plan,
        others: RemoteOwner,
    ) -> Result<Self, EngineError> {
        let mut place = Self {
            setup_pool: pool,
            plan,
            guarded: vec![],
            marked: vec![],
            made_above: vec![],
            populated: vec![],
            of_another: false,
        };
        if !pool.target.keeps_files() {
            return Ok(place);
        }
        // All are looked at before the first is touched.
        let mut found = Vec::new();
        for guard in &plan.work_dir.guards {
            let look = marker::look(pool, plan, guard, others).map_err(EngineError::refused)?;
            if let Some(why) = marker::pattern_refusal(plan, &look) {
                return Err(EngineError::Refused(why));
            }
            found.push((guard, look));
        }
        for (guard, found) in found {
            if let Err(e) = place.take(guard, found) {
                // What was made so far goes again.
                place.clean();
                return Err(place.failed(e));
            }
        }
        Ok(place)
    }

    fn take(&mut self, guard: &RelPath, found: GuardState) -> Result<(), SetupError> {
        let mut marker = Marker {
            plimsoll: 1,
            workload: self.plan.name.clone(),
            seed: self.plan.seed,
            guard: guard.clone(),
            made_dir: guard.as_str().is_empty() && self.setup_pool.target.created_work_dir(),
            used_by: Some(OwnerProcess::current()),
            trees: vec![],
        };
        match found {
            GuardState::Nothing => {
                self.made_above.extend(self.make_dirs_above(guard)?);
                marker.made_dir |= self.make_dir(guard.as_str())?;
            }
            GuardState::Empty => {}
            GuardState::Marked(old) => {
                marker.made_dir |= old.made_dir;
                marker.trees = old.trees;
            }
        }
        if let Some(pattern) = self.plan.pattern() {
            marker.trees = vec![Tree::of_pattern(pattern)];
        }
        self.marked.push(guard.clone());
        marker::write(self.setup_pool, guard, &marker)?;
        self.guarded.push(GuardedDir {
            guard: guard.clone(),
            marker,
        });
        Ok(())
    }

    /// Makes the directories that lead to a guarded one; returns those that were missing.
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

    /// Makes a directory; `false` if it was there.
    fn make_dir(&self, path: &str) -> Result<bool, SetupError> {
        let made = self.setup_pool.one(async |session| {
            session.locate(|p| p.extend_from_slice(path.as_bytes()));
            session.make_dir().await
        });
        match made.and_then(|r| r) {
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

    /// Sets what the marker says of a tree; `None` takes it out.
    pub(super) fn note_tree(
        &mut self,
        root: &RelPath,
        tree: Option<Tree>,
    ) -> Result<(), SetupError> {
        let pool = self.setup_pool;
        let Some(guarded) = self.guard_of(root) else {
            return Ok(());
        };
        guarded.marker.trees.retain(|t| t.root != *root);
        guarded.marker.trees.extend(tree);
        marker::write(pool, &guarded.guard, &guarded.marker)
    }

    /// Refuses a root that somebody else's files lie in: only a tree that the marker lists is
    /// Plimsoll's to replace.
    pub(super) fn claim_root(&mut self, id: FilesetId) -> Result<(), EngineError> {
        let root = self.plan.root_of(id);
        let listed = |g: &mut GuardedDir| g.marker.trees.iter().any(|t| t.root == root);
        if self.guard_of(&root).is_some_and(listed) {
            return Ok(());
        }
        marker::check_vacant(self.setup_pool, self.plan, &root).map_err(EngineError::refused)
    }

    /// Removes what an earlier run left at the root of a tree. The guarded directory may be the
    /// root itself, with the marker in it.
    pub(super) fn clear_root(
        &mut self,
        root: &RelPath,
        tell: &mut dyn FnMut(),
    ) -> Result<(), SetupError> {
        let mut patience = RetryWindow::default();
        let left = removal::remove(
            self.setup_pool,
            root.as_str(),
            None,
            &mut patience,
            &mut *tell,
        );
        let marker = marker::marker_path(root);
        let foreign = left
            .foreign
            .iter()
            .find(|p| **p != marker.as_bytes() && !p.ends_with(b"/lost+found"));
        match foreign {
            Some(path) => Err(SetupError::failed(
                "make a tree beside",
                path,
                OpError(Errno::EXIST),
            )),
            None => left.into_refused().0.into_iter().next().map_or(Ok(()), Err),
        }
    }

    /// Workers are about to change these trees.
    pub(crate) fn mark_in_use(&mut self) -> Result<(), EngineError> {
        let changed: Vec<FilesetId> = self
            .populated
            .iter()
            .copied()
            .filter(|id| self.plan.changes_tree(*id) && !self.plan.fileset(*id).grows)
            .collect();
        for id in changed {
            let root = self.plan.root_of(id);
            let Some(guarded) = self.guard_of(&root) else {
                continue;
            };
            let Some(tree) = guarded
                .marker
                .trees
                .iter()
                .find(|t| t.root == root)
                .cloned()
            else {
                continue;
            };
            self.note_tree(
                &root,
                Some(Tree {
                    state: TreeState::Used,
                    ..tree
                }),
            )
            .map_err(|e| self.failed(e))?;
        }
        Ok(())
    }

    /// Goes on with another pool, which nobody has told to stop.
    pub(crate) fn work_with(&mut self, pool: &'a SetupPool<T>) {
        self.setup_pool = pool;
    }

    /// Ends the use of the directory. Unless the run keeps its files, removes what it made and
    /// nothing else; returns what was left.
    pub(crate) fn release(&mut self, keep: bool) -> Leftovers {
        if !keep {
            return self.clean();
        }
        let mut left = Leftovers::default();
        for guarded in &mut self.guarded {
            guarded.marker.used_by = None;
            left.note(marker::write(
                self.setup_pool,
                &guarded.guard,
                &guarded.marker,
            ));
        }
        left
    }

    /// Removes everything that can be removed.
    fn clean(&mut self) -> Leftovers {
        let populated = std::mem::take(&mut self.populated);
        let mut roots: Vec<RelPath> = populated
            .into_iter()
            .map(|id| self.plan.root_of(id))
            .collect();
        roots.extend(self.plan.pattern().map(|p| p.root.clone()));
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
        let guarded = std::mem::take(&mut self.guarded);
        let holds_root = guarded.iter().any(|g| g.guard.as_str().is_empty());
        for guarded in guarded.into_iter().rev() {
            if !left.is_gone {
                let done = self.leave(&guarded, &mut patience, &mut left);
                left.note(done);
            }
        }
        // What was made above the guarded directories; whatever else came to lie in it keeps it
        // there.
        let mut above = std::mem::take(&mut self.made_above);
        if self.setup_pool.target.created_work_dir() && !holds_root {
            above.insert(0, String::new());
        }
        for dir in above.into_iter().rev() {
            if left.is_clean() {
                left.note(self.remove_if_empty(&dir, || Ok(()), &mut patience));
            } else if !left.is_gone {
                let stays = OpError(Errno::NOTEMPTY);
                let path = dir.as_bytes();
                left.refused(SetupError::failed("remove directory", path, stays));
            }
        }
        left
    }

    /// Removes a tree. While anything of it is left, the marker lists it.
    fn remove_tree(&mut self, root: &RelPath, patience: &mut RetryWindow) -> Leftovers {
        let names = self.guard_of(root).and_then(|g| {
            let tree = g.marker.trees.iter().find(|t| t.root == *root)?;
            tree.names.clone()
        });
        let marker = marker::marker_path(root).into_bytes();
        let mut left = removal::remove(
            self.setup_pool,
            root.as_str(),
            names.as_ref(),
            patience,
            || (),
        );
        left.foreign.retain(|p| *p != marker);
        if left.is_clean() {
            let forgotten = self.note_tree(root, None);
            left.note(forgotten.and_then(|()| self.remove_empty_above(root, patience)));
        }
        left
    }

    /// Removes the directories between a guarded one and a tree's root, which Plimsoll made.
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
            self.remove_if_empty(above, || Ok(()), patience)?;
            path = above;
        }
        Ok(())
    }

    /// Takes the marker away, and the directory if Plimsoll made it, once no tree is left in it.
    /// What else lies in it is noted in `left`.
    fn leave(
        &mut self,
        guarded: &GuardedDir,
        patience: &mut RetryWindow,
        left: &mut Leftovers,
    ) -> Result<(), SetupError> {
        let unused = Marker {
            used_by: None,
            ..guarded.marker.clone()
        };
        if !unused.trees.is_empty() {
            return marker::write(self.setup_pool, &guarded.guard, &unused);
        }
        // Before the marker goes: should this fail, the directory can still be cleaned.
        left.foreign
            .extend(self.unaccounted_entries(&guarded.guard)?);
        self.remove_marker(&guarded.guard)?;
        self.marked.retain(|guard| *guard != guarded.guard);
        if !unused.made_dir {
            return Ok(());
        }
        // A server that writes behind a cache may bring the marker back.
        let again = || self.remove_marker(&guarded.guard);
        let removed = self.remove_if_empty(guarded.guard.as_str(), again, patience);
        if removed.is_err() {
            // Without it, nothing would tell that the directory is ours to remove.
            self.marked.push(guarded.guard.clone());
            left.note(marker::write(self.setup_pool, &guarded.guard, &unused));
        }
        removed
    }

    /// What lies in a guarded directory although no fileset accounts for it.
    fn unaccounted_entries(&self, guard: &RelPath) -> Result<Vec<Vec<u8>>, SetupError> {
        // What the file system keeps in its root belongs to no user.
        let files = self.entries(guard.as_str())?.into_iter();
        let files = files.filter(|name| name != marker::IGNORED_ENTRIES);
        let path = |name: Vec<u8>| match guard.as_str() {
            "" => name,
            guard => [guard.as_bytes(), b"/", &name].concat(),
        };
        Ok(files.map(path).collect())
    }

    /// Names in a directory, apart from that of the marker, which a server may list for a moment
    /// after it was removed; none if the directory is missing.
    fn entries(&self, dir: &str) -> Result<Vec<Vec<u8>>, SetupError> {
        let entries = self.setup_pool.one(async |session| {
            session.locate(|p| p.extend_from_slice(dir.as_bytes()));
            session.entries().await
        });
        let entries = match entries.and_then(|r| r) {
            Err(OpError(Errno::NOENT)) => vec![],
            other => other.map_err(|e| SetupError::failed("list", dir.as_bytes(), e))?,
        };
        let names = entries.into_iter().map(|(name, _)| name);
        Ok(names
            .filter(|name| name != marker::MARKER.as_bytes())
            .collect())
    }

    /// Removes a directory that Plimsoll made, unless something lies in it; `""` is the work
    /// directory. `empty` is called before each further attempt.
    fn remove_if_empty(
        &self,
        dir: &str,
        empty: impl Fn() -> Result<(), SetupError>,
        patience: &mut RetryWindow,
    ) -> Result<(), SetupError> {
        let remove = || match dir {
            "" => self.setup_pool.target.remove_work_dir(),
            dir => self.remove_dir(dir),
        };
        match remove() {
            Ok(()) | Err(OpError(Errno::NOENT)) => return Ok(()),
            Err(e) if removal::may_pass(e) && !self.entries(dir)?.is_empty() => {
                return Ok(());
            }
            Err(_) => {}
        }
        let removed = patience.remove_empty(|| {
            // What keeps the directory says more than what keeps its entry.
            let _ = empty();
            remove()
        });
        removed.map_err(|e| SetupError::failed("remove directory", dir.as_bytes(), e))
    }

    fn remove_dir(&self, path: &str) -> Result<(), OpError> {
        let removed = self.setup_pool.one(async |session| {
            session.locate(|p| p.extend_from_slice(path.as_bytes()));
            session.remove(EntryKind::Dir).await
        });
        removed.and_then(|r| r)
    }

    fn remove_marker(&self, guard: &RelPath) -> Result<(), SetupError> {
        let path = marker::marker_path(guard);
        let removed = self.setup_pool.one(async |session| {
            session.locate(|p| p.extend_from_slice(path.as_bytes()));
            session.remove(EntryKind::File).await
        });
        match removed.and_then(|r| r) {
            Ok(()) | Err(OpError(Errno::NOENT)) => Ok(()),
            Err(e) => Err(SetupError::failed("remove", path.as_bytes(), e)),
        }
    }

    /// What was left, as sentences. `settings`: of a clean-up, whose rest can be removed later.
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

    /// How what is left can be removed later; `None` if no directory has a marker that says what
    /// that is.
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

/// The commands that clean guarded directories, as a person calls them; `None` if there is no such
/// directory.
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

/// A word as a shell reads it back: in quotes where it would be several, or something else.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%=,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn words_are_quoted_where_a_shell_would_read_another() {
        assert_eq!(shell_word("/mnt/a-b.1"), "/mnt/a-b.1");
        assert_eq!(shell_word("w/a b"), "'w/a b'");
        assert_eq!(shell_word("it's $x"), r"'it'\''s $x'");
        assert_eq!(shell_word(""), "''");
    }
}
