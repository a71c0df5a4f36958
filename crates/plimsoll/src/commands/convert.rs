//! `workloads convert`: converts a workload of another program to an operation mix.

use super::print;
use crate::cli::ConvertArgs;
use crate::exit::{CommandError, Exit};
use crate::{new_file, workload};
use plimsoll_plan::SourceKind;
use plimsoll_workload::mix::netmist;

/// First lines of a converted file.
const HEAD: &str = "\
# Converted from netmist's custom workload file. What such files do not say are Plimsoll's own
# figures: processes, their rate (without one, an operation begins when the one before it has
# ended), the number of files and directories, and when a load counts as sustained.
";

/// Prints the workload, or writes it to a new file.
pub fn run(args: &ConvertArgs) -> Result<Exit, CommandError> {
    let found = workload::find(&args.file)?;
    if found.kind != SourceKind::File || !netmist::is_custom_workload(&found.text) {
        return Err(CommandError::usage(format!(
            "{} is not a custom workload file of netmist: its first line must be `Workload name NAME`",
            args.file.display()
        )));
    }
    let workload = netmist::parse(&found.text, &found.name).map_err(workload::diagnosed)?;
    let toml = plimsoll_workload::mix::to_toml(workload.file()).map_err(CommandError::usage)?;
    let text = format!("{HEAD}{toml}");
    match &args.output {
        None => print(&text),
        Some(path) => new_file::create(path, &text).map(|()| Exit::Valid),
    }
}
