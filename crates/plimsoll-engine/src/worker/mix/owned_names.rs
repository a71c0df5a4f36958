//! Names that come and go: which of a worker's own are there, and which are not.

use plimsoll_plan::Rng;
use rand::RngExt;
use std::ops::Range;

/// The names of one worker in a fileset. Nobody else makes or removes them.
pub(super) struct OwnedNames {
    existing: Vec<u32>,
    missing: Vec<u32>,
}

impl OwnedNames {
    /// The names with these numbers, of which some are there.
    pub(super) fn new(numbers: Range<u64>, is_there: impl Fn(u32) -> bool) -> Self {
        let (present, absent) = numbers
            .map(|n| n as u32)
            .partition(|number| is_there(*number));
        Self {
            existing: present,
            missing: absent,
        }
    }

    fn draw(from: &mut Vec<u32>, rng: &mut Rng) -> Option<u32> {
        if from.is_empty() {
            return None;
        }
        let at = rng.random_range(0..from.len());
        Some(from.swap_remove(at))
    }

    /// Takes a name that is there, if one is.
    pub(super) fn take_present(&mut self, rng: &mut Rng) -> Option<u32> {
        Self::draw(&mut self.existing, rng)
    }

    /// Takes a name that is not there, if one is not.
    pub(super) fn take_absent(&mut self, rng: &mut Rng) -> Option<u32> {
        Self::draw(&mut self.missing, rng)
    }

    /// Gives a name back.
    pub(super) fn give(&mut self, number: u32, is_there: bool) {
        match is_there {
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
        let mut names = OwnedNames::new(10..20, |n| n % 3 == 0);
        let mut there: Vec<u32> = std::iter::from_fn(|| names.take_present(&mut rng)).collect();
        there.sort_unstable();
        assert_eq!(there, [12, 15, 18]);
        let mut others: Vec<u32> = std::iter::from_fn(|| names.take_absent(&mut rng)).collect();
        others.sort_unstable();
        assert_eq!(others, [10, 11, 13, 14, 16, 17, 19]);
        names.give(12, false);
        assert_eq!(names.take_present(&mut rng), None);
        assert_eq!(names.take_absent(&mut rng), Some(12));
    }

    #[test]
    fn any_of_them_may_be_taken() {
        let mut rng = Stream::new(1).rng();
        let mut seen = [0u32; 8];
        let mut names = OwnedNames::new(0..8, |_| true);
        for _ in 0..8000 {
            let n = names.take_present(&mut rng).unwrap();
            seen[n as usize] += 1;
            names.give(n, true);
        }
        // Five standard deviations of a binomial of 8000 and an eighth are 148.
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
