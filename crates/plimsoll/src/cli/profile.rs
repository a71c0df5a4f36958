//! Arguments of `profile`.

use super::values::{directory, times};
use super::{CommonRunArgs, EventArgs, OutputArgs};
use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueHint};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Arguments of `profile`.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// Built-in name (check, fileio, filemacro, filemicro), or path of a file with DEFAULTS and CONFIG
    /// blocks
    #[arg(value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print only the profile's source
    #[arg(long, conflicts_with = "dry_run")]
    pub print_source: bool,
    #[command(flatten)]
    pub how: CommonRunArgs,
    #[command(flatten)]
    pub events: EventArgs,

    /// File system to use instead of the profile's file systems: a name, and a directory or the URL of a target;
    /// repeatable
    #[arg(long, value_name = "NAME=DIR|URL", value_parser = OsStringValueParser::new().try_map(file_system), conflicts_with = "dir")]
    #[arg(help_heading = "Target")]
    pub filesystem: Vec<FileSystem>,
    /// Run only the configuration CONFIG of the profile; repeatable
    #[arg(long, value_name = "CONFIG", help_heading = "Load")]
    pub only: Vec<String>,
    /// Repeat each run N times, each with the next seed, to test differences for significance
    #[arg(long, value_name = "N", value_parser = times)]
    #[arg(allow_hyphen_values = true, default_value_t = 1, help_heading = "Load")]
    pub repeat: u32,
    /// Directory in which the results directory is created, instead of the profile's `stats`
    /// [default: plimsoll-results]
    #[arg(allow_hyphen_values = true, value_parser = directory(), long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub results: Option<PathBuf>,
    #[command(flatten)]
    pub manner: OutputArgs,
}

/// Value of `--filesystem`: a name, and either a directory or the URL of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// Name of the file system, which results and comparisons show.
    pub label: String,
    /// Directory on the file system for the files of the runs; `None` if `target` is set.
    pub dir: Option<PathBuf>,
    /// URL of the target, such as `nfs4://server/export`; `None` if `dir` is set.
    pub target: Option<String>,
}

/// Whether a place is the URL of a target: a value with a colon before any slash, or the name of a target without files. A
/// directory name with a colon is given as `./a:b`.
pub(super) fn is_target(place: &str) -> bool {
    let scheme = place.split_once(':').map(|(scheme, _)| scheme);
    let needs_no_dir = plimsoll_target::scheme_of(place).is_some_and(|s| !s.keeps_files());
    scheme.is_some_and(|s| !s.contains('/')) || needs_no_dir
}

fn file_system(value: OsString) -> Result<FileSystem, String> {
    let text = value.to_string_lossy();
    let wrong = || {
        format!(
            "expected NAME=DIRECTORY or NAME=URL, such as xfs=/mnt/xfs or nfs=nfs3://server/export, \
             not `{text}`"
        )
    };
    let (label, place) = text.split_once('=').ok_or_else(wrong)?;
    let (label, place) = (label.trim(), place.trim());
    if label.is_empty() || place.is_empty() {
        return Err(wrong());
    }
    let (dir, target) = match (is_target(place), value.to_str()) {
        (true, _) => (None, Some(place.to_owned())),
        (false, Some(_)) => (Some(place.into()), None),
        // Directories are compared as bytes, which need not be valid UTF-8.
        (false, None) => {
            let begin = value.as_bytes().iter().position(|b| *b == b'=');
            let bytes = &value.as_bytes()[begin.map_or(0, |at| at + 1)..];
            (Some(OsStr::from_bytes(bytes).into()), None)
        }
    };
    let label = label.to_owned();
    Ok(FileSystem { label, dir, target })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_directories_or_targets() {
        let (dir, target) = (
            |t: &str| file_system(t.into()).unwrap().dir,
            |t: &str| file_system(t.into()).unwrap().target,
        );
        assert_eq!(dir("xfs=/mnt/a:b=c"), Some("/mnt/a:b=c".into()));
        assert_eq!(dir("here=./a:b"), Some("./a:b".into()));
        assert_eq!(target("n=nfs3://h/x"), Some("nfs3://h/x".into()));
        assert_eq!(
            target("n=null:?latency=1ms"),
            Some("null:?latency=1ms".into())
        );
        assert_eq!(
            (dir("n=null"), target("n=null")),
            (None, Some("null".into()))
        );
        for bad in ["", "xfs", "=x", "xfs=", " = "] {
            assert!(file_system(bad.into()).is_err(), "{bad}");
        }
    }
}
