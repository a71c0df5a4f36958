//! The input of a report: results of any kind, or a published report.

use crate::commands::import;
use crate::exit::CommandError;
use crate::workload;
use plimsoll_plan::counted;
use plimsoll_report::compare::ProfileSet;
use plimsoll_report::disclosure::Disclosure;
use plimsoll_report::html::RunData;
use plimsoll_results::{
    AbandonedRun, Annotations, Kind, Percentiles, RUN_FILE, ResultsError, SERIES_FILE, Series,
    SeriesDir, SeriesKind, SeriesOf, run_dirs,
};
use std::path::{Path, PathBuf};

/// Results of any kind as an input of `report`, with the path that the user gave.
pub(super) struct LoadedResult {
    pub(super) path: PathBuf,
    pub(super) what: ResultKind,
    /// Tags and note of the results; empty for a published report.
    pub(super) annotations: Annotations,
}

/// Results of which `report` makes a report, by kind: measured, repeated, of a profile, or published.
pub(super) enum ResultKind {
    /// A run, a load curve, a search for a load line, or a paired comparison.
    Measured(RunData),
    /// Series of runs of one workload, as `run --repeat` makes.
    Repeats {
        /// Content of `series.json`.
        series: Box<Series>,
        /// The runs, in series order.
        runs: Vec<RunData>,
    },
    /// The runs of a profile.
    Profile {
        /// Content of `series.json`.
        series: Box<Series>,
        /// Runs of the profile, in one set per file system, for comparison.
        sets: Vec<ProfileSet>,
    },
    /// Published disclosure report, without Plimsoll's own measurements.
    Published(Box<Disclosure>),
}

impl LoadedResult {
    /// Reads a results directory, given directly or by its `run.json` or `series.json`; or reads a published report.
    pub(super) fn read(
        path: &Path,
        percentiles: Option<&Percentiles>,
    ) -> Result<Self, CommandError> {
        let Some(dir) = results_dir(path) else {
            if percentiles.is_some() {
                return Err(CommandError::usage(format!(
                    "{}: a published report has no percentiles",
                    path.display()
                )));
            }
            return published(path);
        };
        let said = Annotations::read(dir).map_err(CommandError::usage)?;
        let series = SeriesDir::at(dir);
        if series.exists() {
            return Self::series(&series, said, percentiles);
        }
        Self::measured(dir, said, percentiles)
    }

    fn series(
        dir: &SeriesDir,
        annotations: Annotations,
        percentiles: Option<&Percentiles>,
    ) -> Result<Self, CommandError> {
        let mut series = dir.read().map_err(CommandError::usage)?;
        if percentiles.is_some() {
            series.percentiles_shown = percentiles.cloned();
        }
        let what = match &series.kind {
            SeriesKind::Repeats(_) => {
                let runs = series.runs.iter().filter_map(|run| dir.run(run));
                let runs = runs.map(|run| run_data(run.path(), percentiles));
                ResultKind::Repeats {
                    runs: runs.collect::<Result<_, CommandError>>()?,
                    series: Box::new(series),
                }
            }
            SeriesKind::Curve(_)
            | SeriesKind::Search(_)
            | SeriesKind::Ab(_)
            | SeriesKind::Sweep(_)
            | SeriesKind::Suite(_) => {
                return Self::measured(dir.path(), annotations, percentiles);
            }
            SeriesKind::Profile(figures) => {
                let profile = SeriesOf {
                    series: &series,
                    figures,
                };
                let sets = ProfileSet::read(profile, dir, percentiles);
                ResultKind::Profile {
                    sets: sets.map_err(CommandError::usage)?,
                    series: Box::new(series),
                }
            }
        };
        Ok(Self {
            path: dir.path().to_owned(),
            what,
            annotations,
        })
    }

    /// Reads the results directory of a run, a curve, a search, a sweep or a paired comparison; without `percentiles`, with the
    /// default percentiles.
    fn measured(
        dir: &Path,
        annotations: Annotations,
        percentiles: Option<&Percentiles>,
    ) -> Result<Self, CommandError> {
        Ok(Self {
            path: dir.to_owned(),
            what: ResultKind::Measured(run_data(dir, percentiles)?),
            annotations,
        })
    }

    /// Refuses a published report for a format that needs measured data.
    pub(super) fn check_measured(&self, format: &str) -> Result<(), CommandError> {
        match self.what {
            ResultKind::Published(_) => Err(self.not_measured(format)),
            _ => Ok(()),
        }
    }

    fn not_measured(&self, format: &str) -> CommandError {
        CommandError::usage(format!(
            "{}, and --format {format} is made of what was measured; text and json are made of \
             everything",
            self.shown()
        ))
    }

    /// Text with the kind and the path of the results, for error messages.
    pub(super) fn shown(&self) -> String {
        let what = match &self.what {
            ResultKind::Measured(RunData::Run(_)) => "a run",
            ResultKind::Measured(RunData::Series { series, .. }) => series.kind.kind().words(),
            ResultKind::Repeats { .. } => Kind::Repeats.words(),
            ResultKind::Profile { .. } => Kind::Profile.words(),
            ResultKind::Published(_) => "a published report",
        };
        format!("{} is {what}", self.path.display())
    }
}

/// Results directory of a path to a directory or to a file of results; `None` for any other file.
pub(super) fn results_dir(path: &Path) -> Option<&Path> {
    if !path.is_file() {
        return Some(path);
    }
    let name = path.file_name().and_then(|n| n.to_str());
    match name {
        Some(RUN_FILE | SERIES_FILE) => {
            let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
            Some(parent.unwrap_or(Path::new(".")))
        }
        _ => None,
    }
}

/// Results directories of `paths`. A path of another file, such as a published report, is a usage error, because `format`
/// has figures that only results directories have.
pub(super) fn results_dirs(paths: &[PathBuf], format: &str) -> Result<Vec<PathBuf>, CommandError> {
    let mut dirs = Vec::new();
    for path in paths {
        let Some(dir) = results_dir(path) else {
            return Err(CommandError::usage(format!(
                "{} is a file, and --format {format} is made of results directories",
                path.display()
            )));
        };
        // Report killed runs by their own error.
        Kind::of(dir).map_err(|e| unreadable(dir, &e))?;
        dirs.push(dir.to_owned());
    }
    Ok(dirs)
}

fn run_data(dir: &Path, percentiles: Option<&Percentiles>) -> Result<RunData, CommandError> {
    RunData::read(dir, percentiles).map_err(|e| unreadable(dir, &e))
}

/// Error for a directory without results; suggests recovery if killed runs left data there.
pub(super) fn unreadable(dir: &Path, e: &ResultsError) -> CommandError {
    if AbandonedRun::at(dir).is_some() {
        return CommandError::usage(format!(
            "{}: the run was killed; --recover recovers its results",
            dir.display()
        ));
    }
    let is_none = matches!(e, ResultsError::None { .. } | ResultsError::Lacks { .. });
    let left = match is_none {
        true => AbandonedRun::below(dir).len() as u64,
        false => 0,
    };
    match left {
        0 => CommandError::usage(e),
        n => CommandError::usage(format!(
            "{} holds no results, but the remains of {}: --recover recovers the results",
            dir.display(),
            counted(n, "killed run", "killed runs")
        )),
    }
}

fn published(path: &Path) -> Result<LoadedResult, CommandError> {
    let name = path.display().to_string();
    let bytes =
        import::read(path).map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let imported =
        plimsoll_report::disclosure::import(&bytes, &name).map_err(workload::diagnosed)?;
    import::remark(&imported, &name);
    Ok(LoadedResult {
        path: path.to_owned(),
        what: ResultKind::Published(Box::new(imported.disclosure)),
        annotations: Annotations::default(),
    })
}

/// The runs, curves, searches, sweeps and paired comparisons among the results, including the runs of repeated runs and
/// profiles; for CSV, the runs of a sweep or a paired comparison instead of the series. `format` needs measured data, so a
/// published report is refused.
pub(super) fn subjects(
    found: Vec<LoadedResult>,
    format: &str,
    percentiles: Option<&Percentiles>,
) -> Result<Vec<RunData>, CommandError> {
    let mut all = Vec::new();
    for f in found {
        f.check_measured(format)?;
        match f.what {
            ResultKind::Measured(RunData::Series { series, .. })
                if format == "csv"
                    && (series.as_paired().is_some() || series.as_sweep().is_some()) =>
            {
                all.extend(runs_below(&f.path, percentiles)?);
            }
            ResultKind::Measured(subject) => all.push(subject),
            ResultKind::Repeats { runs, .. } => all.extend(runs),
            ResultKind::Profile { series, .. } => {
                let shown = percentiles.or(series.percentiles_shown.as_ref());
                all.extend(runs_below(&f.path, shown)?);
            }
            ResultKind::Published(_) => {}
        }
    }
    Ok(all)
}

/// The runs of a profile, a sweep or a paired comparison, in the order of the series. Run names are paths relative to the
/// directory of the series: runs of a profile on different file systems have equal directory names.
pub(super) fn runs_below(
    path: &Path,
    percentiles: Option<&Percentiles>,
) -> Result<Vec<RunData>, CommandError> {
    let mut all = Vec::new();
    for run in run_dirs(path).map_err(CommandError::usage)? {
        let mut data = run_data(run.path(), percentiles)?;
        if let (RunData::Run(run_data), Ok(name)) = (&mut data, run.path().strip_prefix(path)) {
            run_data.name = name.display().to_string();
        }
        all.push(data);
    }
    if all.is_empty() {
        let path = path.display();
        return Err(CommandError::usage(format!("{path} has no run in it")));
    }
    Ok(all)
}
