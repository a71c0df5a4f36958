//! The header and the directory of results at several loads: load curves and searches.

use crate::document::{Directory, Document};
use crate::{
    ClockKind, CurvePoint, Environment, Hooks, Percentile, Percentiles, Program, ResultsError,
    Target,
};
use plimsoll_plan::{Criteria, Note, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut};

/// A workload measured at several loads.
///
/// `L` states how the loads are selected, `R` holds the results, and `S` holds the settings that
/// only this kind of document has. In JSON all fields are in one object, in this order. The fields
/// of the results are read as the test's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(
    rename = "LoadTest",
    description = "A workload measured at several loads."
)]
pub struct LoadTest<L, R, S> {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// Unit of the load, such as `streams`.
    pub metric: String,
    /// Fraction of the full data and of the full rates.
    pub scale: f64,
    /// Whether data and rates are the full ones; if not, the result is scaled: not comparable.
    pub comparable: bool,
    /// Root of all random choices.
    pub seed: u64,
    /// When the first run was begun: RFC 3339, in UTC.
    pub started_at: String,
    /// Selection of the loads.
    #[serde(flatten)]
    pub selection: L,
    /// Seconds of warm-up before each measured window.
    pub warmup_s: f64,
    /// Length of each measured window in seconds.
    pub measure_s: f64,
    /// Criteria of a sustained load.
    pub criteria: Criteria,
    /// Measured results.
    #[serde(flatten)]
    pub results: R,
    /// Requested percentiles in tables; null if only the usual ones are shown.
    pub percentiles_shown: Option<Percentiles>,
    /// Program that measured it.
    pub program: Program,
    /// Target of the load.
    pub target: Target,
    /// Clock of the runs.
    pub clock: ClockKind,
    /// Requested number of threads that drive the workers; null if none was requested.
    pub lanes: Option<u64>,
    /// Length of an interval of the runs' series in seconds.
    pub interval_s: f64,
    /// Processes that ran each load together.
    pub ranks: u32,
    /// Settings that only this kind of document has.
    #[serde(flatten)]
    pub settings: S,
    /// Commands of the user around the phases of each run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hooks: Option<Hooks>,
    /// Events that the program executes in each run, as on the command line, such as `30s sh
    /// ./failover`. Those of simulated systems are in the target's URL.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Notes.
    pub notes: Vec<Note>,
    /// The machine and the file system of the work directory.
    pub environment: Environment,
    /// Plan of the run at the highest load; the other loads run parts of it.
    pub plan: Plan,
}

/// Results that hold a point for each run.
pub trait LoadPoints {
    /// The points, in the order of their runs.
    fn points_mut(&mut self) -> impl Iterator<Item = &mut CurvePoint>;
}

impl<L, R, S> Deref for LoadTest<L, R, S> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.results
    }
}

impl<L, R, S> DerefMut for LoadTest<L, R, S> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.results
    }
}

impl<L, R, S> LoadTest<L, R, S> {
    /// The percentiles that a table shows: the requested ones, or else `usual`.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }
}

impl<L, R, S> Directory<LoadTest<L, R, S>>
where
    LoadTest<L, R, S>: Document,
    R: LoadPoints,
{
    /// Reads the document, for tables that show these percentiles; with none it is
    /// [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read), and as [`RunDir::read_with`](crate::RunDir::read_with) of its runs.
    pub fn read_with(
        &self,
        percentiles: Option<&Percentiles>,
    ) -> Result<LoadTest<L, R, S>, ResultsError> {
        let mut test = self.read()?;
        if let Some(wanted) = percentiles {
            for point in test.results.points_mut() {
                point.complete(&self.listed(&point.run), wanted)?;
            }
            test.percentiles_shown = Some(wanted.clone());
        }
        Ok(test)
    }
}
