//! Interface of runs and series to the surrounding program: the user's console, or a simulation.

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

    /// Called when a series begins or is resumed.
    fn series_begins(&self, series: &Series) {
        let _ = series;
    }

    /// Called when a run has been listed; the run is the last of the series document.
    fn run_listed(&self, series: &Series, run: ListedRun<'_>) {
        let _ = (series, run);
    }

    /// Reports progress of a step without a view.
    fn progress(&self, line: &str) {
        let _ = line;
    }

    /// Warns about something that the user may have to correct.
    fn warn(&self, line: &str) {
        let _ = line;
    }

    /// Reports an error immediately; the series ends later because of the error.
    fn error(&self, line: &str) {
        let _ = line;
    }

    /// Records the state of results and files, for the messages after an interrupt.
    fn note(&self, state: StateChange<'_>) {
        let _ = state;
    }

    /// Keeps an interrupt from ending the process until the guard is dropped, because results are being written.
    fn hold_results(&self) -> Option<MutexGuard<'static, ()>> {
        None
    }

    /// The Plan and settings for this rank, if its host has settings of its own.
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
    /// Load, number and configuration of the run in its series.
    pub facts: &'a RunFacts,
}

/// Origin of a listed run.
#[derive(Debug, Clone, Copy)]
pub enum ListedRun<'a> {
    /// Made by this process just now; the results are in this directory.
    Now(&'a Run, &'a Path),
    /// Made just now by another process of the same series.
    Beside(&'a SeriesRun),
    /// Made by an earlier process.
    Earlier(&'a SeriesRun),
}

/// A change of results and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateChange<'a> {
    /// A run has begun. Results directory, and command that removes the run's files.
    RunBegins(&'a Path, Option<&'a str>),
    /// The results could not be written.
    ResultsLost,
    /// The results in this directory are complete.
    ResultsWritten(&'a Path),
    /// True when removal of files begins, false when removal has ended.
    Removal(bool),
    /// Command that removes the remaining files.
    CleanCommand(&'a str),
}

/// The view of a run in progress.
pub trait RunView {
    /// The run was accepted. Called before any other method, possibly several times.
    fn begin(&mut self) {}

    /// An event of the engine.
    fn event(&mut self, event: &Event<'_>);

    /// Prints lines of the workload's own report.
    fn print(&mut self, lines: &str) {
        let _ = lines;
    }

    /// The events of the system under test that have begun, in order, and the actions of the events that began in the
    /// last interval.
    fn system_events(&mut self, begun: &[LiveEvent], actions: &[String]) {
        let _ = (begun, actions);
    }

    /// A user's command for a phase begins.
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
