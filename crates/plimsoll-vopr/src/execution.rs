//! Execution of a scenario by the real engine in a simulation, with the observations that rules check: outcomes, files,
//! calls and results.

use crate::concurrent::{ConcurrentEnd, ConcurrentRun};
use crate::files::{FilesEnd, WORK_DIR, foreign};
use crate::pattern::PatternSpec;
use crate::results::{ResultsEnd, ResultsPlace, ResultsRoot, RunResults};
use crate::scenario::{Disturbance, DisturbanceKind, Scenario};
use crate::workload::Load;
use plimsoll_engine::{EngineError, Event, Observer, Outcome, Settings, Stop, run_ranks};
use plimsoll_measure::{Interval, MeasuredWindow};
use plimsoll_plan::Plan;
use plimsoll_ranks::{Ranks, SimulatedNetwork};
use plimsoll_runtime::sync::lock;
use plimsoll_runtime::{ProcessId, Simulation, SimulationEnd, SimulationHandle};
use plimsoll_target::simulated::{FileFaults, SimulatedFiles};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Simulated time after the planned end in which all processes must end: a lost neighbour is given up after 5 s, an
/// unreachable rank after 20 s at each end of a connection, and a hung worker after 10 s.
pub(crate) const LIMIT_AFTER_END: Duration = Duration::from_secs(90);

/// Maximum time for which a rank keeps running after the end of rank 0.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum processor time of the simulation of a scenario.
pub(crate) const BUSY_LIMIT: Duration = Duration::from_secs(600);

/// Observations of one rank's run, made at the end of the run.
#[derive(Debug, Clone)]
pub struct RankEnd {
    /// Outcome of the rank's run; an error if the run was refused or failed without an outcome.
    pub outcome: Result<Box<Outcome>, EngineError>,
    /// Intervals that the rank's observer received.
    pub intervals: Vec<Interval>,
    /// End of the rank's run, in nanoseconds since the start of the processes.
    pub at: u64,
}

/// Everything observed during the execution of a scenario, for the rules to check.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Plan that all ranks execute.
    pub plan: Plan,
    /// End of the simulation: the end of all processes, a deadlock, a time limit or a livelock.
    pub end: SimulationEnd,
    /// Messages of panics in simulated processes; every panic breaks a rule.
    pub panics: Vec<String>,
    /// End of each rank's run, by rank; `None` for a rank that was killed before the end of its run.
    pub ranks: Vec<Option<RankEnd>>,
    /// Files and calls of the target; `None` if the target keeps no files, or if the simulation did not end.
    pub files: Option<FilesEnd>,
    /// Content of the results directory; `None` if the scenario writes no results.
    pub results: Option<ResultsEnd>,
    /// Process number of each rank in the simulation, by rank.
    pub processes: Vec<u32>,
    /// End of the run that another process makes in the ranks' work directory at the same time; `None` if no other
    /// process makes a run.
    pub concurrent: Option<ConcurrentEnd>,
    /// Number of failed calls of rank 0 to the disk of the results.
    pub disk_errors: u64,
    /// Time of each disturbance of the scenario, in nanoseconds of the simulation; `None` if the process had ended
    /// before the disturbance.
    pub applied: Vec<Option<u64>>,
}

/// Observer of a rank's run, which keeps the intervals; at rank 0, the observer also writes the intervals to the
/// results.
pub(crate) struct IntervalObserver {
    pub(crate) intervals: Vec<Interval>,
    pub(crate) results: Option<RunResults>,
    pub(crate) stop: Stop,
}

impl IntervalObserver {
    /// Observer that writes intervals to `results` unless `results` is `None`, and ends the run through `stop` if the
    /// writing fails.
    pub(crate) fn new(results: Option<RunResults>, stop: &Stop) -> Self {
        Self {
            intervals: vec![],
            results,
            stop: stop.clone(),
        }
    }
}

impl Observer for IntervalObserver {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Interval(interval) = event {
            self.intervals.push(interval.clone());
            if let Some(results) = &mut self.results
                && !results.interval(interval)
            {
                // As in the program `plimsoll`, a run whose intervals cannot be written ends.
                self.stop.request();
            }
        }
    }
}

/// Value shared by threads of a simulation; the lock is never contended, because only one thread runs at a time.
pub(crate) type Shared<T> = Arc<Mutex<T>>;

pub(crate) fn with<T, R>(shared: &Shared<T>, change: impl FnOnce(&mut T) -> R) -> R {
    change(&mut lock(shared))
}

/// Executes a scenario in a new simulation, and returns the observations that the rules check.
#[must_use]
pub fn run(scenario: &Scenario) -> Execution {
    let mut plan = scenario.workload.plan(scenario.seed);
    let files = scenario.files.as_ref().map(|spec| {
        // A pattern has its own options.
        if plan.pattern().is_none() {
            (plan.options.on_error, plan.options.verify) = (spec.on_error(), spec.verifies);
        }
        let files = SimulatedFiles::new(spec.faults.clone(), scenario.seed);
        foreign(&plan).for_each(|(path, bytes)| files.plant(path, bytes));
        if spec.has_dir {
            files.plant_dir(&marked_dir(&plan));
        }
        Arc::new(files)
    });
    let target = files
        .as_ref()
        .map_or_else(|| scenario.target(), |files| files.url(scenario.lanes));
    let simulation = Simulation::new(scenario.seed);
    let handle = simulation.handle();
    let (delay, jitter) = scenario.delay_us;
    let network = SimulatedNetwork::new(
        handle.clone(),
        Duration::from_micros(delay),
        Duration::from_micros(jitter),
    );
    let stops: Vec<Stop> = (0..scenario.ranks).map(|_| Stop::default()).collect();
    let ends: Shared<Vec<Option<RankEnd>>> =
        Arc::new(Mutex::new(vec![None; scenario.ranks as usize]));
    let results = scenario.results.map(|_| ResultsRoot::new());
    let mut processes = Vec::new();
    for (rank, stop) in (0..).zip(&stops) {
        let rank_main = RankMain {
            scenario: scenario.clone(),
            plan: plan.clone(),
            target: target.clone(),
            rank,
            stop: stop.clone(),
            network: network.clone(),
            handle: handle.clone(),
            ends: ends.clone(),
            results: results.as_ref().map(ResultsRoot::place),
        };
        let process = handle.spawn_process(&format!("rank-{rank}"), move || rank_main.run());
        handle.set_disk(process, scenario.results.unwrap_or_default());
        handle.set_clock_drift(process, scenario.drift_of(rank));
        network.set_process(rank, process);
        processes.push(process);
    }
    let applied: Shared<Vec<Option<u64>>> =
        Arc::new(Mutex::new(vec![None; scenario.disturbances.len()]));
    let root = processes[0];
    let numbers = processes.iter().map(|process| process.number()).collect();
    let group = RankProcesses {
        handle: handle.clone(),
        network,
        fan_out: scenario.fan_out,
        processes,
        stops,
    };
    for (number, disturbance) in scenario.disturbances.iter().copied().enumerate() {
        let (group, applied) = (group.clone(), applied.clone());
        handle.spawn_process("environment", move || {
            group.disturb(disturbance, &|at| {
                with(&applied, |applied| applied[number] = Some(at));
            });
        });
    }
    let concurrent_end: Shared<Option<ConcurrentEnd>> = Shared::default();
    let concurrent = scenario.concurrent_at_us.map(|at_us| {
        let run = ConcurrentRun {
            at_us,
            plan: alone_plan(scenario, &plan),
            settings: Settings {
                target: target.clone(),
                ..Settings::default()
            },
            handle: handle.clone(),
            end: concurrent_end.clone(),
        };
        handle.spawn_process("concurrent", move || run.run())
    });
    let files_end: Shared<Option<FilesEnd>> = Shared::default();
    if let Some(files) = &files {
        let after = AfterRun {
            files: files.clone(),
            latency_ns: scenario
                .files
                .as_ref()
                .map_or(0, |spec| spec.faults.latency_ns),
            lanes: scenario.lanes,
            guard: marked_dir(&plan),
            again: alone_plan(scenario, &plan),
            again_us: scenario
                .files
                .as_ref()
                .map_or_else(Vec::new, |spec| spec.again_us.clone()),
            group,
            concurrent,
            end: files_end.clone(),
        };
        handle.spawn_process("after", move || after.run());
    }
    let limit = Duration::from_micros(scenario.planned_us()) + LIMIT_AFTER_END;
    let end = simulation.run(limit, BUSY_LIMIT);
    Execution {
        plan,
        end,
        panics: handle.panics(),
        ranks: with(&ends, std::mem::take),
        files: with(&files_end, Option::take),
        results: results.map(ResultsRoot::end),
        processes: numbers,
        concurrent: with(&concurrent_end, Option::take),
        disk_errors: handle.disk_errors(root),
        applied: with(&applied, std::mem::take),
    }
}

/// Actions after the end of all ranks: the files are recorded, further runs are executed, and the files are removed as
/// by `plimsoll clean`.
struct AfterRun {
    files: Arc<SimulatedFiles>,
    latency_ns: u64,
    lanes: usize,
    /// The directory that the run marks.
    guard: String,
    /// The Plan of further runs.
    again: Plan,
    /// Start times of further runs, in microseconds after the end of the ranks.
    again_us: Vec<u64>,
    group: RankProcesses,
    /// The process of another run in the same directory.
    concurrent: Option<ProcessId>,
    end: Shared<Option<FilesEnd>>,
}

impl AfterRun {
    fn run(self) {
        let orphans = self.group.await_ends();
        while self
            .concurrent
            .is_some_and(|run| self.group.handle.is_alive(run))
        {
            plimsoll_runtime::sleep(Duration::from_millis(50));
        }
        let (after_run, calls) = (self.files.tree(), self.files.calls());
        self.files.set_faults(FileFaults::none(self.latency_ns));
        let settings = Settings {
            target: self.files.url(self.lanes),
            ..Settings::default()
        };
        let again = self.run_again(&settings);
        let after_again = self.files.tree();
        let dir = Path::new(&self.guard);
        let cleaned = match is_marked(&after_again, &self.guard) {
            true => plimsoll_engine::clean(dir, &settings, false, &Stop::default()),
            // The run created no marked directory.
            false => Ok(plimsoll_measure::Cleanup::default()),
        };
        let clean_error = match cleaned {
            Ok(cleanup) if cleanup.unremoved.is_empty() => None,
            Ok(cleanup) => Some(cleanup.unremoved.join("; ")),
            Err(e) => Some(e.to_string()),
        };
        let end = FilesEnd {
            orphans,
            after_run,
            again,
            after_again,
            after_clean: self.files.tree(),
            clean_error,
            calls_again: self.files.calls().split_off(calls.len()),
            calls,
            strays: self.files.strays(),
        };
        with(&self.end, |found| *found = Some(end));
    }

    /// Executes the further runs to their ends.
    fn run_again(&self, settings: &Settings) -> Vec<ConcurrentEnd> {
        let handle = &self.group.handle;
        let runs = self.again_us.iter().map(|at_us| {
            let end: Shared<Option<ConcurrentEnd>> = Shared::default();
            let run = ConcurrentRun {
                at_us: *at_us,
                plan: self.again.clone(),
                settings: settings.clone(),
                handle: handle.clone(),
                end: end.clone(),
            };
            (handle.spawn_process("again", move || run.run()), end)
        });
        let runs: Vec<_> = runs.collect();
        while runs.iter().any(|(run, _)| handle.is_alive(*run)) {
            plimsoll_runtime::sleep(Duration::from_millis(50));
        }
        let ends = runs.iter().filter_map(|(_, end)| with(end, Option::take));
        ends.collect()
    }
}

/// The Plan of a run with one process in the directory of the ranks.
fn alone_plan(scenario: &Scenario, plan: &Plan) -> Plan {
    match scenario.workload.load {
        Load::Pattern(pattern) => {
            let alone = PatternSpec {
                ranks: 1,
                ..pattern
            };
            alone.plan(WORK_DIR, scenario.seed)
        }
        _ => plan.clone(),
    }
}

/// Whether a directory has a marker, a claim, or the beginning of a marker: an entry whose name begins with
/// `.plimsoll`.
pub(crate) fn is_marked(tree: &BTreeMap<String, Vec<u8>>, dir: &str) -> bool {
    let own = format!("{dir}/.plimsoll");
    tree.keys().any(|path| path.starts_with(&own))
}

/// The directory that a run marks as its own.
pub(crate) fn marked_dir(plan: &Plan) -> String {
    match plan.work_dir.guards.first() {
        Some(guard) if !guard.as_str().is_empty() => format!("{WORK_DIR}/{guard}"),
        _ => WORK_DIR.to_owned(),
    }
}

/// The start and end of a window, in nanoseconds since the start of the processes; by the time of day, which may jump.
pub(crate) fn bounds(window: &MeasuredWindow) -> Range<u64> {
    let since = window
        .started
        .expect("a simulated run measures its windows")
        .duration_since(plimsoll_runtime::simulated_epoch());
    let opened = since.unwrap_or_default().as_nanos() as u64;
    opened..opened + (window.totals.end - window.totals.start)
}

/// The program of a rank.
struct RankMain {
    scenario: Scenario,
    plan: Plan,
    target: String,
    rank: u32,
    stop: Stop,
    network: SimulatedNetwork,
    handle: SimulationHandle,
    ends: Shared<Vec<Option<RankEnd>>>,
    results: Option<ResultsPlace>,
}

impl Execution {
    /// Everything that follows from the seed, as text: the end of the simulation, times of disturbances, the end of
    /// each rank with its windows and intervals, the other run, the results, the files and the calls. Measurements of
    /// the real machine are left out.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut text = format!("{:?} {:?}", self.end, self.applied);
        for end in self.ranks.iter().flatten() {
            let windows = end.outcome.as_ref().map(|outcome| {
                let windows = outcome.windows.iter().map(|w| &w.totals);
                windows.collect::<Vec<_>>()
            });
            text.push_str(&format!("\n{} {windows:?} {:?}", end.at, end.intervals));
        }
        if let Some(other) = &self.concurrent {
            text.push_str(&format!("\n{} {}", other.ended, other.outcome.is_ok()));
        }
        if let Some(results) = &self.results {
            text.push_str(&results.digest());
        }
        if let Some(files) = &self.files {
            let trees = (&files.after_run, &files.after_clean);
            text.push_str(&format!(
                "\n{trees:?} {:?} {:?} {:?}",
                files.after_again, files.calls, files.clean_error
            ));
        }
        text
    }

    /// Whether no disturbance was applied, and no call to the disk of the results failed.
    #[must_use]
    pub fn is_undisturbed(&self) -> bool {
        self.disk_errors == 0 && self.applied.iter().all(Option::is_none)
    }
}

impl RankMain {
    fn run(self) {
        let scenario = &self.scenario;
        let ranks = self
            .network
            .join(self.rank, scenario.ranks, scenario.fan_out);
        let results = self.results.as_ref().filter(|_| self.rank == 0);
        let begun = results.map(|place| place.begin(&self.plan, scenario.ranks, &self.handle));
        match begun.transpose() {
            Ok(results) => self.run_with(results, &ranks),
            Err(e) => {
                ranks.fail(&e);
                self.end(Err(EngineError::Failed(e)), vec![]);
            }
        }
    }

    fn run_with(&self, results: Option<RunResults>, ranks: &Ranks) {
        let settings = Settings {
            target: self.target.clone(),
            interval: Duration::from_millis(self.scenario.interval_ms),
            holds: false,
        };
        let mut observer = IntervalObserver::new(results, &self.stop);
        let ran = run_ranks(&self.plan, &settings, &self.stop, &mut observer, ranks);
        // All ranks have agreed on a refusal.
        if let Err(e @ (EngineError::Failed(_) | EngineError::Interrupted)) = &ran {
            ranks.fail(&e.to_string());
        }
        if let Some(results) = observer.results {
            // `publish` logs its errors.
            results.publish(&ran);
        }
        self.end(ran, observer.intervals);
    }

    fn end(&self, ran: Result<Outcome, EngineError>, intervals: Vec<Interval>) {
        let end = RankEnd {
            outcome: ran.map(Box::new),
            intervals,
            at: self.handle.now(),
        };
        with(&self.ends, |ends| ends[self.rank as usize] = Some(end));
    }
}

/// The processes of the ranks of a run, and their disturbances.
#[derive(Clone)]
pub(crate) struct RankProcesses {
    pub(crate) handle: SimulationHandle,
    pub(crate) network: SimulatedNetwork,
    pub(crate) fan_out: u32,
    pub(crate) processes: Vec<ProcessId>,
    pub(crate) stops: Vec<Stop>,
}

impl RankProcesses {
    /// Waits until all ranks have ended. After the end of rank 0, the standard input of the other ranks ends, which
    /// stops their runs; ranks that still run after `ORPHAN_TIMEOUT` are killed and returned.
    pub(crate) fn await_ends(&self) -> Vec<u32> {
        let is_alive = |rank: &ProcessId| self.handle.is_alive(*rank);
        let (mut orphaned_at, mut orphans) = (None, vec![]);
        while self.processes.iter().any(is_alive) {
            plimsoll_runtime::sleep(Duration::from_millis(50));
            if is_alive(&self.processes[0]) {
                continue;
            }
            self.stops.iter().for_each(Stop::request);
            let since = *orphaned_at.get_or_insert(self.handle.now());
            if self.handle.now() - since > ORPHAN_TIMEOUT.as_nanos() as u64 {
                let left = (0..).zip(&self.processes);
                for (number, rank) in left.filter(|(_, rank)| is_alive(rank)) {
                    orphans.push(number);
                    self.handle.kill(*rank);
                }
            }
        }
        orphans
    }

    /// Waits for the time of a disturbance, and applies the disturbance unless its process has ended; `note` gets the
    /// time of an applied disturbance.
    pub(crate) fn disturb(&self, disturbance: Disturbance, note: &dyn Fn(u64)) {
        plimsoll_runtime::sleep(Duration::from_micros(disturbance.at_us));
        let (DisturbanceKind::Interrupt { rank }
        | DisturbanceKind::Kill { rank }
        | DisturbanceKind::Stop { rank, .. }
        | DisturbanceKind::Cut { rank }
        | DisturbanceKind::ClockJump { rank, .. }) = disturbance.kind;
        let process = self.processes[rank as usize];
        if !self.handle.is_alive(process) {
            return;
        }
        note(self.handle.now());
        match disturbance.kind {
            DisturbanceKind::Interrupt { rank } => self.stops[rank as usize].request(),
            DisturbanceKind::Kill { .. } => self.handle.kill(process),
            DisturbanceKind::Stop { for_ms, .. } => {
                self.handle.set_stopped(process, true);
                plimsoll_runtime::sleep(Duration::from_millis(for_ms));
                self.handle.set_stopped(process, false);
            }
            DisturbanceKind::Cut { rank } => {
                let ranks = self.processes.len() as u32;
                self.network.cut_from_parent(rank, ranks, self.fan_out);
            }
            DisturbanceKind::ClockJump { seconds, .. } => {
                self.handle.set_clock_ahead(process, seconds);
            }
        }
    }
}
