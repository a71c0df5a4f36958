//! Arguments of commands that take workloads.

use super::values::{
    ColdKind, CpuList, ErrorPolicy, Quit, cpu_list, duration, interval, lanes, load, ops_limit,
    rate, scale, seed, setting, window,
};
use super::{EventArgs, Format, IoArgs};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use plimsoll_engine::ClockKind;
use plimsoll_plan::{Content, OpsLimit};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The workload of `run`, and how it runs.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    #[command(flatten)]
    pub how: CommonRunArgs,
    #[command(flatten)]
    pub events: EventArgs,

    /// Load in business metrics, for workloads that have them, such as vda [default: 1]
    #[arg(long, value_name = "N", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<u64>,
    /// End after N operations in total, or N per worker
    #[arg(long, value_name = "N[/worker]", value_parser = ops_limit)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub ops: Option<OpsLimit>,
    /// Quit mode: what ends the run, instead of the workload's
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Load")]
    pub quit: Option<Quit>,
    /// Event rate for the limiters in events per second, instead of the workload's; 0 removes the
    /// limit
    #[arg(long, value_name = "EVENTS", value_parser = rate)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub rate: Option<f64>,
}

/// Help on targets, with the URL form of each target.
fn target_help() -> String {
    let forms = plimsoll_target::registry::SCHEMES.iter().map(|s| s.form);
    let forms: Vec<&str> = forms.collect();
    format!(
        "Target of the load: {}; SYSTEM is a name that `plimsoll systems list` prints, or the path of a \
         system file",
        forms.join(", ")
    )
}

/// Options that determine the files of a workload.
#[derive(Debug, Args)]
pub struct FilesArgs {
    /// Directory for the files; every path of the workload is re-rooted below it
    #[arg(allow_hyphen_values = true, long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub dir: Option<PathBuf>,
    #[arg(
        long,
        help = target_help(),
        value_name = "URL",
        default_value = plimsoll_target::DEFAULT_TARGET,
        help_heading = "Target"
    )]
    pub target: String,

    /// Fraction of the data and rates of a workload with business metrics; the result is marked as not
    /// comparable [default: 1]
    #[arg(long, value_name = "FRACTION", value_parser = scale)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub scale: Option<f64>,
    /// Change a parameter of the workload; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,
    /// Seed of all random choices [default: 1]
    #[arg(long, value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub seed: Option<u64>,

    /// Content of writes, instead of the workload's: random, zero, or comma-separated
    /// parts: compressible:RATIO (or PERCENT%), duplicate:PERCENT, block:SIZE, groups:N
    /// [default: random]
    #[arg(long, value_name = "KIND", help_heading = "Behaviour")]
    pub content: Option<Content>,
}

/// Options of every command that runs workloads.
#[derive(Debug, Args)]
pub struct CommonRunArgs {
    #[command(flatten)]
    pub files: FilesArgs,
    /// Keep the files after the run
    #[arg(long, help_heading = "Target")]
    pub keep: bool,

    /// Length of the measured window, such as 500ms, 10s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = window)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub time: Option<Duration>,
    /// Warm-up: added to a Filebench workload's own, or replacing that of an operation mix
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub warmup: Option<Duration>,
    /// What an unexpected error does: stop the run, or count the error and make the result
    /// invalid [default: stop; for load points: count]
    #[arg(long, value_name = "POLICY", value_enum, help_heading = "Behaviour")]
    pub on_error: Option<ErrorPolicy>,
    /// Write contents that follow from file and offset, check every read, and read all files again after
    /// the run: a result that lost anything acknowledged is invalid
    #[arg(long, conflicts_with = "content", help_heading = "Behaviour")]
    pub verify: bool,
    /// Drop cached data before the run: of the files, or of the whole system (needs root)
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "files", help_heading = "Behaviour")]
    pub drop_caches: Option<ColdKind>,
    /// Processors to which workers are bound round-robin, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = cpu_list, help_heading = "Behaviour")]
    pub cpus: Option<CpuList>,
    /// Allow the `system` statements of the workload to run commands
    #[arg(long, help_heading = "Behaviour")]
    pub allow_commands: bool,

    /// Real time, or virtual time that jumps to the next event (for targets that support it)
    #[arg(
        long,
        value_name = "KIND",
        value_enum,
        default_value_t,
        help_heading = "Engine"
    )]
    pub clock: ClockArg,
    #[command(flatten)]
    pub io: IoArgs,
    /// Threads that drive the workers, for targets that do not need one per worker
    #[arg(long, value_name = "N", value_parser = lanes)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub lanes: Option<u32>,
    /// Length of an interval of the time series in the results, at least 10ms; the latencies shown
    /// during the run are those of the last complete interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub interval: Duration,

    /// Print what would be run, without running it; exits with 2 and the reasons if it would be refused
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
}

/// Arguments of `populate`.
#[derive(Debug, Args)]
pub struct PopulateArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    #[command(flatten)]
    pub files: FilesArgs,
    /// Load in business metrics, for workloads that have them, such as vda [default: 1]
    #[arg(long, value_name = "N", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<u64>,
    /// Print what would be created, without creating it; exits with 2 and the reasons if it would be refused
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Print nothing but what was created, and errors
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// Subcommands of `workloads`.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// List the built-in workloads
    #[command(after_help = "\
Examples:
  plimsoll workloads list
  plimsoll workloads list --format json")]
    List(ListArgs),
    /// Show the parameters and the source of a workload
    #[command(after_help = "\
Examples:
  plimsoll workloads show varmail
  plimsoll workloads show ./my.f
  plimsoll workloads show varmail --print-source > my.f        a copy to change")]
    Show(ShowArgs),
    /// Convert a custom workload file of netmist to an operation mix
    #[command(after_help = "\
Examples:
  plimsoll workloads convert export.txt > mine.toml
  plimsoll workloads convert export.txt --output mine.toml
  plimsoll run export.txt                    runs the file without converting it")]
    Convert(ConvertArgs),
}

/// Arguments of `workloads list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Arguments of `workloads show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    /// Print only the workload's source
    #[arg(long)]
    pub print_source: bool,
}

/// Arguments of `workloads convert`.
#[derive(Debug, Args)]
pub struct ConvertArgs {
    /// The custom workload file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Output file instead of standard output; it must not exist
    #[arg(allow_hyphen_values = true, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Values of `--clock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ClockArg {
    /// Real time
    #[default]
    Real,
    /// Time that jumps to the next event
    Virtual,
}

impl CommonRunArgs {
    /// The clock of the run.
    pub fn clock(&self) -> ClockKind {
        self.clock.of(&self.files.target)
    }
}

impl ClockArg {
    /// Clock for runs on a target: virtual if the target exists only in virtual time.
    pub fn of(self, target: &str) -> ClockKind {
        match self {
            Self::Real if !plimsoll_target::is_virtual(target) => ClockKind::Real,
            _ => ClockKind::Virtual,
        }
    }
}
