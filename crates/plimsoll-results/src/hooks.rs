//! Hooks: commands of the user before and after phases of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

/// Time at which a hook runs: before or after a phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum HookTime {
    /// The hook runs before a phase of the run; a failure of the hook's command fails the run.
    Before,
    /// The hook runs after a phase of the run; a failure of the hook's command becomes a note in the results.
    After,
}

/// Result of a user's command (of a hook or an event), or of another action of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandResult {
    /// Exit status of the command; null without a command, if the command could not be started, and if a signal or
    /// Plimsoll ended the command.
    pub exit_status: Option<i32>,
    /// Number of the signal that ended the command; null if no signal ended the command, and if Plimsoll did.
    pub signal: Option<i32>,
    /// Whether Plimsoll terminated the command, because the timeout had passed, or because the run had ended or was
    /// interrupted.
    pub timed_out: bool,
    /// Error that kept the action from being executed; null if the action was executed.
    pub error: Option<String>,
}

impl CommandResult {
    /// The result of an action that `error` kept from being executed.
    pub fn failed(error: impl ToString) -> Self {
        Self {
            error: Some(error.to_string()),
            ..Self::default()
        }
    }

    /// Whether the action completed: no error, no signal, no timeout, and no exit status other than 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        let status = self.exit_status.is_none_or(|status| status == 0);
        status && self.signal.is_none() && !self.timed_out && self.error.is_none()
    }

    /// End of a command that ran for `seconds`, in words, such as `ended with exit status 1`; `None` without exit
    /// status, signal and timeout.
    pub(crate) fn words(&self, seconds: f64) -> Option<String> {
        match (self.timed_out, self.exit_status, self.signal) {
            (true, ..) => Some(format!("was terminated after {seconds:.1} s")),
            (_, Some(status), _) => Some(format!("ended with exit status {status}")),
            (_, None, Some(signal)) => Some(format!("was ended by signal {signal}")),
            (_, None, None) => None,
        }
    }
}

/// A hook that ran: a user's command before or after a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Whether the hook's command ran before or after the phase.
    pub when: HookTime,
    /// Name of the hook's phase: `populate`, `load`, or the name of a stage of a pattern; `run` for a command before a whole
    /// run of a series.
    pub phase: String,
    /// Number of the iteration of the stage, from 0; null for phases that are not stages.
    pub iteration: Option<u32>,
    /// Text of the hook's shell command, as on the command line.
    pub command: String,
    /// Result of the hook's command: exit status, signal, timeout or error.
    #[serde(flatten)]
    pub end: CommandResult,
    /// Duration of the hook's command in seconds.
    pub seconds: f64,
}

impl CommandRun {
    /// Name of the hook's phase, followed by the number of the iteration from the second iteration of a stage on, such
    /// as `benchmark 2`.
    #[must_use]
    pub fn phase_name(&self) -> String {
        match self.iteration {
            Some(n) if n > 0 => format!("{} {}", self.phase, n + 1),
            _ => self.phase.clone(),
        }
    }

    /// A sentence that names a failed command, its phase and its end; `None` if the command succeeded.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        (!self.end.succeeded()).then(|| {
            format!(
                "the command `{}` {} {}: it {}; commands.log has what it printed",
                self.command,
                self.when,
                self.phase_name(),
                self.outcome()
            )
        })
    }

    /// End of the command in words, such as `ended with exit status 1`.
    #[must_use]
    pub fn outcome(&self) -> String {
        match &self.end.error {
            Some(error) => format!("could not be run: {error}"),
            None => {
                let words = self.end.words(self.seconds);
                words.unwrap_or_else(|| "ended without a status".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_is_described() {
        let run = |exit_status, signal, timed_out, error: Option<&str>| CommandRun {
            when: HookTime::Before,
            phase: "benchmark".into(),
            iteration: Some(1),
            command: "x".into(),
            end: CommandResult {
                exit_status,
                signal,
                timed_out,
                error: error.map(str::to_owned),
            },
            seconds: 2.04,
        };
        let said = [
            run(Some(0), None, false, None),
            run(Some(3), None, false, None),
            run(None, Some(9), false, None),
            run(None, Some(15), true, None),
            run(None, None, false, Some("no shell")),
        ];
        let outcomes: Vec<String> = said.iter().map(CommandRun::outcome).collect();
        assert_eq!(
            outcomes,
            [
                "ended with exit status 0",
                "ended with exit status 3",
                "was ended by signal 9",
                "was terminated after 2.0 s",
                "could not be run: no shell"
            ]
        );
        let succeeded: Vec<bool> = said.iter().map(|run| run.end.succeeded()).collect();
        assert_eq!(succeeded, [true, false, false, false, false]);
        assert_eq!(said[0].phase_name(), "benchmark 2");
    }

    #[test]
    fn a_command_that_did_not_succeed_is_reported_with_its_phase() {
        let mut run = CommandRun {
            when: HookTime::After,
            phase: "load".into(),
            iteration: None,
            command: "umount /x".into(),
            end: CommandResult {
                exit_status: Some(32),
                ..CommandResult::default()
            },
            seconds: 0.5,
        };
        assert_eq!(
            run.failure().unwrap(),
            "the command `umount /x` after load: it ended with exit status 32; commands.log has what it printed"
        );
        run.end.exit_status = None;
        assert_eq!(run.outcome(), "ended without a status");
        (run.end.exit_status, run.end.timed_out) = (Some(0), true);
        assert!(run.failure().is_some());
        run.end.timed_out = false;
        assert_eq!(run.failure(), None);
        let names = [None, Some(0), Some(1), Some(2)].map(|iteration| {
            run.iteration = iteration;
            run.phase_name()
        });
        assert_eq!(names, ["load", "load", "load 2", "load 3"]);
        assert_eq!(
            format!("{:<7}|{:>6}", HookTime::Before, HookTime::After),
            "before | after"
        );
    }
}
