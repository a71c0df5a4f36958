//! Why a test bed cannot be used.

use crate::needs::Need;

/// Why a test bed cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// Programs are not installed.
    #[error("{}", missing(.0))]
    Missing(Vec<Need>),
    /// The request is wrong: a name, an option, or an action.
    #[error("{0}")]
    Usage(String),
    /// The needed rights are not available.
    #[error("{0}")]
    Rights(String),
    /// Something failed.
    #[error("{what}: {why}")]
    Failed {
        /// What failed.
        what: String,
        /// The reason.
        why: String,
    },
}

impl BedError {
    /// An error of something that failed for a reason.
    pub fn failed(what: impl Into<String>, why: impl ToString) -> Self {
        Self::Failed {
            what: what.into(),
            why: why.to_string(),
        }
    }

    /// An error of a path.
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
