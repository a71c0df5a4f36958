//! `results import`: reads a published disclosure report.

use super::print;
use crate::cli::{Format, ImportArgs};
use crate::console::{self, Stream};
use crate::exit::{CommandError, Exit};
use crate::workload::diagnosed;
use plimsoll_report::disclosure::Imported;
use plimsoll_report::terminal;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a published disclosure report, and prints the report's inconsistencies and missing sections as warnings, then
/// the report's contents.
pub fn run(args: &ImportArgs) -> Result<Exit, CommandError> {
    let name = args.file.display().to_string();
    let bytes =
        read(&args.file).map_err(|e| CommandError::usage(format!("cannot read {name}: {e}")))?;
    let imported = plimsoll_report::disclosure::import(&bytes, &name).map_err(diagnosed)?;
    remark(&imported, &name);
    match args.format {
        Format::Text => {
            let document = imported.disclosure.document();
            print(&terminal::render(&document, Stream::Out.layout()))
        }
        Format::Json => {
            let json = serde_json::to_string_pretty(&imported.disclosure)
                .map_err(|e| CommandError::failed(format!("cannot print the report: {e}")))?;
            print(&(json + "\n"))
        }
    }
}

/// Prints to standard error the inconsistencies of an imported disclosure report, and its missing sections.
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
