//! Rule of a series: the choice of the next run.

use crate::Verdict;
use crate::series::{Configuration, Purpose, Series, SeriesRun, SeriesState, SettleRule};
use plimsoll_plan::{Reason, counted};
use std::collections::HashSet;

/// Request of a series for its next run: configuration, load and seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextRun {
    /// Number of the run's configuration, from 0; the number of configurations if the run is the first at a value of a
    /// searched parameter, whose configuration has yet to be made.
    pub configuration: u32,
    /// Offered load in business metrics; `None` unless the series is a curve or a search.
    pub load: Option<u64>,
    /// Value of the parameter in a search over a parameter, in the unit of the search; `None` in other series.
    pub value: Option<u64>,
    /// Purpose of the run in a search; `None` in other series.
    pub purpose: Option<Purpose>,
    /// Seed of the run, from which all random choices of the run follow.
    pub seed: u64,
    /// Path of the run's results directory, relative to the directory of the series.
    pub directory: String,
}

/// Decision of a series' rule: the next run, or the end of the series.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The series continues with a run.
    Run(NextRun),
    /// End of the series: its final state, with a reason if a rule or an error ended the series.
    End(SeriesState, Option<Reason>),
}

/// Rule of a kind of series: the next run, and the figures that follow from all runs.
pub trait Strategy {
    /// The next run of a series, or the state in which the series ends. By default, the next run is the first of the
    /// independent runs, and the series is complete without independent runs.
    fn next(&self, series: &Series) -> Step {
        match self.independent(series).into_iter().next() {
            Some(run) => Step::Run(run),
            None => Step::End(SeriesState::Complete, None),
        }
    }

    /// Missing runs whose choice does not depend on the outcome of another run, in the order in which
    /// [`next`](Self::next) chooses the runs; empty if each run depends on earlier runs. The option `--jobs` executes
    /// independent runs concurrently.
    fn independent(&self, series: &Series) -> Vec<NextRun> {
        let _ = series;
        vec![]
    }

    /// Whether the run of a configuration, which an earlier process began and did not complete, has changed files that
    /// the next attempt needs as before, so that the next attempt makes the files again; also records the repetition.
    fn repeats(&mut self, configuration: u32) -> bool {
        let _ = configuration;
        false
    }

    /// Recomputes the figures that follow from the runs of the series; called after every change of the series.
    fn conclude(&mut self, runs: &[SeriesRun]) {
        let _ = runs;
    }

    /// Whether the figures of a completed or stopped series may be used: as a rule, if at least one run was measured, and
    /// every measured run is valid.
    fn is_valid(&self, runs: &[SeriesRun]) -> bool {
        let mut measured = runs.iter().filter(|run| run.is_measured()).peekable();
        measured.peek().is_some() && measured.all(SeriesRun::is_valid)
    }

    /// Whether the runs of the series use each other's files: one data set that grows with the load, or the filesets of
    /// configurations in one work directory, where the engine creates filesets that an earlier run changed or that do
    /// not exist. The end of the series releases the work directory.
    fn shares_files(&self, series: &Series) -> bool {
        let _ = series;
        false
    }

    /// Whether a failed run ends the series: true except for a profile, a sweep and a paired comparison.
    fn ends_with_a_failed_run(&self) -> bool {
        true
    }

    /// Rule of the wait before each run; `None` for runs without a wait. Only repeated runs and paired comparisons wait.
    fn settle(&self) -> Option<SettleRule> {
        None
    }

    /// Checks a series document of the kind for faults that editing or damage can cause.
    ///
    /// # Errors
    /// One sentence about the first fault.
    fn check(&self, series: &Series) -> Result<(), String> {
        let _ = series;
        Ok(())
    }
}

/// Maximum number of runs of one configuration in repeated runs and in a profile.
pub const MAX_REPEATS: u32 = 1000;

/// The missing runs of each configuration, up to `repeat` runs with consecutive seeds. `directory` returns the results
/// directory of a run by the run's number in the configuration, from 1.
pub(super) fn missing_runs(
    series: &Series,
    repeat: u32,
    directory: impl Fn(&Configuration, u32) -> String,
) -> Vec<NextRun> {
    let numbers = (0..).zip(&series.configurations);
    let all = numbers.flat_map(|numbered| (0..repeat).map(move |i| (numbered, i)));
    let run = |((number, configuration), i): ((u32, &Configuration), u32)| NextRun {
        configuration: number,
        load: None,
        value: None,
        purpose: None,
        seed: configuration.plan.seed.wrapping_add(u64::from(i)),
        directory: directory(configuration, i + 1),
    };
    missing_of(all.map(run), &series.runs)
}

/// The planned runs of which no run is listed, in order. A run is recognised by its configuration and its seed.
pub(super) fn missing_of(
    planned: impl Iterator<Item = NextRun>,
    listed: &[SeriesRun],
) -> Vec<NextRun> {
    let made = listed.iter().map(|run| (run.configuration, run.seed));
    let made: HashSet<(u32, u64)> = made.collect();
    let is_missing = |run: &NextRun| !made.contains(&(run.configuration, run.seed));
    planned.filter(is_missing).collect()
}

/// End of a series whose runs do not depend on each other, after the last run. A series with failed runs ends as
/// failed, so that `resume` can repeat the failed runs.
pub(super) fn end_of_independent(series: &Series) -> Step {
    let failed = series.runs.iter();
    let failed = failed.filter(|run| run.verdict == Verdict::Failed).count();
    match failed {
        0 => Step::End(SeriesState::Complete, None),
        n => {
            let text = format!("{} failed", counted(n as u64, "run", "runs"));
            Step::End(SeriesState::Failed, Some(Reason::new("failed", text)))
        }
    }
}

/// Name of a directory for a text of the user, in ASCII: a leading dot and characters other than letters, digits and
/// `.-_=,` become `_`.
pub(super) fn directory_name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_=,".contains(c);
    let name: String = text
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    // A leading dot hides a directory, and `.` and `..` name other directories.
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

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
