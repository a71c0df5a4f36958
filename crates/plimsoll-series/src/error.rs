//! Errors of runs and of series.

use plimsoll_results::{Reason, ResultsError};
use std::fmt;

/// Reason why a run was not made, or why a series ended without a report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeriesError {
    /// A run or series was refused before it began, with a message; a refused run has measured nothing.
    #[error("{0}")]
    Refused(String),
    /// A run or series failed after it had begun, with a message.
    #[error("{0}")]
    Failed(String),
    /// Rank 0 refused the run; this rank reports nothing, because rank 0 reports the reason.
    #[error("rank 0 was refused")]
    RefusedAtRoot,
    /// The connection to a rank was lost; this rank reports nothing, because rank 0 reports the loss.
    #[error("a rank was lost")]
    RankLost,
}

impl SeriesError {
    /// An error for refused input, with a message.
    pub fn refused(text: impl fmt::Display) -> Self {
        Self::Refused(text.to_string())
    }

    /// An error for a run or series that failed after its start, with a message.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::Failed(text.to_string())
    }

    /// A refusal for a results directory that cannot be created; the message names the option `--results`.
    #[must_use]
    pub fn results_path(e: &ResultsError) -> Self {
        Self::Refused(format!(
            "{e}; --results chooses another place for the results"
        ))
    }

    /// Appends warnings to the message of the error, one per line.
    #[must_use]
    pub fn with_warnings(self, warnings: &[String]) -> Self {
        let line = |error: Self, text: &String| error.with_line(&format!("warning: {text}"));
        warnings.iter().fold(self, line)
    }

    /// Appends a line to the message of the error; an error that only rank 0 reports stays unchanged.
    #[must_use]
    pub fn with_line(self, line: &str) -> Self {
        match self {
            Self::Refused(text) => Self::Refused(format!("{text}\n{line}")),
            Self::Failed(text) => Self::Failed(format!("{text}\n{line}")),
            Self::RefusedAtRoot | Self::RankLost => self,
        }
    }

    /// Stop reason, with the code `refused`, of a series that ended with the error.
    #[must_use]
    pub fn reason(&self) -> Reason {
        Reason::new("refused", self.to_string())
    }
}
