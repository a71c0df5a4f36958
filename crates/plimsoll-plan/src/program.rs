//! What workers do: programs of steps over filesets and descriptor slots.

use crate::ids::{FilesetId, OperationId};
use crate::mix::Mix;
use crate::pattern::Pattern;
use crate::source::SourcePosition;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// One row of the results: what is counted and timed under one name and kind.
///
/// Steps of the same name and kind share a row, in whatever worker they run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Name the workload gave it.
    pub name: String,
    /// What it does.
    pub kind: OpKind,
    /// Where it is first written.
    pub location: Option<SourcePosition>,
}

/// Kinds of operation, the unit of statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are those of the flowops
pub enum OpKind {
    Read,
    Write,
    /// Queueing of an asynchronous write.
    AioWrite,
    /// Completion of an asynchronous write, from its queueing.
    AioComplete,
    AioWait,
    Open,
    Create,
    /// Making a whole object: open with create, write, close.
    ObjectCreate,
    /// Reading a whole object: open, read, close.
    ObjectRead,
    Close,
    ReadWhole,
    WriteWhole,
    Append,
    Delete,
    Stat,
    Fsync,
    FsyncSet,
    MakeDir,
    RemoveDir,
    ListDir,
    SemBlock,
    SemPost,
    Block,
    Wakeup,
    Hog,
    Delay,
    Limit,
    Finish,
    Print,
    TestVariable,
    MmapRead,
    MmapWrite,
    /// Reading a piece of a file and writing the same place.
    Rmw,
    /// Locking a range and unlocking it.
    Lock,
    Access,
    /// Stat of a name that is not there.
    NegStat,
    Chmod,
    CopyFile,
    Rename,
    StatFs,
    PathConf,
    Truncate,
    /// NFS's LOOKUP alone.
    Lookup,
    /// NFS's READLINK alone.
    ReadLink,
    /// NFS's READDIRPLUS.
    ListDirPlus,
    /// What a mix does on the way to an operation.
    Prepare,
    /// Start of an operation of a mix, timed from when it was due.
    Start,
    /// A procedure that the target called on a server.
    Rpc,
}

/// Classes of operation; only [`OpClass::Io`] and [`OpClass::Aio`] count in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpClass {
    /// File operations.
    Io,
    /// Asynchronous writes and waits for them.
    Aio,
    /// Semaphores, blocks, limiters.
    Sync,
    /// Everything else.
    Other,
}

impl OpKind {
    /// The class the kind belongs to.
    ///
    /// A completion is `Other`: the write it belongs to was counted when it was queued.
    #[must_use]
    pub fn class(self) -> OpClass {
        match self {
            Self::AioWrite | Self::AioWait => OpClass::Aio,
            Self::SemBlock | Self::SemPost | Self::Block | Self::Wakeup | Self::Limit => {
                OpClass::Sync
            }
            Self::AioComplete
            | Self::Hog
            | Self::Delay
            | Self::Finish
            | Self::Print
            | Self::TestVariable
            | Self::Prepare
            | Self::Start
            | Self::Rpc => OpClass::Other,
            _ => OpClass::Io,
        }
    }

    /// Whether the summary counts it.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self.class(), OpClass::Io | OpClass::Aio)
    }

    /// Whether it is one of the workload's: a procedure that serves one is not.
    #[must_use]
    pub fn is_of_workload(self) -> bool {
        self != Self::Rpc
    }

    /// Whether it moves data from the target to the client.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::ReadWhole
                | Self::MmapRead
                | Self::Rmw
                | Self::CopyFile
                | Self::ObjectRead
        )
    }

    /// Whether it moves data from the client to the target.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::WriteWhole
                | Self::Append
                | Self::AioWrite
                | Self::MmapWrite
                | Self::Rmw
                | Self::CopyFile
                | Self::ObjectCreate
        )
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::AioWrite => "aio_write",
            Self::AioComplete => "aio_complete",
            Self::AioWait => "aio_wait",
            Self::Open => "open",
            Self::Create => "create",
            Self::ObjectCreate => "object_create",
            Self::ObjectRead => "object_read",
            Self::Close => "close",
            Self::ReadWhole => "read_whole",
            Self::WriteWhole => "write_whole",
            Self::Append => "append",
            Self::Delete => "delete",
            Self::Stat => "stat",
            Self::Fsync => "fsync",
            Self::FsyncSet => "fsync_set",
            Self::MakeDir => "make_dir",
            Self::RemoveDir => "remove_dir",
            Self::ListDir => "list_dir",
            Self::SemBlock => "sem_block",
            Self::SemPost => "sem_post",
            Self::Block => "block",
            Self::Wakeup => "wakeup",
            Self::Hog => "hog",
            Self::Delay => "delay",
            Self::Limit => "limit",
            Self::Finish => "finish",
            Self::Print => "print",
            Self::TestVariable => "test_variable",
            Self::MmapRead => "mmap_read",
            Self::MmapWrite => "mmap_write",
            Self::Rmw => "rmw",
            Self::Lock => "lock",
            Self::Access => "access",
            Self::NegStat => "neg_stat",
            Self::Chmod => "chmod",
            Self::CopyFile => "copy_file",
            Self::Rename => "rename",
            Self::StatFs => "stat_fs",
            Self::PathConf => "path_conf",
            Self::Truncate => "truncate",
            Self::Lookup => "lookup",
            Self::ReadLink => "read_link",
            Self::ListDirPlus => "list_dir_plus",
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Rpc => "rpc",
        })
    }
}

/// Workers that run the same program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerGroup {
    /// Process the workers belong to.
    pub process: String,
    /// Copies of the process.
    pub process_instances: u32,
    /// Name of the thread.
    pub thread: String,
    /// Threads in each copy of the process.
    pub thread_instances: u32,
    /// Bytes of I/O buffer of each worker.
    pub memory: u64,
    /// Scheduling priority, −20 to 19.
    pub nice: i8,
    /// Best-effort I/O priority, 0 (first) to 7.
    pub io_priority: Option<u8>,
    /// What each worker does.
    pub program: Program,
    /// Where it is defined.
    pub location: Option<SourcePosition>,
}

impl WorkerGroup {
    /// Workers in the group.
    #[must_use]
    pub fn workers(&self) -> u64 {
        u64::from(self.process_instances) * u64::from(self.thread_instances)
    }
}

/// What a worker does, again and again until the run ends.
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
    /// One operation, done `iters` times; every time is counted and timed as `row`.
    Do {
        /// What is counted.
        row: OperationId,
        /// Repetitions.
        iters: Value,
        /// What is done.
        op: Op,
    },
    /// Steps done in order, `iters` times: a composite flowop.
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
    /// File number modulo the entries, instead of the next one round.
    pub index: Option<Value>,
    /// Row that an open made on the way is counted in: reads, writes and appends open the slot
    /// themselves when it is closed.
    pub implicit_open: Option<OperationId>,
    /// Open past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Open with synchronous data (`O_DSYNC`).
    pub dsync: bool,
    /// Advise against read-ahead.
    pub no_read_ahead: bool,
}

/// One transfer: where it goes and how large it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Io {
    /// The file.
    pub file: FileRef,
    /// Bytes of a transfer.
    pub size: Value,
    /// At `floor(u·(wss − size)/size)·size` instead of the next position.
    pub random: bool,
    /// Bytes from the start of the file that random transfers stay in; 0: the whole file.
    pub working_set: u64,
}

/// What a limiter charges events for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// One event a call.
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
        /// Row that its completion is counted in.
        completion: OperationId,
    },
    /// Wait until half of the worker's queued writes, at least one, have completed.
    AioWait,
    /// Open the next existing file into the slot, which must be closed.
    Open(FileRef),
    /// Make the next missing file and open it into the slot, which must be closed.
    Create(FileRef),
    /// Close the slot; its file stays chosen in the slot.
    Close {
        /// Descriptor slot.
        slot: u8,
    },
    /// Read from the start to the end, `size` bytes a call (0: all at once).
    ReadWhole {
        /// The file.
        file: FileRef,
        /// Bytes a call.
        size: Value,
    },
    /// Write as many bytes as the file's planned size, `size` bytes a call (0: all at once).
    WriteWhole {
        /// The file.
        file: FileRef,
        /// Slot whose file's planned size is written instead.
        source_slot: Option<u8>,
        /// Bytes a call.
        size: Value,
    },
    /// Write at the end of the file.
    Append {
        /// The file.
        file: FileRef,
        /// Bytes; with `random`, the greatest number of bytes.
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
    /// Make the next missing leaf directory.
    MakeDir {
        /// The fileset.
        fileset: FilesetId,
        /// Leaf directory number modulo their count, instead of the next one round.
        index: Option<Value>,
    },
    /// Remove the next existing leaf directory.
    RemoveDir {
        /// The fileset.
        fileset: FilesetId,
        /// Leaf directory number modulo their count, instead of the next one round.
        index: Option<Value>,
    },
    /// Open, read to the end and close a directory of the tree.
    ListDir {
        /// The fileset.
        fileset: FilesetId,
        /// Directory number modulo their count, instead of the next one round.
        index: Option<Value>,
    },
    /// Wait until this worker's semaphore of this row holds `value`, and take them.
    SemBlock {
        /// How many to take.
        value: Value,
        /// Pending posts above which blocking posters wait.
        high_water: Value,
    },
    /// Post to the semaphores of every worker that has one of the target rows.
    SemPost {
        /// Rows of the semblocks.
        targets: Vec<OperationId>,
        /// How many to post.
        value: Value,
        /// Wait while more than the target's high water is pending.
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
        /// What is less than a second, in nanoseconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        nanoseconds: u32,
    },
    /// Wait for the events that the work since the last call costs.
    Limit {
        /// What is charged.
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
        /// What is drawn.
        value: Value,
    },
}

impl Op {
    /// Whether it can change which files exist or how long they are.
    #[must_use]
    pub fn changes_tree(&self) -> bool {
        matches!(
            self,
            Self::Create(_)
                | Self::Delete(_)
                | Self::Append { .. }
                | Self::WriteWhole { .. }
                | Self::MakeDir { .. }
                | Self::RemoveDir { .. }
        ) || matches!(self, Self::Write(io) if !io.random)
    }

    /// The file reference of an operation that has one.
    #[must_use]
    pub fn file(&self) -> Option<&FileRef> {
        match self {
            Self::Read(io) | Self::Write(io) | Self::AioWrite { io, .. } => Some(&io.file),
            Self::Open(f) | Self::Create(f) | Self::Delete(f) | Self::Stat(f) | Self::Fsync(f) => {
                Some(f)
            }
            Self::ReadWhole { file, .. }
            | Self::WriteWhole { file, .. }
            | Self::Append { file, .. } => Some(file),
            _ => None,
        }
    }
}

impl Program {
    /// The pattern, if it is one.
    #[must_use]
    pub fn pattern(&self) -> Option<&Pattern> {
        match self {
            Self::Pattern(pattern) => Some(pattern),
            Self::Sequence(_) | Self::Mix(_) => None,
        }
    }

    /// Calls `visit` with every step of the program that is an operation, in the order they are
    /// written. Mixes and patterns have none.
    pub fn for_each_op<'a>(&'a self, visit: &mut dyn FnMut(OperationId, Value, &'a Op)) {
        fn walk<'a>(steps: &'a [Step], visit: &mut dyn FnMut(OperationId, Value, &'a Op)) {
            for step in steps {
                match step {
                    Step::Do { row, iters, op } => visit(*row, *iters, op),
                    Step::Block { steps, .. } => walk(steps, visit),
                }
            }
        }
        match self {
            Self::Sequence(steps) => walk(steps, visit),
            // Their operations are no steps: see `Program::mix` and `Program::pattern`.
            Self::Mix(_) | Self::Pattern(_) => {}
        }
    }

    /// The operation mix, if it is one.
    #[must_use]
    pub fn mix(&self) -> Option<&Mix> {
        match self {
            Self::Mix(mix) => Some(mix),
            Self::Sequence(_) | Self::Pattern(_) => None,
        }
    }
}
