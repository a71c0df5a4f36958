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

/// Operation mix: the operations, the rate and the files of one kind of process of a business metric (SPEC SFS
/// netmist).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mix {
    /// Operations of the mix with their percentages, which sum to 100 within 0.01.
    pub table: Vec<MixRow>,
    /// Row of the results for the preparation of operations: opening and closing files, and creating or removing a name
    /// that an operation needs. The preparation is not part of any operation.
    pub prepare: OperationId,
    /// Schedule of each worker's operations; null if each operation starts when the previous operation has ended.
    pub pacing: Option<Pacing>,
    /// Waiting time of a worker without a schedule between the end of an operation and the start of the next operation,
    /// in seconds.
    #[serde(
        with = "seconds",
        rename = "delay_s",
        default,
        skip_serializing_if = "Duration::is_zero"
    )]
    #[schemars(with = "f64", rename = "delay_s")]
    pub delay: Duration,
    /// Sizes in bytes of the reads of data files; whole files are read in calls of the maximum size.
    pub reads: SizeTable,
    /// Sizes in bytes of the writes and of the locked ranges of data files; whole files are written in calls of the
    /// maximum size.
    pub writes: SizeTable,
    /// Filesets on which the operations of the mix work, and their division among workers.
    pub files: MixFiles,
    /// Working set: the data files that operations access, and the distribution of the choice of a file.
    pub working_set: WorkingSet,
    /// Options of the reads and writes of the mix, such as direct I/O.
    pub flags: MixFlags,
}

/// An operation of a mix, with its percentage and its row of the results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixRow {
    /// Operation that a worker executes when the row of the table is drawn.
    pub op: MixOp,
    /// Percentage of the operation among all operations of the mix, above 0 and at most 100.
    pub percent: f64,
    /// Row of the results that counts and times the operation.
    pub row: OperationId,
}

/// Open-loop pacing of a worker: the schedule does not depend on earlier operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pacing {
    /// Rate at which the schedule starts operations of each worker, in operations per second.
    pub rate: f64,
    /// Spacing of the intended start times of a worker: constant or random.
    pub arrivals: Arrivals,
    /// Row of the results for start delays: each service time in the row is the time from an operation's intended start
    /// to its start.
    pub start: OperationId,
}

/// Spacing of the intended start times of a worker, which do not depend on earlier operations (open loop).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Constant arrivals: equal distances between intended start times. The first intended start of each worker is at a
    /// random time within one distance, so that workers are not synchronised.
    #[default]
    Constant,
    /// Poisson arrivals: exponentially distributed distances between intended start times.
    Poisson,
}

/// Filesets of an operation mix, and their division among workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MixFiles {
    /// Fileset of the data files, which operations read and write, and which exist throughout the run.
    pub data: FilesetId,
    /// Fileset of the turnover files, which operations create, replace, rename and remove; null if no operation needs
    /// turnover files.
    pub turnover: Option<FilesetId>,
    /// Fileset of the empty files, which operations create and remove; null if no operation needs empty files.
    pub empty: Option<FilesetId>,
    /// Whether all workers use all data files; otherwise each worker uses only its own part of the data files. Turnover
    /// files, empty files and spare directories are never shared.
    pub shared: bool,
    /// Number of equal parts into which files and spare directories are divided, at least the number of workers. Each
    /// worker has the part with the worker's number; all other parts are for higher loads on the same files.
    pub parts: u64,
}

impl MixFiles {
    /// Numbers of the files in part `part`, from 0, of `all` files; the parts are disjoint.
    #[must_use]
    pub fn part(&self, part: u64, all: u64) -> std::ops::Range<u64> {
        debug_assert!(part < self.parts, "part {part} of {}", self.parts);
        let parts = u128::from(self.parts);
        let begin = |part: u64| (u128::from(all) * u128::from(part) / parts) as u64;
        begin(part)..begin(part + 1)
    }

    /// Numbers of the data files, among `all` files, that worker `number` of `workers` workers uses.
    #[must_use]
    pub fn data_of(&self, number: u64, workers: u64, all: u64) -> std::ops::Range<u64> {
        match self.shared {
            true => 0..self.part(workers.saturating_sub(1), all).end,
            false => self.part(number, all),
        }
    }
}

/// Working set: the data files that operations access. The working set does not depend on the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkingSet {
    /// Size of the working set in millionths of the data files, 1 to 1 000 000; the files of the working set are spread
    /// evenly over the data files.
    pub millionths: u32,
    /// Distribution from which the file of an operation is drawn among the files of the working set.
    pub choice: Choice,
    /// Regions of files (spots) in which the random transfers of a worker stay for some time; null for random transfers
    /// to whole files.
    pub spots: Option<Spots>,
}

/// Distribution from which the file of an operation is drawn among the files of the working set.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Choice {
    /// Uniform distribution: every file is equally likely.
    #[default]
    Uniform,
    /// Geometric distribution of `percent` % of the choices: the number of the file has a mean of a tenth of the number
    /// of files, so that the first files are preferred. Choices that are not geometric are uniform.
    Geometric {
        /// Percentage of the choices that are geometric, above 0 and at most 100; all other choices are uniform.
        percent: f64,
    },
    /// Zipf distribution: file number k, from 1, is chosen with a probability proportional to `k^-exponent`.
    Zipf {
        /// Exponent of the Zipf distribution, above 0 and at most 10.
        exponent: f64,
    },
}

/// Regions of files (spots) in which the random transfers of a worker stay for some time. After the transfers in a
/// spot, the worker continues in the next spot of the file, and after the file's last spot in the next file of the
/// working set.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spots {
    /// Size of a spot as a percentage of the size of the file, above 0 and at most 100.
    pub percent: f64,
    /// Minimum number of transfers in a spot before a worker continues in the next spot, at least 1.
    pub accesses: u32,
    /// Maximum of a random factor, at least 1: the number of transfers in a spot is `accesses` times an integer drawn
    /// from 1 to `multiplier`.
    pub multiplier: u32,
    /// Percentage of a worker's random transfers that go to the worker's spot, above 0 and at most 100; all other
    /// random transfers go to any position of a file of the working set.
    pub affinity: f64,
    /// Whether positions of transfers in a spot are geometrically distributed, with a mean of a tenth of the spot,
    /// instead of uniformly.
    pub geometric: bool,
}

/// Options of the reads and writes of an operation mix.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MixFlags {
    /// Percentage of the reads and writes with direct I/O (`O_DIRECT`), 0 to 100. Transfers with direct I/O are rounded
    /// up to whole blocks of 4096 bytes.
    pub direct_percent: f64,
    /// Percentage of the writes that return when the data are on stable storage, 0 to 100.
    pub osync_percent: f64,
    /// Percentage of the writes that a flush of the file (fsync) follows, timed as a part of the write, 0 to 100.
    pub commit_percent: f64,
    /// Alignment of random transfers in bytes, at least 1: a random transfer begins at a multiple of the alignment.
    pub align: u64,
    /// Whether sequential writes overwrite a file in place; otherwise each sequential write at the start of a file is
    /// preceded by a truncation of the file to length 0.
    pub overwrite: bool,
    /// Whether data files stay open between operations; otherwise each operation reopens its file as part of the
    /// preparation.
    pub keep_open: bool,
    /// Advice to the kernel about the data files that preparation opens; null without advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fadvise: Option<Fadvise>,
}

/// Advice to the kernel about data files, when an operation's preparation opens or closes a file: posix_fadvise(2).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fadvise {
    /// Percentage of the opened files with the advice `POSIX_FADV_SEQUENTIAL` after the open.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub sequential: f64,
    /// Percentage of the closed files with the advice `POSIX_FADV_DONTNEED` before the close.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub dontneed: f64,
}

/// Alignment in bytes of sizes and positions of transfers with direct I/O.
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
            fadvise: None,
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
    /// Number of files of the working set among the first `files` data files.
    #[must_use]
    pub fn size(&self, files: u64) -> u64 {
        (u128::from(files) * u128::from(self.millionths) / u128::from(MILLION)) as u64
    }

    /// Number, among all data files, of the `n`-th file of the working set; both numbers count from 0.
    ///
    /// The working set is spread evenly (distances between neighbours differ by at most one), so any range of data
    /// files contains its share of the working set.
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

    /// Whether an operation of the mix may set the length of an existing file of the fileset `id`, which only
    /// operations on data files do.
    #[must_use]
    pub fn sets_lengths(&self, id: FilesetId) -> bool {
        let sets = |op: MixOp| op.sets_length() || op == MixOp::Write && !self.flags.overwrite;
        self.files.data == id && self.table.iter().any(|row| sets(row.op))
    }

    /// Rows of the results that the workers of the mix record: operations, preparation, and start delays if the mix is
    /// paced.
    pub fn rows(&self) -> impl Iterator<Item = OperationId> {
        let start = self.pacing.map(|p| p.start);
        let rows = self.table.iter().map(|r| r.row);
        rows.chain(std::iter::once(self.prepare)).chain(start)
    }

    /// Whether the mix contains any of the operations `ops`.
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
            // The last of `size` files of the working set is among the first `files` data files, and the next file of
            // the working set is not.
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
            // With half of the workers, the last worker uses all files of the used half if files are shared, and
            // otherwise only the last part of the half.
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
