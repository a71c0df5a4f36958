//! Making the trees of filesets, by all ranks together: rank 0 makes the directories, every rank
//! its part of the files.

use super::crew::CrewError;
use super::marker::{Tree, TreeState};
use super::store::Workplace;
use super::team::Team;
use super::tree::{self, Progress};
use super::{EngineError, Event, Observer, Stop};
use crate::outcome::Populated;
use plimsoll_plan::{FilesetId, Layout, RelPath};
use plimsoll_target::Target;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl<T: Target> Workplace<'_, T> {
    /// Makes a fileset's tree, or finds it made by an earlier run. All ranks call this.
    ///
    /// # Errors
    /// What keeps any rank from it, at all ranks.
    pub(crate) fn populate(
        &mut self,
        id: FilesetId,
        layout: &Arc<Layout>,
        team: &Team<'_>,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<Populated, EngineError> {
        let fileset = self.plan.fileset(id);
        let sizes = layout.size_summary(true);
        let leaf_dirs = layout.initial_leaf_dirs().iter();
        let leaf_dirs: u32 = leaf_dirs.map(|w| w.count_ones()).sum();
        let started = Instant::now();
        let mut report = Populated {
            fileset: fileset.name.clone(),
            files: sizes.files,
            dirs: u64::from(layout.dirs()) + u64::from(leaf_dirs),
            bytes: sizes.total,
            time: Default::default(),
            reused: false,
        };
        if !self.crew.target.keeps_files() {
            return Ok(report);
        }
        let progress = Progress::default();
        let (ranks, leads) = (u64::from(team.size()), team.leads());
        let mut begun = false;
        let tell = |observer: &mut dyn Observer| {
            team.is_stopped(stop);
            let of_all = |of_rank: u64, all: u64| of_rank.saturating_mul(ranks).min(all);
            let (files, bytes) = (progress.files.load(Relaxed), progress.bytes.load(Relaxed));
            if leads {
                observer.event(Event::PopulateProgress {
                    files: of_all(files, sizes.files),
                    bytes: of_all(bytes, sizes.total),
                });
            }
        };
        let whole = match leads {
            true => self.claim_root(id).and_then(|()| {
                self.populated.push(id);
                let (files, bytes) = (sizes.files, sizes.total);
                observer.event(Event::PopulateStart {
                    fileset: &fileset.name,
                    files,
                    bytes,
                });
                begun = true;
                self.begin_tree(id, layout, &mut || tell(observer))
                    .map_err(|e| self.failed(e))
            }),
            false => Ok(false),
        };
        report.reused = team.any(team.agree(whole)?)?;
        if !report.reused {
            let part = team.portion(u64::from(layout.files()));
            let made = tree::make_files(self.crew, layout, part, &progress, || tell(observer));
            if made.is_err() {
                // The others need not go on.
                team.ask_to_stop();
            }
            team.agree(made.map_err(|e| self.failed(e)))?;
            let noted = match leads {
                true => self.note(id, layout, TreeState::Whole),
                false => Ok(()),
            };
            team.agree(noted.map_err(|e| self.failed(e)))?;
        }
        report.time = started.elapsed();
        if begun {
            observer.event(Event::PopulateEnd(&report));
        }
        Ok(report)
    }

    /// `true` if the tree of an earlier run was found whole; otherwise its directories are made.
    fn begin_tree(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        tell: &mut dyn FnMut(),
    ) -> Result<bool, CrewError> {
        let fileset = self.plan.fileset(id);
        let root = fileset.root().unwrap_or_default();
        let known = self
            .guard_of(&root)
            .and_then(|g| g.marker.trees.iter().find(|t| t.root == root).cloned());
        if let Some(tree) = known {
            let same = tree.fingerprint == print_of(layout) && tree.state == TreeState::Whole;
            if same && tree::is_whole(self.crew, layout, fileset.trust_tree, &mut *tell)? {
                return Ok(true);
            }
        }
        self.note(id, layout, TreeState::Making)?;
        self.clear_root(&root, tell)?;
        self.make_dirs_above(&root)?;
        tree::make_dirs(self.crew, layout, &mut *tell)?;
        Ok(false)
    }

    /// Notes in the marker how far a tree is.
    fn note(&mut self, id: FilesetId, layout: &Layout, state: TreeState) -> Result<(), CrewError> {
        let root: RelPath = self.plan.fileset(id).root().unwrap_or_default();
        let tree = Tree {
            root: root.clone(),
            fingerprint: print_of(layout),
            state,
            names: None,
        };
        self.note_tree(&root, Some(tree))
    }
}

/// A layout's fingerprint as markers have it.
fn print_of(layout: &Layout) -> String {
    format!("{:016x}", layout.fingerprint())
}
