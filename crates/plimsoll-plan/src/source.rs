//! Source locations in the text of a workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Location in the text of a workload, for messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourcePosition {
    /// Name of the text: path of a workload file, or name of a built-in workload.
    pub file: String,
    /// Number of the line in the text, from 1.
    pub line: u32,
    /// Number of the character in the line, from 1.
    pub column: u32,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
