//! How a command reports: format and amount.

use crate::cli::{Format, OutputArgs};
use crate::console;
use plimsoll_results::Percentiles;

/// Format and amount of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputOptions {
    /// Format of the report.
    pub format: Format,
    /// Whether nothing but the report and errors is printed.
    pub quiet: bool,
    /// Whether runs in progress are shown on the whole terminal.
    pub live: bool,
    /// Whether the results of each rank are kept too.
    pub per_rank: bool,
    /// Percentiles that tables show instead of the usual ones.
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
    /// The output of a process that prints nothing but its result.
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

    /// Prints a line to the stream that the report does not use.
    pub fn print_message(&self, line: &str) {
        match (self.quiet, self.format) {
            (true, _) => {}
            // A reader that has gone is not an error.
            (false, Format::Text) => _ = console::out(&format!("{line}\n")),
            (false, Format::Json) => console::err(&format!("{line}\n")),
        }
    }
}
