//! Results of any kind, as pages show them: a run, a load curve, or a search for a load line.

use crate::html::chart::Chart;
use crate::html::charts;
use crate::html::loaded_result::{LoadedResult, name_of};
use crate::markdown;
use plimsoll_results::{Annotations, Percentiles, ResultsError, RunDir, Series, SeriesDir};
use std::path::Path;

/// The content of a results directory of any kind.
#[derive(Debug, Clone)]
pub enum RunData {
    /// A run.
    Run(Box<LoadedResult>),
    /// A load curve, or a search for a load line.
    Series {
        /// Name of the directory.
        name: String,
        /// Content of `series.json`.
        series: Box<Series>,
        /// Tags and note.
        annotations: Box<Annotations>,
    },
}

impl RunData {
    /// Reads a results directory of any kind, with the requested percentiles.
    ///
    /// # Errors
    /// It is not a results directory, or a file cannot be read or is damaged.
    pub fn read(path: &Path, percentiles: Option<&Percentiles>) -> Result<Self, ResultsError> {
        let dir = SeriesDir::at(path);
        if dir.exists() {
            return Ok(Self::Series {
                name: name_of(path),
                series: Box::new(dir.read_with(percentiles)?),
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
            Self::Series { name, .. } => name,
        }
    }

    /// Replaces tags and note.
    #[must_use]
    pub fn with(mut self, new: Annotations) -> Self {
        match &mut self {
            Self::Run(loaded) => loaded.annotations = new,
            Self::Series { annotations, .. } => **annotations = new,
        }
        self
    }

    /// All charts, in the order of the page, as separate pictures: each title of a scaled result
    /// states that it cannot be compared.
    #[must_use]
    pub fn charts(&self) -> Vec<Chart> {
        let (mut charts, scaled) = match self {
            Self::Run(loaded) => {
                let scaled = loaded.run.mix.as_ref().is_some_and(|m| m.scale != 1.0);
                (charts::of_run(loaded), scaled)
            }
            Self::Series { series, .. } => (charts::of_series(series), !series.is_comparable()),
        };
        for chart in charts.iter_mut().filter(|_| scaled) {
            chart.title = format!("{} ({})", chart.title, markdown::SCALED);
        }
        charts
    }
}
