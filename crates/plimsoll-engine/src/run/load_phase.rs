//! Load phases: the parts of a run in which workers work, from their start to their stop.

mod end;
mod rules;

use super::lanes::{LanePlan, StartGate, assign, specs, workers};
use super::setup_pool::SetupPool;
use super::team::{PackedInterval, RankTeam};
use super::{EngineError, Event, Observer, Settings, Stop};
use crate::file_pool::FilesetState;
use crate::run_state::{Limits, RunState};
use crate::schedule::own_event_rate;
use crate::stage_state::{RankStates, StageRun};
use crate::sync::{ControllerWakeup, lock};
use crate::worker_id::WorkerId;
use end::HUNG_WORKER_TIMEOUT;
use plimsoll_lane::LaneKind;
use plimsoll_measure::system::Snapshot;
use plimsoll_measure::{
    Clock, Collector, Interval, LaneProgress, Nanos, OpTotals, Outcome, Recorder, StartFigures,
    WindowBounds, WindowState,
};
use plimsoll_plan::{OpsLimit, Phase, Plan, QuitMode, Snapshots, Until};
use plimsoll_ranks::GroupStatus;
use rules::Look;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// Interval of the controller's checks.
const CONTROL_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Interval of the controller's checks while virtual time waits for the look at a rule.
const VIRTUAL_LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Interval of the observer's ticks.
const TICK_INTERVAL: Duration = Duration::from_millis(500);

/// Number of consecutive checks at which all workers wait for each other, before the waits count as a deadlock.
const DEADLOCK_POLLS: u32 = 250;

/// An open window, with the clocks and counters that were read at its start.
struct ActiveWindow {
    /// The machine's counters at the start of the window; `None` until they are read.
    system: Option<Snapshot>,
    started: SystemTime,
    instant: Instant,
    announced: bool,
}

/// State of the periodic statistics that the workload requested for a window.
struct PeriodicSnapshots {
    how: Snapshots,
    rows: Vec<OpTotals>,
    from: Nanos,
    next: Nanos,
}

/// Plan, resources and communication of a load phase: the measured work of a workload, or one stage of a pattern.
pub(crate) struct LoadPhaseSpec<'a, 'b> {
    pub(crate) setup_pool: &'b SetupPool,
    pub(crate) plan: &'a Plan,
    pub(crate) settings: &'b Settings,
    pub(crate) stop: &'a Stop,
    pub(crate) clock: &'b Clock,
    pub(crate) team: &'a RankTeam<'a>,
    /// The stage, and the progress of the ranks, if the workers are ranks of a pattern.
    pub(crate) stage: Option<(u32, RankStates)>,
}

impl LoadPhaseSpec<'_, '_> {
    /// The state that the workers share, after `windows` windows of earlier phases.
    fn run_state(
        &self,
        filesets: Vec<Arc<FilesetState>>,
        workers: &[WorkerId],
        windows: u32,
        bell: &Arc<ControllerWakeup>,
    ) -> Result<RunState, EngineError> {
        let (plan, team) = (self.plan, self.team);
        let interval = self.settings.interval.as_nanos() as Nanos;
        let window = WindowState::following(interval, windows);
        let stage = self.stage.clone().map(|(stage, states)| {
            let pattern = plan.pattern().expect("only patterns have stages");
            let work = &pattern.stages[stage as usize].work;
            StageRun::new(stage, states, workers.len(), !team.is_alone(), bell.clone())
                .with_all_gathers(work.needs_all_gathers())
        });
        let limits = Limits {
            events: own_event_rate(plan, workers),
            total: match plan.options.ops {
                Some(OpsLimit::Total(n)) => Some(team.share_of(n)),
                _ => None,
            },
        };
        let clock = self.clock.clone();
        let shared = RunState::new(plan, clock, window, filesets, workers, limits, stage);
        let mut shared = shared.map_err(EngineError::Refused)?;
        let target = self.setup_pool.target.clone();
        shared.explain = Box::new(move |e| target.explain(e));
        Ok(shared)
    }

    /// Starts one thread for each lane. If a thread does not start, ends the started lanes and returns an error.
    fn start_lanes(
        &self,
        kind: LaneKind,
        workers: &[WorkerId],
        shared: &Arc<RunState>,
        gate: &Arc<StartGate>,
        bell: &Arc<ControllerWakeup>,
    ) -> Result<Vec<Arc<LaneProgress>>, EngineError> {
        let pool = self.setup_pool;
        let lanes = assign(kind, pool.target.requested_lanes(), workers).into_iter();
        let lanes = lanes.enumerate().map(|(number, workers)| LanePlan {
            target: pool.target.clone(),
            contents: pool.contents.clone(),
            kind,
            number,
            recorder: Recorder::new(shared.window.clone(), &specs(shared, &workers)),
            workers,
            shared: shared.clone(),
            gate: gate.clone(),
            bell: bell.clone(),
        });
        let lanes: Vec<LanePlan> = lanes.collect();
        let progress: Vec<_> = lanes.iter().map(|l| l.recorder.progress()).collect();
        let first = shared.progress.set(progress.clone()).is_ok();
        assert!(first, "the lanes of a phase are started once");
        for (started, lane) in lanes.into_iter().enumerate() {
            if let Err(e) = lane.spawn() {
                // The lanes that were started end at once.
                shared.end_run(0);
                gate.open();
                let begun = plimsoll_runtime::now();
                let out = || progress[..started].iter().all(|lane| lane.ended());
                while !out() && plimsoll_runtime::elapsed(begun) < HUNG_WORKER_TIMEOUT {
                    bell.wait(CONTROL_POLL_INTERVAL);
                }
                return Err(EngineError::Failed(format!(
                    "cannot start thread {} of {}: {e}",
                    started + 1,
                    progress.len()
                )));
            }
        }
        Ok(progress)
    }
}

/// The controller of a load phase in progress: executes the script, opens and closes windows, and stops the workers.
pub(crate) struct LoadPhase<'a> {
    plan: &'a Plan,
    stop: &'a Stop,
    team: &'a RankTeam<'a>,
    /// Intervals of this rank, which are reported together with the intervals of the other ranks.
    intervals: Vec<PackedInterval>,
    /// Whether the processes have agreed on the rounds of a stage.
    agreed: bool,
    /// Instant at which this rank learned that all ranks had ended the stage; 0 before.
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
    /// Whether the window of the next [`Phase::OpenWindow`] is already open.
    scheduled: bool,
    /// Whether the script has a window that was not opened.
    missed_window: bool,
    periodic: Option<PeriodicSnapshots>,
    /// The instant that the execution of the script has reached, in nanoseconds of the run's clock.
    cursor: Nanos,
    ticked: Instant,
    waiting_looks: u32,
    last_done: u64,
}

impl<'a> LoadPhase<'a> {
    /// Starts the lanes, which wait at the gate.
    pub(crate) fn new(
        spec: LoadPhaseSpec<'a, '_>,
        filesets: Vec<Arc<FilesetState>>,
        outcome: &'a mut Outcome,
    ) -> Result<Self, EngineError> {
        let (plan, team) = (spec.plan, spec.team);
        let kind = spec.setup_pool.target.lane_kind();
        let rank = team.worker_rank();
        let all = rank.map_or(vec![], |rank| workers(plan, rank, team.worker_ranks()));
        let (gate, bell) = (Arc::default(), Arc::default());
        // The number of the last window may exceed the count of windows, because dropped windows have numbers too.
        let windows = outcome.windows.last().map_or(0, |w| w.totals.number);
        let shared = Arc::new(spec.run_state(filesets, &all, windows, &bell)?);
        let lanes = spec.start_lanes(kind, &all, &shared, &gate, &bell)?;
        outcome.lanes = lanes.len();
        gate.wait_for(lanes.len());
        let collector = Collector::new(shared.window.clone(), lanes, plan.operations.len())
            .counting(shared.counted());
        Ok(Self {
            plan,
            stop: spec.stop,
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
            ticked: plimsoll_runtime::now(),
            waiting_looks: 0,
            last_done: 0,
        })
    }

    /// Ends the lanes before their workers begin, because the ranks cannot start together.
    pub(crate) fn abandon(self) {
        self.shared.end_run(0);
        self.gate.open();
    }

    /// Opens the gate, at the instant `start` if the run has several ranks, and executes the script from phase `at`
    /// until the workers are stopped. Returns the position of the next phase. `counters` were read before the start,
    /// because on a busy machine workers do much during the reading.
    pub(crate) fn run(
        &mut self,
        at: usize,
        start: Option<Instant>,
        counters: Snapshot,
        observer: &mut dyn Observer,
    ) -> Result<usize, EngineError> {
        let script = &self.plan.script;
        let lanes = self.collector.lanes().len();
        let until = start.map_or(Duration::ZERO, |at| {
            at.saturating_duration_since(plimsoll_runtime::now())
        });
        self.cursor = self.shared.clock.now() + until.as_nanos() as Nanos;
        self.shared.started.store(self.cursor, Relaxed);
        self.schedule(&script[at..]);
        observer.event(Event::Started {
            workers: self.plan.workers(),
            lanes,
            clock: &self.shared.clock,
            at: self.shared.started.load(Relaxed),
        });
        if let Some(start) = start {
            plimsoll_runtime::sleep(start.saturating_duration_since(plimsoll_runtime::now()));
        }
        let starts_with_window = self.shared.window.bounds().start == self.cursor;
        if let Some(open) = self.open.as_mut().filter(|_| starts_with_window) {
            open.system = Some(counters.unchanged_until(plimsoll_runtime::now()));
        }
        self.gate.open();
        if start.is_some() {
            self.report_start();
        }
        let mut at = at;
        while at < script.len() {
            match &script[at] {
                Phase::Stop => {
                    at += 1;
                    break;
                }
                // A run that is over executes no more commands.
                Phase::System { .. } | Phase::Echo { .. } if self.is_cut_short() => {}
                // The result is the window that was open when the run ended, not another, empty window.
                Phase::OpenWindow if !self.scheduled && self.has_run_out() => {
                    self.missed_window = true;
                }
                phase => {
                    if let Err(e) = self.phase(phase, &script[at + 1..], observer) {
                        // Files are removed only after the workers have ended.
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

    /// Compares the start of this rank with the starts of the other ranks. A lost rank is noticed later, when the ranks
    /// are polled.
    fn report_start(&mut self) {
        let spread = self
            .team
            .report_start(plimsoll_runtime::now())
            .ok()
            .flatten();
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        let figures = spread.map(|start| StartFigures {
            spread_ms: ms(start.spread),
            round_trip_ms: ms(start.round_trip),
        });
        let largest = &mut self.outcome.starts;
        if let Some(figures) = figures
            && largest.is_none_or(|largest| largest.spread_ms < figures.spread_ms)
        {
            *largest = Some(figures);
        }
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
            // Populating precedes the start, and a second start has no effect.
            Phase::Populate { .. } | Phase::Start | Phase::StartStage { .. } | Phase::Stop => {}
        }
        Ok(())
    }

    /// Opens the first window before the workers start, if the begin of the window depends on time alone, so that all
    /// workers see the same begin.
    fn schedule(&mut self, phases: &[Phase]) {
        let mut at = self.cursor;
        for (i, phase) in phases.iter().enumerate() {
            match phase {
                Phase::Wait {
                    until: Until::Elapsed { time },
                    ..
                } => at += time.as_nanos() as u64,
                Phase::Wait { until, .. } => {
                    self.hold_for(*until, at);
                    return;
                }
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

    /// Opens a window at the cursor. The next phases may determine the end of the window, and that the run ends with
    /// the window.
    fn open_window(&mut self, next: &[Phase]) {
        if let Some(Phase::Wait { until, .. }) = next.first() {
            self.hold_for(*until, self.cursor);
        }
        let mut end = Nanos::MAX;
        let mut at = self.cursor;
        for phase in next {
            match phase {
                Phase::Wait { until, .. } => match max_wait(*until) {
                    Some(time) => at += time,
                    None => break,
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
            started: plimsoll_runtime::system_time(),
            instant: plimsoll_runtime::now(),
            announced: false,
        });
    }

    /// Whether the run was interrupted, has failed, or has exhausted a fileset, as far as this rank knows.
    fn is_cut_short(&self) -> bool {
        self.outcome.interrupted || lock(&self.shared.failure).is_some() || self.has_run_out()
    }

    /// Whether a fileset was exhausted for a worker of this rank, which ended the run.
    fn has_run_out(&self) -> bool {
        lock(&self.shared.ran_out).is_some()
    }

    /// Whether the run ends with the first worker, and a worker of this rank has ended.
    fn is_first_done(&self) -> bool {
        self.plan.quit == QuitMode::FirstDone && self.shared.live.load(Relaxed) < self.all.len()
    }

    /// Whether all workers have ended, or the deadline has passed.
    fn is_over(&self) -> bool {
        let have_ended = match self.all.is_empty() {
            // A rank 0 without workers only coordinates the other ranks.
            true => self.team.others_wait(),
            false => self.collector.lanes().iter().all(|l| l.ended()),
        };
        have_ended || self.shared.clock.now() >= self.shared.deadline.at()
    }

    fn wait(&mut self, until: Until, snapshots: Option<Snapshots>, observer: &mut dyn Observer) {
        let mut end = max_wait(until).map_or(Nanos::MAX, |time| self.cursor.saturating_add(time));
        let mut rule = self.rule_of(until, self.cursor);
        // A warm-up that a rule ended left virtual time at the cursor. A hold after the cursor belongs to a later wait.
        if rule.is_none() && self.shared.deadline.hold() == self.cursor {
            self.release_hold();
        }
        let mut held = None;
        self.periodic = snapshots.map(|how| {
            let rows = vec![OpTotals::default(); self.plan.operations.len()];
            PeriodicSnapshots {
                how,
                rows,
                from: 0,
                next: how.every.as_nanos() as u64,
            }
        });
        while !self.has_reached(end, rule.is_some()) && !self.is_over() {
            let is_due = rule.as_ref().is_some_and(|rule| self.is_look_due(rule));
            // Virtual time has stopped at the instant of a due look, so that all figures up to the instant are
            // collected.
            self.check_progress(observer);
            if let Some(mut due) = rule.take_if(|_| is_due) {
                match self.look(&mut due, end) {
                    Look::Continue => rule = Some(due),
                    Look::Cancel => {
                        held = Some((due, false));
                    }
                    Look::End(at) => {
                        end = at;
                        held = Some((due, true));
                    }
                }
                if rule.is_none() {
                    if matches!(until, Until::Steady { .. }) {
                        // The window opens before the workers reach the end of the warm-up.
                        break;
                    }
                    self.end_window_at(end);
                    self.release_hold();
                }
                continue;
            }
            // In virtual time only the lane knows when the wait is over.
            let left = match self.kind {
                LaneKind::Virtual if rule.is_some() => VIRTUAL_LOOK_INTERVAL,
                LaneKind::Virtual => CONTROL_POLL_INTERVAL,
                _ => Duration::from_nanos(end.saturating_sub(self.shared.clock.now())),
            };
            self.bell.wait(left.min(CONTROL_POLL_INTERVAL));
        }
        if let Some(rule) = rule {
            self.leave_rule();
            held = Some((rule, false));
        }
        // A stop may have been requested after the last check.
        self.heed_stop();
        self.cursor = if self.is_over() {
            self.shared.clock.now().min(end)
        } else {
            end
        };
        if let Some((rule, held)) = held {
            self.note_ruled_wait(&rule, held);
        }
    }

    /// Collects the deliveries of the lanes, informs the observer, and checks for reasons to stop.
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
        if plimsoll_runtime::elapsed(self.ticked) >= TICK_INTERVAL {
            self.ticked = plimsoll_runtime::now();
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

    /// Informs the other ranks if this rank stops early, and stops if another rank stops early.
    fn poll_ranks(&mut self) {
        if self.is_cut_short() || self.is_first_done() {
            self.team.request_stop_all();
        }
        match self.team.poll_group_status() {
            GroupStatus::Nothing => {}
            // The rank that requested the stop reports the reason.
            GroupStatus::Stop => self.shared.end_run(self.shared.clock.now()),
            GroupStatus::Failed(e) => {
                self.shared
                    .fail_unnamed(e.to_string(), self.shared.clock.now());
            }
        }
        self.all_gather(false);
        let proposed = self.shared.stage.as_ref().and_then(StageRun::proposed);
        if let Some(rounds) = proposed {
            self.agree_on_rounds(rounds);
        }
    }

    /// Takes part in the all-gathers for which all ranks of this process have contributed or ended. With `even_early`,
    /// takes part in all remaining all-gathers of the stage, in which ranks that have ended contribute nothing.
    fn all_gather(&mut self, even_early: bool) {
        let Some(run) = self.shared.stage.as_ref() else {
            return;
        };
        while let Some(mine) = run.contributions(even_early) {
            match self.team.all_gather(mine) {
                Ok(all) => run.complete_all_gather(all.concat()),
                Err(e) => {
                    run.complete_all_gather(vec![None]);
                    self.shared
                        .fail_unnamed(e.to_string(), self.shared.clock.now());
                }
            }
        }
    }

    /// Agrees with the other processes on the rounds of a stage whose stonewall has a wear-out. Every process takes
    /// part exactly once, even if its worker failed.
    fn agree_on_rounds(&mut self, rounds: u64) {
        let Some(run) = self.shared.stage.as_ref() else {
            return;
        };
        let wall = run.of(self.plan).1.stonewall;
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

    /// Reads the clocks once the window has begun, and the machine's counters unless the workers started with the
    /// window.
    fn watch_window(&mut self, observer: &mut dyn Observer) {
        let WindowBounds { number, start, .. } = self.shared.window.bounds();
        let now = self.shared.clock.now();
        if let Some(open) = self.open.as_mut().filter(|o| !o.announced && now >= start) {
            open.announced = true;
            let (now, time_of_day, instant) = read_clocks(&self.shared.clock);
            let late = match self.kind {
                LaneKind::Virtual => Duration::ZERO,
                _ => Duration::from_nanos(now - start),
            };
            open.started = time_of_day
                .checked_sub(late)
                .unwrap_or(SystemTime::UNIX_EPOCH);
            open.instant = instant.checked_sub(late).unwrap_or(instant);
            // The counters are read after the clocks, because reading the counters takes milliseconds on a busy
            // machine.
            open.system.get_or_insert_with(Snapshot::take);
            observer.event(Event::WindowOpened { number, at: start });
        }
    }

    /// Ends the run if all workers wait for each other and the run has no deadline.
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
            self.intervals.push(PackedInterval::new(interval));
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

/// The run's clock, the time of day and the system's monotonic clock at one instant. Of several readings, the shortest
/// reading counts, because a thread may lose the processor between two clocks.
fn read_clocks(clock: &Clock) -> (Nanos, SystemTime, Instant) {
    const READINGS: usize = 5;
    let readings = (0..READINGS).map(|_| {
        let before = clock.now();
        let read = (plimsoll_runtime::system_time(), plimsoll_runtime::now());
        (clock.now() - before, before, read)
    });
    let shortest = readings.min_by_key(|(length, ..)| *length);
    let (_, now, (time_of_day, instant)) = shortest.expect("there are readings");
    (now, time_of_day, instant)
}

/// The maximum length of a wait in nanoseconds; `None` without a limit.
fn max_wait(until: Until) -> Option<Nanos> {
    until.max_time().map(|time| time.as_nanos() as Nanos)
}
