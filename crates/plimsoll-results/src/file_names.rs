//! Names of the files in results directories.

/// File that holds the figures and the verdict of a run: a [`Run`](crate::Run).
pub const RUN_FILE: &str = "run.json";

/// Draft of `run.json` for a run in progress: a [`Run`](crate::Run) without figures.
pub(crate) const DRAFT_FILE: &str = "draft.json";

/// File that describes a run in progress for observers: a [`LiveRun`](crate::LiveRun). Finished results do not contain
/// `live.json`.
pub const LIVE_FILE: &str = "live.json";

/// Time series of a run with the latency distribution of each operation in each interval, in HdrHistogram's log format.
pub const HISTOGRAMS_FILE: &str = "histograms.hlog";

/// Time series of a run with the throughput and latency of each operation in each interval, as CSV.
pub const INTERVALS_FILE: &str = "intervals.csv";

/// File that holds the output of the user's commands, from hooks and events.
pub const COMMANDS_FILE: &str = "commands.log";

/// File that holds the list of a series' runs and its figures: a [`Series`](crate::Series).
pub const SERIES_FILE: &str = "series.json";

/// File that holds the user's tags and note on results: [`Annotations`](crate::Annotations).
pub const ANNOTATIONS_FILE: &str = "annotations.json";

/// HTML page that compares the results of a profile's configurations.
pub const COMPARISON_FILE: &str = "comparison.html";

/// File in which the user describes the system under test, copied into the results.
pub const SUT_FILE: &str = "sut.toml";
