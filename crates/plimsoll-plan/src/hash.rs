//! Hash functions that give the same numbers on every machine.

/// Increment of SplitMix64's state: 2⁶⁴ divided by the golden ratio, rounded to an odd number.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection in which every input bit affects every output
/// bit. The function maps 0 to 0.
#[inline]
#[must_use]
pub const fn mix64(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Output of SplitMix64 in the state `state`: [`mix64`] of the next state.
#[inline]
#[must_use]
pub const fn split_mix64(state: u64) -> u64 {
    mix64(state.wrapping_add(GOLDEN_GAMMA))
}

/// FNV-1a hash (Fowler, Noll and Vo) of an empty text, 64 bits.
pub const FNV1A_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Extends the FNV-1a hash `hash` of some bytes by one byte.
#[inline]
#[must_use]
pub const fn fnv1a(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of Vigna's `splitmix64.c` for the state 1234567.
    #[test]
    fn outputs_are_those_of_the_reference() {
        let states = (0..3).map(|n| 1_234_567u64.wrapping_add(GOLDEN_GAMMA.wrapping_mul(n)));
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        assert_eq!(states.map(split_mix64).collect::<Vec<_>>(), expected);
    }

    /// Test vectors of draft-eastlake-fnv.
    #[test]
    fn hashes_of_bytes_are_those_of_the_specification() {
        let hash = |text: &str| text.bytes().fold(FNV1A_BASIS, fnv1a);
        assert_eq!(hash("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash("foobar"), 0x8594_4171_f739_67e8);
    }
}
