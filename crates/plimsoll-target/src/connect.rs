//! Connecting to a target: purposes, visitors and errors.

use crate::error::OpError;
use crate::session::Target;
use std::ops::Range;
use std::path::PathBuf;

/// Code that is generic over the type of the connected target.
pub trait Visitor {
    /// The result of the visit.
    type Output;

    /// Runs the code with the connected target.
    fn visit<T: Target>(self, target: T) -> Self::Output;
}

/// Maximum number of attempts to create a work directory that other processes remove again before Plimsoll has opened
/// the directory.
pub(crate) const MAX_CREATIONS: u32 = 16;

/// The purpose of a connection to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Load on the target: a missing work directory is created.
    Load,
    /// Inspection of the work directory before a run: a missing work directory is not created, and is no error.
    Inspect,
}

/// Errors of parsing a target URL and of connecting to a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The URL has a scheme that no target has; the message lists the known schemes.
    #[error("unknown target `{scheme}`: expected one of {known}{hint}")]
    Unknown {
        /// The requested scheme.
        scheme: String,
        /// The known schemes.
        known: String,
        /// `, did you mean …`, `; a directory …`, or nothing.
        hint: String,
    },
    /// The URL or its server cannot be used.
    #[error("target `{target}`: {reason}")]
    Option {
        /// The scheme.
        target: &'static str,
        /// The reason, as part of a sentence.
        reason: String,
    },
    /// A part of the URL is wrong; the message underlines the part.
    #[error("target `{target}`: {reason}\n{}", underlined(.url, .at))]
    Url {
        /// The scheme.
        target: &'static str,
        /// The reason, as part of a sentence.
        reason: String,
        /// The whole URL.
        url: String,
        /// The byte range of the wrong part in the URL.
        at: Range<usize>,
    },
    /// The work directory cannot be used.
    #[error("`{}`: {error}", path.display())]
    Place {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system or of the server.
        error: OpError,
    },
    /// The server's replies about the directory cannot be decoded.
    #[error("`{}`: {why}", path.display())]
    Malformed {
        /// The directory.
        path: PathBuf,
        /// The replies that cannot be decoded, and the position of the failure.
        why: String,
    },
    /// The parent of the work directory does not exist.
    #[error(
        "`{}` does not exist: Plimsoll creates the work directory, but not the directory that \
         holds it", .0.display()
    )]
    NoParent(PathBuf),
    /// The work directory, or one of its parent directories, is a file.
    #[error("`{}` is not a directory", .0.display())]
    NotDir(PathBuf),
    /// The work directory belongs to another user and lies in a directory that everyone may write
    /// to.
    #[error(
        "`{}` belongs to user {uid} and lies in a directory that everyone may write to: choose a \
         directory of your own", path.display()
    )]
    OfAnother {
        /// The work directory, or the symbolic link at its path.
        path: PathBuf,
        /// The owner's user id.
        uid: u32,
    },
}

impl TargetError {
    /// The error that the URL or the server of a target with scheme `target` cannot be used.
    pub(crate) fn of(target: &'static str, reason: impl Into<String>) -> Self {
        Self::Option {
            target,
            reason: reason.into(),
        }
    }
}

/// The URL with a wrong part underlined.
fn underlined(url: &str, at: &Range<usize>) -> String {
    let columns = |part: Range<usize>| {
        let part = url.get(part).expect("the part was cut out of the URL");
        part.chars().count()
    };
    let before = " ".repeat(columns(0..at.start));
    let under = "^".repeat(columns(at.clone()).max(1));
    format!("  {url}\n  {before}{under}")
}
