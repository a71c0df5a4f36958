//! Checks that the file systems of a comparison are distinct.

use crate::exit::CommandError;
use plimsoll_results::Configuration;
use plimsoll_target::is_remote;
use plimsoll_workload::profile::directory_name;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Default NFS port, which URLs may omit (RFC 5661, section 2.9.3).
const NFS_PORT: &str = ":2049";

/// Refuses file systems whose names map to the same directory name.
pub(super) fn check_labels<'a>(labels: impl Iterator<Item = &'a str>) -> Result<(), CommandError> {
    let mut seen: Vec<&str> = Vec::new();
    for label in labels {
        if let Some(other) = seen
            .iter()
            .find(|o| directory_name(o) == directory_name(label))
        {
            return Err(CommandError::usage(format!(
                "two file systems are called `{other}`: their results would have one name"
            )));
        }
        seen.push(label);
    }
    Ok(())
}

/// Refuses file systems with different names and the same directory of files.
pub(super) fn check_places(configurations: &[Configuration]) -> Result<(), CommandError> {
    let mut seen: Vec<(&str, FilesLocation)> = Vec::new();
    // Targets without files may be equal.
    let keeps = |c: &&Configuration| plimsoll_target::keeps_files(&c.target.url);
    for configuration in configurations
        .iter()
        .filter(|c| !c.plan.work_dir.temporary)
        .filter(keeps)
    {
        let label = configuration.filesystem.as_deref().unwrap_or_default();
        let place = FilesLocation::of(&configuration.target.url, &configuration.plan.work_dir.dir);
        let same = |(other, at): &&(&str, FilesLocation)| *other != label && *at == place;
        if let Some((other, _)) = seen.iter().find(same) {
            return Err(CommandError::usage(format!(
                "the file systems `{other}` and `{label}` are the same directory, {}: they are \
                 compared, so give each its own",
                configuration.plan.work_dir.dir.display()
            )));
        }
        if !seen.contains(&(label, place.clone())) {
            seen.push((label, place));
        }
    }
    Ok(())
}

/// Location of files, independent of the path's spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FilesLocation {
    /// Device and inode of the deepest existing directory, and the remaining path.
    Local(Option<(u64, u64)>, PathBuf),
    /// URL with sorted options, and the directory.
    ByUrl(String, PathBuf),
}

impl FilesLocation {
    fn of(target: &str, dir: &Path) -> Self {
        if is_remote(target) {
            return Self::ByUrl(plain_url(target), dir.to_owned());
        }
        for above in dir.ancestors() {
            if let (Ok(found), Ok(below)) = (std::fs::metadata(above), dir.strip_prefix(above)) {
                return Self::Local(Some((found.dev(), found.ino())), below.to_owned());
            }
        }
        Self::Local(None, dir.to_owned())
    }
}

/// URL of a target in a form that two spellings of one mount share: without the default port, with sorted options. URLs
/// with different options are different mounts, which a profile may compare.
fn plain_url(url: &str) -> String {
    let (place, options) = url.split_once('?').unwrap_or((url, ""));
    let (host, path) = match place.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            (format!("{scheme}://{host}"), path)
        }
        None => (place.to_owned(), ""),
    };
    let host = host.strip_suffix(NFS_PORT).unwrap_or(&host);
    let mut options: Vec<&str> = options.split('&').collect();
    options.sort_unstable();
    let options = options.join("&");
    format!("{host}/{}?{options}", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_export_has_several_urls() {
        let same = |a: &str, b: &str| assert_eq!(plain_url(a), plain_url(b));
        same("nfs3://h/x", "nfs3://h:2049/x/");
        same("nfs3://h/x?a=1&b=2", "nfs3://h/x?b=2&a=1");
        assert_ne!(plain_url("nfs3://h/x"), plain_url("nfs3://h/y"));
        assert_ne!(plain_url("nfs3://h/x"), plain_url("nfs3://h/x?nconnect=4"));
    }

    #[test]
    fn one_directory_has_several_paths() {
        let dir = tempfile::tempdir().expect("a directory");
        let (real, link) = (dir.path().join("u"), dir.path().join("y"));
        std::fs::create_dir(&real).expect("made");
        std::os::unix::fs::symlink(&real, &link).expect("made");
        let place = |path: &Path| FilesLocation::of("posix", path);
        assert_eq!(place(&real), place(&link));
        assert_eq!(place(&real.join("new/a")), place(&link.join("new/a")));
        assert_ne!(place(&real.join("a")), place(&real.join("b")));
    }
}
