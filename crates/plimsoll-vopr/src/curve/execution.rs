//! Attempts at a curve. Each attempt has new processes, and shares only the results and the files of the curve with
//! other attempts. Rank 0 makes the missing runs with the loop of `plimsoll curve`.

use super::CurveScenario;
use super::files::{PointRun, SeriesFiles};
use super::host::{AttemptLog, CurveHost, MeasuredPoint};
use crate::execution::{BUSY_LIMIT, LIMIT_AFTER_END, RankProcesses, Shared, is_marked, with};
use crate::files::{WORK_DIR, foreign};
use plimsoll_engine::{Settings, Stop};
use plimsoll_ranks::SimulatedNetwork;
use plimsoll_results::{Series, SeriesWriter};
use plimsoll_runtime::{ProcessId, Simulation, SimulationEnd, SimulationHandle};
use plimsoll_series::{Communicator, RunContext, SeriesError, drive, follow, release_members};
use plimsoll_target::simulated::{CallKind, SimulatedFiles};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// End of rank 0's loop over the loads in one attempt at a curve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Whether rank 0 left files in place because a lost rank may still work on them.
    pub are_busy: bool,
    /// Files and directories that could not be removed, and claims that could not be released.
    pub left: Vec<String>,
    /// Sentence on why a run was refused before its begin; `None` if no run was refused.
    pub refusal: Option<String>,
    /// Error of writing the curve or the results of a run, after which the curve can be resumed; `None` without an
    /// error.
    pub loss: Option<String>,
}

impl AttemptEnd {
    /// The end of the loop that returned `made`. `resume_hint` is the line with the command that resumes the curve: a
    /// loss ends with the line, a refusal does not.
    fn of(made: &Result<SeriesWriter, SeriesError>, resume_hint: &str, are_busy: bool) -> Self {
        let mut end = Self {
            are_busy,
            left: vec![],
            refusal: None,
            loss: None,
        };
        match made {
            Ok(ended) => {
                let series = ended.series();
                end.left = series.unremoved.clone();
                let reason = series.stop_reason.as_ref();
                let reason = reason.filter(|reason| reason.code == "refused");
                end.refusal = reason.map(|reason| reason.text.clone());
            }
            Err(e) => {
                let text = e.to_string();
                let warnings = text.lines().filter_map(|l| l.strip_prefix("warning: "));
                // Warnings also include errors of writing results, which do not name remaining files.
                let is_of_results =
                    |l: &&str| l.starts_with("cannot create /") || l.starts_with("cannot write /");
                let left = warnings.filter(|l| !is_of_results(l));
                end.left = left.map(ToOwned::to_owned).collect();
                match text.ends_with(resume_hint) {
                    true => end.loss = Some(text),
                    false => end.refusal = Some(text),
                }
            }
        }
        if are_busy {
            // The notes name the files that stay on purpose.
            end.left.clear();
        }
        end
    }
}

/// Observations of one attempt at a curve: measured runs, messages, and the files and results left for the next
/// attempt.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Runs that rank 0 measured in the attempt, in order.
    pub measured: Vec<MeasuredPoint>,
    /// Content of `series.json` after the attempt, as the next attempt resumes the curve; the initial content if the
    /// attempt has withdrawn the curve.
    pub series: Series,
    /// End of rank 0's loop over the loads; `None` if rank 0 was killed during the loop.
    pub end: Option<AttemptEnd>,
    /// Warnings and errors that rank 0 reported to the user.
    pub warnings: Vec<String>,
    /// Number of failed calls of rank 0 to the disk of the results.
    pub disk_errors: u64,
    /// Names of the hidden directories with unfinished results, after the attempt.
    pub unfinished: Vec<String>,
    /// Target's files after the end of all processes of the attempt: content by path, with directories too.
    pub tree: BTreeMap<String, Vec<u8>>,
}

/// Observations of a whole curve: its attempts, and the files and results after the last attempt.
#[derive(Debug, Clone)]
pub struct CurveExecution {
    /// End of the simulation: the end of all processes, a deadlock, a time limit or a livelock.
    pub end: SimulationEnd,
    /// Messages of panics in simulated processes; every panic breaks a rule.
    pub panics: Vec<String>,
    /// The attempts in order; fewer than the scenario has if an earlier attempt has completed the curve.
    pub attempts: Vec<Attempt>,
    /// Error of resuming the curve for the next attempt; `None` if every resumption succeeded.
    pub resume_error: Option<String>,
    /// Results of every listed load point, read after the last attempt.
    pub runs: Vec<PointRun>,
    /// Target's files after the last attempt and a removal as by `plimsoll clean`: content by path.
    pub tree: BTreeMap<String, Vec<u8>>,
    /// Number of file creations outside of the load, in all attempts; a file that was created twice counts twice.
    pub created: u64,
    /// Paths outside of the work directory that calls to the target named; every such path breaks a rule.
    pub strays: Vec<String>,
}

impl Attempt {
    /// Observations of the attempt that must be the same in every execution of the seed, as text: without measurements
    /// of the real machine, and without verdicts, which depend on such measurements.
    fn digest(&self) -> String {
        let measured = self.measured.iter().map(|point| {
            let windows = point.outcome.windows.iter().map(|w| &w.totals);
            let windows: Vec<_> = windows.collect();
            format!(
                "{} {} {} {windows:?}",
                point.load, point.at, point.is_written
            )
        });
        let measured: Vec<String> = measured.collect();
        let listed = self.series.runs.iter().map(|run| {
            let figures = (run.achieved_ops_per_s, run.mean_ms, run.max_ms, run.errors);
            format!("{} {} {figures:?}", run.directory, run.started_at)
        });
        let listed: Vec<String> = listed.collect();
        let kinds = self
            .end
            .as_ref()
            .map(|end| (end.are_busy, end.refusal.is_some(), end.loss.is_some()));
        format!(
            "{measured:?} {listed:?} {:?} {kinds:?} {:?}",
            self.series.state, self.tree
        )
    }
}

impl CurveExecution {
    /// Observations of the curve that must be the same in every execution of the seed, as text.
    #[must_use]
    pub fn digest(&self) -> String {
        let attempts: Vec<String> = self.attempts.iter().map(Attempt::digest).collect();
        format!("{:?} {}", self.end, attempts.join("\n"))
    }
}

/// Simulates the attempts at a curve one after the other, until the curve is complete or cannot be resumed.
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
        results: SeriesFiles::begin(curve, &plan, files.url(scenario.lanes)),
        files: files.clone(),
        handle: handle.clone(),
        end: end.clone(),
    };
    handle.spawn_process("attempts", move || attempts.run());
    let of_one = Duration::from_micros(curve.planned_us()) + LIMIT_AFTER_END;
    let ended = simulation.run(of_one * (curve.attempts.len() as u32 + 1), BUSY_LIMIT);
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
    runs: Vec<PointRun>,
    tree: BTreeMap<String, Vec<u8>>,
}

/// The state of an attempt besides results and files.
#[derive(Clone, Default)]
struct AttemptState {
    log: Shared<AttemptLog>,
    end: Shared<Option<AttemptEnd>>,
}

/// The process that starts the processes of each attempt.
struct Attempts {
    curve: CurveScenario,
    results: SeriesFiles,
    files: Arc<SimulatedFiles>,
    handle: SimulationHandle,
    end: Shared<CurveEnd>,
}

impl Attempts {
    fn run(self) {
        for number in 0..=self.curve.attempts.len() {
            let state = AttemptState::default();
            let root = self.attempt(number, &state);
            let left = match self.results.reopen() {
                Ok(left) => left,
                Err(e) => {
                    with(&self.end, |end| end.resume_error = Some(e));
                    return;
                }
            };
            let log = with(&state.log, std::mem::take);
            let attempt = Attempt {
                measured: log.measured,
                series: left.series,
                end: with(&state.end, Option::take),
                warnings: log.warnings,
                disk_errors: self.handle.disk_errors(root),
                unfinished: left.unfinished,
                tree: self.files.tree(),
            };
            let runs = self.results.runs(&attempt.series);
            let can_resume = attempt.series.state.can_resume();
            with(&self.end, |end| {
                end.attempts.push(attempt);
                end.runs = runs;
            });
            if !can_resume {
                break;
            }
        }
        // A killed process leaves its files and the marker: remove them from the work directory as `plimsoll clean`
        // does.
        if is_marked(&self.files.tree(), WORK_DIR) {
            let settings = Settings {
                target: self.files.url(self.curve.scenario.lanes),
                ..Settings::default()
            };
            let dir = Path::new(WORK_DIR);
            let _ = plimsoll_engine::clean(dir, &settings, false, &Stop::default());
        }
        let tree = self.files.tree();
        with(&self.end, |end| end.tree = tree);
    }

    /// Starts the processes of an attempt and waits for their end; returns the process of rank 0.
    fn attempt(&self, number: usize, state: &AttemptState) -> ProcessId {
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
                rank,
                ranks: scenario.ranks,
                fan_out: scenario.fan_out,
                host: CurveHost {
                    stop: stop.clone(),
                    handle: self.handle.clone(),
                    log: state.log.clone(),
                },
                network: network.clone(),
                results: self.results.clone(),
                end: state.end.clone(),
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

/// The process of a rank.
struct CurveRank {
    rank: u32,
    ranks: u32,
    fan_out: u32,
    host: CurveHost,
    network: SimulatedNetwork,
    results: SeriesFiles,
    end: Shared<Option<AttemptEnd>>,
}

impl CurveRank {
    fn run(self) {
        let ranks = self.network.join(self.rank, self.ranks, self.fan_out);
        let communicator = Communicator::new(ranks);
        communicator.pass_on(&self.host.stop);
        let context = RunContext::new(&communicator, &self.host);
        match self.rank {
            0 => self.lead(context),
            // Rank 0 reports errors of other ranks.
            _ => _ = follow(&context),
        }
    }

    /// Makes the missing runs, as rank 0 of `plimsoll curve` and `plimsoll resume` does.
    fn lead(&self, context: RunContext<'_>) {
        let communicator = context.communicator;
        let writer = self.results.take_writer();
        let resume_hint = writer.dir().resume_hint();
        let made = drive(context, writer, NonZeroUsize::MIN);
        release_members(communicator);
        let are_busy = with(&self.host.log, |log| log.are_busy);
        let end = AttemptEnd::of(&made, &resume_hint, are_busy);
        with(&self.end, |found| *found = Some(end));
    }
}
