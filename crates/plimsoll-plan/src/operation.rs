//! Rows of the results, and the kinds of operations.

use crate::source::SourcePosition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One row of the results: the operations that are counted and timed under one name and kind.
///
/// Steps of the same name and kind share a row, whichever worker executes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Operation {
    /// Name the workload gave it.
    pub name: String,
    /// Kind of operation.
    pub kind: OpKind,
    /// Source location of the first step.
    pub location: Option<SourcePosition>,
}

/// Defines [`OpKind`]: each line has a kind, its class, and the directions in which the kind moves data.
macro_rules! kinds {
    ($($(#[$about:meta])* $kind:ident: $class:ident $($direction:ident)*;)*) => {
        /// Kinds of operation, the unit of statistics.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[allow(missing_docs)] // the names are those of the flowops
        pub enum OpKind {
            $($(#[$about])* $kind,)*
        }

        impl OpKind {
            /// Class of the kind, which decides whether the summary counts it.
            ///
            /// The completion of an asynchronous write is `Other`: the summary counts the write when it is queued.
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

/// Directions of data transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// From the target to the client.
    In,
    /// From the client to the target.
    Out,
}

kinds! {
    Read: Io In;
    Write: Io Out;
    /// Queueing of an asynchronous write.
    AioWrite: Aio Out;
    /// Completion of an asynchronous write, from its queueing.
    AioComplete: Other;
    AioWait: Aio;
    Open: Io;
    Create: Io;
    /// Creation of a whole object: open with create, write, close.
    ObjectCreate: Io Out;
    /// Read of a whole object: open, read, close.
    ObjectRead: Io In;
    Close: Io;
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
    /// Read of a piece of a file and write at the same position.
    Rmw: Io In Out;
    /// Lock and unlock of a range.
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
    /// NFS's LOOKUP alone.
    Lookup: Io;
    /// NFS's READLINK alone.
    ReadLink: Io;
    /// NFS's READDIRPLUS.
    ListDirPlus: Io;
    /// Preparation of an operation of a mix, outside of the operation.
    Prepare: Other;
    /// Start of an operation of a mix, timed from its intended start.
    Start: Other;
    /// A procedure that the target called on a server.
    Rpc: Other;
    /// Time from the completion of an operation in a target's queue until its worker saw it.
    CompletionDelay: Other;
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
    /// Whether the summary counts operations of the kind.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self.class(), OpClass::Io | OpClass::Aio)
    }

    /// Whether the workload executes the kind; otherwise the target reports it.
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

impl fmt::Display for OpKind {
    /// Writes the kind as in JSON, such as `read_whole`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the kinds whose class is `Io`.
    const IO: &str = "read write open create object_create object_read close read_whole write_whole \
                      append delete stat fsync fsync_set make_dir remove_dir list_dir mmap_read \
                      mmap_write rmw lock access neg_stat chmod copy_file rename stat_fs path_conf \
                      truncate lookup read_link list_dir_plus";
    const AIO: &str = "aio_write aio_wait";
    const SYNC: &str = "sem_block sem_post block wakeup limit";
    const OTHER: &str = "aio_complete hog delay finish print test_variable prepare start rpc \
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
