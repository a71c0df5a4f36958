//! Results of any kind, as pages show them: a run or a series.

use crate::ab;
use crate::compare::PairedEffects;
use crate::document::Document;
use crate::html::chart::Chart;
use crate::html::charts;
use crate::html::loaded_result::{LoadedResult, name_of};
use crate::{curve, find, run, suite, sweep};
use plimsoll_results::{
    Annotations, Distribution, PairedComparison, Percentiles, ResultsError, RunDir, Series,
    SeriesDir, SeriesKind, SeriesOf,
};
use std::path::Path;

/// The content of a results directory of any kind.
#[derive(Debug, Clone)]
pub enum RunData {
    /// A run.
    Run(Box<LoadedResult>),
    /// A load curve, a search for a load line, or a paired comparison.
    Series {
        /// Name of the results directory.
        name: String,
        /// Content of `series.json`.
        series: Box<Series>,
        /// The user's tags and note.
        annotations: Box<Annotations>,
        /// The pairs that count; `None` unless the series is a paired comparison.
        pairs: Option<Box<LoadedPairs>>,
    },
}

/// The pairs of a paired comparison that count, with their latencies, for pages.
#[derive(Debug, Clone)]
pub struct LoadedPairs {
    /// Effects on the figures of the pairs.
    effects: PairedEffects,
    /// Latencies of all operations in the runs of A and of B.
    distributions: [Distribution; 2],
}

impl LoadedPairs {
    fn read(
        of: SeriesOf<'_, PairedComparison>,
        dir: &SeriesDir,
        percentiles: Option<&Percentiles>,
    ) -> Result<Self, ResultsError> {
        let loaded = ab::read_pairs(of, dir, |dir| {
            let loaded = LoadedResult::read(dir, percentiles)?;
            let latencies = loaded.latencies();
            Ok((loaded.run, latencies))
        })?;
        let mut distributions = [Distribution::default(), Distribution::default()];
        let mut runs = Vec::new();
        for ((a, of_a), (b, of_b)) in loaded {
            runs.push((a, b));
            distributions[0].merge(&of_a);
            distributions[1].merge(&of_b);
        }
        Ok(Self {
            effects: ab::effects_of(&runs, of.figures.primary, percentiles),
            distributions,
        })
    }
}

impl RunData {
    /// Reads a results directory of any kind, with the requested percentiles.
    ///
    /// # Errors
    /// An error if the path is not a results directory, or if a file cannot be read or is damaged.
    pub fn read(path: &Path, percentiles: Option<&Percentiles>) -> Result<Self, ResultsError> {
        let dir = SeriesDir::at(path);
        if dir.exists() {
            let series = dir.read_with(percentiles)?;
            let shown = series.percentiles_shown.as_ref();
            let pairs = series
                .as_paired()
                .map(|of| LoadedPairs::read(of, &dir, shown));
            return Ok(Self::Series {
                name: name_of(path),
                pairs: pairs.transpose()?.map(Box::new),
                series: Box::new(series),
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
            Self::Series { series, pairs, .. } => {
                match (&series.kind, pairs) {
                    (SeriesKind::Curve(figures), _) => curve::document(series.with(figures)),
                    (SeriesKind::Search(figures), _) => find::document(series.with(figures)),
                    (SeriesKind::Sweep(figures), _) => sweep::document(series.with(figures)),
                    (SeriesKind::Suite(figures), _) => suite::document(series.with(figures)),
                    (SeriesKind::Ab(figures), Some(loaded)) => {
                        let (of, effects) = (series.with(figures), &loaded.effects);
                        let charts = charts::of_pairs(of, effects, &loaded.distributions);
                        ab::document(of, effects, charts)
                    }
                    // The report on repeated runs or on a profile has no charts and needs the runs:
                    // `crate::series::document` makes it.
                    (SeriesKind::Repeats(_) | SeriesKind::Profile(_), _)
                    | (SeriesKind::Ab(_), None) => Document::default(),
                }
            }
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
