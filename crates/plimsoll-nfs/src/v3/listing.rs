//! The result of the procedures that read directories (RFC 1813, 3.3.16 and 3.3.17).

use super::types::Attributes;
use crate::xdr::{Decode, Decoder, Encode, Fields, XdrError, put_list};

/// The result of READDIR and READDIRPLUS (RFC 1813, 3.3.16 and 3.3.17).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing<E> {
    /// Attributes of the listed directory; `None` if the server returned none.
    pub dir: Option<Attributes>,
    /// The verifier, which the client returns with a cookie in its next READDIR or READDIRPLUS.
    pub verifier: [u8; 8],
    /// The entries, in the server's order.
    pub entries: Vec<E>,
    /// Whether no entries follow the returned entries in the directory.
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
    fn decode<F: Fields>(from: &mut Decoder<'a, F>) -> Result<Self, XdrError> {
        let dir = from.field("dir_attributes")?;
        let verifier = from.field("cookieverf")?;
        let mut entries = Vec::new();
        while let Some(entry) = from.field::<Option<E>>("entries")? {
            entries.push(entry);
        }
        Ok(Self {
            dir,
            verifier,
            entries,
            eof: from.field("eof")?,
        })
    }
}
