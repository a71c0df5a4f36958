//! The choice of a file of the working set, and of a position in the file.

use plimsoll_plan::{Choice, DIRECT_BLOCK, Rng, Spots};
use rand::RngExt;
use rand_distr::{Distribution as _, Zipf};
use std::ops::Range;

/// Mean of the geometric distribution before truncation, as a fraction of its range.
const GEOMETRIC_MEAN_SHARE: f64 = 0.1;

/// Chooses files of a worker's part of the working set.
pub(super) struct FileChooser {
    members: Range<u64>,
    choice: Choice,
    zipf: Option<Box<Zipf<f64>>>,
}

impl FileChooser {
    pub(super) fn new(members: Range<u64>, choice: Choice) -> Self {
        let count = (members.end - members.start).max(1) as f64;
        let zipf = match choice {
            Choice::Zipf { exponent } => Zipf::new(count, exponent).ok().map(Box::new),
            Choice::Uniform | Choice::Geometric { .. } => None,
        };
        Self {
            members,
            choice,
            zipf,
        }
    }

    /// Draws a file of the working set; returns the file's number in the working set.
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let count = self.members.end - self.members.start;
        if count <= 1 {
            return self.members.start;
        }
        let at = match (self.choice, &self.zipf) {
            (Choice::Geometric { percent }, _) if rng.random::<f64>() * 100.0 < percent => {
                geometric(count, rng)
            }
            // Samples of `Zipf` are whole numbers from 1.
            (_, Some(zipf)) => (zipf.sample(rng) as u64).clamp(1, count) - 1,
            _ => rng.random_range(0..count),
        };
        self.members.start + at
    }

    /// The next member of this part of the working set; the first member follows the last.
    fn after(&self, member: u64) -> u64 {
        match member + 1 {
            next if next < self.members.end => next,
            _ => self.members.start,
        }
    }
}

/// Draws a number below `count` from the exponential distribution with mean `count` / 10, truncated at `count`. The
/// shape of the continuous distribution does not depend on the number of files.
fn geometric(count: u64, rng: &mut Rng) -> u64 {
    let end = 1.0 - (-1.0 / GEOMETRIC_MEAN_SHARE).exp();
    let x = -(1.0 - rng.random::<f64>() * end).ln() * GEOMETRIC_MEAN_SHARE;
    ((x * count as f64) as u64).min(count - 1)
}

/// A part of a file that random transfers of a worker prefer for a while.
pub(super) struct Hotspot {
    how: Spots,
    member: u64,
    /// Number of the part in the file, from 0.
    part: u64,
    /// Remaining transfers before the hotspot moves.
    left: u64,
}

impl Hotspot {
    /// A hotspot at a random position of the working set.
    pub(super) fn new(how: Spots, chooser: &FileChooser, rng: &mut Rng) -> Self {
        let mut spot = Self {
            how,
            member: chooser.draw(rng),
            part: rng.random_range(0..parts(&how)),
            left: 0,
        };
        spot.left = spot.accesses(rng);
        spot
    }

    fn accesses(&self, rng: &mut Rng) -> u64 {
        let times = rng.random_range(1..=self.how.multiplier.max(1));
        u64::from(self.how.accesses) * u64::from(times)
    }

    /// The file of the next transfer, and the part of the file between two fractions; `None` if the transfer does not
    /// go to the hotspot. Moves the hotspot when its transfers are used up.
    pub(super) fn draw(
        &mut self,
        chooser: &FileChooser,
        rng: &mut Rng,
    ) -> Option<(u64, Range<f64>)> {
        if rng.random::<f64>() * 100.0 >= self.how.affinity {
            return None;
        }
        if self.left == 0 {
            self.part += 1;
            if self.part >= parts(&self.how) {
                self.part = 0;
                self.member = chooser.after(self.member);
            }
            self.left = self.accesses(rng);
        }
        self.left -= 1;
        let width = self.how.percent / 100.0;
        let begin = self.part as f64 * width;
        Some((self.member, begin..(begin + width).min(1.0)))
    }

    pub(super) fn is_geometric(&self) -> bool {
        self.how.geometric
    }
}

/// Number of parts of a file, each as large as a hotspot; the last part may be smaller.
fn parts(spots: &Spots) -> u64 {
    ((100.0 / spots.percent).ceil() as u64).max(1)
}

/// Position and length of a transfer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// The bounds of a random position.
pub(super) struct PlacementBounds {
    /// Size of the file in bytes.
    pub(super) size: u64,
    /// Alignment in bytes: transfers begin at a multiple of this number.
    pub(super) align: u64,
    /// Part of the file that transfers begin in, as two fractions of the file.
    pub(super) part: Range<f64>,
    /// Whether positions near the beginning of the part are more likely.
    pub(super) geometric: bool,
}

impl PlacementBounds {
    /// Draws a position for `len` bytes, or for the whole file if the file is shorter.
    pub(super) fn draw(&self, len: u64, rng: &mut Rng) -> Extent {
        let len = len.min(self.size);
        let align = self.align.max(1);
        // Number of aligned positions at which the transfer ends inside the file.
        let slots = (self.size - len) / align + 1;
        let (from, to) = (
            ((self.part.start * slots as f64) as u64).min(slots - 1),
            ((self.part.end * slots as f64).ceil() as u64).min(slots),
        );
        let width = to.saturating_sub(from).max(1);
        let at = match self.geometric {
            true => geometric(width, rng),
            false => rng.random_range(0..width),
        };
        let offset = (from + at) * align;
        debug_assert!(
            offset.is_multiple_of(align) && offset + len <= self.size,
            "{len} bytes at {offset} are not in the file or not aligned"
        );
        Extent { offset, len }
    }
}

/// Rounds a length up to whole blocks of direct I/O.
pub(super) fn whole_blocks(len: u64) -> u64 {
    len.max(1).next_multiple_of(DIRECT_BLOCK)
}

/// The least common multiple of an alignment and the block of direct I/O.
pub(super) fn block_alignment(align: u64) -> u64 {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let align = align.max(1);
    align / gcd(align, DIRECT_BLOCK) * DIRECT_BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Stream;
    use proptest::prelude::*;

    /// Frequency of draws in each of a hundred equal parts of the members.
    fn popularity(members: u64, choice: Choice) -> Vec<f64> {
        let chooser = FileChooser::new(1000..1000 + members, choice);
        let mut rng = Stream::new(5).rng();
        let mut seen = vec![0u32; 100];
        for _ in 0..200_000 {
            let n = chooser.draw(&mut rng) - 1000;
            seen[(n * 100 / members) as usize] += 1;
        }
        seen.iter().map(|n| f64::from(*n) / 200_000.0).collect()
    }

    #[test]
    fn a_uniform_choice_prefers_nothing() {
        for share in popularity(5000, Choice::Uniform) {
            assert!((share - 0.01).abs() < 0.0015, "{share}");
        }
    }

    #[test]
    fn a_geometric_choice_looks_the_same_over_any_number_of_files() {
        let geometric = Choice::Geometric { percent: 100.0 };
        let (few, many) = (
            popularity(1000, geometric),
            popularity(1_000_000, geometric),
        );
        for i in 0..100 {
            // The expected distribution is exponential with mean 0.1, truncated to [0, 1].
            let at = |x: f64| (-x * 10.0).exp();
            let exact = (at(i as f64 / 100.0) - at((i + 1) as f64 / 100.0)) / (1.0 - at(1.0));
            for share in [few[i], many[i]] {
                assert!((share - exact).abs() < 0.003, "{share} of {exact} at {i}");
            }
        }
        let half = popularity(1000, Choice::Geometric { percent: 50.0 });
        assert!((half[99] - 0.005).abs() < 0.001, "{}", half[99]);
    }

    #[test]
    fn a_zipf_choice_follows_its_exponent() {
        let seen = popularity(100, Choice::Zipf { exponent: 1.0 });
        let harmonic: f64 = (1..=100).map(|k| 1.0 / f64::from(k)).sum();
        for k in [1usize, 2, 10, 50] {
            let exact = 1.0 / (k as f64 * harmonic);
            assert!(
                (seen[k - 1] / exact - 1.0).abs() < 0.1,
                "{k}: {}",
                seen[k - 1]
            );
        }
    }

    #[test]
    fn spots_are_worked_through_one_after_the_other() {
        let how = Spots {
            percent: 25.0,
            accesses: 3,
            multiplier: 1,
            affinity: 100.0,
            geometric: false,
        };
        let chooser = FileChooser::new(7..9, Choice::Uniform);
        let mut rng = Stream::new(2).rng();
        let mut spot = Hotspot::new(how, &chooser, &mut rng);
        (spot.member, spot.part) = (7, 2);
        let mut seen: Vec<(u64, f64)> = Vec::new();
        for _ in 0..27 {
            let (member, part) = spot.draw(&chooser, &mut rng).unwrap();
            assert!((part.end - part.start - 0.25).abs() < 1e-12);
            seen.push((member, part.start));
        }
        let firsts: Vec<(u64, f64)> = seen.chunks(3).map(|c| c[0]).collect();
        assert!(seen.chunks(3).all(|c| c.iter().all(|s| *s == c[0])));
        let expected = [
            (7, 0.5),
            (7, 0.75),
            (8, 0.0),
            (8, 0.25),
            (8, 0.5),
            (8, 0.75),
            (7, 0.0),
            (7, 0.25),
            (7, 0.5),
        ];
        assert_eq!(firsts, expected);
    }

    #[test]
    fn affinity_is_the_share_of_transfers_in_the_spot() {
        let how = Spots {
            percent: 10.0,
            accesses: 10,
            multiplier: 5,
            affinity: 60.0,
            geometric: false,
        };
        let chooser = FileChooser::new(0..100, Choice::Uniform);
        let mut rng = Stream::new(2).rng();
        let mut spot = Hotspot::new(how, &chooser, &mut rng);
        let stays = (0..100_000)
            .filter(|_| spot.draw(&chooser, &mut rng).is_some())
            .count();
        assert!((59_200..60_800).contains(&stays), "{stays}");
    }

    proptest! {
        #[test]
        fn transfers_lie_in_their_file_and_begin_where_they_may(
            size in 0u64..1 << 40, len in 0u64..1 << 24, align in 1u64..100_000,
            begin in 0.0f64..1.0, width in 0.001f64..1.0, geometric: bool, seed: u64,
        ) {
            let part = begin..(begin + width).min(1.0);
            let room = PlacementBounds { size, align, part: part.clone(), geometric };
            let e = room.draw(len, &mut Stream::new(seed).rng());
            prop_assert!(e.offset + e.len <= size);
            prop_assert_eq!(e.offset % align, 0);
            prop_assert_eq!(e.len, len.min(size));
            // The transfer begins in the part, to within one alignment.
            let room = (size - e.len) as f64 + align as f64;
            prop_assert!(e.offset as f64 >= (part.start * room - 2.0 * align as f64).floor());
            prop_assert!(e.offset as f64 <= (part.end * room + align as f64).ceil());
        }

        #[test]
        fn blocks_begin_at_multiples_of_both(align in 1u64..1 << 30) {
            let both = block_alignment(align);
            prop_assert_eq!((both % align, both % DIRECT_BLOCK), (0, 0));
            prop_assert!(u128::from(both) <= u128::from(align) * u128::from(DIRECT_BLOCK));
        }
    }

    /// The offsets of transfers of `len` bytes, in order, each with its frequency in 20 000 draws.
    fn offsets(room: &PlacementBounds, len: u64) -> Vec<(u64, u32)> {
        let mut rng = Stream::new(9).rng();
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            let place = room.draw(len, &mut rng);
            assert_eq!(place.len, len.min(room.size));
            *seen.entry(place.offset).or_default() += 1;
        }
        seen.into_iter().collect()
    }

    fn room(size: u64, align: u64, part: Range<f64>) -> PlacementBounds {
        let geometric = false;
        PlacementBounds {
            size,
            align,
            part,
            geometric,
        }
    }

    #[test]
    fn every_aligned_position_in_the_part_is_as_likely() {
        for (size, align, part, len, want) in [
            (10, 2, 0.0..1.0, 3, &[0, 2, 4, 6][..]),
            (10, 2, 0.0..1.0, 4, &[0, 2, 4, 6]),
            (10, 2, 0.0..1.0, 10, &[0]),
            (10, 2, 0.0..1.0, 99, &[0]),
            (10, 0, 0.0..1.0, 8, &[0, 1, 2]),
            (10, 1, 0.0..1.0, 0, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            (10, 64, 0.0..1.0, 1, &[0]),
            (0, 8, 0.0..1.0, 5, &[0]),
            // Of eight positions, a transfer may begin at the positions that the part contains or touches.
            (8, 1, 0.5..0.75, 1, &[4, 5]),
            (8, 1, 0.5..0.8, 1, &[4, 5, 6]),
            (8, 1, 0.0..0.1, 1, &[0]),
            (8, 1, 0.9..1.0, 1, &[7]),
            (8, 1, 1.0..1.0, 1, &[7]),
        ] {
            let found = offsets(&room(size, align, part.clone()), len);
            let at: Vec<u64> = found.iter().map(|(offset, _)| *offset).collect();
            assert_eq!(at, want, "{len} of {size} at {align} in {part:?}");
            let mean = 20_000.0 / want.len() as f64;
            // The tolerance is six standard deviations of a count.
            let even = |n: u32| (f64::from(n) - mean).abs() <= 6.0 * mean.sqrt();
            assert!(
                found.iter().all(|(_, n)| want.len() == 1 || even(*n)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn geometric_positions_prefer_the_beginning_of_the_part() {
        let bounds = PlacementBounds {
            geometric: true,
            ..room(2000, 1, 0.5..1.0)
        };
        let found = offsets(&bounds, 1);
        assert!(found[0].0 == 1000 && found.iter().all(|(at, _)| *at < 2000));
        // The expected mean is the mean of an exponential distribution with mean 0.1, truncated to [0, 1].
        let end = (-10.0f64).exp();
        let exact = 1000.0 * (0.1 - end / (1.0 - end));
        let sum: f64 = found
            .iter()
            .map(|(at, n)| (at - 1000) as f64 * f64::from(*n))
            .sum();
        let mean = sum / 20_000.0;
        // The mean is half a position lower, because positions are rounded down. Five deviations of the mean are 3.5.
        assert!((mean + 0.5 - exact).abs() < 3.5, "{mean} of {exact}");
        let only = PlacementBounds {
            geometric: true,
            ..room(10, 1, 0.0..1.0)
        };
        assert_eq!(offsets(&only, 10), [(0, 20_000)]);
    }

    #[test]
    fn a_single_member_is_not_drawn() {
        let mut rng = Stream::new(1).rng();
        let before = rng.clone().random::<u64>();
        for choice in [
            Choice::Uniform,
            Choice::Geometric { percent: 100.0 },
            Choice::Zipf { exponent: 1.0 },
        ] {
            for members in [5..6, 5..5] {
                assert_eq!(FileChooser::new(members, choice).draw(&mut rng), 5);
            }
            let two = FileChooser::new(5..7, choice);
            let mut seen: Vec<u64> = (0..200).map(|_| two.draw(&mut rng.clone())).collect();
            seen.dedup();
            assert_eq!(seen.len(), 1, "a draw follows from its random numbers");
        }
        assert_eq!(rng.random::<u64>(), before, "none was used");
    }

    #[test]
    fn every_member_is_drawn_and_no_other() {
        for choice in [
            Choice::Uniform,
            Choice::Geometric { percent: 100.0 },
            Choice::Geometric { percent: 10.0 },
            Choice::Zipf { exponent: 0.5 },
        ] {
            let chooser = FileChooser::new(7..12, choice);
            let mut rng = Stream::new(4).rng();
            let mut seen: Vec<u64> = (0..5000).map(|_| chooser.draw(&mut rng)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, [7, 8, 9, 10, 11], "{choice:?}");
        }
        let chooser = FileChooser::new(7..9, Choice::Uniform);
        assert_eq!((chooser.after(7), chooser.after(8)), (8, 7));
    }

    #[test]
    fn a_spot_takes_its_accesses_times_a_random_factor() {
        let how = Spots {
            percent: 30.0,
            accesses: 4,
            multiplier: 3,
            affinity: 100.0,
            geometric: true,
        };
        let chooser = FileChooser::new(0..1, Choice::Uniform);
        let mut rng = Stream::new(8).rng();
        let mut spot = Hotspot::new(how, &chooser, &mut rng);
        assert!(spot.is_geometric());
        let mut runs: Vec<(f64, f64, u32)> = Vec::new();
        for _ in 0..30_000 {
            let (member, part) = spot.draw(&chooser, &mut rng).unwrap();
            assert_eq!(member, 0);
            match runs.last_mut() {
                Some((start, _, n)) if *start == part.start => *n += 1,
                _ => runs.push((part.start, part.end, 1)),
            }
        }
        runs.pop();
        // The file has four parts, and the last part is cut off at the end of the file.
        let parts: Vec<(f64, f64)> = runs[..5].iter().map(|(a, b, _)| (*a, *b)).collect();
        let begin = parts.iter().position(|(start, _)| *start == 0.0).unwrap();
        let width = 30.0 / 100.0;
        let want: Vec<(f64, f64)> = (0..4)
            .map(|n| f64::from(n) * width)
            .map(|start| (start, (start + width).min(1.0)))
            .collect();
        assert_eq!(
            runs[begin..begin + 4]
                .iter()
                .map(|(a, b, _)| (*a, *b))
                .collect::<Vec<_>>(),
            want
        );
        assert_eq!(want[3].1, 1.0);
        // A hotspot stays for four, eight or twelve accesses, with equal frequency.
        let times = |n: u32| runs.iter().filter(|(_, _, found)| *found == 4 * n).count();
        let seen = [times(1), times(2), times(3)];
        assert_eq!(seen.iter().sum::<usize>(), runs.len());
        let mean = runs.len() as f64 / 3.0;
        assert!(
            seen.iter()
                .all(|n| (*n as f64 - mean).abs() < 6.0 * mean.sqrt()),
            "{seen:?}"
        );
    }

    #[test]
    fn spots_begin_anywhere_and_may_be_left_alone() {
        let how = Spots {
            percent: 25.0,
            accesses: 1,
            multiplier: 0,
            affinity: 100.0,
            geometric: false,
        };
        let chooser = FileChooser::new(3..6, Choice::Uniform);
        let mut rng = Stream::new(8).rng();
        let mut begun = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let spot = Hotspot::new(how, &chooser, &mut rng);
            assert_eq!(spot.left, 1, "a multiplier of 0 is one of 1");
            begun.insert((spot.member, spot.part));
        }
        let all = (3..6).flat_map(|member| (0..4).map(move |part| (member, part)));
        assert_eq!(begun, all.collect());
        let none = Spots {
            affinity: 0.0,
            ..how
        };
        let mut spot = Hotspot::new(none, &chooser, &mut rng);
        assert!((0..1000).all(|_| spot.draw(&chooser, &mut rng).is_none()));
        assert_eq!(
            (
                parts(&how),
                parts(&Spots {
                    percent: 100.0,
                    ..how
                })
            ),
            (4, 1)
        );
        assert_eq!(
            parts(&Spots {
                percent: 99.0,
                ..how
            }),
            2
        );
        assert_eq!(
            parts(&Spots {
                percent: 1000.0,
                ..how
            }),
            1
        );
    }

    #[test]
    fn blocks_of_direct_transfers_are_whole() {
        let b = DIRECT_BLOCK;
        for (len, want) in [
            (0, b),
            (1, b),
            (b - 1, b),
            (b, b),
            (b + 1, 2 * b),
            (3 * b, 3 * b),
        ] {
            assert_eq!(whole_blocks(len), want, "{len}");
        }
        for (align, want) in [
            (0, b),
            (1, b),
            (2, b),
            (b, b),
            (2 * b, 2 * b),
            (3, 3 * b),
            (b + b / 2, 3 * b),
        ] {
            assert_eq!(block_alignment(align), want, "{align}");
        }
    }
}
