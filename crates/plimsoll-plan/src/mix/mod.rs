//! Operation mixes: workers that draw their operations from a weighted table, each at its own rate, as the load
//! generators of business metrics do.

mod metric;
mod op;
mod sizes;

pub use metric::{BusinessMetric, Criteria, FailedCriterion, SCALED, scaled};
pub use op::{MixOp, Pool};
pub(crate) use sizes::TOLERANCE;
pub use sizes::{SizeSlot, SizeTable};

use crate::ids::{FilesetId, OperationId};
use crate::units::seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Unit of [`WorkingSet::millionths`].
pub const MILLION: u32 = 1_000_000;

/// Program of a process of a business metric: its operations, their rate and files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mix {
    /// Operations and their percentages, which sum to 100.
    pub table: Vec<MixRow>,
    /// Row of the preparation of operations: opening and closing files, creating or removing a name
    /// that the operation needs. Not part of any operation.
    pub prepare: OperationId,
    /// Pacing of operations; `None`: each starts when the previous one has ended.
    pub pacing: Option<Pacing>,
    /// Time that a worker without pacing waits between the end of an operation and the start of the
    /// next one, in seconds.
    #[serde(
        with = "seconds",
        rename = "delay_s",
        default,
        skip_serializing_if = "Duration::is_zero"
    )]
    #[schemars(with = "f64", rename = "delay_s")]
    pub delay: Duration,
    /// Bytes of a read; whole files are read in pieces of the maximum size.
    pub reads: SizeTable,
    /// Bytes of a write; whole files are written in pieces of the maximum size.
    pub writes: SizeTable,
    /// The files.
    pub files: MixFiles,
    /// Files that are accessed, and how they are chosen.
    pub working_set: WorkingSet,
    /// Options of transfers.
    pub flags: MixFlags,
}

/// An operation of a [`Mix`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixRow {
    /// The operation.
    pub op: MixOp,
    /// Percentage of all operations, above 0.
    pub percent: f64,
    /// Row of the results.
    pub row: OperationId,
}

/// Open-loop pacing of a worker: the schedule does not depend on earlier operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Operations per second of each worker.
    pub rate: f64,
    /// Spacing of intended starts.
    pub arrivals: Arrivals,
    /// Row of start delays: its service time is the delay of a start after the intended start.
    pub start: OperationId,
}

/// Spacing of the intended starts of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Equal distances. Each worker begins at a random part of the first distance, so that workers
    /// are not synchronised.
    #[default]
    Constant,
    /// Random, exponential distances.
    Poisson,
}

/// The files of a [`Mix`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MixFiles {
    /// Files that exist throughout the run.
    pub data: FilesetId,
    /// Files that are created, replaced, renamed and removed, if an operation needs them.
    pub turnover: Option<FilesetId>,
    /// Empty files that are created and removed, if an operation needs them.
    pub empty: Option<FilesetId>,
    /// All workers use all data files; otherwise each uses only its part. Turnover files, empty files
    /// and spare directories are never shared.
    pub shared: bool,
    /// Number of equal parts that files and spare directories are divided into, at least the number
    /// of workers: a worker has the part of its number. The remaining parts are for higher loads on
    /// the same files.
    pub parts: u64,
}

impl MixFiles {
    /// Numbers of the files in part `part` of `all` files, from 0; the parts are disjoint.
    #[must_use]
    pub fn part(&self, part: u64, all: u64) -> std::ops::Range<u64> {
        debug_assert!(part < self.parts, "part {part} of {}", self.parts);
        let parts = u128::from(self.parts);
        let begin = |part: u64| (u128::from(all) * u128::from(part) / parts) as u64;
        begin(part)..begin(part + 1)
    }

    /// Numbers of the data files, of `all`, that worker `number` of `workers` uses.
    #[must_use]
    pub fn data_of(&self, number: u64, workers: u64, all: u64) -> std::ops::Range<u64> {
        match self.shared {
            true => 0..self.part(workers.saturating_sub(1), all).end,
            false => self.part(number, all),
        }
    }
}

/// The data files that are accessed. The set does not depend on the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingSet {
    /// Fraction of the data files in millionths, 1 to 1 000 000, spread evenly over the directories.
    pub millionths: u32,
    /// Distribution of the choice of a file.
    pub choice: Choice,
    /// Regions of files that random transfers stay in for some time.
    pub spots: Option<Spots>,
}

/// Distribution of the choice of a file of the working set.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Choice {
    /// Every file is as likely as any other.
    #[default]
    Uniform,
    /// Some of the choices prefer the first files: the number of the file is geometric, with a mean
    /// of a tenth of the files. The other choices are uniform.
    Geometric {
        /// Percentage of the choices that are geometric, above 0 and at most 100.
        percent: f64,
    },
    /// File number k (from 1) is chosen with a probability proportional to `k^-exponent`.
    Zipf {
        /// The exponent, above 0 and at most 10.
        exponent: f64,
    },
}

/// Random transfers that stay in a part of a file for some time, and then continue in the next part,
/// and after the last part in the next file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spots {
    /// Percentage of a file that a spot covers, above 0 and at most 100.
    pub percent: f64,
    /// Minimum number of transfers in a spot, at least 1.
    pub accesses: u32,
    /// The number of transfers in a spot is `accesses` times a whole number drawn from 1 to this;
    /// at least 1.
    pub multiplier: u32,
    /// Percentage of the random transfers that go to the spot, above 0 and at most 100; the others
    /// go to any position.
    pub affinity: f64,
    /// Whether positions in the spot are geometric, with a mean of a tenth of it, instead of uniform.
    pub geometric: bool,
}

/// Options of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixFlags {
    /// Percentage of the transfers that bypass the page cache; they are rounded up to whole blocks of
    /// [`DIRECT_BLOCK`] bytes.
    pub direct_percent: f64,
    /// Percentage of the writes that return when their data are on stable storage.
    pub osync_percent: f64,
    /// Percentage of the writes that include a flush of their file.
    pub commit_percent: f64,
    /// Random transfers begin at a multiple of this number of bytes; at least 1.
    pub align: u64,
    /// A sequential write at the end of its file continues at the beginning; otherwise the file is
    /// first truncated to length 0.
    pub overwrite: bool,
    /// Data files stay open between operations; otherwise each operation reopens its file, as part of
    /// its preparation.
    pub keep_open: bool,
}

/// Alignment in bytes of sizes and positions of transfers that bypass the page cache.
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
    /// Number of working set files among the first `files` files.
    #[must_use]
    pub fn size(&self, files: u64) -> u64 {
        (u128::from(files) * u128::from(self.millionths) / u128::from(MILLION)) as u64
    }

    /// Number of the `n`-th file of the working set, both from 0.
    ///
    /// The working set is spread evenly (distances between neighbours differ by at most one), so any range of files
    /// contains its share.
    #[must_use]
    pub fn file(&self, n: u64) -> u64 {
        debug_assert!(self.millionths > 0, "an empty working set");
        let whole = (u128::from(n) + 1) * u128::from(MILLION);
        (whole.div_ceil(u128::from(self.millionths)) - 1) as u64
    }
}

impl Mix {
    /// Filesets of the mix: data files, turnover files and empty files.
    pub fn filesets(&self) -> impl Iterator<Item = FilesetId> {
        let more = [self.files.turnover, self.files.empty];
        std::iter::once(self.files.data).chain(more.into_iter().flatten())
    }

    /// Whether an operation of the mix may create, remove or resize files of a fileset.
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

    /// Rows that the workers record: operations, preparation, and starts if the mix is paced.
    pub fn rows(&self) -> impl Iterator<Item = OperationId> {
        let start = self.pacing.map(|p| p.start);
        let rows = self.table.iter().map(|r| r.row);
        rows.chain(std::iter::once(self.prepare)).chain(start)
    }

    /// Whether the mix contains any of these operations.
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
            // All files of the working set are among the first `files`, and the next file of the set is not.
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
            // Half of the workers share half of the files, or each uses its own part of that half.
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
