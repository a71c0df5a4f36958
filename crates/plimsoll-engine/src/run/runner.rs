//! The script of a run, phase by phase.

use super::claim::{Found, OwnerProcess, RemoteOwner, SessionDir};
use super::cold::{self, PastStage};
use super::command::run_shell;
use super::finish::{CleanupStep, keeps_files, note_long_replies, outcome_or_refusal};
use super::limits::{self, RankMemory};
use super::load_phase::{LoadPhase, LoadPhaseSpec};
use super::memory_pressure::PressureAllocation;
use super::run_target::RunTarget;
use super::setup_pool::{MAX_SERVER_SILENCE, SetupPool};
use super::team::{MergedPhase, RankTeam};
use super::work_dir::{ClaimError, ClaimedWorkDir};
use super::{
    EngineError, Event, Observer, PhaseInfo, Settings, Stop, preflight, rank_partition,
    setup_error, setup_pool,
};
use crate::file_pool::FilesetState;
use crate::stage_state::RankStates;
use plimsoll_measure::system::Snapshot;
use plimsoll_measure::{Clock, ClockKind, LongReplies, NfsClients, Outcome};
use plimsoll_plan::{Cold, FilesetId, Layout, Phase, Plan, WorkerGroup};
use plimsoll_target::Ledger;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run, as one of its ranks executes it.
pub(super) struct Runner<'a> {
    pub(super) plan: &'a Plan,
    pub(super) settings: &'a Settings,
    pub(super) stop: &'a Stop,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) layouts: Vec<Arc<Layout>>,
    /// Replies before the run that violated the server's protocol.
    pub(super) long_replies: Vec<LongReplies>,
    /// Remarks of the preflight, as sentences for the results.
    pub(super) notes: Vec<String>,
    pub(super) team: &'a RankTeam<'a>,
    /// Known contents of the files, if the run is verified.
    pub(super) ledger: Option<Arc<Ledger>>,
    /// The process that claimed the work directory, if the process is another rank.
    pub(super) claimed_by: Option<OwnerProcess>,
    /// The progress of all ranks of a pattern, after the stages executed so far.
    pub(super) states: Option<RankStates>,
    /// Completed stages of a pattern, if their objects are to be dropped from caches.
    pub(super) past: Vec<PastStage>,
    /// Memory that a pattern occupies during the run.
    pub(super) held: Option<PressureAllocation>,
}

impl Runner<'_> {
    /// Executes the run on a connected target. Returns `None` if another run removed the work directory before this run
    /// claimed the directory; this run may connect again.
    pub(super) fn execute(
        &mut self,
        target: Arc<dyn RunTarget>,
    ) -> Option<Result<Outcome, EngineError>> {
        let (team, plan) = (self.team, self.plan);
        // The other ranks wait for rank 0's work directory, and rank 0 then waits for the other ranks.
        let mut pool = match setup_pool(target, plan) {
            Ok(pool) => pool,
            Err(e) => return Some(Err(team.abort_run(e))),
        };
        pool.stop = self.stop.run.clone();
        let place = match team.is_root() {
            true => ClaimedWorkDir::claim(&pool, plan, RemoteOwner::Refuse),
            false => Ok(ClaimedWorkDir::claimed_elsewhere(&pool, plan)),
        };
        match place {
            Ok(place) => Some(self.execute_in(&pool, place)),
            Err(ClaimError::Vanished) => None,
            Err(ClaimError::NoRoom(e) | ClaimError::Refused(e)) => Some(Err(team.abort_run(e))),
        }
    }

    fn execute_in(
        &mut self,
        pool: &SetupPool,
        mut place: ClaimedWorkDir<'_>,
    ) -> Result<Outcome, EngineError> {
        let (team, target) = (self.team, &pool.target);
        // Files are removed by a separate pool, because a stop of the run would also stop `pool`.
        let cleaner = SetupPool {
            target: target.clone(),
            contents: pool.contents.clone(),
            stop: self.stop.removal.clone(),
            silence: Some(MAX_SERVER_SILENCE),
        };
        let mut outcome = Outcome {
            target: target.describe(),
            long_replies: std::mem::take(&mut self.long_replies),
            notes: std::mem::take(&mut self.notes),
            ..Outcome::default()
        };
        let joined = self.join(pool, &place);
        let has_begun = joined.is_ok();
        let ran = joined.and_then(|()| self.script(pool, &mut place, &mut outcome));
        let ran = match self.ledger.clone() {
            Some(ledger) => ran.and_then(|()| self.verify(pool, &ledger, &mut outcome)),
            None => ran,
        };
        // Files are removed only when no other rank uses them.
        let met = match has_begun {
            true => team.barrier(),
            false => Ok(()),
        };
        let mut said = Vec::new();
        let mut ended = outcome_or_refusal(ran, self.plan, outcome, team);
        if let Ok(outcome) = &mut ended
            && team.is_root()
        {
            LongReplies::add(&mut outcome.long_replies, target.take_long_replies());
            said = note_long_replies(outcome, &said);
            self.observer.measured(outcome);
        }
        let quiet = match met {
            Ok(()) => true,
            // Rank 0 cleans up once the other ranks have ended.
            Err(_) => team.is_root() && team.wait_for_ends(),
        };
        let finish = CleanupStep {
            cleaner: &cleaner,
            plan: self.plan,
            settings: self.settings,
            stop: self.stop,
            is_quiet: quiet,
            is_stuck: ended.as_ref().is_ok_and(|o| !o.hung_workers.is_empty()),
            keeps: has_begun && keeps_files(self.plan),
        };
        let (cleanup, notes) = finish.finish(place, self.observer);
        let mut outcome = ended.map_err(|e| e.and_unremoved(&cleanup.unremoved))?;
        outcome.notes.extend(notes);
        outcome.cleanup = cleanup;
        if team.is_root() {
            LongReplies::add(&mut outcome.long_replies, target.take_long_replies());
            note_long_replies(&mut outcome, &said);
        }
        Ok(outcome)
    }

    /// Waits until all ranks see the work directory that rank 0 claimed, and no rank refuses the run.
    fn join(&self, pool: &SetupPool, place: &ClaimedWorkDir<'_>) -> Result<(), EngineError> {
        if self.team.is_root() {
            self.team.agree_on_outcome(Ok(()))?;
            self.team
                .broadcast_from_root(Some(OwnerProcess::current()))?;
            self.team.agree_on_outcome(Ok(()))?;
        } else {
            self.team
                .agree_on_outcome(self.inspect_client(pool, place))?;
        }
        self.check_memory_of_hosts(pool)
    }

    /// Checks that the memory of each machine suffices for all ranks of the machine together; each rank has checked its
    /// own part.
    fn check_memory_of_hosts(&self, pool: &SetupPool) -> Result<(), EngineError> {
        if self.team.is_alone() {
            return Ok(());
        }
        let worker_ranks = self.team.worker_rank().map(|_| self.team.worker_ranks());
        let mine = RankMemory::new(self.team.host(), &*pool.target, self.plan, worker_ranks);
        let refusals = limits::memory_of_hosts(&self.team.gather(mine)?);
        self.team.agree_on_outcome(match refusals.is_empty() {
            true => Ok(()),
            false => Err(EngineError::Refused(refusals.join("\n"))),
        })
    }

    /// Checks that each rank must make on its own machine.
    fn inspect_client(
        &self,
        pool: &SetupPool,
        place: &ClaimedWorkDir<'_>,
    ) -> Result<(), EngineError> {
        let sees = |guard| {
            let look = async |dir: &mut SessionDir<'_>| Found::look(dir).await;
            let found = place.on_claim(guard, look);
            let holder = self.claimed_by.as_ref();
            found.is_ok_and(|found| holder.is_some_and(|holder| found.has_holder(holder)))
        };
        if pool.target.keeps_files()
            && !(pool.target.exists() && self.plan.work_dir.guards.iter().all(sees))
        {
            return Err(EngineError::Refused(format!(
                "the work directory `{}` that rank 0 claimed is not there: it must be on a file \
                 system that all ranks share; --dir chooses it",
                self.plan.work_dir.dir.display()
            )));
        }
        let refusals =
            preflight::of_member(pool, self.plan, self.settings, self.team.worker_ranks());
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(EngineError::Refused(refusals.join("\n"))),
        }
    }

    fn script(
        &mut self,
        pool: &SetupPool,
        place: &mut ClaimedWorkDir<'_>,
        outcome: &mut Outcome,
    ) -> Result<(), EngineError> {
        let clock = match self.settings.clock() {
            ClockKind::Real => Clock::real(),
            ClockKind::Virtual => Clock::simulated(),
        };
        let mut filesets: Vec<Option<Arc<FilesetState>>> = vec![None; self.layouts.len()];
        let mut at = 0;
        let (script, keeps_files) = (&self.plan.script, pool.target.keeps_files());
        while at < script.len() && !outcome.is_cut_short() {
            if self.team.any_rank(self.stop.is_requested())? {
                outcome.interrupted = true;
                return if outcome.windows.is_empty() {
                    Err(EngineError::Interrupted)
                } else {
                    Ok(())
                };
            }
            match &script[at] {
                phase if phase.begins_load() => {
                    at = self.load(pool, &clock, place, &filesets, at, outcome)?;
                    continue;
                }
                Phase::Populate { filesets: ids } if keeps_files && !ids.is_empty() => {
                    self.before(PhaseInfo::Populate)?;
                    let done = self.run_idle_phase(&script[at], place, &mut filesets, outcome);
                    let done = self.team.agree_on_outcome(done);
                    self.after(PhaseInfo::Populate);
                    done?;
                }
                phase => {
                    let done = self.run_idle_phase(phase, place, &mut filesets, outcome);
                    self.team.agree_on_outcome(done)?;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Executes a load phase, and informs the observer; returns the position of the next phase.
    fn load(
        &mut self,
        pool: &SetupPool,
        clock: &Clock,
        place: &mut ClaimedWorkDir<'_>,
        filesets: &[Option<Arc<FilesetState>>],
        at: usize,
        outcome: &mut Outcome,
    ) -> Result<usize, EngineError> {
        let (plan, team) = (self.plan, self.team);
        let stage = match plan.script[at] {
            Phase::StartStage { stage } => Some(stage),
            _ => None,
        };
        let info = stage.map_or(PhaseInfo::Load, |stage| Self::stage_info(plan, stage));
        self.before(info)?;
        let states = self.all_states(filesets);
        let ready = match stage {
            Some(_) => self.make_stage_cold(pool),
            None => self
                .make_cold(pool, &states)
                .and_then(|()| place.mark_in_use()),
        };
        let ran = team
            .agree_on_outcome(ready)
            .and_then(|()| self.segment(pool, clock, states, stage, at, outcome));
        // The observer is called after a failure too, to stop the commands that the observer started before the phase.
        self.after_work(info, &ran, outcome);
        ran
    }

    /// Informs the observer before a phase; no rank begins the phase before the observer returns.
    fn before(&mut self, phase: PhaseInfo<'_>) -> Result<(), EngineError> {
        let (team, stop) = (self.team, self.stop);
        let stopped = || team.is_stopped(stop);
        let mut ready = Ok(());
        if team.is_root() {
            ready = match self.observer.before(phase, &stopped) {
                Err(_) if stopped() => Err(EngineError::Interrupted),
                other => other.map_err(EngineError::Failed),
            };
        }
        let has_begun = ready.is_ok();
        let agreed = team.agree_on_outcome(ready);
        if agreed.is_err() && has_begun {
            self.after(phase);
        }
        agreed
    }

    /// Informs the observer of rank 0 after a phase.
    fn after(&mut self, phase: PhaseInfo<'_>) {
        let (team, stop) = (self.team, self.stop);
        if team.is_root() {
            self.observer.after(phase, &|| team.is_stopped(stop));
        }
    }

    /// Informs the observer after a load phase. If no further load phase follows, first passes the outcome to the
    /// observer.
    fn after_work(
        &mut self,
        phase: PhaseInfo<'_>,
        ran: &Result<usize, EngineError>,
        outcome: &Outcome,
    ) {
        let (plan, team) = (self.plan, self.team);
        let more = |at: usize| plan.script[at..].iter().any(Phase::begins_load);
        let goes_on = |at: usize| !outcome.is_cut_short() && more(at);
        if team.is_root() && !ran.as_ref().is_ok_and(|at| goes_on(*at)) {
            let ended =
                || outcome_or_refusal(ran.clone().map(drop), plan, outcome.clone(), team).ok();
            self.observer.all_measured(&ended);
        }
        self.after(phase);
    }

    /// Describes a stage of the Plan's pattern for the observer.
    fn stage_info(plan: &Plan, stage: u32) -> PhaseInfo<'_> {
        let pattern = plan.pattern().expect("only patterns have stages");
        let stage = &pattern.stages[stage as usize];
        PhaseInfo::Stage {
            name: &stage.name,
            iteration: stage.iteration,
        }
    }

    /// Executes a phase while no workers work.
    fn run_idle_phase(
        &mut self,
        phase: &Phase,
        place: &mut ClaimedWorkDir<'_>,
        filesets: &mut [Option<Arc<FilesetState>>],
        outcome: &mut Outcome,
    ) -> Result<(), EngineError> {
        match phase {
            Phase::Populate { filesets: ids } => {
                for id in ids {
                    let slot = &mut filesets[id.0 as usize];
                    if slot.is_none() {
                        let layout = &self.layouts[id.0 as usize];
                        let made =
                            place.populate(*id, layout, self.team, self.stop, self.observer)?;
                        if let Some(ledger) = &self.ledger {
                            ledger.note_populated(*id);
                        }
                        if self.team.is_root() {
                            outcome.populated.push(made);
                        }
                        *slot = Some(self.state_of(*id));
                    }
                }
            }
            Phase::Echo { text } if self.team.is_root() => self.observer.event(Event::Echo(text)),
            Phase::System { command } if self.team.is_root() => {
                let stopped = || self.team.is_stopped(self.stop);
                run_shell(command, &stopped, outcome)?;
            }
            Phase::Wait { until, .. } => idle_wait(*until, self.stop, self.team),
            _ => {}
        }
        Ok(())
    }

    /// Executes a load phase; returns the position of the next phase.
    fn segment(
        &mut self,
        pool: &SetupPool,
        clock: &Clock,
        filesets: Vec<Arc<FilesetState>>,
        stage: Option<u32>,
        at: usize,
        outcome: &mut Outcome,
    ) -> Result<usize, EngineError> {
        let windows = outcome.windows.len();
        if let (Some(stage), Some(pattern)) = (stage, self.plan.pattern()) {
            let fill = |leave| PressureAllocation::fill_until_available(leave, self.stop);
            if let (Some(leave), None) = (pattern.hold_memory, &self.held) {
                self.held = Some(fill(leave));
            }
            let squeeze = pattern.stages[stage as usize].squeeze_memory;
            squeeze.map(fill);
            self.states.get_or_insert_with(|| RankStates::new(pattern));
        }
        let segment = LoadPhase::new(
            LoadPhaseSpec {
                setup_pool: pool,
                plan: self.plan,
                settings: self.settings,
                stop: self.stop,
                clock,
                team: self.team,
                stage: stage.zip(self.states.clone()),
            },
            filesets,
            outcome,
        );
        let started = segment.as_ref().map(|_| ()).map_err(Clone::clone);
        let mut segment = match (self.team.agree_on_outcome(started), segment) {
            (Ok(()), segment) => segment?,
            (Err(e), segment) => {
                segment.map(|s| s.abandon()).ok();
                return Err(e);
            }
        };
        // The counters are read before the ranks agree on the start, which is milliseconds later.
        let counters = Snapshot::take();
        let ran = match self.start_instant() {
            Ok(start) => segment.run(at + 1, start, counters, self.observer),
            Err(e) => {
                segment.abandon();
                return Err(e);
            }
        };
        let (intervals, local) = segment.into_local();
        let mut merged = MergedPhase::of(intervals);
        let local = match local {
            Ok(local) => local,
            Err(e) => {
                self.team
                    .merge_survivors(self.plan, outcome, windows, &mut merged);
                self.report_intervals(&merged);
                return Err(e);
            }
        };
        if let (Some(local), Cold::Files, Some(before)) =
            (&local, self.plan.options.drop_caches, self.states.clone())
            && pool.target.keeps_files()
        {
            match &local.ranks[..] {
                [rank] => self.past.push(PastStage {
                    stage: local.stage,
                    before,
                    rounds: rank.rounds,
                }),
                [] => assert!(
                    self.team.worker_rank().is_none(),
                    "every rank has one worker"
                ),
                _ => unreachable!(
                    "a target with files runs in real time, with one rank in each process"
                ),
            }
        }
        LongReplies::add(&mut outcome.long_replies, pool.target.take_long_replies());
        let clients = pool.target.take_nfs_clients();
        let earlier_clients = std::mem::replace(&mut outcome.nfs_clients, clients);
        for (number, simulated) in pool.target.take_simulated_windows() {
            let mut windows = outcome.windows.iter_mut();
            if let Some(window) = windows.find(|w| w.totals.number == number) {
                window.simulated = Some(simulated);
            }
        }
        let done = self.team.merge(
            self.plan,
            outcome,
            windows,
            local,
            &mut self.states,
            &mut merged,
        );
        NfsClients::keep_larger(&mut outcome.nfs_clients, earlier_clients);
        if let Err(e) = done {
            self.report_intervals(&merged);
            return Err(e);
        }
        self.report_event(stage, outcome, &merged);
        self.team.agree_on_outcome(ran)
    }

    /// The instant at which all ranks start their workers; `None` if the run has only one rank.
    fn start_instant(&self) -> Result<Option<Instant>, EngineError> {
        match self.team.is_alone() {
            true => Ok(None),
            false => self.team.agree_on_start().map(Some),
        }
    }

    /// Reports the intervals of all ranks, at rank 0.
    fn report_intervals(&mut self, merged: &MergedPhase) {
        if self.team.is_root() {
            for interval in &merged.intervals {
                self.observer.event(Event::Interval(&interval.unpack()));
            }
        }
    }

    /// Reports, at rank 0, events that are known only when all ranks have ended.
    fn report_event(&mut self, stage: Option<u32>, outcome: &Outcome, merged: &MergedPhase) {
        if !self.team.is_root() {
            return;
        }
        self.report_intervals(merged);
        let Some(stage) = stage else { return };
        for (rank, rows) in &merged.samples {
            for (row, samples) in rows.iter().enumerate().filter(|(_, s)| !s.is_empty()) {
                self.observer.event(Event::Samples {
                    stage,
                    rank: *rank,
                    row: row as u32,
                    samples,
                });
            }
        }
        let pattern = self.plan.pattern().expect("only patterns have stages");
        let rows = match outcome.windows.last() {
            Some(window) if !pattern.stages[stage as usize].warm_up => &window.totals.rows[..],
            _ => &[],
        };
        self.observer.event(Event::StageEnd {
            stage,
            ranks: &merged.ranks,
            rows,
        });
    }

    /// The states of all filesets; a fileset that was not populated here has the initial state of its layout.
    fn all_states(&self, made: &[Option<Arc<FilesetState>>]) -> Vec<Arc<FilesetState>> {
        let ids = (0..).map(FilesetId);
        let states = ids.zip(made);
        let states = states.map(|(id, made)| made.clone().unwrap_or_else(|| self.state_of(id)));
        states.collect()
    }

    fn state_of(&self, id: FilesetId) -> Arc<FilesetState> {
        let part = rank_partition::part(self.plan, id, self.team);
        let layout = self.layouts[id.0 as usize].clone();
        let chooses_files =
            |g: &WorkerGroup| g.program.mix().is_some() || g.program.job().is_some();
        Arc::new(if self.plan.groups.iter().all(chooses_files) {
            FilesetState::without_entries(id, layout)
        } else {
            FilesetState::part(id, layout, part)
        })
    }

    /// Drops the files that the Plan wants cold from the page cache, or all caches of the machine.
    fn make_cold(&self, pool: &SetupPool, states: &[Arc<FilesetState>]) -> Result<(), EngineError> {
        if !pool.target.stores_data() {
            return Ok(());
        }
        for state in states {
            let wanted = self.plan.fileset(state.id).cached == Some(false);
            if self.plan.options.drop_caches == Cold::Files || wanted {
                cold::drop_tree(pool, &state.layout)
                    .map_err(|e| setup_error(pool, self.plan, e))?;
            }
        }
        match self.plan.options.drop_caches {
            Cold::System => cold::drop_system(),
            Cold::No | Cold::Files => Ok(()),
        }
    }

    /// Drops the objects that the Plan wants cold, or all caches of the machine, before a stage of a pattern.
    fn make_stage_cold(&self, pool: &SetupPool) -> Result<(), EngineError> {
        let Some(pattern) = self.plan.pattern().filter(|_| pool.target.keeps_files()) else {
            return Ok(());
        };
        match self.plan.options.drop_caches {
            Cold::No => Ok(()),
            Cold::System => cold::drop_system(),
            Cold::Files => {
                // A rank 0 without workers has read and written no objects.
                let Some(rank) = self.team.worker_rank() else {
                    return Ok(());
                };
                let begin = || RankStates::new(pattern);
                let dropped = cold::PatternFiles {
                    pattern,
                    rank,
                    past: &self.past,
                    now: &self.states.clone().unwrap_or_else(begin),
                }
                .drop(pool);
                dropped.map_err(|e| setup_error(pool, self.plan, e))
            }
        }
    }
}

/// Interval at which a wait of the script checks for a stop.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Sleep of the script while no worker runs; ends early when a stop is requested. A wait for the end of workers returns
/// at once.
fn idle_wait(until: plimsoll_plan::Until, stop: &Stop, team: &RankTeam<'_>) {
    let plimsoll_plan::Until::Elapsed { time } = until else {
        return;
    };
    let end = plimsoll_runtime::now() + time;
    while !team.is_stopped(stop) {
        let left = end.saturating_duration_since(plimsoll_runtime::now());
        if left.is_zero() {
            return;
        }
        plimsoll_runtime::sleep(left.min(STOP_POLL_INTERVAL));
    }
}
