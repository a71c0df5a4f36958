//! `run --repeat`: runs a workload several times, as one result.

use super::run_once;
use crate::cli::Format;
use crate::commands::print;
use crate::exit::{CommandError, Exit};
use crate::run_context::{RunContext, refuse_results_among_files, results_path_error};
use plimsoll_plan::Plan;
use plimsoll_report::repeats;
use plimsoll_results::{Repeats, RepeatsWriter, read_runs};
use std::path::Path;
use std::time::SystemTime;

/// Runs the Plan `times` times, each with the next seed, so that what is random differs between
/// the runs as it does between those of different days. Ends with the worst of the runs' codes; a
/// run that failed or was interrupted is the last.
pub fn run(
    context: &RunContext<'_>,
    plan: &Plan,
    root: &Path,
    times: u32,
) -> Result<Exit, CommandError> {
    let mut writer = match context.communicator.is_root() {
        true => {
            refuse_results_among_files(root, plan, context.settings)?;
            let repeats = Repeats::new(&plan.name, times);
            let created = RepeatsWriter::create(root, repeats, SystemTime::now());
            Some(created.map_err(results_path_error)?)
        }
        false => None,
    };
    let mut worst = Exit::Valid;
    for i in 0..times {
        let seed = plan.seed.wrapping_add(u64::from(i));
        let plan = Plan {
            seed,
            ..plan.clone()
        };
        let exit = match run_once(context, &plan, root, writer.as_mut(), u64::from(i) + 1) {
            Ok(exit) => exit,
            Err(stopped) => {
                if let Some(writer) = writer {
                    writer.discard_if_empty();
                }
                return Err(stopped);
            }
        };
        if exit != Exit::Valid {
            worst = exit;
        }
        let ended = matches!(exit, Exit::Failed | Exit::Interrupted);
        // Rank 0 knows how the run ended, and says whether there is another one.
        if !context
            .communicator
            .run_on_root_and_broadcast(|| Ok(!ended && i + 1 < times))?
        {
            break;
        }
    }
    if let Some(writer) = writer {
        report_run_spread(context, &writer)?;
    }
    Ok(worst)
}

/// Prints the spread of the runs.
fn report_run_spread(context: &RunContext<'_>, writer: &RepeatsWriter) -> Result<(), CommandError> {
    if context.output.format == Format::Json {
        return Ok(());
    }
    let path = writer.dir().path();
    let runs = read_runs(path, None).map_err(CommandError::failed)?;
    let line = repeats::line(&runs, context.output.percentiles.as_ref());
    let text = format!("\n{line}\nresults in {}\n", path.display());
    print(&text).map(|_| ())
}
