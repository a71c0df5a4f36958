//! Arguments on simulated systems.

use super::{Command, Format};
use crate::exit::CommandError;
use clap::{Args, Subcommand};
use plimsoll_sim::SystemEvent;

/// Events of a run.
#[derive(Debug, Args)]
pub struct EventArgs {
    /// What happens to a simulated system at a time after the beginning of the run, warm-up included:
    /// 'TIME down WHAT', 'TIME up WHAT' or 'TIME slow WHAT FACTOR', such as '30s down edge.3';
    /// repeatable
    #[arg(long, value_name = "EVENT", help_heading = "Target")]
    pub event: Vec<SystemEvent>,
}

impl EventArgs {
    /// Makes the events part of a target's URL, which is what results keep and ranks are given.
    ///
    /// # Errors
    /// If there are events and the target is not a simulated system.
    pub fn add_to(&self, target: &mut String) -> Result<(), CommandError> {
        let scheme = plimsoll_target::scheme_of(target);
        let is_simulated = scheme.is_some_and(|s| s.is_virtual);
        if let (Some(event), false) = (self.event.first(), is_simulated) {
            return Err(CommandError::usage(format!(
                "--event '{event}' needs a simulated system: the target is {target}, and not \
                 sim:SYSTEM"
            )));
        }
        *target = plimsoll_target::with_events(target, &self.event);
        Ok(())
    }
}

/// Arguments of `systems`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct SystemsArgs {
    /// What to do with one of them
    #[command(subcommand)]
    pub command: Option<SystemsCommand>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Subcommands of `systems`.
#[derive(Debug, Subcommand)]
pub enum SystemsCommand {
    /// Print a system as TOML, with the source of every figure
    #[command(after_help = "\
Examples:
  plimsoll systems show edge-32
  plimsoll systems show edge-32 > mine.toml       a copy to change")]
    Show {
        /// Built-in name, or path of a system file
        #[arg(value_name = "SYSTEM")]
        system: String,
    },
}

impl Command {
    /// Makes events part of the target that they happen to.
    ///
    /// # Errors
    /// If there are events and the target is not a simulated system.
    pub fn add_events(&mut self) -> Result<(), CommandError> {
        let (events, how) = match self {
            Self::Run(args) => (&args.workload.events, &mut args.workload.how),
            Self::Plan(args) => (&args.workload.events, &mut args.workload.how),
            Self::Curve(args) => (&args.events, &mut args.how),
            Self::Find(args) => (&args.events, &mut args.how),
            _ => return Ok(()),
        };
        events.add_to(&mut how.target)
    }
}
