//! Operations: the rows of the results, and their kinds.

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
    /// Creation of a whole object: open with create, write, close.
    ObjectCreate,
    /// Read of a whole object: open, read, close.
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
    /// Read of a piece of a file and write at the same position.
    Rmw,
    /// Lock and unlock of a range.
    Lock,
    Access,
    /// Stat of a name that does not exist.
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
    /// Preparation of an operation of a mix, outside of the operation.
    Prepare,
    /// Start of an operation of a mix, timed from its intended start.
    Start,
    /// A procedure that the target called on a server.
    Rpc,
    /// Time from the completion of an operation in a target's queue until its worker saw it.
    CompletionDelay,
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
            | Self::Rpc
            | Self::CompletionDelay => OpClass::Other,
            _ => OpClass::Io,
        }
    }

    /// Whether the summary counts it.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self.class(), OpClass::Io | OpClass::Aio)
    }

    /// Whether it is an operation of the workload, not something that the target does for one.
    #[must_use]
    pub fn is_of_workload(self) -> bool {
        !matches!(self, Self::Rpc | Self::CompletionDelay)
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
    /// Writes the name in the JSON form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of all kinds by class.
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
