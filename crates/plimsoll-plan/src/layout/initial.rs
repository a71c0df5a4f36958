//! Fileset entries that exist when a run starts.

use crate::seed::Stream;
use rand::Rng as _;
use std::ops::Range;

/// Number of binary digits of the probability that an entry exists, a fixed-point fraction.
const PROBABILITY_BITS: u32 = 32;

/// Entries that exist when a run starts, each with the same probability, as a function of their numbers: 64 consecutive
/// entries share one branch of the stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InitialEntries {
    len: u32,
    /// Probability that an entry exists when the run starts, in units of 2⁻³².
    probability: u64,
    stream: Stream,
}

impl InitialEntries {
    /// Entries 0 to `len` − 1, each of which exists with a probability of `percent` %.
    pub(super) fn new(len: u32, percent: u8, stream: Stream) -> Self {
        let all = 1u64 << PROBABILITY_BITS;
        Self {
            len,
            probability: (u64::from(percent.min(100)) * all + 50) / 100,
            stream,
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Whether all entries exist when the run starts, because the probability is 1.
    pub(super) fn is_all(&self) -> bool {
        self.probability >> PROBABILITY_BITS == 1
    }

    /// Bit mask of the existing entries: bit `i` (0 to 63, lowest first) is entry `64 · at + i`.
    pub(super) fn word(&self, at: u32) -> u64 {
        let existing = match self.len.saturating_sub(at.saturating_mul(64)) {
            left @ 0..64 => (1 << left) - 1,
            _ => u64::MAX,
        };
        existing
            & match self.probability {
                0 => 0,
                _ if self.is_all() => u64::MAX,
                _ => self.draw(at),
            }
    }

    /// Draws the bits of 64 entries at once. Each binary digit of the probability, from the lowest, changes the chance
    /// that a bit is 1: a digit 0 halves the chance (`and` with random bits), and a digit 1 halves the chance and adds
    /// one half (`or`).
    fn draw(&self, at: u32) -> u64 {
        let mut rng = self.stream.branch(u64::from(at)).rng();
        let lowest = self.probability.trailing_zeros();
        (lowest..PROBABILITY_BITS).fold(0, |bits, digit| match self.probability >> digit & 1 {
            1 => bits | rng.next_u64(),
            _ => bits & rng.next_u64(),
        })
    }

    pub(super) fn contains(&self, entry: u32) -> bool {
        entry < self.len && (self.is_all() || self.word(entry / 64) >> (entry % 64) & 1 == 1)
    }

    /// Numbers and bit masks of the words that overlap `part`; bits outside `part` are 0.
    fn words(&self, part: Range<u32>) -> impl Iterator<Item = (u32, u64)> + '_ {
        let end = part.end.min(self.len);
        let start = part.start.min(end);
        let words = start / 64..end.div_ceil(64);
        words.map(move |at| {
            let from = start.saturating_sub(at * 64).min(63);
            let to = (end - at * 64).min(64);
            let within = u64::MAX << from & u64::MAX >> (64 - to);
            (at, self.word(at) & within)
        })
    }

    /// Number of entries with numbers in `part` that exist when the run starts.
    pub(super) fn count(&self, part: Range<u32>) -> u64 {
        if self.is_all() {
            let end = part.end.min(self.len);
            return u64::from(end - part.start.min(end));
        }
        self.words(part)
            .map(|(_, word)| u64::from(word.count_ones()))
            .sum()
    }

    /// Numbers of the entries in `part` that exist when the run starts, in ascending order.
    pub(super) fn numbers(&self, part: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        self.words(part).flat_map(|(at, word)| {
            let bits = std::iter::successors(Some(word), |w| (*w != 0).then(|| w & (w - 1)));
            let bits = bits.take_while(|w| *w != 0);
            bits.map(move |w| at * 64 + w.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_and_numbers_are_those_of_single_entries(
            len in 0u32..2000, percent in 0u8..=100, from in 0u32..2100, count in 0u32..2100, seed: u64,
        ) {
            let initial = InitialEntries::new(len, percent, Stream::new(seed));
            let part = from..from + count;
            let expected: Vec<u32> = part.clone().filter(|n| initial.contains(*n)).collect();
            prop_assert!(expected.iter().all(|n| *n < len));
            prop_assert_eq!(initial.count(part.clone()), expected.len() as u64);
            prop_assert_eq!(initial.numbers(part).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn each_percentage_is_met() {
        const LEN: u32 = 1 << 18;
        for percent in 0..=100 {
            let initial = InitialEntries::new(LEN, percent, Stream::new(u64::from(percent)));
            let (p, n) = (f64::from(percent) / 100.0, f64::from(LEN));
            let found = initial.count(0..LEN) as f64;
            // The number of existing entries may differ from the mean by five standard deviations of a binomial
            // distribution.
            let slack = 5.0 * (n * p * (1.0 - p)).sqrt();
            assert!(
                (found - n * p).abs() <= slack,
                "{found} of {LEN} at {percent} %"
            );
        }
    }

    /// Bits of one word and bits of different words are independent: each bit, and each pair of bits, is as likely as
    /// the percentage requires.
    #[test]
    fn positions_are_independent() {
        const WORDS: u32 = 20_000;
        let initial = InitialEntries::new(WORDS * 64, 30, Stream::new(3));
        let near = |count: u32, p: f64| {
            let (n, count) = (f64::from(WORDS), f64::from(count));
            (count - n * p).abs() <= 6.0 * (n * p * (1.0 - p)).sqrt()
        };
        for a in 0..64 {
            let mut with = [0u32; 64];
            for at in 0..WORDS - 1 {
                let (word, next) = (initial.word(at), initial.word(at + 1));
                // Bit `a` is paired with every other bit of the same word, and with bit `a` of the next word.
                let both = if word >> a & 1 == 1 {
                    word & !(1 << a) | next & 1 << a
                } else {
                    0
                };
                (0..64).for_each(|b| with[b] += (both >> b & 1) as u32);
            }
            assert!(with.iter().all(|n| near(*n, 0.09)), "{a}: {with:?}");
        }
    }
}
