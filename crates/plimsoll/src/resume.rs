//! What is checked before results are resumed: that something is left, the number of ranks, and the commands
//! that their document keeps and `--resume` would run. Whoever resumes results may have them from someone else, so
//! that commands are shown and need `--allow-commands`, as on the command line.

use crate::event::{Action, EventSpec};
use crate::exit::CommandError;
use plimsoll_diagnostics::foreign;
use plimsoll_plan::{Phase, Plan, counted};
use plimsoll_results::{Collection, CollectionWriter, Hooks};
use std::path::Path;

/// Commands of a document, in the order in which they were found.
#[derive(Debug, Default)]
pub struct KeptCommands(Vec<String>);

impl KeptCommands {
    /// Those around the phases.
    pub fn add_hooks(&mut self, hooks: Option<&Hooks>) {
        let both = hooks.map(|h| [h.before.clone(), h.after.clone()]);
        self.0.extend(both.into_iter().flatten().flatten());
    }

    /// The program that is called at each point.
    pub fn add_monitor(&mut self, monitor: Option<&Path>) {
        self.0.extend(monitor.map(|m| m.display().to_string()));
    }

    /// Those of events; a text that is no event is refused elsewhere.
    pub fn add_events(&mut self, events: &[String]) {
        let events = events.iter().filter_map(|text| text.parse().ok());
        self.0
            .extend(events.filter_map(|event: EventSpec| match event.action {
                Action::Command(command) => Some(command),
                Action::Fault(_) => None,
            }));
    }

    /// The `system` statements of a workload.
    pub fn add_plan(&mut self, plan: &Plan) {
        self.0
            .extend(plan.script.iter().filter_map(|phase| match phase {
                Phase::System { command } => Some(command.clone()),
                _ => None,
            }));
    }

    /// Refuses them unless they are allowed. `dir` is the directory of the document.
    ///
    /// # Errors
    /// If there is one and commands are not `allowed`.
    pub fn check(mut self, dir: &Path, allowed: bool) -> Result<(), CommandError> {
        if allowed || self.0.is_empty() {
            return Ok(());
        }
        let mut seen = std::collections::HashSet::new();
        self.0.retain(|command| seen.insert(command.clone()));
        let shown: Vec<String> = self
            .0
            .iter()
            .map(|c| format!("`{}`", foreign::escaped(c)))
            .collect();
        Err(CommandError::usage(format!(
            "the results in {} contain commands that --resume would run: {}. If you trust their author, add \
             --allow-commands",
            dir.display(),
            shown.join(", ")
        )))
    }
}

/// Refuses to resume a document of which nothing is left to measure, or with a number of ranks that
/// differs from that of its start.
///
/// # Errors
/// If one of these is so.
pub fn check_resume<D: Collection>(
    writer: &CollectionWriter<D>,
    can_resume: bool,
    begun: u32,
    now: u32,
) -> Result<(), CommandError> {
    let kind = D::KIND_NAME;
    if !can_resume {
        return Err(CommandError::usage(format!(
            "the {kind} in {} is complete: there is nothing to resume",
            writer.dir().path().display()
        )));
    }
    if begun == now {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "the {kind} was started with {} and there {}: start the same number with --processes or \
         the launcher",
        counted(u64::from(begun), "process", "processes"),
        match now {
            1 => "is 1 now".to_owned(),
            n => format!("are {n} now"),
        }
    )))
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
        let refusal = of(&commands).check(dir, false).unwrap_err().message;
        assert!(
            refusal.contains(r"would run: `echo \u001b[8m`, `date`. If you trust"),
            "{refusal}"
        );
        assert!(of(&commands).check(dir, true).is_ok());
    }
}
