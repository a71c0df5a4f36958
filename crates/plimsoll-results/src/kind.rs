//! Kinds of results: a single run, or a series.

use crate::document::read_part;
use crate::{RUN_FILE, ResultsError, SERIES_FILE, Series};
use serde::{Deserialize, Serialize};
use std::path::Path;
use strum::Display;

/// Kinds of results: a single run, or a series.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Results of one run, in `run.json`.
    #[default]
    Run,
    /// A load curve: a series of runs at increasing loads on one data set.
    Curve,
    /// A search for the load line: a series that doubles, then bisects the load.
    Search,
    /// A series of repeated runs of one workload, with consecutive seeds.
    Repeats,
    /// A series of runs of all configurations of a Filebench profile, on each file system.
    Profile,
    /// A paired comparison: a series of pairs of runs of two variants.
    Ab,
    /// A sweep: a series of runs over the values of parameters.
    Sweep,
    /// An IO500-style suite: a series of phases, with scores.
    Suite,
}

impl Kind {
    /// Name of the file that marks a directory as results of this kind.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Run => RUN_FILE,
            _ => SERIES_FILE,
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
            Self::Ab => "a paired comparison",
            Self::Sweep => "a sweep",
            Self::Suite => "an IO500-style suite",
        }
    }

    /// Detects the kind of the results in a directory.
    ///
    /// # Errors
    /// [`ResultsError::None`] if the directory holds no results; for a series, as
    /// [`SeriesDir::read`](crate::SeriesDir::read).
    pub fn of(dir: &Path) -> Result<Self, ResultsError> {
        /// The only field of `series.json` that is read: the kind of the series.
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
