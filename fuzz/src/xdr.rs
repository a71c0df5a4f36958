//! What must hold of encoded values.

use plimsoll_nfs::xdr::{Decode, Decoder, Encode};

/// Decodes a value; returns how many bytes it took and how many it is encoded to. What it is encoded to
/// decodes, and is encoded the same.
pub(crate) fn comes_back<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) -> Option<(usize, usize)> {
    let mut from = Decoder::new(bytes);
    let value = from.get::<T>().ok()?;
    let mut out = Vec::new();
    value.encode(&mut out);
    Some((bytes.len() - from.rest().len(), out.len()))
}
