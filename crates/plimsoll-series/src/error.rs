//! Errors of runs and of series.

use plimsoll_results::{Reason, ResultsError};
use std::fmt;

/// Reason why a run was not made, or why a series ended without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesError {
    /// Bad input. Nothing was changed.
    Refused(String),
    /// The run or the series had begun and failed.
    Failed(String),
    /// Rank 0 was refused and reports the reason.
    RefusedAtRoot,
    /// A rank was lost. Rank 0 reports the loss.
    RankLost,
}

impl SeriesError {
    /// An error for bad input, with this message.
    pub fn refused(text: impl fmt::Display) -> Self {
        Self::Refused(text.to_string())
    }

    /// An error for a failure after the start of the run or series, with this message.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::Failed(text.to_string())
    }

    /// An error for a results directory that cannot be created.
    #[must_use]
    pub fn results_path(e: &ResultsError) -> Self {
        Self::Refused(format!(
            "{e}; --results chooses another place for the results"
        ))
    }

    /// Appends warnings to the error, one per line.
    #[must_use]
    pub fn with_warnings(self, warnings: &[String]) -> Self {
        let line = |error: Self, text: &String| error.with_line(&format!("warning: {text}"));
        warnings.iter().fold(self, line)
    }

    /// Appends a line to the error.
    #[must_use]
    pub fn with_line(self, line: &str) -> Self {
        match self {
            Self::Refused(text) => Self::Refused(format!("{text}\n{line}")),
            Self::Failed(text) => Self::Failed(format!("{text}\n{line}")),
            Self::RefusedAtRoot | Self::RankLost => self,
        }
    }

    /// Stop reason of a series that this error ended.
    #[must_use]
    pub fn reason(&self) -> Reason {
        Reason::new("refused", self.to_string())
    }
}

impl fmt::Display for SeriesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text) | Self::Failed(text) => f.write_str(text),
            Self::RefusedAtRoot => f.write_str("rank 0 was refused"),
            Self::RankLost => f.write_str("a rank was lost"),
        }
    }
}

impl std::error::Error for SeriesError {}
