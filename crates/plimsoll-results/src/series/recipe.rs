//! Recipe: everything from which the configurations of a series follow, except for the values of its parameters.

use plimsoll_plan::{Overrides, Promise, Source, path_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Workload, settings and target of a series, from which the configuration of each value of a parameter is made. A
/// resumed series makes the configurations of further values from the recipe alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recipe {
    /// Workload, with its text when the series began.
    pub source: Source,
    /// Absolute path of the workload file, beside which the texts of `load` statements are; empty for a built-in
    /// workload.
    #[serde(with = "path_text")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Directory to which relative paths of the workload refer.
    #[serde(with = "path_text")]
    #[schemars(with = "String")]
    pub current_dir: PathBuf,
    /// Settings of the command line.
    pub overrides: Overrides,
    /// Whether the user specified the work directory.
    pub has_dir: bool,
    /// URL of the target.
    pub target: String,
    /// Promises that the workload does not have: each is the opposite of a condition of `--until`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub until: Vec<Promise>,
}
