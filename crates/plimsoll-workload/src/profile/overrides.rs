//! Command-line values that replace a profile's values.

use std::path::PathBuf;

/// File system on which cases run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFilesystem {
    /// Label of the file system in the results.
    pub label: String,
    /// Directory of the files; `None`: the default of `run`.
    pub dir: Option<PathBuf>,
    /// URL of the target; `None`: the target of the command line.
    pub target: Option<String>,
}

/// Command-line values that replace a profile's values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProfileOverrides {
    /// File systems; empty: the profile's file systems.
    pub places: Vec<CaseFilesystem>,
    /// Directory of the files, only for a profile with one file system; `None`: the profile's directories.
    pub dir: Option<PathBuf>,
    /// Whether the command line has a target.
    pub has_target: bool,
    /// Whether the command line has the length of the measured window.
    pub has_time: bool,
    /// Whether the command line has the length of the warm-up.
    pub has_warmup: bool,
    /// Names and values of parameters, which replace the values, lists and sweeps of the profile.
    pub sets: Vec<(String, String)>,
    /// Names of the configurations to run; empty: all configurations.
    pub only: Vec<String>,
}
