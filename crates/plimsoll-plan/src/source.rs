//! Source locations in the text of a workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Location in a source text; line and column count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourcePosition {
    /// Name of the text: a path, or a built-in workload's name.
    pub file: String,
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
