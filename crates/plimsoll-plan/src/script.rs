//! The script of a run: populate, start, wait, measure, stop.

use crate::ids::FilesetId;
use crate::plan::Plan;
use crate::units::{optional_seconds, seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One action of the engine's controller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Create the trees of these filesets.
    Populate {
        /// Filesets; those populated by an earlier phase are left unchanged.
        filesets: Vec<FilesetId>,
    },
    /// Start all workers together.
    Start,
    /// Start the ranks of a pattern together, for one of its stages; they end by themselves.
    StartStage {
        /// Number of the stage in the pattern, from 0.
        stage: u32,
    },
    /// Open a measured window. The measurements of a window that is still open are discarded.
    OpenWindow,
    /// Let the workers work.
    Wait {
        /// End of the wait.
        until: Until,
        /// Statistics printed during the wait.
        snapshots: Option<Snapshots>,
    },
    /// Close the measured window.
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

impl Plan {
    /// Sums of the timed waits before the first window opens (warm-up) and after it opens (measured time).
    #[must_use]
    pub fn times(&self) -> (Duration, Duration) {
        let mut times = [Duration::ZERO; 2];
        let mut window = 0;
        for phase in &self.script {
            match phase {
                Phase::OpenWindow => window = 1,
                Phase::Wait {
                    until: Until::Elapsed { time },
                    ..
                } => times[window] += *time,
                _ => {}
            }
        }
        (times[0], times[1])
    }
}

impl Phase {
    /// Whether workers start in this phase.
    #[must_use]
    pub fn begins_load(&self) -> bool {
        matches!(self, Self::Start | Self::StartStage { .. })
    }

    /// A wait that records no snapshots.
    #[must_use]
    pub fn wait(until: Until) -> Self {
        Self::Wait {
            until,
            snapshots: None,
        }
    }

    /// A wait of length `time` that records no snapshots.
    #[must_use]
    pub fn wait_for(time: Duration) -> Self {
        Self::wait(Until::Elapsed { time })
    }
}

/// End of a [`Phase::Wait`], which also ends when every worker has ended or by the quit mode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Until {
    /// After this time.
    Elapsed {
        /// Seconds.
        #[serde(with = "seconds", rename = "seconds")]
        #[schemars(with = "f64", rename = "seconds")]
        time: Duration,
    },
    /// When the workers end, or at most after this time.
    Done {
        /// Seconds, or null for no limit.
        #[serde(with = "optional_seconds", rename = "seconds")]
        #[schemars(with = "Option<f64>", rename = "seconds")]
        at_most: Option<Duration>,
    },
}

/// Statistics printed during a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Snapshots {
    /// Seconds between them.
    #[serde(with = "seconds", rename = "every_s")]
    #[schemars(with = "f64", rename = "every_s")]
    pub every: Duration,
    /// Each shows its own period instead of the whole window so far.
    pub cleared: bool,
}

/// Condition that ends a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuitMode {
    /// The time. If a worker finds no file to work on, the run ends early: it is valid if the
    /// workload ends by itself (see `Plan::ends_by_itself`) and invalid otherwise.
    #[default]
    Timeout,
    /// The end of the last worker; a worker that finds no file ends.
    AllDone,
    /// The end of the first worker.
    FirstDone,
}
