//! `run --repeat`: runs a workload several times, as one result.

use super::{Round, elsewhere, refuse_results_among_files};
use crate::cli::Format;
use crate::console;
use crate::exit::{Exit, Stopped};
use plimsoll_plan::Plan;
use plimsoll_report::{latency, rate};
use plimsoll_results::{RepeatsWriter, Run, read_runs};
use std::path::Path;
use std::time::SystemTime;

/// Runs the Plan `times` times, each with the next seed, so that what is random differs between
/// the runs as it does between those of different days. Ends with the worst of the runs' codes; a
/// run that failed or was interrupted is the last.
pub fn run(round: &Round<'_>, plan: &Plan, root: &Path, times: u32) -> Result<Exit, Stopped> {
    let mut writer = match round.company.leads() {
        true => {
            refuse_results_among_files(root, plan, round.settings)?;
            let created = RepeatsWriter::create(root, &plan.name, times, SystemTime::now());
            Some(created.map_err(|e| elsewhere(&e))?)
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
        let exit = match round.run(&plan, root, writer.as_mut(), u64::from(i) + 1) {
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
        if !round.company.share(|| Ok(!ended && i + 1 < times))? {
            break;
        }
    }
    if let Some(writer) = writer {
        conclude(round, &writer)?;
    }
    Ok(worst)
}

/// Says how far the runs are from each other.
fn conclude(round: &Round<'_>, writer: &RepeatsWriter) -> Result<(), Stopped> {
    if round.manner.format == Format::Json {
        return Ok(());
    }
    let path = writer.dir().path();
    let runs = read_runs(path).map_err(Stopped::failed)?;
    let range = |pick: fn(&Run) -> f64, show: fn(f64) -> String| {
        let values = || runs.iter().map(pick);
        let mean = values().sum::<f64>() / runs.len() as f64;
        let (least, most) = values().fold((f64::MAX, f64::MIN), |(l, m), v| (l.min(v), m.max(v)));
        format!(
            "{} ({} to {})",
            show(mean),
            show(least).trim(),
            show(most).trim()
        )
    };
    let service = match runs.iter().any(|r| r.summary.service.is_some()) {
        true => format!(
            "; service time mean {}, p99 {}",
            range(|r| r.summary.service().mean_ms, latency),
            range(|r| r.summary.service().p99_ms, latency)
        ),
        false => String::new(),
    };
    let text = format!(
        "\n{} runs: {} ops/s, mean {}, p99 {}{service}\nresults in {}\n",
        runs.len(),
        range(|r| r.summary.ops_per_s, rate),
        range(|r| r.summary.mean_ms, latency),
        range(|r| r.summary.p99_ms, latency),
        path.display()
    );
    console::out(&text)
        .map_err(|e| Stopped::failed(format!("cannot write to standard output: {e}")))
}
