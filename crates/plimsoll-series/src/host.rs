//! Interface of runs and series to the surrounding program: the user's console, or a simulation.

use crate::commands::RunFacts;
use crate::config::RunConfig;
use crate::error::SeriesError;
use plimsoll_engine::{Event, Outcome, PhaseInfo, Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_results::{Configuration, HookTime, LiveEvent, NextRun, Run, Series, SeriesRun};
use std::path::Path;
use std::sync::MutexGuard;

/// The program that makes runs and series, which receives their reports: a console, or a simulation.
pub trait Host {
    /// Stop request of the user, which the runs poll.
    fn stop(&self) -> &Stop;

    /// Opens the view of a run that begins; called at rank 0.
    fn view<'a>(&'a self, run: RunBegin<'a>) -> Box<dyn RunView + 'a>;

    /// Makes the configuration of the next run, at a new value of the parameter that a search varies; called at rank 0.
    ///
    /// # Errors
    /// If the workload or the target refuses the value. The default implementation refuses every value.
    fn configuration(&self, series: &Series, next: &NextRun) -> Result<Configuration, SeriesError> {
        let _ = series;
        Err(SeriesError::refused(format!(
            "{}: this program makes no Plans for new values of a parameter",
            next.directory
        )))
    }

    /// Called at rank 0 when a series begins or is resumed, before its first missing run.
    fn series_begins(&self, series: &Series) {
        let _ = series;
    }

    /// Called when a run has been added to `series.json`; the run is the last in the list of `series`.
    fn run_listed(&self, series: &Series, run: ListedRun<'_>) {
        let _ = (series, run);
    }

    /// Reports progress of a step that has no view, such as the start of a concurrent process or the removal of files.
    fn progress(&self, line: &str) {
        let _ = line;
    }

    /// Reports a wait for the machine to come to rest before a run, in a phrase such as `waited 4.5 s for dirty pages (120
    /// MiB)`.
    fn settled(&self, words: &str) {
        let _ = words;
    }

    /// Warns the user about a condition that may need action, such as files that could not be removed.
    fn warn(&self, line: &str) {
        let _ = line;
    }

    /// Reports an error of a concurrent run immediately; the series ends later, when the run's turn comes.
    fn error(&self, line: &str) {
        let _ = line;
    }

    /// Records a change of results and files, for the messages that an interrupt prints.
    fn note(&self, state: StateChange<'_>) {
        let _ = state;
    }

    /// Keeps an interrupt from ending the process until the guard is dropped, because results are being written.
    fn hold_results(&self) -> Option<MutexGuard<'static, ()>> {
        None
    }

    /// Plan and settings of a run for this rank's machine; `None` to use the Plan and settings of rank 0.
    fn at_this_host(&self, plan: &Plan, settings: &Settings) -> Option<(Plan, Settings)> {
        let _ = (plan, settings);
        None
    }
}

/// Facts about a run that begins, from which the host opens the view of the run.
#[derive(Debug, Clone, Copy)]
pub struct RunBegin<'a> {
    /// Plan, target and settings of the run.
    pub config: &'a RunConfig,
    /// Number of ranks of the run that have workers.
    pub ranks: u32,
    /// Load, number and configuration of the run in its series.
    pub facts: &'a RunFacts,
}

/// A run that was added to `series.json`; the variants tell which process made the run.
#[derive(Debug, Clone, Copy)]
pub enum ListedRun<'a> {
    /// Run that this process has just made, with the run's results directory.
    Now(&'a Run, &'a Path),
    /// Run that a concurrent process of the series has just made.
    Beside(&'a SeriesRun),
    /// Run that an earlier process made without listing the run in `series.json`.
    Earlier(&'a SeriesRun),
}

/// A change of the results and files of a run, which an interrupt of the user reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A run has begun, with its results directory and, if the run creates files, a command that removes the files.
    RunBegins(&'a Path, Option<&'a str>),
    /// The results of the run could not be written.
    ResultsLost,
    /// The results of the run have been written; the path is the run's results directory.
    ResultsWritten(&'a Path),
    /// Removal of the run's files: true when the removal begins, false when the removal has ended.
    Removal(bool),
    /// Command that removes the files that the run leaves.
    CleanCommand(&'a str),
}

/// View of a run in progress, for the user.
pub trait RunView {
    /// Called once the engine has accepted the run, before any other method, possibly several times.
    fn begin(&mut self) {}

    /// Called for each event of the engine, such as the opening of a window or a new interval.
    fn event(&mut self, event: &Event<'_>);

    /// Prints lines of the workload's own report.
    fn print(&mut self, lines: &str) {
        let _ = lines;
    }

    /// Called with the events of the system under test that have begun, in order of planned time, and the actions of
    /// the events that began in the last interval.
    fn system_events(&mut self, begun: &[LiveEvent], actions: &[String]) {
        let _ = (begun, actions);
    }

    /// Called when the user's commands before or after (`when`) a phase begin.
    fn command_begins(&mut self, when: HookTime, phase: PhaseInfo<'_>) {
        let _ = (when, phase);
    }

    /// Called when the user's commands for a phase have ended.
    fn command_ends(&mut self) {}

    /// Called when the measurement has ended with `outcome`, before the results are written.
    fn measured(&mut self, outcome: &Outcome) {
        let _ = outcome;
    }

    /// Called when the run has ended with `outcome`, before its results are completed.
    fn end(&mut self, outcome: &Outcome) {
        let _ = outcome;
    }
}
