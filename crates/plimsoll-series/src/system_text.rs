//! Check, before results are resumed, that the text of a simulated system is unchanged.

use crate::error::SeriesError;
use plimsoll_results::Target;
use plimsoll_sim::BUILTIN;

/// Fingerprint of the current text of a simulated system; `None` for any other target.
///
/// # Errors
/// If the system cannot be found.
pub fn fingerprint(target: &str) -> Result<Option<String>, SeriesError> {
    plimsoll_target::system_fingerprint(target).map_err(SeriesError::refused)
}

/// Refuses a simulated system whose text has changed since the results were begun. `version` is the Plimsoll version of
/// the results.
///
/// # Errors
/// If the fingerprint differs, or the text cannot be read.
pub fn check(target: &Target, version: &str) -> Result<(), SeriesError> {
    let url = &target.url;
    if fingerprint(url)? == target.system {
        return Ok(());
    }
    Err(SeriesError::refused(match built_in(url) {
        Some(name) => format!(
            "the built-in system `{name}` differs in this version of Plimsoll: resume with version \
             {version}, or start a new measurement"
        ),
        None => format!(
            "the system of {url} has changed since the first run: restore it, or start a new \
             measurement"
        ),
    }))
}

/// Name of the built-in system of a target; `None` for a system file or another target.
fn built_in(target: &str) -> Option<&'static str> {
    let system = target.strip_prefix("sim:")?;
    let name = system.split_once('?').map_or(system, |(name, _)| name);
    let mut names = BUILTIN.iter().map(|(name, _)| *name);
    names.find(|built_in| *built_in == name)
}
