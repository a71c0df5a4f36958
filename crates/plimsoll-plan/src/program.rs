//! Programs of workers: steps over filesets and descriptor slots.

use crate::ids::{FilesetId, OperationId};
use crate::mix::Mix;
use crate::pattern::Pattern;
use crate::source::SourcePosition;
use crate::supply::SupplyKind;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Workers that run the same program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerGroup {
    /// Process the workers belong to.
    pub process: String,
    /// Number of processes of this name.
    pub process_instances: u32,
    /// Name of the thread.
    pub thread: String,
    /// Threads in each process.
    pub thread_instances: u32,
    /// Bytes of I/O buffer of each worker.
    pub memory: u64,
    /// Scheduling priority, −20 to 19.
    pub nice: i8,
    /// Best-effort I/O priority, 0 (first) to 7.
    pub io_priority: Option<u8>,
    /// Program of each worker.
    pub program: Program,
    /// Source location of the definition.
    pub location: Option<SourcePosition>,
}

impl WorkerGroup {
    /// A group of `process_instances` processes with one thread each, no I/O buffer and default priorities.
    #[must_use]
    pub fn new(process: &str, process_instances: u32, thread: &str, program: Program) -> Self {
        Self {
            process: process.into(),
            process_instances,
            thread: thread.into(),
            thread_instances: 1,
            memory: 0,
            nice: 0,
            io_priority: None,
            program,
            location: None,
        }
    }

    /// Number of workers in the group.
    #[must_use]
    pub fn workers(&self) -> u64 {
        u64::from(self.process_instances) * u64::from(self.thread_instances)
    }

    /// Whether operations of the workers have intended starts, from the rate of a mix or from the events of
    /// `eventlimit` if the Plan has an event rate. A cap is no schedule.
    #[must_use]
    pub fn follows_schedule(&self, event_rate: Option<f64>) -> bool {
        match &self.program {
            Program::Mix(mix) => mix.pacing.is_some(),
            program => event_rate.is_some() && program.has_limiter(|k| k == LimitKind::Calls),
        }
    }
}

/// Program of a worker, which repeats it until the run ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The steps in order.
    Sequence(Vec<Step>),
    /// Operations drawn from a table.
    Mix(Box<Mix>),
    /// Steps that are generated: each worker is a rank of the pattern.
    Pattern(Box<Pattern>),
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// One operation, executed `iters` times; each time is counted and timed in `row`.
    Do {
        /// Row of the results.
        row: OperationId,
        /// Repetitions.
        iters: Value,
        /// The operation.
        op: Op,
    },
    /// Steps executed in order, `iters` times: a composite flowop.
    Block {
        /// Name of the composite's use.
        name: String,
        /// Repetitions.
        iters: Value,
        /// The composite's steps.
        steps: Vec<Step>,
    },
}

/// The file an operation works on, and the slot that holds its descriptor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileRef {
    /// Fileset to choose from; an operation on an open slot needs none.
    pub fileset: Option<FilesetId>,
    /// Descriptor slot, 0 to 127.
    pub slot: u8,
    /// Rotate through the descriptor slots, from the top, instead of using `slot`.
    pub open_next: bool,
    /// File number modulo the entries, instead of the next file in order.
    pub index: Option<Value>,
    /// Row of implicit opens: reads, writes and appends open the slot themselves if it is closed.
    pub implicit_open: Option<OperationId>,
    /// Open past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Open with synchronous data (`O_DSYNC`).
    pub dsync: bool,
    /// Advise against read-ahead.
    pub no_read_ahead: bool,
}

impl FileRef {
    /// The open file in a slot; the reference names no fileset and sets no open options.
    #[must_use]
    pub fn in_slot(slot: u8) -> Self {
        Self {
            fileset: None,
            slot,
            open_next: false,
            index: None,
            implicit_open: None,
            direct: false,
            dsync: false,
            no_read_ahead: false,
        }
    }
}

/// One transfer: its file, size and position.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Io {
    /// The file.
    pub file: FileRef,
    /// Bytes of a transfer.
    pub size: Value,
    /// At `floor(u·(working_set − size)/size)·size` with uniform u instead of the next position.
    pub random: bool,
    /// Bytes from the start of the file that random transfers stay in; 0: the whole file.
    pub working_set: u64,
}

/// What a limiter takes events for. `Calls` is a schedule; the other kinds are caps, which charge a worker for
/// completed operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// One event per call.
    Calls,
    /// One event for each operation that moved data since the worker's last call.
    IoOps,
    /// One event for each operation since the worker's last call.
    Ops,
    /// One event for each MiB moved since the worker's last call.
    Bandwidth,
}

/// An operation and its parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// One transfer from the file.
    Read(Io),
    /// One transfer to the file.
    Write(Io),
    /// Queue one transfer to the file, at a random position.
    AioWrite {
        /// The transfer.
        io: Io,
        /// Row of its completion.
        completion: OperationId,
    },
    /// Wait until half of the worker's queued writes, at least one, have completed.
    AioWait,
    /// Open the next existing file into the slot, which must be closed.
    Open(FileRef),
    /// Create the next missing file and open it into the slot, which must be closed.
    Create(FileRef),
    /// Close the slot; its file stays chosen in the slot.
    Close {
        /// Descriptor slot.
        slot: u8,
    },
    /// Read from the start to the end, `size` bytes per call (0: all at once).
    ReadWhole {
        /// The file.
        file: FileRef,
        /// Bytes per call.
        size: Value,
    },
    /// Write as many bytes as the file's planned size, `size` bytes per call (0: all at once).
    WriteWhole {
        /// The file.
        file: FileRef,
        /// Slot whose file's planned size is written instead.
        source_slot: Option<u8>,
        /// Bytes per call.
        size: Value,
    },
    /// Write at the end of the file.
    Append {
        /// The file.
        file: FileRef,
        /// Bytes; with `random`, the maximum number of bytes.
        size: Value,
        /// Uniform from 0 to `size` bytes.
        random: bool,
    },
    /// Delete the slot's file (slot above 0 that holds one), else the next existing one.
    Delete(FileRef),
    /// Stat the slot's open file (slot above 0), else the next existing one.
    Stat(FileRef),
    /// Flush the slot's file.
    Fsync(FileRef),
    /// Flush every open slot of the fileset.
    FsyncSet {
        /// The fileset.
        fileset: FilesetId,
    },
    /// Create the next missing leaf directory.
    MakeDir {
        /// The fileset.
        fileset: FilesetId,
        /// Leaf directory number modulo their count, instead of the next one in order.
        index: Option<Value>,
    },
    /// Remove the next existing leaf directory.
    RemoveDir {
        /// The fileset.
        fileset: FilesetId,
        /// Leaf directory number modulo their count, instead of the next one in order.
        index: Option<Value>,
    },
    /// Open, read to the end and close a directory of the tree.
    ListDir {
        /// The fileset.
        fileset: FilesetId,
        /// Directory number modulo their count, instead of the next one in order.
        index: Option<Value>,
    },
    /// Wait until this worker's semaphore of this row has `value` posts, and take them.
    SemBlock {
        /// Number of posts to take.
        value: Value,
        /// Pending posts above which blocking posters wait.
        high_water: Value,
    },
    /// Post to the semaphores of every worker that has one of the target rows.
    SemPost {
        /// Rows of the semblocks.
        targets: Vec<OperationId>,
        /// Number of posts.
        value: Value,
        /// Wait while more posts than the target's high water are pending.
        blocking: bool,
    },
    /// Wait for a wakeup of this row.
    Block,
    /// Wake every worker that waits at one of the target rows.
    Wakeup {
        /// Rows of the blocks.
        targets: Vec<OperationId>,
    },
    /// Store to memory this many times: the client's think time.
    Hog {
        /// Stores.
        value: Value,
    },
    /// Sleep.
    Delay {
        /// Seconds.
        seconds: Value,
        /// Remainder below one second, in nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        nanoseconds: u32,
    },
    /// Wait for the events that the work since the last call costs.
    Limit {
        /// Work that is charged.
        kind: LimitKind,
        /// Only these rows are charged; `None`: all.
        targets: Option<Vec<OperationId>>,
    },
    /// End this worker when the operations of the run reach `value`.
    FinishOnCount {
        /// Operations.
        value: Value,
        /// Only these rows count; `None`: all.
        targets: Option<Vec<OperationId>>,
    },
    /// End this worker when the bytes of the run reach `value`.
    FinishOnBytes {
        /// Bytes.
        value: Value,
        /// Only these rows count; `None`: all.
        targets: Option<Vec<OperationId>>,
    },
    /// Print a text.
    Print {
        /// The text.
        text: String,
    },
    /// Draw a value; its mean and deviation are reported at the end.
    TestVariable {
        /// Value to draw.
        value: Value,
    },
}

/// Properties of an operation that the engine and the checks use without executing it.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpProperties<'a> {
    /// File that the operation works on.
    pub file: Option<&'a FileRef>,
    /// Fileset of an operation on directories or on all open files.
    pub fileset: Option<FilesetId>,
    /// Another descriptor slot than the slot of `file`.
    pub slot: Option<u8>,
    /// Values that are drawn for each execution.
    pub values: [Option<Value>; 2],
    /// Rows of other operations to which the operation refers.
    pub rows: &'a [OperationId],
    /// Kind of fileset entry that each execution uses up.
    pub takes: Option<SupplyKind>,
    /// Whether an execution can change which files exist, or the length of a file.
    pub changes_tree: bool,
    /// Means by which the operation affects other workers of its process, such as `semaphores`.
    pub coordinates_by: Option<&'static str>,
    /// Whether the operation ends its worker.
    pub ends_worker: bool,
}

impl OpProperties<'_> {
    /// Fileset whose entries the operation works on; `None` if only the file in its slot determines the fileset.
    #[must_use]
    pub fn any_fileset(&self) -> Option<FilesetId> {
        self.fileset.or_else(|| self.file?.fileset)
    }
}

impl Op {
    /// The properties of the operation, from its kind and attributes.
    #[must_use]
    pub fn properties(&self) -> OpProperties<'_> {
        let none = OpProperties::default();
        let on = |file| OpProperties {
            file: Some(file),
            ..none
        };
        let of_value = |value| OpProperties {
            values: [Some(value), None],
            ..none
        };
        let directories = |fileset, index| OpProperties {
            fileset: Some(fileset),
            values: [index, None],
            ..none
        };
        match self {
            Self::Read(io) => OpProperties {
                values: [Some(io.size), None],
                ..on(&io.file)
            },
            Self::Write(io) => OpProperties {
                values: [Some(io.size), None],
                // A write at the next position can extend the file.
                changes_tree: !io.random,
                ..on(&io.file)
            },
            Self::AioWrite { io, completion } => OpProperties {
                values: [Some(io.size), None],
                rows: std::slice::from_ref(completion),
                ..on(&io.file)
            },
            Self::Open(file) | Self::Stat(file) | Self::Fsync(file) => on(file),
            Self::Create(file) => OpProperties {
                takes: Some(SupplyKind::MissingFiles),
                changes_tree: true,
                ..on(file)
            },
            Self::Delete(file) => OpProperties {
                takes: Some(SupplyKind::Files),
                changes_tree: true,
                ..on(file)
            },
            Self::Close { slot } => OpProperties {
                slot: Some(*slot),
                ..none
            },
            Self::ReadWhole { file, size } => OpProperties {
                values: [Some(*size), None],
                ..on(file)
            },
            Self::WriteWhole {
                file,
                source_slot,
                size,
            } => OpProperties {
                slot: *source_slot,
                values: [Some(*size), None],
                changes_tree: true,
                ..on(file)
            },
            Self::Append { file, size, .. } => OpProperties {
                values: [Some(*size), None],
                changes_tree: true,
                ..on(file)
            },
            Self::FsyncSet { fileset } => directories(*fileset, None),
            Self::MakeDir { fileset, index } => OpProperties {
                takes: Some(SupplyKind::MissingLeafDirs),
                changes_tree: true,
                ..directories(*fileset, *index)
            },
            Self::RemoveDir { fileset, index } => OpProperties {
                takes: Some(SupplyKind::LeafDirs),
                changes_tree: true,
                ..directories(*fileset, *index)
            },
            Self::ListDir { fileset, index } => directories(*fileset, *index),
            Self::SemBlock { value, high_water } => OpProperties {
                values: [Some(*value), Some(*high_water)],
                coordinates_by: Some(SEMAPHORES),
                ..none
            },
            Self::SemPost { targets, value, .. } => OpProperties {
                rows: targets,
                coordinates_by: Some(SEMAPHORES),
                ..of_value(*value)
            },
            Self::Block => OpProperties {
                coordinates_by: Some(WAKEUPS),
                ..none
            },
            Self::Wakeup { targets } => OpProperties {
                rows: targets,
                coordinates_by: Some(WAKEUPS),
                ..none
            },
            Self::Hog { value } | Self::TestVariable { value } => of_value(*value),
            Self::Delay { seconds, .. } => of_value(*seconds),
            Self::Limit { targets, .. } => OpProperties {
                rows: targets.as_deref().unwrap_or_default(),
                ..none
            },
            Self::FinishOnCount { value, targets } | Self::FinishOnBytes { value, targets } => {
                OpProperties {
                    rows: targets.as_deref().unwrap_or_default(),
                    coordinates_by: Some("finishoncount and finishonbytes"),
                    ends_worker: true,
                    ..of_value(*value)
                }
            }
            Self::AioWait | Self::Print { .. } => none,
        }
    }

    /// The file reference of the operation; `None` if the operation has none.
    #[must_use]
    pub fn file(&self) -> Option<&FileRef> {
        self.properties().file
    }
}

/// [`OpProperties::coordinates_by`] of `semblock` and `sempost`.
const SEMAPHORES: &str = "semaphores";

/// [`OpProperties::coordinates_by`] of `block` and `wakeup`.
const WAKEUPS: &str = "block and wakeup";

impl Program {
    /// Whether any transfer of the program bypasses the page cache.
    #[must_use]
    pub fn uses_direct_io(&self) -> bool {
        match self {
            Self::Sequence(_) => {
                let mut direct = false;
                self.for_each_op(&mut |_, _, op| direct |= op.file().is_some_and(|f| f.direct));
                direct
            }
            Self::Mix(mix) => mix.flags.direct_percent > 0.0,
            Self::Pattern(pattern) => pattern.direct,
        }
    }

    /// Whether the program has a limiter whose kind satisfies `is_wanted`.
    #[must_use]
    pub fn has_limiter(&self, is_wanted: fn(LimitKind) -> bool) -> bool {
        let mut found = false;
        self.for_each_op(&mut |_, _, op| {
            found |= matches!(op, Op::Limit { kind, .. } if is_wanted(*kind));
        });
        found
    }

    /// The pattern; `None` if the program is a sequence or a mix.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        match self {
            Self::Pattern(pattern) => Some(pattern),
            Self::Sequence(_) | Self::Mix(_) => None,
        }
    }

    /// Calls `visit` with the row, the repetitions and the operation of every operation step of a sequence, in the
    /// order of the workload. Mixes and patterns have no steps.
    pub fn for_each_op<'a>(&'a self, visit: &mut dyn FnMut(OperationId, Value, &'a Op)) {
        fn walk<'a>(steps: &'a [Step], visit: &mut dyn FnMut(OperationId, Value, &'a Op)) {
            for step in steps {
                match step {
                    Step::Do { row, iters, op } => visit(*row, *iters, op),
                    Step::Block { steps, .. } => walk(steps, visit),
                }
            }
        }
        if let Self::Sequence(steps) = self {
            walk(steps, visit);
        }
    }

    /// The operation mix; `None` if the program is a sequence or a pattern.
    #[must_use]
    pub fn mix(&self) -> Option<&Mix> {
        match self {
            Self::Mix(mix) => Some(mix),
            Self::Sequence(_) | Self::Pattern(_) => None,
        }
    }
}
