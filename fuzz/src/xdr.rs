//! What must hold of encoded values.

use plimsoll_nfs::xdr::{Decode, Decoder, Encode};

/// Decodes a value; returns how many bytes it took, and those that it is encoded to.
pub(crate) fn recoded<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) -> Option<(usize, Vec<u8>)> {
    let mut from = Decoder::new(bytes);
    let value = from.get::<T>().ok()?;
    let mut out = Vec::new();
    value.encode(&mut out);
    Some((bytes.len() - from.rest().len(), out))
}

/// Asserts that what a value was encoded to decodes, and is encoded the same.
pub(crate) fn check_same(encoded: &[u8], again: Option<(usize, Vec<u8>)>) {
    let (taken, bytes) = again.expect("what was encoded is decoded");
    assert_eq!(taken, encoded.len());
    assert_eq!(bytes, encoded);
}
