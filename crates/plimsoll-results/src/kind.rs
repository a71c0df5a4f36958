//! Kinds of results.

use crate::{
    CURVE_FILE, FIND_FILE, PROFILE_FILE, REPEATS_FILE, RUN_FILE, ResultsError, STUDY_FILE,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// Kinds of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One run.
    Run,
    /// A load curve.
    Curve,
    /// A search for a load line.
    Search,
    /// Repeated runs.
    Repeats,
    /// The runs of a profile.
    Profile,
    /// The steps of a study.
    Study,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Study,
        Self::Curve,
        Self::Search,
        Self::Profile,
        Self::Repeats,
        Self::Run,
    ];

    /// Name of the file that makes a directory one of this kind.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Run => RUN_FILE,
            Self::Curve => CURVE_FILE,
            Self::Search => FIND_FILE,
            Self::Repeats => REPEATS_FILE,
            Self::Profile => PROFILE_FILE,
            Self::Study => STUDY_FILE,
        }
    }

    /// The kind of the results in a directory.
    ///
    /// # Errors
    /// [`ResultsError::None`] if it holds none.
    pub fn of(dir: &Path) -> Result<Self, ResultsError> {
        let there = |kind: &Self| dir.join(kind.file()).is_file();
        let found = Self::ALL.into_iter().find(there);
        found.ok_or_else(|| ResultsError::None {
            path: dir.to_owned(),
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Run => "run",
            Self::Curve => "curve",
            Self::Search => "search",
            Self::Repeats => "repeats",
            Self::Profile => "profile",
            Self::Study => "study",
        })
    }
}
