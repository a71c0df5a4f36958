//! Hooks: commands of the user before and after phases of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// When a command around a phase runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookTime {
    /// Before a phase.
    Before,
    /// After it.
    After,
}

impl fmt::Display for HookTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

/// A command before or after a phase that ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandRun {
    /// Before or after the phase.
    pub when: HookTime,
    /// The phase: `populate`, `load`, or the name of a stage of a pattern.
    pub phase: String,
    /// Repetition of a stage, from 0; null for other phases.
    pub iteration: Option<u32>,
    /// The command.
    pub command: String,
    /// Its exit status; null if it was ended by a signal, or could not be started.
    pub exit_status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Its time was up, or the run was interrupted, so that it was ended.
    pub timed_out: bool,
    /// Error that kept it from being run; null if it was run.
    pub error: Option<String>,
    /// Duration in seconds.
    pub seconds: f64,
}

impl CommandRun {
    /// Whether the command exited with status 0 before its time was up.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.exit_status == Some(0) && !self.timed_out
    }

    /// The phase in words, such as `benchmark 2`.
    #[must_use]
    pub fn phase_name(&self) -> String {
        match self.iteration {
            Some(n) if n > 0 => format!("{} {}", self.phase, n + 1),
            _ => self.phase.clone(),
        }
    }

    /// A sentence about a failed command; `None` if the command succeeded.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        (!self.succeeded()).then(|| {
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
        if let Some(error) = &self.error {
            return format!("could not be run: {error}");
        }
        if self.timed_out {
            return format!("was ended after {:.1} s", self.seconds);
        }
        match (self.exit_status, self.signal) {
            (Some(status), _) => format!("ended with exit status {status}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended without a status".into(),
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
            exit_status,
            signal,
            timed_out,
            error: error.map(str::to_owned),
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
                "was ended after 2.0 s",
                "could not be run: no shell"
            ]
        );
        let succeeded: Vec<bool> = said.iter().map(CommandRun::succeeded).collect();
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
            exit_status: Some(32),
            signal: None,
            timed_out: false,
            error: None,
            seconds: 0.5,
        };
        assert_eq!(
            run.failure().unwrap(),
            "the command `umount /x` after load: it ended with exit status 32; commands.log has what it printed"
        );
        run.exit_status = None;
        assert_eq!(run.outcome(), "ended without a status");
        (run.exit_status, run.timed_out) = (Some(0), true);
        assert!(!run.succeeded() && run.failure().is_some());
        run.timed_out = false;
        assert!(run.succeeded() && run.failure().is_none());
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
