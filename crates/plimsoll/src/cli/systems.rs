//! Arguments on simulated systems.

use super::values::{duration, jobs, scale, seed, some_runs, window};
use super::{Command, Format};
use crate::exit::CommandError;
use clap::{Args, Subcommand, ValueHint};
use plimsoll_sim::SystemEvent;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

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
        let takes_events = plimsoll_target::takes_events(target);
        if let (Some(event), false) = (self.event.first(), takes_events) {
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

/// Arguments of `fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// The system: a built-in name, or path of a system file; figures with `free` bounds are fitted
    #[arg(value_name = "SYSTEM")]
    pub system: String,
    /// The curve to fit to: directory or curve.json of a load curve, or a published disclosure report
    #[arg(long, value_name = "CURVE", value_hint = ValueHint::AnyPath, allow_hyphen_values = true)]
    pub to: PathBuf,
    /// New file for the system with the fitted figures; the trials are kept in FILE.trials.jsonl, and
    /// are not made again
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath, allow_hyphen_values = true)]
    pub output: PathBuf,
    /// Points of the curve, counted from 1, that the system is not fitted to, such as 3,6,9
    #[arg(long, value_name = "POINTS", value_delimiter = ',')]
    pub hold_out: Vec<usize>,
    /// Maximum number of trials, without those that determine the sensitivity
    #[arg(long, value_name = "N", default_value = "200", value_parser = some_runs)]
    pub max_trials: u32,

    /// Workload, instead of the curve's: built-in name, or path of a workload file
    #[arg(long, value_name = "WORKLOAD", value_hint = ValueHint::FilePath, help_heading = "Load")]
    pub workload: Option<OsString>,
    /// Fraction of the data and rates, for a published curve or with --workload [default: 1]
    #[arg(long, value_name = "FRACTION", value_parser = scale)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub scale: Option<f64>,
    /// Length of the measured window, instead of the workload's
    #[arg(long, value_name = "TIME", value_parser = window)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub time: Option<Duration>,
    /// Warm-up, instead of the workload's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub warmup: Option<Duration>,
    /// Seed of all random choices, the same in every trial [default: the curve's, or 1]
    #[arg(long, value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub seed: Option<u64>,

    /// Number of load points that are run at the same time; 0: as many as there are processors
    #[arg(long, value_name = "N", default_value = "0", value_parser = jobs)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub jobs: usize,

    /// Output format
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but the report and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
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
