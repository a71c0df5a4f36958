//! File systems and other values that the command line can set instead of a profile.

use std::path::PathBuf;

/// The file system of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseFilesystem {
    /// Name in the results.
    pub label: String,
    /// Directory of the files; `None`: the default of `run`.
    pub dir: Option<PathBuf>,
    /// URL of the target; `None`: that of the command line.
    pub target: Option<String>,
}

/// Values of the command line that replace those of a profile.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProfileOverrides {
    /// File systems; empty: the profile's.
    pub places: Vec<CaseFilesystem>,
    /// Directory; the profile must then have one file system.
    pub dir: Option<PathBuf>,
    /// Whether a target was given.
    pub has_target: bool,
    /// Whether the length of the measured window was given.
    pub has_time: bool,
    /// Whether the length of the warm-up was given.
    pub has_warmup: bool,
    /// Parameters and their values.
    pub sets: Vec<(String, String)>,
    /// Configurations to run; empty: all.
    pub only: Vec<String>,
}
