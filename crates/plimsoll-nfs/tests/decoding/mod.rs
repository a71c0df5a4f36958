//! Helpers for tests of decoders.

use plimsoll_nfs::xdr::{Decode, Decoder, Encode};
use proptest::prelude::*;

/// Decodes a value; returns the number of decoded bytes, and the number of bytes of the encoded value.
pub fn lengths<'a, T: Decode<'a> + Encode>(bytes: &'a [u8]) -> Option<(usize, usize)> {
    let mut from = Decoder::new(bytes);
    let value = from.get::<T>().ok()?;
    let mut out = Vec::new();
    value.encode(&mut out);
    Some((bytes.len() - from.rest().len(), out.len()))
}

/// Asserts that decoding allocates memory in proportion to the received bytes, never to an announced length.
pub fn assert_bounded_memory(bytes: &[u8], decode: impl FnOnce(&[u8])) {
    let memory = allocation_counter::measure(|| decode(bytes));
    let max = 16 * bytes.len() as u64 + 1024;
    let len = bytes.len();
    assert!(memory.bytes_max <= max, "{memory:?} for {len} bytes");
}

pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_be_bytes()).collect()
}

/// Words as in messages: mostly small numbers, numbers below `numbers`, and sometimes far too large numbers.
pub fn words(numbers: u32) -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        6 => 0u32..4,
        3 => 4u32..numbers,
        1 => Just(u32::MAX),
        1 => any::<u32>(),
    ];
    prop::collection::vec(word, 0..120).prop_map(|words| bytes_of(&words))
}

/// Asserts that a value is decoded from its encoding, and not from a shorter encoding.
pub fn comes_back<'a, T>(value: &T, out: &'a mut Vec<u8>)
where
    T: Encode + Decode<'a> + PartialEq + std::fmt::Debug,
{
    value.encode(out);
    assert_eq!(out.len() % 4, 0);
    let mut from = Decoder::new(out);
    assert_eq!(from.get::<T>().as_ref(), Ok(value));
    assert_eq!(from.finish(), Ok(()));
    for end in 0..out.len() {
        assert!(Decoder::new(&out[..end]).get::<T>().is_err());
    }
}
