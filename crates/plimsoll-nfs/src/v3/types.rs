//! The data types of NFS version 3 (RFC 1813, 2.5 and 2.6).

pub use crate::common::{FileType, Stable, Text as Name};

use crate::common::{FileHandle, unix_errno};
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, named_choices, structures, unions};
use rustix::io::Errno;

/// A file handle, `nfs_fh3`, of at most `NFS3_FHSIZE` bytes (RFC 1813, 2.4).
pub type Handle = FileHandle<64>;

/// File data of a READ or WRITE, limited only by the size of the message (RFC 1813, 3.3.6 and 3.3.7).
pub type Data<'a> = Name<'a, { u32::MAX }>;

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

impl Status {
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
        /// Whole seconds of the instant since the beginning of 1970, UTC.
        seconds: u32,
        /// Nanoseconds of the instant after the whole second, 0 to 999,999,999.
        nanoseconds: u32 = "nseconds",
    }

    /// Attributes of an object, `fattr3` (RFC 1813, 2.6).
    Attributes {
        /// The type of the object, such as a regular file or a directory.
        kind: FileType = "type",
        /// The permission bits of the object, including set-user-id, set-group-id and sticky.
        mode: u32,
        /// The number of hard links of the object.
        links: u32 = "nlink",
        /// The user id of the object's owner.
        uid: u32,
        /// The group id of the object's group.
        gid: u32,
        /// The size of the object in bytes: of a regular file, the length of the data; of other types, as the server
        /// defines.
        size: u64,
        /// The number of bytes of storage that the object occupies.
        used: u64,
        /// The major and minor number of a device file; without meaning for objects of other types.
        device: Device = "rdev",
        /// The identifier of the object's file system on the server.
        fsid: u64,
        /// The file number (inode number) of the object, unique within the file system.
        fileid: u64,
        /// The time of the last access to the object's data, `atime`.
        accessed: Time = "atime",
        /// The time of the last change of the object's data, `mtime`.
        modified: Time = "mtime",
        /// The time of the last change of the object's attributes, `ctime`; a write also changes the `ctime`.
        changed: Time = "ctime",
    }

    /// The major and minor number of a device file, `specdata3` (RFC 1813, 2.6).
    Device {
        /// The major number of a device file, which selects the device driver on Unix.
        major: u32 = "specdata1",
        /// The minor number of a device file, which selects the device of the driver on Unix.
        minor: u32 = "specdata2",
    }

    /// Attributes of an object before an operation, `wcc_attr` (RFC 1813, 2.6).
    Before {
        /// The size of the object in bytes before the operation.
        size: u64,
        /// The time of the last change of the object's data before the operation, `mtime`.
        modified: Time = "mtime",
        /// The time of the last change of the object's attributes before the operation, `ctime`.
        changed: Time = "ctime",
    }

    /// Attributes of an object before and after an operation, `wcc_data` (RFC 1813, 2.6), by which a client recognises
    /// changes of other clients.
    #[derive(Default)]
    Change {
        /// The object's attributes before the operation; `None` if the server returned no earlier attributes.
        before: Option<Before>,
        /// The object's attributes after the operation; `None` if the server returned no later attributes.
        after: Option<Attributes>,
    }

    /// A name in a directory, `diropargs3` (RFC 1813, 2.6).
    Entry<'a> {
        /// Handle of the directory in which the name is looked up, created or removed.
        dir: Handle,
        /// The name of an object in the directory, without a slash.
        name: Name<'a>,
    }

    /// Attributes that SETATTR or the creation of an object sets, `sattr3` (RFC 1813, 2.6); `None` leaves an attribute
    /// unchanged.
    Setting {
        /// New permission bits of the object, including set-user-id, set-group-id and sticky; `None` for no change.
        mode: Option<u32>,
        /// New user id of the object's owner; `None` for no change.
        uid: Option<u32>,
        /// New group id of the object's group; `None` for no change.
        gid: Option<u32>,
        /// New size of a file in bytes: a shorter file is extended with zeros, a longer file is truncated; `None` for
        /// no change.
        size: Option<u64>,
        /// Whether, and to what time, the object's last access time (`atime`) is set.
        accessed: SetTime,
        /// Whether, and to what time, the object's last modification time (`mtime`) is set.
        modified: SetTime,
    }
}

impl Setting {
    /// The set of attributes that changes no attribute (RFC 1813, 2.6).
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
        /// The object's time stamp stays unchanged, `DONT_CHANGE`.
        0 => Keep,
        /// The object's time stamp is set to the server's clock, `SET_TO_SERVER_TIME`.
        1 => Server,
        /// The object's time stamp is set to the client's value `time`, `SET_TO_CLIENT_TIME`.
        2 => To(time: Time),
    }

    /// The mode of creating a file, `createhow3` (RFC 1813, 3.3.8).
    CreateHow {
        /// CREATE succeeds if the file exists, and changes only the size of the existing file, if `set` has a size; a
        /// new file gets the attributes `set`.
        0 => Unchecked(set: Setting),
        /// CREATE fails with `NFS3ERR_EXIST` if the file exists; a new file gets the attributes `set`.
        1 => Guarded(set: Setting),
        /// CREATE fails with `NFS3ERR_EXIST` if the file exists, unless a CREATE with the same verifier created the
        /// file.
        2 => Exclusive(verifier: [u8; 8]),
    }
}

/// The object that a MKNOD creates, `mknoddata3` (RFC 1813, 3.3.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpecialNode {
    /// MKNOD creates a character or block device: type, initial attributes, and device numbers.
    Device(FileType, Setting, Device),
    /// MKNOD creates a socket or named pipe: type and initial attributes.
    Pipe(FileType, Setting),
    /// MKNOD fails with `NFS3ERR_BADTYPE`, because MKNOD creates no objects of the type, such as a directory.
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
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
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
    use crate::xdr::put_opaque;

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
