//! Kind of a run's clock: real or virtual time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

/// Clock by which a run schedules and times operations: real time, or virtual time.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ClockKind {
    /// Real time, read from the processor's counter or from the system's monotonic clock.
    #[default]
    Real,
    /// Virtual time, which jumps to the next event when no worker can run.
    Virtual,
}
