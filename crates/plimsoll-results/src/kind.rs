//! Kinds of results.

use crate::document::read_part;
use crate::{RUN_FILE, ResultsError, SERIES_FILE, Series};
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
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Curve,
        Self::Search,
        Self::Profile,
        Self::Repeats,
        Self::Run,
    ];

    /// Name of the file that marks a directory as results of this kind.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Run => RUN_FILE,
            Self::Curve | Self::Search | Self::Repeats | Self::Profile => SERIES_FILE,
        }
    }

    /// The kind with its article, such as `a load curve`, for messages.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Run => "a run",
            Self::Curve => "a load curve",
            Self::Search => "a search for a load line",
            Self::Repeats => "a series of repeated runs",
            Self::Profile => "a profile",
        }
    }

    /// Detects the kind of the results in a directory.
    ///
    /// # Errors
    /// [`ResultsError::None`] if the directory holds no results; for a series, as
    /// [`SeriesDir::read`](crate::SeriesDir::read).
    pub fn of(dir: &Path) -> Result<Self, ResultsError> {
        /// Fields of `series.json` that are read.
        #[derive(Deserialize)]
        struct Part {
            kind: Kind,
        }
        let has = |file: &str| dir.join(file).is_file();
        if has(SERIES_FILE) {
            return read_part::<Series, Part>(dir).map(|part| part.kind);
        }
        if has(RUN_FILE) {
            return Ok(Self::Run);
        }
        Err(ResultsError::None {
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
        })
    }
}
