//! Operations of sequences with their properties, kinds of operations, and rows of the results.

use crate::ids::{FilesetId, OperationId};
use crate::source::SourcePosition;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use strum::Display;

/// A row of the results: all operations that are counted and timed under one name and kind.
///
/// Steps of the same name and kind share a row, whichever worker executes the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Name of the operation in the workload, or name of a procedure that the target calls.
    pub name: String,
    /// Kind of the operations in the row, from which class and directions follow.
    pub kind: OpKind,
    /// Source location of the first step of the row; null if the workload has no source text.
    pub location: Option<SourcePosition>,
}

/// Defines [`OpKind`]: each line has a kind, its class, and the directions in which the kind moves data.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident: $class:ident $($direction:ident)*;)*) => {
        /// Kind of operation in a row of the results, such as the read of a whole file.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display,
        )]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        #[allow(missing_docs)] // the names are those of the flowops
        pub enum OpKind {
            $($(#[$about])* $kind,)*
        }

        impl OpKind {
            /// Class of the kind, which decides whether the summary counts operations of the kind.
            ///
            /// The completion of an asynchronous write is `Other`: the summary counts a write when the write is queued.
            #[must_use]
            pub fn class(self) -> OpClass {
                match self {
                    $(Self::$kind => OpClass::$class,)*
                }
            }

            fn directions(self) -> &'static [Direction] {
                match self {
                    $(Self::$kind => &[$(Direction::$direction),*],)*
                }
            }
        }
    };
}

/// Direction in which an operation moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Data move from the target to the client, as in a read.
    In,
    /// Data move from the client to the target, as in a write.
    Out,
}

kinds! {
    Read: Io In;
    Write: Io Out;
    /// Queueing of an asynchronous write, whose bytes count when the write is queued.
    AioWrite: Aio Out;
    /// Completion of an asynchronous write, timed from the queueing of the write.
    AioComplete: Other;
    AioWait: Aio;
    Open: Io;
    Create: Io;
    /// Creation of a whole object: open with create, write, close.
    ObjectCreate: Io Out;
    /// Read of a whole object: open, read, close.
    ObjectRead: Io In;
    Close: Io;
    /// Close that sent no call to the server of the files, and so does not count in the summary.
    LocalClose: Other;
    ReadWhole: Io In;
    WriteWhole: Io Out;
    Append: Io Out;
    Delete: Io;
    Stat: Io;
    Fsync: Io;
    FsyncSet: Io;
    MakeDir: Io;
    RemoveDir: Io;
    ListDir: Io;
    SemBlock: Sync;
    SemPost: Sync;
    Block: Sync;
    Wakeup: Sync;
    Hog: Other;
    Delay: Other;
    Limit: Sync;
    Finish: Other;
    Print: Other;
    TestVariable: Other;
    MmapRead: Io In;
    MmapWrite: Io Out;
    /// Read of a piece of a file, followed by a write at the same position.
    Rmw: Io In Out;
    /// Lock and unlock of a range of a file.
    Lock: Io;
    Access: Io;
    /// Stat of a name that does not exist.
    NegStat: Io;
    Chmod: Io;
    CopyFile: Io In Out;
    Rename: Io;
    StatFs: Io;
    PathConf: Io;
    Truncate: Io;
    /// NFS procedure LOOKUP of a name, which no system call causes alone.
    Lookup: Io;
    /// NFS procedure READLINK of a symbolic link, which no system call causes alone.
    ReadLink: Io;
    /// NFS procedure READDIRPLUS, which lists a directory with the attributes of the directory's entries.
    ListDirPlus: Io;
    /// Preparation of an operation of a mix, which is not part of the operation.
    Prepare: Other;
    /// Start delay: the start of an operation of a mix, timed from the intended start.
    Start: Other;
    /// Remote procedure that the target called on a server for operations of the workload.
    Rpc: Other;
    /// Completion delay: the time from the completion of an operation of a ring until the worker saw the completion.
    CompletionDelay: Other;
}

/// Class of a kind of operation; only operations of the classes `io` and `aio` count in the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum OpClass {
    /// Operations on files and directories that the target executes.
    Io,
    /// Asynchronous writes, and waits for the completion of asynchronous writes.
    Aio,
    /// Coordination of workers: semaphores, blocks, wakeups and limiters.
    Sync,
    /// Kinds of operation in no other class, such as delays, think time, and procedures of the target.
    Other,
}

impl OpKind {
    /// Whether the summary counts operations of the kind.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self.class(), OpClass::Io | OpClass::Aio)
    }

    /// Whether operations of the kind are of the workload; the target reports the other kinds.
    #[must_use]
    pub fn is_of_workload(self) -> bool {
        !matches!(self, Self::Rpc | Self::CompletionDelay)
    }

    /// Whether operations of the kind move data from the target to the client.
    #[must_use]
    pub fn reads(self) -> bool {
        self.directions().contains(&Direction::In)
    }

    /// Whether operations of the kind move data from the client to the target.
    #[must_use]
    pub fn writes(self) -> bool {
        self.directions().contains(&Direction::Out)
    }
}

/// File that an operation works on, and the slot in which the worker holds the file's descriptor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileRef {
    /// Fileset from which the file is chosen; null for an operation on the file that is open in the slot.
    pub fileset: Option<FilesetId>,
    /// Number of the descriptor slot of the file, 0 to 127; every worker has slots of its own.
    pub slot: u8,
    /// Whether each use of the file reference takes the next descriptor slot, from the highest number down, instead of
    /// `slot`.
    pub open_next: bool,
    /// Number of the file in the fileset, modulo the number of files; null for the next file in order.
    pub index: Option<Value>,
    /// Row of the results for implicit opens, which precede an operation on a closed slot, such as a read; null if the
    /// operation opens no file.
    pub implicit_open: Option<OperationId>,
    /// Whether the file is opened with direct I/O (`O_DIRECT`).
    pub direct: bool,
    /// Whether the file is opened with synchronous writes (`O_DSYNC`), which return when the data are on stable
    /// storage.
    pub dsync: bool,
    /// Whether the kernel is advised, when the file is opened, not to read ahead of reads.
    pub no_read_ahead: bool,
}

impl FileRef {
    /// Reference to the file that is open in slot `slot`, without a fileset and without open options.
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

/// A transfer: a read or write of a given size at a position of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Io {
    /// File that the transfer reads or writes.
    pub file: FileRef,
    /// Size of the transfer in bytes, drawn for each execution if the size is a random variable.
    pub size: Value,
    /// Whether the transfer is at the offset `floor(u·(working_set − size)/size)·size` with a uniform u from 0 to 1,
    /// instead of after the previous transfer of the open file.
    pub random: bool,
    /// Working set: the number of bytes from the start of the file in which random transfers stay; 0 for the whole
    /// file.
    pub working_set: u64,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Work for which a limiter takes events. A limiter of the kind `calls` is a schedule; limiters of all other kinds are
/// caps, which charge a worker for completed work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// `eventlimit`: one event for each call of the limiter.
    Calls,
    /// `iopslimit`: one event for each operation that moved data since the worker's last call of the limiter.
    IoOps,
    /// `opslimit`: one event for each operation since the worker's last call of the limiter.
    Ops,
    /// `bwlimit`: one event for each MiB that the worker moved since its last call of the limiter.
    Bandwidth,
}

/// An operation of a sequence with its parameters; the engine times every execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Read of an open file, with the size and the position of the transfer; a closed file is opened first.
    Read(Io),
    /// Write to an open file, with the size and the position of the transfer; a closed file is opened first.
    Write(Io),
    /// Asynchronous write to a file: the operation only queues the write, which is completed later.
    AioWrite {
        /// File, size and position of the write that is queued.
        io: Io,
        /// Row of the results for the completion of the write, timed from the queueing of the write.
        completion: OperationId,
    },
    /// Wait until half of the worker's queued asynchronous writes, but at least one write, have completed.
    AioWait,
    /// Open of an existing file of a fileset into a descriptor slot, which must be closed before the open.
    Open(FileRef),
    /// Creation of a missing file of a fileset, which stays open in a descriptor slot; the slot must be closed before
    /// the creation.
    Create(FileRef),
    /// Close of the file in a slot. After the close, a delete in the slot, or a `write_whole` with the slot as
    /// `source_slot`, uses the closed file.
    Close {
        /// Number of the descriptor slot whose file is closed, 0 to 127.
        slot: u8,
    },
    /// Read of a whole file from the start to the end, in calls of `size` bytes.
    ReadWhole {
        /// File that is read from the start to the end.
        file: FileRef,
        /// Number of bytes per call of the operation; 0 for calls of the whole file, of at most 64 MiB each.
        size: Value,
    },
    /// Write from the start of a file, of as many bytes as the planned size of the file of `source_slot`, in calls of
    /// `size` bytes.
    WriteWhole {
        /// File that is written from the start.
        file: FileRef,
        /// Slot of the file whose planned size is the number of bytes written; null for the planned size of the written
        /// file.
        source_slot: Option<u8>,
        /// Number of bytes per call of the operation; 0 for calls of the whole file, of at most 64 MiB each.
        size: Value,
    },
    /// Append: write of `size` bytes at the end of a file.
    Append {
        /// File at whose end the bytes are written.
        file: FileRef,
        /// Number of bytes appended; with `random`, the maximum number of bytes appended.
        size: Value,
        /// Whether the number of bytes appended is drawn uniformly from 0 to `size`.
        random: bool,
    },
    /// Delete of the file in a slot, if the slot number is above 0 and the slot holds a file, and otherwise of the next
    /// existing file of a fileset. A file that other workers have open is not deleted.
    Delete(FileRef),
    /// Stat of the open file in a slot, if the slot number is above 0 and a file is open, and otherwise of the next
    /// existing file of a fileset by its path.
    Stat(FileRef),
    /// Flush (fsync) of the file in a slot to stable storage; a closed file is opened first.
    Fsync(FileRef),
    /// Flush (fsync) of every file of a fileset that the worker has open, timed as one operation.
    FsyncSet {
        /// Fileset whose open files are flushed.
        fileset: FilesetId,
    },
    /// Creation of a missing leaf directory of a fileset.
    MakeDir {
        /// Fileset whose leaf directory is created.
        fileset: FilesetId,
        /// Number of the leaf directory in the fileset, modulo the number of leaf directories; null for the next leaf
        /// directory in order.
        index: Option<Value>,
    },
    /// Removal of an existing leaf directory of a fileset.
    RemoveDir {
        /// Fileset whose leaf directory is removed.
        fileset: FilesetId,
        /// Number of the leaf directory in the fileset, modulo the number of leaf directories; null for the next leaf
        /// directory in order.
        index: Option<Value>,
    },
    /// Listing: open of a directory of a fileset, reads to the end of the directory, and close, timed as one operation.
    ListDir {
        /// Fileset whose directories are listed.
        fileset: FilesetId,
        /// Number of the directory in the fileset, modulo the number of directories; null for the next directory in
        /// order.
        index: Option<Value>,
    },
    /// Semblock: wait until the worker's semaphore of the row has `value` posts, which the worker then takes.
    SemBlock {
        /// Number of posts that the worker waits for and takes.
        value: Value,
        /// High water: the number of posts not yet taken above which blocking posters wait.
        high_water: Value,
    },
    /// Sempost: `value` posts to the semaphore of every worker that executes one of the semblocks `targets`.
    SemPost {
        /// Rows of the semblocks whose semaphores receive the posts.
        targets: Vec<OperationId>,
        /// Number of posts that each semaphore receives.
        value: Value,
        /// Whether the poster waits while a target has more posts than its high water that are not yet taken.
        blocking: bool,
    },
    /// Block: wait until a `wakeup` operation names the row of this operation.
    Block,
    /// Wakeup of every worker that waits in one of the block operations `targets`.
    Wakeup {
        /// Rows of the block operations whose workers are woken.
        targets: Vec<OperationId>,
    },
    /// Hog: `value` stores to memory, which use processor time of the client as an application does.
    Hog {
        /// Number of stores to memory; in virtual time, each store takes 1 ns.
        value: Value,
    },
    /// Delay: the worker sleeps for `seconds` and `nanoseconds`.
    Delay {
        /// Whole seconds of the delay.
        seconds: Value,
        /// Nanoseconds of the delay, in addition to the whole seconds.
        #[serde(default, skip_serializing_if = "is_zero")]
        nanoseconds: u32,
    },
    /// Limiter: wait for the events that the call (`calls`), or the worker's work since the last call of the limiter,
    /// costs.
    Limit {
        /// Kind of work for which the limiter takes events.
        kind: LimitKind,
        /// Rows of the results whose operations the limiter charges; null for all rows.
        targets: Option<Vec<OperationId>>,
    },
    /// End of the worker (`finishoncount`) if the run has completed at least `value` operations of the rows `targets`.
    FinishOnCount {
        /// Number of completed operations of all workers at which the worker ends.
        value: Value,
        /// Rows of the results whose operations count; null for all rows that the summary counts.
        targets: Option<Vec<OperationId>>,
    },
    /// End of the worker (`finishonbytes`) if the operations of the rows `targets` have moved at least `value` bytes.
    FinishOnBytes {
        /// Number of bytes moved by all workers at which the worker ends.
        value: Value,
        /// Rows of the results whose bytes count; null for all rows that the summary counts.
        targets: Option<Vec<OperationId>>,
    },
    /// Message of the workload, printed with the name of the worker.
    Print {
        /// Text of the workload's message.
        text: String,
    },
    /// Draw of a random variable (`testrandvar`); the run reports mean and standard deviation of the draws at the end.
    TestVariable {
        /// Random variable from which the operation draws.
        value: Value,
    },
}

/// Kind and state of the entries of a [`Supply`](crate::Supply).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SupplyKind {
    /// Files of the fileset that exist, which a delete uses up.
    Files,
    /// Files of the layout that do not exist, which a create uses up.
    MissingFiles,
    /// Leaf directories of the fileset that exist, which a removedir uses up.
    LeafDirs,
    /// Leaf directories of the layout that do not exist, which a makedir uses up.
    MissingLeafDirs,
}

impl SupplyKind {
    /// Kind of an entry after an operation has taken the entry: a deleted file is missing, and a created file exists.
    pub(crate) fn opposite(self) -> Self {
        match self {
            Self::Files => Self::MissingFiles,
            Self::MissingFiles => Self::Files,
            Self::LeafDirs => Self::MissingLeafDirs,
            Self::MissingLeafDirs => Self::LeafDirs,
        }
    }
}

impl fmt::Display for SupplyKind {
    /// Writes the name of one entry, such as `existing file`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Files => "existing file",
            Self::MissingFiles => "file to create",
            Self::LeafDirs => "leaf directory",
            Self::MissingLeafDirs => "leaf directory to make",
        })
    }
}

/// Properties of an operation that the engine and the checks of a Plan need before the operation is executed.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpProperties<'a> {
    /// File that the operation works on; `None` if the operation names no file.
    pub file: Option<&'a FileRef>,
    /// Fileset of an operation without `file`: its directories, all its open files, or a file that is in no slot.
    pub fileset: Option<FilesetId>,
    /// Second descriptor slot of the operation, beside the slot of `file`, such as the slot of a close or the
    /// `source_slot` of `write_whole`.
    pub slot: Option<u8>,
    /// Number of file descriptors that an execution of the operation holds open, beside the descriptors in slots.
    pub descriptors: u32,
    /// Parameters of the operation that are drawn for each execution if they are random variables.
    pub values: [Option<Value>; 2],
    /// Rows of other operations to which the operation refers, such as the targets of a limiter.
    pub rows: &'a [OperationId],
    /// Kind of fileset entry that each execution of the operation uses up; `None` if no entry is used up.
    pub takes: Option<SupplyKind>,
    /// Whether an execution of the operation can change the set of existing files, or the length of a file.
    pub changes_tree: bool,
    /// Means by which the operation affects other workers of its process, such as `semaphores`.
    pub coordinates_by: Option<&'static str>,
    /// Whether the operation ends its worker at a count, as `finishoncount` does.
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
    /// Properties of the operation that follow from its kind and parameters.
    #[must_use]
    pub fn properties(&self) -> OpProperties<'_> {
        let none = OpProperties::default();
        let on = |file| OpProperties {
            file: Some(file),
            ..none
        };
        let moves = |file, size| OpProperties {
            values: [Some(size), None],
            ..on(file)
        };
        let of_value = |value| OpProperties {
            values: [Some(value), None],
            ..none
        };
        let directories = |fileset, index, takes| OpProperties {
            fileset: Some(fileset),
            values: [index, None],
            takes,
            changes_tree: takes.is_some(),
            ..none
        };
        match self {
            Self::Read(io) => moves(&io.file, io.size),
            Self::Write(io) => OpProperties {
                // A write at the next position can extend the file.
                changes_tree: !io.random,
                ..moves(&io.file, io.size)
            },
            Self::AioWrite { io, completion } => OpProperties {
                rows: std::slice::from_ref(completion),
                ..moves(&io.file, io.size)
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
            Self::ReadWhole { file, size } => moves(file, *size),
            Self::WriteWhole {
                file,
                source_slot,
                size,
            } => OpProperties {
                slot: *source_slot,
                changes_tree: true,
                ..moves(file, *size)
            },
            Self::Append { file, size, .. } => OpProperties {
                changes_tree: true,
                ..moves(file, *size)
            },
            Self::FsyncSet { fileset } => directories(*fileset, None, None),
            Self::MakeDir { fileset, index } => {
                directories(*fileset, *index, Some(SupplyKind::MissingLeafDirs))
            }
            Self::RemoveDir { fileset, index } => {
                directories(*fileset, *index, Some(SupplyKind::LeafDirs))
            }
            Self::ListDir { fileset, index } => OpProperties {
                descriptors: 1,
                ..directories(*fileset, *index, None)
            },
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

    /// File reference of the operation; `None` for an operation without a file, such as a delay.
    #[must_use]
    pub fn file(&self) -> Option<&FileRef> {
        self.properties().file
    }
}

/// Means by which `semblock` and `sempost` affect other workers ([`OpProperties::coordinates_by`]).
const SEMAPHORES: &str = "semaphores";

/// Means by which `block` and `wakeup` affect other workers ([`OpProperties::coordinates_by`]).
const WAKEUPS: &str = "block and wakeup";

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the kinds of operation whose class is `Io`, as in JSON.
    const IO: &str = "read write open create object_create object_read close read_whole write_whole \
                      append delete stat fsync fsync_set make_dir remove_dir list_dir mmap_read \
                      mmap_write rmw lock access neg_stat chmod copy_file rename stat_fs path_conf \
                      truncate lookup read_link list_dir_plus";
    const AIO: &str = "aio_write aio_wait";
    const SYNC: &str = "sem_block sem_post block wakeup limit";
    const OTHER: &str = "aio_complete local_close hog delay finish print test_variable prepare start rpc \
                         completion_delay";

    fn kinds(names: &str) -> Vec<OpKind> {
        let kind = |name: &str| serde_json::from_value(name.into()).unwrap();
        names.split_whitespace().map(kind).collect()
    }

    fn all() -> Vec<OpKind> {
        [IO, AIO, SYNC, OTHER].into_iter().flat_map(kinds).collect()
    }

    fn those(fits: fn(OpKind) -> bool) -> Vec<OpKind> {
        all().into_iter().filter(|kind| fits(*kind)).collect()
    }

    #[test]
    fn every_kind_has_its_class() {
        assert!(all().iter().all(|k| serde_json::json!(k) == k.to_string()));
        for (class, names) in [
            (OpClass::Io, IO),
            (OpClass::Aio, AIO),
            (OpClass::Sync, SYNC),
            (OpClass::Other, OTHER),
        ] {
            let of_class: Vec<OpKind> = all().into_iter().filter(|k| k.class() == class).collect();
            assert_eq!(of_class, kinds(names), "{class:?}");
        }
        assert_eq!(those(OpKind::counts), [kinds(IO), kinds(AIO)].concat());
    }

    #[test]
    fn what_a_target_does_for_an_operation_is_not_of_the_workload() {
        let others = those(|kind| !kind.is_of_workload());
        assert_eq!(others, [OpKind::Rpc, OpKind::CompletionDelay]);
    }

    #[test]
    fn kinds_that_move_data_have_a_direction() {
        let reads = "read object_read read_whole mmap_read rmw copy_file";
        assert_eq!(those(OpKind::reads), kinds(reads));
        let writes = "write object_create write_whole append mmap_write rmw copy_file aio_write";
        assert_eq!(those(OpKind::writes), kinds(writes));
    }

    #[test]
    fn kinds_are_shown_by_their_names_in_json() {
        let shown: Vec<String> = all().iter().map(ToString::to_string).collect();
        let names = [IO, AIO, SYNC, OTHER].join(" ");
        assert_eq!(shown, names.split_whitespace().collect::<Vec<_>>());
    }
}
