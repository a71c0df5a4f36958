//! Checks before a series is resumed: missing runs, number of ranks, and the commands that resuming would execute. A
//! series may come from another person, so its commands are shown and require `--allow-commands`.

use crate::error::SeriesError;
use crate::events::{Action, EventSpec};
use crate::system_text;
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{Phase, counted};
use plimsoll_results::{Series, SeriesDir, SeriesWriter};
use std::collections::HashSet;
use std::path::Path;

/// Opens the series in a directory, checked for the resumption by `ranks` ranks. `allowed` permits commands in the
/// series document (`--allow-commands`).
///
/// # Errors
/// If no run is missing, if the number of ranks or the text of a simulated system has changed since the start, if an
/// event cannot be executed, or if the series has commands and `allowed` is false.
pub fn resume(dir: &Path, ranks: u32, allowed: bool) -> Result<SeriesWriter, SeriesError> {
    // The state is read before the series is opened for writing. A series whose last run is published and not listed
    // can be resumed too: listing, report and removal of files are missing.
    let left = SeriesDir::at(dir).read().map_err(SeriesError::refused)?;
    if !left.state.can_resume() {
        return Err(SeriesError::refused(format!(
            "the {} in {} is complete: there is nothing to resume",
            left.kind.kind(),
            dir.display()
        )));
    }
    if left.ranks != ranks {
        return Err(SeriesError::refused(format!(
            "the {} was started with {} and there {}: start the same number with --processes or \
             the launcher",
            left.kind.kind(),
            counted(u64::from(left.ranks), "process", "processes"),
            if ranks == 1 {
                "is 1 now".to_owned()
            } else {
                format!("are {ranks} now")
            }
        )));
    }
    let writer = SeriesWriter::resume(dir).map_err(SeriesError::refused)?;
    check(writer.series(), dir, allowed)?;
    Ok(writer)
}

/// Shell commands that a series document contains in events, before runs and in `system` statements, each once, in
/// order of appearance. Texts that are not events are left out: `events::read` refuses such texts.
fn commands(series: &Series) -> Vec<String> {
    let events = series.events.iter().filter_map(|text| text.parse().ok());
    let of_events = events.filter_map(|event: EventSpec| match event.action {
        Action::Command(command) => Some(command),
        Action::Fault(_) => None,
    });
    let phases = series.configurations.iter().flat_map(|c| &c.plan.script);
    let of_plans = phases.filter_map(|phase| match phase {
        Phase::System { command } => Some(command.clone()),
        _ => None,
    });
    let before_runs = series.configurations.iter().flat_map(|c| &c.before);
    let mut seen = HashSet::new();
    let all = of_events.chain(before_runs.cloned()).chain(of_plans);
    all.filter(|command| seen.insert(command.clone())).collect()
}

fn check(series: &Series, dir: &Path, allowed: bool) -> Result<(), SeriesError> {
    let commands = commands(series);
    if !allowed && !commands.is_empty() {
        let shown = commands
            .iter()
            .map(|c| format!("`{}`", foreign::escaped(c)));
        return Err(SeriesError::refused(format!(
            "the results in {} contain commands that `plimsoll resume` would run: {}. If you trust their author, add \
             --allow-commands",
            dir.display(),
            shown.collect::<Vec<_>>().join(", ")
        )));
    }
    for configuration in &series.configurations {
        let target = &configuration.target;
        system_text::check(target, &series.program.version)?;
        let events = crate::events::read(&series.events, &target.url);
        let events = events.map_err(SeriesError::Refused)?;
        crate::events::check_phases(&events, &configuration.plan, &target.url)
            .map_err(SeriesError::Refused)?;
    }
    Ok(())
}
