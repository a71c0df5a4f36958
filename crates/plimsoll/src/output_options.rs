//! Output options of a command: format and amount.

use crate::cli::{Format, OutputArgs};
use crate::console;
use plimsoll_results::Percentiles;

/// Format and amount of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// Format of the report.
    pub format: Format,
    /// Whether only the report and errors are printed.
    pub quiet: bool,
    /// Whether runs in progress are displayed full-screen.
    pub live: bool,
    /// Whether results of each rank are kept, too.
    pub per_rank: bool,
    /// Percentiles for tables; `None` for the default percentiles.
    pub percentiles: Option<Percentiles>,
}

impl From<&OutputArgs> for OutputOptions {
    fn from(args: &OutputArgs) -> Self {
        Self {
            format: args.format,
            quiet: args.quiet,
            live: args.live,
            per_rank: args.ranks.per_rank,
            percentiles: args.percentiles.percentiles.clone(),
        }
    }
}

impl OutputOptions {
    /// Options of a process that prints only its result.
    pub fn quiet() -> Self {
        Self {
            format: Format::Json,
            quiet: true,
            live: false,
            per_rank: false,
            percentiles: None,
        }
    }

    /// Reports progress, unless the output is quiet.
    pub fn report_progress(&self, line: &str) {
        if !self.quiet {
            console::err(&format!("{line}\n"));
        }
    }

    /// Prints a line to the stream that is not used by the report.
    pub fn print_message(&self, line: &str) {
        match (self.quiet, self.format) {
            (true, _) => {}
            // A closed output is not an error.
            (false, Format::Text) => _ = console::out(&format!("{line}\n")),
            (false, Format::Json) => console::err(&format!("{line}\n")),
        }
    }
}
