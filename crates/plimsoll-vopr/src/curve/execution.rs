//! Attempts at a curve, of processes that share nothing but its results and its files.

use super::CurveScenario;
use crate::execution::{
    IntervalObserver, LIMIT_AFTER_END, REAL_LIMIT, RankProcesses, Shared, is_marked, with,
};
use crate::files::{WORK_DIR, foreign};
use crate::results::{RunResults, copy, outcome_of, target};
use plimsoll_engine::{Outcome, Settings, Stop, run_ranks};
use plimsoll_measure::Interval;
use plimsoll_plan::Plan;
use plimsoll_points::StopRules;
use plimsoll_ranks::{Ranks, SimulatedNetwork};
use plimsoll_results::{
    ClockKind, CurveLoads, CurvePoint, CurveResults, CurveSettings, CurveState, CurveWriter,
    Document, Environment, LoadCurve, Program, ResultsError, Run, Verdict,
};
use plimsoll_runtime::{ProcessId, Simulation, SimulationEnd, SimulationHandle};
use plimsoll_target::simulated::{CallKind, SimulatedFiles};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// Time from the end of a run, with its results, until the curve lists it. A kill in between leaves a run that the next
/// attempt has to find.
const TIME_UNTIL_LISTED: Duration = Duration::from_millis(30);

/// A load that was measured, at rank 0.
#[derive(Debug, Clone)]
pub struct MeasuredPoint {
    /// The load.
    pub load: u64,
    /// Its Plan.
    pub plan: Plan,
    /// What the engine returned.
    pub outcome: Box<Outcome>,
    /// The intervals of the run.
    pub intervals: Vec<Interval>,
    /// When it ended, in nanoseconds of the simulation.
    pub at: u64,
    /// Whether its results could not be written; they may be there even so.
    pub is_lost: bool,
}

/// How an attempt ended the use of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurveFilesEnd {
    /// Whether they stay because others may work on them.
    pub are_busy: bool,
    /// What could not be removed or released.
    pub left: Vec<String>,
}

/// What became of an attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The runs that ended in it.
    pub measured: Vec<MeasuredPoint>,
    /// The curve when all its processes had ended; of killed ones, when it is resumed.
    pub curve: LoadCurve,
    /// How the use of the files ended; `None` if rank 0 was killed before.
    pub files_end: Option<CurveFilesEnd>,
    /// Why the curve, or a run of it, could not be written.
    pub errors: Vec<String>,
    /// Calls of rank 0 to the disk of the results that failed.
    pub disk_errors: u64,
    /// Names of directories with unfinished results.
    pub unfinished: Vec<String>,
    /// Files and directories when all its processes had ended, by path.
    pub tree: BTreeMap<String, Vec<u8>>,
}

/// What became of a curve.
#[derive(Debug, Clone)]
pub struct CurveExecution {
    /// How the simulation ended.
    pub end: SimulationEnd,
    /// Messages of panics.
    pub panics: Vec<String>,
    /// The attempts in their order; fewer than those of the scenario if the curve was complete before.
    pub attempts: Vec<Attempt>,
    /// Why the curve could not be resumed.
    pub resume_error: Option<String>,
    /// The runs of all points, by load, as they are read in the end.
    pub runs: Vec<(u64, Result<Box<Run>, String>)>,
    /// Files and directories after all, by path.
    pub tree: BTreeMap<String, Vec<u8>>,
    /// Files that were created other than by the load, in all attempts; those that were created twice twice.
    pub created: u64,
    /// Paths outside of the work directory that were used.
    pub strays: Vec<String>,
}

impl CurveExecution {
    /// Everything that follows from the seed, as text.
    #[must_use]
    pub fn digest(&self) -> String {
        let attempt = |attempt: &Attempt| {
            let measured = attempt.measured.iter().map(|point| {
                let windows = point.outcome.windows.iter().map(|w| &w.totals);
                format!(
                    "{} {} {:?}",
                    point.load,
                    point.at,
                    windows.collect::<Vec<_>>()
                )
            });
            let measured: Vec<String> = measured.collect();
            format!(
                "{measured:?} {:?} {:?} {:?}",
                attempt.curve.results, attempt.files_end, attempt.tree
            )
        };
        let attempts = self.attempts.iter().map(attempt);
        format!("{:?} {}", self.end, attempts.collect::<Vec<_>>().join("\n"))
    }
}

/// Measures a curve.
#[must_use]
pub fn run_curve(curve: &CurveScenario) -> CurveExecution {
    let scenario = &curve.scenario;
    let spec = scenario.files.as_ref().expect("a curve has files");
    let plan = curve.plan();
    let files = Arc::new(SimulatedFiles::new(spec.faults.clone(), scenario.seed));
    foreign(&plan).for_each(|(path, bytes)| files.plant(path, bytes));
    let simulation = Simulation::new(scenario.seed);
    let handle = simulation.handle();
    let end: Shared<CurveEnd> = Shared::default();
    let attempts = Attempts {
        curve: curve.clone(),
        results: CurveFiles::begin(curve, &plan),
        plan,
        files: files.clone(),
        handle: handle.clone(),
        end: end.clone(),
    };
    handle.spawn_process("attempts", move || attempts.run());
    let of_one = Duration::from_micros(curve.planned_us()) + LIMIT_AFTER_END;
    let ended = simulation.run(of_one * (curve.attempts.len() as u32 + 1), REAL_LIMIT);
    let end = with(&end, std::mem::take);
    CurveExecution {
        end: ended,
        panics: handle.panics(),
        attempts: end.attempts,
        resume_error: end.resume_error,
        runs: end.runs,
        tree: end.tree,
        created: files
            .calls()
            .iter()
            .filter(|call| !call.of_load && call.kind == CallKind::Open && call.error.is_none())
            .count() as u64,
        strays: files.strays(),
    }
}

#[derive(Default)]
struct CurveEnd {
    attempts: Vec<Attempt>,
    resume_error: Option<String>,
    runs: Vec<(u64, Result<Box<Run>, String>)>,
    tree: BTreeMap<String, Vec<u8>>,
}

/// Whoever starts the processes of each attempt.
struct Attempts {
    curve: CurveScenario,
    plan: Plan,
    results: CurveFiles,
    files: Arc<SimulatedFiles>,
    handle: SimulationHandle,
    end: Shared<CurveEnd>,
}

impl Attempts {
    fn run(self) {
        for number in 0..=self.curve.attempts.len() {
            let root = self.attempt(number);
            if let Err(e) = self.results.resume() {
                with(&self.end, |end| end.resume_error = Some(e));
                return;
            }
            let disk_errors = self.handle.disk_errors(root);
            let attempt = self.results.attempt(self.files.tree(), disk_errors);
            let can_resume = attempt.curve.state.can_resume();
            with(&self.end, |end| end.attempts.push(attempt));
            if !can_resume {
                break;
            }
        }
        let runs = self.results.runs();
        // As `plimsoll clean`, if a process was killed before it had removed them.
        if is_marked(&self.files.tree(), WORK_DIR) {
            let (dir, settings) = (Path::new(WORK_DIR), settings(&self.curve, self.files.url()));
            let _ = plimsoll_engine::clean(dir, &settings, false, &Stop::default());
        }
        let tree = self.files.tree();
        with(&self.end, |end| (end.runs, end.tree) = (runs, tree));
    }

    /// Executes an attempt; returns the process of its rank 0.
    fn attempt(&self, number: usize) -> ProcessId {
        let scenario = self.curve.of_attempt(number);
        let (delay, jitter) = scenario.delay_us;
        let network = SimulatedNetwork::new(
            self.handle.clone(),
            Duration::from_micros(delay),
            Duration::from_micros(jitter),
        );
        let stops: Vec<Stop> = (0..scenario.ranks).map(|_| Stop::default()).collect();
        let mut processes = Vec::new();
        for (rank, stop) in (0..).zip(&stops) {
            let curve_rank = CurveRank {
                curve: self.curve.clone(),
                plan: self.plan.clone(),
                target: self.files.url(),
                rank,
                stop: stop.clone(),
                network: network.clone(),
                results: self.results.clone(),
                handle: self.handle.clone(),
            };
            let name = format!("rank-{rank}-of-attempt-{number}");
            let process = self.handle.spawn_process(&name, move || curve_rank.run());
            network.set_process(rank, process);
            self.handle
                .set_disk(process, scenario.results.unwrap_or_default());
            self.handle
                .set_clock_drift(process, scenario.drift_of(rank));
            processes.push(process);
        }
        let root = processes[0];
        let group = RankProcesses {
            handle: self.handle.clone(),
            network,
            fan_out: scenario.fan_out,
            processes,
            stops,
        };
        for disturbance in &scenario.disturbances {
            let (group, disturbance) = (group.clone(), *disturbance);
            self.handle
                .spawn_process("environment", move || group.disturb(disturbance, &|_| ()));
        }
        group.await_ends();
        root
    }
}

/// The results of the curve. They outlive the processes of an attempt, as files do.
#[derive(Clone)]
struct CurveFiles(Shared<CurveResultsState>);

struct CurveResultsState {
    /// That of the next attempt until rank 0 takes it.
    writer: Option<CurveWriter>,
    measured: Vec<MeasuredPoint>,
    files_end: Option<CurveFilesEnd>,
    errors: Vec<String>,
    unfinished: Vec<String>,
    root: TempDir,
}

impl CurveFiles {
    fn begin(curve: &CurveScenario, plan: &Plan) -> Self {
        let root = tempfile::tempdir().expect("there is a temporary directory");
        let started = plimsoll_runtime::simulated_epoch();
        let writer = CurveWriter::create(root.path(), document(curve, plan), started);
        Self(Arc::new(Mutex::new(CurveResultsState {
            writer: Some(writer.expect("the temporary directory is writable")),
            measured: vec![],
            files_end: None,
            errors: vec![],
            unfinished: vec![],
            root,
        })))
    }

    /// Has the next processes resume the curve: killed ones held locks, but not on copies.
    fn resume(&self) -> Result<(), String> {
        with(&self.0, |state| {
            let root = tempfile::tempdir().expect("there is a temporary directory");
            let path = root.path().join("resumed");
            let left = only_entry(state.root.path());
            state.unfinished = hidden_entries(&left);
            copy(&left, &path);
            let resumed = CurveWriter::resume(&path).map_err(|e| e.to_string())?;
            (state.writer, state.root) = (Some(resumed), root);
            Ok(())
        })
    }

    fn with_writer<R>(&self, look: impl FnOnce(&CurveWriter) -> R) -> R {
        with(&self.0, |state| {
            look(state.writer.as_ref().expect("the curve was resumed"))
        })
    }

    /// What became of an attempt that is over, after [`Self::resume`].
    fn attempt(&self, tree: BTreeMap<String, Vec<u8>>, disk_errors: u64) -> Attempt {
        let curve = self.with_writer(|writer| writer.document().clone());
        with(&self.0, |state| Attempt {
            measured: std::mem::take(&mut state.measured),
            curve,
            files_end: state.files_end.take(),
            errors: std::mem::take(&mut state.errors),
            disk_errors,
            unfinished: std::mem::take(&mut state.unfinished),
            tree,
        })
    }

    fn runs(&self) -> Vec<(u64, Result<Box<Run>, String>)> {
        self.with_writer(|writer| {
            let points = writer.document().points.iter();
            let read = points.map(|point| {
                let run = writer.dir().run(point).read();
                (point.load, run.map(Box::new).map_err(|e| e.to_string()))
            });
            read.collect()
        })
    }
}

/// Names of hidden directories in a directory.
fn hidden_entries(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let names = entries.map(|entry| entry.expect("the directory can be read").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with('.')).collect()
}

/// The path of the one entry that a directory has.
fn only_entry(dir: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(dir).expect("the directory is there");
    let entry = entries.next().expect("the curve is there");
    entry.expect("the directory can be read").path()
}

/// The program of a rank.
struct CurveRank {
    curve: CurveScenario,
    plan: Plan,
    target: String,
    rank: u32,
    stop: Stop,
    network: SimulatedNetwork,
    results: CurveFiles,
    handle: SimulationHandle,
}

impl CurveRank {
    fn run(self) {
        let scenario = &self.curve.scenario;
        let ranks = self
            .network
            .join(self.rank, scenario.ranks, scenario.fan_out);
        let stop = self.stop.clone();
        ranks.pass_on_stop_request(Box::new(move || stop.is_requested()));
        match self.rank {
            0 => self.lead(&*ranks),
            _ => self.follow(&*ranks),
        }
    }

    /// The Plan of a load, whose files stay for the next one.
    fn plan_at(&self, load: u64) -> Plan {
        let mut plan = self.plan.at_load(load).expect("loads are those of the mix");
        plan.options.keep = true;
        plan
    }

    /// Measures the loads that rank 0 chooses, until it chooses none.
    fn follow(&self, ranks: &dyn Ranks) {
        while let Ok(load) = ranks.broadcast(vec![]) {
            let load = u64::from_le_bytes(load.try_into().expect("rank 0 sends a number"));
            if load == 0 {
                break;
            }
            let observer = &mut IntervalObserver::new(None, &self.stop);
            let plan = self.plan_at(load);
            if run_ranks(
                &plan,
                &settings(&self.curve, self.target.clone()),
                &self.stop,
                observer,
                ranks,
            )
            .is_err()
            {
                break;
            }
        }
    }

    /// Measures the missing loads, and ends the use of the files as `plimsoll curve` does: they stay for a curve that can
    /// be resumed unless their directory is temporary, and while others may work on them.
    fn lead(&self, ranks: &dyn Ranks) {
        let writer = with(&self.results.0, |results| results.writer.take());
        let mut writer = writer.expect("each attempt has one");
        let mut are_busy = false;
        let measured = self.measure(ranks, &mut writer, &mut are_busy);
        // One that could not be written can be resumed.
        let can_resume = measured.is_err() || writer.document().state.can_resume();
        let stays = can_resume && !self.curve.temporary;
        let left = match are_busy {
            true => vec![],
            false => {
                let (dir, settings) = (
                    Path::new(WORK_DIR),
                    settings(&self.curve, self.target.clone()),
                );
                let ended = plimsoll_engine::end_claim(dir, &settings, stays, &self.stop);
                ended.map_or_else(|e| vec![e.to_string()], |cleanup| cleanup.unremoved)
            }
        };
        with(&self.results.0, |results| {
            results.errors.extend(measured.err().map(|e| e.to_string()));
            results.files_end = Some(CurveFilesEnd { are_busy, left });
        });
        // A rank that is gone has ended already.
        let _ = ranks.broadcast(0u64.to_le_bytes().to_vec());
    }

    fn measure(
        &self,
        ranks: &dyn Ranks,
        writer: &mut CurveWriter,
        are_busy: &mut bool,
    ) -> Result<(), ResultsError> {
        writer.change(|curve| curve.state = CurveState::Unfinished)?;
        let state = self.measure_points(ranks, writer, are_busy)?;
        writer.change(|curve| curve.state = state)
    }

    fn measure_points(
        &self,
        ranks: &dyn Ranks,
        writer: &mut CurveWriter,
        are_busy: &mut bool,
    ) -> Result<CurveState, ResultsError> {
        while let Some(load) = writer.document().missing().first().copied() {
            // An earlier attempt may have measured it without listing it.
            if let Some(point) = writer.unlisted_point(load) {
                writer.add(point)?;
                continue;
            }
            if self.stop.is_requested() {
                return Ok(CurveState::Interrupted);
            }
            if ranks.broadcast(load.to_le_bytes().to_vec()).is_err() {
                return Ok(CurveState::Failed);
            }
            let Some(point) = self.measure_load(load, ranks, writer, are_busy) else {
                return Ok(CurveState::Failed);
            };
            plimsoll_runtime::sleep(TIME_UNTIL_LISTED);
            match point.verdict {
                Verdict::Valid | Verdict::Invalid => writer.add(point)?,
                Verdict::Interrupted => return Ok(CurveState::Interrupted),
                Verdict::Failed => return Ok(CurveState::Failed),
            }
        }
        Ok(CurveState::Complete)
    }

    /// Measures a load; `None` if the run was refused, or its results are lost.
    fn measure_load(
        &self,
        load: u64,
        ranks: &dyn Ranks,
        writer: &CurveWriter,
        are_busy: &mut bool,
    ) -> Option<CurvePoint> {
        let plan = self.plan_at(load);
        let started = plimsoll_runtime::system_time();
        let make = || writer.point(load, &plan, started, ClockKind::Real);
        let begun = RunResults::begin(&plan, ranks.size(), &self.handle, Shared::default(), make);
        let results = match begun {
            Ok(results) => results,
            Err(e) => {
                ranks.fail(&e);
                with(&self.results.0, |results| results.errors.push(e));
                return None;
            }
        };
        let mut observer = IntervalObserver::new(Some(results), &self.stop);
        let settings = settings(&self.curve, self.target.clone());
        let ran = run_ranks(&plan, &settings, &self.stop, &mut observer, ranks);
        let outcome = outcome_of(&ran)?;
        *are_busy = !outcome.cleanup.unremoved.is_empty();
        let results = observer.results.expect("this rank writes them");
        let published = results.publish(&ran);
        let error = published.as_ref().err().cloned();
        let measured = MeasuredPoint {
            load,
            plan,
            outcome: Box::new(outcome),
            intervals: observer.intervals,
            at: self.handle.now(),
            is_lost: error.is_some(),
        };
        with(&self.results.0, |results| {
            results.measured.push(measured);
            results.errors.extend(error);
        });
        let (dir, run) = published.ok().flatten()?;
        Some(CurvePoint::of(&run, load, &dir.name()))
    }
}

fn settings(curve: &CurveScenario, target: String) -> Settings {
    Settings {
        target,
        clock: ClockKind::Real,
        lanes: Some(curve.scenario.lanes),
        interval: Duration::from_millis(curve.scenario.interval_ms),
        holds: true,
    }
}

/// The document of a curve that begins.
fn document(curve: &CurveScenario, plan: &Plan) -> LoadCurve {
    let scenario = &curve.scenario;
    let metric = plan.metric.as_ref().expect("a mix has a metric");
    let (warmup, time) = plan.times();
    LoadCurve {
        schema_version: LoadCurve::SCHEMA,
        workload: plan.name.clone(),
        metric: metric.name.clone(),
        scale: metric.scale,
        comparable: true,
        seed: plan.seed,
        started_at: "2026-01-01T00:00:00Z".into(),
        selection: CurveLoads {
            loads: curve.loads.clone(),
        },
        warmup_s: warmup.as_secs_f64(),
        measure_s: time.as_secs_f64(),
        criteria: metric.criteria.clone(),
        // Every load is measured.
        results: CurveResults::new(StopRules {
            stop_after_invalid: None,
            stop_past_peak: false,
        }),
        percentiles_shown: None,
        program: Program::plimsoll(),
        target: target(String::new()),
        clock: ClockKind::Real,
        lanes: Some(scenario.lanes as u64),
        interval_s: scenario.interval_ms as f64 / 1e3,
        ranks: scenario.ranks,
        settings: CurveSettings {
            monitor: None,
            keep: false,
        },
        hooks: None,
        events: vec![],
        notes: vec![],
        environment: Environment::default(),
        plan: plan.clone(),
    }
}
