//! Arguments of load curves and of the search for the load line.

use super::values::{directory, limit, load, share, some_runs};
use super::{CommonRunArgs, OutputArgs};
use clap::{Args, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `curve`.
#[derive(Debug, Args)]
pub struct CurveArgs {
    /// Built-in name, or path of a workload file; one with a business metric, such as vda
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "resume")]
    pub workload: Option<OsString>,
    /// What every command that runs workloads takes.
    #[command(flatten)]
    pub how: CommonRunArgs,

    /// Loads, in increasing order: 10,20,30, or 10..100/10 for steps of 10, or both
    #[arg(long, value_name = "LOADS", conflicts_with_all = ["points", "max"])]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<String>,
    /// So many loads, evenly spaced up to that of --max
    #[arg(long, value_name = "N", requires = "max", help_heading = "Load")]
    pub points: Option<u64>,
    /// The greatest of the --points loads
    #[arg(long, value_name = "LOAD", requires = "points", help_heading = "Load")]
    pub max: Option<u64>,

    /// When a load counts as carried.
    #[command(flatten)]
    pub criteria: CriteriaArgs,
    /// End after N invalid points in a row; 0 never does
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Criteria")]
    pub after_invalid: u32,
    /// Go on when an invalid point has achieved less than the one before it
    #[arg(long, help_heading = "Criteria")]
    pub past_peak: bool,

    /// Program that is called with workload, load, and INIT, WARM, RUN or END at each point; needs
    /// --allow-system
    #[arg(allow_hyphen_values = true, long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    #[arg(help_heading = "Behaviour")]
    pub monitor: Option<PathBuf>,
    /// Go on with the curve in this directory, as it was begun
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Behaviour")]
    #[arg(conflicts_with_all = ["workload", "load", "points", "max", "latency_limit", "rate_share",
        "process_share", "after_invalid", "past_peak", "monitor", "results", "dir", "target", "keep",
        "scale", "time", "warmup", "set", "seed", "on_error", "content", "cold", "cpus",
        "allow_system", "clock", "lanes", "interval", "before", "after", "command_timeout"])]
    pub resume: Option<PathBuf>,

    /// Directory that the results directory is made in
    #[arg(
        allow_hyphen_values = true, value_parser = directory(),
        long,
        value_name = "DIR",
        default_value = "plimsoll-results"
    )]
    #[arg(value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
    /// What is printed, and by how many processes it is made.
    #[command(flatten)]
    pub manner: OutputArgs,
}

/// When a load counts as carried, instead of what the workload says.
#[derive(Debug, Args)]
pub struct CriteriaArgs {
    /// Greatest mean response time, instead of the workload's
    #[arg(long, value_name = "TIME", value_parser = limit)]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub latency_limit: Option<Duration>,
    /// Least share of all operations that must be done, instead of the workload's, such as 0.95
    #[arg(long, value_name = "SHARE", value_parser = share)]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub rate_share: Option<f64>,
    /// Least share of its operations that each process must do, such as 0.75
    #[arg(long, value_name = "SHARE", value_parser = share)]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub process_share: Option<f64>,
}

/// Arguments of `find`.
#[derive(Debug, Args)]
pub struct FindArgs {
    /// Built-in name, or path of a workload file; one with a business metric, such as vda
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "resume")]
    pub workload: Option<OsString>,
    /// What every command that runs workloads takes.
    #[command(flatten)]
    pub how: CommonRunArgs,

    /// Greatest load that is tried; the files are laid out for it and made as far as they are
    /// needed
    #[arg(long, value_name = "LOAD", value_parser = load)]
    #[arg(required_unless_present = "resume")]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub max: Option<u64>,
    /// First load [default: an eighth of --max]
    #[arg(long, value_name = "LOAD", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub start: Option<u64>,
    /// Widest interval between the load that is carried and the one that is not [default: 2 % of
    /// the load that is carried]
    #[arg(long, value_name = "LOADS", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub resolution: Option<u64>,
    /// Runs of each end of the interval; a load is carried if it holds in more than half of its
    /// runs
    #[arg(long, value_name = "N", default_value = "3", value_parser = some_runs)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub confirm: u32,
    /// Most runs in all
    #[arg(long, value_name = "N", default_value = "60", value_parser = some_runs)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub runs: u32,

    /// When a load counts as carried.
    #[command(flatten)]
    pub criteria: CriteriaArgs,

    /// Go on with the search in this directory, as it was begun
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Behaviour")]
    #[arg(conflicts_with_all = ["workload", "max", "start", "resolution", "confirm", "runs",
        "latency_limit", "rate_share", "process_share", "results", "dir", "target", "keep", "scale",
        "time", "warmup", "set", "seed", "on_error", "content", "cold", "cpus", "allow_system", "clock",
        "lanes", "interval", "before", "after", "command_timeout"])]
    pub resume: Option<PathBuf>,

    /// Directory that the results directory is made in
    #[arg(
        allow_hyphen_values = true, value_parser = directory(),
        long,
        value_name = "DIR",
        default_value = "plimsoll-results"
    )]
    #[arg(value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: PathBuf,
    /// What is printed, and by how many processes it is made.
    #[command(flatten)]
    pub manner: OutputArgs,
}
