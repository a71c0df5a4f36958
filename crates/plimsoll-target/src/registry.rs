//! The table of targets, and properties that follow from the scheme of a URL.

use crate::any::AnyTarget;
use crate::connect::{Purpose, TargetError, Visitor};
use crate::posix::device;
use crate::posix::uring::IoMethod;
use crate::scheme::{FileStorage, TargetScheme};
#[cfg(feature = "simulation")]
use crate::simulated;
use crate::verifying::{Ledger, VerifyingTarget};
use crate::{nfs3, nfs4, null, posix, sim};
use plimsoll_diagnostics::nearest;
use plimsoll_measure::ClockKind;
use plimsoll_plan::WorkDirSpec;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Registers modules as targets: each module has a `SCHEME` and a function `connect`.
macro_rules! targets {
    ($($module:ident),* $(,)?) => {
        /// All targets.
        pub const SCHEMES: &[TargetScheme] = &[$($module::SCHEME),*];

        /// Connects to the target of a URL by the module of the URL's scheme, or by `posix::uring` for the option
        /// `io=uring`.
        fn connect_any(
            url: &str,
            place: &WorkDirSpec,
            purpose: Purpose,
        ) -> Result<AnyTarget, TargetError> {
            let name = scheme_name(url);
            if io_method(url) == IoMethod::Uring {
                return Ok(posix::uring::connect(url, place, purpose)?.into());
            }
            #[cfg(feature = "simulation")]
            if simulated::is_known(url) {
                return Ok(simulated::connect(url, place, purpose)?.into());
            }
            $(if name == $module::SCHEME.name {
                return Ok($module::connect(url, place, purpose)?.into());
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

targets!(posix, device, null, sim, nfs3, nfs4);

/// Connects to the target of a URL, and passes the target to `visitor`.
///
/// # Errors
/// See [`TargetError`].
pub fn connect<V: Visitor>(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
    visitor: V,
) -> Result<V::Output, TargetError> {
    Ok(match connect_any(url, place, purpose)? {
        AnyTarget::Posix(target) => visitor.visit(target),
        AnyTarget::Uring(target) => visitor.visit(target),
        AnyTarget::Null(target) => visitor.visit(target),
        AnyTarget::Sim(target) => visitor.visit(target),
        target => visitor.visit(target),
    })
}

/// Connects as [`connect`] does, to a target whose sessions write verifiable contents, check the contents of reads, and
/// note acknowledged operations in `ledger`. The sessions of a target that keeps no files verify nothing.
///
/// # Errors
/// See [`TargetError`].
pub fn connect_verifying<V: Visitor>(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
    ledger: Arc<Ledger>,
    visitor: V,
) -> Result<V::Output, TargetError> {
    match keeps_files(url) {
        true => {
            let inner = connect_any(url, place, purpose)?;
            Ok(visitor.visit(VerifyingTarget { inner, ledger }))
        }
        false => connect(url, place, purpose, visitor),
    }
}

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

/// The clock of runs on the target of a URL: a simulated system exists only in virtual time.
#[must_use]
pub fn clock(url: &str) -> ClockKind {
    let name = scheme_name(url);
    let is_virtual = name == sim::SCHEME.name || name == null::SCHEME.name && null::is_virtual(url);
    match is_virtual {
        true => ClockKind::Virtual,
        false => ClockKind::Real,
    }
}

/// Whether events can happen to the target of a URL.
#[must_use]
pub fn takes_events(url: &str) -> bool {
    scheme_of(url).is_some_and(|scheme| scheme.takes_events)
}

/// How the target of a URL executes file operations; [`IoMethod::Sync`] for a target that is neither `posix` nor
/// `device`.
#[must_use]
pub fn io_method(url: &str) -> IoMethod {
    let name = scheme_name(url);
    match name == posix::SCHEME.name || name == device::SCHEME.name {
        true => posix::uring::method(url),
        false => IoMethod::Sync,
    }
}

/// The reason why the machine's kernel does not offer io_uring to this process, as part of a sentence; `None` if
/// io_uring is available.
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

/// Path of the block device in the URL of a target; `None` for another kind of target.
#[must_use]
pub fn device_of(url: &str) -> Option<&Path> {
    device::is_device(url).then(|| device::path_of(url))
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
    let has = |name: &str| option_of(url, name).is_some();
    if !is_remote(url) || has("timeo") || has("added_rtt") {
        return url.to_owned();
    }
    let limited = with_option(url, "timeo", &format!("{}ms", limit.as_millis()));
    if has("retrans") {
        limited
    } else {
        with_option(&limited, "retrans", "0")
    }
}

/// Value of an option in the URL of a target; `None` if the URL lacks the option.
#[must_use]
pub fn option_of<'u>(url: &'u str, name: &str) -> Option<&'u str> {
    let (_, options) = url.split_once('?')?;
    let mut pairs = options.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// The URL of a target with an option, which replaces the option's value in the URL.
#[must_use]
pub fn with_option(url: &str, name: &str, value: &str) -> String {
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let colon = if place.contains(':') { "" } else { ":" };
    let own = format!("{name}={value}");
    let is_other = |pair: &&str| !pair.is_empty() && pair.split('=').next() != Some(name);
    let others = options.split('&').filter(is_other);
    let all: Vec<&str> = others.chain([own.as_str()]).collect();
    format!("{place}{colon}?{}", all.join("&"))
}

/// The absolute path of a work directory: on a local target, a relative path is below the current directory; on a
/// server, a relative path is below the exported directory.
///
/// # Errors
/// The operating system's error if the process has no current directory.
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
    TargetError::Unknown {
        scheme: scheme.into(),
        known: names().collect::<Vec<_>>().join(", "),
        hint: match nearest(scheme, names()) {
            Some(name) => format!(", did you mean `{name}`?"),
            None if scheme.contains('/') => "; a directory is given by --dir".into(),
            None => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::ClockKind;
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
            ("posix:?io=aio", "io `aio`: expected sync, uring or auto"),
            ("null:?latency=2h", "expected at most 1h"),
            ("posix:?clock=virtual", "unknown option `clock`"),
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
    fn an_option_replaces_the_option_of_the_url() {
        for (url, expected) in [
            ("posix", "posix:?lanes=4"),
            ("null:", "null:?lanes=4"),
            ("null:?", "null:?lanes=4"),
            ("null:?lanes=2", "null:?lanes=4"),
            ("null:?lanes=2&latency=1ms", "null:?latency=1ms&lanes=4"),
            ("nfs3://h:1/x?lanes_=1", "nfs3://h:1/x?lanes_=1&lanes=4"),
        ] {
            let with = with_option(url, "lanes", "4");
            assert_eq!(with, expected);
            assert_eq!(option_of(&with, "lanes"), Some("4"));
        }
        assert_eq!(option_of("null:?lanes_=2&x", "lanes"), None);
    }

    #[test]
    fn every_listed_option_is_known_to_the_parser() {
        for scheme in SCHEMES {
            let url = match scheme.storage {
                FileStorage::Server => format!("{}://h/x", scheme.name),
                _ => scheme.name.to_owned(),
            };
            for option in scheme.options() {
                let checked = check_url(&with_option(&url, option, "?"));
                let reason = checked.map_or_else(|e| e.to_string(), |()| String::new());
                assert!(!reason.contains("unknown option"), "{option}: {reason}");
            }
        }
    }

    #[test]
    fn some_urls_select_virtual_time() {
        for url in ["sim:edge-32", "null:?latency=1ms&clock=virtual"] {
            assert_eq!(clock(url), ClockKind::Virtual, "{url}");
        }
        for url in [
            "posix",
            "null:",
            "null:?latency=1ms&clock=real",
            "nfs3://h/x",
        ] {
            assert_eq!(clock(url), ClockKind::Real, "{url}");
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
