//! A lock-free set of numbers, from which many threads take numbers and to which many threads return numbers.

use plimsoll_runtime::sync::atomic::AtomicU64;
use plimsoll_runtime::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};

/// Words per cache line of a processor. The blocks of a large set are whole cache lines, so that threads that work in
/// different blocks write different cache lines.
#[cfg(not(loom))]
const LINE: usize = 8;

/// Words per cache line in a model: one, so that a small set has several levels.
#[cfg(loom)]
const LINE: usize = 1;

/// Numbers per cache line.
pub(crate) const LINE_BITS: u32 = LINE as u32 * 64;

#[repr(align(64))]
struct Line([AtomicU64; LINE]);

struct Level(Box<[Line]>);

impl Level {
    fn new(words: usize) -> Self {
        let line = |_| Line(std::array::from_fn(|_| AtomicU64::new(0)));
        Self((0..words.div_ceil(LINE)).map(line).collect())
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0[at / LINE].0[at % LINE]
    }

    fn words(&self) -> usize {
        self.0.len() * LINE
    }
}

/// A set of numbers below a bound: a bitmap with summaries. A bit of a level is set if a word of the level below may be
/// nonzero. Taking, inserting and finding the next number read one word per level, so the cost hardly grows with the
/// size of the set.
pub(crate) struct Bits {
    levels: Vec<Level>,
    len: u32,
}

impl Bits {
    /// The set of the bits in `words`; all numbers are below `len`.
    pub(crate) fn new(len: u32, words: impl Iterator<Item = u64>) -> Self {
        let mut levels = vec![Level::new((len as usize).div_ceil(64).max(1))];
        while levels[levels.len() - 1].words() > LINE {
            let below = levels[levels.len() - 1].words();
            levels.push(Level::new(below.div_ceil(64)));
        }
        let bits = Self { levels, len };
        for (at, word) in words.enumerate() {
            bits.levels[0].word(at).store(word, Relaxed);
            if word != 0 {
                bits.mark(1, at);
            }
        }
        bits
    }

    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Marks in the levels from `level` up that word `at` of the level below is nonzero.
    #[cold]
    fn mark(&self, level: usize, at: usize) {
        let mut at = at;
        for level in &self.levels[level..] {
            let before = level.word(at / 64).fetch_or(1 << (at % 64), SeqCst);
            if before != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Inserts a number. Every store is sequentially consistent, so a caller that checks for waiters afterwards needs
    /// no fence.
    #[inline]
    pub(crate) fn insert(&self, i: u32) {
        debug_assert!(i < self.len, "{i} of {}", self.len);
        let at = i as usize;
        let bit = 1u64 << (at % 64);
        let before = self.levels[0].word(at / 64).fetch_or(bit, SeqCst);
        debug_assert!(before & bit == 0, "{i} was released twice");
        if before == 0 {
            self.mark(1, at / 64);
        }
    }

    /// Takes a number; `false` if the number is not in the set.
    #[inline]
    pub(crate) fn take(&self, i: u32) -> bool {
        debug_assert!(i < self.len, "{i} of {}", self.len);
        let (at, bit) = (i as usize / 64, 1u64 << (i % 64));
        let before = self.levels[0].word(at).fetch_and(!bit, AcqRel);
        if before == bit {
            self.unmark(at);
        }
        before & bit != 0
    }

    /// Takes the smallest number from `from` to before `to`, if the number is in the word of `from` and no other thread
    /// takes the number meanwhile.
    #[inline(always)]
    pub(crate) fn take_near(&self, from: u32, to: u32) -> Option<u32> {
        if from >= to {
            return None;
        }
        let at = from as usize / 64;
        let word = self.levels[0].word(at);
        let ahead = word.load(Acquire) & (u64::MAX << (from % 64));
        if ahead == 0 {
            return None;
        }
        let next = from & !63 | ahead.trailing_zeros();
        if next >= to {
            return None;
        }
        let bit = ahead & ahead.wrapping_neg();
        let before = word.fetch_and(!bit, AcqRel);
        if before == bit {
            self.unmark(at);
        }
        (before & bit != 0).then_some(next)
    }

    /// Removes the marks of word `at` of the lowest level after the word became zero.
    #[cold]
    fn unmark(&self, at: usize) {
        let mut at = at;
        for l in 1..self.levels.len() {
            let bit = 1u64 << (at % 64);
            let before = self.levels[l].word(at / 64).fetch_and(!bit, AcqRel);
            // A concurrent insert may have made the word nonzero: check after clearing the mark, and set the mark
            // again.
            if self.levels[l - 1].word(at).load(Acquire) != 0 {
                self.mark(l, at);
                return;
            }
            if before != bit {
                return;
            }
            at /= 64;
        }
    }

    pub(crate) fn contains(&self, i: u32) -> bool {
        self.levels[0].word(i as usize / 64).load(Acquire) >> (i % 64) & 1 == 1
    }

    /// The bits of the 64 numbers from `64 · at` on.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.levels[0].word(at).load(Acquire)
    }

    /// The smallest number in the set from `from` to before `to`.
    #[inline]
    pub(crate) fn next(&self, from: u32, to: u32) -> Option<u32> {
        if from >= to {
            return None;
        }
        // The next number is usually in the word of `from`.
        let at = from as usize / 64;
        let word = self.levels[0].word(at).load(Acquire) & (u64::MAX << (from % 64));
        let next = if word == 0 {
            self.find_behind(at)?
        } else {
            from & !63 | word.trailing_zeros()
        };
        (next < to).then_some(next)
    }

    /// The smallest number of the set that lies after word `word` of the lowest level; `None` if the set has no such
    /// number.
    #[inline(never)]
    fn find_behind(&self, word: usize) -> Option<u32> {
        self.find(0, (word + 1) * 64).map(|i| i as u32)
    }

    /// The first bit of a level that is set, at or after bit `from`.
    fn find(&self, level: usize, from: usize) -> Option<usize> {
        let mut at = from / 64;
        if at >= self.levels[level].words() {
            return None;
        }
        let word = self.levels[level].word(at).load(Acquire) & (u64::MAX << (from % 64));
        if word != 0 {
            return Some(at * 64 + word.trailing_zeros() as usize);
        }
        loop {
            at = self.next_word(level, at + 1)?;
            // A mark may be set before the word is nonzero.
            let word = self.levels[level].word(at).load(Acquire);
            if word != 0 {
                return Some(at * 64 + word.trailing_zeros() as usize);
            }
        }
    }

    /// The first word of a level that may be nonzero, at or after word `from`.
    fn next_word(&self, level: usize, from: usize) -> Option<usize> {
        if level + 1 < self.levels.len() {
            return self.find(level + 1, from);
        }
        let top = &self.levels[level];
        (from..top.words()).find(|at| top.word(*at).load(Acquire) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    proptest! {
        #[test]
        fn behaves_like_a_set(
            len in 1u32..200_000,
            steps in prop::collection::vec((any::<bool>(), any::<u32>(), any::<u32>()), 1..300),
        ) {
            let bits = Bits::new(len, std::iter::empty());
            let mut model = BTreeSet::new();
            for (put, a, b) in steps {
                let (a, b) = (a % len, b % (len + 1));
                // A number in the set is not inserted again: the insertion would be a second release.
                if put && model.insert(a) {
                    bits.insert(a);
                } else if !put {
                    prop_assert_eq!(bits.take(a), model.remove(&a));
                }
                let want = if a < b { model.range(a..b).next().copied() } else { None };
                prop_assert_eq!(bits.next(a, b), want);
                prop_assert_eq!(bits.next(0, len), model.first().copied());
                prop_assert_eq!(bits.contains(a), model.contains(&a));
            }
        }
    }

    #[test]
    fn threads_never_take_the_same_number() {
        let len = 10_000;
        let full = (0..(len as usize).div_ceil(64)).map(|i| {
            let left = len as usize - i * 64;
            if left >= 64 {
                u64::MAX
            } else {
                (1 << left) - 1
            }
        });
        let bits = Arc::new(Bits::new(len, full));
        let held: Arc<Vec<AtomicU64>> = Arc::new((0..len).map(|_| AtomicU64::new(0)).collect());
        let threads: Vec<_> = (0..4)
            .map(|t| {
                let (bits, held) = (bits.clone(), held.clone());
                std::thread::spawn(move || {
                    let mut at = t * 17;
                    for _ in 0..100_000 {
                        let Some(i) = bits.next(at, len).or_else(|| bits.next(0, len)) else {
                            continue;
                        };
                        if bits.take(i) {
                            assert_eq!(held[i as usize].swap(1, AcqRel), 0);
                            held[i as usize].store(0, Relaxed);
                            bits.insert(i);
                        }
                        at = (i + 1) % len;
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert!((0..len).all(|i| bits.contains(i) && bits.next(i, i + 1) == Some(i)));
    }

    /// Without concurrency, a bit of a level is set if, and only if, its word of the level below is nonzero.
    fn assert_summaries_are_exact(bits: &Bits) {
        for l in 1..bits.levels.len() {
            let (below, level) = (&bits.levels[l - 1], &bits.levels[l]);
            assert!(
                below.words() <= level.words() * 64,
                "level {l} is too small"
            );
            for at in 0..below.words() {
                let marked = level.word(at / 64).load(Relaxed) >> (at % 64) & 1 == 1;
                let nonzero = below.word(at).load(Relaxed) != 0;
                assert_eq!(marked, nonzero, "word {at} below level {l}");
            }
        }
    }

    /// The set of the numbers below `len` that are in `model`.
    fn bits_of(len: u32, model: &BTreeSet<u32>) -> Bits {
        let mut words = vec![0u64; len.div_ceil(64) as usize];
        for i in model {
            words[*i as usize / 64] |= 1 << (i % 64);
        }
        Bits::new(len, words.into_iter())
    }

    proptest! {
        #[test]
        fn summaries_follow_every_change(
            len in 1u32..70_000,
            initial in prop::collection::vec(any::<u32>(), 0..40),
            steps in prop::collection::vec((0u8..3, any::<u32>(), any::<u32>()), 1..60),
        ) {
            let mut model: BTreeSet<u32> = initial.into_iter().map(|i| i % len).collect();
            let bits = bits_of(len, &model);
            assert_summaries_are_exact(&bits);
            for (step, a, b) in steps {
                let (a, to) = (a % len, b % (len + 1));
                match step {
                    0 if model.insert(a) => bits.insert(a),
                    0 => {}
                    1 => prop_assert_eq!(bits.take(a), model.remove(&a)),
                    _ => {
                        // `take_near` looks only in the word of its first number.
                        let end = to.min((a / 64 + 1) * 64).max(a);
                        let near = model.range(a..end).next().copied();
                        prop_assert_eq!(bits.take_near(a, to), near);
                        near.map(|i| model.remove(&i));
                    }
                }
            }
            assert_summaries_are_exact(&bits);
            let word = |at: u32| model.range(at * 64..(at + 1) * 64).fold(0, |w, i| w | 1u64 << (i % 64));
            prop_assert!((0..len.div_ceil(64)).all(|at| bits.word(at as usize) == word(at)));
            for i in std::mem::take(&mut model) {
                prop_assert!(bits.take(i));
            }
            assert_summaries_are_exact(&bits);
            prop_assert_eq!((bits.len(), bits.next(0, len)), (len, None));
        }
    }

    #[test]
    fn a_set_has_as_many_levels_as_it_needs() {
        // The top level has one cache line.
        let top = u64::from(LINE_BITS);
        for (len, levels) in [
            (1, 1),
            (top, 1),
            (top + 1, 2),
            (top * 64, 2),
            (top * 64 + 1, 3),
            (top * 64 * 64, 3),
        ] {
            let bits = Bits::new(u32::try_from(len).unwrap(), std::iter::empty());
            assert_eq!(bits.levels.len(), levels, "{len}");
            assert_eq!(bits.levels.last().unwrap().words(), LINE);
            assert!(bits.levels[0].words() as u64 * 64 >= len);
        }
        assert_eq!(Bits::new(0, std::iter::empty()).next(0, 0), None);
    }

    #[test]
    fn the_next_number_is_found_across_words_lines_and_levels() {
        let len = 3_000_000;
        let far = [
            0,
            63,
            64,
            511,
            512,
            32_767,
            32_768,
            2_097_151,
            2_097_152,
            len - 1,
        ];
        for from in far {
            for to in far {
                let model = BTreeSet::from([to]);
                let bits = bits_of(len, &model);
                let want = (from <= to).then_some(to);
                assert_eq!(bits.next(from, len), want, "{to} from {from}");
                assert_eq!(bits.next(from, to), None, "{to} is the end");
                let same_word = from / 64 == to / 64;
                let near = want.filter(|_| same_word);
                assert_eq!(bits.take_near(from, to), None);
                assert_eq!(bits.take_near(from, len), near);
                assert_eq!(bits.contains(to), near.is_none());
            }
        }
    }
}
