//! A part of a run in which workers work: from their start to their stop.

mod end;

use super::lanes::{LaneContext, LanePlan, StartGate, assign, specs, workers};
use super::setup_pool::SetupPool;
use super::team::RankTeam;
use super::{EngineError, Event, Observer, Settings, Stop};
use crate::file_pool::FilesetState;
use crate::outcome::Outcome;
use crate::run_state::{Limits, RunState};
use crate::stage_state::{RankStates, StageRun};
use crate::sync::ControllerWakeup;
use crate::sync::lock;
use crate::worker_id::WorkerId;
use end::HUNG_WORKER_TIMEOUT;
use plimsoll_lane::LaneKind;
use plimsoll_measure::system::Snapshot;
use plimsoll_measure::{
    Clock, ClockKind, Collector, Interval, Nanos, OpTotals, Recorder, WindowBounds, WindowState,
};
use plimsoll_plan::{OpsLimit, Phase, Plan, QuitMode, Snapshots, Until};
use plimsoll_ranks::GroupStatus;
use plimsoll_target::Target;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// How often the controller looks.
const CONTROL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How often the observer hears that the run goes on.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// Looks at workers that all wait for each other before that is taken for a deadlock.
const DEADLOCK_POLLS: u32 = 250;

/// The window that is open.
struct ActiveWindow {
    system: Option<Snapshot>,
    started: SystemTime,
    instant: Instant,
    announced: bool,
}

/// Periodic statistics of a window.
struct PeriodicSnapshots {
    how: Snapshots,
    rows: Vec<OpTotals>,
    from: Nanos,
    next: Nanos,
}

/// What a part of a run is made with.
pub(crate) struct LoadPhaseSpec<'a, 'b, T: Target> {
    pub(crate) setup_pool: &'b SetupPool<T>,
    pub(crate) plan: &'a Plan,
    pub(crate) settings: &'b Settings,
    pub(crate) stop: &'a Stop,
    pub(crate) clock: &'b Clock,
    pub(crate) team: &'a RankTeam<'a>,
    /// The stage, if workers are ranks of a pattern, and how far they are.
    pub(crate) stage: Option<(u32, RankStates)>,
}

pub(crate) struct LoadPhase<'a> {
    plan: &'a Plan,
    stop: &'a Stop,
    team: &'a RankTeam<'a>,
    /// Intervals that wait for those of the other ranks.
    intervals: Vec<Interval>,
    /// The ranks have agreed how many rounds a stage has.
    agreed: bool,
    /// When this rank knew that all ranks had ended the stage.
    all_ended: Nanos,
    trouble: Option<EngineError>,
    shared: Arc<RunState>,
    collector: Collector,
    all: Vec<WorkerId>,
    gate: Arc<StartGate>,
    bell: Arc<ControllerWakeup>,
    outcome: &'a mut Outcome,
    kind: LaneKind,
    open: Option<ActiveWindow>,
    /// The window of the next [`Phase::OpenWindow`] is open already.
    scheduled: bool,
    /// The script has a window that was not opened any more.
    missed_window: bool,
    periodic: Option<PeriodicSnapshots>,
    /// Instant up to which the script has come.
    cursor: Nanos,
    ticked: Instant,
    waiting_looks: u32,
    last_done: u64,
}

impl<'a> LoadPhase<'a> {
    /// Starts the lanes; they wait at the gate.
    pub(crate) fn new<T: Target>(
        spec: LoadPhaseSpec<'a, '_, T>,
        filesets: Vec<Arc<FilesetState>>,
        outcome: &'a mut Outcome,
    ) -> Result<Self, EngineError> {
        let LoadPhaseSpec {
            setup_pool: pool,
            plan,
            settings,
            stop,
            clock,
            team,
            stage,
        } = spec;
        let kind = match settings.clock {
            ClockKind::Virtual => LaneKind::Virtual,
            ClockKind::Real => pool.target.lane_kind(),
        };
        let all = workers(plan, team.rank(), team.size());
        let interval = settings.interval.as_nanos() as Nanos;
        // Windows that were dropped have numbers too.
        let before = outcome.windows.last().map_or(0, |w| w.totals.number);
        let window = WindowState::following(interval, before);
        let (gate, bell) = (
            Arc::new(StartGate::default()),
            Arc::new(ControllerWakeup::default()),
        );
        let stage = stage
            .map(|(stage, states)| StageRun::new(stage, states, !team.is_alone(), bell.clone()));
        let limits = Limits {
            events: plan
                .event_rate
                .map(|rate| rate * all.len() as f64 / plan.workers().max(1) as f64),
            total: match plan.options.ops {
                Some(OpsLimit::Total(n)) => Some(team.share_of(n)),
                _ => None,
            },
        };
        let shared = RunState::new(plan, clock.clone(), window, filesets, &all, limits, stage);
        let mut shared = shared.map_err(EngineError::Refused)?;
        let target = pool.target.clone();
        shared.explain = Box::new(move |e| target.explain(e));
        let shared = Arc::new(shared);
        let lanes: Vec<_> = assign(kind, settings.lanes, &all)
            .into_iter()
            .map(|workers| {
                let recorder = Recorder::new(shared.window.clone(), &specs(&shared, &workers));
                (workers, recorder)
            })
            .collect();
        let progress: Vec<_> = lanes.iter().map(|(_, r)| r.progress()).collect();
        // Set once, right here.
        let _ = shared.progress.set(progress.clone());
        let count = lanes.len();
        for (number, (workers, recorder)) in lanes.into_iter().enumerate() {
            let rest = LaneContext {
                workers,
                recorder,
                shared: shared.clone(),
                gate: gate.clone(),
                bell: bell.clone(),
            };
            if let Err(e) = LanePlan::of(pool, kind, number, rest).spawn() {
                // Those that were started end at once.
                shared.end_run(0);
                gate.open();
                let begun = std::time::Instant::now();
                let out = || progress[..number].iter().all(|lane| lane.ended());
                while !out() && begun.elapsed() < HUNG_WORKER_TIMEOUT {
                    bell.wait(CONTROL_POLL_INTERVAL);
                }
                return Err(EngineError::Failed(format!(
                    "cannot start thread {} of {count}: {e}",
                    number + 1
                )));
            }
        }
        let collector = Collector::new(shared.window.clone(), progress, plan.operations.len())
            .counting(shared.counted());
        outcome.lanes = count;
        gate.wait_for(count);
        Ok(Self {
            plan,
            stop,
            team,
            intervals: Vec::new(),
            agreed: false,
            all_ended: 0,
            trouble: None,
            shared,
            collector,
            all,
            gate,
            bell,
            outcome,
            kind,
            open: None,
            scheduled: false,
            missed_window: false,
            periodic: None,
            cursor: 0,
            ticked: Instant::now(),
            waiting_looks: 0,
            last_done: 0,
        })
    }

    /// Lets the lanes end without any work, because another rank has none that could begin.
    pub(crate) fn abandon(self) {
        self.shared.end_run(0);
        self.gate.open();
    }

    /// Opens the gate and follows the script from `at` until the workers are stopped; returns
    /// where the script goes on.
    pub(crate) fn run(
        &mut self,
        at: usize,
        observer: &mut dyn Observer,
    ) -> Result<usize, EngineError> {
        let script = &self.plan.script;
        let lanes = self.collector.lanes().len();
        self.cursor = self.shared.clock.now();
        self.shared.started.store(self.cursor, Relaxed);
        self.schedule(&script[at..]);
        observer.event(Event::Started {
            workers: self.plan.workers(),
            lanes,
        });
        self.gate.open();
        let mut at = at;
        while at < script.len() {
            match &script[at] {
                Phase::Stop => {
                    at += 1;
                    break;
                }
                // Commands of a run that is over are not run any more.
                Phase::System { .. } | Phase::Echo { .. } if self.is_cut_short() => {}
                // The result is the window that was open when the run ended, and not an empty one.
                Phase::OpenWindow if !self.scheduled && self.has_run_out() => {
                    self.missed_window = true;
                }
                phase => {
                    if let Err(e) = self.phase(phase, &script[at + 1..], observer) {
                        // Nothing is removed under workers that still work.
                        self.end(observer);
                        return Err(e);
                    }
                }
            }
            at += 1;
        }
        self.end(observer);
        Ok(at)
    }

    fn phase(
        &mut self,
        phase: &Phase,
        next: &[Phase],
        observer: &mut dyn Observer,
    ) -> Result<(), EngineError> {
        match phase {
            Phase::OpenWindow => {
                if !std::mem::take(&mut self.scheduled) {
                    self.open_window(next);
                }
            }
            Phase::Wait { until, snapshots } => self.wait(*until, *snapshots, observer),
            Phase::CloseWindow => self.close_window(observer),
            Phase::Echo { .. } | Phase::System { .. } if !self.team.is_root() => {}
            Phase::Echo { text } => observer.event(Event::Echo(text)),
            Phase::System { command } => {
                let stopped = || self.stop.is_requested();
                super::command::run_shell(command, &stopped, self.outcome)?;
            }
            // Trees are made before workers start; a second start has nothing to start.
            Phase::Populate { .. } | Phase::Start | Phase::StartStage { .. } | Phase::Stop => {}
        }
        Ok(())
    }

    /// If everything up to the first window's end depends on time alone, sets its instants
    /// before the workers start, so that all of them see the same two.
    fn schedule(&mut self, phases: &[Phase]) {
        let mut at = self.cursor;
        for (i, phase) in phases.iter().enumerate() {
            match phase {
                Phase::Wait {
                    until: Until::Elapsed { time },
                    ..
                } => at += time.as_nanos() as u64,
                Phase::Echo { .. } => {}
                Phase::OpenWindow => {
                    self.cursor = at;
                    self.open_window(&phases[i + 1..]);
                    self.cursor = self.shared.started.load(Relaxed);
                    self.scheduled = true;
                    return;
                }
                _ => return,
            }
        }
    }

    /// Opens a window at the cursor. What follows may already say when it ends, and that the run
    /// ends with it.
    fn open_window(&mut self, next: &[Phase]) {
        let mut end = Nanos::MAX;
        let mut at = self.cursor;
        for phase in next {
            match phase {
                Phase::Wait { until, .. } => match until {
                    Until::Elapsed { time } => at += time.as_nanos() as u64,
                    Until::Done {
                        at_most: Some(time),
                    } => at += time.as_nanos() as u64,
                    Until::Done { at_most: None } => break,
                },
                Phase::Echo { .. } => {}
                Phase::CloseWindow => end = at,
                Phase::Stop if end != Nanos::MAX => {
                    self.shared.deadline.bring_forward(end);
                    break;
                }
                _ => break,
            }
        }
        self.shared.window.open(self.cursor, end);
        self.open = Some(ActiveWindow {
            system: None,
            started: SystemTime::now(),
            instant: Instant::now(),
            announced: false,
        });
    }

    /// Whether somebody or something ended the run before its script did.
    fn is_cut_short(&self) -> bool {
        self.outcome.interrupted || lock(&self.shared.failure).is_some() || self.has_run_out()
    }

    /// Whether a worker of this rank found nothing left to work on, which ended the run.
    fn has_run_out(&self) -> bool {
        lock(&self.shared.ran_out).is_some()
    }

    /// Whether a worker of this rank is done and the run ends with the first that is.
    fn is_first_done(&self) -> bool {
        self.plan.quit == QuitMode::FirstDone && self.shared.live.load(Relaxed) < self.all.len()
    }

    /// Whether the workers have all ended or are about to.
    fn is_over(&self) -> bool {
        self.collector.lanes().iter().all(|l| l.ended())
            || self.shared.clock.now() >= self.shared.deadline.at()
    }

    fn wait(&mut self, until: Until, snapshots: Option<Snapshots>, observer: &mut dyn Observer) {
        let end = match until {
            Until::Elapsed { time } => self.cursor.saturating_add(time.as_nanos() as u64),
            Until::Done {
                at_most: Some(time),
            } => self.cursor.saturating_add(time.as_nanos() as u64),
            Until::Done { at_most: None } => Nanos::MAX,
        };
        self.periodic = snapshots.map(|how| {
            let rows = vec![OpTotals::default(); self.plan.operations.len()];
            PeriodicSnapshots {
                how,
                rows,
                from: 0,
                next: how.every.as_nanos() as u64,
            }
        });
        while self.shared.clock.now() < end && !self.is_over() {
            self.check_progress(observer);
            // In virtual time only the lane can tell when it is over.
            let left = match self.kind {
                LaneKind::Virtual => CONTROL_POLL_INTERVAL,
                _ => Duration::from_nanos(end.saturating_sub(self.shared.clock.now())),
            };
            self.bell.wait(left.min(CONTROL_POLL_INTERVAL));
        }
        // It may have been requested after the last look.
        self.heed_stop();
        self.cursor = if self.is_over() {
            self.shared.clock.now().min(end)
        } else {
            end
        };
    }

    /// Takes what the lanes delivered, tells the observer, and looks for reasons to stop.
    fn check_progress(&mut self, observer: &mut dyn Observer) {
        self.watch_window(observer);
        for interval in self.collector.drain() {
            self.report_interval(&interval, observer);
        }
        for text in lock(&self.shared.messages).drain(..) {
            observer.event(Event::Echo(&text));
        }
        self.heed_stop();
        self.poll_ranks();
        self.watch_deadlock();
        if self.ticked.elapsed() >= TICK_INTERVAL {
            self.ticked = Instant::now();
            let (ops, bytes) = self.shared.done(None);
            let since = self.shared.clock.now() - self.shared.started.load(Relaxed);
            observer.event(Event::Tick {
                elapsed: Duration::from_nanos(since),
                ops,
                bytes,
            });
        }
    }

    /// Ends the run if a stop was requested.
    fn heed_stop(&mut self) {
        if self.stop.is_requested() && !self.outcome.interrupted {
            self.outcome.interrupted = true;
            self.shared.end_run(self.shared.clock.now());
        }
    }

    /// Tells the other ranks when this one stops early, and hears when one of them does.
    fn poll_ranks(&mut self) {
        if self.is_cut_short() || self.is_first_done() {
            self.team.request_stop_all();
        }
        match self.team.poll_group_status() {
            GroupStatus::Nothing => {}
            // Whoever asked says why when all report.
            GroupStatus::Stop => self.shared.end_run(self.shared.clock.now()),
            GroupStatus::Failed(e) => {
                self.shared
                    .fail_unnamed(e.to_string(), self.shared.clock.now());
            }
        }
        let proposed = self.shared.stage.as_ref().and_then(StageRun::proposed);
        if let Some(rounds) = proposed {
            self.agree_on_rounds(rounds);
        }
    }

    /// Agrees with the other ranks on the rounds of a stage whose stonewall has a wear-out; every
    /// rank does so exactly once, whatever happened to its worker.
    fn agree_on_rounds(&mut self, rounds: u64) {
        let Some(run) = self.shared.stage.as_ref() else {
            return;
        };
        let wall = run.of(self.plan).and_then(|(_, stage)| stage.stonewall);
        if self.agreed || !wall.is_some_and(|w| w.wear_out) {
            return;
        }
        self.agreed = true;
        match self.team.max_over_ranks(rounds) {
            Ok(all) => run.agree(all),
            Err(e) => self
                .shared
                .fail_unnamed(e.to_string(), self.shared.clock.now()),
        }
    }

    /// Takes the machine's counters when the window's first instant comes.
    fn watch_window(&mut self, observer: &mut dyn Observer) {
        let WindowBounds { number, start, .. } = self.shared.window.bounds();
        let now = self.shared.clock.now();
        if let Some(open) = self.open.as_mut().filter(|o| !o.announced && now >= start) {
            open.announced = true;
            open.system = Some(Snapshot::take());
            let late = Duration::from_nanos(now - start);
            let late = if self.kind == LaneKind::Virtual {
                Duration::ZERO
            } else {
                late
            };
            open.started = SystemTime::now()
                .checked_sub(late)
                .unwrap_or(SystemTime::UNIX_EPOCH);
            open.instant = Instant::now()
                .checked_sub(late)
                .unwrap_or_else(Instant::now);
            observer.event(Event::WindowOpened { number });
        }
    }

    /// Workers that all wait for each other would do so for ever, unless the time is limited.
    fn watch_deadlock(&mut self) {
        let live = self.shared.live.load(Relaxed);
        let (done, _) = self.shared.done(None);
        let all_wait = live > 0 && self.shared.idle.waiting() >= live && done == self.last_done;
        self.last_done = done;
        self.waiting_looks = if all_wait { self.waiting_looks + 1 } else { 0 };
        if self.waiting_looks >= DEADLOCK_POLLS && self.shared.deadline.at() == Nanos::MAX {
            let error = format!("deadlock: all {live} workers that are left wait for each other");
            let now = self.shared.clock.now();
            self.shared.fail_unnamed(error, now);
        }
    }

    fn report_interval(&mut self, interval: &Interval, observer: &mut dyn Observer) {
        if self.team.is_alone() {
            observer.event(Event::Interval(interval));
        } else {
            self.intervals.push(interval.clone());
        }
        let Some(periodic) = &mut self.periodic else {
            return;
        };
        for (sum, row) in periodic.rows.iter_mut().zip(&interval.rows) {
            sum.add(row);
        }
        let end = interval.start + interval.length;
        if end >= periodic.next {
            let elapsed = Duration::from_nanos(end);
            let period = Duration::from_nanos(end - periodic.from);
            observer.event(Event::Snapshot {
                elapsed,
                period,
                rows: &periodic.rows,
            });
            periodic.next = end + periodic.how.every.as_nanos() as u64;
            if periodic.how.cleared {
                periodic.from = end;
                periodic.rows.fill(OpTotals::default());
            }
        }
    }
}
