//! Arguments of load curves and of the search for the load line.

use super::values::{condition, jobs, limit, load, searched, share, some_runs, varied};
use super::{CommonRunArgs, EventArgs, OutputArgs, ResultsRoot};
use clap::{Args, ValueHint};
use plimsoll_plan::Condition;
use plimsoll_results::SearchStart;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `curve`.
#[derive(Debug, Args)]
pub struct CurveArgs {
    /// Built-in name, or path of a workload file; without --vary, of a workload with a business metric, such as vda
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    #[command(flatten)]
    pub how: CommonRunArgs,
    #[command(flatten)]
    pub events: EventArgs,

    /// Loads, in increasing order: 10,20,30, or 10..100/10 for steps of 10, or both; with --vary, the load of all runs
    #[arg(long, value_name = "LOADS", required_unless_present = "vary")]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<String>,
    /// Parameter to vary, instead of the load, with its values: 1,2,4, or 10..100/10 for steps of 10, or 4k..1m/x2 for
    /// doublings. A parameter of the workload, load, rate, or an option of the target's URL; repeatable, for a run at
    /// each combination
    #[arg(long, value_name = "NAME=VALUES", value_parser = varied, help_heading = "Load")]
    pub vary: Vec<(String, String)>,

    #[command(flatten)]
    pub criteria: CriteriaArgs,
    /// Stop after N consecutive invalid points, and after an invalid point whose achieved rate is below the
    /// previous point's; 0 measures every load
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Criteria")]
    #[arg(conflicts_with = "vary")]
    pub stop_after_invalid: u32,

    /// Number of load points measured at the same time, each in a process of its own, with the same results as one
    /// after the other; 0 uses the number of processors. Needs virtual time
    #[arg(long, value_name = "N", default_value = "1", value_parser = jobs)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub jobs: usize,

    #[command(flatten)]
    pub root: ResultsRoot,
    #[command(flatten)]
    pub manner: OutputArgs,
}

/// Arguments of the command that `curve --jobs` starts for each run.
#[derive(Debug, Args)]
pub struct MakeRunArgs {
    /// Directory of the series
    #[arg(value_hint = ValueHint::DirPath)]
    pub series: PathBuf,
    /// Directory of the run, relative to the series'
    pub directory: String,
    /// Keep the results of each rank too
    #[arg(long)]
    pub per_rank: bool,
}

/// Arguments of `resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// Results directory of the series, which is continued with its original settings
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Allow the commands that the results contain (`--event`, `system` statements) to run
    #[arg(long, help_heading = "Behaviour")]
    pub allow_commands: bool,
    /// Number of runs made at the same time, each in a process of its own; 0 uses the number of processors. Needs
    /// virtual time
    #[arg(long, value_name = "N", default_value = "1", value_parser = jobs)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub jobs: usize,
    #[command(flatten)]
    pub manner: OutputArgs,
}

/// Options that replace the workload's criteria of a sustained load; `None` keeps the criterion of the workload.
#[derive(Debug, Args)]
pub struct CriteriaArgs {
    /// Maximum mean response time, instead of the workload's
    #[arg(long, value_name = "TIME", value_parser = limit, conflicts_with = "vary")]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub latency_limit: Option<Duration>,
    /// Minimum fraction of all scheduled operations that must complete, instead of the workload's, such
    /// as 0.95
    #[arg(long, value_name = "FRACTION", value_parser = share, conflicts_with = "vary")]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub min_total_rate: Option<f64>,
    /// Minimum fraction of a process's scheduled operations that each process must complete, such as 0.75
    #[arg(long, value_name = "FRACTION", value_parser = share, conflicts_with = "vary")]
    #[arg(allow_hyphen_values = true, help_heading = "Criteria")]
    pub min_process_rate: Option<f64>,
}

/// Arguments of `find`.
#[derive(Debug, Args)]
pub struct FindArgs {
    /// Built-in name, or path of a workload file; without --vary, of a workload with a business metric, such as vda
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    #[command(flatten)]
    pub how: CommonRunArgs,
    #[command(flatten)]
    pub events: EventArgs,

    /// Highest load to try; the layout is for this load, but files are created only as needed
    #[arg(long, value_name = "LOAD", value_parser = load)]
    #[arg(required_unless_present = "vary", conflicts_with = "vary")]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub max_load: Option<u64>,
    /// First load [default: an eighth of --max-load]
    #[arg(long, value_name = "LOAD", value_parser = load, conflicts_with = "vary")]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub start_load: Option<u64>,
    /// Parameter to vary, instead of the load, with the first value and the highest value to try: nthreads, nthreads=8,
    /// iosize=4k..1m. A parameter of the workload, load, rate, or an option of the target's URL [default: from the
    /// workload's value, without a highest value]
    #[arg(long, value_name = "NAME[=FIRST[..MAX]]", value_parser = searched)]
    #[arg(help_heading = "Search")]
    pub vary: Option<(String, Option<SearchStart>)>,
    /// Condition that no sustained load or value meets, beside the criteria of valid runs, such as 'p99 > 5ms' or
    /// 'write_file:errors > 0'; repeatable
    #[arg(long, value_name = "CONDITION", value_parser = condition, help_heading = "Search")]
    pub until: Vec<Condition>,
    /// Width at which the interval between sustained and not sustained loads ends the search
    /// [default: 2 % of the sustained load]
    #[arg(long, value_name = "LOADS", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub resolution: Option<u64>,
    /// Number of runs at each end of the interval; a load is sustained if more than half of the load's runs
    /// pass
    #[arg(long, value_name = "N", default_value = "3", value_parser = some_runs)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub confirm_runs: u32,
    /// Maximum number of runs of the search, confirmation runs included
    #[arg(long, value_name = "N", default_value = "60", value_parser = some_runs)]
    #[arg(allow_hyphen_values = true, help_heading = "Search")]
    pub max_runs: u32,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub root: ResultsRoot,
    #[command(flatten)]
    pub manner: OutputArgs,
}
