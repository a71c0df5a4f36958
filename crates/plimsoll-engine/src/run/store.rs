//! The work directory through a run: guarded, populated, cleaned.

use super::crew::{Crew, CrewError};
use super::marker::{self, Found, Marker, Others, Tree, TreeState, User};
use super::tree;
use super::{EngineError, crew_error};
use plimsoll_plan::{FilesetId, Plan, RelPath};
use plimsoll_target::{EntryKind, OpError, Session, Target};
use rustix::io::Errno;

/// A guarded directory and its marker.
pub(super) struct Guarded {
    guard: RelPath,
    pub(super) marker: Marker,
}

/// The work directory of a run.
pub(crate) struct Workplace<'a, T: Target> {
    pub(super) crew: &'a Crew<T>,
    pub(super) plan: &'a Plan,
    guarded: Vec<Guarded>,
    /// Directories above the guarded ones that did not exist, outermost first.
    made_above: Vec<String>,
    pub(super) populated: Vec<FilesetId>,
    /// Another process of the run claimed the directories, and cleans them.
    of_another: bool,
}

impl<'a, T: Target> Workplace<'a, T> {
    /// The work directory as a process sees it that did not claim it.
    pub(crate) fn of_another(crew: &'a Crew<T>, plan: &'a Plan) -> Self {
        Self {
            crew,
            plan,
            guarded: vec![],
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
        crew: &'a Crew<T>,
        plan: &'a Plan,
        others: Others,
    ) -> Result<Self, EngineError> {
        let mut place = Self {
            crew,
            plan,
            guarded: vec![],
            made_above: vec![],
            populated: vec![],
            of_another: false,
        };
        if !crew.target.keeps_files() {
            return Ok(place);
        }
        // All are looked at before the first is touched.
        let mut found = Vec::new();
        for guard in &plan.place.guards {
            let look = marker::look(crew, plan, guard, others).map_err(EngineError::refused)?;
            if let Some(why) = marker::pattern_refusal(plan, &look) {
                return Err(EngineError::Refused(why));
            }
            found.push((guard, look));
        }
        for (guard, found) in found {
            if let Err(e) = place.take(guard, found) {
                // What was made so far goes again.
                let _ = place.clean();
                return Err(place.failed(e));
            }
        }
        Ok(place)
    }

    fn take(&mut self, guard: &RelPath, found: Found) -> Result<(), CrewError> {
        let mut marker = Marker {
            plimsoll: 1,
            workload: self.plan.name.clone(),
            seed: self.plan.seed,
            guard: guard.clone(),
            made_dir: guard.as_str().is_empty() && self.crew.target.made_work_dir(),
            used_by: Some(User::me()),
            trees: vec![],
        };
        match found {
            Found::Nothing => {
                self.made_above.extend(self.make_dirs_above(guard)?);
                marker.made_dir |= self.make_dir(guard.as_str())?;
            }
            Found::Empty => {}
            Found::Ours(old) => {
                marker.made_dir |= old.made_dir;
                marker.trees = old.trees;
            }
        }
        if let Some(pattern) = self.plan.pattern() {
            marker.trees = vec![Tree::of_pattern(pattern)];
        }
        marker::write(self.crew, guard, &marker)?;
        self.guarded.push(Guarded {
            guard: guard.clone(),
            marker,
        });
        Ok(())
    }

    /// Makes the directories that lead to a guarded one; returns those that were missing.
    pub(super) fn make_dirs_above(&self, guard: &RelPath) -> Result<Vec<String>, CrewError> {
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
    fn make_dir(&self, path: &str) -> Result<bool, CrewError> {
        let made = self.crew.one(async |session| {
            session.locate(|p| p.extend_from_slice(path.as_bytes()));
            session.make_dir().await
        });
        match made.and_then(|r| r) {
            Ok(()) => Ok(true),
            Err(OpError(Errno::EXIST)) => Ok(false),
            Err(e) => Err(CrewError::failed("make directory", path.as_bytes(), e)),
        }
    }

    pub(super) fn guard_of(&mut self, root: &RelPath) -> Option<&mut Guarded> {
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
    ) -> Result<(), CrewError> {
        let crew = self.crew;
        let Some(guarded) = self.guard_of(root) else {
            return Ok(());
        };
        guarded.marker.trees.retain(|t| t.root != *root);
        guarded.marker.trees.extend(tree);
        marker::write(crew, &guarded.guard, &guarded.marker)
    }

    /// Refuses a root that somebody else's files lie in: only a tree that the marker lists is
    /// Plimsoll's to replace.
    pub(super) fn claim_root(&mut self, id: FilesetId) -> Result<(), EngineError> {
        let root = self.plan.fileset(id).root().unwrap_or_default();
        let listed = |g: &mut Guarded| g.marker.trees.iter().any(|t| t.root == root);
        if self.guard_of(&root).is_some_and(listed) {
            return Ok(());
        }
        marker::check_vacant(self.crew, self.plan, &root).map_err(EngineError::refused)
    }

    /// Removes what an earlier run left at the root of a tree. The guarded directory may be the
    /// root itself, with the marker in it.
    pub(super) fn clear_root(
        &mut self,
        root: &RelPath,
        tell: &mut dyn FnMut(),
    ) -> Result<(), CrewError> {
        let left = tree::remove(self.crew, root.as_str(), None, &mut *tell)?;
        let marker = marker::marker_path(root);
        let foreign = left
            .iter()
            .find(|p| **p != marker.as_bytes() && !p.ends_with(b"/lost+found"));
        match foreign {
            Some(path) => Err(CrewError::failed(
                "make a tree beside",
                path,
                OpError(Errno::EXIST),
            )),
            None => Ok(()),
        }
    }

    /// Workers are about to change these trees.
    pub(crate) fn about_to_use(&mut self) -> Result<(), EngineError> {
        let changed: Vec<FilesetId> = self
            .populated
            .iter()
            .copied()
            .filter(|id| self.plan.changes_tree(*id) && !self.plan.fileset(*id).grows)
            .collect();
        for id in changed {
            let root = self.plan.fileset(id).root().unwrap_or_default();
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

    /// Goes on with another crew, which nobody has told to stop.
    pub(crate) fn work_with(&mut self, crew: &'a Crew<T>) {
        self.crew = crew;
    }

    /// Ends the use of the directory. Unless the run keeps its files, removes what it made and
    /// nothing else; returns the paths of what was left because Plimsoll did not make it.
    pub(crate) fn release(&mut self, keep: bool) -> Result<Vec<String>, CrewError> {
        if keep {
            for guarded in &mut self.guarded {
                guarded.marker.used_by = None;
                marker::write(self.crew, &guarded.guard, &guarded.marker)?;
            }
            return Ok(vec![]);
        }
        self.clean()
    }

    /// Removes everything that can be removed; an error is given once all was tried.
    fn clean(&mut self) -> Result<Vec<String>, CrewError> {
        let populated = std::mem::take(&mut self.populated);
        let root = |id: FilesetId| self.plan.fileset(id).root().unwrap_or_default();
        let mut roots: Vec<RelPath> = populated.into_iter().map(root).collect();
        roots.extend(self.plan.pattern().map(|p| p.root.clone()));
        self.clean_roots(roots)
    }

    /// Removes every tree that the markers list.
    pub(crate) fn clean_listed(&mut self) -> Result<Vec<String>, CrewError> {
        let trees = self.guarded.iter().flat_map(|g| &g.marker.trees);
        let roots = trees.map(|t| t.root.clone()).collect();
        self.clean_roots(roots)
    }

    fn clean_roots(&mut self, roots: Vec<RelPath>) -> Result<Vec<String>, CrewError> {
        let (mut foreign, mut first) = (Vec::new(), None);
        for root in roots {
            match self.remove_tree(&root) {
                Ok(left) => foreign.extend(left),
                Err(e) => drop(first.get_or_insert(e)),
            }
        }
        for guarded in std::mem::take(&mut self.guarded).into_iter().rev() {
            match self.leave(&guarded) {
                Ok(left) => foreign.extend(left),
                Err(e) => drop(first.get_or_insert(e)),
            }
        }
        for above in std::mem::take(&mut self.made_above).into_iter().rev() {
            if let Err(e) = self.remove(&above, EntryKind::Dir) {
                first.get_or_insert(e);
            }
        }
        // A work directory above the guarded ones that was made for them; whatever else came to
        // lie in it keeps it there.
        if self.crew.target.made_work_dir()
            && let Err(e) = self.remove_work_dir()
        {
            first.get_or_insert(e);
        }
        let text = |p: Vec<u8>| String::from_utf8_lossy(&p).into_owned();
        first.map_or_else(|| Ok(foreign.into_iter().map(text).collect()), Err)
    }

    /// Removes a tree; returns what was left because it is not Plimsoll's.
    fn remove_tree(&mut self, root: &RelPath) -> Result<Vec<Vec<u8>>, CrewError> {
        let names = self.guard_of(root).and_then(|g| {
            let tree = g.marker.trees.iter().find(|t| t.root == *root)?;
            tree.names.clone()
        });
        let marker = marker::marker_path(root).into_bytes();
        let mut left = tree::remove(self.crew, root.as_str(), names.as_ref(), || ())?;
        left.retain(|p| *p != marker);
        self.note_tree(root, None)?;
        self.remove_empty_above(root)?;
        Ok(left)
    }

    /// Removes the directories between a guarded one and a tree's root, which Plimsoll made.
    fn remove_empty_above(&mut self, root: &RelPath) -> Result<(), CrewError> {
        let Some(guard) = self.guard_of(root).map(|g| g.guard.as_str().len()) else {
            return Ok(());
        };
        let mut path = root.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            if above.len() <= guard {
                break;
            }
            self.remove(above, EntryKind::Dir)?;
            path = above;
        }
        Ok(())
    }

    /// Takes the marker away, and the directory if Plimsoll made it, once no tree is left in it.
    /// Returns what else lies in it.
    fn leave(&self, guarded: &Guarded) -> Result<Vec<Vec<u8>>, CrewError> {
        if !guarded.marker.trees.is_empty() {
            let marker = Marker {
                used_by: None,
                ..guarded.marker.clone()
            };
            marker::write(self.crew, &guarded.guard, &marker)?;
            return Ok(vec![]);
        }
        self.remove(&marker::marker_path(&guarded.guard), EntryKind::File)?;
        let left = self.strangers(&guarded.guard)?;
        match guarded.guard.as_str() {
            _ if !guarded.marker.made_dir => {}
            "" => self.remove_work_dir()?,
            guard => self.remove(guard, EntryKind::Dir)?,
        }
        Ok(left)
    }

    /// What lies in a guarded directory although no fileset accounts for it.
    fn strangers(&self, guard: &RelPath) -> Result<Vec<Vec<u8>>, CrewError> {
        let entries = self.crew.one(async |session| {
            session.locate(|p| p.extend_from_slice(guard.as_str().as_bytes()));
            session.entries().await
        });
        let entries = match entries.and_then(|r| r) {
            Err(OpError(Errno::NOENT)) => vec![],
            other => other.map_err(|e| CrewError::failed("list", guard.as_str().as_bytes(), e))?,
        };
        // What the file system keeps in its root is nobody's.
        let files = entries
            .into_iter()
            .filter(|(name, _)| name != marker::NOBODYS);
        let path = |name: Vec<u8>| match guard.as_str() {
            "" => name,
            guard => [guard.as_bytes(), b"/", &name].concat(),
        };
        Ok(files.map(|(name, _)| path(name)).collect())
    }

    fn remove_work_dir(&self) -> Result<(), CrewError> {
        match self.crew.target.remove_work_dir() {
            // Something that is not ours lies in it, or it is gone already.
            Ok(()) | Err(OpError(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT)) => Ok(()),
            Err(e) => Err(CrewError::failed("remove directory", b"", e)),
        }
    }

    /// Removes an entry; a directory only if nothing is in it.
    fn remove(&self, path: &str, kind: EntryKind) -> Result<(), CrewError> {
        let removed = self.crew.one(async |session| {
            session.locate(|p| p.extend_from_slice(path.as_bytes()));
            session.remove(kind).await
        });
        match removed.and_then(|r| r) {
            Ok(()) | Err(OpError(Errno::NOTEMPTY | Errno::EXIST | Errno::NOENT)) => Ok(()),
            Err(e) => Err(CrewError::failed("remove", path.as_bytes(), e)),
        }
    }

    pub(crate) fn failed(&self, e: CrewError) -> EngineError {
        crew_error(self.crew, self.plan, e)
    }
}
