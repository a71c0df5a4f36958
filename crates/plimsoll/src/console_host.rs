//! Host of runs and series on the user's console, with interrupts.

use crate::exit::CommandError;
use crate::output_options::OutputOptions;
use crate::progress_display::{ProgressDisplay, RunTitle};
use crate::series_text::{self, RunLine};
use crate::{console, hosts, io500, signals, vary, workload};
use plimsoll_diagnostics::foreign;
use plimsoll_engine::{ClockKind, Settings, Stop, preflight};
use plimsoll_plan::{Phase, Plan, show_duration};
use plimsoll_results::{Configuration, NextRun, Series};
use plimsoll_series::{
    Host, ListedRun, RunBegin, RunConfig, RunView, SeriesError, StateChange, events,
};
use std::sync::MutexGuard;

/// Console of runs and series: displays the runs in progress, prints their lines, and records the state from which the
/// messages of interrupts follow.
pub struct ConsoleHost {
    output: OutputOptions,
    stop: Stop,
    /// Maximum number of runs of a series in progress at the same time.
    jobs: usize,
    /// Whether the text of the series or the report of the pattern replaces the headlines of runs.
    is_of_series: bool,
}

impl ConsoleHost {
    /// Console of a command that makes a single run.
    pub fn of_runs(output: &OutputOptions, stop: Stop) -> Self {
        Self {
            output: output.clone(),
            stop,
            jobs: 1,
            is_of_series: false,
        }
    }

    /// Console of a series with up to `jobs` runs at the same time, or of `md`.
    pub fn of_series(output: &OutputOptions, stop: Stop, jobs: usize) -> Self {
        Self {
            jobs,
            is_of_series: true,
            ..Self::of_runs(output, stop)
        }
    }
}

impl Host for ConsoleHost {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn view<'a>(&'a self, run: RunBegin<'a>) -> Box<dyn RunView + 'a> {
        let facts = run.facts;
        let label = match (&facts.configuration, facts.load) {
            (Some(configuration), _) => format!("{configuration}  "),
            (None, Some(load)) => format!("load {load}  "),
            (None, None) => String::new(),
        };
        let title = RunTitle {
            label,
            headline: headline(run.config, run.ranks),
            is_in_series: self.is_of_series,
        };
        let wants_live = self.output.live && run.config.settings().clock() == ClockKind::Real;
        Box::new(ProgressDisplay::new(
            &self.output,
            &run.config.plan,
            title,
            wants_live,
        ))
    }

    fn configuration(&self, series: &Series, next: &NextRun) -> Result<Configuration, SeriesError> {
        let made = match series.as_suite() {
            Some(suite) => io500::configuration(suite, next.configuration),
            None => of_value(series, next),
        };
        let name = match series.searched().zip(next.value) {
            Some((parameter, value)) => parameter.configuration(value),
            None => next.directory.clone(),
        };
        let refused = |text: &str| {
            let text = text.trim_end().trim_start_matches("error: ");
            SeriesError::refused(format!("{name}: {text}"))
        };
        let mut configuration = made.map_err(|e| refused(&e.message))?;
        let settings = Settings {
            target: configuration.target.url.clone(),
            interval: series.interval(),
            holds: series.shares_files(),
        };
        let look = preflight(&configuration.plan, &settings);
        let look = look.map_err(|e| refused(&e.to_string()))?;
        if !look.refusals.is_empty() {
            return Err(refused(&look.refusals.join("\n")));
        }
        configuration.target.description = look.target;
        Ok(configuration)
    }

    fn series_begins(&self, series: &Series) {
        let line = series_text::headline(series, self.jobs);
        self.output.print_message(&line);
        for number in 0..series.runs.len() {
            let line = series_text::line(series, number, RunLine::Earlier);
            self.output.print_message(&line);
        }
    }

    fn run_listed(&self, series: &Series, run: ListedRun<'_>) {
        let number = series.runs.len() - 1;
        let how = match run {
            ListedRun::Now(..) | ListedRun::Beside(_) => RunLine::New,
            ListedRun::Earlier(_) => RunLine::Earlier,
        };
        let line = series_text::line(series, number, how);
        self.output.print_message(&line);
    }

    fn progress(&self, line: &str) {
        self.output.report_progress(line);
    }

    fn settled(&self, words: &str) {
        self.output.print_message(words);
    }

    fn warn(&self, line: &str) {
        console::err(&format!("warning: {line}\n"));
    }

    fn error(&self, line: &str) {
        console::err(&format!("error: {line}\n"));
    }

    fn note(&self, state: StateChange<'_>) {
        match state {
            StateChange::RunBegins(results, clean) => {
                signals::note_run_begin(results, clean.map(str::to_owned));
            }
            StateChange::ResultsLost => signals::note_results_lost(),
            StateChange::ResultsWritten(results) => signals::note_results_written(results),
            StateChange::Removal(now) => signals::note_removal(now),
            StateChange::CleanCommand(command) => signals::cleans_by(Some(command.to_owned())),
        }
    }

    fn hold_results(&self) -> Option<MutexGuard<'static, ()>> {
        Some(signals::hold_results())
    }

    fn at_this_host(&self, plan: &Plan, settings: &Settings) -> Option<(Plan, Settings)> {
        hosts::place().map(|place| place.of_run(plan, settings))
    }
}

/// Parts of the headline that a run prints first: workload, location of the workload's files, target, number of ranks,
/// and length of the recorded intervals.
fn headline(config: &RunConfig, ranks: u32) -> Vec<String> {
    let plan = &config.plan;
    let mut headline = vec![
        plan.name.clone(),
        foreign::escaped(&files_of(plan, &config.target.url)).into_owned(),
        format!("target {}", config.target.url),
    ];
    if ranks > 1 {
        headline.push(format!("{ranks} ranks"));
    }
    let interval = show_duration(config.settings().interval);
    headline.push(format!("intervals of {interval}"));
    headline
}

/// Text with the directory of a Plan's files, and whether the files are kept or removed after the run.
pub fn files_of(plan: &Plan, target: &str) -> String {
    if !plimsoll_target::keeps_files(target) {
        return "no files".into();
    }
    let fate = match (plan.options.keep, plan.work_dir.temporary) {
        (true, _) => "kept afterwards",
        (false, true) => "a new directory, removed afterwards",
        (false, false) => "removed afterwards",
    };
    format!("files in {} ({fate})", workload::place(plan))
}

/// Text `, N ranks` at the end of a list; empty for a single rank.
pub fn ranks_of(ranks: u32) -> String {
    match ranks {
        1 => String::new(),
        n => format!(", {n} ranks"),
    }
}

/// Configuration of a series for one value of the searched parameter.
///
/// # Errors
/// If the parameter's value changes the directory or the shell commands of the runs, or gives no valid workload.
fn of_value(series: &Series, next: &NextRun) -> Result<Configuration, CommandError> {
    let searched = series.searched().zip(next.value);
    let (parameter, value) = searched.expect("only a search over a parameter makes values");
    let events = events::read(&series.events, &parameter.recipe.target);
    let events = events.map_err(SeriesError::Refused)?;
    let first = series.configuration(0);
    let values = [(parameter.name.clone(), parameter.value(value))];
    let dir = Some(&first.plan.work_dir);
    let configuration = vary::configuration(&parameter.recipe, &values, dir, &events)?;
    let refused = |text: &str| Err(CommandError::usage(text));
    if configuration.place() != first.place() {
        return refused("the value changes the place of the files");
    }
    // A user who resumes a series of another person has allowed only the commands that the series contains.
    let commands = |plan: &Plan| -> Vec<String> {
        let commands = plan.script.iter().filter_map(|phase| match phase {
            Phase::System { command } => Some(command.clone()),
            _ => None,
        });
        commands.collect()
    };
    if commands(&configuration.plan) != commands(&first.plan) {
        return refused("the value changes the shell commands of the workload");
    }
    Ok(Configuration {
        name: parameter.configuration(value),
        ..configuration
    })
}
