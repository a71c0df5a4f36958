//! The operations of mixes.

use crate::operation::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! operations {
    ($($(#[$about:meta])* $op:ident, $name:literal, $kind:ident;)*) => {
        /// An operation of a mix: one of 26 operations of netmist's table of operations, the flush, or one of three NFS
        /// procedures that no system call causes alone.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum MixOp {
            $($(#[$about])* $op,)*
        }

        impl MixOp {
            /// All operations of mixes; the first 26 in the order of netmist's workload files.
            pub const ALL: [Self; 30] = [$(Self::$op),*];

            /// Name of the operation in workload files and results.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$op => $name,)*
                }
            }

            /// Kind of the operation in the results, which several operations of mixes may share.
            #[must_use]
            pub fn kind(self) -> OpKind {
                match self {
                    $(Self::$op => OpKind::$kind,)*
                }
            }
        }
    };
}

// Each line defines an operation of mixes: the variant, the name in workload files, and the kind of operation in the
// results.
operations! {
    /// Read at the worker's next position in a data file.
    Read, "read", Read;
    /// Read of a whole data file: open, reads to the end, close.
    ReadFile, "read_file", ReadWhole;
    /// Read of a random position in a memory mapping of a data file.
    MmapRead, "mmap_read", MmapRead;
    /// Read at a random position in a data file.
    ReadRand, "read_rand", Read;
    /// Write at the worker's next position in a data file.
    Write, "write", Write;
    /// Write of a whole turnover file: open (with create, or with truncate if all files exist), writes, close.
    WriteFile, "write_file", WriteWhole;
    /// Write at a random position in a memory mapping of a data file, with `osync` followed by a flush of the range.
    MmapWrite, "mmap_write", MmapWrite;
    /// Write at a random position in a data file.
    WriteRand, "write_rand", Write;
    /// Read at a random position in a data file, followed by a write at the same position.
    Rmw, "rmw", Rmw;
    /// Creation of a missing spare directory of the worker (mkdir).
    Mkdir, "mkdir", MakeDir;
    /// Removal of an existing spare directory of the worker (rmdir).
    Rmdir, "rmdir", RemoveDir;
    /// Removal of an existing empty file of the worker (unlink).
    Unlink, "unlink", Delete;
    /// Removal of an existing turnover file of the worker (unlink).
    Unlink2, "unlink2", Delete;
    /// Creation of a missing empty file of the worker (open with create, close).
    Create, "create", Create;
    /// Write at the end of a data file.
    Append, "append", Append;
    /// Lock of a range of a data file, followed by the unlock.
    Lock, "lock", Lock;
    /// Check of the permission to read and write a data file (access).
    Access, "access", Access;
    /// Query of the attributes of a data file by its path (stat).
    Stat, "stat", Stat;
    /// Stat of a name that does not exist; the error is the expected result.
    NegStat, "neg_stat", NegStat;
    /// Change of the permissions of a data file (chmod).
    Chmod, "chmod", Chmod;
    /// Listing of a directory of the data files, without the attributes of the entries.
    Readdir, "readdir", ListDir;
    /// Copy of a data file to a turnover file (created, or truncated if all exist), by reads and writes of the whole
    /// file.
    Copyfile, "copyfile", CopyFile;
    /// Rename of a turnover file to an unused name.
    Rename, "rename", Rename;
    /// Query of the total and free space of the file system (statfs).
    Statfs, "statfs", StatFs;
    /// Query of the maximum length of a name in the file system (pathconf).
    Pathconf, "pathconf", PathConf;
    /// Change of the length of a data file (truncate).
    Truncate, "truncate", Truncate;
    /// Flush of a data file to stable storage (fsync).
    Fsync, "fsync", Fsync;
    /// Lookup of the name of a data file, as the NFS procedure LOOKUP alone.
    Lookup, "lookup", Lookup;
    /// Read of a symbolic link to a data file, as the NFS procedure READLINK alone.
    Readlink, "readlink", ReadLink;
    /// Listing of a directory of the data files with the attributes of the entries, as the NFS procedure READDIRPLUS.
    Readdirplus, "readdirplus", ListDirPlus;
}

/// Files or directories that an operation of a mix works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Data files, which exist throughout the run.
    Data,
    /// Turnover files, which operations of the mix create and remove.
    Turnover,
    /// Empty files, which operations of the mix create and remove.
    Empty,
    /// Spare directories, or directories of the data files.
    Dirs,
    /// The file system as a whole.
    None,
}

impl MixOp {
    /// The operation with this name in workload files; `None` if the name is unknown.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Pool of files or directories on which the operation works.
    #[must_use]
    pub fn pool(self) -> Pool {
        match self {
            Self::WriteFile | Self::Unlink2 | Self::Copyfile | Self::Rename => Pool::Turnover,
            Self::Create | Self::Unlink => Pool::Empty,
            Self::Mkdir | Self::Rmdir | Self::Readdir | Self::Readdirplus => Pool::Dirs,
            Self::Statfs | Self::Pathconf => Pool::None,
            _ => Pool::Data,
        }
    }

    /// Whether the operation can change which files and directories exist, or the length of a file.
    #[must_use]
    pub fn changes_tree(self) -> bool {
        match self.pool() {
            Pool::Turnover | Pool::Empty => true,
            Pool::Dirs => matches!(self, Self::Mkdir | Self::Rmdir),
            // A random write that bypasses the page cache may round a file up to whole blocks.
            Pool::Data => matches!(
                self,
                Self::Write
                    | Self::WriteRand
                    | Self::MmapWrite
                    | Self::Rmw
                    | Self::Append
                    | Self::Truncate
            ),
            Pool::None => false,
        }
    }

    /// Whether the operation can set the length of a data file: an append truncates a long file, and an empty file is
    /// lengthened before a mapping.
    #[must_use]
    pub fn sets_length(self) -> bool {
        matches!(
            self,
            Self::Truncate | Self::Append | Self::MmapRead | Self::MmapWrite
        )
    }

    /// Whether the operation uses the table of read sizes: operations on whole files make calls of the table's maximum
    /// size, and other reads draw their size.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(
            self,
            Self::Read | Self::ReadFile | Self::MmapRead | Self::ReadRand | Self::Copyfile
        )
    }

    /// Whether the operation works on a data file that its preparation opens; any other operation opens its files
    /// itself, or opens no file.
    #[must_use]
    pub fn uses_open_file(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Write
                | Self::ReadRand
                | Self::WriteRand
                | Self::Rmw
                | Self::MmapRead
                | Self::MmapWrite
                | Self::Lock
                | Self::Append
                | Self::Truncate
                | Self::Fsync
        )
    }

    /// Whether the operation uses the table of write sizes, as writes and locks do: operations on whole files make
    /// calls of the table's maximum size, and other operations draw their size.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Write
                | Self::WriteFile
                | Self::MmapWrite
                | Self::WriteRand
                | Self::Rmw
                | Self::Append
                | Self::Lock
        )
    }
}

impl fmt::Display for MixOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_serialised_form() {
        for op in MixOp::ALL {
            assert_eq!(serde_json::to_value(op).unwrap(), op.name());
            assert_eq!(MixOp::named(op.name()), Some(op));
        }
        assert_eq!(MixOp::named("custom1"), None);
        assert_eq!(format!("{:>6}|", MixOp::Read), "  read|");
    }

    /// Names of the operations of mixes for which `fits` is true, in the order of the table.
    fn those(fits: impl Fn(MixOp) -> bool) -> String {
        let names = MixOp::ALL.into_iter().filter(|op| fits(*op));
        names.map(MixOp::name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn operations_work_on_the_files_of_their_pool() {
        let of = |pool| those(|op| op.pool() == pool);
        assert_eq!(of(Pool::Turnover), "write_file unlink2 copyfile rename");
        assert_eq!(of(Pool::Empty), "unlink create");
        assert_eq!(of(Pool::Dirs), "mkdir rmdir readdir readdirplus");
        assert_eq!(of(Pool::None), "statfs pathconf");
        assert_eq!(
            of(Pool::Data),
            "read read_file mmap_read read_rand write mmap_write write_rand rmw append lock access \
             stat neg_stat chmod truncate fsync lookup readlink"
        );
    }

    #[test]
    fn operations_that_change_names_or_lengths_change_the_tree() {
        assert_eq!(
            those(MixOp::changes_tree),
            "write write_file mmap_write write_rand rmw mkdir rmdir unlink unlink2 create append \
             copyfile rename truncate"
        );
    }

    #[test]
    fn operations_that_truncate_or_lengthen_a_file_set_its_length() {
        assert_eq!(
            those(MixOp::sets_length),
            "mmap_read mmap_write append truncate"
        );
    }

    #[test]
    fn operations_on_open_files_leave_opening_to_the_preparation() {
        assert_eq!(
            those(MixOp::uses_open_file),
            "read mmap_read read_rand write mmap_write write_rand rmw append lock truncate fsync"
        );
    }

    #[test]
    fn operations_with_sizes_draw_them_from_one_of_the_tables() {
        assert_eq!(
            those(MixOp::reads),
            "read read_file mmap_read read_rand copyfile"
        );
        assert_eq!(
            those(MixOp::writes),
            "write write_file mmap_write write_rand rmw append lock"
        );
    }
}
