//! What the command line may change of a workload, and how a run behaves.

use crate::content::Content;
use crate::script::QuitMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Changes to a workload, given to the front end that lowers it.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Work directory; every path of the workload is re-rooted below it.
    pub dir: Option<PathBuf>,
    /// Parameters: name (without a dollar sign) and value as text.
    pub sets: Vec<(String, String)>,
    /// Seed of the Plan; without it 1.
    pub seed: Option<u64>,
    /// Length of every measured window, instead of the workload's.
    pub time: Option<Duration>,
    /// Warm-up before every measured window, added to the workload's own.
    pub warmup: Option<Duration>,
    /// Event rate (events a second) instead of the workload's; 0 lifts the limit.
    pub rate: Option<f64>,
    /// Quit mode instead of the workload's.
    pub quit: Option<QuitMode>,
    /// Business metrics to carry; without it 1. Only for workloads that have them.
    pub load: Option<u64>,
    /// Greatest load that the files are laid out for; without it the load itself.
    pub most: Option<u64>,
    /// Share of data and rates, above 0 and at most 1; without it 1. Only for workloads that have
    /// business metrics.
    pub scale: Option<f64>,
    /// Contents of what is written, instead of the workload's. Front ends whose workloads have
    /// none of their own take `options.content`.
    pub content: Option<Content>,
    /// How the run behaves.
    pub options: RunOptions,
}

/// How a run behaves, whatever the workload.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunOptions {
    /// End by operations.
    pub ops: Option<OpsLimit>,
    /// What an unexpected error does.
    pub on_error: OnError,
    /// Contents of what is written.
    pub content: Content,
    /// Page cache before the run.
    pub drop_caches: Cold,
    /// Processors the workers are bound to in turn; empty: the scheduler's choice.
    pub cpus: Vec<u32>,
    /// Whether `system` statements run.
    pub allow_commands: bool,
    /// Whether what the run made stays afterwards.
    pub keep: bool,
}

/// End of a run by operations that count in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpsLimit {
    /// This many by all workers together.
    Total(u64),
    /// This many by each worker.
    PerWorker(u64),
}

/// What an unexpected error of an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run stops and has failed.
    #[default]
    Stop,
    /// It is counted, the run goes on, and its result is invalid.
    Count,
}

/// What is dropped from the page cache before workers start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cold {
    /// Nothing but what the workload itself asks for.
    #[default]
    No,
    /// Each file of the filesets, by `posix_fadvise`.
    Files,
    /// The whole machine's caches; needs root.
    System,
}
