//! `--dry-run`: prints the Plan of a run, and the space, inodes and memory that the run needs, without making the run.

use super::print;
use crate::cli::{CommonRunArgs, Format};
use crate::exit::{CommandError, Exit};
use crate::new_series;
use plimsoll_engine::{Preflight, Settings};
use plimsoll_plan::{Bytes, Count, Plan, PlanView, show_duration};
use plimsoll_results::{Document, Series};
use plimsoll_series::refuse_results_among_files;
use std::path::Path;
use std::time::Duration;

/// Prints a Plan, and the space, inodes and memory that a run of the Plan needs.
///
/// # Errors
/// A usage error with the reasons of preflight, after the Plan is printed, if the run would be refused.
pub(super) fn show(plan: &Plan, settings: &Settings, format: Format) -> Result<Exit, CommandError> {
    let look = plimsoll_engine::preflight(plan, settings).map_err(CommandError::usage)?;
    match format {
        Format::Json => {
            let text = serde_json::to_string_pretty(plan);
            let text =
                text.map_err(|e| CommandError::failed(format!("the Plan has no JSON form: {e}")))?;
            print(&format!("{text}\n"))?;
        }
        Format::Text => {
            let view = PlanView {
                plan,
                layouts: look.layouts.iter().map(|l| &**l).collect(),
            };
            print(&format!("{view}{}", needs(plan, &look)))?;
            for note in &look.notes {
                crate::console::err(&format!("note: {note}\n"));
            }
        }
    }
    verdict(&look)
}

/// Prints `summary`, and the Plan of each configuration with the resources that its run needs, at the highest load if
/// the series has several loads; as JSON, prints `series.json` as it is before the first run.
pub(super) fn show_series(
    series: &Series,
    how: &CommonRunArgs,
    root: &Path,
    format: Format,
    summary: &str,
) -> Result<Exit, CommandError> {
    for configuration in &series.configurations {
        refuse_results_among_files(root, &configuration.plan, &configuration.target.url)?;
    }
    match format {
        Format::Text => {
            print(&format!("{summary}\n"))?;
            for configuration in &series.configurations {
                let label = configuration.label();
                let label = label.unwrap_or_else(|| "at the highest load".into());
                print(&format!("\n{label}\n"))?;
                let settings = new_series::settings(configuration, how);
                show(&configuration.plan, &settings, format)?;
            }
        }
        Format::Json => {
            print(&series.to_json())?;
            for configuration in &series.configurations {
                verdict(&new_series::preflight(configuration, how)?)?;
            }
        }
    }
    Ok(Exit::Valid)
}

/// Usage error with the reasons of preflight for refusing a run; `Exit::Valid` without reasons.
fn verdict(look: &Preflight) -> Result<Exit, CommandError> {
    match look.refusals.as_slice() {
        [] => Ok(Exit::Valid),
        reasons => Err(CommandError::usage(format!(
            "refused: {}",
            reasons.join("\n  ")
        ))),
    }
}

/// Text about the needs of a run and the available resources.
fn needs(plan: &Plan, look: &Preflight) -> String {
    let mut out = format!("\nneeds\n  target    {}\n", look.target);
    if let (Some(space), Some(pattern)) = (look.space, plan.pattern()) {
        let open = match pattern.needs(space.block).open_ended {
            true => ", and what is written until a stonewall",
            false => "",
        };
        out.push_str(&format!(
            "  space     {} for the objects{open}; {} free\n",
            look.bytes_needed,
            Bytes(space.bytes)
        ));
        let free = match space.inodes {
            Some(free) => format!("{} free", Count(free)),
            None => "no limit".into(),
        };
        out.push_str(&format!(
            "  inodes    {} for objects and sets{open}; {free}\n",
            Count(look.inodes_needed)
        ));
        return out;
    }
    if let Some(space) = look.space {
        out.push_str(&format!(
            "  space     {} to populate, {} if every file exists; {} free\n",
            look.bytes_needed,
            look.bytes_at_most,
            Bytes(space.bytes)
        ));
        let free = match space.inodes {
            Some(free) => format!("{} free", Count(free)),
            None => "no limit".into(),
        };
        out.push_str(&format!(
            "  inodes    {} to populate; {free}\n",
            Count(look.inodes_needed)
        ));
        out.push_str(&format!("  populate  {}\n", populate_time(look)));
    }
    let reused = plan
        .filesets
        .iter()
        .zip(&look.reusable)
        .filter(|(_, r)| **r);
    let reused: Vec<&str> = reused.map(|(f, _)| f.name.as_str()).collect();
    if !reused.is_empty() {
        out.push_str(&format!(
            "  reuse     {} from an earlier run\n",
            reused.join(", ")
        ));
    }
    out.push_str(&format!(
        "  buffers   {} of memory\n",
        Bytes(look.buffer_bytes)
    ));
    out
}

/// Estimated time for populating, in whole seconds.
fn populate_time(look: &Preflight) -> String {
    let seconds = look.populate_estimate.as_secs_f64();
    if look.inodes_needed == 0 && look.bytes_needed.bytes == 0 {
        "nothing to make".into()
    } else if seconds < 1.0 {
        "less than 1s".into()
    } else {
        let whole = Duration::try_from_secs_f64(seconds.ceil()).unwrap_or(Duration::MAX);
        format!("about {}", show_duration(whole))
    }
}
