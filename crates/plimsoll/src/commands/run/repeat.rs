//! `run --repeat`: runs a workload several times, as one result.

use super::run_once;
use crate::cli::Format;
use crate::commands::print;
use crate::exit::{CommandError, Exit};
use crate::run_context::{RunContext, refuse_results_among_files, results_path_error};
use plimsoll_plan::Plan;
use plimsoll_report::percentiles::{LOWER_BOUND_MARK, PercentileKind, UNCERTAIN_MARK};
use plimsoll_report::{latency, rate};
use plimsoll_results::{Percentile, Percentiles, Repeats, RepeatsWriter, Run, read_runs};
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
    let range = |pick: &dyn Fn(&Run) -> f64, show: fn(f64) -> String| {
        let values = || runs.iter().map(pick);
        let mean = values().sum::<f64>() / runs.len() as f64;
        let (least, most) = values().fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        let shown = [mean, least, most].map(|v| show(v).replace("  ", " "));
        format!("{} ({} to {})", shown[0], shown[1], shown[2])
    };
    let asked = context.output.percentiles.as_ref();
    let percentiles = Percentiles::shown_percentiles(asked, &[Percentile::P99]);
    let times = |mean: fn(&Run) -> f64, of: PercentileKind| {
        let mut parts = vec![format!("mean {}", range(&mean, latency))];
        for p in percentiles {
            let figure = |r: &Run| r.summary.percentile(*p);
            let ms = |r: &Run| figure(r).map_or(0.0, |f| of.ms(&f));
            let doubtful = runs.iter().filter_map(figure).any(|f| !f.enough_samples);
            let doubt = if doubtful { UNCERTAIN_MARK } else { "" };
            let at_least = runs.iter().filter_map(figure).any(|f| of.at_least(&f));
            let bound = if at_least { LOWER_BOUND_MARK } else { "" };
            parts.push(format!("{p} {bound}{}{doubt}", range(&ms, latency)));
        }
        parts.join(", ")
    };
    let service = match runs.iter().any(|r| r.summary.service.is_some()) {
        true => {
            let times = times(|r| r.summary.service().mean_ms, PercentileKind::Service);
            format!("; service time {times}")
        }
        false => String::new(),
    };
    let text = format!(
        "\n{} runs: {} ops/s, {}{service}\nresults in {}\n",
        runs.len(),
        range(&|r| r.summary.ops_per_s, rate),
        times(|r| r.summary.mean_ms, PercentileKind::Latency),
        path.display()
    );
    print(&text).map(|_| ())
}
