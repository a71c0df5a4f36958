//! Arguments about simulated systems.

use super::examples::{FIT_EXAMPLES, HOSTS_EXAMPLES, NFS_EXAMPLES, WAN_EXAMPLES};
use super::values::{duration, jobs, scale, seed, some_runs, window};
use super::{Format, HostsCheckArgs, NfsArgs, WanArgs};
use clap::{Args, Subcommand, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `systems list`.
#[derive(Debug, Args)]
pub struct SystemsListArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `systems fit`.
#[derive(Debug, Args)]
pub struct FitArgs {
    /// The system: a built-in name, or path of a system file; figures with `free` bounds are fitted
    #[arg(value_name = "SYSTEM")]
    pub system: String,
    /// The curve to fit to: directory or series.json of a load curve, or a published disclosure report
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
    /// List the simulated systems
    #[command(after_help = "\
Examples:
  plimsoll systems list
  plimsoll systems list --format json")]
    List(SystemsListArgs),
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
    /// Fit the free figures of a simulated system to a measured or published load curve
    #[command(after_help = FIT_EXAMPLES)]
    Fit(Box<FitArgs>),
    /// Emulate a WAN link between a client and a server: delay, jitter, bandwidth and losses
    #[command(after_help = WAN_EXAMPLES)]
    Wan(WanArgs),
    /// Serve files in memory over NFSv3, for trying out the nfs3 target
    #[command(after_help = NFS_EXAMPLES)]
    Nfs(NfsArgs),
    /// Check that hosts can be reached, have this version, and see the same work directory
    #[command(after_help = HOSTS_EXAMPLES)]
    Hosts(HostsCheckArgs),
}
