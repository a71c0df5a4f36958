//! Events of a run: what happens to the system under test at a time, and who does it.
//!
//! `--event` is read by [`EventSpec`]; `executor` executes actions, and `runner` does so at their times, on threads of its
//! own.

mod executor;
mod runner;

pub(crate) use executor::{EventExecutor, ShellExecutor};
pub use plimsoll_plan::event::{Action, EventSpec};
pub(crate) use runner::{EventRunner, ExecutedEvents};

/// Checks that an event can happen on a real target. Events of a simulated system are part of the URL of the system.
///
/// # Errors
/// A message if the event is a fault, which only a simulated system can have.
pub fn check(event: &EventSpec, target: &str) -> Result<(), String> {
    match &event.action {
        Action::Command(_) => Ok(()),
        Action::Fault(_) => Err(format!(
            "--event '{event}' needs a simulated system (sim:SYSTEM): the target is {target}; \
             `TIME sh COMMAND` runs a command of your own"
        )),
    }
}

/// Parses the events of a series document, which a user may have edited, for runs on a real target.
///
/// # Errors
/// A message if a text is not an event; otherwise as for [`check`].
pub(crate) fn read(texts: &[String], target: &str) -> Result<Vec<EventSpec>, String> {
    let read = |text: &String| {
        let event: EventSpec = text.parse().map_err(|e| format!("event '{text}': {e}"))?;
        check(&event, target).map(|()| event)
    };
    texts.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_document_are_checked_again() {
        let kept = |text: &str| read(&[text.to_owned()], "posix");
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
