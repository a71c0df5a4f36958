//! Errors of test beds.

use crate::needs::Need;

/// Why a test bed cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// Programs are not installed.
    #[error("{}", missing(.0))]
    Missing(Vec<Need>),
    /// A name, an option, or an action is wrong; the text says why.
    #[error("{0}")]
    Usage(String),
    /// Rights are missing; the text says which.
    #[error("{0}")]
    Rights(String),
    /// An action failed.
    #[error("{what}: {why}")]
    Failed {
        /// The failed action or its object, such as a path.
        what: String,
        /// The reason.
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
