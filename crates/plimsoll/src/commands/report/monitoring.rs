//! `report --format openmetrics`, `influx` and `otlp`: final figures for monitoring systems.

use super::results::results_dirs;
use crate::cli::ReportFormat;
use crate::exit::CommandError;
use clap::ValueEnum;
use plimsoll_report::monitoring::Export;
use std::path::PathBuf;

/// Text of the final figures of `results` in a format for monitoring systems.
///
/// # Errors
/// If a path holds no results that Plimsoll measured.
pub(super) fn text(results: &[PathBuf], format: ReportFormat) -> Result<String, CommandError> {
    let name = format.to_possible_value();
    let name = name.expect("no format is hidden");
    let dirs = results_dirs(results, name.get_name())?;
    let export = Export::read(&dirs).map_err(CommandError::usage)?;
    Ok(match format {
        ReportFormat::Influx => export.influx(),
        ReportFormat::Otlp => export.otlp(),
        _ => export.openmetrics(),
    })
}
