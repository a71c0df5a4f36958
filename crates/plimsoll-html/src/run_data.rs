//! What a page is about: a run, a load curve, or a search for a load line.

use crate::chart::Chart;
use crate::{LoadedResult, charts};
use plimsoll_report::markdown;
use plimsoll_results::{
    Annotations, CurveDir, FindDir, LoadCurve, LoadSearch, Percentiles, ResultsError, RunDir,
};
use std::path::Path;

/// A results directory of any kind, read for looking at it.
#[derive(Debug, Clone)]
pub enum RunData {
    /// Of a run.
    Run(Box<LoadedResult>),
    /// Of load points.
    Curve {
        /// Name of the directory.
        name: String,
        /// What `curve.json` holds.
        curve: Box<LoadCurve>,
        /// What a person says of it.
        annotations: Box<Annotations>,
    },
    /// Of a search for a load line.
    Search {
        /// Name of the directory.
        name: String,
        /// What `find.json` holds.
        search: Box<LoadSearch>,
        /// What a person says of it.
        annotations: Box<Annotations>,
    },
}

impl RunData {
    /// Reads a results directory, of which kind it may be, with the requested percentiles.
    ///
    /// # Errors
    /// [`ResultsError`] if it is none, or if a file of it cannot be read or is damaged.
    pub fn read(path: &Path, percentiles: Option<&Percentiles>) -> Result<Self, ResultsError> {
        let dir = CurveDir::at(path);
        if dir.exists() {
            return Ok(Self::Curve {
                name: name_of(path),
                curve: Box::new(dir.read_with(percentiles)?),
                annotations: Box::new(Annotations::read(path)?),
            });
        }
        let dir = FindDir::at(path);
        if dir.exists() {
            return Ok(Self::Search {
                name: name_of(path),
                search: Box::new(dir.read_with(percentiles)?),
                annotations: Box::new(Annotations::read(path)?),
            });
        }
        Ok(Self::Run(Box::new(LoadedResult::read(
            &RunDir::at(path),
            percentiles,
        )?)))
    }

    /// Name of the results directory.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Run(loaded) => &loaded.name,
            Self::Curve { name, .. } | Self::Search { name, .. } => name,
        }
    }

    /// Says something else of the results than what lies beside them.
    #[must_use]
    pub fn with(mut self, said: Annotations) -> Self {
        match &mut self {
            Self::Run(loaded) => loaded.annotations = said,
            Self::Curve { annotations, .. } | Self::Search { annotations, .. } => {
                **annotations = said;
            }
        }
        self
    }

    /// All charts, in the order of the page, for pictures of their own: a scaled result says in
    /// each title that it cannot be compared, for a picture is shown without its page.
    #[must_use]
    pub fn charts(&self) -> Vec<Chart> {
        let (mut charts, scaled) = match self {
            Self::Run(loaded) => {
                let scaled = loaded.run.mix.as_ref().is_some_and(|m| m.scale != 1.0);
                (charts::of_run(loaded), scaled)
            }
            Self::Curve { curve, .. } => (charts::of_curve(curve), !curve.comparable),
            Self::Search { search, .. } => (charts::of_search(search), !search.comparable),
        };
        for chart in charts.iter_mut().filter(|_| scaled) {
            chart.title = format!("{} ({})", chart.title, markdown::SCALED);
        }
        charts
    }
}

/// Last part of a path, for a person to read.
pub(crate) fn name_of(path: &Path) -> String {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.file_name().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    )
}
