//! Targets by the scheme of their URL.

use crate::error::OpError;
use crate::session::Target;
use plimsoll_plan::{WorkDirSpec, parse_duration};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Code that is generic over the target it is given.
pub trait Visitor {
    /// What it returns.
    type Output;

    /// Called with the target.
    fn visit<T: Target>(self, target: T) -> Self::Output;
}

/// Why a target cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nobody answers to the scheme.
    #[error("unknown target `{scheme}`: expected one of {known}{hint}")]
    Unknown {
        /// What was asked for.
        scheme: String,
        /// What there is.
        known: String,
        /// `, did you mean …`, `; a directory …`, or nothing.
        hint: String,
    },
    /// A part of the URL means nothing to the target.
    #[error("target `{target}`: {reason}")]
    Option {
        /// The scheme.
        target: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A part of the URL is wrong, which is shown.
    #[error("target `{target}`: {reason}\n{}", picture(.url, .at))]
    Url {
        /// The scheme.
        target: &'static str,
        /// What is wrong.
        reason: String,
        /// The whole URL.
        url: String,
        /// The part, in bytes.
        at: Range<usize>,
    },
    /// The directory cannot be used.
    #[error("`{}`: {error}", path.display())]
    Place {
        /// The directory.
        path: PathBuf,
        /// What the system says.
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
    /// The directory that is to hold the work directory is missing.
    #[error(
        "`{}` does not exist: the work directory is made by Plimsoll, the directory that holds \
         it must be there", .0.display()
    )]
    NoParent(PathBuf),
    /// A file is where the work directory, or one that holds it, is to be.
    #[error("`{}` is not a directory", .0.display())]
    NotDir(PathBuf),
}

/// The URL with a part of it underlined.
fn picture(url: &str, at: &Range<usize>) -> String {
    let columns = |part: Option<&str>| part.unwrap_or_default().chars().count();
    let before = " ".repeat(columns(url.get(..at.start)));
    let under = "^".repeat(columns(url.get(at.clone())).max(1));
    format!("  {url}\n  {before}{under}")
}

/// What a target is connected to for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To put load on it: the work directory is made if it is missing.
    Load,
    /// To look only: nothing is made.
    Inspect,
}

/// A kind of target.
#[derive(Debug, Clone, Copy)]
pub struct TargetScheme {
    /// First part of its URLs.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether files that are made are there afterwards, in the work directory.
    pub keeps_files: bool,
}

/// The targets there are.
pub const SCHEMES: &[TargetScheme] = &[
    TargetScheme {
        name: "posix",
        about: "files in the work directory, through system calls",
        keeps_files: true,
    },
    TargetScheme {
        name: "null",
        about: "nothing at all, to measure Plimsoll itself: null:?latency=10ms answers later, &servers=8 \
                that many operations at a time, &stall=1s&stall_after=5s nothing for a while",
        keeps_files: false,
    },
    TargetScheme {
        name: "nfs3",
        about: "files of a server, by NFS version 3 and without the kernel's client: \
                nfs3://host[:port]/export",
        keeps_files: true,
    },
    TargetScheme {
        name: "nfs4",
        about: "files of a server, by NFS version 4.1 or 4.0 and without the kernel's client: \
                nfs4://host[:port]/path",
        keeps_files: true,
    },
];

/// Names of the rows that a target has for the procedures it calls on a server; none for one
/// that calls none.
#[must_use]
pub fn procedures(url: &str) -> Vec<&'static str> {
    match url.split(':').next() {
        Some("nfs3") => crate::nfs3::row_names(),
        Some("nfs4") => crate::nfs4::row_names(),
        _ => vec![],
    }
}

/// Whether the target of a URL keeps files; an unknown one does not.
#[must_use]
pub fn keeps_files(url: &str) -> bool {
    let name = url.split(':').next().unwrap_or_default();
    SCHEMES.iter().any(|s| s.name == name && s.keeps_files)
}

/// The URL of the same target, whose server is given up when it has not answered a call for
/// `longest`: for work that is not worth waiting for. One with a `timeo` or `added_rtt` of its own stays as
/// it is.
#[must_use]
pub fn with_silence_limit(url: &str, longest: Duration) -> String {
    let is_remote = url.starts_with("nfs3:") || url.starts_with("nfs4:");
    let options = url.split_once('?').map_or("", |(_, options)| options);
    let has = |name: &str| options.split('&').any(|o| o.starts_with(name));
    if !is_remote || has("timeo=") || has("added_rtt=") || has("rtt=") {
        return url.to_owned();
    }
    let more = match (url.contains('?'), options.is_empty()) {
        (false, _) => "?",
        (true, true) => "",
        (true, false) => "&",
    };
    let retries = if has("retrans=") { "" } else { "&retrans=0" };
    format!("{url}{more}timeo={}ms{retries}", longest.as_millis())
}

/// A work directory as the target of a URL finds it from anywhere: one of this machine is relative
/// to the current directory, one of a server to what the server exports.
///
/// # Errors
/// What the system says if there is no current directory.
pub fn absolute(url: &str, dir: &Path) -> std::io::Result<PathBuf> {
    let dir = match url.split(':').next() {
        Some("posix") => std::path::absolute(dir)?,
        _ => Path::new("/").join(dir),
    };
    // Without a dot in it or at its end.
    Ok(dir.components().collect())
}

/// Connects to the target of a URL and hands it to `visitor`.
///
/// # Errors
/// See [`TargetError`].
pub fn connect<V: Visitor>(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
    visitor: V,
) -> Result<V::Output, TargetError> {
    let (scheme, rest) = url.split_once(':').unwrap_or((url, ""));
    match scheme {
        "posix" => Ok(visitor.visit(crate::posix::Posix::connect(rest, place, purpose)?)),
        "null" => Ok(visitor.visit(crate::null::Null::connect(rest)?)),
        "nfs3" => Ok(visitor.visit(crate::nfs3::Nfs3::connect(url, place, purpose)?)),
        "nfs4" => Ok(visitor.visit(crate::nfs4::Nfs4::connect(url, place, purpose)?)),
        _ => Err(unknown(scheme)),
    }
}

fn unknown(scheme: &str) -> TargetError {
    let names = || SCHEMES.iter().map(|s| s.name);
    let lower = scheme.to_ascii_lowercase();
    let close = names().find(|n| strsim::damerau_levenshtein(n, &lower) <= 2);
    TargetError::Unknown {
        scheme: scheme.into(),
        known: names().collect::<Vec<_>>().join(", "),
        hint: match close {
            Some(name) => format!(", did you mean `{name}`?"),
            None if scheme.contains('/') => "; a directory is given by --dir".into(),
            None => String::new(),
        },
    }
}

/// Longest time an option may give: the longest latency that is recorded.
const MAX_OPTION_DURATION: Duration = Duration::from_nanos(plimsoll_measure::MAX_LATENCY_NS);

/// The options of a URL: `?name=value&name=value`.
pub(crate) struct UrlOptions {
    target: &'static str,
    left: Vec<(String, String)>,
}

impl UrlOptions {
    pub(crate) fn parse(target: &'static str, rest: &str) -> Result<Self, TargetError> {
        let fail = |reason: String| Err(TargetError::Option { target, reason });
        let Some(query) = rest.strip_prefix('?') else {
            return if rest.is_empty() {
                Ok(Self {
                    target,
                    left: vec![],
                })
            } else {
                fail(format!("`{rest}` means nothing here: expected ?name=value"))
            };
        };
        let mut left: Vec<(String, String)> = Vec::new();
        for pair in query.split('&').filter(|p| !p.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return fail(format!("`{pair}` is not name=value"));
            };
            if left.iter().any(|(n, _)| n == name) {
                return fail(format!("option `{name}` is given twice"));
            }
            left.push((name.into(), value.into()));
        }
        Ok(Self { target, left })
    }

    /// A time of at most [`MAX_OPTION_DURATION`].
    pub(crate) fn duration(&mut self, name: &str) -> Result<Option<Duration>, TargetError> {
        let Some(at) = self.left.iter().position(|(n, _)| n == name) else {
            return Ok(None);
        };
        let (_, value) = self.left.remove(at);
        let wrong = |reason| TargetError::Option {
            target: self.target,
            reason,
        };
        match parse_duration(&value).map_err(wrong)? {
            time if time > MAX_OPTION_DURATION => Err(wrong(format!(
                "{name} {value} is too long: expected at most 1h"
            ))),
            time => Ok(Some(time)),
        }
    }

    /// A whole number from 1 to `most`.
    pub(crate) fn count(&mut self, name: &str, most: u32) -> Result<Option<u32>, TargetError> {
        let Some(at) = self.left.iter().position(|(n, _)| n == name) else {
            return Ok(None);
        };
        let (_, value) = self.left.remove(at);
        match value.parse() {
            Ok(n) if (1..=most).contains(&n) => Ok(Some(n)),
            _ => Err(TargetError::Option {
                target: self.target,
                reason: format!("`{value}` is no number of {name}: expected one from 1 to {most}"),
            }),
        }
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self, known: &str) -> Result<(), TargetError> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => Err(TargetError::Option {
                target: self.target,
                reason: format!("unknown option `{name}`: expected {known}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_silence_limit;
    use std::time::Duration;

    #[test]
    fn urls_that_say_nothing_of_time_are_given_a_limit() {
        let of = |url: &str| with_silence_limit(url, Duration::from_secs(4));
        assert_eq!(of("posix"), "posix");
        assert_eq!(of("null:?latency=1ms"), "null:?latency=1ms");
        let limited = "nfs3://h/x?timeo=4000ms&retrans=0";
        assert_eq!(of("nfs3://h/x"), limited);
        assert_eq!(of("nfs3://h/x?"), limited);
        assert_eq!(
            of("nfs4://h/x?retrans=3"),
            "nfs4://h/x?retrans=3&timeo=4000ms"
        );
        for own in ["nfs3://h/x?timeo=60s", "nfs4://h/x?nconnect=2&added_rtt=5s"] {
            assert_eq!(of(own), own);
        }
    }
}
