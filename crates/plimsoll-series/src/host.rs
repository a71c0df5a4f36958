//! What runs and series need of the program around them: the user's console, or a simulation.

use crate::commands::RunFacts;
use crate::config::RunConfig;
use plimsoll_engine::{Event, Outcome, PhaseInfo, Settings, Stop};
use plimsoll_plan::Plan;
use plimsoll_results::{HookTime, LiveEvent, Run, Series, SeriesRun};
use std::path::Path;
use std::sync::MutexGuard;

/// The program around runs and series.
pub trait Host {
    /// The user's request to stop.
    fn stop(&self) -> &Stop;

    /// The view of a run that begins, at rank 0.
    fn view<'a>(&'a self, run: RunBegin<'a>) -> Box<dyn RunView + 'a>;

    /// A series begins or is resumed.
    fn series_begins(&self, series: &Series) {
        let _ = series;
    }

    /// A run of a series is listed, the last of the document.
    fn run_listed(&self, series: &Series, run: ListedRun<'_>) {
        let _ = (series, run);
    }

    /// Reports progress of a step that no view shows.
    fn progress(&self, line: &str) {
        let _ = line;
    }

    /// Reports something that the user may have to mend.
    fn warn(&self, line: &str) {
        let _ = line;
    }

    /// Reports an error at once that ends the series later.
    fn error(&self, line: &str) {
        let _ = line;
    }

    /// The state of results and files has changed, for the messages of an interrupt.
    fn note(&self, state: StateChange<'_>) {
        let _ = state;
    }

    /// Keeps an interrupt from ending the process until the guard is dropped, because results are being written.
    fn hold_results(&self) -> Option<MutexGuard<'static, ()>> {
        None
    }

    /// The Plan and the settings of a run at this rank, if its host has them different from rank 0.
    fn at_this_host(&self, plan: &Plan, settings: &Settings) -> Option<(Plan, Settings)> {
        let _ = (plan, settings);
        None
    }
}

/// A run that begins.
#[derive(Debug, Clone, Copy)]
pub struct RunBegin<'a> {
    /// Plan, target and settings.
    pub config: &'a RunConfig,
    /// Number of ranks that have workers.
    pub ranks: u32,
    /// Place of the run in a series.
    pub facts: &'a RunFacts,
}

/// How a listed run was made.
#[derive(Debug, Clone, Copy)]
pub enum ListedRun<'a> {
    /// This process has just made it; its results are in this directory.
    Now(&'a Run, &'a Path),
    /// A process of this series has just made it, beside this one.
    Beside(&'a SeriesRun),
    /// An earlier process made it.
    Earlier(&'a SeriesRun),
}

/// A change of results and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A run begins, whose results are in this directory and whose files this command removes.
    RunBegins(&'a Path, Option<&'a str>),
    /// There will be no results.
    ResultsLost,
    /// The results in this directory are complete.
    ResultsWritten(&'a Path),
    /// Files are being removed, or no longer.
    Removal(bool),
    /// Files that are left are removed by this command.
    CleanCommand(&'a str),
}

/// The view of a run in progress.
pub trait RunView {
    /// The run is no longer refused. Called before anything else, possibly several times.
    fn begin(&mut self) {}

    /// An event of the engine.
    fn event(&mut self, event: &Event<'_>);

    /// Prints lines of the workload's own report.
    fn print(&mut self, lines: &str) {
        let _ = lines;
    }

    /// Events of the system under test that have begun, in order, and the actions of those that began in the last
    /// interval.
    fn system_events(&mut self, begun: &[LiveEvent], actions: &[String]) {
        let _ = (begun, actions);
    }

    /// The user's command for a phase begins.
    fn command_begins(&mut self, when: HookTime, phase: PhaseInfo<'_>) {
        let _ = (when, phase);
    }

    /// The user's command has ended.
    fn command_ends(&mut self) {}

    /// The measurement has ended with this outcome; results are not written yet.
    fn measured(&mut self, outcome: &Outcome) {
        let _ = outcome;
    }

    /// The run has ended with this outcome, and its results are about to be completed.
    fn end(&mut self, outcome: &Outcome) {
        let _ = outcome;
    }
}
