//! The operations of mixes.

use crate::operation::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! operations {
    ($($(#[$about:meta])* $op:ident, $name:literal, $kind:ident;)*) => {
        /// An operation of a mix: the 26 of netmist's table of operations that Plimsoll executes, the
        /// flush, and three NFS procedures that no system call causes alone.
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum MixOp {
            $($(#[$about])* $op,)*
        }

        impl MixOp {
            /// All operations; the first 26 in the order of netmist's workload files.
            pub const ALL: [Self; 30] = [$(Self::$op),*];

            /// Name in workload files and results.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$op => $name,)*
                }
            }

            /// Kind of operation in the results.
            #[must_use]
            pub fn kind(self) -> OpKind {
                match self {
                    $(Self::$op => OpKind::$kind,)*
                }
            }
        }
    };
}

// Variant, name in files, kind in results.
operations! {
    /// Read at the worker's next position in a data file.
    Read, "read", Read;
    /// Open a data file, read it to the end, close it.
    ReadFile, "read_file", ReadWhole;
    /// Read from a mapping of a data file, at a random position.
    MmapRead, "mmap_read", MmapRead;
    /// Read at a random position in a data file.
    ReadRand, "read_rand", Read;
    /// Write at the worker's next position in a data file.
    Write, "write", Write;
    /// Open a turnover file (created, or truncated if all exist), write all of it, close it.
    WriteFile, "write_file", WriteWhole;
    /// Write to a mapping of a data file, at a random position; with `osync`, flush the range.
    MmapWrite, "mmap_write", MmapWrite;
    /// Write at a random position in a data file.
    WriteRand, "write_rand", Write;
    /// Read at a random position in a data file, and write at the same position.
    Rmw, "rmw", Rmw;
    /// Create a spare directory.
    Mkdir, "mkdir", MakeDir;
    /// Remove a spare directory.
    Rmdir, "rmdir", RemoveDir;
    /// Remove a turnover file.
    Unlink, "unlink", Delete;
    /// Remove an empty file.
    Unlink2, "unlink2", Delete;
    /// Create an empty file.
    Create, "create", Create;
    /// Write at the end of a data file.
    Append, "append", Append;
    /// Lock a range of a data file and unlock it.
    Lock, "lock", Lock;
    /// Check whether a data file may be read and written.
    Access, "access", Access;
    /// Stat a data file.
    Stat, "stat", Stat;
    /// Stat a name that does not exist, which is the expected result.
    NegStat, "neg_stat", NegStat;
    /// Change the permissions of a data file.
    Chmod, "chmod", Chmod;
    /// Read a directory of the data files to its end.
    Readdir, "readdir", ListDir;
    /// Copy a data file to a turnover file (created, or truncated if all exist), by reading and
    /// writing all of it.
    Copyfile, "copyfile", CopyFile;
    /// Give a turnover file another name.
    Rename, "rename", Rename;
    /// Get the file system's space.
    Statfs, "statfs", StatFs;
    /// Get the longest name of the file system.
    Pathconf, "pathconf", PathConf;
    /// Set the length of a data file.
    Truncate, "truncate", Truncate;
    /// Flush a data file to stable storage.
    Fsync, "fsync", Fsync;
    /// Look a name up: NFS's LOOKUP alone.
    Lookup, "lookup", Lookup;
    /// Read a symbolic link: NFS's READLINK alone.
    Readlink, "readlink", ReadLink;
    /// Read a directory with the attributes of its entries: NFS's READDIRPLUS.
    Readdirplus, "readdirplus", ListDirPlus;
}

/// Files or directories that an operation of a mix works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Files that exist throughout the run.
    Data,
    /// Files that are created and removed.
    Turnover,
    /// Empty files that are created and removed.
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

    /// The files or directories that the operation works on.
    #[must_use]
    pub fn pool(self) -> Pool {
        match self {
            Self::WriteFile | Self::Unlink | Self::Copyfile | Self::Rename => Pool::Turnover,
            Self::Create | Self::Unlink2 => Pool::Empty,
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

    /// Whether the operation draws transfer sizes from the table of reads.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(
            self,
            Self::Read | Self::ReadFile | Self::MmapRead | Self::ReadRand | Self::Copyfile
        )
    }

    /// Whether the operation draws sizes from the table of writes.
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

    /// Names of the operations that fit.
    fn those(fits: impl Fn(MixOp) -> bool) -> String {
        let names = MixOp::ALL.into_iter().filter(|op| fits(*op));
        names.map(MixOp::name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn operations_work_on_the_files_of_their_pool() {
        let of = |pool| those(|op| op.pool() == pool);
        assert_eq!(of(Pool::Turnover), "write_file unlink copyfile rename");
        assert_eq!(of(Pool::Empty), "unlink2 create");
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
