//! Command-line changes to a workload, and options of a run.

use crate::content::Content;
use crate::script::QuitMode;
use crate::steady_rule::Warmup;
use crate::units::optional_seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Command-line changes to a workload, which the front end applies when it lowers the workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overrides {
    /// Work directory, below which every path of the workload is re-rooted.
    #[serde(with = "crate::path_text::option")]
    #[schemars(with = "Option<String>")]
    pub dir: Option<PathBuf>,
    /// New values of the workload's parameters: name (without a dollar sign) and value as text.
    pub sets: Vec<(String, String)>,
    /// Seed of the Plan; by default 1.
    pub seed: Option<u64>,
    /// Length of every measured window in seconds, instead of the workload's.
    #[serde(with = "optional_seconds", rename = "time_s")]
    #[schemars(with = "Option<f64>", rename = "time_s")]
    pub time: Option<Duration>,
    /// Warm-up before every measured window, added to the workload's own.
    pub warmup: Option<Warmup>,
    /// Half width of the main figure's confidence interval, in percent, at which a measured window ends before its time.
    pub precision: Option<f64>,
    /// Rate instead of the workload's: of a Filebench workload the event rate in events per second, where limiters do not
    /// wait at 0; of an operation mix the scheduled operations per second of all processes together, above 0.
    pub rate: Option<f64>,
    /// Quit mode instead of the workload's.
    pub quit: Option<QuitMode>,
    /// Load in business metrics, by default 1; only for workloads with a business metric.
    pub load: Option<u64>,
    /// Maximum load for which the files are laid out, by default `load`.
    pub most: Option<u64>,
    /// Fraction of data and rates, above 0 and at most 1, by default 1; only for workloads with a business metric.
    pub scale: Option<f64>,
    /// Contents of writes instead of the workload's. Front ends of workloads that define no contents use
    /// `options.content`.
    pub content: Option<Content>,
    /// Options of the run that do not depend on the kind of workload.
    pub options: RunOptions,
}

/// Options of a run, for workloads of any kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunOptions {
    /// Number of operations that ends the run, of the kinds that the summary counts; null without a limit.
    pub ops: Option<OpsLimit>,
    /// Error policy: the effect of an unexpected error of an operation on the run.
    pub on_error: OnError,
    /// Kind of the bytes that the workload writes.
    pub content: Content,
    /// Caches of the client that are dropped before the workers start.
    pub drop_caches: Cold,
    /// Numbers of the processors to which the threads of workers are bound in turn; empty if the scheduler chooses.
    pub cpus: Vec<u32>,
    /// Whether the workload may run shell commands (`system` statements); otherwise such a workload is refused.
    pub allow_commands: bool,
    /// Whether the run's files stay in the work directory after the run.
    pub keep: bool,
    /// Verification: whether file contents follow from file and offset, reads are checked, and all files are read again
    /// after the run.
    pub verify: bool,
    /// Requirements of the user; a run that does not meet a requirement is invalid.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub require: BTreeSet<Requirement>,
}

/// Requirement of the user on a run, in addition to the rules that every valid run meets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Requirement {
    /// The rate of operations is steady during the measured window: neither a trend nor two levels, and a judgement is
    /// possible.
    Steady,
    /// The figures are of the storage: the client's memory neither served most of the reads nor kept most of the
    /// writes, and a judgement is possible.
    Storage,
    /// Others used neither the processors nor the disk of the client, no CPU quota was used up, and a judgement is
    /// possible.
    Quiet,
}

impl Requirement {
    /// Code of the reason that makes a run invalid if the run does not meet the requirement.
    #[must_use]
    pub const fn reason_code(self) -> &'static str {
        match self {
            Self::Steady => "unsteady",
            Self::Storage => "measures_memory",
            Self::Quiet => "machine_shared",
        }
    }
}

/// Number of operations that ends a run, of the kinds that the summary counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpsLimit {
    /// Limit of the operations of all workers together.
    Total(u64),
    /// Limit of the operations of each worker.
    PerWorker(u64),
}

/// Error policy: the effect of an unexpected error of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run stops at the first unexpected error, and has failed.
    #[default]
    Stop,
    /// Unexpected errors are counted, the run continues, and the result is invalid.
    Count,
}

/// Caches of the client that are dropped before the workers start, so that reads reach the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// No caches are dropped, except the cached pages of filesets with the attribute `cached=false`.
    #[default]
    No,
    /// Cached pages of every file of all filesets are dropped, by `posix_fadvise`.
    Files,
    /// All page, directory and inode caches of the client are dropped, by `/proc/sys/vm/drop_caches`, which requires
    /// root.
    System,
}
