//! Checks that values in XDR encoding (RFC 4506) are the same values after decoding and encoding.

use plimsoll_nfs::xdr::{Decode, Decoder, Encode};

/// Decodes a value; returns the number of decoded bytes, and the bytes of the encoded value.
pub(crate) fn recoded<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) -> Option<(usize, Vec<u8>)> {
    let mut from = Decoder::new(bytes);
    let value = from.get::<T>().ok()?;
    let mut out = Vec::new();
    value.encode(&mut out);
    Some((bytes.len() - from.rest().len(), out))
}

/// Asserts that an encoded value decodes completely, and is encoded to the same bytes again.
pub(crate) fn check_same(encoded: &[u8], again: Option<(usize, Vec<u8>)>) {
    let (taken, bytes) = again.expect("what was encoded is decoded");
    assert_eq!(taken, encoded.len());
    assert_eq!(bytes, encoded);
}
