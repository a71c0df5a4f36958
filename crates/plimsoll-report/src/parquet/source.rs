//! The runs of results of any kind.

use crate::parquet::ParquetError;
use plimsoll_diagnostics::foreign;
use plimsoll_results::{Kind, ResultsError, SeriesDir};
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
    /// Load of a curve or a search.
    pub load: Option<u64>,
    /// Unit of the load, such as `streams`.
    pub load_metric: Option<String>,
    /// File system of a profile.
    pub profile_filesystem: Option<String>,
    /// Case of a profile.
    pub profile_case: Option<String>,
}

impl RunSource {
    fn at(&self, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }
}

fn escaped(text: &str) -> String {
    foreign::escaped(text).into_owned()
}

/// The runs in a results directory, in order.
///
/// # Errors
/// If the directory holds no results, no run, or results that cannot be read.
pub fn sources(path: &Path) -> Result<Vec<RunSource>, ParquetError> {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = whole.file_name().unwrap_or(whole.as_os_str());
    let root = RunSource {
        results: escaped(&name.to_string_lossy()),
        kind: Kind::of(path)?.to_string(),
        ..RunSource::default()
    };
    let mut found = Vec::new();
    collect(path, &root, &mut found)?;
    for source in &mut found {
        let below = source.path.strip_prefix(path).unwrap_or(&source.path);
        source.run_path = match below.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => escaped(&below.to_string_lossy()),
        };
    }
    match found.is_empty() {
        true => Err(ParquetError::NoRun {
            path: path.to_owned(),
        }),
        false => Ok(found),
    }
}

/// Adds the runs of a results directory that is part of the results `outer`.
fn collect(path: &Path, outer: &RunSource, found: &mut Vec<RunSource>) -> Result<(), ResultsError> {
    match Kind::of(path)? {
        Kind::Run => found.push(outer.at(path)),
        Kind::Repeats | Kind::Curve | Kind::Search | Kind::Profile => {
            let dir = SeriesDir::at(path);
            let series = dir.read()?;
            for run in &series.runs {
                let Some(results) = dir.run(run) else {
                    continue;
                };
                let configuration = series.configuration(run.configuration);
                let filesystem = configuration.filesystem.as_deref();
                found.push(RunSource {
                    load: run.load,
                    load_metric: run.load.map(|_| escaped(series.metric_name())),
                    profile_filesystem: filesystem.map(escaped),
                    profile_case: filesystem.map(|_| escaped(&configuration.name)),
                    ..outer.at(results.path())
                });
            }
        }
    }
    Ok(())
}
