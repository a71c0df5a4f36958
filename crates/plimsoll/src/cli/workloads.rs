//! Arguments of commands that take workloads.

use super::values::{
    ColdKind, CpuList, ErrorPolicy, Quit, RequirementWord, cpu_list, interval, limit, load,
    ops_limit, scale, seed, setting, warm_up, window,
};
use super::{EventArgs, Format};
use crate::exit::CommandError;
use clap::{Args, Subcommand, ValueHint};
use plimsoll_engine::ClockKind;
use plimsoll_plan::{Content, OpsLimit, Plan, Warmup};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `run` for the workload, and for the load, events and end of the run.
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    /// Built-in name, or path of a workload file
    #[arg(value_name = "WORKLOAD", value_hint = ValueHint::FilePath)]
    pub workload: OsString,
    #[command(flatten)]
    pub how: CommonRunArgs,
    #[command(flatten)]
    pub events: EventArgs,

    #[arg(long, help = LOAD_HELP, value_name = "N", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<u64>,
    #[command(flatten)]
    pub end: EndArgs,
}

/// Options that determine the end of a run, besides its time.
#[derive(Debug, Clone, Args)]
pub struct EndArgs {
    /// End each run after N operations in total, or N per worker
    #[arg(long, value_name = "N[/worker]", value_parser = ops_limit)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub ops: Option<OpsLimit>,
    /// Quit mode: what ends a run, instead of the workload's quit mode
    #[arg(long, value_name = "MODE", value_enum, help_heading = "Load")]
    pub quit: Option<Quit>,
}

/// Help on `--dir`. `ab` shares the help on `--dir`, `--load`, `--set`, `--content` and `--target`, whose values it takes
/// for two variants.
pub(super) const DIR_HELP: &str =
    "Directory for the files; every path of the workload is re-rooted below it";

/// Help on `--load` of a single load.
pub(super) const LOAD_HELP: &str =
    "Load in business metrics, for workloads with business metrics, such as vda [default: 1]";

/// Help on `--set`.
pub(super) const SET_HELP: &str = "Change a parameter of the workload; repeatable";

/// Help on `--content`.
pub(super) const CONTENT_HELP: &str = "\
Content of writes, instead of the workload's content: random, zero, or comma-separated parts: compressible:RATIO \
(or PERCENT%), duplicate:PERCENT, block:SIZE, groups:N [default: random]";

/// Help on targets, with the URL form of each target.
pub(super) fn target_help() -> String {
    let forms = plimsoll_target::registry::SCHEMES.iter().map(|s| s.form);
    let forms: Vec<&str> = forms.collect();
    format!(
        "Target of the load: {}; SYSTEM is a name that `plimsoll systems list` prints, or the path of a \
         system file",
        forms.join(", ")
    )
}

/// Options that determine a workload's files: directory, target, scale, parameters, seed and content.
#[derive(Debug, Args)]
pub struct FilesArgs {
    #[arg(long, help = DIR_HELP, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(allow_hyphen_values = true, help_heading = "Target")]
    pub dir: Option<PathBuf>,
    #[arg(
        long,
        help = target_help(),
        value_name = "URL",
        default_value = plimsoll_target::DEFAULT_TARGET,
        help_heading = "Target"
    )]
    pub target: String,

    #[command(flatten)]
    pub data: DataArgs,
    #[arg(long, help = SET_HELP, value_name = "NAME=VALUE", value_parser = setting, help_heading = "Load")]
    pub set: Vec<(String, String)>,

    #[arg(long, help = CONTENT_HELP, value_name = "KIND", help_heading = "Behaviour")]
    pub content: Option<Content>,
}

/// Options for the amount and the random choices of a workload's data.
#[derive(Debug, Clone, Args)]
pub struct DataArgs {
    /// Fraction of the data and rates of a workload with business metrics; the result is marked as not
    /// comparable [default: 1]
    #[arg(long, value_name = "FRACTION", value_parser = scale)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub scale: Option<f64>,
    /// Seed of all random choices [default: 1]
    #[arg(long, value_name = "N", value_parser = seed)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub seed: Option<u64>,
}

/// Options of every command that runs workloads. `F`: the options that determine the files, which `ab` has for two
/// variants.
#[derive(Debug, Args)]
pub struct CommonRunArgs<F: Args = FilesArgs> {
    #[command(flatten)]
    pub files: F,
    /// Keep the workload's files after the run
    #[arg(long, help_heading = "Target")]
    pub keep: bool,

    /// Length of the measured window, such as 500ms, 10s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = window)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub time: Option<Duration>,
    /// Warm-up time, added to the warm-up of a Filebench workload, or replacing the warm-up of an operation mix; auto:
    /// until the rate is steady by a rule, mser (default), snia=TIME, slope=PERCENT/TIME or deviation=PERCENT/TIME
    #[arg(long, value_name = "TIME|auto[:RULE]", value_parser = warm_up)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub warmup: Option<Warmup>,
    /// Maximum length of the warm-up with --warmup auto [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = limit)]
    #[arg(allow_hyphen_values = true, requires = "warmup", help_heading = "Load")]
    pub max_warmup: Option<Duration>,
    /// End the measured window before its time when the 95 % confidence interval of the main figure is within ±PERCENT,
    /// such as 2%; the main figure is the throughput, or p99 of a load with a schedule
    #[arg(long, value_name = "PERCENT", value_parser = plimsoll_plan::parse_percent)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub precision: Option<f64>,
    /// Effect of an unexpected error: stop the run, or count the error and make the result
    /// invalid [default: stop; for load points: count]
    #[arg(long, value_name = "POLICY", value_enum, help_heading = "Behaviour")]
    pub on_error: Option<ErrorPolicy>,
    /// Verify data: write contents that follow from file and offset, check every read, and read all files again after
    /// the run; a result with lost acknowledged data is invalid
    #[arg(long, conflicts_with = "content", help_heading = "Behaviour")]
    pub verify: bool,
    /// Requirements that a valid result must meet
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    #[arg(help_heading = "Criteria")]
    pub require: Vec<RequirementWord>,
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

    /// Length of an interval of the time series in the results, at least 10ms; the latencies shown
    /// during the run are the latencies of the last complete interval [default: 1s, or less for 40 intervals in
    /// the window, but at least 100ms]
    #[arg(long, value_name = "TIME", value_parser = interval)]
    #[arg(allow_hyphen_values = true, help_heading = "Engine")]
    pub interval: Option<Duration>,

    /// Print the resolved run without executing the run; exits with 2 and the reasons if the run would be refused
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
    #[arg(long, help = LOAD_HELP, value_name = "N", value_parser = load)]
    #[arg(allow_hyphen_values = true, help_heading = "Load")]
    pub load: Option<u64>,
    /// Print the planned files without creating the files; exits with 2 and the reasons if `populate` would refuse
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Print only the created files and errors
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
    /// Custom workload file of netmist
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// New file for the operation mix, instead of standard output
    #[arg(allow_hyphen_values = true, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

impl<F: Args> CommonRunArgs<F> {
    /// The same options with other files.
    pub fn with_files<G: Args>(&self, files: G) -> CommonRunArgs<G> {
        CommonRunArgs {
            files,
            keep: self.keep,
            time: self.time,
            warmup: self.warmup,
            max_warmup: self.max_warmup,
            precision: self.precision,
            on_error: self.on_error,
            verify: self.verify,
            drop_caches: self.drop_caches,
            cpus: self.cpus.clone(),
            allow_commands: self.allow_commands,
            interval: self.interval,
            dry_run: self.dry_run,
            require: self.require.clone(),
        }
    }
}

impl<F: Args> CommonRunArgs<F> {
    /// Length of the intervals of the runs of `plans`: by `--interval`, or else the shortest of the Plans' defaults.
    pub fn interval<'p>(&self, plans: impl IntoIterator<Item = &'p Plan>) -> Duration {
        let shortest = plans.into_iter().map(Plan::default_interval).min();
        self.interval.or(shortest).unwrap_or(Duration::from_secs(1))
    }

    /// Warm-up before each measured window.
    ///
    /// # Errors
    /// If the warm-up has a fixed length and a maximum.
    pub fn warm_up(&self) -> Result<Option<Warmup>, CommandError> {
        match (self.warmup, self.max_warmup) {
            (Some(Warmup::Steady { rule, .. }), Some(at_most)) => {
                Ok(Some(Warmup::Steady { rule, at_most }))
            }
            (Some(Warmup::Fixed(_)), Some(_)) => Err(CommandError::usage(
                "--max-warmup limits a warm-up that a rule ends: use --warmup auto",
            )),
            (warmup, _) => Ok(warmup),
        }
    }
}

impl CommonRunArgs {
    /// Clock of the run, real or virtual, which follows from the URL of the target.
    pub fn clock(&self) -> ClockKind {
        plimsoll_target::clock(&self.files.target)
    }
}
