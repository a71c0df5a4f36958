//! The runs of results of any kind.

use crate::html::name_of;
use crate::parquet::ParquetError;
use plimsoll_results::{Kind, SeriesDir, SeriesRun};
use std::path::{Path, PathBuf};

/// Location of a run's results, and the results that contain them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSource {
    /// The results directory of the run.
    pub path: PathBuf,
    /// Name of the results directory that contains the run; for a single run, its own name.
    pub results: String,
    /// Kind of the containing results, such as `curve`.
    pub kind: String,
    /// Directory of the run relative to the containing results; `.` for a single run.
    pub run_path: String,
    /// Load of a curve or a search, or value of the parameter of a search over a parameter.
    pub load: Option<u64>,
    /// Unit of the load, such as `streams`, or the parameter with its unit.
    pub load_metric: Option<String>,
    /// File system of a profile.
    pub profile_filesystem: Option<String>,
    /// Case of a profile.
    pub profile_case: Option<String>,
    /// Configuration of other series, such as `A` or `iosize=4k`; `None` if the series has only one.
    pub configuration: Option<String>,
}

/// The runs in a results directory, in order.
///
/// # Errors
/// If the directory holds no results, no run, or results that cannot be read.
pub fn sources(path: &Path) -> Result<Vec<RunSource>, ParquetError> {
    let kind = Kind::of(path)?;
    let single = RunSource {
        path: path.to_owned(),
        results: name_of(path),
        kind: kind.to_string(),
        run_path: ".".into(),
        ..RunSource::default()
    };
    if kind == Kind::Run {
        return Ok(vec![single]);
    }
    let dir = SeriesDir::at(path);
    let series = dir.read()?;
    let of_run = |run: &SeriesRun| {
        let results = dir.run(run)?;
        let below = results.path().strip_prefix(path).unwrap_or(results.path());
        let configuration = series.configuration(run.configuration);
        let filesystem = configuration.filesystem.clone();
        let has_name = filesystem.is_none() && !configuration.name.is_empty();
        Some(RunSource {
            path: results.path().to_owned(),
            run_path: below.to_string_lossy().into_owned(),
            load: run.load_or_value(),
            load_metric: run.load_or_value().map(|_| series.load_name()),
            profile_case: filesystem.as_ref().map(|_| configuration.name.clone()),
            profile_filesystem: filesystem,
            configuration: has_name.then(|| configuration.name.clone()),
            ..single.clone()
        })
    };
    let found: Vec<RunSource> = series.runs.iter().filter_map(of_run).collect();
    match found.is_empty() {
        true => Err(ParquetError::NoRun { path: single.path }),
        false => Ok(found),
    }
}
