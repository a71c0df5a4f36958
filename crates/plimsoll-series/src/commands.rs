//! Hooks: the user's commands before and after the phases of a run, and before a run of a series.

use crate::command_output::CommandOutput;
use plimsoll_engine::{Limits, PhaseInfo};
use plimsoll_plan::Plan;
use plimsoll_plan::event::{Action, EventSpec, When};
use plimsoll_results::{CommandResult, CommandRun, HookTime, RunDir};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum duration of a hook's command without a timeout of its own.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Name of the phase in the record of a command before a whole run.
const WHOLE_RUN: &str = "run";

/// Maximum remaining duration of a command after a phase once the user has requested the end of the run.
const HOOK_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Runner of the hooks of one run, with a record of each executed command.
pub struct HookRunner {
    /// Hooks before and after phases, in the order of the command line.
    events: Vec<EventSpec>,
    /// Environment variables of every command, as from [`RunFacts::variables`].
    facts: Vec<(&'static str, OsString)>,
    done: Vec<CommandRun>,
}

/// Facts that identify a run among the runs of one result.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Load of the run in business metrics; `None` unless the run is a load point.
    pub load: Option<u64>,
    /// Number of the run among the runs of one result, from 1; `None` for a single run, and for a run that another
    /// process makes.
    pub number: Option<u64>,
    /// Label of the run's configuration: name and file system in a profile, the variant in a paired comparison; `None`
    /// in other series.
    pub configuration: Option<String>,
}

impl RunFacts {
    /// Environment variables (`PLIMSOLL_…`) that tell every command of a run the workload, target, work directory,
    /// number of ranks, load, run and configuration. An environment variable without a value is the empty text.
    pub fn variables(
        &self,
        plan: &Plan,
        target: &str,
        ranks: u32,
    ) -> Vec<(&'static str, OsString)> {
        let dir = plimsoll_target::absolute(target, &plan.work_dir.dir);
        let dir = dir.unwrap_or_else(|_| plan.work_dir.dir.clone());
        let number = |n: Option<u64>| n.map(|n| n.to_string()).unwrap_or_default().into();
        let configuration = self.configuration.clone().unwrap_or_default();
        vec![
            ("PLIMSOLL_WORKLOAD", plan.name.clone().into()),
            ("PLIMSOLL_TARGET", target.into()),
            ("PLIMSOLL_DIR", dir.into()),
            ("PLIMSOLL_RANKS", ranks.to_string().into()),
            ("PLIMSOLL_LOAD", number(self.load)),
            ("PLIMSOLL_RUN", number(self.number)),
            ("PLIMSOLL_CONFIGURATION", configuration.into()),
        ]
    }
}

impl HookRunner {
    /// Selects the hooks from `events`, for a run of `plan`; events at a time of the run are left out.
    pub fn new(
        events: &[EventSpec],
        plan: &Plan,
        target: &str,
        ranks: u32,
        run: &RunFacts,
    ) -> Self {
        let around_phases = events.iter().filter(|event| event.at().is_none());
        Self {
            events: around_phases.cloned().collect(),
            facts: run.variables(plan, target, ranks),
            done: vec![],
        }
    }

    /// Whether any hook runs after the phase named `phase`.
    pub fn has_after(&self, phase: &str) -> bool {
        self.events.iter().any(|event| {
            matches!(event.when, When::After(_)) && event.phase().is_none_or(|name| name == phase)
        })
    }

    /// The commands that run before or after (`when`) a phase, with their maximum durations.
    fn commands(&self, when: HookTime, phase: PhaseInfo<'_>) -> Vec<(String, Duration)> {
        let due = self.events.iter().filter(|event| match &event.when {
            When::At { .. } => false,
            When::Before(_) => when == HookTime::Before,
            When::After(_) => when == HookTime::After,
        });
        let due = due.filter(|event| event.phase().is_none_or(|name| name == phase.name()));
        due.filter_map(|event| match &event.action {
            Action::Command(command) => {
                let timeout = event.timeout().unwrap_or(COMMAND_TIMEOUT);
                Some((command.clone(), timeout))
            }
            Action::Fault(_) => None,
        })
        .collect()
    }

    /// Whether any command runs before or after (`when`) a phase.
    pub fn has(&self, when: HookTime, phase: PhaseInfo<'_>) -> bool {
        !self.commands(when, phase).is_empty()
    }

    /// Runs the commands for a phase one after another, appends the output of each command to `commands.log` in the
    /// results directory, and returns a sentence per failed command. A command that fails before a phase skips the
    /// remaining commands for the phase.
    pub fn run(
        &mut self,
        when: HookTime,
        phase: PhaseInfo<'_>,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let due = self.commands(when, phase).into_iter();
        let due = due.map(|(command, timeout)| {
            let run = CommandRun {
                when,
                phase: phase.name().into(),
                iteration: phase.iteration(),
                command,
                end: CommandResult::default(),
                seconds: 0.0,
            };
            (run, timeout)
        });
        self.run_all(due.collect(), results, stopped)
    }

    /// Runs commands before a whole run one after another, appends the output of each command to `commands.log` in the
    /// directory `results`. Returns a sentence about the first command that failed, after which no command runs; `None`
    /// if all commands succeeded.
    pub fn run_before_run(
        &mut self,
        commands: &[String],
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Option<String> {
        let due = commands.iter().map(|command| {
            let run = CommandRun {
                when: HookTime::Before,
                phase: WHOLE_RUN.into(),
                iteration: None,
                command: command.clone(),
                end: CommandResult::default(),
                seconds: 0.0,
            };
            (run, COMMAND_TIMEOUT)
        });
        self.run_all(due.collect(), results, stopped).pop()
    }

    fn run_all(
        &mut self,
        due: Vec<(CommandRun, Duration)>,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let mut failures = Vec::new();
        for (run, timeout) in due {
            let when = run.when;
            failures.extend(self.run_one(run, timeout, results, stopped).err());
            if when == HookTime::Before && !failures.is_empty() {
                break;
            }
        }
        failures
    }

    fn run_one(
        &mut self,
        mut run: CommandRun,
        timeout: Duration,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        let begun = Instant::now();
        let log = self.call(&mut run, timeout, results, stopped);
        run.seconds = begun.elapsed().as_secs_f64();
        let kept = log.and_then(|mut log| {
            let (end, seconds) = (run.outcome(), run.seconds);
            writeln!(log, "== it {end} ({seconds:.2} s)\n").map_err(|e| e.to_string())
        });
        let said = match run.failure() {
            Some(failure) => Err(failure),
            None => kept.map_err(|e| {
                let (command, when, phase) = (&run.command, run.when, run.phase_name());
                format!("what the command `{command}` {when} {phase} printed was not kept: {e}")
            }),
        };
        self.done.push(run);
        said
    }

    /// Runs a command with its output in `commands.log`, sets the result in `run`, and returns the open log. An error
    /// means that `commands.log` cannot be opened.
    fn call(
        &self,
        run: &mut CommandRun,
        timeout: Duration,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<File, String> {
        let mut log = RunDir::at(results).commands_log().map_err(|e| {
            run.end = CommandResult::failed(&e);
            e.to_string()
        })?;
        let mut called = || -> io::Result<CommandResult> {
            let (when, phase) = (run.when, run.phase_name());
            writeln!(log, "== {when} {phase}: {}", run.command)?;
            let output = CommandOutput::new(results)?;
            let iteration = run.iteration.map(|n| (n + 1).to_string());
            let of_phase = [
                ("PLIMSOLL_WHEN", when.to_string().into()),
                ("PLIMSOLL_PHASE", run.phase.clone().into()),
                ("PLIMSOLL_ITERATION", iteration.unwrap_or_default().into()),
            ];
            let variables = self.facts.iter().cloned().chain(of_phase);
            let stopped = || {
                // The output reaches the log while the command prints. `CommandOutput::finish` reports a persistent
                // write error.
                let _ = output.take(&mut &log);
                stopped()
            };
            let limits = limits(timeout, when);
            let end = output.of_shell(&run.command, variables, results, limits, &stopped)?;
            output.finish(&mut log)?;
            Ok(end)
        };
        run.end = called().unwrap_or_else(CommandResult::failed);
        Ok(log)
    }

    /// Hooks that have run so far, in the order of execution.
    pub fn done(&self) -> &[CommandRun] {
        &self.done
    }

    /// Converts the runner into the list of the hooks that have run, in the order of execution.
    pub fn into_done(self) -> Vec<CommandRun> {
        self.done
    }
}

fn limits(timeout: Duration, when: HookTime) -> Limits {
    Limits {
        time: Some(timeout),
        time_once_stopped: match when {
            // A stop of the run skips the phase that a command before the phase prepares, so the command ends at once.
            HookTime::Before => Duration::ZERO,
            HookTime::After => HOOK_STOP_TIMEOUT,
        },
    }
}
