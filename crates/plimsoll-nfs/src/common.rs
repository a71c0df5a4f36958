//! Data types that versions 3 and 4 share.

use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, choices, put_opaque};
use rustix::io::Errno;
use std::fmt;

/// A file handle of at most `MAX` bytes, which is at most 255 (RFC 1813, 2.4 and RFC 7530, 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle<const MAX: usize> {
    len: u8,
    bytes: [u8; MAX],
}

impl<const MAX: usize> FileHandle<MAX> {
    /// Copies the bytes `from` into a file handle; `None` for more than `MAX` bytes.
    #[must_use]
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self {
            len: u8::try_from(from.len()).ok()?,
            bytes,
        })
    }

    /// The opaque bytes of the handle, at most `MAX`, which only the server that issued the handle interprets.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl<const MAX: usize> fmt::Debug for FileHandle<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl<const MAX: usize> Encode for FileHandle<MAX> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_opaque(self.bytes(), out);
    }
}

impl<const MAX: usize> Decode<'_> for FileHandle<MAX> {
    fn decode<F: Fields>(from: &mut Decoder<'_, F>) -> Result<Self, XdrError> {
        let bytes = from.opaque(MAX as u32)?;
        Self::new(bytes).ok_or(XdrError::TooLong(bytes.len() as u32))
    }
}

/// The maximum number of bytes of a name, a path or another text for which the protocol sets no
/// limit. No operating system allows more.
pub const MAX_TEXT_BYTES: u32 = 4096;

/// A name, a path, an owner or other bytes, at most `MAX` bytes (RFC 1813, 2.5 and RFC 7530, 2.1).
/// The type holds bytes rather than text, because a server may send any bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<'a, const MAX: u32 = MAX_TEXT_BYTES>(pub &'a [u8]);

impl<const MAX: u32> Encode for Text<'_, MAX> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_opaque(self.0, out);
    }
}

impl<'a, const MAX: u32> Decode<'a> for Text<'a, MAX> {
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        Ok(Self(from.opaque(MAX)?))
    }
}

/// The bits of ACCESS (RFC 1813, 3.3.4 and RFC 7530, 16.1).
pub mod access {
    /// Reading a file or a directory.
    pub const READ: u32 = 1;
    /// Looking up names.
    pub const LOOKUP: u32 = 2;
    /// Rewriting data, and changing entries.
    pub const MODIFY: u32 = 4;
    /// Appending data, and adding entries.
    pub const EXTEND: u32 = 8;
    /// Removing entries.
    pub const DELETE: u32 = 16;
    /// Executing a file.
    pub const EXECUTE: u32 = 32;
}

choices! {
    /// The type of an object (RFC 1813, 2.6; RFC 7530, 2.1).
    FileType {
        Regular = 1,
        Directory = 2,
        Block = 3,
        Character = 4,
        Link = 5,
        Socket = 6,
        Fifo = 7,
        /// Directory of the named attributes of an object, `NF4ATTRDIR` (NFSv4).
        AttributeDirectory = 8,
        /// Named attribute of an object, a file in the object's attribute directory, `NF4NAMEDATTR` (NFSv4).
        NamedAttribute = 9,
    }

    /// The required or achieved stability of written data, `stable_how` (RFC 1813, 3.3.7 and RFC
    /// 7530, 16.36).
    Stable {
        /// The data may be lost until a COMMIT.
        Unstable = 0,
        /// The data is on stable storage.
        DataSync = 1,
        /// Data and attributes are on stable storage.
        FileSync = 2,
    }
}

/// The operating system's error number for a status that means the same in both versions (RFC 1813, 2.6 and RFC 7530,
/// 13.1); `None` for other statuses. The statuses 1 to 31 are traditional Unix error numbers, which all systems have
/// kept. The status 0, success, becomes `EIO`, because success in the place of an error is the server's fault.
pub(crate) fn unix_errno(status: u32) -> Option<Errno> {
    Some(match status {
        0 => Errno::IO,
        1..=31 => Errno::from_raw_os_error(status as i32),
        63 => Errno::NAMETOOLONG,
        66 => Errno::NOTEMPTY,
        69 => Errno::DQUOT,
        70 => Errno::STALE,
        71 => Errno::REMOTE,
        10004 => Errno::OPNOTSUPP,
        _ => return None,
    })
}
