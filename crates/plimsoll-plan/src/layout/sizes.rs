//! Sizes of the files of a fileset.

use super::initial::InitialEntries;
use crate::seed::Stream;
use crate::units::ByteSum;
use crate::variable::Sampler;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Maximum number of drawn sizes that a formula tree keeps (8 MiB): a draw can take longer than finding the file. In a
/// tree with more files, every use draws the size, and a summary takes a sample of this number of files.
pub(super) const MAX_SIZES_DRAWN: u32 = 1 << 20;

/// Distribution of the file sizes of a laid-out fileset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SizeSummary {
    /// Number of files in the summary, exact even if the sizes are estimates.
    pub files: u64,
    /// Sum of the sizes of the files in the summary, in bytes.
    pub total: u128,
    /// Minimum size of the files in the summary, in bytes; 0 without files.
    pub min: u64,
    /// Maximum size of the files in the summary, in bytes; 0 without files.
    pub max: u64,
    /// Mean size of the files in the summary, in bytes; 0 without files.
    pub mean: f64,
    /// Histogram of file sizes: pairs of an upper bound in bytes (a power of two, or 0) and the number of files of at
    /// most the bound that are above the next lower bound; bounds without files are absent.
    pub buckets: Vec<(u64, u64)>,
    /// Whether the figures in bytes and the histogram are estimates from a sample of 2²⁰ files at equal distances. A
    /// summary uses a sample if more than 2²⁰ files are summarised, their sizes are drawn, and the tree is a formula.
    /// With a sample of 2²⁰ files, the relative standard error of `total` and `mean` is the coefficient of variation of
    /// the sizes divided by 1024. The number of files is exact even in a summary from a sample.
    pub estimated: bool,
}

impl SizeSummary {
    /// Sum of the file sizes, marked as an estimate if the summary is a sample.
    #[must_use]
    pub fn sum(&self) -> ByteSum {
        ByteSum {
            bytes: self.total,
            estimated: self.estimated,
        }
    }
}

/// File sizes in bytes, by file number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Sizes {
    /// Constant size in bytes of every file of the fileset.
    Same(u64),
    /// Sizes of all files, drawn when the fileset is laid out.
    Table(Box<[u64]>),
    /// The size of a file is drawn at every use, from the number of the file, because a table would be too large.
    Formula(SizeDraws),
}

/// File sizes as a function of file numbers: each file has a branch of the stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SizeDraws {
    pub(super) sampler: Sampler,
    pub(super) stream: Stream,
}

impl SizeDraws {
    #[inline]
    fn of(&self, file: u32) -> u64 {
        let branch = self.stream.branch(u64::from(file));
        self.sampler.draw(&mut branch.rng())
    }

    /// Table of the sizes of files 0 to `files` − 1, each drawn once.
    pub(super) fn table(&self, files: u32) -> Sizes {
        Sizes::Table((0..files).map(|file| self.of(file)).collect())
    }
}

impl Sizes {
    #[inline]
    pub(super) fn of(&self, file: u32) -> u64 {
        match self {
            Self::Same(size) => *size,
            Self::Table(sizes) => sizes[file as usize],
            Self::Formula(draws) => draws.of(file),
        }
    }

    /// Summary of the sizes in `part`, or of the files in `part` that exist when the run starts (`initial`).
    pub(super) fn summary(
        &self,
        part: Range<u32>,
        initial: Option<&InitialEntries>,
    ) -> SizeSummary {
        let mut tally = Tally::default();
        match self {
            Self::Same(size) => tally.add_many(*size, count(&part, initial)),
            Self::Formula(_) if part.end - part.start > MAX_SIZES_DRAWN => {
                return self.estimate(part, initial, MAX_SIZES_DRAWN);
            }
            _ => match initial {
                None => part.for_each(|file| tally.add_many(self.of(file), 1)),
                Some(initial) => initial
                    .numbers(part)
                    .for_each(|file| tally.add_many(self.of(file), 1)),
            },
        }
        tally.summary()
    }

    /// Summary as in [`Self::summary`], from `sample` files at equal distances.
    pub(super) fn estimate(
        &self,
        part: Range<u32>,
        initial: Option<&InitialEntries>,
        sample: u32,
    ) -> SizeSummary {
        let all = u64::from(part.end - part.start);
        let spaced = |i: u32| part.start + (u64::from(i) * all / u64::from(sample)) as u32;
        let files = (0..sample).map(spaced);
        let mut tally = Tally::default();
        files
            .filter(|file| initial.is_none_or(|i| i.contains(*file)))
            .for_each(|file| tally.add_many(self.of(file), 1));
        tally.scaled_to(count(&part, initial))
    }
}

/// Number of files in `part`, or of the files in `part` that exist when the run starts (`initial`).
fn count(part: &Range<u32>, initial: Option<&InitialEntries>) -> u64 {
    match initial {
        Some(initial) => initial.count(part.clone()),
        None => u64::from(part.end - part.start),
    }
}

/// Running sums of the file sizes in a summary.
struct Tally {
    files: u64,
    total: u128,
    min: u64,
    max: u64,
    /// Bucket b > 0 counts the sizes in (2^(b-2), 2^(b-1)].
    buckets: [u64; 66],
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            files: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            buckets: [0; 66],
        }
    }
}

impl Tally {
    fn add_many(&mut self, size: u64, files: u64) {
        if files == 0 {
            return;
        }
        self.files += files;
        self.total += u128::from(size) * u128::from(files);
        self.min = self.min.min(size);
        self.max = self.max.max(size);
        let bucket = match size {
            0 => 0,
            n => 65 - (n - 1).leading_zeros() as usize,
        };
        self.buckets[bucket] += files;
    }

    fn summary(self) -> SizeSummary {
        let bound = |bucket: u32| match bucket {
            0 => 0,
            b => 1u64.checked_shl(b - 1).unwrap_or(u64::MAX),
        };
        let filled = (0u32..).zip(self.buckets).filter(|(_, files)| *files > 0);
        SizeSummary {
            files: self.files,
            total: self.total,
            min: if self.files == 0 { 0 } else { self.min },
            max: self.max,
            mean: match self.files {
                0 => 0.0,
                files => self.total as f64 / files as f64,
            },
            buckets: filled.map(|(b, files)| (bound(b), files)).collect(),
            estimated: false,
        }
    }

    /// Extrapolates the summary of a sample to `files` files.
    fn scaled_to(self, files: u64) -> SizeSummary {
        let mut s = self.summary();
        let factor = match s.files {
            0 => 0.0,
            sample => files as f64 / sample as f64,
        };
        for (_, count) in &mut s.buckets {
            *count = (*count as f64 * factor).round() as u64;
        }
        s.files = files;
        s.total = (s.mean * files as f64) as u128;
        s.estimated = true;
        s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::variable::{Distribution, Variable};

    fn draws() -> Sizes {
        let distribution = Distribution::Exponential { mean: 10_000.0 };
        Sizes::Formula(SizeDraws {
            sampler: Variable::new("size", distribution).sampler().unwrap(),
            stream: Stream::new(3),
        })
    }

    #[test]
    fn buckets_end_at_powers_of_two() {
        let sizes = [0, 1, 2, 3, 4, 5, 8, 9, 1 << 63, (1 << 63) + 1, u64::MAX];
        let all = Sizes::Table(sizes.into()).summary(0..11, None);
        let expected = [
            (0, 1),
            (1, 1),
            (2, 1),
            (4, 2),
            (8, 2),
            (16, 1),
            (1 << 63, 1),
            (u64::MAX, 2),
        ];
        assert_eq!(all.buckets, expected);
        assert_eq!((all.files, all.min, all.max), (11, 0, u64::MAX));
        let total = sizes.map(u128::from).iter().sum();
        assert_eq!(all.total, total, "beyond 64 bits");
    }

    #[test]
    fn a_summary_is_that_of_the_files_in_the_part() {
        let sizes = Sizes::Table([7, 10, 2, 30, 1].into());
        let summary = sizes.summary(1..4, None);
        assert_eq!((summary.files, summary.total), (3, 42));
        assert_eq!((summary.min, summary.max), (2, 30));
        assert_eq!(summary.mean, 14.0);
        assert_eq!(summary.buckets, [(2, 1), (16, 1), (32, 1)]);
        assert_eq!(summary.sum(), ByteSum::exact(42));
        let none = sizes.summary(2..2, None);
        let figures = (none.files, none.total, none.min, none.max, none.mean);
        assert_eq!(figures, (0, 0, 0, 0, 0.0));
        assert!(none.buckets.is_empty() && !none.estimated);
        let same = Sizes::Same(5).summary(3..10, None);
        assert_eq!((same.files, same.total, same.min, same.max), (7, 35, 5, 5));
        assert_eq!(same.buckets, [(8, 7)]);
        assert_eq!(Sizes::Same(5).summary(3..3, None), none);
    }

    #[test]
    fn a_sample_has_files_at_equal_distances() {
        let sizes = draws();
        let part = 1000..4000;
        let estimate = sizes.estimate(part, None, 50);
        let sample: Vec<u64> = (0..50).map(|i| sizes.of(1000 + i * 60)).collect();
        let mean = sample.iter().sum::<u64>() as f64 / 50.0;
        assert!((estimate.mean - mean).abs() < 1e-6);
        assert_eq!(estimate.files, 3000);
        assert_eq!(estimate.total, (mean * 3000.0) as u128);
        assert_eq!(Some(&estimate.min), sample.iter().min());
        assert_eq!(Some(&estimate.max), sample.iter().max());
        let in_buckets: u64 = estimate.buckets.iter().map(|b| b.1).sum();
        assert_eq!(in_buckets, 3000, "60 files for each of the sample");
        assert!(estimate.buckets.iter().all(|b| b.1 % 60 == 0));
        assert_eq!(
            estimate.sum().to_string(),
            ByteSum {
                bytes: estimate.total,
                estimated: true,
            }
            .to_string()
        );
    }

    /// A summary of initial files samples only initial files, and its number of files is exact.
    #[test]
    fn a_sample_of_initial_files_stands_for_all_of_them() {
        let sizes = draws();
        let initial = InitialEntries::new(4000, 40, Stream::new(9));
        let estimate = sizes.estimate(1000..4000, Some(&initial), 50);
        let sample = (0..50).map(|i| 1000 + i * 60);
        let sample: Vec<u64> = sample
            .filter(|file| initial.contains(*file))
            .map(|file| sizes.of(file))
            .collect();
        assert!((10..30).contains(&sample.len()), "{}", sample.len());
        let mean = sample.iter().sum::<u64>() as f64 / sample.len() as f64;
        assert!((estimate.mean - mean).abs() < 1e-6);
        let files = (1000..4000).filter(|file| initial.contains(*file)).count();
        assert_eq!(estimate.files, files as u64);
        let none = InitialEntries::new(4000, 0, Stream::new(9));
        let nothing = sizes.estimate(1000..4000, Some(&none), 50);
        assert_eq!((nothing.files, nothing.total, nothing.mean), (0, 0, 0.0));
    }

    #[test]
    fn sizes_are_sampled_only_if_there_are_more_than_a_table_may_have() {
        let sizes = draws();
        let all = sizes.summary(5..5 + MAX_SIZES_DRAWN, None);
        assert!(!all.estimated);
        assert_eq!(all.files, 1 << 20);
        let more = sizes.summary(4..5 + MAX_SIZES_DRAWN, None);
        assert!(more.estimated);
        assert_eq!(more.files, (1 << 20) + 1);
    }
}
