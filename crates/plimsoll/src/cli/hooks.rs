//! Arguments of commands before and after the phases of runs.

use super::values::duration;
use crate::exit::Stopped;
use clap::Args;
use plimsoll_results::Hooks;
use std::time::Duration;

/// Commands of the user around the phases of each run.
#[derive(Debug, Clone, Args)]
pub struct HookArgs {
    /// Shell command before each phase of a run (files are made, the load, a phase of md), which is
    /// in its environment; if it fails, so does the run; needs --allow-system
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    pub before: Option<String>,
    /// Shell command after each phase; if it fails, that is noted; needs --allow-system
    #[arg(long, value_name = "COMMAND", help_heading = "Commands")]
    pub after: Option<String>,
    /// Longest that such a command may take
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Commands")]
    pub command_timeout: Duration,
}

impl HookArgs {
    /// The commands, if there are any.
    ///
    /// # Errors
    /// If they are not `allowed`, or empty.
    pub fn hooks(&self, allowed: bool) -> Result<Option<Hooks>, Stopped> {
        for (option, command) in [("--before", &self.before), ("--after", &self.after)] {
            match command {
                Some(command) if command.trim().is_empty() => {
                    return Err(Stopped::usage(format!("{option} needs a command")));
                }
                Some(_) if !allowed => {
                    return Err(Stopped::usage(format!(
                        "{option} runs a command of yours: allow it with --allow-system"
                    )));
                }
                _ => {}
            }
        }
        let any = self.before.is_some() || self.after.is_some();
        Ok(any.then(|| Hooks {
            before: self.before.clone(),
            after: self.after.clone(),
            timeout_s: self.command_timeout.as_secs_f64(),
        }))
    }
}
