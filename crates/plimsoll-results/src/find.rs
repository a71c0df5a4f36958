//! What `find.json` holds: the search for a load line, run by run; and its directory.

use crate::document::{self, Directory, Document, Writer};
use crate::renames::{self, Rename};
use crate::{
    ClockKind, CurvePoint, Environment, Hooks, Percentile, Percentiles, Program, Reason,
    ResultsError, Run, RunDir, RunWriter, Target,
};
use plimsoll_plan::{Criteria, Note, Plan};
use plimsoll_points::{LoadLine, Purpose, Search, SearchEnd, TrialRun};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::SystemTime;

/// Version of `find.json`; raised when a field changes meaning or goes.
pub const FIND_SCHEMA: u32 = 3;

/// Name of the file that holds the [`LoadSearch`].
pub const FIND_FILE: &str = "find.json";

/// Reasons that lie with the measuring machine.
const CLIENT_REASONS: [&str; 2] = ["client_saturated", "client_start_delay"];

/// A search for the load line of a workload: the highest load that is carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadSearch {
    /// Version of this form.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// What the load is a number of, such as `streams`.
    pub metric: String,
    /// Share of the full data and of the full rates.
    pub scale: f64,
    /// Whether data and rates are the full ones; if not, the result is scaled: not comparable.
    pub comparable: bool,
    /// Root of all random choices.
    pub seed: u64,
    /// When the search was begun: RFC 3339, in UTC.
    pub started_at: String,
    /// How the load line is looked for.
    pub search: Search,
    /// Where the load line lies, as far as the runs say it.
    pub load_line: LoadLine,
    /// The error that ended the search.
    pub failure: Option<Reason>,
    /// Seconds of warm-up before each run is measured.
    pub warmup_s: f64,
    /// Seconds each run is measured for.
    pub measure_s: f64,
    /// When a load counts as carried.
    pub criteria: Criteria,
    /// Every run, in the order they were made.
    pub runs: Vec<SearchRun>,
    /// Percentiles that tables show; null where no others were requested than the usual ones.
    #[serde(default)]
    pub percentiles_shown: Option<Percentiles>,
    /// Program that measured it.
    pub program: Program,
    /// What the load was put on.
    pub target: Target,
    /// Clock of the runs.
    pub clock: ClockKind,
    /// Threads that drive the workers, if their number was asked for.
    pub lanes: Option<u64>,
    /// Seconds of an interval of the runs' series.
    pub interval_s: f64,
    /// Processes that ran each load together.
    pub ranks: u32,
    /// Commands of the user around the phases of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// Remarks.
    pub notes: Vec<Note>,
    /// The machine and the place of the files.
    pub environment: Environment,
    /// Everything the run of the greatest load would do; the other loads are parts of it.
    pub plan: Plan,
}

/// A run of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchRun {
    /// What it was for.
    pub purpose: Purpose,
    /// Whether it met every criterion.
    pub passed: bool,
    /// The least distance of rates and latency from their criteria, as a share of the criterion:
    /// above 0 it was met, below 0 missed; null where nothing can be compared, where an operation
    /// failed, and where the measuring machine held the run back.
    pub margin: Option<f64>,
    /// What was measured.
    pub point: CurvePoint,
}

impl SearchRun {
    /// The run as the search takes it.
    #[must_use]
    pub fn trial(&self) -> TrialRun {
        TrialRun {
            load: self.point.load,
            passed: self.passed,
            margin: self.margin,
            client_limited: self.is_client_limited(),
        }
    }

    /// Whether the measuring machine held the run back, so that it says little of the system.
    #[must_use]
    pub fn is_client_limited(&self) -> bool {
        let codes = self.point.reasons.iter().map(|r| r.code.as_str());
        codes.into_iter().any(|c| CLIENT_REASONS.contains(&c))
    }
}

impl LoadSearch {
    /// Percentiles that a table shows, which has `usual` where no others were requested.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }

    /// The runs as the search takes them.
    #[must_use]
    pub fn trials(&self) -> Vec<TrialRun> {
        self.runs.iter().map(SearchRun::trial).collect()
    }

    /// Whether there is still something to measure: it was interrupted, its process was killed, or
    /// an error ended it.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        self.failure.is_some()
            || matches!(
                self.load_line.termination,
                SearchEnd::Interrupted | SearchEnd::Unfinished
            )
    }

    /// The search as `find.json` holds it: pretty-printed, with a newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        document::json(self)
    }
}

impl Document for LoadSearch {
    const FILE: &str = FIND_FILE;
    const SCHEMA: u32 = FIND_SCHEMA;
    const KIND_NAME: &str = "search";
    const RENAMES: &[&[Rename]] = &[renames::POINT, renames::FIND, renames::PLAN];
}

/// The JSON schema of `find.json`, pretty-printed.
#[must_use]
pub fn find_schema() -> String {
    document::schema::<LoadSearch>()
}

/// The directory of a search: `find.json`, and the results directories of its runs.
pub type FindDir = Directory<LoadSearch>;

impl Directory<LoadSearch> {
    /// Reads the search, for tables that show these percentiles; with none it is
    /// [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`RunDir::read_with`] of its runs.
    pub fn read_with(&self, percentiles: Option<&Percentiles>) -> Result<LoadSearch, ResultsError> {
        let mut search = self.read()?;
        if let Some(wanted) = percentiles {
            for run in &mut search.runs {
                let dir = self.run(run);
                run.point.complete(&dir, wanted)?;
            }
            search.percentiles_shown = Some(wanted.clone());
        }
        Ok(search)
    }

    /// The results of one of its runs.
    #[must_use]
    pub fn run(&self, run: &SearchRun) -> RunDir {
        self.listed(&run.point.run)
    }
}

/// A directory of a search that is being written.
///
/// `find.json` is replaced as a whole after every run, so that a process that is killed leaves
/// what it had measured. The directory belongs to one writer at a time.
pub struct FindWriter(Writer<LoadSearch>);

impl FindWriter {
    /// Makes a directory below `root`, which is made if it is missing, and writes `search`, which
    /// has no runs yet.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses.
    pub fn create(
        root: &Path,
        search: LoadSearch,
        started: SystemTime,
    ) -> Result<Self, ResultsError> {
        let name = format!("{}-find", search.workload);
        Ok(Self(Writer::create(root, search, &name, started)?))
    }

    /// Goes on with the search in a directory.
    ///
    /// # Errors
    /// As [`FindDir::read`]; [`ResultsError::InUse`] if another process writes to the directory.
    pub fn resume(path: &Path) -> Result<Self, ResultsError> {
        Ok(Self(Writer::resume(path)?))
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &FindDir {
        self.0.dir()
    }

    /// The search as it was last written.
    #[must_use]
    pub fn search(&self) -> &LoadSearch {
        self.0.document()
    }

    /// A writer of the results of the next run, which is one of this load.
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
        let name = format!("run-{:02}-load-{load}", self.search().runs.len() + 1);
        RunWriter::create_as(&name, self.dir().path(), plan, started, clock)
    }

    /// Adds a run, whose results are in `dir`, and writes the search.
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
        let name = dir.path().file_name().unwrap_or_default();
        let point = CurvePoint::of(run, load, &name.to_string_lossy());
        let held = point.verdict == crate::Verdict::Valid;
        let mut run = SearchRun {
            purpose,
            passed: held,
            margin: margin(run, &self.search().criteria),
            point,
        };
        run.margin = run
            .margin
            .filter(|_| !run.is_client_limited())
            .map(|m| match held {
                // Processes of one kind need not have the same number of operations due, and only
                // their mean is known here: the judgement itself is exact.
                true => m.max(0.0),
                false => m.min(0.0),
            });
        self.change(|search| search.runs.push(run))
    }

    /// Changes the search and writes it.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses; the file is then as it was.
    pub fn change(&mut self, change: impl FnOnce(&mut LoadSearch)) -> Result<(), ResultsError> {
        self.0.change(change)
    }

    /// Removes the directory of a search that has no runs, because its first one was refused.
    ///
    /// # Errors
    /// [`ResultsError::Io`] if the file system refuses, or if something else lies in it.
    pub fn withdraw(self) -> Result<(), ResultsError> {
        self.0.remove_empty()
    }
}

/// How near to a criterion a run came. One with errors is not near to anything: to run it again
/// would not make them good.
///
/// The operation that each process has under way when the time is over counts as done, as it does
/// in the criteria.
fn margin(run: &Run, criteria: &Criteria) -> Option<f64> {
    let mix = run.mix.as_ref()?;
    if run.summary.errors > 0 {
        return None;
    }
    let total = &mix.total;
    let processes: u64 = mix.components.iter().map(|c| c.processes).sum();
    let paced = total.offered_ops_per_s.is_some() && total.scheduled > 0;
    let carried =
        paced.then(|| 100.0 * (total.completed + processes) as f64 / total.scheduled as f64);
    let slowest = mix.components.iter().filter_map(|c| {
        let under_way = 100.0 * c.processes as f64 / c.carried.scheduled as f64;
        Some(c.carried.slowest_process_percent? + under_way)
    });
    let slowest = slowest.reduce(f64::min);
    plimsoll_points::margin(criteria, carried, slowest, Some(run.summary.mean_ms))
}
