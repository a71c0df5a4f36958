//! The search for a load line in `find.json`, run by run, and its directory.

use crate::collection::{Collection, CollectionWriter};
use crate::document::{Directory, Document};
use crate::load_test::{LoadPoints, LoadTest};
use crate::renames::{self, Rename};
use crate::{
    ClockKind, CurvePoint, FIND_FILE, Reason, ResultsError, Run, RunDir, RunWriter, Verdict,
};
use plimsoll_plan::{Criteria, Plan};
use plimsoll_points::{LoadLine, Purpose, Search, SearchEnd, Step, TrialRun};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;

/// Codes of reasons that are the measuring machine's fault.
const CLIENT_REASONS: [&str; 3] = ["client_saturated", "client_start_delay", "client_throttled"];

/// A search for the load line of a workload: the highest load that is sustained.
pub type LoadSearch = LoadTest<SearchState, SearchRuns, SearchSettings>;

/// State of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchState {
    /// Rules by which the loads are selected.
    pub search: Search,
    /// The load line as far as the runs determine it.
    pub load_line: LoadLine,
    /// The error that ended the search.
    pub failure: Option<Reason>,
}

/// The runs of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRuns {
    /// Every run, in the order in which they were made.
    pub runs: Vec<SearchRun>,
}

/// Settings that only a search has: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchSettings {}

/// A run of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRun {
    /// Purpose of the run.
    pub purpose: Purpose,
    /// Whether it met every criterion.
    pub passed: bool,
    /// Minimum distance of rates and latency from their criteria, as a fraction of the criterion:
    /// above 0 it passed, below 0 it failed. Null if nothing can be compared, if an operation
    /// failed, and if the run was client-limited.
    pub margin: Option<f64>,
    /// Measured figures.
    pub point: CurvePoint,
}

impl SearchRun {
    /// The run as input of the search.
    #[must_use]
    pub fn trial(&self) -> TrialRun {
        TrialRun {
            load: self.point.load,
            passed: self.passed,
            margin: self.margin,
            client_limited: self.is_client_limited(),
        }
    }

    /// Whether the measuring machine limited the run, so that it says little about the system.
    #[must_use]
    pub fn is_client_limited(&self) -> bool {
        let codes = self.point.reasons.iter().map(|r| r.code.as_str());
        codes.into_iter().any(|c| CLIENT_REASONS.contains(&c))
    }
}

impl LoadPoints for SearchRuns {
    fn points_mut(&mut self) -> impl Iterator<Item = &mut CurvePoint> {
        self.runs.iter_mut().map(|run| &mut run.point)
    }
}

impl SearchState {
    /// A search without runs.
    #[must_use]
    pub fn new(search: Search) -> Self {
        Self {
            search,
            load_line: search.load_line(&[]),
            failure: None,
        }
    }
}

impl LoadSearch {
    /// The runs as input of the search.
    #[must_use]
    pub fn trials(&self) -> Vec<TrialRun> {
        self.runs.iter().map(SearchRun::trial).collect()
    }

    /// Whether loads remain to be measured: the search was interrupted, its process was killed, or
    /// an error ended it.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        let state = &self.selection;
        state.failure.is_some()
            || matches!(
                state.load_line.termination,
                SearchEnd::Interrupted | SearchEnd::Unfinished
            )
    }
}

impl Collection for LoadSearch {
    fn directory_name(&self) -> String {
        format!("{}-find", self.workload)
    }

    fn list_unlisted_runs(writer: &mut FindWriter) -> Result<(), ResultsError> {
        let search = writer.document();
        let Step::Measure(load, purpose) = search.selection.search.next(&search.trials()) else {
            return Ok(());
        };
        let dir = writer.dir().listed(&name_of(search, load));
        let Ok(run) = dir.read_with(search.percentiles_shown.as_ref()) else {
            return Ok(());
        };
        let is_it = run.plan.metric.as_ref().is_some_and(|m| m.load == load)
            && run.target.system == search.target.system
            && run.plan.seed == search.seed
            && run.plan.filesets == search.plan.filesets;
        let ended = matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid);
        match is_it && ended {
            true => writer.add(&run, &dir, load, purpose),
            false => Ok(()),
        }
    }
}

impl Document for LoadSearch {
    const FILE: &str = FIND_FILE;
    const SCHEMA: u32 = 3;
    const KIND_NAME: &str = "search";
    const RENAMES: &[&[Rename]] = &[renames::POINT, renames::FIND, renames::PLAN];
}

/// The directory of a search: `find.json`, and the results directories of its runs.
pub type FindDir = Directory<LoadSearch>;

impl Directory<LoadSearch> {
    /// The results of one of its runs.
    #[must_use]
    pub fn run(&self, run: &SearchRun) -> RunDir {
        self.listed(&run.point.run)
    }
}

/// A directory of a search that is being written.
pub type FindWriter = CollectionWriter<LoadSearch>;

impl CollectionWriter<LoadSearch> {
    /// A writer of the results of the next run, at this load.
    ///
    /// # Errors
    /// As [`RunWriter::create`].
    pub fn next_run(
        &self,
        load: u64,
        plan: &Plan,
        started: SystemTime,
        clock: ClockKind,
    ) -> Result<RunWriter, ResultsError> {
        self.run_writer(&name_of(self.document(), load), plan, started, clock)
    }

    /// Adds a run, whose results are in the directory `dir`, and writes the search.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn add(
        &mut self,
        run: &Run,
        dir: &RunDir,
        load: u64,
        purpose: Purpose,
    ) -> Result<(), ResultsError> {
        let point = CurvePoint::of(run, load, &dir.name());
        let passed = point.verdict == Verdict::Valid;
        let mut run = SearchRun {
            purpose,
            passed,
            margin: margin(run, &self.document().criteria),
            point,
        };
        run.margin = run
            .margin
            .filter(|_| !run.is_client_limited())
            .map(|m| match passed {
                // Processes of one kind need not have the same number of scheduled operations, and
                // only their mean is known here: the verdict itself is exact.
                true => m.max(0.0),
                false => m.min(0.0),
            });
        self.change(|search| {
            search.runs.push(run);
            search.selection.load_line = search.selection.search.load_line(&search.trials());
        })
    }
}

/// Name of the results of the next run.
fn name_of(search: &LoadSearch, load: u64) -> String {
    format!("run-{:02}-load-{load}", search.runs.len() + 1)
}

/// Returns the distance of a run from its criteria; `None` for a run with errors, because to repeat
/// it would not undo them.
///
/// The operation that each process has in flight at the end counts as completed, as it does in the
/// criteria.
fn margin(run: &Run, criteria: &Criteria) -> Option<f64> {
    let mix = run.mix.as_ref()?;
    if run.summary.errors > 0 {
        return None;
    }
    let total = &mix.total;
    let processes: u64 = mix
        .components
        .iter()
        .map(|c| c.processes)
        .fold(0, u64::saturating_add);
    let paced = total.offered_ops_per_s.is_some() && total.scheduled > 0;
    let sustained = paced
        .then(|| 100.0 * total.completed.saturating_add(processes) as f64 / total.scheduled as f64);
    let slowest = mix.components.iter().filter_map(|c| {
        let in_flight = 100.0 * c.processes as f64 / c.carried.scheduled as f64;
        Some(c.carried.slowest_process_percent? + in_flight)
    });
    let slowest = slowest.reduce(f64::min);
    plimsoll_points::margin(criteria, sustained, slowest, Some(run.summary.mean_ms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ComponentFigures, MeasuredRun, MixFigures, ScheduledFigures, Target};

    fn carried(scheduled: u64, completed: u64, slowest: Option<f64>) -> ScheduledFigures {
        ScheduledFigures {
            offered_ops_per_s: slowest.map(|_| 10.0),
            achieved_ops_per_s: 9.0,
            scheduled,
            completed,
            dropped: 0,
            slowest_process_percent: slowest,
            response: None,
            start_delay: None,
        }
    }

    /// A run of components with these processes, scheduled operations, and percentage of the slowest.
    fn run(components: &[(u64, u64, Option<f64>)], completed: u64) -> Run {
        let target = Target {
            url: "posix".into(),
            description: String::new(),
            system: None,
            testbed: None,
        };
        let measured = MeasuredRun::new(Plan::empty("w"), target, SystemTime::UNIX_EPOCH);
        let mut run = Run::assemble(measured);
        let component =
            |(processes, scheduled, slowest): &(u64, u64, Option<f64>)| ComponentFigures {
                name: "c".into(),
                processes: *processes,
                carried: carried(*scheduled, 0, *slowest),
            };
        let scheduled = components.iter().map(|c| c.1).sum();
        run.mix = Some(MixFigures {
            load: 1,
            metric: "streams".into(),
            scale: 1.0,
            total: carried(scheduled, completed, components[0].2),
            components: components.iter().map(component).collect(),
        });
        run.summary.mean_ms = 4.0;
        run
    }

    fn criteria(total_percent: f64, process_percent: f64, ms: Option<u64>) -> Criteria {
        Criteria {
            process_percent,
            total_percent,
            latency: ms.map(std::time::Duration::from_millis),
        }
    }

    #[test]
    fn the_margin_is_that_of_the_nearest_criterion() {
        let run = run(&[(4, 200, Some(80.0)), (6, 50, Some(70.0))], 230);
        let near = |criteria: &Criteria, expected: f64| {
            let got = margin(&run, criteria).unwrap();
            assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        };
        // 230 operations and the ten in flight of 250: 96 %.
        near(&criteria(80.0, 1.0, None), 0.2);
        // 80 % and four of 200 are 82 %, 70 % and six of 50 are the same.
        near(&criteria(1.0, 41.0, None), 1.0);
        near(&criteria(96.0, 41.0, None), 0.0);
        // 4 ms of 5 ms.
        near(&criteria(1.0, 1.0, Some(5)), 0.2);
        near(&criteria(1.0, 1.0, Some(2)), -1.0);
    }

    #[test]
    fn what_cannot_be_compared_has_no_margin() {
        let paced = || run(&[(4, 200, Some(80.0))], 190);
        let mut failed = paced();
        failed.summary.errors = 1;
        assert_eq!(margin(&failed, &Criteria::default()), None);
        let mut without_mix = paced();
        without_mix.mix = None;
        assert_eq!(margin(&without_mix, &Criteria::default()), None);
        // Without a schedule only the latency tells.
        let unpaced = run(&[(4, 0, None)], 190);
        assert_eq!(margin(&unpaced, &criteria(95.0, 75.0, None)), None);
        assert_eq!(margin(&unpaced, &criteria(95.0, 75.0, Some(8))), Some(0.5));
        let mut nothing = run(&[(4, 0, Some(80.0))], 0);
        nothing.mix.as_mut().unwrap().components.clear();
        assert_eq!(margin(&nothing, &criteria(95.0, 75.0, None)), None);
    }
}
