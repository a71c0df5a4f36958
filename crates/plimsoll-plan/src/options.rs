//! Command-line changes to a workload, and options of a run.

use crate::content::Content;
use crate::script::QuitMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Command-line changes to a workload, which the front end applies when it lowers the workload.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Work directory, below which every path of the workload is re-rooted.
    pub dir: Option<PathBuf>,
    /// Parameters: name (without a dollar sign) and value as text.
    pub sets: Vec<(String, String)>,
    /// Seed of the Plan; by default 1.
    pub seed: Option<u64>,
    /// Length of every measured window, instead of the workload's.
    pub time: Option<Duration>,
    /// Warm-up before every measured window, added to the workload's own.
    pub warmup: Option<Duration>,
    /// Event rate in events per second, instead of the workload's; 0: limiters do not wait.
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
    /// Options of the run.
    pub options: RunOptions,
}

/// Options of a run of any workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunOptions {
    /// Number of operations that ends the run.
    pub ops: Option<OpsLimit>,
    /// Effect of an unexpected error.
    pub on_error: OnError,
    /// Contents of writes.
    pub content: Content,
    /// Caches that are dropped before the run.
    pub drop_caches: Cold,
    /// Processors that the workers are bound to in turn; empty: the scheduler's choice.
    pub cpus: Vec<u32>,
    /// Whether `system` statements are executed.
    pub allow_commands: bool,
    /// Whether the files stay after the run.
    pub keep: bool,
    /// Whether contents follow from file and offset, reads are checked, and all files are read again after
    /// the run.
    pub verify: bool,
}

/// Number of operations, of those that the summary counts, that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpsLimit {
    /// Operations of all workers together.
    Total(u64),
    /// Operations of each worker.
    PerWorker(u64),
}

/// Effect of an unexpected error of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run stops and has failed.
    #[default]
    Stop,
    /// It is counted, the run continues, and its result is invalid.
    Count,
}

/// Caches that are dropped before workers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// Only those that the workload itself names.
    #[default]
    No,
    /// The page cache of each file of the filesets, by `posix_fadvise`.
    Files,
    /// All caches of the machine; needs root.
    System,
}
