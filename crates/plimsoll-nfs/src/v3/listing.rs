//! The result of the procedures that read directories (RFC 1813, 3.3.16 and 3.3.17).

use super::types::Attributes;
use crate::xdr::{Decode, Decoder, Encode, FieldPath, XdrError, put_list};

/// The result of READDIR and READDIRPLUS (RFC 1813, 3.3.16 and 3.3.17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<E> {
    /// Attributes of the directory.
    pub dir: Option<Attributes>,
    /// The verifier, which the client returns with a cookie.
    pub verifier: [u8; 8],
    /// The entries.
    pub entries: Vec<E>,
    /// Whether these entries are the last.
    pub eof: bool,
}

impl<E: Encode + Copy> Encode for Listing<E> {
    fn encode(&self, out: &mut Vec<u8>) {
        (self.dir, self.verifier).encode(out);
        put_list(self.entries.iter().copied(), out);
        self.eof.encode(out);
    }
}

impl<'a, E: Decode<'a>> Decode<'a> for Listing<E> {
    fn decode(from: &mut Decoder<'a>) -> Result<Self, XdrError> {
        let (dir, verifier) = (from.get()?, from.get()?);
        let mut entries = Vec::new();
        // An entry takes at least 24 bytes, so the message size limits the number of entries.
        while let Some(entry) = from.get()? {
            entries.push(entry);
        }
        let eof = from.get()?;
        Ok(Self {
            dir,
            verifier,
            entries,
            eof,
        })
    }

    fn decode_traced(from: &mut Decoder<'a>, path: &mut FieldPath) -> Result<Self, XdrError> {
        let dir = path.field("dir_attributes", from)?;
        let verifier = path.field("cookieverf", from)?;
        let mut entries = Vec::new();
        while let Some(entry) = path.field::<Option<E>>("entries", from)? {
            entries.push(entry);
        }
        let eof = path.field("eof", from)?;
        Ok(Self {
            dir,
            verifier,
            entries,
            eof,
        })
    }
}
