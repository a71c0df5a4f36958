//! The rule of a series.

use crate::series::{Purpose, Series, SeriesRun, SeriesState};
use plimsoll_plan::Reason;

/// A run that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRun {
    /// Number of its configuration, from 0.
    pub configuration: u32,
    /// Load of a curve or a search.
    pub load: Option<u64>,
    /// Purpose in a search.
    pub purpose: Option<Purpose>,
    /// Root of all random choices of the run.
    pub seed: u64,
    /// Results directory, relative to the series'.
    pub directory: String,
}

/// What follows in a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A run is to be made.
    Run(NextRun),
    /// The series has ended in this state, for a reason if a rule or an error ended it.
    End(SeriesState, Option<Reason>),
}

/// The rule of a kind of series: which run follows the runs so far, and what follows from all of them.
pub trait Strategy {
    /// The next run, or the end of the series.
    fn next(&self, series: &Series) -> Step;

    /// Runs whose choice does not depend on the outcome of any other, in the order in which [`next`](Self::next) chooses
    /// them: they may be made at the same time. Runs that were made are left out.
    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let _ = series;
        vec![]
    }

    /// Computes the figures that follow from the runs.
    fn conclude(&mut self, runs: &[SeriesRun]);

    /// Whether the figures of a series that has ended may be used.
    fn is_valid(&self, runs: &[SeriesRun]) -> bool;

    /// Whether all runs work on one data set, which grows with the load.
    fn shares_files(&self) -> bool {
        false
    }

    /// Whether a failed run ends the series.
    fn ends_with_a_failed_run(&self) -> bool {
        true
    }

    /// Checks what a document may have wrong that was edited or damaged.
    ///
    /// # Errors
    /// A sentence with the first fault.
    fn check(&self, series: &Series) -> Result<(), String> {
        let _ = series;
        Ok(())
    }
}

/// Whether every run that was measured is valid.
pub(super) fn all_valid(runs: &[SeriesRun]) -> bool {
    let mut measured = runs.iter().filter(|run| run.is_measured()).peekable();
    measured.peek().is_some() && measured.all(SeriesRun::is_valid)
}

/// Maximum number of runs of one configuration.
pub const MAX_REPEATS: u32 = 1000;

/// Refuses a number of runs of a configuration that is out of range.
pub(super) fn check_repeats(runs: u32) -> Result<(), String> {
    if (1..=MAX_REPEATS).contains(&runs) {
        return Ok(());
    }
    Err(format!(
        "{runs} runs of a configuration are requested: expected 1 to {MAX_REPEATS}"
    ))
}

/// Refuses a series at several loads without a business metric.
pub(super) fn check_metric(series: &Series) -> Result<(), String> {
    if series.metric().is_none() {
        return Err("the Plan has no business metric to be a load of".into());
    }
    match series.runs.iter().find(|run| run.load.is_none()) {
        Some(run) => Err(format!("the run {} has no load", run.directory)),
        None => Ok(()),
    }
}
