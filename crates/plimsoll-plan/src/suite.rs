//! Score groups: the score of a suite to which a phase contributes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Score of a suite to which a phase contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScoreGroup {
    /// The phase contributes to no score.
    Unscored,
    /// The phase contributes its thousands of operations per second to the metadata score.
    Metadata,
    /// The phase contributes its GiB per second to the bandwidth score.
    Bandwidth,
}
