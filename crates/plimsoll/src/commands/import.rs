//! `results import`: reads a published disclosure report.

use super::print;
use crate::cli::{Format, ImportArgs};
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use plimsoll_diagnostics::Diagnostics;
use plimsoll_report::disclosure::Imported;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads the report, prints inconsistencies and missing sections, and prints the report.
pub fn run(args: &ImportArgs) -> Result<Exit, CommandError> {
    let name = args.file.display().to_string();
    let bytes =
        read(&args.file).map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let imported = plimsoll_report::disclosure::import(&bytes, &name).map_err(|d| refused(&d))?;
    remark(&imported, &name);
    match args.format {
        Format::Text => print(&imported.disclosure.summary()),
        Format::Json => {
            let json = serde_json::to_string_pretty(&imported.disclosure)
                .map_err(|e| CommandError::failed(format!("cannot print the report: {e}")))?;
            print(&(json + "\n"))
        }
    }
}

/// Prints warnings about a report and notes on missing sections.
pub fn remark(imported: &Imported, name: &str) {
    for warning in &imported.warnings {
        console::err(&format!("warning: {name}: {warning}\n"));
    }
    for note in &imported.notes {
        console::err(&format!("note: {name}: {note}\n"));
    }
}

/// Reads a file up to one byte beyond the maximum size of a report, so that an endless device is refused, too.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(file)?
        .take(plimsoll_report::disclosure::MAX_REPORT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Command error for a rejected text.
pub fn refused(d: &Diagnostics) -> CommandError {
    CommandError {
        exit: Exit::Usage,
        message: d.render(Stream::Err.color(), Stream::Err.width()),
    }
}
