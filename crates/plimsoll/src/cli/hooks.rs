//! Arguments of commands before and after the phases of runs.

use super::values::duration;
use crate::exit::CommandError;
use clap::Args;
use plimsoll_results::Hooks;
use std::time::Duration;

/// Default maximum duration of a command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Commands of the user around the phases of each run.
#[derive(Debug, Clone, Args)]
pub struct HookArgs {
    /// Shell command before each phase of a run (file creation, load, a phase of md); its
    /// environment variables name the phase; if it fails, the run fails; needs --allow-commands
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    pub before: Option<String>,
    /// Shell command after each phase; a failure is recorded as a note; needs --allow-commands
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    pub after: Option<String>,
    /// Maximum duration of a --before or --after command [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Commands")]
    pub command_timeout: Option<Duration>,
}

impl HookArgs {
    /// The commands, if there are any.
    ///
    /// # Errors
    /// If they are not `allowed`, or empty.
    pub fn hooks(&self, allowed: bool) -> Result<Option<Hooks>, CommandError> {
        for (option, command) in [("--before", &self.before), ("--after", &self.after)] {
            match command {
                Some(command) if command.trim().is_empty() => {
                    return Err(CommandError::usage(format!("{option} needs a command")));
                }
                Some(_) if !allowed => {
                    return Err(CommandError::usage(format!(
                        "{option} runs a shell command: allow it with --allow-commands"
                    )));
                }
                _ => {}
            }
        }
        let any = self.before.is_some() || self.after.is_some();
        if self.command_timeout.is_some() && !any {
            return Err(CommandError::usage(
                "--command-timeout needs --before or --after",
            ));
        }
        let timeout = self.command_timeout.unwrap_or(COMMAND_TIMEOUT);
        Ok(any.then(|| Hooks {
            before: self.before.clone(),
            after: self.after.clone(),
            timeout_s: timeout.as_secs_f64(),
        }))
    }
}
