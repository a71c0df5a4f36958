//! Results of any kind, as pages show them: a run or a series.

use crate::document::Document;
use crate::html::chart::Chart;
use crate::html::charts;
use crate::html::loaded_result::{LoadedResult, name_of};
use crate::{curve, find, run};
use plimsoll_results::{Annotations, Percentiles, ResultsError, RunDir, Series, SeriesDir};
use std::path::Path;

/// The content of a results directory of any kind.
#[derive(Debug, Clone)]
pub enum RunData {
    /// A run.
    Run(Box<LoadedResult>),
    /// A load curve, or a search for a load line.
    Series {
        /// Name of the results directory.
        name: String,
        /// Content of `series.json`.
        series: Box<Series>,
        /// The user's tags and note.
        annotations: Box<Annotations>,
    },
}

impl RunData {
    /// Reads a results directory of any kind, with the requested percentiles.
    ///
    /// # Errors
    /// An error if the path is not a results directory, or if a file cannot be read or is damaged.
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

    /// The user's tags and note.
    #[must_use]
    pub fn annotations(&self) -> &Annotations {
        match self {
            Self::Run(loaded) => &loaded.annotations,
            Self::Series { annotations, .. } => annotations,
        }
    }

    /// The report, with its charts and the name of the results, without tags and note.
    #[must_use]
    pub fn document(&self) -> Document {
        let document = match self {
            Self::Run(loaded) => run::with_charts(&loaded.run, charts::of_run(loaded)),
            Self::Series { series, .. } => match (series.as_curve(), series.as_search()) {
                (Some(curve), _) => curve::document(curve),
                (_, Some(search)) => find::document(search),
                // The page of repeated runs or of a profile shows a report for each run instead of one report on the
                // series.
                (None, None) => Document::default(),
            },
        };
        document.named(self.name())
    }

    /// All charts in the order of the page, as separate pictures.
    #[must_use]
    pub fn charts(&self) -> Vec<Chart> {
        let is_scaled = match self {
            Self::Run(loaded) => loaded.run.mix.as_ref().is_some_and(|m| m.scale != 1.0),
            Self::Series { series, .. } => !series.is_comparable(),
        };
        self.document().charts(is_scaled)
    }
}
