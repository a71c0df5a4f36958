//! The arguments of `plimsoll md`.

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use plimsoll_plan::{Content, parse_duration, parse_size};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The patterns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PatternName {
    /// Sets of small objects, each a queue: one rank reads and removes the oldest, another adds
    #[default]
    MdWorkbench,
    /// mdtest as IO500's easy runs it: empty files, a directory for each rank
    MdtestEasy,
    /// mdtest as IO500's hard runs it: files of 3901 bytes in one directory
    MdtestHard,
    /// IOR as IO500's easy runs it: large transfers, a file for each rank
    IorEasy,
    /// IOR as IO500's hard runs it: transfers of 47008 bytes, strided over one file
    IorHard,
}

impl PatternName {
    /// The pattern's name on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MdWorkbench => "md-workbench",
            Self::MdtestEasy => "mdtest-easy",
            Self::MdtestHard => "mdtest-hard",
            Self::IorEasy => "ior-easy",
            Self::IorHard => "ior-hard",
        }
    }
}

/// Values of `--drop-caches`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColdKind {
    /// The files of the pattern
    Files,
    /// Everything the machine caches; needs root
    System,
}

/// Arguments of `plimsoll md`: MD-Workbench's own, and those of the other patterns.
///
/// Every option also takes its value as MD-Workbench writes it, `-P=10` and
/// `--precreate-per-set=10`.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct Arguments {
    /// Pattern of operations
    #[arg(long, value_name = "NAME", value_enum, default_value_t)]
    #[arg(help_heading = "Pattern")]
    pub pattern: PatternName,
    /// Distance in ranks between the one that writes an object and the one that reads it
    /// [default: 1]
    #[arg(short = 'O', long, value_name = "RANKS", value_parser = distance)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub offset: Option<i64>,
    /// Rounds of an iteration of the benchmark phase, each over every data set [default: 1000]
    #[arg(short = 'I', long, value_name = "N", value_parser = whole)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub obj_per_proc: Option<u64>,
    /// Objects created in each data set beforehand [default: 3000]
    #[arg(short = 'P', long, value_name = "N", value_parser = whole)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub precreate_per_set: Option<u64>,
    /// Data sets (directories) of each rank [default: 10]
    #[arg(short = 'D', long, value_name = "N", value_parser = small)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub data_sets: Option<u32>,
    /// Size of an object: bytes, or with k, m or g [default: 3901]
    #[arg(short = 'S', long, value_name = "SIZE", value_parser = parse_size)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub object_size: Option<u64>,
    /// Iterations of the benchmark phase [default: 3]
    #[arg(short = 'R', long, value_name = "N", value_parser = small)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub iterations: Option<u32>,
    /// Waiting time after each operation, as a multiple of its duration [default: 0]
    #[arg(short = 't', long, value_name = "FACTOR", value_parser = factor)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub waiting_time: Option<f64>,
    /// Run each iteration without waiting, then with waiting times from 0.0625 to 4
    #[arg(short = 'T', long, help_heading = "Pattern")]
    pub adaptive_waiting: bool,
    /// In the benchmark phase, only stat and read objects
    #[arg(long, help_heading = "Pattern")]
    pub read_only: bool,
    /// Number of the first object, instead of the one in the run-info file or 0
    #[arg(long, value_name = "N", value_parser = whole)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub start_item: Option<u64>,
    /// Verify the content of objects that are read
    #[arg(short = 'X', long, help_heading = "Pattern")]
    pub verify_read: bool,
    /// mdtest: files of each rank [default: 1000000]
    #[arg(short = 'n', long, value_name = "N", value_parser = whole)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub files: Option<u64>,
    /// IOR: transfers of each rank [default: 4960000 easy, 10000000 hard]
    #[arg(long, value_name = "N", value_parser = whole)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub transfers: Option<u64>,
    /// ior-easy: size of a transfer [default: 2m]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub transfer_size: Option<u64>,
    /// Content of writes, instead of the number of the rank: random, zero, or comma-separated
    /// parts: compressible:RATIO (or PERCENT%), duplicate:PERCENT, block:SIZE, groups:N
    /// [default of IOR: random]
    #[arg(long, value_name = "KIND", help_heading = "Pattern")]
    pub content: Option<Content>,
    /// Seed of the contents
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole)]
    #[arg(allow_hyphen_values = true, help_heading = "Pattern")]
    pub seed: u64,

    /// Run the precreation phase; naming phases runs only those
    #[arg(short = '1', long, help_heading = "Phases")]
    pub run_precreate: bool,
    /// Run the benchmark phase
    #[arg(short = '2', long, help_heading = "Phases")]
    pub run_benchmark: bool,
    /// Run the cleanup phase
    #[arg(short = '3', long, help_heading = "Phases")]
    pub run_cleanup: bool,
    /// Stonewall: time limit of an iteration of the benchmark phase (mdtest, IOR: the writing phase), in
    /// seconds; 0 for none [default: 0; mdtest, IOR: 300]
    #[arg(short = 'w', long, value_name = "TIME", value_parser = parse_duration)]
    #[arg(allow_hyphen_values = true, help_heading = "Phases")]
    pub stonewall_timer: Option<Duration>,
    /// After the stonewall, let every rank do as many rounds as the fastest
    #[arg(short = 'W', long, help_heading = "Phases")]
    pub stonewall_wear_out: bool,
    /// File that stores the position between runs of single phases [default: mdtest.status]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Phases")]
    pub run_info_file: Option<PathBuf>,
    /// Iterations of the benchmark phase before those that are measured [default: 0]
    #[arg(long, value_name = "N", value_parser = small)]
    #[arg(allow_hyphen_values = true, help_heading = "Phases")]
    pub warmup: Option<u32>,
    /// Before each phase, drop from the page cache what the ranks wrote and read, or everything the
    /// machine caches (system; needs root)
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "files", help_heading = "Phases")]
    pub drop_caches: Option<ColdKind>,
    /// Bypass the page cache (O_DIRECT); sizes must be multiples of the disk's block size
    #[arg(long, help_heading = "Phases")]
    pub direct: bool,
    /// Continue when an object cannot be created in the precreation phase
    #[arg(long, help_heading = "Phases")]
    pub ignore_precreate_errors: bool,

    /// Parent of the root directory [default: .]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Target")]
    pub dir: Option<PathBuf>,
    /// Directory that holds everything; `-- -D=DIR` is equivalent [default: out, or the
    /// pattern's name]
    #[arg(short = 'o', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = "Target")]
    pub root_dir: Option<PathBuf>,
    /// What is measured: posix, dummy, a target's URL, or list
    #[arg(short = 'i', long, visible_short_alias = 'a', visible_alias = "api")]
    #[arg(value_name = "NAME", help_heading = "Target")]
    pub interface: Option<String>,
    /// Target URL, as in `run`
    #[arg(
        long,
        value_name = "URL",
        conflicts_with = "interface",
        help_heading = "Target"
    )]
    pub target: Option<String>,
    /// Allocate memory before the run until this many MiB are free, and keep it allocated; 0 for none
    #[arg(short = 'm', long, value_name = "MIB", value_parser = mebibytes)]
    #[arg(allow_hyphen_values = true, help_heading = "Target")]
    pub lim_free_mem: Option<u64>,
    /// Allocate memory between the phases until this many MiB are free, then release it; 0 for none
    #[arg(short = 'M', long, value_name = "MIB", value_parser = mebibytes)]
    #[arg(allow_hyphen_values = true, help_heading = "Target")]
    pub lim_free_mem_phase: Option<u64>,

    /// Write the time of every operation of rank 0 to files with this prefix
    #[arg(short = 'L', long, value_name = "PREFIX", help_heading = "Output")]
    pub latency: Option<OsString>,
    /// Write the times of all ranks
    #[arg(long, requires = "latency", help_heading = "Output")]
    pub latency_all: bool,
    /// Print only the line of each phase
    #[arg(short = 'q', long, help_heading = "Output")]
    pub quiet: bool,
    /// List the operations that failed, with their errors
    #[arg(short = 'v', long, action = ArgAction::Count, help_heading = "Output")]
    pub verbose: u8,
    /// Print counts separated by tabs instead of the line of each phase
    #[arg(long, help_heading = "Output")]
    pub print_detailed_stats: bool,
    /// Print a line for each rank as well
    #[arg(long, help_heading = "Output")]
    pub process_reports: bool,

    /// Options of MD-Workbench's plug-in: -D=DIR or --root-dir=DIR
    #[arg(last = true, value_name = "PLUG-IN OPTIONS")]
    pub plugin: Vec<OsString>,

    /// IOR's offset of contents.
    #[arg(short = 'G', hide = true, value_name = "N", allow_hyphen_values = true)]
    pub data_offset: Option<String>,
    /// IOR's random contents.
    #[arg(long, hide = true)]
    pub incompressible_data: bool,
    /// IOR's buffers on a GPU.
    #[arg(long = "allocateBufferOnGPU", hide = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "1")]
    pub gpu_buffers: Option<String>,
}

impl Arguments {
    /// Whether to list the interfaces instead of running a pattern.
    #[must_use]
    pub fn lists_interfaces(&self) -> bool {
        self.interface.as_deref() == Some("list")
    }
}

fn whole(text: &str) -> Result<u64, String> {
    between(text, 0, u64::MAX)
}

fn small(text: &str) -> Result<u32, String> {
    between(text, 0, u32::MAX)
}

fn distance(text: &str) -> Result<i64, String> {
    let max = i64::from(u32::MAX);
    between(text, -max, max)
}

fn mebibytes(text: &str) -> Result<u64, String> {
    between(text, 0, u64::MAX >> 20)
}

/// Parses a whole number from `min` to `max`.
fn between<N>(text: &str, min: N, max: N) -> Result<N, String>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = text.parse().ok().filter(|n| (&min..=&max).contains(&n));
    number.ok_or_else(|| format!("expected a whole number from {min} to {max}"))
}

fn factor(text: &str) -> Result<f64, String> {
    const MAX_WAITING_FACTOR: f64 = 1e6;
    match text.parse::<f64>() {
        Ok(f) if (0.0..=MAX_WAITING_FACTOR).contains(&f) => Ok(f),
        _ => Err("expected a number from 0 to 1000000, such as 0.5 for half as long".into()),
    }
}
