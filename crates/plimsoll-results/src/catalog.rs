//! List of the results below a root: an [`Entry`] for each results directory of any kind.

use crate::document::read_part;
use crate::settings::Settings;
use crate::{
    Annotations, Environment, Kind, Percentile, Program, Qualifier, QualifierKind, ResultsError,
    Run, SeriesDir, SeriesKind, SeriesRun, Setting, Summary, Target, Validity, Verdict,
};
use plimsoll_plan::Plan;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use strum::{Display, IntoStaticStr, VariantArray};

/// Whether the figures of a result may be used, and whether the result is complete.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    Display,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Status {
    /// Status of a valid run, of repeated runs or a profile whose measured runs are all valid, of a curve with a valid
    /// point, and of a search that found the load line or whose maximum load is sustained.
    Valid,
    /// Status of a completed run with at least one reason against the run, and of a completed series that does not meet
    /// the conditions of `Valid`.
    Invalid,
    /// Status of a run or series that an error ended.
    Failed,
    /// Status of a run or series that the user ended early.
    Interrupted,
    /// Status of a series with missing runs: the series is in progress, or its process was killed.
    #[default]
    Unfinished,
}

impl Status {
    /// Every status of results, in the order of declaration, for the choices of a filter.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// The status in snake case, as in JSON and in filters.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.into()
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().copied().find(|s| s.word() == text);
        found.ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|s| s.word()).collect();
            let all = all.join(", ");
            format!("`{text}` is not a status: expected one of {all}")
        })
    }
}

impl From<Verdict> for Status {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Valid,
            Verdict::Invalid => Self::Invalid,
            Verdict::Failed => Self::Failed,
            Verdict::Interrupted => Self::Interrupted,
        }
    }
}

/// A result as a line of a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Name of the results directory below the results root.
    pub name: String,
    /// Kind of the results: a run, or the kind of the series.
    pub kind: Kind,
    /// Name of the workload or of the profile.
    pub workload: String,
    /// URL of the target as given on the command line; empty if the runs of a profile have different targets.
    pub target: String,
    /// Parameters of the workload by name. Each parameter has its values in all configurations of the results, in the
    /// order of the configurations and without duplicates: one value for a run.
    pub parameters: BTreeMap<String, Vec<String>>,
    /// Values of each setting that is no parameter, in the order of the configurations and without duplicates. An unknown
    /// or inapplicable setting is left out.
    pub settings: BTreeMap<Setting, Vec<String>>,
    /// Start of the run, or of the first run of a series: RFC 3339, in UTC.
    pub started_at: String,
    /// Whether the figures may be used, and whether the result is complete.
    pub status: Status,
    /// Kinds of the qualifiers of the run, or of the runs of the series, in the order of kinds.
    pub qualifiers: BTreeSet<QualifierKind>,
    /// Number of runs: 1 for a single run, otherwise the runs that the series lists.
    pub runs: u64,
    /// Operations per second of a run, or the mean over repeated runs; `None` for other series, and without a measured
    /// window.
    pub ops_per_s: Option<f64>,
    /// Bytes per second of a run, or the mean over repeated runs; `None` for other series, and without a measured
    /// window.
    pub bytes_per_s: Option<f64>,
    /// Mean latency in milliseconds, of a run or averaged over repeated runs: response time of paced operations,
    /// service time of the other operations; `None` for other series, and without a completed operation.
    pub mean_ms: Option<f64>,
    /// 99th percentile of the latency in milliseconds, of a run or averaged over repeated runs; `None` for other
    /// series, and for a run without a completed operation.
    pub p99_ms: Option<f64>,
    /// Mean service time in milliseconds; `None` if the load was not paced.
    pub service_mean_ms: Option<f64>,
    /// 99th percentile of the service time in milliseconds; `None` if the load was not paced.
    pub service_p99_ms: Option<f64>,
    /// Load line of a curve or a search, in the unit `metric`; `None` without a sustained load.
    pub load_line: Option<u64>,
    /// Unit of the loads of a curve or a search (the business metric), such as `streams`; `None` for other results.
    pub metric: Option<String>,
    /// Overall response time of a curve in milliseconds.
    pub ort_ms: Option<f64>,
    /// Tags that the user has given to the results, sorted by their bytes.
    pub tags: Vec<String>,
    /// The user's note on the results; empty if the user has written no note.
    pub note: String,
}

/// Fields of `run.json` that an entry needs; skipping the other fields is much faster.
#[derive(Deserialize)]
struct RunPart {
    workload: String,
    started_at: String,
    validity: Validity,
    #[serde(default)]
    qualifiers: Vec<Qualifier>,
    summary: Summary,
    target: Target,
    window_number: u32,
    program: Program,
    environment: Environment,
    plan: Plan,
}

impl Entry {
    /// Reads the entry of the results in a directory.
    ///
    /// # Errors
    /// [`ResultsError`] if the directory holds no results, or if the results are damaged or of another version.
    pub fn read(dir: &Path) -> Result<Self, ResultsError> {
        let mut entry = match Kind::of(dir)? {
            Kind::Run => of_run(dir)?,
            _ => of_series(dir)?,
        };
        entry.name = dir
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
        let annotations = Annotations::read(dir)?;
        entry.tags = annotations.tags.into_iter().map(String::from).collect();
        entry.note = annotations.note;
        Ok(entry)
    }
}

fn of_run(dir: &Path) -> Result<Entry, ResultsError> {
    let run: RunPart = read_part::<Run, _>(dir)?;
    let measured = run.window_number > 0;
    let figure = |f: f64| measured.then_some(f);
    let moved = |f: f64| (measured && run.summary.ops > 0).then_some(f);
    let settings = Settings::of_run(&run.environment, &run.program, &run.target.url, &run.plan);
    Ok(Entry {
        kind: Kind::Run,
        workload: run.workload,
        status: run.validity.verdict.into(),
        qualifiers: run.qualifiers.iter().map(|q| q.kind).collect(),
        runs: 1,
        target: run.target.url,
        parameters: settings.parameters,
        settings: settings.settings,
        started_at: run.started_at,
        ops_per_s: figure(run.summary.ops_per_s),
        bytes_per_s: figure(run.summary.bytes_per_s),
        mean_ms: moved(run.summary.mean_ms),
        p99_ms: moved(run.summary.p99_ms),
        service_mean_ms: run.summary.service.map(|s| s.mean_ms),
        service_p99_ms: run.summary.service.map(|s| s.p99_ms),
        ..Entry::default()
    })
}

/// Entry of a series. The entry of repeated runs has the means of their figures.
fn of_series(dir: &Path) -> Result<Entry, ResultsError> {
    let series = SeriesDir::at(dir).read()?;
    let kind = series.kind.kind();
    let first = &series.first_target().url;
    let same = series.configurations.iter().all(|c| c.target.url == *first);
    let mean = |pick: &dyn Fn(&SeriesRun) -> Option<f64>| {
        let values: Vec<f64> = series.runs.iter().filter_map(pick).collect();
        let is_mean = kind == Kind::Repeats && !values.is_empty();
        is_mean.then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let service_p99 = |run: &SeriesRun| run.percentile(Percentile::P99)?.service_ms;
    let (load_line, ort_ms) = match &series.kind {
        SeriesKind::Curve(curve) => (curve.load_line, curve.ort_ms),
        SeriesKind::Search(search) => (search.load_line.sustained.map(|s| s.load), None),
        SeriesKind::Repeats(_)
        | SeriesKind::Profile(_)
        | SeriesKind::Ab(_)
        | SeriesKind::Sweep(_)
        | SeriesKind::Suite(_) => (None, None),
    };
    let qualifiers = series.runs.iter().flat_map(|run| &run.qualifiers);
    let has_loads = matches!(kind, Kind::Curve | Kind::Search);
    let settings = Settings::of_series(&series);
    Ok(Entry {
        kind,
        workload: series.name.clone(),
        status: series.status(),
        qualifiers: qualifiers.map(|q| q.kind).collect(),
        target: if same { first.clone() } else { String::new() },
        parameters: settings.parameters,
        settings: settings.settings,
        started_at: series.started_at.clone(),
        runs: series.runs.len() as u64,
        ops_per_s: mean(&|run| run.window_s.gt(&0.0).then_some(run.achieved_ops_per_s)),
        bytes_per_s: mean(&|run| run.window_s.gt(&0.0).then_some(run.bytes_per_s)),
        mean_ms: mean(&|run| run.mean_ms),
        p99_ms: mean(&|run| run.p99_ms),
        service_mean_ms: mean(&|run| run.service_mean_ms.filter(|_| run.is_paced())),
        service_p99_ms: mean(&service_p99),
        load_line,
        metric: Some(series.load_name()).filter(|name| has_loads && !name.is_empty()),
        ort_ms,
        ..Entry::default()
    })
}

/// Directories directly below a results root, sorted by name. Symbolic links and hidden directories, which hold runs in
/// progress, are left out.
///
/// # Errors
/// [`ResultsError::Io`] if the root cannot be listed.
pub fn directories(root: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let failed = || ResultsError::io("list", root);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let visible = !entry.file_name().as_encoded_bytes().starts_with(b".");
        if visible && entry.file_type().is_ok_and(|t| t.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
