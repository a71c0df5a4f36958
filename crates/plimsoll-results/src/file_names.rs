//! Names of the files in results directories.

/// File that holds a [`Run`](crate::Run).
pub const RUN_FILE: &str = "run.json";

/// Draft of `run.json` for a run in progress: a [`Run`](crate::Run) without figures.
pub(crate) const DRAFT_FILE: &str = "draft.json";

/// Description of a run in progress. Finished results do not contain the file.
pub const LIVE_FILE: &str = "live.json";

/// File that holds the latency distributions.
pub const HISTOGRAMS_FILE: &str = "histograms.hlog";

/// File that holds throughput and latency over time.
pub const INTERVALS_FILE: &str = "intervals.csv";

/// File that holds the output of the user's commands.
pub const COMMANDS_FILE: &str = "commands.log";

/// File that holds a [`Series`](crate::Series).
pub const SERIES_FILE: &str = "series.json";

/// File that holds the [`Annotations`](crate::Annotations).
pub const ANNOTATIONS_FILE: &str = "annotations.json";

/// Page that compares the results of a profile.
pub const COMPARISON_FILE: &str = "comparison.html";

/// File that describes the system under test.
pub const SUT_FILE: &str = "sut.toml";
