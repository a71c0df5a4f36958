//! A series of runs in `series.json`: repeated runs, a load curve, a search for a load line, a profile.
//!
//! The next run of a series is a function of its runs so far: [`Series::next`] asks the [`Strategy`] of the series'
//! kind. An interrupted or killed series is therefore resumed by reading its document.

mod curve;
mod margin;
mod next;
mod profile;
mod repeats;
mod run;
mod search;
mod stop;
mod writer;

pub use curve::LoadCurve;
pub use next::{MAX_REPEATS, NextRun, Step, Strategy};
pub use profile::{Profile, SkippedConfiguration};
pub use repeats::Repeats;
pub use run::{CriterionResult, SeriesRun};
pub use search::{
    Agreement, LoadLine, LoadSearch, Purpose, SearchEnd, SearchRules, SearchStep, TrialRun,
};
pub use stop::{CurveEnd, StopRules};
pub use writer::SeriesWriter;

use crate::document::{Directory, Document};
use crate::{
    ClockKind, Environment, Kind, Percentile, Percentiles, Program, Reason, ResultsError, Run,
    RunDir, SERIES_FILE, Status, Target, Verdict,
};
use plimsoll_plan::{BusinessMetric, Note, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::path::Path;

/// Runs that are one result, and the rule by which one follows another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the workload, or of the profile.
    pub name: String,
    /// Start of the first run: RFC 3339, in UTC.
    pub started_at: String,
    /// Whether runs remain to be made.
    pub state: SeriesState,
    /// Reason why the series ended before its last run; null if it did not.
    pub stop_reason: Option<Reason>,
    /// Kind of the series, its rule, and the figures that follow from the runs.
    #[serde(flatten)]
    pub kind: SeriesKind,
    /// Runs in the order in which they ended.
    pub runs: Vec<SeriesRun>,
    /// Configurations of the runs: one, or those of a profile.
    pub configurations: Vec<Configuration>,
    /// Requested percentiles in tables; null if the usual ones are shown.
    pub percentiles_shown: Option<Percentiles>,
    /// Program that made the runs.
    pub program: Program,
    /// Clock of the runs.
    pub clock: ClockKind,
    /// Requested number of threads that drive the workers; null if none was requested.
    pub lanes: Option<u64>,
    /// Length of an interval of the runs' time series in seconds.
    pub interval_s: f64,
    /// Number of processes that make each run together.
    pub ranks: u32,
    /// Events of each run, and commands around its phases, as on the command line, such as `30s sh ./failover` or
    /// `before load sh sync`. The URL of a simulated system has its events instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Notes on the series.
    pub notes: Vec<Note>,
    /// Machine of rank 0, and the file system of the first work directory.
    pub environment: Environment,
}

/// Kind of a series, its rule, and the figures that follow from the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SeriesKind {
    /// One workload, several times, with seeds that follow each other.
    Repeats(Repeats),
    /// One workload at increasing loads, on one data set.
    Curve(LoadCurve),
    /// A search for the highest load that is sustained.
    Search(LoadSearch),
    /// The configurations of a Filebench profile, on each file system.
    Profile(Profile),
}

/// Whether a series is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeriesState {
    /// Runs are missing: the series is in progress, or its process was killed.
    Unfinished,
    /// Every run was made.
    Complete,
    /// A rule of the series ended it.
    Stopped,
    /// The user ended it; runs are missing.
    Interrupted,
    /// An error ended it, or ended a run of it.
    Failed,
}

impl SeriesState {
    /// Whether runs remain to be made.
    #[must_use]
    pub fn can_resume(self) -> bool {
        match self {
            Self::Unfinished | Self::Interrupted | Self::Failed => true,
            Self::Complete | Self::Stopped => false,
        }
    }
}

/// What some runs of a series execute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// Name in the profile, with the values that differ between its runs, such as `read,nthreads=4`; empty elsewhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Name of the file system in the profile; null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// Directory of its results, relative to the series'; empty for the series' own directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Target of the load.
    pub target: Target,
    /// Plan of the runs; of a series with several loads, the Plan of the highest load, of whose files smaller loads use a
    /// part.
    pub plan: Plan,
}

/// A series of one kind, with the rule and figures of that kind.
#[derive(Debug)]
pub struct SeriesOf<'a, K> {
    /// The series.
    pub series: &'a Series,
    /// Rule and figures.
    pub figures: &'a K,
}

impl<K> Clone for SeriesOf<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for SeriesOf<'_, K> {}

impl<K> Deref for SeriesOf<'_, K> {
    type Target = Series;

    fn deref(&self) -> &Series {
        self.series
    }
}

impl Series {
    /// The series with its load curve; `None` for other kinds.
    #[must_use]
    pub fn as_curve(&self) -> Option<SeriesOf<'_, LoadCurve>> {
        let SeriesKind::Curve(figures) = &self.kind else {
            return None;
        };
        Some(SeriesOf {
            series: self,
            figures,
        })
    }

    /// The series with its search; `None` for other kinds.
    #[must_use]
    pub fn as_search(&self) -> Option<SeriesOf<'_, LoadSearch>> {
        let SeriesKind::Search(figures) = &self.kind else {
            return None;
        };
        Some(SeriesOf {
            series: self,
            figures,
        })
    }

    /// The series with its profile; `None` for other kinds.
    #[must_use]
    pub fn as_profile(&self) -> Option<SeriesOf<'_, Profile>> {
        let SeriesKind::Profile(figures) = &self.kind else {
            return None;
        };
        Some(SeriesOf {
            series: self,
            figures,
        })
    }
}

impl Configuration {
    /// Name and file system, such as `read,nthreads=4 on ext4`; `None` without a file system, as in every series but a
    /// profile.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        let filesystem = self.filesystem.as_ref()?;
        Some(format!("{} on {filesystem}", self.name))
    }
}

impl SeriesKind {
    /// The rule that chooses the runs of a series of this kind.
    #[must_use]
    pub fn strategy(&self) -> &dyn Strategy {
        match self {
            Self::Repeats(repeats) => repeats,
            Self::Curve(curve) => curve,
            Self::Search(search) => search,
            Self::Profile(profile) => profile,
        }
    }

    fn strategy_mut(&mut self) -> &mut dyn Strategy {
        match self {
            Self::Repeats(repeats) => repeats,
            Self::Curve(curve) => curve,
            Self::Search(search) => search,
            Self::Profile(profile) => profile,
        }
    }

    /// Kind of the results, without the figures.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Repeats(_) => Kind::Repeats,
            Self::Curve(_) => Kind::Curve,
            Self::Search(_) => Kind::Search,
            Self::Profile(_) => Kind::Profile,
        }
    }
}

impl Series {
    /// The next run, or the state in which the series ends.
    #[must_use]
    pub fn next(&self) -> Step {
        let strategy = self.kind.strategy();
        if let Some(last) = self.runs.last() {
            if last.verdict == Verdict::Interrupted {
                return Step::End(SeriesState::Interrupted, None);
            }
            if last.verdict == Verdict::Failed && strategy.ends_with_a_failed_run() {
                return Step::End(SeriesState::Failed, Some(last.failure()));
            }
        }
        strategy.next(self)
    }

    /// The Plan of a run of the series: the Plan of its configuration at the run's load, with the run's seed.
    ///
    /// # Errors
    /// A sentence if the files are not laid out for the load.
    pub fn plan(&self, run: &NextRun) -> Result<Plan, String> {
        let plan = &self.configuration(run.configuration).plan;
        let mut plan = match run.load {
            None => plan.clone(),
            Some(load) => plan
                .at_load(load)
                .ok_or_else(|| format!("the files are not laid out for load {load}"))?,
        };
        plan.seed = run.seed;
        // The next run uses the same files.
        plan.options.keep |= self.kind.strategy().shares_files();
        Ok(plan)
    }

    /// The configuration with a number, from 0.
    ///
    /// # Panics
    /// If there is no such configuration; documents in which a run has a wrong number are refused.
    #[must_use]
    pub fn configuration(&self, number: u32) -> &Configuration {
        &self.configurations[number as usize]
    }

    /// The Plan of the first configuration, the only one unless the series is a profile.
    #[must_use]
    pub fn first_plan(&self) -> &Plan {
        &self.configuration(0).plan
    }

    /// The target of the first configuration.
    #[must_use]
    pub fn first_target(&self) -> &Target {
        &self.configuration(0).target
    }

    /// The business metric of the first configuration; `None` if the workload has none.
    #[must_use]
    pub fn metric(&self) -> Option<&BusinessMetric> {
        self.first_plan().metric.as_ref()
    }

    /// Unit of the load, such as `streams`; empty without a business metric.
    #[must_use]
    pub fn metric_name(&self) -> &str {
        self.metric().map_or("", |m| &m.name)
    }

    /// Fraction of the full data and of the full rates: 1 without a business metric.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.metric().map_or(1.0, |m| m.scale)
    }

    /// Whether data and rates are unscaled; a scaled result is not comparable.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        self.metric().is_none_or(|m| !m.is_scaled())
    }

    /// Seed of the first configuration's Plan: the root of all random choices.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.first_plan().seed
    }

    /// Length of the warm-up and of the measured window of each run, in seconds.
    #[must_use]
    pub fn times_s(&self) -> (f64, f64) {
        let (warmup, window) = self.first_plan().times();
        (warmup.as_secs_f64(), window.as_secs_f64())
    }

    /// Runs that were measured to their end, valid or invalid, in the order of the series.
    pub fn measured(&self) -> impl DoubleEndedIterator<Item = &SeriesRun> + Clone {
        self.runs.iter().filter(|run| run.is_measured())
    }

    /// Runs of a configuration, in the order of the series.
    pub fn runs_of(&self, configuration: u32) -> impl Iterator<Item = &SeriesRun> {
        let of = self.runs.iter();
        of.filter(move |run| run.configuration == configuration)
    }

    /// Whether the figures may be used, and whether the series is complete.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.state {
            SeriesState::Unfinished => Status::Unfinished,
            SeriesState::Interrupted => Status::Interrupted,
            SeriesState::Failed => Status::Failed,
            SeriesState::Complete | SeriesState::Stopped => {
                if self.kind.strategy().is_valid(&self.runs) {
                    Status::Valid
                } else {
                    Status::Invalid
                }
            }
        }
    }

    /// Percentiles that a table shows: the requested percentiles, else `usual`.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }

    /// Recomputes the figures that follow from the runs.
    pub(crate) fn conclude(&mut self) {
        self.kind.strategy_mut().conclude(&self.runs);
    }

    fn fault(&self) -> Result<(), String> {
        if self.configurations.is_empty() {
            return Err("the series has no configuration".into());
        }
        for configuration in &self.configurations {
            configuration
                .plan
                .check()
                .map_err(|e| format!("the Plan: {e}"))?;
        }
        let count = self.configurations.len();
        if let Some(run) = self
            .runs
            .iter()
            .find(|run| run.configuration as usize >= count)
        {
            return Err(format!(
                "the run {} has the configuration {}, and there are {count}",
                run.directory, run.configuration
            ));
        }
        self.kind.strategy().check(self)
    }
}

impl Document for Series {
    const FILE: &str = SERIES_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "series";

    fn check(&self) -> Result<(), String> {
        self.fault()
    }
}

/// Directory of a series, with `series.json` and the results directories of its runs.
pub type SeriesDir = Directory<Series>;

impl Directory<Series> {
    /// Results directory of a run; `None` for a name that leads out of the directory, which Plimsoll never writes.
    #[must_use]
    pub fn run(&self, run: &SeriesRun) -> Option<RunDir> {
        self.within(&run.directory).map(|path| RunDir::at(&path))
    }

    /// Reads the document, with these percentiles for tables; with `None`, the same as [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`RunDir::read_with`](crate::RunDir::read_with) of its runs.
    pub fn read_with(&self, percentiles: Option<&Percentiles>) -> Result<Series, ResultsError> {
        let mut series = self.read()?;
        if let Some(wanted) = percentiles {
            for run in &mut series.runs {
                if let Some(results) = self.run(run) {
                    run.add_percentiles(&results, wanted)?;
                }
            }
            series.percentiles_shown = Some(wanted.clone());
        }
        Ok(series)
    }

    /// A line that names the command for the missing runs.
    #[must_use]
    pub fn resume_hint(&self) -> String {
        format!("resume with plimsoll resume {}", self.path().display())
    }
}

/// Results directories of runs in `path`: the directory of one run, or the runs of a series in order.
///
/// # Errors
/// As [`SeriesDir::read`].
pub fn run_dirs(path: &Path) -> Result<Vec<RunDir>, ResultsError> {
    let dir = SeriesDir::at(path);
    if !dir.exists() {
        return Ok(vec![RunDir::at(path)]);
    }
    let series = dir.read()?;
    Ok(series.runs.iter().filter_map(|run| dir.run(run)).collect())
}

/// Reads the run, or the runs of the series, in a results directory, with the requested percentiles.
///
/// # Errors
/// As [`RunDir::read_with`].
pub fn read_runs(path: &Path, percentiles: Option<&Percentiles>) -> Result<Vec<Run>, ResultsError> {
    let dirs = run_dirs(path)?;
    dirs.iter().map(|d| d.read_with(percentiles)).collect()
}
