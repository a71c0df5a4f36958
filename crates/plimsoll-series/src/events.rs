//! Timed events: actions on the system under test at given times of a run, and the threads that execute the actions.
//! The module `commands` runs the hooks around phases.

mod executor;
mod runner;

pub(crate) use executor::{EventExecutor, ShellExecutor};
pub use plimsoll_plan::event::{Action, EventSpec, When};
use plimsoll_plan::{Phase, Plan};
pub(crate) use runner::{EventRunner, ExecutedEvents};

/// Checks that this program can execute an event in a run on a target. Faults of a simulated system must be part of the
/// system's URL.
///
/// # Errors
/// A message if the event is a fault, which only a simulated system can execute, or a timed command on a simulated
/// system.
pub fn check(event: &EventSpec, target: &str) -> Result<(), String> {
    match (&event.action, &event.when) {
        (Action::Command(_), When::At { .. }) if plimsoll_target::takes_events(target) => {
            Err(format!(
                "--event '{event}': a simulated system is in virtual time, in which no command can run: \
                 expected TIME down WHAT, TIME up WHAT, TIME slow WHAT FACTOR, before [PHASE] sh COMMAND or after [PHASE] sh COMMAND"
            ))
        }
        (Action::Command(_), _) => Ok(()),
        (Action::Fault(_), _) => Err(format!(
            "--event '{event}' needs a simulated system (sim:SYSTEM): the target is {target}; \
             `TIME sh COMMAND` runs a command of your own"
        )),
    }
}

/// Checks that a run of a Plan on a target has every phase that an event refers to.
///
/// # Errors
/// A message about the first event whose phase the run lacks, with the phases of the run.
pub fn check_phases(events: &[EventSpec], plan: &Plan, target: &str) -> Result<(), String> {
    let populates = plimsoll_target::keeps_files(target)
        && plan
            .script
            .iter()
            .any(|phase| matches!(phase, Phase::Populate { filesets } if !filesets.is_empty()));
    let phases: Vec<&str> = match plan.pattern() {
        Some(pattern) => {
            let mut names: Vec<&str> = Vec::new();
            for stage in &pattern.stages {
                if !names.contains(&stage.name.as_str()) {
                    names.push(&stage.name);
                }
            }
            names
        }
        None if populates => vec!["populate", "load"],
        None => vec!["load"],
    };
    let unknown = |event: &&EventSpec| event.phase().is_some_and(|p| !phases.contains(&p));
    match events.iter().find(unknown) {
        None => Ok(()),
        Some(event) => Err(format!(
            "--event '{event}': the run has no such phase: expected {}",
            phases.join(", ")
        )),
    }
}

/// Parses the events of a series document, which the user may have edited.
///
/// # Errors
/// A message if a text is not an event, or the error of [`check`].
pub fn read(texts: &[String], target: &str) -> Result<Vec<EventSpec>, String> {
    let mut events = Vec::new();
    for text in texts {
        let event: EventSpec = text.parse().map_err(|e| format!("event '{text}': {e}"))?;
        // Faults of a simulated system are part of the system's URL.
        if !matches!(event.action, Action::Fault(_)) || !plimsoll_target::takes_events(target) {
            check(&event, target)?;
            events.push(event);
        }
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_document_are_checked_again() {
        let kept = |text: &str| read(&[text.to_owned()], "posix");
        let on_system = |text: &str| read(&[text.to_owned()], "sim:edge-32");
        assert_eq!(on_system("1s down edge.3"), Ok(vec![]));
        assert_eq!(on_system("before sh true").unwrap().len(), 1);
        assert!(
            on_system("1s sh true")
                .unwrap_err()
                .contains("no command can run")
        );
        assert_eq!(kept("1s sh true").unwrap(), ["1s sh true".parse().unwrap()]);
        assert!(
            kept("1s kill a")
                .unwrap_err()
                .contains("needs a simulated system")
        );
        assert!(
            kept("1s")
                .unwrap_err()
                .starts_with("event '1s': expected TIME")
        );
    }
}
