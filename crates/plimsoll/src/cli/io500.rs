//! Arguments of `io500`.

use super::OutputArgs;
use super::workloads::target_help;
use clap::{Args, ValueHint};
use plimsoll_workload::io500::Mode;
use std::path::PathBuf;

/// Arguments of `io500`.
#[derive(Debug, Args)]
pub struct Io500Args {
    /// Configuration file of IO500
    #[arg(value_name = "CONFIG", value_hint = ValueHint::FilePath, required_unless_present = "verify")]
    pub config: Option<PathBuf>,
    /// Phases to run
    #[arg(
        long,
        value_name = "MODE",
        value_enum,
        default_value_t,
        help_heading = "Phases"
    )]
    pub mode: Mode,
    #[arg(long, help = target_help(), value_name = "URL", help_heading = "Target")]
    #[arg(default_value = plimsoll_target::DEFAULT_TARGET)]
    pub target: String,
    /// Print the phases with their options, and run nothing
    #[arg(long, conflicts_with_all = ["cleanup", "verify"], help_heading = "Phases")]
    pub dry_run: bool,
    /// Remove the files that a failed run left in the data directory
    #[arg(long, conflicts_with = "verify", help_heading = "Phases")]
    pub cleanup: bool,
    /// Recompute the scores and the checksum in the file result.txt of a run, and with CONFIG the checksum of the
    /// configuration
    #[arg(long, value_name = "RESULT", value_hint = ValueHint::FilePath, help_heading = "Phases")]
    pub verify: Option<PathBuf>,
    #[command(flatten)]
    pub manner: OutputArgs,
}
