//! Options for the console output of a command that makes runs: format of the report, progress, and full-screen view.

use crate::cli::{Format, OutputArgs};
use crate::console;

/// Options for the console output of a command that makes runs, and for the results of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// Format of the report.
    pub format: Format,
    /// Whether only the report and errors are printed.
    pub quiet: bool,
    /// Whether runs in progress are displayed full-screen.
    pub live: bool,
    /// Whether the results of each rank are written, too (`--per-rank`).
    pub per_rank: bool,
}

impl From<&OutputArgs> for OutputOptions {
    fn from(args: &OutputArgs) -> Self {
        Self {
            format: args.format,
            quiet: args.quiet,
            live: args.live,
            per_rank: args.ranks.per_rank,
        }
    }
}

impl OutputOptions {
    /// Options of a child process of `--jobs`, which prints only the name of the run's results directory.
    pub fn quiet() -> Self {
        Self {
            format: Format::Json,
            quiet: true,
            live: false,
            per_rank: false,
        }
    }

    /// Prints a line of progress to standard error, unless `--quiet` is given.
    pub fn report_progress(&self, line: &str) {
        if !self.quiet {
            console::err(&format!("{line}\n"));
        }
    }

    /// Prints a message: to standard output with a text report, to standard error with a JSON report, and not at all if
    /// `--quiet` is given.
    pub fn print_message(&self, line: &str) {
        match (self.quiet, self.format) {
            (true, _) => {}
            // A closed standard output, as in a pipe to `head`, does not end the command.
            (false, Format::Text) => _ = console::out(&format!("{line}\n")),
            (false, Format::Json) => console::err(&format!("{line}\n")),
        }
    }
}
