//! Making the trees of filesets, by all ranks together: rank 0 makes the directories, every rank
//! its part of the files.

use super::incremental_populate;
use super::marker::{Tree, TreeState, fingerprint_hex};
use super::setup_pool::SetupError;
use super::team::RankTeam;
use super::tree::{self, Progress};
use super::work_dir::ClaimedWorkDir;
use super::{EngineError, Event, Observer, Stop};
use plimsoll_plan::{FilesetId, Layout, PopulatedFileset};
use plimsoll_target::Target;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

impl<T: Target> ClaimedWorkDir<'_, T> {
    /// Makes a fileset's tree, or finds it made by an earlier run. All ranks call this.
    ///
    /// # Errors
    /// What keeps any rank from it, at all ranks.
    pub(crate) fn populate(
        &mut self,
        id: FilesetId,
        layout: &Arc<Layout>,
        team: &RankTeam<'_>,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<PopulatedFileset, EngineError> {
        let fileset = self.plan.fileset(id);
        let used = self.plan.files_used(id);
        let sizes = layout.size_summary_of(used.clone(), true);
        let leaf_dirs = self.plan.leaf_dirs_used(id);
        let leaf_dirs = leaf_dirs.filter(|l| layout.starts_with_leaf_dir(*l as u32));
        let started = Instant::now();
        let mut report = PopulatedFileset {
            fileset: fileset.name.clone(),
            files: sizes.files,
            dirs: u64::from(layout.dirs()) + leaf_dirs.count() as u64,
            bytes: sizes.total,
            seconds: 0.0,
            reused: false,
        };
        if !self.setup_pool.target.keeps_files() {
            return Ok(report);
        }
        let progress = Progress::default();
        // Of a tree that grows, what is to be made is what earlier points had not.
        let grown = self.files_made(id, layout).filter(|_| fileset.grows);
        let sizes = layout.size_summary_of(grown.unwrap_or(0)..used.end, true);
        let (ranks, leads) = (u64::from(team.size()), team.is_root());
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
                let tell = &mut || tell(observer);
                let begun = match fileset.grows {
                    true => self.begin_growth(id, layout, tell).map(|()| false),
                    false => self.begin_tree(id, layout, tell),
                };
                begun.map_err(|e| self.failed(e))
            }),
            false => Ok(false),
        };
        report.reused = team.any_rank(team.agree_on_outcome(whole)?)?;
        if !report.reused {
            let part = team.portion(used.end);
            let tell = || tell(observer);
            let made = match fileset.grows {
                true => incremental_populate::repair_files(
                    self.setup_pool,
                    layout,
                    part,
                    &progress,
                    tell,
                ),
                false => tree::make_files(self.setup_pool, layout, part, &progress, tell),
            };
            if made.is_err() {
                // The others need not go on.
                team.request_stop_all();
            }
            team.agree_on_outcome(made.map_err(|e| self.failed(e)))?;
            let noted = match leads {
                true if fileset.grows => self.note_growth(id, layout, used.end),
                true => self.note(id, layout, TreeState::Whole),
                false => Ok(()),
            };
            team.agree_on_outcome(noted.map_err(|e| self.failed(e)))?;
            let made = team.any_rank(progress.files.load(Relaxed) > 0)?;
            report.reused = fileset.grows && !made;
        }
        report.seconds = started.elapsed().as_secs_f64();
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
    ) -> Result<bool, SetupError> {
        let fileset = self.plan.fileset(id);
        let root = self.plan.root_of(id);
        let known = self
            .guard_of(&root)
            .and_then(|g| g.marker.trees.iter().find(|t| t.root == root).cloned());
        if let Some(tree) = known {
            let same =
                tree.fingerprint == fingerprint_hex(layout) && tree.state == TreeState::Whole;
            if same && tree::is_whole(self.setup_pool, layout, fileset.trust_tree, &mut *tell)? {
                return Ok(true);
            }
        }
        self.note(id, layout, TreeState::Making)?;
        self.clear_root(&root, tell)?;
        self.make_dirs_above(&root)?;
        tree::make_dirs(self.setup_pool, layout, false, &mut *tell)?;
        tree::make_leaf_dirs(self.setup_pool, layout, &mut *tell)?;
        Ok(false)
    }

    /// Notes in the marker how far a tree is.
    pub(super) fn note(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        state: TreeState,
    ) -> Result<(), SetupError> {
        let root = self.plan.root_of(id);
        let tree = Tree {
            root: root.clone(),
            fingerprint: fingerprint_hex(layout),
            state,
            made: None,
            names: None,
            shape: None,
        };
        self.note_tree(&root, Some(tree))
    }
}
