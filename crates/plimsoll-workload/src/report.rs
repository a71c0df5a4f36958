//! Error reporting of the parsers and of lowering: errors are collected, so that one call reports several errors of a
//! text.

use plimsoll_diagnostics::{MAX_ERRORS, Problem, Span};

/// Error value of a function that has reported its error already: a caller returns without another report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported;

/// A parser or lowering step that collects errors and continues after an error.
pub(crate) trait Report {
    /// Adds an error to the collected errors.
    fn problem(&mut self, problem: Problem) -> Reported;

    /// Adds an error at `span`, whose label stands below the span, and returns `Err`.
    fn fail<T>(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Result<T, Reported> {
        Err(self.problem(Problem::new(span, message, label)))
    }

    /// Adds an error at `span` with advice to the user, and returns `Err`.
    fn fail_with<T>(
        &mut self,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
        help: impl Into<String>,
    ) -> Result<T, Reported> {
        Err(self.problem(Problem::new(span, message, label).help(help)))
    }
}

/// A list of different errors, at most [`MAX_ERRORS`]: further errors are dropped.
impl Report for Vec<Problem> {
    fn problem(&mut self, problem: Problem) -> Reported {
        if self.len() < MAX_ERRORS && !self.contains(&problem) {
            self.push(problem);
        }
        Reported
    }
}
