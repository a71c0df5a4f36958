//! Errors of runs and of series.

use plimsoll_results::{Reason, ResultsError};
use std::fmt;

/// Why a run was not made, or why a series ended without a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesError {
    /// Bad input: nothing was done.
    Refused(String),
    /// The run or the series had begun and failed.
    Failed(String),
    /// Rank 0 was refused and says why.
    RefusedAtRoot,
    /// A rank was lost, which rank 0 reports.
    RankLost,
}

impl SeriesError {
    /// Bad input.
    pub fn refused(text: impl fmt::Display) -> Self {
        Self::Refused(text.to_string())
    }

    /// A failure after the begin.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::Failed(text.to_string())
    }

    /// Results that cannot be created in the requested directory.
    #[must_use]
    pub fn results_path(e: &ResultsError) -> Self {
        Self::Refused(format!(
            "{e}; --results chooses another place for the results"
        ))
    }

    /// The error with these warnings, one per line.
    #[must_use]
    pub fn with_warnings(self, warnings: &[String]) -> Self {
        let line = |error: Self, text: &String| error.with_line(&format!("warning: {text}"));
        warnings.iter().fold(self, line)
    }

    /// The error with one more line.
    #[must_use]
    pub fn with_line(self, line: &str) -> Self {
        match self {
            Self::Refused(text) => Self::Refused(format!("{text}\n{line}")),
            Self::Failed(text) => Self::Failed(format!("{text}\n{line}")),
            Self::RefusedAtRoot | Self::RankLost => self,
        }
    }

    /// The error as the reason why a series ended.
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
