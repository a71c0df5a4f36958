//! File handles of all versions: opaque bytes that only the server understands.

use crate::xdr::{Decode, Decoder, Encode, XdrError, put_opaque};
use std::fmt;

/// A file handle of at most `MOST` bytes, which is at most 255 (RFC 1813, 2.4 and RFC 7530, 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileHandle<const MOST: usize> {
    len: u8,
    bytes: [u8; MOST],
}

impl<const MOST: usize> FileHandle<MOST> {
    /// A handle of these bytes; `None` if they are more than `MOST`.
    #[must_use]
    pub fn new(from: &[u8]) -> Option<Self> {
        let mut bytes = [0; MOST];
        bytes.get_mut(..from.len())?.copy_from_slice(from);
        Some(Self {
            len: u8::try_from(from.len()).ok()?,
            bytes,
        })
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl<const MOST: usize> fmt::Debug for FileHandle<MOST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl<const MOST: usize> Encode for FileHandle<MOST> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_opaque(self.bytes(), out);
    }
}

impl<const MOST: usize> Decode<'_> for FileHandle<MOST> {
    fn decode(from: &mut Decoder<'_>) -> Result<Self, XdrError> {
        let bytes = from.opaque(MOST as u32)?;
        Self::new(bytes).ok_or(XdrError::TooLong(bytes.len() as u32))
    }
}
