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

/// IO500's 32-bit checksum over pairs of a key and a value, which does not depend on the order of the pairs: the
/// exclusive or of a rolling sum over the bytes of each key and value. Two equal pairs cancel each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PairHash(u32);

impl PairHash {
    /// Adds a pair of a key and a value.
    pub fn add(&mut self, key: &str, value: &str) {
        let bytes = key.bytes().chain(value.bytes());
        // IO500 adds the bytes as signed characters.
        let add = |sum: u32, byte: u8| sum.rotate_left(2).wrapping_add((byte as i8) as u32);
        self.0 ^= bytes.fold(0, add);
    }
}

impl std::fmt::Display for PairHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}", self.0)
    }
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

    /// The scores of a published result (Helios, submission 708 of 2024), whose file states the checksum `A7748DEE`.
    #[test]
    fn the_checksum_of_a_published_result_is_recomputed() {
        let pairs = [
            ("version", "io500-isc24_v3"),
            ("ior-easy-write", "352.803032"),
            ("mdtest-easy-write", "119.113150"),
            ("ior-hard-write", "5.996531"),
            ("mdtest-hard-write", "66.621419"),
            ("find", "2872.215129"),
            ("ior-easy-read", "464.646333"),
            ("mdtest-easy-stat", "415.688686"),
            ("ior-hard-read", "227.682852"),
            ("mdtest-hard-stat", "305.227639"),
            ("mdtest-easy-delete", "96.720801"),
            ("mdtest-hard-read", "114.129044"),
            ("mdtest-hard-delete", "58.712616"),
            ("MD", "192.355126"),
            ("BW", "122.312630"),
            ("SCORE", "153.386640"),
        ];
        let sum = |pairs: &mut dyn Iterator<Item = &(&str, &str)>| {
            let mut hash = PairHash::default();
            pairs.for_each(|(key, value)| hash.add(key, value));
            hash.to_string()
        };
        assert_eq!(sum(&mut pairs.iter()), "A7748DEE");
        assert_eq!(sum(&mut pairs.iter().rev()), "A7748DEE");
        assert_ne!(sum(&mut pairs.iter().skip(1)), "A7748DEE");
    }
}
