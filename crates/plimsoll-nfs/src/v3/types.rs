//! The data types of NFS version 3 (RFC 1813, 2.5 and 2.6).

pub use crate::common::{Stable, Text as Name};

use crate::common::{FileHandle, unix_errno};
use crate::xdr::{
    Decode, Decoder, Encode, XdrError, choices, named_choices, put_opaque, structures, unions,
};
use rustix::io::Errno;

/// A file handle, `nfs_fh3`, of at most `NFS3_FHSIZE` bytes (RFC 1813, 2.4).
pub type Handle = FileHandle<64>;

/// Data of a file (RFC 1813, 3.3.6); only the size of the message limits the data.
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

named_choices! {
    /// The outcome of a procedure, `nfsstat3` (RFC 1813, 2.6).
    Status {
        Ok = 0 "NFS3_OK" "success",
        Perm = 1 "NFS3ERR_PERM" "not the owner",
        NoEnt = 2 "NFS3ERR_NOENT" "no such file or directory",
        Io = 5 "NFS3ERR_IO" "a hard error of the storage",
        NxIo = 6 "NFS3ERR_NXIO" "no such device or address",
        Acces = 13 "NFS3ERR_ACCES" "permission denied",
        Exist = 17 "NFS3ERR_EXIST" "the file exists",
        XDev = 18 "NFS3ERR_XDEV" "a hard link across devices",
        NoDev = 19 "NFS3ERR_NODEV" "no such device",
        NotDir = 20 "NFS3ERR_NOTDIR" "not a directory",
        IsDir = 21 "NFS3ERR_ISDIR" "a directory",
        Inval = 22 "NFS3ERR_INVAL" "an invalid or unsupported argument",
        FBig = 27 "NFS3ERR_FBIG" "the file would be too large",
        NoSpc = 28 "NFS3ERR_NOSPC" "no space left",
        RoFs = 30 "NFS3ERR_ROFS" "a read-only file system",
        MLink = 31 "NFS3ERR_MLINK" "too many hard links",
        NameTooLong = 63 "NFS3ERR_NAMETOOLONG" "the name is too long",
        NotEmpty = 66 "NFS3ERR_NOTEMPTY" "the directory is not empty",
        DQuot = 69 "NFS3ERR_DQUOT" "the quota is exceeded",
        Stale = 70 "NFS3ERR_STALE" "the handle is of a file that no longer exists",
        Remote = 71 "NFS3ERR_REMOTE" "too many levels of remote in a path",
        BadHandle = 10001 "NFS3ERR_BADHANDLE" "the handle is not valid",
        NotSync = 10002 "NFS3ERR_NOT_SYNC" "the guard of a SETATTR does not match",
        BadCookie = 10003 "NFS3ERR_BAD_COOKIE" "the cookie of a READDIR is stale",
        NotSupp = 10004 "NFS3ERR_NOTSUPP" "not supported",
        TooSmall = 10005 "NFS3ERR_TOOSMALL" "the buffer is too small",
        ServerFault = 10006 "NFS3ERR_SERVERFAULT" "a server error that no other status describes",
        BadType = 10007 "NFS3ERR_BADTYPE" "the server does not support objects of this type",
        Jukebox = 10008 "NFS3ERR_JUKEBOX" "the server needs time: the client should retry later",
    }
}

choices! {
    /// The type of an object, `ftype3` (RFC 1813, 2.6).
    FileType {
        Regular = 1,
        Directory = 2,
        Block = 3,
        Character = 4,
        Link = 5,
        Socket = 6,
        Fifo = 7,
    }
}

impl Status {
    /// The status with this name, with or without `NFS3ERR_`; case is ignored.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase();
        let bare = name.strip_prefix("NFS3ERR_").unwrap_or(&name);
        let short = |s: &Self| s.name().strip_prefix("NFS3ERR_");
        Self::ALL.iter().copied().find(|s| short(s) == Some(bare))
    }

    /// The closest error number of the operating system. A status without an equivalent gets the
    /// number that the Linux kernel uses, 521 to 528.
    #[must_use]
    pub fn errno(self) -> Errno {
        let number = self as u32;
        unix_errno(number).unwrap_or_else(|| Errno::from_raw_os_error(number as i32 - 10_000 + 520))
    }
}

structures! {
    /// An instant, `nfstime3`: seconds and nanoseconds since 1970 (RFC 1813, 2.6).
    Time {
        /// Whole seconds.
        seconds: u32,
        /// Nanoseconds within the second.
        nanoseconds: u32 = "nseconds",
    }

    /// Attributes of an object, `fattr3` (RFC 1813, 2.6).
    Attributes {
        /// The type.
        kind: FileType = "type",
        /// Permissions.
        mode: u32,
        /// Hard links.
        links: u32 = "nlink",
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// The size in bytes.
        size: u64,
        /// The bytes of storage that the object occupies.
        used: u64,
        /// The device numbers.
        device: Device = "rdev",
        /// The number of the file system.
        fsid: u64,
        /// The number of the object in the file system.
        fileid: u64,
        /// The time of the last access.
        accessed: Time = "atime",
        /// The time of the last change of the data.
        modified: Time = "mtime",
        /// The time of the last change of the attributes.
        changed: Time = "ctime",
    }

    /// Device numbers, `specdata3` (RFC 1813, 2.6).
    Device {
        /// The major number.
        major: u32 = "specdata1",
        /// The minor number.
        minor: u32 = "specdata2",
    }

    /// Attributes of an object before an operation, `wcc_attr` (RFC 1813, 2.6).
    Before {
        /// The size in bytes.
        size: u64,
        /// The time of the last change of the data.
        modified: Time = "mtime",
        /// The time of the last change of the attributes.
        changed: Time = "ctime",
    }

    /// Attributes before and after an operation, `wcc_data` (RFC 1813, 2.6); empty if the server
    /// has not sent attributes.
    #[derive(Default)]
    Change {
        /// The attributes before the operation.
        before: Option<Before>,
        /// The attributes after the operation.
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
        /// The size in bytes.
        size: Option<u64>,
        /// The time of the last access.
        accessed: SetTime,
        /// The time of the last change of the data.
        modified: SetTime,
    }
}

impl Setting {
    /// Changes no attribute (RFC 1813, 2.6).
    pub const NOTHING: Self = Self {
        mode: None,
        uid: None,
        gid: None,
        size: None,
        accessed: SetTime::Keep,
        modified: SetTime::Keep,
    };
}

unions! {
    /// A change of a time, `set_atime` and `set_mtime` (RFC 1813, 2.6).
    SetTime {
        /// The time is not changed.
        0 => Keep,
        /// The time is set to the time of the server.
        1 => Server,
        /// The time is set to the given time.
        2 => To(time: Time),
    }

    /// The mode of creating a file, `createhow3` (RFC 1813, 3.3.8).
    CreateHow {
        /// An existing file is kept; a new file gets these attributes.
        0 => Unchecked(set: Setting),
        /// The file must not exist.
        1 => Guarded(set: Setting),
        /// The file must not exist, unless a request with the same verifier has created it.
        2 => Exclusive(verifier: [u8; 8]),
    }
}

/// The object that a MKNOD creates, `mknoddata3` (RFC 1813, 3.3.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialNode {
    /// A character or block device.
    Device(FileType, Setting, Device),
    /// A socket or named pipe.
    Pipe(FileType, Setting),
    /// A type that MKNOD does not create.
    Other(FileType),
}

impl Encode for SpecialNode {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Device(kind, set, device) => (kind, set, device).encode(out),
            Self::Pipe(kind, set) => (kind, set).encode(out),
            Self::Other(kind) => kind.encode(out),
        }
    }
}

impl Decode<'_> for SpecialNode {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        Ok(match from.get()? {
            kind @ (FileType::Block | FileType::Character) => {
                Self::Device(kind, from.get()?, from.get()?)
            }
            kind @ (FileType::Socket | FileType::Fifo) => Self::Pipe(kind, from.get()?),
            kind => Self::Other(kind),
        })
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
