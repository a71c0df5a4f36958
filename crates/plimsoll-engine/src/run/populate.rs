//! Populating filesets by all ranks together: rank 0 creates the directories, and every rank its part of the files.

use super::marker::TreeState;
use super::setup_pool::SetupError;
use super::team::RankTeam;
use super::tree::{self, Progress};
use super::work_dir::ClaimedWorkDir;
use super::{EngineError, Event, Observer, Stop};
use plimsoll_plan::{FilesetId, Layout, PopulatedFileset, SizeSummary};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

impl ClaimedWorkDir<'_> {
    /// Creates a fileset's tree, or reuses the tree of an earlier run. All ranks call this function.
    ///
    /// # Errors
    /// The error of any rank, at all ranks.
    pub(crate) fn populate(
        &mut self,
        id: FilesetId,
        layout: &Arc<Layout>,
        team: &RankTeam<'_>,
        stop: &Stop,
        observer: &mut dyn Observer,
    ) -> Result<PopulatedFileset, EngineError> {
        let (fileset, used) = (self.plan.fileset(id), self.plan.files_used(id));
        let started = plimsoll_runtime::now();
        let mut report = self.report(id, layout);
        if !self.setup_pool.target.keeps_files() {
            return Ok(report);
        }
        let progress = Progress::default();
        // Earlier load points have created a part of a tree that grows.
        let grown = match fileset.grows && !self.plan.options.verify {
            true => self.files_made(id, layout).unwrap_or(0),
            false => 0,
        };
        let missing = layout.size_summary_of(grown..used.end, true);
        let tell = |observer: &mut dyn Observer| {
            team.is_stopped(stop);
            if team.is_root() {
                let of_all = |own: &AtomicU64, all: u128| {
                    let own = u128::from(own.load(Relaxed)) * u128::from(team.size());
                    u64::try_from(own.min(all)).unwrap_or(u64::MAX)
                };
                observer.event(Event::PopulateProgress {
                    files: of_all(&progress.files, missing.files.into()),
                    bytes: of_all(&progress.bytes, missing.total),
                });
            }
        };
        let whole = match team.is_root() {
            true => self.begin_populate(id, layout, &missing, observer, &tell),
            false => Ok(false),
        };
        report.reused = team.any_rank(team.agree_on_outcome(whole)?)?;
        if !report.reused {
            let (pool, part) = (self.setup_pool, team.portion(used.end));
            let tell = || tell(observer);
            let what = (id, &**layout, fileset.initially);
            let made = tree::make_files(pool, what, part, fileset.grows, &progress, tell);
            if made.is_err() {
                team.request_stop_all();
            }
            team.agree_on_outcome(made.map_err(|e| self.failed(e)))?;
            let noted = match team.is_root() {
                // The files have contents for this run's verification, not the contents that another run would choose.
                true if self.plan.options.verify => self.note(id, layout, TreeState::Used),
                true if fileset.grows => self.note_growth(id, layout, used.end),
                true => self.note(id, layout, TreeState::Whole),
                false => Ok(()),
            };
            team.agree_on_outcome(noted.map_err(|e| self.failed(e)))?;
            let made = team.any_rank(progress.files.load(Relaxed) > 0)?;
            report.reused = fileset.grows && !made;
        }
        report.seconds = plimsoll_runtime::elapsed(started).as_secs_f64();
        if team.is_root() {
            observer.event(Event::PopulateEnd(&report));
        }
        Ok(report)
    }

    /// Report on a fileset before populating: the planned contents.
    fn report(&self, id: FilesetId, layout: &Layout) -> PopulatedFileset {
        let sizes = layout.size_summary_of(self.plan.files_used(id), true);
        PopulatedFileset {
            fileset: self.plan.fileset(id).name.clone(),
            files: sizes.files,
            dirs: tree::initial_dirs(self.plan, id, layout),
            bytes: sizes.total,
            bytes_estimated: sizes.estimated,
            seconds: 0.0,
            reused: false,
        }
    }

    /// Begins to populate a fileset, at rank 0; `true` if the tree of an earlier run is whole.
    fn begin_populate(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        missing: &SizeSummary,
        observer: &mut dyn Observer,
        tell: &dyn Fn(&mut dyn Observer),
    ) -> Result<bool, EngineError> {
        self.claim_root(id)?;
        self.populated.push(id);
        let fileset = self.plan.fileset(id);
        observer.event(Event::PopulateStart {
            fileset: &fileset.name,
            files: missing.files,
            bytes: missing.sum(),
        });
        let tell = &mut || tell(observer);
        let whole = match fileset.grows {
            true => self.begin_growth(id, layout, tell).map(|()| false),
            false => self.begin_tree(id, layout, tell),
        };
        whole.map_err(|e| self.failed(e))
    }

    /// Creates the directories of a tree; returns `true`, without creating any, if the tree of an earlier run is whole.
    fn begin_tree(
        &mut self,
        id: FilesetId,
        layout: &Layout,
        tell: &mut dyn FnMut(),
    ) -> Result<bool, SetupError> {
        let fileset = self.plan.fileset(id);
        let root = self.plan.root_of(id);
        // A verified run creates every tree anew, because the contents of files that an earlier run wrote are unknown.
        if !self.plan.options.verify
            && let Some(tree) = self.tree_at(&root)
        {
            let same = tree.is_whole(layout);
            if same && tree::is_whole(self.setup_pool, layout, fileset.trust_tree, &mut *tell)? {
                return Ok(true);
            }
        }
        self.note(id, layout, TreeState::Making)?;
        self.clear_root(&root, tell)?;
        self.make_dirs_above(&root)?;
        tree::make_dirs(self.setup_pool, layout, &mut *tell)?;
        tree::make_leaf_dirs(self.setup_pool, layout, &mut *tell)?;
        Ok(false)
    }
}
