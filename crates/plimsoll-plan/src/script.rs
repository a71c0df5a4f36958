//! The order of a run: populate, start, wait, measure, stop.

use crate::ids::FilesetId;
use crate::units::{optional_seconds, seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One thing the engine's controller does, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Make the trees of these filesets.
    Populate {
        /// Filesets; those that exist already by an earlier phase are left alone.
        filesets: Vec<FilesetId>,
    },
    /// Start all workers together.
    Start,
    /// Start the ranks of a pattern together, for one of its stages; they end by themselves.
    StartStage {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
    },
    /// Begin a measured window. What was measured in a window still open is dropped.
    OpenWindow,
    /// Let the workers work.
    Wait {
        /// How long.
        until: Until,
        /// Statistics printed meanwhile.
        snapshots: Option<Snapshots>,
    },
    /// End the measured window.
    CloseWindow,
    /// Stop all workers and wait for them.
    Stop,
    /// Print a line.
    Echo {
        /// The text.
        text: String,
    },
    /// Run a shell command; only with `--allow-commands`.
    System {
        /// The command.
        command: String,
    },
}

/// End of a [`Phase::Wait`]; it also ends when every worker has ended, or the quit mode says so.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After this long.
    Elapsed {
        /// Seconds.
        #[serde(with = "seconds", rename = "seconds")]
        #[schemars(with = "f64", rename = "seconds")]
        time: Duration,
    },
    /// When the workers end, or after this long if it is given.
    Done {
        /// Seconds, or null for no limit.
        #[serde(with = "optional_seconds", rename = "seconds")]
        #[schemars(with = "Option<f64>", rename = "seconds")]
        at_most: Option<Duration>,
    },
}

/// Statistics printed while a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshots {
    /// Seconds between them.
    #[serde(with = "seconds", rename = "every_s")]
    #[schemars(with = "f64", rename = "every_s")]
    pub every: Duration,
    /// Each shows its own period instead of everything since the window began.
    pub cleared: bool,
}

/// When a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuitMode {
    /// By time. When a worker finds no file to work on, the run ends early: as a valid one if the
    /// workload is nothing but work that ends by itself, see `Plan::ends_by_itself`, else as an
    /// invalid one.
    #[default]
    Timeout,
    /// When every worker has ended; one that finds no file ends.
    AllDone,
    /// When the first worker has ended.
    FirstDone,
}
