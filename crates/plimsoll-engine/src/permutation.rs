//! Random permutations that need no memory.

use plimsoll_plan::Stream;
use plimsoll_plan::hash::mix64;

/// Number of rounds of the Feistel network; four rounds of a random function give a pseudorandom permutation (Luby and
/// Rackoff 1988).
const ROUNDS: usize = 4;

/// A random permutation of the numbers from 0 to `len` − 1, as a function of a number.
///
/// The function is a Feistel network over the smallest even number of bits that holds all numbers, repeated until the
/// result is below `len`: at most four times on average, because the network has fewer than 4 · `len` values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Permutation {
    len: u64,
    /// Number of bits of each half of a number.
    half_bits: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `len` numbers, at least 1 and at most 2⁶², that `stream` determines.
    pub(crate) fn new(len: u64, stream: Stream) -> Self {
        assert!((1..=1 << 62).contains(&len), "a permutation of {len}");
        let bits = u64::BITS - (len - 1).leading_zeros();
        Self {
            len,
            half_bits: bits.div_ceil(2).max(1),
            keys: [0, 1, 2, 3].map(|round| stream.branch(round).fingerprint()),
        }
    }

    /// The number to which the permutation maps `number`, which must be below the length.
    pub(crate) fn map(&self, number: u64) -> u64 {
        debug_assert!(number < self.len, "{number} of {}", self.len);
        let mut mapped = self.network(number);
        while mapped >= self.len {
            mapped = self.network(mapped);
        }
        mapped
    }

    fn network(&self, number: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix64(right ^ key) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_appears_once(len in 1u64..5000, seed: u64) {
            let permutation = Permutation::new(len, Stream::new(seed));
            let mut seen: Vec<u64> = (0..len).map(|n| permutation.map(n)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..len));
        }

        #[test]
        fn numbers_of_large_files_stay_in_range(len in 1u64 << 40..1 << 62, n: u64, seed: u64) {
            let permutation = Permutation::new(len, Stream::new(seed));
            prop_assert!(permutation.map(n % len) < len);
        }
    }

    /// Of 1000 permutations of eight numbers, each number is at each position about 125 times: a binomial count with
    /// a standard deviation of 10.5.
    #[test]
    fn all_positions_are_equally_likely() {
        let mut counts = [[0u32; 8]; 8];
        for seed in 0..1000 {
            let permutation = Permutation::new(8, Stream::new(seed));
            (0..8).for_each(|n| counts[n as usize][permutation.map(n) as usize] += 1);
        }
        let all = counts.into_iter().flatten();
        assert!(all.clone().all(|n| (72..178).contains(&n)), "{counts:?}");
        assert_eq!(all.sum::<u32>(), 8000);
    }
}
