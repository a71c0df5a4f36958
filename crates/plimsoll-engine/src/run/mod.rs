//! A run from its first phase to its last.

mod apart;
mod clean;
mod crew;
mod criteria;
mod lanes;
mod marker;
mod memory;
mod preflight;
mod segment;
mod store;
mod team;
mod tree;

pub use clean::clean;
pub(crate) use lanes::{Bell, WorkerId};
pub use preflight::{Preflight, preflight};

use crate::outcome::{Drawn, Failure, Outcome, Populated, Reason, Window};
use crate::store::FilesetState;
use crate::worker::{RankStates, Sample};
use crew::{Crew, CrewError};
use plimsoll_measure::{Clock, Interval, OpTotals, RankStage};
use plimsoll_plan::{Cold, FilesetId, Layout, Phase, Plan};
use plimsoll_ranks::{Ranks, Solo};
use plimsoll_target::{ContentPool, Purpose, Target, Visitor};
use rustix::process::{Pid, Signal};
use segment::{Segment, SegmentSpec};
use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use store::Workplace;
use team::{Merged, Team};

/// How a run is made, whatever the Plan.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the target.
    pub target: String,
    /// Real or virtual time.
    pub clock: ClockKind,
    /// Lanes that share the workers, on targets whose lanes are shared; without it one for each
    /// processor.
    pub lanes: Option<usize>,
    /// Length of an interval of the series.
    pub interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            target: "posix".into(),
            clock: ClockKind::Real,
            lanes: None,
            interval: Duration::from_secs(1),
        }
    }
}

/// Kinds of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockKind {
    /// Time that passes.
    Real,
    /// Time that jumps to the next event.
    Virtual,
}

/// Stops a run from outside: it ends as interrupted, with what was measured so far.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Asks the run to stop.
    pub fn request(&self) {
        self.0.store(true, Relaxed);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Why there is no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The run was not begun: bad input.
    #[error("{0}")]
    Refused(String),
    /// The run could not be carried out.
    #[error("{0}")]
    Failed(String),
    /// The run was stopped from outside before there was anything to measure.
    #[error("interrupted")]
    Interrupted,
}

impl EngineError {
    pub(crate) fn refused(e: impl Display) -> Self {
        Self::Refused(e.to_string())
    }
}

/// Is told what happens while a run goes on.
pub trait Observer {
    /// Something happened.
    fn event(&mut self, event: Event<'_>);
}

/// What happens while a run goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// A fileset is being made or checked.
    PopulateStart {
        /// Its name.
        fileset: &'a str,
        /// Files it will have.
        files: u64,
        /// Bytes they will have.
        bytes: u64,
    },
    /// So much of it is made.
    PopulateProgress {
        /// Files begun.
        files: u64,
        /// Bytes written.
        bytes: u64,
    },
    /// A fileset is there.
    PopulateEnd(&'a Populated),
    /// Workers have started.
    Started {
        /// How many.
        workers: u64,
        /// Lanes that drive them.
        lanes: usize,
    },
    /// A measured window opens, or opened just now.
    WindowOpened {
        /// Its number, from 1.
        number: u32,
    },
    /// An interval of the series is complete.
    Interval(&'a Interval),
    /// The run goes on.
    Tick {
        /// Time since the workers started.
        elapsed: Duration,
        /// Operations that count, since the workers started.
        ops: u64,
        /// Bytes they moved.
        bytes: u64,
    },
    /// Statistics the workload asked for.
    Snapshot {
        /// Time since the window opened.
        elapsed: Duration,
        /// Time the figures are of.
        period: Duration,
        /// One entry a row.
        rows: &'a [OpTotals],
    },
    /// The workload prints a line.
    Echo(&'a str),
    /// The ranks of a pattern have ended a stage; only at rank 0.
    StageEnd {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// One entry a rank, in their order.
        ranks: &'a [RankStage],
        /// All ranks together, one entry a row.
        rows: &'a [OpTotals],
    },
    /// The time of every operation of a row that a rank did in a stage, where it is kept.
    Samples {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
        /// The rank.
        rank: u32,
        /// Row of the results.
        row: u32,
        /// In the order of the operations.
        samples: &'a [Sample],
    },
    /// The files of the run are being removed.
    Cleaning,
}

/// Runs a Plan in this process alone.
///
/// # Errors
/// [`EngineError::Refused`] before anything was done, [`EngineError::Failed`] when the run could
/// not be carried out. An operation that fails is no error here: see
/// [`Outcome::failure`](crate::Outcome::failure).
pub fn run(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Outcome, EngineError> {
    run_ranks(plan, settings, stop, observer, &Solo::default())
}

/// Runs a Plan together with other processes, which all call this with the same Plan and
/// settings. Worker i belongs to rank i modulo the ranks. The outcome of all ranks is at rank 0;
/// the others have their own part of it.
///
/// # Errors
/// As [`run`]; an error of any rank is one of all.
pub fn run_ranks(
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    observer: &mut dyn Observer,
    ranks: &dyn Ranks,
) -> Result<Outcome, EngineError> {
    let team = Team::new(ranks);
    let look = preflight(plan, settings).and_then(|mut look| {
        look.refusals.extend(apart::refusals(plan, team.size()));
        match look.refusals.is_empty() {
            true => Ok(look.layouts),
            false => Err(EngineError::Refused(look.refusals.join("\n"))),
        }
    });
    let layouts = team.agree(look)?;
    if !team.leads() {
        // Rank 0 makes the work directory.
        team.agree(Ok(()))?;
    }
    let visitor = Runner {
        plan,
        settings,
        stop,
        observer,
        layouts,
        team: &team,
        states: None,
        held: None,
    };
    let connected = plimsoll_target::connect(&settings.target, &plan.place, Purpose::Load, visitor);
    match connected {
        Ok(outcome) => outcome,
        // The visitor never ran; the other ranks wait to hear how this went.
        Err(e) => Err(team
            .agree::<()>(Err(EngineError::refused(&e)))
            .err()
            .unwrap_or_else(|| EngineError::refused(e))),
    }
}

pub(crate) fn crew_for<T: Target>(target: Arc<T>, plan: &Plan) -> Result<Crew<T>, EngineError> {
    let content = ContentPool::new(plan.options.content, plan.stream("content"))
        .map_err(|e| EngineError::Failed(format!("no memory for what is written: {e}")))?;
    Ok(Crew {
        target,
        content,
        stop: Arc::default(),
    })
}

struct Runner<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    stop: &'a Stop,
    observer: &'a mut dyn Observer,
    layouts: Vec<Arc<Layout>>,
    team: &'a Team<'a>,
    /// How far the ranks of a pattern are.
    states: Option<RankStates>,
    /// Memory that a pattern holds while it runs.
    held: Option<memory::Held>,
}

impl Visitor for Runner<'_> {
    type Output = Result<Outcome, EngineError>;

    fn visit<T: Target>(mut self, target: T) -> Self::Output {
        let target = Arc::new(target);
        let team = self.team;
        if team.leads() {
            // The work directory is there: the others may connect.
            team.agree(Ok(()))?;
        }
        let mut crew = team.agree(crew_for(target.clone(), self.plan))?;
        crew.stop = self.stop.0.clone();
        // Whatever happens, what was made goes unless it is kept; a crew that was told to stop
        // would not do that.
        let cleaner = Crew {
            target: target.clone(),
            content: crew.content.clone(),
            stop: Arc::default(),
        };
        let place = match team.leads() {
            true => Workplace::claim(&crew, self.plan),
            false => Ok(Workplace::of_another(&crew, self.plan)),
        };
        let mut place = team.agree(place)?;
        let mut outcome = Outcome {
            target: target.describe(),
            ..Outcome::default()
        };
        let ran = self.script(&crew, &mut place, &mut outcome);
        // Nothing is removed while another rank may work in it; if a rank was lost, the others
        // have stopped.
        let _ = team.barrier();
        let cleaned = finish(&cleaner, place, self.plan, &mut outcome, self.observer);
        // What was measured is kept, whatever went wrong afterwards; and the first thing that
        // went wrong is the one to name.
        let measured = !outcome.windows.is_empty() || outcome.failure.is_some();
        match ran.and(cleaned) {
            Err(EngineError::Failed(error)) if measured => match &outcome.failure {
                Some(_) => outcome.notes.push(error),
                None => outcome.failure = Some(Failure::of_run(error)),
            },
            other => other?,
        }
        outcome.reasons.extend(verdict(self.plan, &outcome));
        Ok(outcome)
    }
}

/// Removes what the run made, or keeps it.
fn finish<'a, T: Target>(
    cleaner: &'a Crew<T>,
    mut place: Workplace<'a, T>,
    plan: &Plan,
    outcome: &mut Outcome,
    observer: &mut dyn Observer,
) -> Result<(), EngineError> {
    if !place.is_ours() {
        return Ok(());
    }
    if !outcome.stuck.is_empty() && cleaner.target.keeps_files() {
        outcome.notes.push(
            "files were left in place because workers are stuck in a system call; the next run \
             in the same directory removes them"
                .into(),
        );
        return Ok(());
    }
    place.work_with(cleaner);
    let keep = plan.options.keep || plan.pattern().is_some_and(|p| p.leaves_objects);
    if cleaner.target.keeps_files() && !keep {
        observer.event(Event::Cleaning);
    }
    let left = place.release(keep).map_err(|e| place.failed(e))?;
    for path in &left {
        let path = plan.place.dir.join(path);
        outcome.notes.push(format!(
            "`{}` was left: Plimsoll did not make it",
            path.display()
        ));
    }
    outcome.foreign = left;
    Ok(())
}

/// Share of all processors above which the client is taken to have been the bottleneck.
const SATURATED: f64 = 0.95;

/// Share of all processors that this process used in the window.
fn client_share(window: &Window) -> Option<f64> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let process = window.system.process.as_ref()?;
    let seconds = window.system.seconds;
    (seconds > 0.0).then(|| (process.user_s + process.system_s) / (seconds * cpus))
}

/// Whether a rate was asked for.
fn is_paced(plan: &Plan) -> bool {
    let paced =
        |g: &plimsoll_plan::WorkerGroup| g.program.mix().is_some_and(|m| m.pacing.is_some());
    plan.event_rate.is_some() || plan.groups.iter().any(paced)
}

/// What makes the result invalid.
fn verdict(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let mut reasons = Vec::new();
    // Every stage of a pattern is a part of its result; of other workloads the last window is.
    let result = match plan.pattern() {
        Some(_) => &outcome.windows[..],
        None => outcome.windows.last().map_or(&[][..], std::slice::from_ref),
    };
    if !result.is_empty() {
        let rows = || {
            result
                .iter()
                .flat_map(|w| w.totals.rows.iter().zip(&plan.operations))
        };
        let ops: u64 = rows()
            .filter(|(_, o)| o.kind.counts())
            .map(|(r, _)| r.ops)
            .sum();
        let errors: u64 = rows().map(|(r, _)| r.error_count()).sum();
        if errors > 0 && outcome.failure.is_none() {
            let text = format!("{errors} operations failed in the measured window");
            reasons.push(Reason {
                code: "errors",
                text,
            });
        }
        if ops == 0 {
            let text = "no operation completed in the measured window".into();
            reasons.push(Reason {
                code: "no_operations",
                text,
            });
        }
    } else if outcome.failure.is_none() {
        let text = "the workload measures nothing".into();
        reasons.push(Reason {
            code: "no_window",
            text,
        });
    }
    // A closed loop is as fast as client and server together; only when a rate was asked for can
    // the client have kept the server from it.
    if let Some(share) = outcome.windows.last().and_then(client_share)
        && share > SATURATED
        && is_paced(plan)
    {
        let share = share * 100.0;
        let text = format!(
            "the client used {share:.0} % of its processors: it may be what held the rate back"
        );
        reasons.push(Reason {
            code: "client_saturated",
            text,
        });
    }
    reasons.extend(criteria::reasons(plan, outcome));
    if !outcome.stuck.is_empty() {
        let text = format!(
            "{} did not come back from a system call within 10 s of the end",
            outcome.stuck.join(", ")
        );
        reasons.push(Reason {
            code: "stuck",
            text,
        });
    }
    reasons
}

impl Runner<'_> {
    fn script<T: Target>(
        &mut self,
        crew: &Crew<T>,
        place: &mut Workplace<'_, T>,
        outcome: &mut Outcome,
    ) -> Result<(), EngineError> {
        let clock = match self.settings.clock {
            ClockKind::Real => Clock::real(),
            ClockKind::Virtual => Clock::simulated(),
        };
        let mut filesets: Vec<Option<Arc<FilesetState>>> = vec![None; self.layouts.len()];
        let mut at = 0;
        let script = &self.plan.script;
        while at < script.len() && outcome.failure.is_none() && outcome.stuck.is_empty() {
            if self.team.any(self.stop.is_requested())? {
                outcome.interrupted = true;
                return if outcome.windows.is_empty() {
                    Err(EngineError::Interrupted)
                } else {
                    Ok(())
                };
            }
            match &script[at] {
                Phase::Start => {
                    let states = self.all_states(&filesets);
                    self.make_cold(crew, &states)?;
                    let ready = place.about_to_use();
                    self.team.agree(ready)?;
                    at = self.segment(crew, &clock, states, None, at, outcome)?;
                    continue;
                }
                Phase::StartStage { stage } => {
                    at = self.segment(crew, &clock, vec![], Some(*stage), at, outcome)?;
                    continue;
                }
                phase => {
                    let done = self.between(phase, place, &mut filesets, outcome);
                    self.team.agree(done)?;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// A phase while no workers work.
    fn between<T: Target>(
        &mut self,
        phase: &Phase,
        place: &mut Workplace<'_, T>,
        filesets: &mut [Option<Arc<FilesetState>>],
        outcome: &mut Outcome,
    ) -> Result<(), EngineError> {
        match phase {
            Phase::Populate { filesets: ids } => {
                for id in ids {
                    let slot = &mut filesets[id.0 as usize];
                    if slot.is_none() {
                        let layout = &self.layouts[id.0 as usize];
                        if self.team.leads() {
                            let made = place.populate(*id, layout, self.observer)?;
                            outcome.populated.push(made);
                        }
                        let part = apart::part(self.plan, *id, self.team);
                        *slot = Some(Arc::new(FilesetState::part(*id, layout.clone(), part)));
                    }
                }
            }
            Phase::Echo { text } if self.team.leads() => self.observer.event(Event::Echo(text)),
            Phase::System { command } if self.team.leads() => {
                shell(command, self.stop, outcome)?;
            }
            Phase::Wait { until, .. } => idle_wait(*until, self.stop),
            _ => {}
        }
        Ok(())
    }

    /// A part of the run in which workers work; returns where the script goes on.
    fn segment<T: Target>(
        &mut self,
        crew: &Crew<T>,
        clock: &Clock,
        filesets: Vec<Arc<FilesetState>>,
        stage: Option<u32>,
        at: usize,
        outcome: &mut Outcome,
    ) -> Result<usize, EngineError> {
        let windows = outcome.windows.len();
        if let (Some(stage), Some(pattern)) = (stage, self.plan.pattern()) {
            if let (Some(leave), None) = (pattern.hold_memory, &self.held) {
                self.held = Some(memory::Held::until_free(leave, self.stop));
            }
            let squeeze = pattern.stages[stage as usize].squeeze_memory;
            if let Some(leave) = squeeze {
                drop(memory::Held::until_free(leave, self.stop));
            }
            self.states.get_or_insert_with(|| RankStates::new(pattern));
        }
        let segment = Segment::new(
            SegmentSpec {
                crew,
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
        let mut segment = match (self.team.agree(started), segment) {
            (Ok(()), segment) => segment?,
            (Err(e), segment) => {
                segment.map(|s| s.abandon()).ok();
                return Err(e);
            }
        };
        let ran = segment.run(at + 1, self.observer);
        let (intervals, local) = segment.into_local(self.plan)?;
        // What this rank did alone is kept for those who ask for each rank's results.
        let merged = self.team.merge(
            self.plan,
            outcome,
            windows,
            intervals,
            local,
            &mut self.states,
        )?;
        self.tell(stage, outcome, &merged);
        self.team.agree(ran)
    }

    /// Tells the observer what is only known once all ranks have ended.
    fn tell(&mut self, stage: Option<u32>, outcome: &Outcome, merged: &Merged) {
        if !self.team.leads() {
            return;
        }
        for interval in &merged.intervals {
            self.observer.event(Event::Interval(interval));
        }
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
        if let (Some(done), Some(window)) = (outcome.stages.last(), outcome.windows.last()) {
            self.observer.event(Event::StageEnd {
                stage,
                ranks: &done.ranks,
                rows: &window.totals.rows,
            });
        }
    }

    /// States of all filesets; one that was never populated has no files yet.
    fn all_states(&self, made: &[Option<Arc<FilesetState>>]) -> Vec<Arc<FilesetState>> {
        let state = |(i, made): (usize, &Option<Arc<FilesetState>>)| {
            let id = FilesetId(i as u32);
            let part = || apart::part(self.plan, id, self.team);
            let new = || Arc::new(FilesetState::part(id, self.layouts[i].clone(), part()));
            made.clone().unwrap_or_else(new)
        };
        made.iter().enumerate().map(state).collect()
    }

    /// Drops from the page cache what is to be cold.
    fn make_cold<T: Target>(
        &self,
        crew: &Crew<T>,
        states: &[Arc<FilesetState>],
    ) -> Result<(), EngineError> {
        if !crew.target.keeps_files() {
            return Ok(());
        }
        for state in states {
            let wanted = self.plan.fileset(state.id).cached == Some(false);
            if self.plan.options.cold == Cold::Files || wanted {
                tree::drop_cache(crew, &state.layout).map_err(|e| crew_error(self.plan, e))?;
            }
        }
        if self.plan.options.cold == Cold::System {
            rustix::fs::sync();
            std::fs::write("/proc/sys/vm/drop_caches", "3").map_err(|e| {
                EngineError::Failed(format!("cannot drop the machine's caches: {e}"))
            })?;
        }
        Ok(())
    }
}

pub(crate) fn crew_error(plan: &Plan, e: CrewError) -> EngineError {
    match e {
        CrewError::Stopped => EngineError::Interrupted,
        CrewError::Failed {
            action,
            path,
            error,
        } => {
            let path = plan.place.dir.join(path);
            EngineError::Failed(format!("cannot {action} `{}`: {error}", path.display()))
        }
    }
}

/// How often a wait of the script looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a shell command of the workload; front ends let it through only when it is allowed. When
/// the run is stopped, the command and what it started are stopped too.
fn shell(command: &str, stop: &Stop, outcome: &mut Outcome) -> Result<(), EngineError> {
    let failed = |e| EngineError::Failed(format!("cannot run `{command}`: {e}"));
    let mut shell = std::process::Command::new("sh");
    let mut child = shell
        .arg("-c")
        .arg(command)
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if stop.is_requested() {
            if let Some(group) = Pid::from_raw(child.id() as i32) {
                // It may have ended by itself meanwhile.
                let _ = rustix::process::kill_process_group(group, Signal::TERM);
            }
            break child.wait().map_err(failed)?;
        }
        std::thread::sleep(LOOK);
    };
    if !status.success() {
        outcome
            .notes
            .push(format!("`{command}` ended with {status}"));
    }
    Ok(())
}

/// A sleep of the script while no worker runs.
fn idle_wait(until: plimsoll_plan::Until, stop: &Stop) {
    let plimsoll_plan::Until::Elapsed { time } = until else {
        return;
    };
    let end = std::time::Instant::now() + time;
    while !stop.is_requested() {
        let left = end.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

/// What testrandvar drew, by operation.
pub(crate) fn drawn(plan: &Plan, stats: &[(u32, crate::VariableStats)]) -> Vec<Drawn> {
    let name = |row: u32| plan.operations[row as usize].name.clone();
    stats
        .iter()
        .map(|(row, stats)| Drawn {
            name: name(*row),
            stats: *stats,
        })
        .collect()
}
