//! The data types of NFS version 3 (RFC 1813, 2.5 and 2.6).

use crate::handle::FileHandle;
use crate::xdr::{Decode, Decoder, Encode, XdrError, choices, put_opaque, structures};
use std::fmt;

/// Longest file handle, in bytes (`NFS3_FHSIZE`, RFC 1813, 2.4).
pub const HANDLE_SIZE: usize = 64;

/// Longest name or path that is taken from a message, in bytes (RFC 1813, 2.5). The protocol sets
/// no limit; no system goes above this one.
pub const MAX_PATH_BYTES: u32 = 4096;

/// A file handle, `nfs_fh3` (RFC 1813, 2.6).
pub type Handle = FileHandle<HANDLE_SIZE>;

/// A name or the path in a symbolic link, `filename3` and `nfspath3` (RFC 1813, 2.5). Bytes, not
/// text: the protocol says nothing of what they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a>(pub &'a [u8]);

impl Encode for Name<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_opaque(self.0, out);
    }
}

impl<'a> Decode<'a> for Name<'a> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(Self(from.opaque(MAX_PATH_BYTES)?))
    }
}

/// Data of a file (RFC 1813, 3.3.6). What a message holds bounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a>(pub &'a [u8]);

impl Encode for Data<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_opaque(self.0, out);
    }
}

impl<'a> Decode<'a> for Data<'a> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(Self(from.opaque(u32::MAX)?))
    }
}

choices! {
    /// Why a procedure failed, `nfsstat3` (RFC 1813, 2.6). The comments are the RFC's meanings.
    Status {
        /// It did not.
        Ok = 0,
        /// Not the owner.
        Perm = 1,
        /// No such file or directory.
        NoEnt = 2,
        /// A hard error of the storage.
        Io = 5,
        /// No such device.
        NxIo = 6,
        /// Permission denied.
        Acces = 13,
        /// The file exists.
        Exist = 17,
        /// A hard link across devices.
        XDev = 18,
        /// No such device.
        NoDev = 19,
        /// Not a directory.
        NotDir = 20,
        /// A directory.
        IsDir = 21,
        /// An invalid or unsupported argument.
        Inval = 22,
        /// The file would be too large.
        FBig = 27,
        /// No space left.
        NoSpc = 28,
        /// A read-only file system.
        RoFs = 30,
        /// Too many hard links.
        MLink = 31,
        /// The name is too long.
        NameTooLong = 63,
        /// The directory is not empty.
        NotEmpty = 66,
        /// The quota is exceeded.
        DQuot = 69,
        /// The handle is of a file that is gone.
        Stale = 70,
        /// Too many levels of remote in a path.
        Remote = 71,
        /// The handle is none.
        BadHandle = 10001,
        /// The guard of a SETATTR does not match.
        NotSync = 10002,
        /// The cookie of a READDIR is stale.
        BadCookie = 10003,
        /// Not supported.
        NotSupp = 10004,
        /// The buffer is too small.
        TooSmall = 10005,
        /// The server failed in a way that no other status says.
        ServerFault = 10006,
        /// The server has no objects of this type.
        BadType = 10007,
        /// The server has begun and needs time; the client is to ask again.
        Jukebox = 10008,
    }

    /// What an object is, `ftype3` (RFC 1813, 2.6).
    FileType {
        /// A regular file.
        Regular = 1,
        /// A directory.
        Directory = 2,
        /// A block device.
        Block = 3,
        /// A character device.
        Character = 4,
        /// A symbolic link.
        Link = 5,
        /// A socket.
        Socket = 6,
        /// A named pipe.
        Fifo = 7,
    }

    /// How stable written data has to be, or is, `stable_how` (RFC 1813, 3.3.7).
    Stable {
        /// It may be lost until a COMMIT.
        Unstable = 0,
        /// The data is on stable storage.
        DataSync = 1,
        /// Data and attributes are on stable storage.
        FileSync = 2,
    }
}

impl Status {
    /// The RFC's name of it, such as `NFS3ERR_STALE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "NFS3_OK",
            Self::Perm => "NFS3ERR_PERM",
            Self::NoEnt => "NFS3ERR_NOENT",
            Self::Io => "NFS3ERR_IO",
            Self::NxIo => "NFS3ERR_NXIO",
            Self::Acces => "NFS3ERR_ACCES",
            Self::Exist => "NFS3ERR_EXIST",
            Self::XDev => "NFS3ERR_XDEV",
            Self::NoDev => "NFS3ERR_NODEV",
            Self::NotDir => "NFS3ERR_NOTDIR",
            Self::IsDir => "NFS3ERR_ISDIR",
            Self::Inval => "NFS3ERR_INVAL",
            Self::FBig => "NFS3ERR_FBIG",
            Self::NoSpc => "NFS3ERR_NOSPC",
            Self::RoFs => "NFS3ERR_ROFS",
            Self::MLink => "NFS3ERR_MLINK",
            Self::NameTooLong => "NFS3ERR_NAMETOOLONG",
            Self::NotEmpty => "NFS3ERR_NOTEMPTY",
            Self::DQuot => "NFS3ERR_DQUOT",
            Self::Stale => "NFS3ERR_STALE",
            Self::Remote => "NFS3ERR_REMOTE",
            Self::BadHandle => "NFS3ERR_BADHANDLE",
            Self::NotSync => "NFS3ERR_NOT_SYNC",
            Self::BadCookie => "NFS3ERR_BAD_COOKIE",
            Self::NotSupp => "NFS3ERR_NOTSUPP",
            Self::TooSmall => "NFS3ERR_TOOSMALL",
            Self::ServerFault => "NFS3ERR_SERVERFAULT",
            Self::BadType => "NFS3ERR_BADTYPE",
            Self::Jukebox => "NFS3ERR_JUKEBOX",
        }
    }

    /// The status of a name, with `NFS3ERR_` or without, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let bare = name.strip_prefix("NFS3ERR_").unwrap_or(&name);
        let short = |s: &Self| s.name().strip_prefix("NFS3ERR_");
        Self::ALL.iter().copied().find(|s| short(s) == Some(bare))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

structures! {
    /// An instant, `nfstime3`: seconds and nanoseconds since 1970 (RFC 1813, 2.6).
    Time {
        /// Whole seconds.
        seconds: u32,
        /// Nanoseconds above them.
        nanoseconds: u32 = "nseconds",
    }

    /// Attributes of an object, `fattr3` (RFC 1813, 2.6).
    Attributes {
        /// What it is.
        kind: FileType = "type",
        /// Permissions.
        mode: u32,
        /// Hard links.
        links: u32 = "nlink",
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Bytes.
        size: u64,
        /// Bytes that it takes on the disk.
        used: u64,
        /// Numbers of a device.
        device: Device = "rdev",
        /// Number of the file system.
        fsid: u64,
        /// Number of the object in it.
        fileid: u64,
        /// Last access.
        accessed: Time = "atime",
        /// Last change of the data.
        modified: Time = "mtime",
        /// Last change of the attributes.
        changed: Time = "ctime",
    }

    /// Numbers of a device, `specdata3` (RFC 1813, 2.6).
    Device {
        /// The major one.
        major: u32 = "specdata1",
        /// The minor one.
        minor: u32 = "specdata2",
    }

    /// Attributes of an object before an operation, `wcc_attr` (RFC 1813, 2.6).
    Before {
        /// Bytes.
        size: u64,
        /// Last change of the data.
        modified: Time = "mtime",
        /// Last change of the attributes.
        changed: Time = "ctime",
    }

    /// Attributes before and after an operation, `wcc_data` (RFC 1813, 2.6).
    Change {
        /// Before it.
        before: Option<Before>,
        /// After it.
        after: Option<Attributes>,
    }

    /// A name in a directory, `diropargs3` (RFC 1813, 2.6).
    Entry<'a> {
        /// The directory.
        dir: Handle,
        /// The name.
        name: Name<'a>,
    }

    /// Attributes to set, `sattr3` (RFC 1813, 2.6).
    Setting {
        /// Permissions.
        mode: Option<u32>,
        /// Owner.
        uid: Option<u32>,
        /// Group.
        gid: Option<u32>,
        /// Bytes.
        size: Option<u64>,
        /// Last access.
        accessed: SetTime,
        /// Last change of the data.
        modified: SetTime,
    }
}

impl Setting {
    /// Changes nothing (RFC 1813, 2.6).
    pub const NOTHING: Self = Self {
        mode: None,
        uid: None,
        gid: None,
        size: None,
        accessed: SetTime::Keep,
        modified: SetTime::Keep,
    };
}

impl Change {
    /// Nothing is known (RFC 1813, 2.6).
    pub const UNKNOWN: Self = Self {
        before: None,
        after: None,
    };
}

impl Default for Change {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

/// What becomes of a time, `set_atime` and `set_mtime` (RFC 1813, 2.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// It stays.
    Keep,
    /// It is set to the server's time.
    Server,
    /// It is set to this time.
    To(Time),
}

impl Encode for SetTime {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Keep => 0u32.encode(out),
            Self::Server => 1u32.encode(out),
            Self::To(time) => {
                2u32.encode(out);
                time.encode(out);
            }
        }
    }
}

impl Decode<'_> for SetTime {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => Ok(Self::Keep),
            1 => Ok(Self::Server),
            2 => Ok(Self::To(from.get()?)),
            other => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// How a file is made, `createhow3` (RFC 1813, 3.3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateHow {
    /// One that is there is taken as it is, with these attributes.
    Unchecked(Setting),
    /// It must not be there.
    Guarded(Setting),
    /// It must not be there, unless the same request made it before.
    Exclusive([u8; 8]),
}

impl Encode for CreateHow {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unchecked(set) => {
                0u32.encode(out);
                set.encode(out);
            }
            Self::Guarded(set) => {
                1u32.encode(out);
                set.encode(out);
            }
            Self::Exclusive(verifier) => {
                2u32.encode(out);
                verifier.encode(out);
            }
        }
    }
}

impl Decode<'_> for CreateHow {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            0u32 => Ok(Self::Unchecked(from.get()?)),
            1 => Ok(Self::Guarded(from.get()?)),
            2 => Ok(Self::Exclusive(from.get()?)),
            other => Err(XdrError::NoSuchChoice(other)),
        }
    }
}

/// What a MKNOD makes, `mknoddata3` (RFC 1813, 3.3.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialNode {
    /// A character or block device.
    Device(FileType, Setting, Device),
    /// A socket or named pipe.
    Pipe(FileType, Setting),
    /// A type that MKNOD does not make.
    Other(FileType),
}

impl Encode for SpecialNode {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Device(kind, set, device) => {
                kind.encode(out);
                set.encode(out);
                device.encode(out);
            }
            Self::Pipe(kind, set) => {
                kind.encode(out);
                set.encode(out);
            }
            Self::Other(kind) => kind.encode(out),
        }
    }
}

impl Decode<'_> for SpecialNode {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        match from.get()? {
            kind @ (FileType::Block | FileType::Character) => {
                Ok(Self::Device(kind, from.get()?, from.get()?))
            }
            kind @ (FileType::Socket | FileType::Fifo) => Ok(Self::Pipe(kind, from.get()?)),
            kind => Ok(Self::Other(kind)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_their_names() {
        for status in &Status::ALL[1..] {
            assert_eq!(Status::named(status.name()), Some(*status));
            let short = status.name().trim_start_matches("NFS3ERR_").to_lowercase();
            assert_eq!(Status::named(&short), Some(*status));
        }
        assert_eq!(Status::named("stale"), Some(Status::Stale));
        assert_eq!(Status::named("NFS3_OK"), None);
        assert_eq!(Status::named(""), None);
    }

    #[test]
    fn handles_are_at_most_64_bytes() {
        assert!(Handle::new(&[1; 64]).is_some());
        assert!(Handle::new(&[1; 65]).is_none());
        let mut long = Vec::new();
        put_opaque(&[1; 65], &mut long);
        assert_eq!(
            Decoder::new(&long).get::<Handle>(),
            Err(XdrError::TooLong(65))
        );
    }
}
