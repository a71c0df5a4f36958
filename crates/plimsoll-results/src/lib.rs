//! The results of a run in open formats.
//!
//! A results directory holds `run.json` (a [`Run`]: everything known about the run and its figures), `histograms.hlog`
//! (every latency distribution, by interval, in HdrHistogram's log format) and `intervals.csv` (throughput and latency
//! over time). [`RunWriter`] writes both time series while the run is in progress and gives the results directory its
//! final name when the results are complete; [`RunDir`] reads a results directory. The directory of a series holds
//! `series.json` (a [`Series`]: repeated runs, a load curve, a search or a profile) and the results directory of each
//! run; [`SeriesWriter`] writes a series, [`SeriesDir`] reads a series.
//!
//! [`Entry`] is the line of a result of any kind in a list, [`Annotations`] are the user's tags and note, and
//! [`Removal`] deletes results. [`LiveDir`] is a run in progress, seen from another process.
//!
//! Modules, from the lowest: `file_names`, `error`, `whole_file` and `publish` (files and directories), `staging`
//! (hidden directories of results being written), `document` (JSON with a version); `run` and its parts (`latency`,
//! `percentile`, `mix`, `schedule`, `standstill`, `events`, `client_cache`, `environment`), computed by `assemble`; `qualifier` (limits of
//! the meaning of a run's figures);
//! `interval_series` and `histograms` (time series), `recompute` and `recover` (figures from the time-series files);
//! `dir` (one run), and `series` (several runs) with the rule of each kind.
//!
//! # Design
//! Results exist before a run ends. A draft of `run.json` without figures is written first. A separate thread
//! (`background`) writes each interval to `intervals.csv` and then to `histograms.hlog`, without buffering, so a
//! slow disk does not delay the run. An interval is complete if its distributions have as many samples as its rows have
//! operations; `recover` adds up the complete intervals and passes the sums through `Run::assemble`, as the engine does
//! with its figures. Result files are opened only if they are regular files.
//!
//! `series.json` holds all state of a series, so a series is resumed by reading the document, and the rule of each
//! kind (`Strategy`) is tested on systems that are formulas. A process that reads a run in progress (`LiveDir`) holds
//! the directory of the run open, and the current name of the open directory is the final location of the run.

mod annotations;
mod assemble;
mod background;
mod catalog;
mod client_cache;
mod dir;
mod distribution;
mod document;
mod document_writer;
mod environment;
mod error;
mod events;
mod file_names;
mod histograms;
mod hooks;
mod hosts;
mod interval_series;
mod intervals;
mod kind;
mod latency;
mod live;
mod mix;
mod mounts;
mod percentile;
mod promise;
mod publish;
mod qualifier;
mod read_source;
mod recompute;
mod recover;
mod regular_file;
mod removal;
mod run;
mod schedule;
mod series;
mod settings;
mod simulation;
mod sparse;
mod staging;
mod standstill;
mod whole_file;

pub use annotations::{Annotations, Tag};
pub use assemble::{MeasuredRun, figures};
pub use catalog::{Entry, Status, directories};
pub use client_cache::ClientCache;
pub use dir::{RunDir, RunWriter};
pub use distribution::Distribution;
pub use document::{Directory, Document, schema};
pub use document_writer::DocumentWriter;
pub use environment::{Environment, WorkDir};
pub use error::ResultsError;
pub use events::{EventFigures, EventState, RunEvent};
pub(crate) use file_names::DRAFT_FILE;
pub use file_names::{
    ANNOTATIONS_FILE, COMMANDS_FILE, COMPARISON_FILE, HISTOGRAMS_FILE, INTERVALS_FILE, LIVE_FILE,
    RUN_FILE, SERIES_FILE, SUT_FILE,
};
pub use histograms::{SparseInterval, tag_of, tag_of_text};
pub use hooks::{CommandResult, CommandRun, HookTime};
pub use hosts::HostFigures;
pub use intervals::IntervalRow;
pub use kind::Kind;
pub use latency::{LatencyFigures, LatencyKind, SummaryLatency, per_second};
pub use live::{LiveDir, LiveEvent, LiveLocation, LiveReader, LiveRun};
pub use mix::{ComponentFigures, MixFigures, ScheduledFigures};
pub use percentile::{NotPercentiles, Percentile, PercentileFigure, Percentiles};
pub use plimsoll_measure::{ClockKind, Outcome, ProcessCounts, ScheduleCounts};
pub use plimsoll_plan::{Failure, PopulatedFileset, Reason};
pub use promise::PromiseResult;
pub use publish::timestamp;
pub use qualifier::{Qualifier, QualifierKind};
pub use read_source::ReadSource;
pub use recover::{AbandonedRun, recover};
pub use regular_file::{open_regular, read_regular};
pub use removal::Removal;
pub use run::{
    CompletedFigures, OperationFigures, OperationGroup, Program, Run, Stage, Summary, Target,
    Validity, VariableFigures, Verdict, Window,
};
pub use schedule::EventSchedule;
pub use series::{
    Agreement, Configuration, CriterionResult, LoadCurve, LoadLine, LoadSearch, Loads, MAX_CELLS,
    MAX_LOAD, MAX_PAIRS, MAX_POINTS, MAX_REPEATS, MIN_PAIRS_UNTIL, NextRun, Pair, PairedComparison,
    PhaseFigures, PhaseResult, PrimaryFigure, Profile, Purpose, Recipe, Repeats,
    STOP_AFTER_INVALID, SearchEnd, SearchRules, SearchStart, SearchStep, SearchedParameter, Series,
    SeriesDir, SeriesKind, SeriesOf, SeriesRun, SeriesState, SeriesWriter, SettingDifference,
    SettleRule, Settling, Side, SkippedConfiguration, Step, Strategy, Suite, SuitePhase,
    SuiteScore, Sweep, TrialRun, Unrest, VariedNumbers, VariedParameter, VariedUnit, read_runs,
    run_dirs, suite_figure, values_of,
};
pub use settings::Setting;
pub use simulation::{ElementTime, OperationTime, SimulationFigures, client_ms};
pub use sparse::SparseHistogram;
pub use standstill::{AgeFigure, StallFigure};
