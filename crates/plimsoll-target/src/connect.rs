//! Connecting to a target: what for, who is given it, and why it fails.

use crate::error::OpError;
use crate::session::Target;
use std::ops::Range;
use std::path::PathBuf;

/// Code that is generic over the target it is given.
pub trait Visitor {
    /// The result of the visit.
    type Output;

    /// Called with the target.
    fn visit<T: Target>(self, target: T) -> Self::Output;
}

/// Maximum attempts to create a work directory that others remove before the directory is opened.
pub(crate) const MAX_CREATIONS: u32 = 16;

/// The purpose of a connection to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To put load on it: a missing work directory is created.
    Load,
    /// To look only: nothing is created.
    Inspect,
}

/// Why a target cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No target has the scheme.
    #[error("unknown target `{scheme}`: expected one of {known}{hint}")]
    Unknown {
        /// The requested scheme.
        scheme: String,
        /// The known schemes.
        known: String,
        /// `, did you mean …`, `; a directory …`, or nothing.
        hint: String,
    },
    /// The URL or the server it names cannot be used.
    #[error("target `{target}`: {reason}")]
    Option {
        /// The scheme.
        target: &'static str,
        /// The reason, as a part of a sentence.
        reason: String,
    },
    /// A part of the URL is wrong; the message shows which.
    #[error("target `{target}`: {reason}\n{}", underlined(.url, .at))]
    Url {
        /// The scheme.
        target: &'static str,
        /// The reason, as a part of a sentence.
        reason: String,
        /// The whole URL.
        url: String,
        /// The wrong part, in bytes.
        at: Range<usize>,
    },
    /// The directory cannot be used.
    #[error("`{}`: {error}", path.display())]
    Place {
        /// The directory.
        path: PathBuf,
        /// The error of the system or the server.
        error: OpError,
    },
    /// A server's replies about the directory cannot be decoded.
    #[error("`{}`: {why}", path.display())]
    Malformed {
        /// The directory.
        path: PathBuf,
        /// Which replies, and where.
        why: String,
    },
    /// The parent of the work directory does not exist.
    #[error(
        "`{}` does not exist: Plimsoll creates the work directory, but not the directory that \
         holds it", .0.display()
    )]
    NoParent(PathBuf),
    /// The work directory, or a directory that holds it, is a file.
    #[error("`{}` is not a directory", .0.display())]
    NotDir(PathBuf),
    /// The work directory is another user's, in a directory that everyone may write to.
    #[error(
        "`{}` belongs to user {uid} and lies in a directory that everyone may write to: choose a \
         directory of your own", path.display()
    )]
    OfAnother {
        /// The directory, or the symbolic link in its place.
        path: PathBuf,
        /// Its owner.
        uid: u32,
    },
}

impl TargetError {
    /// An error of the target of a scheme.
    pub(crate) fn of(target: &'static str, reason: impl Into<String>) -> Self {
        Self::Option {
            target,
            reason: reason.into(),
        }
    }
}

/// The URL with a part of it underlined.
fn underlined(url: &str, at: &Range<usize>) -> String {
    let columns = |part: Range<usize>| {
        let part = url.get(part).expect("the part was cut out of the URL");
        part.chars().count()
    };
    let before = " ".repeat(columns(0..at.start));
    let under = "^".repeat(columns(at.clone()).max(1));
    format!("  {url}\n  {before}{under}")
}
