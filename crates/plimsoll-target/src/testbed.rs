//! `testbed:NAME` and `testbed:NAME/TARGET`: stand for a target of a test bed, which another process keeps.
//!
//! Only a process in the bed's network can reach it. Such a process is in one bed, so what its name stands
//! for is a value of the process, which is set before anything connects.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Scheme of the URLs.
pub const SCHEME: &str = "testbed";

/// The test bed that this process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnteredBed {
    /// The bed's name.
    pub name: String,
    /// Its targets; the first is that of the bed's name alone.
    pub targets: Vec<NamedTarget>,
}

/// A target of a test bed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTarget {
    /// Its name, which follows that of the bed.
    pub name: String,
    /// Its URL in the bed's network.
    pub url: String,
    /// The directory below which its files are, if it is a mounted file system.
    pub directory: Option<PathBuf>,
}

static ENTERED: OnceLock<EnteredBed> = OnceLock::new();

/// Says that this process is in a test bed.
///
/// # Panics
/// If it was in another one before.
pub fn enter(bed: EnteredBed) {
    let entered = ENTERED.get_or_init(|| bed.clone());
    assert_eq!(*entered, bed, "a process is in one test bed");
}

/// The parts of `testbed:NAME/TARGET?OPTIONS`: the bed's name, and that of the target if there is one.
fn parts(url: &str) -> Option<(&str, Option<&str>)> {
    let rest = url.strip_prefix(SCHEME)?.strip_prefix(':')?;
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    Some(match rest.split_once('/') {
        Some((bed, target)) => (bed, Some(target)),
        None => (rest, None),
    })
}

/// The name of the test bed in a URL.
#[must_use]
pub fn name_of(url: &str) -> Option<&str> {
    Some(parts(url)?.0)
}

/// The name of a bed's target in a URL, if one is named.
#[must_use]
pub fn target_of(url: &str) -> Option<&str> {
    parts(url)?.1
}

fn entered(url: &str) -> Option<&'static NamedTarget> {
    let (name, target) = parts(url)?;
    let bed = ENTERED.get().filter(|bed| bed.name == name)?;
    match target {
        None => bed.targets.first(),
        Some(target) => bed.targets.iter().find(|t| t.name == target),
    }
}

/// The URL that a URL stands for: that of the bed's target, with the options of both.
pub(crate) fn resolved(url: &str) -> Cow<'_, str> {
    match entered(url) {
        Some(target) => with_options(&target.url, url).into(),
        None => url.into(),
    }
}

fn with_options(inner: &str, url: &str) -> String {
    let options = url.split_once('?').map_or("", |(_, options)| options);
    match (options, inner.contains('?')) {
        ("", _) => inner.to_owned(),
        (options, true) => format!("{inner}&{options}"),
        // A scheme alone.
        (options, false) if !inner.contains(':') => format!("{inner}:?{options}"),
        (options, false) => format!("{inner}?{options}"),
    }
}

/// What a URL stands for, to be recorded: a URL with all options, or a directory. `None` if this process
/// is not in that bed.
#[must_use]
pub fn place_of(url: &str) -> Option<String> {
    let target = entered(url)?;
    Some(match &target.directory {
        Some(dir) => dir.display().to_string(),
        None => resolved(url).into_owned(),
    })
}

/// The directory below which the files of a URL's target are, if it is a test bed's mounted file system.
#[must_use]
pub fn base_directory(url: &str) -> Option<&'static Path> {
    entered(url)?.directory.as_deref()
}

/// A directory of the user below the base directory of a URL's target; unchanged if it has none.
#[must_use]
pub fn below_base(url: &str, dir: &Path) -> PathBuf {
    match base_directory(url) {
        Some(base) if !dir.starts_with(base) => {
            let below = base.join(dir.strip_prefix("/").unwrap_or(dir));
            // Without a dot in it or at its end.
            below.components().collect()
        }
        _ => dir.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since a process is in one bed.
    #[test]
    fn a_name_stands_for_the_bed_of_the_process() {
        assert_eq!(name_of("testbed:r1?nconnect=2"), Some("r1"));
        assert_eq!(name_of("testbed:r1/x?a=/"), Some("r1"));
        assert_eq!(target_of("testbed:r1/x?a=/"), Some("x"));
        assert_eq!(target_of("testbed:r1?a=/"), None);
        assert_eq!(name_of("nfs3://h/testbed:x"), None);
        assert_eq!(resolved("testbed:r1"), "testbed:r1");
        let target = |name: &str, url: &str, directory: Option<&str>| NamedTarget {
            name: name.into(),
            url: url.into(),
            directory: directory.map(PathBuf::from),
        };
        enter(EnteredBed {
            name: "r1".into(),
            targets: vec![
                target("files", "posix", Some("/beds/r1/mnt")),
                target("server", "nfs3://h/x", None),
            ],
        });
        assert_eq!(resolved("testbed:r1/files"), "posix");
        assert_eq!(resolved("testbed:r1/server?a=b"), "nfs3://h/x?a=b");
        assert_eq!(resolved("testbed:r1/other"), "testbed:r1/other");
        assert!(crate::is_remote("testbed:r1/server"));
        assert_eq!(place_of("testbed:r1").as_deref(), Some("/beds/r1/mnt"));
        assert_eq!(
            place_of("testbed:r1/server?a=b").as_deref(),
            Some("nfs3://h/x?a=b")
        );
        assert_eq!(place_of("testbed:r2"), None);
        assert_eq!(resolved("testbed:r1"), "posix");
        assert_eq!(resolved("testbed:r2"), "testbed:r2");
        assert_eq!(
            with_options("nfs3://h/?mountport=1", "testbed:r1?a=b"),
            "nfs3://h/?mountport=1&a=b"
        );
        assert_eq!(
            with_options("nfs3://h/x", "testbed:r1?a=b"),
            "nfs3://h/x?a=b"
        );
        for dir in ["work", "/work", "./work/.", "/beds/r1/mnt/work"] {
            let below = below_base("testbed:r1", Path::new(dir));
            assert_eq!(below, Path::new("/beds/r1/mnt/work"));
        }
        assert_eq!(below_base("posix", Path::new("/work")), Path::new("/work"));
        assert!(crate::is_local("testbed:r1") && crate::keeps_files("testbed:r1"));
        assert_eq!(
            crate::absolute("testbed:r1", Path::new("/a/./b/")).unwrap(),
            Path::new("/beds/r1/mnt/a/b")
        );
    }
}
