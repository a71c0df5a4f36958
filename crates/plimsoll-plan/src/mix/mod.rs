//! Operation mixes: workers that draw their operations from a weighted table, at a rate of their
//! own, as load generators of business metrics do.

mod check;
mod load;
mod metric;
mod op;
mod sizes;

pub use metric::{BusinessMetric, Criteria, FailedCriterion, SCALED, scaled};
pub use op::{MixOp, Pool};
pub use sizes::{SizeSlot, SizeTable};

use crate::ids::FilesetId;
use crate::ids::OperationId;
use crate::units::seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Parts of a whole that a working set is given in.
pub const MILLION: u32 = 1_000_000;

/// A process of a business metric: what it does, how often, and to which files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mix {
    /// Operations and how often each is drawn; the percentages sum to 100.
    pub table: Vec<MixRow>,
    /// Row of what has to be done on the way to an operation: opening and closing files, making
    /// or removing a name the operation needs. Not part of any operation.
    pub prepare: OperationId,
    /// How operations are paced; `None`: each begins when the one before it has ended.
    pub pacing: Option<Pacing>,
    /// Time that a worker without pacing waits between the end of an operation and the beginning
    /// of the next one, in seconds.
    #[serde(
        with = "seconds",
        rename = "delay_s",
        default,
        skip_serializing_if = "Duration::is_zero"
    )]
    #[schemars(with = "f64", rename = "delay_s")]
    pub delay: Duration,
    /// Bytes of a read; whole files are read in pieces of the greatest size.
    pub reads: SizeTable,
    /// Bytes of a write; whole files are written in pieces of the greatest size.
    pub writes: SizeTable,
    /// The files.
    pub files: MixFiles,
    /// Which of the files are worked on, and how they are chosen.
    pub working_set: WorkingSet,
    /// How data is moved.
    pub flags: MixFlags,
}

/// An operation of a [`Mix`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixRow {
    /// What is done.
    pub op: MixOp,
    /// Share of all operations, above 0, in percent.
    pub percent: f64,
    /// What it is counted as.
    pub row: OperationId,
}

/// Open-loop pacing of a worker: operations are due whatever became of those before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Operations a second of each worker.
    pub rate: f64,
    /// How they follow each other.
    pub arrivals: Arrivals,
    /// Row that counts how late operations start after they were due: its service time is the
    /// lateness.
    pub start: OperationId,
}

/// How the operations of an open loop follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances. Each worker begins at a random part of the first distance, so that
    /// workers do not march in step.
    #[default]
    Constant,
    /// At random: the distances are exponential.
    Poisson,
}

/// The files of a [`Mix`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MixFiles {
    /// Files that are there from the beginning to the end.
    pub data: FilesetId,
    /// Files that are made, replaced, renamed and removed; there if an operation needs them.
    pub turnover: Option<FilesetId>,
    /// Empty files that are made and removed; there if an operation needs them.
    pub empty: Option<FilesetId>,
    /// All workers work on the data files of all of them. Otherwise each has only its part.
    pub shared: bool,
    /// Parts of equal size that files and spare directories are divided into, at least as many
    /// as there are workers: a worker has the part of its number. More parts than workers leave
    /// the rest for greater loads on the same files. What comes and goes is never shared.
    pub parts: u64,
}

impl MixFiles {
    /// The files of `part`, of `all` files: each is in one part.
    #[must_use]
    pub fn part(&self, part: u64, all: u64) -> std::ops::Range<u64> {
        let parts = u128::from(self.parts.max(1));
        let begin = |part: u64| (u128::from(all) * u128::from(part) / parts) as u64;
        begin(part)..begin(part + 1)
    }

    /// The data files, of `all`, that worker `number` of `workers` works on.
    #[must_use]
    pub fn data_of(&self, number: u64, workers: u64, all: u64) -> std::ops::Range<u64> {
        match self.shared {
            true => 0..self.part(workers.saturating_sub(1), all).end,
            false => self.part(number, all),
        }
    }
}

/// Which data files are worked on. The set is the same however many workers share the load: it
/// is a property of the fileset alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingSet {
    /// Share of the data files, in millionths, 1 to 1 000 000. They are spread evenly over the
    /// directories.
    pub millionths: u32,
    /// How one of them is chosen.
    pub choice: Choice,
    /// Where random transfers stay for a while.
    pub spots: Option<Spots>,
}

/// How a file of the working set is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Choice {
    /// Every file is as likely as any other.
    #[default]
    Uniform,
    /// Some of the choices prefer the first files: their number is geometric, with a mean of a
    /// tenth of the files to choose from. The others are uniform.
    Geometric {
        /// Percent of the choices that are geometric, above 0 and at most 100.
        percent: f64,
    },
    /// File number k (from 1) is chosen in proportion to k to the power of minus the exponent.
    Zipf {
        /// The exponent, above 0 and at most 10.
        exponent: f64,
    },
}

/// Random transfers that stay in a part of a file for a while, and then go on to the next part,
/// and after the last one to the next file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spots {
    /// Part of a file that a spot covers, above 0 and at most 100 percent.
    pub percent: f64,
    /// Fewest transfers in a spot, at least 1.
    pub accesses: u32,
    /// The number of transfers in a spot is `accesses` times a whole number drawn from 1 to this;
    /// at least 1.
    pub multiplier: u32,
    /// Percent of the random transfers that go to the spot, above 0 and at most 100; the others
    /// go anywhere.
    pub affinity: f64,
    /// Whether a position in the spot is geometric, near its beginning with a mean of a tenth of
    /// it, instead of uniform.
    pub geometric: bool,
}

/// How data is moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixFlags {
    /// Percent of the transfers that go past the page cache; they are rounded up to whole blocks
    /// of [`DIRECT_BLOCK`] bytes.
    pub direct_percent: f64,
    /// Percent of the writes that return when their data are on stable storage.
    pub osync_percent: f64,
    /// Percent of the writes that a flush of their file follows, as part of the operation.
    pub commit_percent: f64,
    /// Random transfers begin at a multiple of this many bytes; at least 1.
    pub align: u64,
    /// A sequential write that comes to the end of its file goes on at the beginning of what is
    /// there; otherwise the file is cut to nothing first.
    pub overwrite: bool,
    /// Data files stay open between operations; otherwise each operation opens its file anew, on
    /// the way.
    pub keep_open: bool,
}

/// Bytes that transfers past the page cache are multiples of, and begin at a multiple of.
pub const DIRECT_BLOCK: u64 = 4096;

impl Default for MixFlags {
    fn default() -> Self {
        Self {
            direct_percent: 0.0,
            osync_percent: 0.0,
            commit_percent: 0.0,
            align: 1,
            overwrite: true,
            keep_open: true,
        }
    }
}

impl Default for WorkingSet {
    fn default() -> Self {
        Self {
            millionths: MILLION,
            choice: Choice::Uniform,
            spots: None,
        }
    }
}

impl WorkingSet {
    /// How many of the first `files` files are in the working set.
    #[must_use]
    pub fn size(&self, files: u64) -> u64 {
        (u128::from(files) * u128::from(self.millionths) / u128::from(MILLION)) as u64
    }

    /// Number of the file that is the `n`-th of the working set, both from 0.
    ///
    /// The share is spread evenly (the distances between neighbours differ by one at most), so
    /// that any run of files holds its share of the working set.
    #[must_use]
    pub fn file(&self, n: u64) -> u64 {
        let whole = (u128::from(n) + 1) * u128::from(MILLION);
        (whole.div_ceil(u128::from(self.millionths.max(1))) - 1) as u64
    }
}

impl Mix {
    /// Filesets that the mix works on.
    pub fn filesets(&self) -> impl Iterator<Item = FilesetId> {
        let more = [self.files.turnover, self.files.empty];
        std::iter::once(self.files.data).chain(more.into_iter().flatten())
    }

    /// Whether it may change which files exist in a fileset, or how long they are.
    #[must_use]
    pub fn changes_tree(&self, id: FilesetId) -> bool {
        let pool_of = |pool| match pool {
            Pool::Data | Pool::Dirs => Some(self.files.data),
            Pool::Turnover => self.files.turnover,
            Pool::Empty => self.files.empty,
            Pool::None => None,
        };
        self.table
            .iter()
            .any(|row| row.op.changes_tree() && pool_of(row.op.pool()) == Some(id))
    }

    /// Rows that the workers record.
    pub fn rows(&self) -> impl Iterator<Item = OperationId> {
        let start = self.pacing.map(|p| p.start);
        let rows = self.table.iter().map(|r| r.row);
        rows.chain(std::iter::once(self.prepare)).chain(start)
    }

    /// Whether any operation is one of these.
    #[must_use]
    pub fn has(&self, ops: &[MixOp]) -> bool {
        self.table.iter().any(|row| ops.contains(&row.op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_working_set_is_spread_evenly(millionths in 1u32..=MILLION, files in 1u64..2_000_000) {
            let set = WorkingSet { millionths, ..WorkingSet::default() };
            let size = set.size(files);
            prop_assert!(size <= files);
            // Its members are among the files, the next one would not be.
            if size > 0 {
                prop_assert!(set.file(size - 1) < files);
            }
            prop_assert!(set.file(size) >= files);
            let step = u64::from(MILLION / millionths);
            for n in (0..size.saturating_sub(1)).step_by(1 + size as usize / 100) {
                let distance = set.file(n + 1) - set.file(n);
                prop_assert!(distance == step || distance == step + 1, "{distance} of {step}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_file_is_in_one_part(parts in 1u64..500, all in 0u64..100_000, shared: bool) {
            let files = MixFiles {
                data: FilesetId(0),
                turnover: None,
                empty: None,
                shared,
                parts,
            };
            let mut next = 0;
            for part in 0..parts {
                let range = files.part(part, all);
                prop_assert_eq!(range.start, next);
                let size = range.end - range.start;
                prop_assert!(size == all / parts || size == all / parts + 1);
                next = range.end;
            }
            prop_assert_eq!(next, all);
            // Half of the workers share half of the files, or have a part each of that half.
            let half = parts.div_ceil(2);
            let end = files.part(half - 1, all).end;
            let expected = if shared { 0..end } else { files.part(half - 1, all) };
            prop_assert_eq!(files.data_of(half - 1, half, all), expected);
        }
    }

    #[test]
    fn everything_is_the_files_themselves() {
        let set = WorkingSet::default();
        assert_eq!((set.size(7), set.file(0), set.file(6)), (7, 0, 6));
    }
}
