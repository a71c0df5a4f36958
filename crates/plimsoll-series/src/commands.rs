//! User's commands before and after each phase of a run.

use crate::command_output::CommandOutput;
use plimsoll_engine::{CommandEnd, Limits, PhaseInfo, run_command};
use plimsoll_plan::Plan;
use plimsoll_plan::event::{Action, EventSpec, When};
use plimsoll_results::{CommandRun, HookTime, ResultsError, RunDir};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Default maximum duration of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum duration of a command after a phase once the user has requested the end.
const HOOK_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Commands around the phases of one run, and those that have run.
pub struct HookRunner {
    /// Commands before and after phases, in the order in which they were given.
    events: Vec<EventSpec>,
    /// Environment variables of every command.
    facts: Vec<(&'static str, OsString)>,
    done: Vec<CommandRun>,
}

/// Facts that identify a run among the runs of one result.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Load of a load point.
    pub load: Option<u64>,
    /// Number of the run among those of one result, from 1.
    pub number: Option<u64>,
    /// Configuration of a profile.
    pub configuration: Option<String>,
}

impl RunFacts {
    /// Environment variables of every command of a run with this Plan, target and number of ranks.
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
    /// Selects the hooks (commands around phases) from `events`, for a run with this Plan, target and number of ranks.
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

    /// Whether commands follow a phase of this name.
    pub fn has_after(&self, phase: &str) -> bool {
        self.events.iter().any(|event| {
            matches!(event.when, When::After(_)) && event.phase().is_none_or(|name| name == phase)
        })
    }

    /// The commands for a phase, with their maximum durations.
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

    /// Whether there are commands for a phase.
    pub fn has(&self, when: HookTime, phase: PhaseInfo<'_>) -> bool {
        !self.commands(when, phase).is_empty()
    }

    /// Runs the commands for a phase sequentially, and appends their output to a log in the results directory. Returns
    /// a sentence per failed command. A failure before a phase skips the remaining commands.
    pub fn run(
        &mut self,
        when: HookTime,
        phase: PhaseInfo<'_>,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Vec<String> {
        let mut failures = Vec::new();
        for (command, timeout) in self.commands(when, phase) {
            let ran = self.run_one(command, timeout, when, phase, results, stopped);
            failures.extend(ran.err());
            if when == HookTime::Before && !failures.is_empty() {
                break;
            }
        }
        failures
    }

    fn run_one(
        &mut self,
        command: String,
        timeout: Duration,
        when: HookTime,
        phase: PhaseInfo<'_>,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), String> {
        let mut run = CommandRun {
            when,
            phase: phase.name().into(),
            iteration: phase.iteration(),
            command,
            exit_status: None,
            signal: None,
            timed_out: false,
            error: None,
            seconds: 0.0,
        };
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
                let (command, phase) = (&run.command, run.phase_name());
                format!("what the command `{command}` {when} {phase} printed was not kept: {e}")
            }),
        };
        self.done.push(run);
        said
    }

    /// Runs one command and returns its log.
    fn call(
        &self,
        run: &mut CommandRun,
        timeout: Duration,
        results: &Path,
        stopped: &dyn Fn() -> bool,
    ) -> Result<File, String> {
        let mut log = RunDir::at(results)
            .commands_log()
            .map_err(|e: ResultsError| {
                run.error = Some(e.to_string());
                e.to_string()
            })?;
        let mut called = || -> io::Result<CommandEnd> {
            let (when, phase) = (run.when, run.phase_name());
            writeln!(log, "== {when} {phase}: {}", run.command)?;
            let output = CommandOutput::new(results)?;
            let mut shell = Command::new("sh");
            shell
                .arg("-c")
                .arg(&run.command)
                .envs(self.facts.iter().map(|(name, value)| (name, value)))
                .env("PLIMSOLL_WHEN", when.to_string())
                .env("PLIMSOLL_PHASE", &run.phase)
                .env(
                    "PLIMSOLL_ITERATION",
                    run.iteration
                        .map(|n| (n + 1).to_string())
                        .unwrap_or_default(),
                )
                .env("PLIMSOLL_RESULTS", results)
                .stdin(Stdio::null())
                .stdout(output.stream()?)
                .stderr(output.stream()?);
            let stopped = || {
                // The log grows while the command prints. `finish` reports an error that persists.
                let _ = output.take(&mut &log);
                stopped()
            };
            let end = run_command(&mut shell, limits(timeout, when), &stopped);
            output.finish(&mut log)?;
            end
        };
        match called() {
            Ok(CommandEnd::Ended(status)) => {
                run.exit_status = status.code();
                run.signal = status.signal();
            }
            Ok(CommandEnd::TimedOut(_)) => run.timed_out = true,
            Err(e) => run.error = Some(e.to_string()),
        }
        Ok(log)
    }

    /// The commands that have run so far, in order.
    pub fn done(&self) -> &[CommandRun] {
        &self.done
    }

    /// Converts the runner into the list of commands that have run, in order.
    pub fn into_done(self) -> Vec<CommandRun> {
        self.done
    }
}

fn limits(timeout: Duration, when: HookTime) -> Limits {
    Limits {
        time: Some(timeout),
        time_once_stopped: match when {
            // The prepared phase is skipped.
            HookTime::Before => Duration::ZERO,
            HookTime::After => HOOK_STOP_TIMEOUT,
        },
    }
}
