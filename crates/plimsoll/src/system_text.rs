//! The text of the simulated system of results that are resumed.

use crate::exit::CommandError;
use plimsoll_sim::BUILTIN;

/// Fingerprint of the present text of a simulated system; `None` for another target.
///
/// # Errors
/// If the system does not exist.
pub fn fingerprint(target: &str) -> Result<Option<String>, CommandError> {
    plimsoll_target::system_fingerprint(target).map_err(CommandError::usage)
}

/// Refuses a simulated system whose text has another fingerprint than when the results were begun, by
/// this version of Plimsoll.
///
/// # Errors
/// If it differs, or cannot be read.
pub fn check(target: &str, begun: Option<&String>, version: &str) -> Result<(), CommandError> {
    if begun.is_none() || fingerprint(target)?.as_ref() == begun {
        return Ok(());
    }
    Err(CommandError::usage(match built_in(target) {
        Some(name) => format!(
            "the built-in system `{name}` differs in this version of Plimsoll: resume with version \
             {version}, or start a new measurement"
        ),
        None => format!(
            "the system of {target} has changed since the first run: restore it, or start a new \
             measurement"
        ),
    }))
}

/// The name of the built-in system of a target; `None` for the path of a system, or another target.
fn built_in(target: &str) -> Option<&'static str> {
    let system = target.strip_prefix("sim:")?;
    let name = system.split_once('?').map_or(system, |(name, _)| name);
    let mut names = BUILTIN.iter().map(|(name, _)| *name);
    names.find(|built_in| *built_in == name)
}

/// The note of results without a fingerprint of their simulated system, such as those of earlier
/// versions of Plimsoll.
pub fn unknown(target: &str) -> String {
    format!(
        "the first process did not record the text of the system of {target}: it may have changed \
         before the measurement was resumed"
    )
}
