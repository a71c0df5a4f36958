//! The table of targets, and properties that follow from the scheme of a URL.

use crate::connect::{Purpose, TargetError, Visitor};
use crate::scheme::{FileStorage, TargetScheme};
#[cfg(feature = "simulation")]
use crate::simulated;
use crate::{nfs3, nfs4, null, posix, sim};
use plimsoll_plan::WorkDirSpec;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Registers modules as targets: each module has a `SCHEME` and a function `connect`.
macro_rules! targets {
    ($($module:ident),* $(,)?) => {
        /// All targets.
        pub const SCHEMES: &[TargetScheme] = &[$($module::SCHEME),*];

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
            let name = scheme_name(url);
            if uses_uring(url) {
                return Ok(visitor.visit(posix::uring::connect(url, place, purpose)?));
            }
            #[cfg(feature = "simulation")]
            if simulated::is_known(url) {
                return Ok(visitor.visit(simulated::connect(url, place, purpose)?));
            }
            $(if name == $module::SCHEME.name {
                return Ok(visitor.visit($module::connect(url, place, purpose)?));
            })*
            Err(unknown(name))
        }

        /// Checks the URL of a target without connecting. Loads the system of a simulated target.
        ///
        /// # Errors
        /// The error in the URL. The existence of the URL's server is not checked.
        pub fn check_url(url: &str) -> Result<(), TargetError> {
            let name = scheme_name(url);
            $(if name == $module::SCHEME.name {
                return $module::check_url(url);
            })*
            Err(unknown(name))
        }
    };
}

targets!(posix, null, sim, nfs3, nfs4);

/// The scheme of a run's default target.
pub const DEFAULT_TARGET: &str = posix::SCHEME.name;

fn scheme_name(url: &str) -> &str {
    url.split_once(':').map_or(url, |(scheme, _)| scheme)
}

/// The description of a URL's scheme; `None` for an unknown scheme.
#[must_use]
pub fn scheme_of(url: &str) -> Option<&'static TargetScheme> {
    #[cfg(feature = "simulation")]
    if simulated::is_known(url) {
        return Some(&simulated::SCHEME);
    }
    let name = scheme_name(url);
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

fn is_stored(url: &str, storage: FileStorage) -> bool {
    scheme_of(url).is_some_and(|scheme| scheme.storage == storage)
}

/// Whether the target of a URL exists only in virtual time.
#[must_use]
pub fn is_virtual(url: &str) -> bool {
    scheme_of(url).is_some_and(|scheme| scheme.is_virtual)
}

/// Whether events can happen to the target of a URL.
#[must_use]
pub fn takes_events(url: &str) -> bool {
    scheme_of(url).is_some_and(|scheme| scheme.takes_events)
}

/// Whether the target of a URL makes system calls through io_uring.
#[must_use]
pub fn uses_uring(url: &str) -> bool {
    scheme_name(url) == posix::SCHEME.name && posix::uring::is_requested(url)
}

/// Whether the target of a URL can make system calls through io_uring on a machine with io_uring.
#[must_use]
pub fn can_use_uring(url: &str) -> bool {
    scheme_name(url) == posix::SCHEME.name
}

/// The reason why io_uring is unavailable on this machine, as part of a sentence; `None` if it is
/// available.
#[must_use]
pub fn uring_unavailable() -> Option<String> {
    posix::uring::unavailable()
}

/// Names of the rows for the procedures that the target of a URL calls on a server.
#[must_use]
pub fn procedures(url: &str) -> Vec<&'static str> {
    scheme_of(url).map_or(vec![], |scheme| (scheme.row_names)())
}

/// Whether the target of a URL keeps files; `false` for an unknown scheme.
#[must_use]
pub fn keeps_files(url: &str) -> bool {
    scheme_of(url).is_some_and(TargetScheme::keeps_files)
}

/// Whether the files of a URL's target are in a file system of this machine.
#[must_use]
pub fn is_local(url: &str) -> bool {
    is_stored(url, FileStorage::Local)
}

/// Whether the files of a URL's target are on a server, where local paths have no meaning.
#[must_use]
pub fn is_remote(url: &str) -> bool {
    is_stored(url, FileStorage::Server)
}

/// The URL of the same target with calls that fail after `limit` without a reply, for optional work. A URL with `timeo`
/// or `added_rtt` is returned unchanged.
#[must_use]
pub fn with_silence_limit(url: &str, limit: Duration) -> String {
    let options = url.split_once('?').map_or("", |(_, options)| options);
    let has = |name: &str| options.split('&').any(|o| o.starts_with(name));
    if !is_remote(url) || has("timeo=") || has("added_rtt=") {
        return url.to_owned();
    }
    let separator = match (url.contains('?'), options.is_empty()) {
        (false, _) => "?",
        (true, true) => "",
        (true, false) => "&",
    };
    let retries = if has("retrans=") { "" } else { "&retrans=0" };
    format!("{url}{separator}timeo={}ms{retries}", limit.as_millis())
}

/// Makes a work directory's path absolute: a local relative path is below the current directory, a server's relative
/// path is below the exported directory.
///
/// # Errors
/// The operating system's error if there is no current directory.
pub fn absolute(url: &str, dir: &Path) -> std::io::Result<PathBuf> {
    let dir = match is_local(url) {
        true => std::path::absolute(dir)?,
        false => Path::new("/").join(dir),
    };
    // Drops `.` components and a trailing slash.
    Ok(dir.components().collect())
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

#[cfg(test)]
mod tests {
    use super::{check_url, with_silence_limit};
    use std::time::Duration;

    #[test]
    fn urls_are_checked_without_a_connection() {
        for good in [
            "posix",
            "null:?latency=1ms",
            "sim:edge-32?event=30s,down,edge.3",
            "nfs3://no.such.host/x?mountport=1",
            "nfs4://no.such.host/x?minorversion=0",
        ] {
            let checked = check_url(good).map_err(|e| e.to_string());
            assert_eq!(checked, Ok(()), "{good}");
        }
        for (bad, reason) in [
            ("posix:?io=aio", "unknown io `aio`"),
            ("null:?latency=2h", "too long"),
            ("sim:none-such", "none-such"),
            ("nfs3://h", "there is no export"),
            ("nfs4://h/x?slots=0", "slots"),
            ("nul:", "did you mean `null`?"),
        ] {
            let error = check_url(bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }

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
