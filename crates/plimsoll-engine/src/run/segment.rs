//! A part of a run in which workers work: from their start to their stop.

use super::crew::Crew;
use super::lanes::{Bell, Gate, LanePlan, LaneRest, WorkerId, assign, specs, workers};
use super::{ClockKind, EngineError, Event, Observer, Settings, Stop};
use crate::outcome::{Outcome, Window};
use crate::shared::Shared;
use crate::store::FilesetState;
use crate::sync::lock;
use crate::worker::worker_name;
use plimsoll_lane::LaneKind;
use plimsoll_measure::system::{Snapshot, SystemUse};
use plimsoll_measure::{Clock, Collector, Interval, Nanos, OpTotals, Recorder, WindowState};
use plimsoll_plan::{Phase, Plan, Snapshots, Until};
use plimsoll_target::Target;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// A worker that has not ended so long after the run did is stuck.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// How often the controller looks.
const LOOK: Duration = Duration::from_millis(20);

/// How often the observer hears that the run goes on.
const TICK: Duration = Duration::from_millis(500);

/// Looks at workers that all wait for each other before that is taken for a deadlock.
const DEADLOCK_LOOKS: u32 = 250;

/// Longest time the tick counter's length of a window may differ from the system clock's, as a
/// share.
const CLOCK_TOLERANCE: f64 = 1e-3;

/// The window that is open.
struct Open {
    system: Option<Snapshot>,
    started: SystemTime,
    instant: Instant,
    announced: bool,
}

/// Periodic statistics of a window.
struct Periodic {
    how: Snapshots,
    rows: Vec<OpTotals>,
    from: Nanos,
    next: Nanos,
}

pub(crate) struct Segment<'a> {
    plan: &'a Plan,
    stop: &'a Stop,
    shared: Arc<Shared>,
    collector: Collector,
    all: Vec<WorkerId>,
    gate: Arc<Gate>,
    bell: Arc<Bell>,
    outcome: &'a mut Outcome,
    kind: LaneKind,
    open: Option<Open>,
    /// The window of the next [`Phase::OpenWindow`] is open already.
    scheduled: bool,
    periodic: Option<Periodic>,
    /// Instant up to which the script has come.
    cursor: Nanos,
    ticked: Instant,
    waiting_looks: u32,
    last_done: u64,
}

impl<'a> Segment<'a> {
    /// Starts the lanes; they wait at the gate.
    pub(crate) fn new<T: Target>(
        crew: &Crew<T>,
        plan: &'a Plan,
        settings: &Settings,
        stop: &'a Stop,
        clock: &Clock,
        filesets: Vec<Arc<FilesetState>>,
        outcome: &'a mut Outcome,
    ) -> Result<Self, EngineError> {
        let kind = match settings.clock {
            ClockKind::Virtual => LaneKind::Virtual,
            ClockKind::Real => crew.target.lane_kind(),
        };
        let all = workers(plan);
        let interval = settings.interval.as_nanos() as Nanos;
        let window = WindowState::after(interval, outcome.windows.len() as u32);
        let shared = Shared::new(plan, clock.clone(), window, filesets, &all);
        let shared = Arc::new(shared.map_err(EngineError::Refused)?);
        let (gate, bell) = (Arc::new(Gate::default()), Arc::new(Bell::default()));
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
            let rest = LaneRest {
                workers,
                recorder,
                shared: shared.clone(),
                gate: gate.clone(),
                bell: bell.clone(),
            };
            if let Err(e) = LanePlan::of(crew, kind, number, rest).spawn() {
                // Those that were started end at once.
                shared.end_run(0);
                gate.open();
                let begun = std::time::Instant::now();
                let out = || progress[..number].iter().all(|lane| lane.ended());
                while !out() && begun.elapsed() < STUCK_AFTER {
                    bell.wait(LOOK);
                }
                return Err(EngineError::Failed(format!(
                    "cannot start thread {} of {count}: {e}",
                    number + 1
                )));
            }
        }
        let collector = Collector::new(shared.window.clone(), progress, plan.operations.len());
        outcome.lanes = count;
        gate.wait_for(count);
        Ok(Self {
            plan,
            stop,
            shared,
            collector,
            all,
            gate,
            bell,
            outcome,
            kind,
            open: None,
            scheduled: false,
            periodic: None,
            cursor: 0,
            ticked: Instant::now(),
            waiting_looks: 0,
            last_done: 0,
        })
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
            workers: self.all.len() as u64,
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
            Phase::Echo { text } => observer.event(Event::Echo(text)),
            Phase::System { command } => super::shell(command, self.stop, self.outcome)?,
            // Trees are made before workers start; a second start has nothing to start.
            Phase::Populate { .. } | Phase::Start | Phase::Stop => {}
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
        self.open = Some(Open {
            system: None,
            started: SystemTime::now(),
            instant: Instant::now(),
            announced: false,
        });
    }

    /// Whether somebody or something ended the run before its script did.
    fn is_cut_short(&self) -> bool {
        self.outcome.interrupted || lock(&self.shared.failure).is_some()
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
            Periodic {
                how,
                rows,
                from: 0,
                next: how.every.as_nanos() as u64,
            }
        });
        while self.shared.clock.now() < end && !self.is_over() {
            self.look(observer);
            // In virtual time only the lane can tell when it is over.
            let left = match self.kind {
                LaneKind::Virtual => LOOK,
                _ => Duration::from_nanos(end.saturating_sub(self.shared.clock.now())),
            };
            self.bell.wait(left.min(LOOK));
        }
        self.cursor = if self.is_over() {
            self.shared.clock.now().min(end)
        } else {
            end
        };
    }

    /// Takes what the lanes delivered, tells the observer, and looks for reasons to stop.
    fn look(&mut self, observer: &mut dyn Observer) {
        self.watch_window(observer);
        for interval in self.collector.drain() {
            self.tell_interval(&interval, observer);
        }
        for text in lock(&self.shared.said).drain(..) {
            observer.event(Event::Echo(&text));
        }
        if self.stop.is_requested() && !self.outcome.interrupted {
            self.outcome.interrupted = true;
            self.shared.end_run(self.shared.clock.now());
        }
        self.watch_deadlock();
        if self.ticked.elapsed() >= TICK {
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

    /// Takes the machine's counters when the window's first instant comes.
    fn watch_window(&mut self, observer: &mut dyn Observer) {
        let (number, start, _) = self.shared.window.bounds();
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
        if self.waiting_looks >= DEADLOCK_LOOKS && self.shared.deadline.at() == Nanos::MAX {
            let error = format!("deadlock: all {live} workers that are left wait for each other");
            let now = self.shared.clock.now();
            self.shared.fail_unnamed(error, now);
        }
    }

    fn tell_interval(&mut self, interval: &Interval, observer: &mut dyn Observer) {
        observer.event(Event::Interval(interval));
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

    /// Ends the window at the cursor, or where it ended before.
    fn close_window(&mut self, observer: &mut dyn Observer) {
        if self.open.is_none() {
            return;
        }
        self.watch_window(observer);
        self.shared.window.close(self.cursor);
        let over = self.is_over() || self.stops_with_window();
        if over {
            self.await_lanes(observer);
        } else {
            // Workers go on: those between two operations deliver within a moment.
            std::thread::sleep(Duration::from_millis(5));
        }
        self.collect(observer);
    }

    fn stops_with_window(&self) -> bool {
        let (_, _, end) = self.shared.window.bounds();
        self.shared.deadline.at() <= end
    }

    fn collect(&mut self, observer: &mut dyn Observer) {
        let Some(open) = self.open.take() else { return };
        let system = open
            .system
            .map_or_else(SystemUse::default, |s| s.until(&Snapshot::take()));
        for interval in self.collector.drain() {
            self.tell_interval(&interval, observer);
        }
        let (last, mut totals) = self.collector.finish();
        for interval in &last {
            self.tell_interval(interval, observer);
        }
        self.periodic = None;
        totals.end = totals.end.max(totals.start);
        let length = totals.end - totals.start;
        if self.kind != LaneKind::Virtual && open.announced {
            self.check_clock(length, open.instant.elapsed());
        }
        self.outcome.windows.push(Window {
            totals,
            started: open.started,
            system,
        });
    }

    /// The window by the tick counter must not be longer than by the system's clock, which was
    /// read later.
    fn check_clock(&mut self, ticks: Nanos, system: Duration) {
        let (ticks, system) = (ticks as f64, system.as_nanos() as f64);
        if ticks > system * (1.0 + CLOCK_TOLERANCE) + 1e6 {
            self.outcome.notes.push(format!(
                "the processor's tick counter runs {:.2} % fast against the system's clock",
                (ticks / system - 1.0) * 100.0
            ));
        }
    }

    /// Waits until all lanes have ended; those that have not after a while are stuck.
    fn await_lanes(&mut self, observer: &mut dyn Observer) {
        let mut since: Option<Instant> = None;
        while !self.collector.lanes().iter().all(|l| l.ended()) {
            self.look(observer);
            if self.shared.clock.now() >= self.shared.deadline.at() {
                let since = since.get_or_insert_with(Instant::now);
                // A virtual lane computes; it is never stuck in a system call.
                if self.kind != LaneKind::Virtual && since.elapsed() >= STUCK_AFTER {
                    break;
                }
            }
            self.bell.wait(LOOK);
        }
        // A worker that a deadlock or a panic cut short has not ended, but its lane has.
        let all_back = self.collector.lanes().iter().all(|l| l.ended());
        self.outcome.stuck = self
            .all
            .iter()
            .filter(|w| !all_back && !self.shared.ended[w.index as usize].load(Relaxed))
            .map(|w| worker_name(self.plan, w.group as usize, w.number))
            .collect();
    }

    /// Stops the workers and collects what is left.
    fn end(&mut self, observer: &mut dyn Observer) {
        self.shared.deadline.bring_forward(self.cursor.max(1));
        if self.outcome.stuck.is_empty() {
            self.await_lanes(observer);
        }
        if self.open.is_some() {
            self.watch_window(observer);
            self.shared.window.close(self.cursor);
            self.collect(observer);
        }
        for text in lock(&self.shared.said).drain(..) {
            observer.event(Event::Echo(&text));
        }
        self.outcome.notes.append(&mut lock(&self.shared.notes));
        self.outcome.failure = lock(&self.shared.failure).take();
        self.outcome.variables = super::drawn(self.plan, &lock(&self.shared.drawn));
    }
}
