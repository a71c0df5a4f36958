//! Errors of test beds.

use crate::needs::Need;

/// Reason why a test bed cannot be started, used or ended.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// Programs that the kind of the bed needs are not installed.
    #[error("{}", missing(.0))]
    Missing(Vec<Need>),
    /// The name of a bed, an option, or a fault is wrong; the text is the reason.
    #[error("{0}")]
    Usage(String),
    /// The user lacks rights on this machine; the text names the rights.
    #[error("{0}")]
    Rights(String),
    /// A command, a file operation, or a request to the keeper has failed.
    #[error("{what}: {why}")]
    Failed {
        /// Action that failed, or its object, such as a path.
        what: String,
        /// Reason of the failure, from the system or the program.
        why: String,
    },
}

impl BedError {
    /// An error with the failed action or object, and the reason.
    pub fn failed(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Failed {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// Converts an I/O error at a path.
    pub(crate) fn at(path: &std::path::Path) -> impl Fn(std::io::Error) -> Self {
        let path = path.display().to_string();
        move |e| Self::failed(path.clone(), e)
    }
}

fn missing(needs: &[Need]) -> String {
    let programs: Vec<String> = needs.iter().map(|n| format!("`{}`", n.program)).collect();
    let programs = programs.join(", ");
    let are = if needs.len() == 1 { "is" } else { "are" };
    let commands = Need::install_commands(needs).join(" && ");
    format!("{programs} {are} not installed; install with: {commands}")
}
