//! The Plan: everything that determines a run, resolved and printable.
//!
//! Front ends lower a workload (Filebench's language, operation mixes, metadata patterns) to a [`Plan`], which the
//! engine runs. A Plan is data, independent of files on a disk, threads and clocks, and the same seed always gives the
//! same Plan and the same [`Layout`] of files.
//!
//! | modules | contents |
//! | --- | --- |
//! | `plan` | the Plan and its checks; `ids`: its indices; `source`: source locations |
//! | `options` | command-line changes to a workload, options of a run |
//! | `operation` | operations of sequences with their properties, kinds, rows of the results |
//! | `program` | groups of workers, steps of sequences |
//! | `mix` | operation mixes, business metrics; `mix_check`: their checks; `load`: Plans of several loads |
//! | `job` | jobs: transfers at generated offsets (fio) |
//! | `pattern` | generated programs of ranks; `needs`: their space and files |
//! | `fileset`, `layout` | definitions of filesets; their trees |
//! | `variable`, `seed`, `hash`, `content` | random variables, random streams, hashes, contents of writes |
//! | `condition`, `percentile` | conditions on the figures of a run, promises |
//! | `script`, `steady_rule` | phases of a run; rules that end a warm-up; `supply`: workloads that end early because a fileset is exhausted |
//! | `display` | the Plan as text |
//! | `units`, `path_text` | numbers and paths as text |
//!
//! # Design
//! Every kind of random choice has a stream of random numbers derived from the seed, so that no choice depends on the
//! number of workers: each file has a stream for its size, and 64 consecutive files share a stream for their existence.
//! The name of an entry is its position in the parent directory. Filebench numbers the files and the leaf directories
//! of a parent separately, so names can collide in Filebench.
//!
//! The *script* replaces fixed phases because Filebench's language has statements for phases: `run 60` and `stats
//! clear; sleep 60; stats snap` lower to the same script. Summing more than 2²⁰ drawn sizes would take too long, so the
//! summary of a formula tree samples 2²⁰ files and sets `SizeSummary::estimated`.
//!
//! A pattern has one worker per rank. Each rank is a process; in virtual time, all ranks are workers of one process,
//! because processes cannot share a virtual clock.

mod condition;
mod content;
mod display;
pub mod event;
mod fileset;
pub mod hash;
mod ids;
mod job;
mod layout;
mod load;
mod mix;
mod mix_check;
mod needs;
mod operation;
pub mod option_values;
mod options;
mod outcome;
pub mod path_text;
mod pattern;
pub mod pattern_names;
mod percentile;
mod plan;
mod program;
mod script;
mod seed;
mod shell;
mod source;
mod steady_rule;
mod suite;
mod supply;
mod units;
mod variable;

pub use condition::{
    Condition, ConditionParts, FIGURE_HELP, Figure, NotACondition, Promise, Quantity, Relation,
};
pub use content::{Content, DEDUPED_BLOCKS, is_block};
pub use display::PlanView;
pub use fileset::{
    Access, EntriesPerDir, Fileset, InitialData, Letters, MAX_NAME_LETTERS, RelPath, RelPathError,
};
pub use ids::{FilesetId, OperationId, VariableId};
pub use job::{
    Direction, FileOrder, Flushes, Job, JobAccess, JobWork, NameOp, OffsetOrder, Pauses, Spread,
    Transfers, Zone,
};
pub use layout::{DirId, FileId, Layout, LayoutError, SizeSummary};
pub use mix::{
    Arrivals, BusinessMetric, Choice, Criteria, DIRECT_BLOCK, Fadvise, FailedCriterion, MILLION,
    Mix, MixFiles, MixFlags, MixOp, MixRow, Pacing, Pool, SCALED, SizeSlot, SizeTable, Spots,
    WorkingSet, scaled,
};
pub use needs::PatternNeeds;
pub use operation::{
    FileRef, Io, LimitKind, Op, OpClass, OpKind, OpProperties, Operation, SupplyKind,
};
pub use options::{Cold, OnError, OpsLimit, Overrides, Requirement, RunOptions};
pub use outcome::{Failure, PopulatedFileset, Reason, Verification, VerificationFailure};
pub use pattern::{
    NamePiece, NameTemplate, ObjectLoop, ObjectOp, ObjectOrder, ObjectStep, Pattern, RankOrder,
    RankShift, RootHandling, Rounds, Samples, SetTree, Stage, StageProgress, StageWork, Stonewall,
    TransferLoop, TransferOrder, TreeSearch,
};
pub use percentile::{NotAPercentile, Percentile};
pub use plan::{
    CACHED_DATA, COMPLETION_DELAY, MARKER, Note, Parameter, Plan, PlanError, Source, SourceKind,
    WorkDirSpec,
};
pub use program::{Program, Step, WorkerGroup};
pub use script::{LoadTime, Phase, QuitMode, Snapshots, Until};
pub use seed::{Rng, Stream};
pub use shell::{shell_word, shell_words};
pub use source::SourcePosition;
pub use steady_rule::{SteadyRule, Warmup};
pub use suite::ScoreGroup;
pub use supply::Supply;
pub use units::{
    ByteSum, Bytes, Count, MAX_TIME, counted, parse_duration, parse_percent, parse_size,
    show_duration, show_exactly, three_digits, time_of_seconds,
};
pub use variable::{Distribution, Number, Row, Sampler, Value, Variable};

/// Version of the Plan's JSON form; raised when a field changes its meaning or is removed.
pub const PLAN_SCHEMA: u32 = 1;
