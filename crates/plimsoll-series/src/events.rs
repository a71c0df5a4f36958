//! Events of a run: what happens to the system under test at a time, and who does it.
//!
//! `--event` is read by [`EventSpec`]; `executor` executes actions, and `runner` does so at their times, on threads of its
//! own.

mod executor;
mod runner;

pub use executor::{EventExecutor, Execution, ShellExecutor};
pub use plimsoll_plan::event::{Action, EventSpec};
pub(crate) use runner::{EventRunner, ExecutedEvents};

/// Whether this program can execute an event on a target other than a test bed. The URL of a simulated system has its
/// events instead.
///
/// # Errors
/// A sentence if the target has no elements that can fail.
pub fn check(event: &EventSpec, target: &str) -> Result<(), String> {
    match &event.action {
        Action::Command(_) => Ok(()),
        Action::Fault(_) => Err(format!(
            "--event '{event}' needs a test bed (testbed:NAME) or a simulated system (sim:SYSTEM): \
             the target is {target}; `TIME sh COMMAND` runs a command of your own"
        )),
    }
}

/// Reads the events of a document, which may have been edited, and checks each.
///
/// # Errors
/// A sentence if one of them is none, or as those of `check`.
pub fn read(
    texts: &[String],
    check: &dyn Fn(&EventSpec) -> Result<(), String>,
) -> Result<Vec<EventSpec>, String> {
    let read = |text: &String| {
        let event: EventSpec = text.parse().map_err(|e| format!("event '{text}': {e}"))?;
        check(&event).map(|()| event)
    };
    texts.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_document_are_checked_again() {
        let kept = |text: &str| read(&[text.to_owned()], &|event| check(event, "posix"));
        assert_eq!(kept("1s sh true").unwrap(), ["1s sh true".parse().unwrap()]);
        assert!(kept("1s kill a").unwrap_err().contains("needs a test bed"));
        assert!(
            kept("1s")
                .unwrap_err()
                .starts_with("event '1s': expected TIME")
        );
    }
}
