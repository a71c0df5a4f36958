//! Checks before a series is resumed: missing runs, number of ranks, and the commands that resuming would execute. A
//! series may come from another person, so its commands are shown and require `--allow-commands`.

use crate::error::SeriesError;
use crate::events::{Action, EventSpec};
use crate::system_text;
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{Phase, Plan, counted};
use plimsoll_results::{Series, SeriesDir, SeriesWriter};
use std::collections::HashSet;
use std::path::Path;

/// Commands of a series document, in order of appearance.
#[derive(Debug, Default)]
struct KeptCommands(Vec<String>);

impl KeptCommands {
    /// Adds the commands of events. Texts that are not events are refused elsewhere.
    fn add_events(&mut self, events: &[String]) {
        let events = events.iter().filter_map(|text| text.parse().ok());
        self.0
            .extend(events.filter_map(|event: EventSpec| match event.action {
                Action::Command(command) => Some(command),
                Action::Fault(_) => None,
            }));
    }

    /// Adds the `system` statements of a workload.
    fn add_plan(&mut self, plan: &Plan) {
        self.0
            .extend(plan.script.iter().filter_map(|phase| match phase {
                Phase::System { command } => Some(command.clone()),
                _ => None,
            }));
    }

    /// Refuses the commands unless they are `allowed`. `dir` is the directory of the series.
    ///
    /// # Errors
    /// If there are commands and they are not `allowed`.
    fn check(mut self, dir: &Path, allowed: bool) -> Result<(), SeriesError> {
        if allowed || self.0.is_empty() {
            return Ok(());
        }
        let mut seen = HashSet::new();
        self.0.retain(|command| seen.insert(command.clone()));
        let shown: Vec<String> = self
            .0
            .iter()
            .map(|c| format!("`{}`", foreign::escaped(c)))
            .collect();
        Err(SeriesError::refused(format!(
            "the results in {} contain commands that `plimsoll resume` would run: {}. If you trust their author, add \
             --allow-commands",
            dir.display(),
            shown.join(", ")
        )))
    }
}

/// Opens a series to make its missing runs, with `ranks` ranks.
///
/// # Errors
/// If no run is missing, if the number of ranks or the text of a simulated system has changed since the start, if an
/// event cannot be executed, or if there are commands that are not `allowed`.
pub fn resume(dir: &Path, ranks: u32, allowed: bool) -> Result<SeriesWriter, SeriesError> {
    // As the series was left: the last run may be published and not listed, and then only the rest of the series is
    // missing, which is the report and the removal of files.
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

fn check(series: &Series, dir: &Path, allowed: bool) -> Result<(), SeriesError> {
    let mut kept = KeptCommands::default();
    kept.add_events(&series.events);
    for configuration in &series.configurations {
        kept.add_plan(&configuration.plan);
    }
    kept.check(dir, allowed)?;
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

#[cfg(test)]
mod tests {
    use super::KeptCommands;
    use std::path::Path;

    fn of(events: &[&str]) -> KeptCommands {
        let mut kept = KeptCommands::default();
        kept.add_events(&events.iter().map(ToString::to_string).collect::<Vec<_>>());
        kept
    }

    #[test]
    fn commands_need_permission_and_are_shown_once() {
        let dir = Path::new("r");
        let faults = of(&["3s kill server", "nonsense"]);
        assert!(faults.check(dir, false).is_ok());
        let commands = ["3s sh echo \u{1b}[8m", "4s sh echo \u{1b}[8m", "5s sh date"];
        let refusal = of(&commands).check(dir, false).unwrap_err().to_string();
        assert!(
            refusal.contains(r"would run: `echo \u001b[8m`, `date`. If you trust"),
            "{refusal}"
        );
        assert!(of(&commands).check(dir, true).is_ok());
    }
}
