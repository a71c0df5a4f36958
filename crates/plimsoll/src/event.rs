//! Events of a run: what happens to the system under test at a time, and who does it.
//!
//! `--event` is read by [`EventSpec`], and checked here; `event/executor.rs` executes actions, and
//! `event/runner.rs` does so at their times, on threads of its own. Faults of test beds are in
//! `event/bed.rs`.

mod bed;
mod executor;
mod runner;

pub use bed::executor;
pub use executor::{EventExecutor, ShellExecutor};
pub use plimsoll_plan::event::{Action, EventSpec};
pub use runner::{EventRunner, ExecutedEvents};

/// Whether an event can be executed on a target. Events of simulated systems are part of its URL
/// instead.
///
/// # Errors
/// A sentence if commands are not `allowed`, or if the target has no elements that can fail.
pub fn check(event: &EventSpec, target: &str, allowed: bool) -> Result<(), String> {
    match &event.action {
        Action::Command(_) if !allowed => Err(format!(
            "--event '{event}' runs a shell command: allow it with --allow-commands"
        )),
        Action::Command(_) => Ok(()),
        Action::Fault(fault) if plimsoll_target::testbed::name_of(target).is_some() => {
            bed::check(target, fault).map_err(|e| format!("--event '{event}': {e}"))
        }
        Action::Fault(_) => Err(format!(
            "--event '{event}' needs a test bed (testbed:NAME) or a simulated system (sim:SYSTEM): \
             the target is {target}; `TIME sh COMMAND` runs a command of your own"
        )),
    }
}

/// The events that a document keeps, which may have been edited, for runs on a target. That its
/// commands are allowed is checked elsewhere (`KeptCommands`).
///
/// # Errors
/// A sentence if one of them is none, or as those of [`check`].
pub fn kept(texts: &[String], target: &str) -> Result<Vec<EventSpec>, String> {
    let read = |text: &String| {
        let event: EventSpec = text.parse().map_err(|e| format!("event '{text}': {e}"))?;
        check(&event, target, true).map(|()| event)
    };
    texts.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> EventSpec {
        text.parse().unwrap()
    }

    #[test]
    fn events_of_a_document_are_checked_again() {
        let kept = |text: &str| super::kept(&[text.to_owned()], "posix");
        assert_eq!(kept("1s sh true").unwrap(), [read("1s sh true")]);
        assert!(kept("1s kill a").unwrap_err().contains("needs a test bed"));
        assert!(
            kept("1s")
                .unwrap_err()
                .starts_with("event '1s': expected TIME")
        );
    }

    #[test]
    fn what_cannot_be_executed_is_refused() {
        let refused = |text: &str, target: &str, allowed| check(&read(text), target, allowed);
        assert_eq!(refused("1s sh true", "posix", true), Ok(()));
        for (text, target, expected) in [
            ("1s sh true", "posix", "allow it with --allow-commands"),
            (
                "1s kill server.2",
                "nfs3://h/x",
                "needs a test bed (testbed:NAME) or",
            ),
            (
                "1s explode server.2",
                "testbed:trio",
                "`explode` is not an action: expected one of kill,",
            ),
        ] {
            let error = refused(text, target, false).unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(error.starts_with(&format!("--event '{text}'")), "{error}");
        }
    }
}
