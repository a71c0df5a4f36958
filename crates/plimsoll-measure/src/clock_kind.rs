//! Real or virtual time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Clocks of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockKind {
    /// Time that passes.
    #[default]
    Real,
    /// Time that jumps to the next event.
    Virtual,
}
