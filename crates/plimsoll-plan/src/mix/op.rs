//! The operations a mix is made of.

use crate::program::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An operation of a mix: the 26 of netmist's table of operations that have a meaning of their
/// own, the flush, and three NFS procedures that no system call asks for alone.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum MixOp {
    /// Read at the worker's next position in a data file.
    Read,
    /// Open a data file, read it to the end, close it.
    ReadFile,
    /// Read from a mapping of a data file, at a random position.
    MmapRead,
    /// Read at a random position in a data file.
    ReadRand,
    /// Write at the worker's next position in a data file.
    Write,
    /// Open a turnover file (made, or emptied if all are there), write all of it, close it.
    WriteFile,
    /// Write to a mapping of a data file, at a random position; with `osync`, flush the range.
    MmapWrite,
    /// Write at a random position in a data file.
    WriteRand,
    /// Read at a random position in a data file, and write the same place.
    Rmw,
    /// Make a spare directory.
    Mkdir,
    /// Remove a spare directory.
    Rmdir,
    /// Remove a turnover file.
    Unlink,
    /// Remove an empty file.
    Unlink2,
    /// Make an empty file.
    Create,
    /// Write at the end of a data file.
    Append,
    /// Lock a range of a data file and unlock it.
    Lock,
    /// Ask whether a data file may be read and written.
    Access,
    /// Stat a data file.
    Stat,
    /// Stat a name that is not there; that it is not there is the success.
    NegStat,
    /// Change the permissions of a data file.
    Chmod,
    /// Read a directory of the data files to its end.
    Readdir,
    /// Copy a data file to a turnover file (made, or emptied if all are there), by reading and
    /// writing all of it.
    Copyfile,
    /// Give a turnover file another name.
    Rename,
    /// Ask for the file system's space.
    Statfs,
    /// Ask for the longest name of the file system.
    Pathconf,
    /// Set the length of a data file.
    Truncate,
    /// Flush a data file to stable storage.
    Fsync,
    /// Look a name up: NFS's LOOKUP alone.
    Lookup,
    /// Read a symbolic link: NFS's READLINK alone.
    Readlink,
    /// Read a directory with the attributes of its entries: NFS's READDIRPLUS.
    Readdirplus,
}

/// Names that an operation of a mix works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Files that stay.
    Data,
    /// Files that come and go.
    Turnover,
    /// Empty files that come and go.
    Empty,
    /// Spare directories, or directories of the data files.
    Dirs,
    /// The file system as a whole.
    None,
}

impl MixOp {
    /// All of them; the first 26 in the order of netmist's workload files.
    pub const ALL: [Self; 30] = [
        Self::Read,
        Self::ReadFile,
        Self::MmapRead,
        Self::ReadRand,
        Self::Write,
        Self::WriteFile,
        Self::MmapWrite,
        Self::WriteRand,
        Self::Rmw,
        Self::Mkdir,
        Self::Rmdir,
        Self::Unlink,
        Self::Unlink2,
        Self::Create,
        Self::Append,
        Self::Lock,
        Self::Access,
        Self::Stat,
        Self::NegStat,
        Self::Chmod,
        Self::Readdir,
        Self::Copyfile,
        Self::Rename,
        Self::Statfs,
        Self::Pathconf,
        Self::Truncate,
        Self::Fsync,
        Self::Lookup,
        Self::Readlink,
        Self::Readdirplus,
    ];

    /// Name in workload files and results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadFile => "read_file",
            Self::MmapRead => "mmap_read",
            Self::ReadRand => "read_rand",
            Self::Write => "write",
            Self::WriteFile => "write_file",
            Self::MmapWrite => "mmap_write",
            Self::WriteRand => "write_rand",
            Self::Rmw => "rmw",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::Unlink => "unlink",
            Self::Unlink2 => "unlink2",
            Self::Create => "create",
            Self::Append => "append",
            Self::Lock => "lock",
            Self::Access => "access",
            Self::Stat => "stat",
            Self::NegStat => "neg_stat",
            Self::Chmod => "chmod",
            Self::Readdir => "readdir",
            Self::Copyfile => "copyfile",
            Self::Rename => "rename",
            Self::Statfs => "statfs",
            Self::Pathconf => "pathconf",
            Self::Truncate => "truncate",
            Self::Fsync => "fsync",
            Self::Lookup => "lookup",
            Self::Readlink => "readlink",
            Self::Readdirplus => "readdirplus",
        }
    }

    /// The operation of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }

    /// Kind of operation it is in the results.
    #[must_use]
    pub fn kind(self) -> OpKind {
        match self {
            Self::Read | Self::ReadRand => OpKind::Read,
            Self::ReadFile => OpKind::ReadWhole,
            Self::MmapRead => OpKind::MmapRead,
            Self::Write | Self::WriteRand => OpKind::Write,
            Self::WriteFile => OpKind::WriteWhole,
            Self::MmapWrite => OpKind::MmapWrite,
            Self::Rmw => OpKind::Rmw,
            Self::Mkdir => OpKind::MakeDir,
            Self::Rmdir => OpKind::RemoveDir,
            Self::Unlink | Self::Unlink2 => OpKind::Delete,
            Self::Create => OpKind::Create,
            Self::Append => OpKind::Append,
            Self::Lock => OpKind::Lock,
            Self::Access => OpKind::Access,
            Self::Stat => OpKind::Stat,
            Self::NegStat => OpKind::NegStat,
            Self::Chmod => OpKind::Chmod,
            Self::Readdir => OpKind::ListDir,
            Self::Copyfile => OpKind::CopyFile,
            Self::Rename => OpKind::Rename,
            Self::Statfs => OpKind::StatFs,
            Self::Pathconf => OpKind::PathConf,
            Self::Truncate => OpKind::Truncate,
            Self::Fsync => OpKind::Fsync,
            Self::Lookup => OpKind::Lookup,
            Self::Readlink => OpKind::ReadLink,
            Self::Readdirplus => OpKind::ListDirPlus,
        }
    }

    /// What it works on.
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

    /// Whether it can change which files and directories exist or how long they are.
    #[must_use]
    pub fn changes_tree(self) -> bool {
        match self.pool() {
            Pool::Turnover | Pool::Empty => true,
            Pool::Dirs => matches!(self, Self::Mkdir | Self::Rmdir),
            // A random write past the page cache may round a file up to whole blocks.
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

    /// Whether it moves bytes of a size that the table of reads gives.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(
            self,
            Self::Read | Self::ReadFile | Self::MmapRead | Self::ReadRand | Self::Copyfile
        )
    }

    /// Whether it moves bytes of a size that the table of writes gives.
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
    }
}
