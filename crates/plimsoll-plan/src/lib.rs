//! The Plan: everything a run will do, resolved and printable.
//!
//! Front ends (the WML language, and later operation mixes and metadata patterns) lower what a
//! person wrote to a [`Plan`]; the engine runs it. A Plan knows nothing of files on a disk, of
//! threads or of clocks: it is data, and the same seed always gives the same Plan and the same
//! [`Layout`] of files.

mod content;
mod display;
mod fileset;
mod ids;
mod layout;
mod mix;
mod needs;
mod options;
mod outcome;
pub mod path_text;
mod pattern;
mod plan;
mod program;
mod script;
mod seed;
mod source;
mod supply;
mod units;
mod variable;

pub use content::{Content, DEDUPED_BLOCKS, is_block};
pub use display::PlanView;
pub use fileset::{
    Access, EntriesPerDir, Fileset, Letters, MAX_NAME_LETTERS, RelPath, RelPathError,
};
pub use ids::{FilesetId, OperationId, VariableId};
pub use layout::{DirId, FileId, Layout, LayoutError, SizeSummary};
pub use mix::{
    Arrivals, BusinessMetric, Choice, Criteria, DIRECT_BLOCK, FailedCriterion, MILLION, Mix,
    MixFiles, MixFlags, MixOp, MixRow, Pacing, Pool, SCALED, SizeSlot, SizeTable, Spots,
    WorkingSet, scaled,
};
pub use needs::PatternNeeds;
pub use options::{Cold, OnError, OpsLimit, Overrides, RunOptions};
pub use outcome::{Failure, PopulatedFileset, Reason};
pub use pattern::{
    NamePiece, NameTemplate, ObjectLoop, ObjectOp, ObjectStep, Pattern, RankShift, RootHandling,
    Rounds, Samples, Stage, StageProgress, StageWork, Stonewall, TransferLoop,
};
pub use plan::{CACHED_DATA, Note, Parameter, Plan, PlanError, Source, SourceKind, WorkDirSpec};
pub use program::{
    FileRef, Io, LimitKind, Op, OpClass, OpKind, Operation, Program, Step, WorkerGroup,
};
pub use script::{Phase, QuitMode, Snapshots, Until};
pub use seed::{Rng, Stream};
pub use source::SourcePosition;
pub use supply::{Supply, SupplyKind};
pub use units::{Bytes, Count, counted, parse_duration, parse_size, show_duration, show_exactly};
pub use variable::{Distribution, Row, Sampler, Value, Variable};

/// Version of the Plan's JSON form; raised when a field changes meaning or goes.
pub const PLAN_SCHEMA: u32 = 2;
