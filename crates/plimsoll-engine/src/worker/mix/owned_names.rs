//! Names that a worker creates and removes, and whether each name exists.

use plimsoll_plan::Rng;
use rand::RngExt;
use std::ops::Range;

/// Kinds of names that a worker creates and removes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Turnover,
    Empty,
    Dir,
}

/// The names of one worker in a fileset. No other worker creates or removes the names.
pub(super) struct OwnedNames {
    existing: Vec<u32>,
    missing: Vec<u32>,
}

impl OwnedNames {
    /// The names with the numbers `numbers`. `initial(at)` has the bits of the existing names among the 64 names from
    /// `64 · at` on.
    pub(super) fn new(numbers: Range<u64>, initial: impl Fn(u32) -> u64) -> Self {
        let (mut at, mut word) = (u32::MAX, 0);
        let exists = |n: &u32| {
            if at != n / 64 {
                (at, word) = (n / 64, initial(n / 64));
            }
            word >> (n % 64) & 1 == 1
        };
        let (existing, missing) = numbers.map(|n| n as u32).partition(exists);
        Self { existing, missing }
    }

    /// Takes a random existing name, or a random missing name if not `exists`; `None` if no name is in the wanted
    /// state.
    pub(super) fn take(&mut self, exists: bool, rng: &mut Rng) -> Option<u32> {
        let names = match exists {
            true => &mut self.existing,
            false => &mut self.missing,
        };
        if names.is_empty() {
            return None;
        }
        let at = rng.random_range(0..names.len());
        Some(names.swap_remove(at))
    }

    /// Returns a name, which now exists or is missing.
    pub(super) fn give(&mut self, number: u32, exists: bool) {
        debug_assert!(
            !self.existing.contains(&number) && !self.missing.contains(&number),
            "name {number} is given back twice"
        );
        match exists {
            true => self.existing.push(number),
            false => self.missing.push(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Stream;

    #[test]
    fn every_name_is_in_one_place() {
        let mut rng = Stream::new(1).rng();
        let mut names = OwnedNames::new(
            60..70,
            |at| if at == 0 { 1 << 60 | 1 << 63 } else { 1 << 2 },
        );
        let mut there: Vec<u32> = std::iter::from_fn(|| names.take(true, &mut rng)).collect();
        there.sort_unstable();
        assert_eq!(there, [60, 63, 66]);
        let mut others: Vec<u32> = std::iter::from_fn(|| names.take(false, &mut rng)).collect();
        others.sort_unstable();
        assert_eq!(others, [61, 62, 64, 65, 67, 68, 69]);
        names.give(66, false);
        assert_eq!(names.take(true, &mut rng), None);
        assert_eq!(names.take(false, &mut rng), Some(66));
    }

    #[test]
    fn any_of_them_may_be_taken() {
        let mut rng = Stream::new(1).rng();
        let mut seen = [0u32; 8];
        let mut names = OwnedNames::new(0..8, |_| u64::MAX);
        for _ in 0..8000 {
            let n = names.take(true, &mut rng).unwrap();
            seen[n as usize] += 1;
            names.give(n, true);
        }
        // Each count has a binomial distribution with 8000 draws and probability 1/8; five standard deviations are 148.
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
