//! The results of a run in open formats.
//!
//! A results directory holds `run.json` (a [`Run`]: everything known about the run and its
//! figures), `histograms.hlog` (every latency distribution, by interval, in HdrHistogram's log
//! format) and `intervals.csv` (throughput and latency over time). [`RunWriter`] writes the
//! series while the run goes on and gives the directory its name when it is complete;
//! [`RunDir`] reads one back. A curve directory holds `curve.json` (a [`LoadCurve`]) and the
//! results directory of each load point; [`CurveWriter`] writes one, [`CurveDir`] reads it. The
//! directory of a search holds `find.json` (a [`LoadSearch`]) and those of its runs in the same way.
//! Repeated runs are a directory with `repeats.json` and the results directory of each run; a
//! profile's runs are one with `profile.json`.
//!
//! [`Entry`] is what a list says of any of these, [`Annotations`] what a person said of it, and
//! [`Removal`] takes it away. [`LiveDir`] is a run in progress, seen from another process.

mod annotations;
mod assemble;
mod catalog;
mod client_cache;
mod curve;
mod dir;
mod distribution;
mod document;
mod environment;
mod error;
mod find;
mod histograms;
mod hooks;
mod intervals;
mod latency;
mod live;
mod mix;
mod percentile;
mod profile;
mod read_source;
mod recompute;
mod recover;
mod regular_file;
mod removal;
mod renames;
mod repeats;
mod run;
mod series;
mod sparse;
mod staging;
mod standstill;
mod upgrade;

pub use annotations::{ANNOTATIONS_FILE, ANNOTATIONS_SCHEMA, Annotations, Tag};
pub use assemble::{MeasuredRun, figures};
pub use catalog::{Entry, EntryAnnotations, Kind, Status, directories};
pub use client_cache::ClientCache;
pub use curve::{
    CURVE_FILE, CURVE_SCHEMA, CriterionResult, CurveDir, CurvePoint, CurveState, CurveWriter,
    LoadCurve, StopRules, curve_schema,
};
pub use dir::{RunDir, RunWriter};
pub use distribution::Distribution;
pub use document::{Directory, Document};
pub use environment::{Environment, WorkDir};
pub use error::ResultsError;
pub use find::{FIND_FILE, FIND_SCHEMA, FindDir, FindWriter, LoadSearch, SearchRun, find_schema};
pub use histograms::{
    Histograms, IntervalHistogram, SparseInterval, tag_of, tag_of_text, window_histograms,
};
pub use hooks::{COMMANDS_FILE, CommandRun, HookTime, Hooks};
pub use intervals::IntervalRow;
pub use latency::{LatencyFigures, LatencyKind, SummaryLatency};
pub use live::{LIVE_FILE, LIVE_SCHEMA, LiveDir, LiveLocation, LiveReader, LiveRun};
pub use mix::{ComponentFigures, MixFigures, ProcessCounts, ScheduledFigures};
pub use percentile::{NotAPercentile, NotPercentiles, Percentile, PercentileFigure, Percentiles};
pub use profile::{
    PROFILE_FILE, PROFILE_SCHEMA, ProfileCase, ProfileDir, ProfileNotRun, ProfileResults,
    ProfileWriter, profile_schema,
};
pub use read_source::ReadSource;
pub use recover::{AbandonedRun, recover};
pub use regular_file::{open_regular, read_regular};
pub use removal::Removal;
pub use repeats::{
    REPEATS_FILE, REPEATS_SCHEMA, Repeats, RepeatsDir, RepeatsWriter, read_runs, repeats_schema,
    run_dirs,
};
pub use run::{
    ClockKind, CompletedFigures, Failure, OperationFigures, Populated, Program, Reason, Run, Stage,
    Summary, Target, Validity, VariableFigures, Verdict, Window,
};
pub use sparse::SparseHistogram;
pub use standstill::{AgeFigure, StallFigure};

/// Version of `run.json`; raised when a field changes meaning or goes.
pub const SCHEMA: u32 = 3;

/// Name of the file that holds the [`Run`].
pub const RUN_FILE: &str = "run.json";

/// Name of the file that holds what is known of a run in progress: a [`Run`] without figures.
pub(crate) const DRAFT_FILE: &str = "draft.json";

/// Name of the file that holds the latency distributions.
pub const HISTOGRAMS_FILE: &str = "histograms.hlog";

/// Name of the file that holds throughput and latency over time.
pub const INTERVALS_FILE: &str = "intervals.csv";

/// The JSON schema of `run.json`, pretty-printed.
#[must_use]
pub fn run_schema() -> String {
    document::schema::<Run>()
}
