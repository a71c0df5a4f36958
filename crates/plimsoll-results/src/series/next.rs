//! Rule of a series: the choice of the next run.

use crate::series::{Purpose, Series, SeriesRun, SeriesState};
use plimsoll_plan::Reason;

/// A run that a series requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRun {
    /// Number of the run's configuration, from 0.
    pub configuration: u32,
    /// Load in business metrics, for a curve or a search.
    pub load: Option<u64>,
    /// Purpose of the run in a search.
    pub purpose: Option<Purpose>,
    /// Root of all random choices of the run.
    pub seed: u64,
    /// Results directory, relative to the directory of the series.
    pub directory: String,
}

/// Next step of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The next run.
    Run(NextRun),
    /// End of the series: its final state, with a reason if a rule or an error ended the series.
    End(SeriesState, Option<Reason>),
}

/// Rule of a kind of series: the next run, and the figures that follow from all runs.
pub trait Strategy {
    /// The next run, or the end of the series.
    fn next(&self, series: &Series) -> Step;

    /// Runs whose choice does not depend on the outcome of another run, in the order of [`next`](Self::next); they may
    /// be executed concurrently. Completed runs are left out.
    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let _ = series;
        vec![]
    }

    /// Recomputes the figures that follow from the runs.
    fn conclude(&mut self, runs: &[SeriesRun]);

    /// Whether the figures of a completed or stopped series may be used.
    fn is_valid(&self, runs: &[SeriesRun]) -> bool;

    /// Whether all runs work on one data set, which grows with the load.
    fn shares_files(&self) -> bool {
        false
    }

    /// Whether a failed run ends the series.
    fn ends_with_a_failed_run(&self) -> bool {
        true
    }

    /// Checks a document for faults that editing or damage can cause.
    ///
    /// # Errors
    /// One sentence about the first fault.
    fn check(&self, series: &Series) -> Result<(), String> {
        let _ = series;
        Ok(())
    }
}

/// Whether at least one run was measured, and every measured run is valid.
pub(super) fn all_valid(runs: &[SeriesRun]) -> bool {
    let mut measured = runs.iter().filter(|run| run.is_measured()).peekable();
    measured.peek().is_some() && measured.all(SeriesRun::is_valid)
}

/// Maximum number of runs of one configuration.
pub const MAX_REPEATS: u32 = 1000;

/// Checks that the number of runs of a configuration is in range.
pub(super) fn check_repeats(runs: u32) -> Result<(), String> {
    if (1..=MAX_REPEATS).contains(&runs) {
        return Ok(());
    }
    Err(format!(
        "{runs} runs of a configuration are requested: expected 1 to {MAX_REPEATS}"
    ))
}

/// Checks that a series at several loads has a business metric.
pub(super) fn check_metric(series: &Series) -> Result<(), String> {
    if series.metric().is_none() {
        return Err("the Plan has no business metric to be a load of".into());
    }
    match series.runs.iter().find(|run| run.load.is_none()) {
        Some(run) => Err(format!("the run {} has no load", run.directory)),
        None => Ok(()),
    }
}
