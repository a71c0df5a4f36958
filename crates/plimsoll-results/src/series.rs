//! A series of runs in `series.json`: repeated runs, a load curve, a search for a load line, a profile, a paired
//! comparison, a sweep, a suite.
//!
//! The next run of a series is a function of its runs so far: [`Series::next`] asks the [`Strategy`] of the series'
//! kind. An interrupted or killed series is therefore resumed by reading its document.

mod ab;
mod curve;
mod loads;
mod margin;
mod next;
mod profile;
mod recipe;
mod repeats;
mod run;
mod search;
mod settle;
mod stop;
mod suite;
mod sweep;
mod values;
mod writer;

pub use ab::{
    MAX_PAIRS, MIN_PAIRS_UNTIL, Pair, PairedComparison, PrimaryFigure, SettingDifference, Side,
};
pub use curve::LoadCurve;
pub use loads::{Loads, MAX_LOAD, MAX_POINTS};
pub use next::{MAX_REPEATS, NextRun, Step, Strategy};
pub use profile::{Profile, SkippedConfiguration};
pub use recipe::Recipe;
pub use repeats::Repeats;
pub use run::{CriterionResult, SeriesRun};
pub use search::{
    Agreement, LoadLine, LoadSearch, Purpose, SearchEnd, SearchRules, SearchStep,
    SearchedParameter, TrialRun,
};
pub use settle::{SettleRule, Settling, Unrest};
pub use stop::STOP_AFTER_INVALID;
pub use suite::{PhaseFigures, PhaseResult, Suite, SuitePhase, SuiteScore, suite_figure};
pub use sweep::{MAX_CELLS, Sweep, VariedParameter};
pub use values::{SearchStart, VariedNumbers, VariedUnit, values_of};
pub use writer::SeriesWriter;

use crate::document::{Directory, Document};
use crate::{
    ClockKind, Environment, Kind, Percentile, Percentiles, Program, Reason, ResultsError, Run,
    RunDir, SERIES_FILE, Status, Target, Verdict,
};
use plimsoll_plan::{BusinessMetric, Count, Note, Plan, WorkDirSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;
use strum::Display;

/// Contents of `series.json`: the runs that form one result, and the rule that chooses the next run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Version of the schema of `series.json`, which rises when a field is removed or changes meaning.
    pub schema_version: u32,
    /// Name of the workload, or of the profile, whose runs form the series.
    pub name: String,
    /// Time of day at which the first run of the series began: RFC 3339, in UTC.
    pub started_at: String,
    /// State of the series: complete, stopped by a rule, or with missing runs.
    pub state: SeriesState,
    /// Reason why a rule or an error ended the series; null in the states `unfinished`, `complete` and `interrupted`.
    pub stop_reason: Option<Reason>,
    /// Kind of the series, rule that chooses the runs, and figures that follow from the runs.
    #[serde(flatten)]
    pub kind: SeriesKind,
    /// Entries of the finished runs, in the order in which the rule of the series chooses the runs.
    pub runs: Vec<SeriesRun>,
    /// Configurations of the series: the configurations of a profile, the variants A and B of a paired comparison, one for
    /// each combination of values of a sweep, one for each measured value of a search over a parameter, and a single
    /// configuration in other series.
    pub configurations: Vec<Configuration>,
    /// Percentiles that `plimsoll report --percentiles` requested for tables; null if tables show the default
    /// percentiles.
    pub percentiles_shown: Option<Percentiles>,
    /// Program that began the series, with its version.
    pub program: Program,
    /// Clock of the runs: virtual if the targets of all configurations run in virtual time.
    pub clock: ClockKind,
    /// Length of an interval in the time series of each run, in seconds.
    pub interval_s: f64,
    /// Number of ranks: the processes that make each run together.
    pub ranks: u32,
    /// Events of each run, and commands around the phases of each run, as on the command line, such as `30s sh
    /// ./failover` or `before load sh sync`. Events of a simulated system are in the target's URL instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Notes for people on the series, such as failed hooks and files of single runs that could not be removed.
    pub notes: Vec<Note>,
    /// Sentences on shared files of the runs that the latest process of the series could not remove, and on a work
    /// directory that the process could not release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unremoved: Vec<String>,
    /// Client machine of rank 0; in a series with one configuration, also the file system of the work directory.
    pub environment: Environment,
}

/// Kind of a series, with the rule that chooses the runs, and the figures that follow from the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SeriesKind {
    /// Repeated runs of one workload, with consecutive seeds.
    Repeats(Repeats),
    /// A load curve: runs of one workload at increasing loads, on one data set.
    Curve(LoadCurve),
    /// A search for the load line: the highest sustained load.
    Search(LoadSearch),
    /// The configurations of a Filebench profile, on each file system.
    Profile(Profile),
    /// A paired comparison of two variants.
    Ab(PairedComparison),
    /// A sweep: a run of one workload for each value of a parameter, or for each combination of the values of several
    /// parameters.
    Sweep(Sweep),
    /// An IO500-style suite: a run for each phase.
    Suite(Box<Suite>),
}

/// State of a series, which says whether runs are missing and what ended the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum SeriesState {
    /// Runs are missing: the series is in progress, or its process was killed.
    Unfinished,
    /// The rule of the series requests no further run.
    Complete,
    /// A rule of the series ended the series before all planned runs were made.
    Stopped,
    /// The user ended the series; runs are missing, and the series can be resumed.
    Interrupted,
    /// An error ended the series or a run of the series; the series can be resumed.
    Failed,
}

impl SeriesState {
    /// Whether the series can be resumed, because runs remain to be made.
    #[must_use]
    pub fn can_resume(self) -> bool {
        match self {
            Self::Unfinished | Self::Interrupted | Self::Failed => true,
            Self::Complete | Self::Stopped => false,
        }
    }
}

/// Plan and target that some runs of a series share; in a profile, one workload on one file system, in a paired
/// comparison, one variant, and in a sweep or a search over a parameter, one combination of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// Name of the configuration in a profile, with the values that differ between the configurations, such as
    /// `read,nthreads=4`; `A` or `B` in a paired comparison; the values of the parameters in a sweep and in a search over
    /// a parameter, such as `iosize=4k,nthreads=2`; empty in other series.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Name of the configuration's file system in a profile, such as `ext4`; null in other series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// Directory of the configuration's results, relative to the directory of the series; empty for the directory of
    /// the series itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
    /// Shell commands that run before each run of the configuration, in order; empty except in paired comparisons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Target of the load of the configuration's runs.
    pub target: Target,
    /// Plan of the configuration's runs. In a series with several loads, the Plan has the highest load, and runs at
    /// lower loads use a part of its files.
    pub plan: Plan,
}

/// A series with the rule and figures of its kind `K`, which the caller has checked.
#[derive(Debug)]
pub struct SeriesOf<'a, K> {
    /// The whole series, with its configurations and runs.
    pub series: &'a Series,
    /// Rule and figures of the series, of the kind `K`.
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
    /// Pairs the series with `figures`, the rule and figures of its kind.
    #[must_use]
    pub fn with<'a, K>(&'a self, figures: &'a K) -> SeriesOf<'a, K> {
        SeriesOf {
            series: self,
            figures,
        }
    }

    /// The series with its rule as repeated runs; `None` for other kinds.
    #[must_use]
    pub fn as_repeats(&self) -> Option<SeriesOf<'_, Repeats>> {
        match &self.kind {
            SeriesKind::Repeats(figures) => Some(self.with(figures)),
            _ => None,
        }
    }

    /// The series with its rule and figures as a load curve; `None` for other kinds.
    #[must_use]
    pub fn as_curve(&self) -> Option<SeriesOf<'_, LoadCurve>> {
        match &self.kind {
            SeriesKind::Curve(figures) => Some(self.with(figures)),
            _ => None,
        }
    }

    /// The series with its rule and figures as a search; `None` for other kinds.
    #[must_use]
    pub fn as_search(&self) -> Option<SeriesOf<'_, LoadSearch>> {
        match &self.kind {
            SeriesKind::Search(figures) => Some(self.with(figures)),
            _ => None,
        }
    }

    /// The series with its rule and figures as a paired comparison; `None` for other kinds.
    #[must_use]
    pub fn as_paired(&self) -> Option<SeriesOf<'_, PairedComparison>> {
        match &self.kind {
            SeriesKind::Ab(figures) => Some(self.with(figures)),
            _ => None,
        }
    }

    /// The series with its rule as a sweep; `None` for other kinds.
    #[must_use]
    pub fn as_sweep(&self) -> Option<SeriesOf<'_, Sweep>> {
        match &self.kind {
            SeriesKind::Sweep(figures) => Some(self.with(figures)),
            _ => None,
        }
    }

    /// Takes back the configuration of a run that an earlier process began, if the next attempt makes the run's files
    /// again, so that the configuration is made again. Returns the configuration; `None` if the next attempt uses the
    /// files as they are.
    pub fn take_back(&mut self) -> Option<Configuration> {
        let Step::Run(next) = self.next() else {
            return None;
        };
        let at = next.configuration as usize;
        let begun = self.configurations.get(at)?.clone();
        if !self.kind.strategy_mut().repeats(next.configuration) {
            return None;
        }
        // A series always has a configuration, and the first run needs no files of other runs.
        if at > 0 {
            self.configurations.truncate(at);
        }
        Some(begun)
    }

    /// Length of the recorded intervals of the runs.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::try_from_secs_f64(self.interval_s).unwrap_or_default()
    }

    /// The series with its rule and figures as a suite; `None` for other kinds.
    #[must_use]
    pub fn as_suite(&self) -> Option<SeriesOf<'_, Suite>> {
        match &self.kind {
            SeriesKind::Suite(figures) => Some(self.with(figures)),
            _ => None,
        }
    }

    /// The series with its rule and figures as a profile; `None` for other kinds.
    #[must_use]
    pub fn as_profile(&self) -> Option<SeriesOf<'_, Profile>> {
        match &self.kind {
            SeriesKind::Profile(figures) => Some(self.with(figures)),
            _ => None,
        }
    }
}

impl Configuration {
    /// Name of the configuration, with the file system of a profile, such as `read,nthreads=4 on ext4`; `None` for the
    /// only configuration of a series, which has no name.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        match &self.filesystem {
            Some(filesystem) => Some(format!("{} on {filesystem}", self.name)),
            None => Some(self.name.clone()).filter(|name| !name.is_empty()),
        }
    }

    /// Place of the files: the work directory, and the URL of the target without options.
    #[must_use]
    pub fn place(&self) -> (&WorkDirSpec, &str) {
        (&self.plan.work_dir, self.target.place())
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
            Self::Ab(paired) => paired,
            Self::Sweep(sweep) => sweep,
            Self::Suite(suite) => &**suite,
        }
    }

    fn strategy_mut(&mut self) -> &mut dyn Strategy {
        match self {
            Self::Repeats(repeats) => repeats,
            Self::Curve(curve) => curve,
            Self::Search(search) => search,
            Self::Profile(profile) => profile,
            Self::Ab(paired) => paired,
            Self::Sweep(sweep) => sweep,
            Self::Suite(suite) => &mut **suite,
        }
    }

    /// Kind of the series, as lists and titles of results name the kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Repeats(_) => Kind::Repeats,
            Self::Curve(_) => Kind::Curve,
            Self::Search(_) => Kind::Search,
            Self::Profile(_) => Kind::Profile,
            Self::Ab(_) => Kind::Ab,
            Self::Sweep(_) => Kind::Sweep,
            Self::Suite(_) => Kind::Suite,
        }
    }
}

impl Series {
    /// The next run of the series, or the state in which the series ends.
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
    /// A sentence if the files are not laid out for the load, or if the run's configuration has yet to be made.
    pub fn plan(&self, run: &NextRun) -> Result<Plan, String> {
        let configuration = self.configurations.get(run.configuration as usize);
        let plan = &configuration
            .ok_or("the configuration has yet to be made")?
            .plan;
        let mut plan = match run.load {
            None => plan.clone(),
            Some(load) => plan
                .at_load(load)
                .ok_or_else(|| format!("the files are not laid out for load {load}"))?,
        };
        plan.seed = run.seed;
        // The next run uses the files of this run.
        plan.options.keep |= self.shares_files();
        Ok(plan)
    }

    /// Whether the runs of the series use each other's files.
    #[must_use]
    pub fn shares_files(&self) -> bool {
        self.kind.strategy().shares_files(self)
    }

    /// Directories of the files that the runs share: the work directory of the first configuration, or in a suite the
    /// guarded directories of all phases.
    #[must_use]
    pub fn shared_directories(&self) -> Vec<PathBuf> {
        if self.as_suite().is_none() {
            return vec![self.first_plan().work_dir.dir.clone()];
        }
        let mut directories = Vec::new();
        for configuration in &self.configurations {
            let work_dir = &configuration.plan.work_dir;
            let guards = work_dir.guards.iter();
            for directory in guards.map(|guard| work_dir.dir.join(guard.as_str())) {
                if !directories.contains(&directory) {
                    directories.push(directory);
                }
            }
        }
        directories
    }

    /// Whether the files of all configurations are in one work directory of one target.
    pub(crate) fn has_one_place(&self) -> bool {
        let first = self.configuration(0).place();
        self.configurations.iter().all(|c| c.place() == first)
    }

    /// The configuration of the series with the number `number`, from 0.
    ///
    /// # Panics
    /// If the series has no configuration with the number; [`Directory::read`] refuses documents in which a run has a
    /// wrong number.
    #[must_use]
    pub fn configuration(&self, number: u32) -> &Configuration {
        &self.configurations[number as usize]
    }

    /// The Plan of the first configuration, the only configuration of repeated runs, a load curve and a search over
    /// loads.
    #[must_use]
    pub fn first_plan(&self) -> &Plan {
        &self.configuration(0).plan
    }

    /// The target of the first configuration, the only configuration of repeated runs, a load curve and a search over
    /// loads.
    #[must_use]
    pub fn first_target(&self) -> &Target {
        &self.configuration(0).target
    }

    /// The business metric of the first configuration's workload; `None` if the workload has no business metric.
    #[must_use]
    pub fn metric(&self) -> Option<&BusinessMetric> {
        self.first_plan().metric.as_ref()
    }

    /// Unit of the load, such as `streams`; empty without a business metric.
    #[must_use]
    pub fn metric_name(&self) -> &str {
        self.metric().map_or("", |m| &m.name)
    }

    /// Quantity of the series' loads: the unit of the load, such as `streams`, or the searched parameter with its unit,
    /// such as `iosize in k`; empty without a business metric and a searched parameter.
    #[must_use]
    pub fn load_name(&self) -> String {
        match self.searched() {
            Some(parameter) => parameter.quantity(),
            None => self.metric_name().to_owned(),
        }
    }

    /// A load of the series with its unit, such as `32 streams`, or a value of the searched parameter, such as
    /// `nthreads=32`.
    #[must_use]
    pub fn load_words(&self, load: u64) -> String {
        match self.searched() {
            Some(parameter) => parameter.configuration(load),
            None => format!("{} {}", Count(load), self.metric_name()),
        }
    }

    /// Parameter that a search varies; `None` for a search over loads, and for other series.
    #[must_use]
    pub fn searched(&self) -> Option<&SearchedParameter> {
        self.as_search()?.figures.parameter.as_ref()
    }

    /// Scale: the fraction of the full data and rates that the runs use; 1 without a business metric.
    #[must_use]
    pub fn scale(&self) -> f64 {
        self.metric().map_or(1.0, |m| m.scale)
    }

    /// Whether data and rates are unscaled (scale 1); results of other scales are not comparable.
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

    /// Runs of the configuration with a number, in the order of the series.
    pub fn runs_of(&self, configuration: u32) -> impl Iterator<Item = &SeriesRun> {
        let of = self.runs.iter();
        of.filter(move |run| run.configuration == configuration)
    }

    /// Status of the series in lists: whether its figures may be used, and whether the series is complete.
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

    /// Percentiles that a table of the series shows: the requested percentiles, else `usual`.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }

    /// Recomputes the figures that follow from the listed runs, such as the load line.
    pub(crate) fn conclude(&mut self) {
        self.kind.strategy_mut().conclude(&self.runs);
    }
}

impl Document for Series {
    const FILE: &str = SERIES_FILE;
    const SCHEMA: u32 = 1;
    const KIND_NAME: &str = "series";

    fn check(&self) -> Result<(), String> {
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

/// Directory of a series, with `series.json` and the results directories of its runs.
pub type SeriesDir = Directory<Series>;

impl Directory<Series> {
    /// Results directory of a run of the series; `None` for a name that leads out of the series' directory, which
    /// Plimsoll never writes.
    #[must_use]
    pub fn run(&self, run: &SeriesRun) -> Option<RunDir> {
        self.within(&run.directory).map(|path| RunDir::at(&path))
    }

    /// Reads `series.json`, and adds the percentiles `percentiles` that the runs did not store; without `percentiles`,
    /// the series is as [`read`](Self::read) returns the series.
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

    /// A line for messages with the command that makes the missing runs of the series.
    #[must_use]
    pub fn resume_hint(&self) -> String {
        format!("resume with plimsoll resume {}", self.path().display())
    }
}

/// Results directories of the runs in `path`: `path` itself for a single run, or the directories of a series' runs in
/// order.
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
