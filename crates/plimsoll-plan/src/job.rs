//! Jobs: programs of transfers whose files, order, sizes and number follow from a few parameters (fio).

use crate::ids::{FilesetId, OperationId};
use crate::mix::Pacing;
use crate::units::seconds;
use crate::variable::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A job: reads and writes of files at offsets that one generator gives out, or one operation on each file.
///
/// Every process of the group has a generator of its own. The threads of a process take the operations of the generator
/// in turn, so that the number of threads is the number of operations in flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Job {
    /// Fileset with the files of the job.
    pub fileset: FilesetId,
    /// Number in the fileset of the first file of the first process.
    pub first_file: u32,
    /// Number of files of each process, at least 1; the files have consecutive numbers.
    pub files: u32,
    /// Whether all processes work on the same files; otherwise the files of each process follow the files of the
    /// process before.
    pub shares_files: bool,
    /// Maximum number of files that a thread keeps open, at least 1.
    pub open_files: u32,
    /// Row of the results for opens and closes, which are preparations of operations.
    pub prepare: OperationId,
    /// Time from the start of the workers until the first operation of the job, in seconds.
    #[serde(with = "seconds", rename = "start_delay_s")]
    #[schemars(with = "f64", rename = "start_delay_s")]
    pub start_delay: Duration,
    /// Operations of the job.
    pub work: JobWork,
}

/// Operations of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobWork {
    /// Reads and writes at offsets of the files.
    Transfers(Box<Transfers>),
    /// One operation on the name of each file, in the order of the files.
    Names {
        /// Operation on each name.
        op: NameOp,
        /// Row of the results that counts and times the operation.
        row: OperationId,
        /// Number of passes over the files; null for passes until the run ends.
        passes: Option<u64>,
    },
}

/// Operation of a job on the name of a file, or of a leaf directory in place of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameOp {
    /// Creation of the missing file; the close of the file is not timed.
    Create,
    /// Stat of the file by its path.
    Stat,
    /// Removal of the file.
    Delete,
    /// Creation of the missing leaf directory.
    MakeDir,
    /// Stat of the leaf directory by its path.
    StatDir,
    /// Removal of the empty leaf directory.
    RemoveDir,
}

impl NameOp {
    /// Whether the operation is on a leaf directory.
    #[must_use]
    pub fn is_on_dirs(self) -> bool {
        matches!(self, Self::MakeDir | Self::StatDir | Self::RemoveDir)
    }

    /// Whether the operation creates or removes an entry.
    #[must_use]
    pub fn changes_tree(self) -> bool {
        !matches!(self, Self::Stat | Self::StatDir)
    }
}

/// Reads and writes of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transfers {
    /// Reads of the job; null for a job that only writes.
    pub reads: Option<Direction>,
    /// Writes of the job; null for a job that only reads.
    pub writes: Option<Direction>,
    /// Percentage of reads among the transfers of a job that reads and writes, 0 to 100.
    pub read_percent: u8,
    /// Method of access to the files.
    pub access: JobAccess,
    /// Order of the offsets in a file.
    pub order: OffsetOrder,
    /// Number of consecutive transfers after each offset of the order, at least 1; the first transfer is at the offset,
    /// and each further transfer follows the transfer before.
    pub run: u32,
    /// Whether all transfers of a run are at the offset of the first.
    pub repeats_offset: bool,
    /// First byte of each file that the first process accesses.
    pub offset: u64,
    /// Number of bytes by which the first byte of a process is beyond the first byte of the process before.
    pub offset_increment: u64,
    /// Number of bytes that a process accesses in each file, from the first byte on; 0 for all bytes up to the planned
    /// end of the file.
    pub span: u64,
    /// Choice of the file of a transfer.
    pub next_file: FileOrder,
    /// Number of consecutive transfers of a file before the next choice of a file, at least 1.
    pub transfers_per_file: u32,
    /// Number of bytes after which each process ends; null without a limit.
    pub bytes: Option<u64>,
    /// Number of transfers after which each process ends; null without a limit.
    pub transfers: Option<u64>,
    /// Flushes of the written files; null if nothing is flushed.
    pub flushes: Option<Flushes>,
    /// Pauses of a process; null without pauses.
    pub pauses: Option<Pauses>,
    /// Schedule of each thread; null if a transfer begins as soon as the transfer before has ended.
    pub pacing: Option<Pacing>,
}

/// Reads or writes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Direction {
    /// Row of the results that counts and times the transfers.
    pub row: OperationId,
    /// Size of a transfer in bytes, drawn for each transfer if the size is a random variable.
    pub size: Value,
    /// Multiple of bytes at which offsets lie, at least 1; no transfer is smaller.
    pub align: u64,
}

/// Method of access of a job to its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JobAccess {
    /// Whether files are opened with direct I/O (`O_DIRECT`).
    pub direct: bool,
    /// Whether files are opened with synchronous writes (`O_DSYNC`).
    pub dsync: bool,
    /// Whether each transfer maps its bytes into memory, copies the bytes and unmaps them.
    pub mapped: bool,
    /// Whether the kernel is advised, when a file is opened, not to read ahead of reads.
    pub no_read_ahead: bool,
    /// Whether transfers of local files are submitted through io_uring if the target's URL has no option `io`.
    pub queued: bool,
}

/// Order of the offsets in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OffsetOrder {
    /// Offsets in ascending order, for reads and for writes separately; a pass ends at the end of the file.
    Sequential {
        /// Number of bytes between the end of a transfer and the begin of the next.
        skip: u64,
    },
    /// Offsets drawn at random.
    Random {
        /// Distribution of the drawn offsets.
        spread: Spread,
        /// Percentage of offsets that are drawn, 0 to 100; all other transfers follow the transfer before.
        percent: u8,
    },
}

/// Distribution of random offsets of a job over the blocks of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Every block once in each pass over the file, in an order that is a random permutation of the blocks. Transfers
    /// of drawn sizes end before a block that was visited already.
    Once,
    /// Every block with the same probability, whether or not the block was drawn before.
    Uniform,
    /// Zipf distribution: a block's probability is proportional to its rank to the power of −`theta`; the ranks are
    /// scattered over the file.
    Zipf {
        /// Exponent of the distribution, above 0.
        theta: f64,
    },
    /// Pareto distribution: a fraction `h` of the blocks receives the fraction 1 − `h` of the transfers; these blocks
    /// are scattered over the file.
    Pareto {
        /// Fraction of the blocks, above 0 and below 1.
        h: f64,
    },
    /// Normal distribution around the middle of the file; offsets outside of the file are drawn again.
    Normal {
        /// Standard deviation as a percentage of the size of the file, above 0 and at most 100.
        deviation_percent: f64,
    },
    /// Zones of the file, in order, each with its percentage of the transfers.
    Zones {
        /// Zones from the begin to the end of the file; both percentages sum to 100.
        zones: Vec<Zone>,
    },
}

/// Zone of a file, a part of the file with a percentage of the transfers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Zone {
    /// Percentage of the transfers that lie in the zone.
    pub transfers_percent: f64,
    /// Percentage of the file that the zone takes.
    pub size_percent: f64,
}

/// Choice of the file of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileOrder {
    /// Files in turn.
    RoundRobin,
    /// The next file after a whole pass over a file.
    Sequential,
    /// A random file.
    Random,
}

/// Flushes (fsync) of a job's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flushes {
    /// Row of the results that counts and times the flushes.
    pub row: OperationId,
    /// Number of writes of a process after which the file of the last write is flushed; null without such flushes.
    pub after_writes: Option<u64>,
    /// Whether only the data are flushed, and not all attributes of the file (`fdatasync`).
    pub data_only: bool,
    /// Whether every file is flushed after the last transfer of the process.
    pub at_end: bool,
}

/// Pauses of a process between transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pauses {
    /// Length of a pause in nanoseconds.
    pub nanoseconds: u64,
    /// Number of transfers between two pauses, at least 1.
    pub after_transfers: u64,
}

impl Job {
    /// Whether the files of the job are leaf directories.
    #[must_use]
    pub fn is_on_dirs(&self) -> bool {
        matches!(&self.work, JobWork::Names { op, .. } if op.is_on_dirs())
    }

    /// Number in the fileset of the first file of process `process`.
    #[must_use]
    pub fn first_file_of(&self, process: u32) -> u32 {
        let before = if self.shares_files { 0 } else { process };
        self.first_file + before * self.files
    }

    /// Calls `visit` with the results' rows that the job can record.
    pub fn for_each_row(&self, visit: &mut dyn FnMut(OperationId)) {
        visit(self.prepare);
        match &self.work {
            JobWork::Names { row, .. } => visit(*row),
            JobWork::Transfers(t) => {
                let directions = t.reads.iter().chain(&t.writes).map(|d| d.row);
                directions.for_each(&mut *visit);
                t.flushes.iter().for_each(|f| visit(f.row));
                t.pacing.iter().for_each(|p| visit(p.start));
            }
        }
    }

    /// Transfers of the job; `None` for a job of operations on names.
    #[must_use]
    pub fn transfers(&self) -> Option<&Transfers> {
        match &self.work {
            JobWork::Transfers(transfers) => Some(transfers),
            JobWork::Names { .. } => None,
        }
    }

    /// Whether the job creates, removes or writes files, so that a later run must not use the files as the job leaves
    /// them.
    #[must_use]
    pub fn changes_tree(&self) -> bool {
        match &self.work {
            JobWork::Transfers(transfers) => transfers.writes.is_some(),
            JobWork::Names { op, .. } => op.changes_tree(),
        }
    }

    /// Checks the numbers of the job for `processes` processes on a fileset of `entries` files, or leaf directories if
    /// the job is on leaf directories.
    ///
    /// # Errors
    /// One sentence that names the first violation.
    pub fn check(&self, processes: u32, entries: u64) -> Result<(), String> {
        let parts = if self.shares_files { 1 } else { processes };
        let needed = u64::from(self.first_file) + u64::from(self.files) * u64::from(parts);
        if self.files == 0 || self.open_files == 0 {
            return Err("a job needs at least one file, and one open file".into());
        }
        if needed > entries {
            return Err(format!(
                "the job uses {needed} files of a fileset of {entries}"
            ));
        }
        self.transfers().map_or(Ok(()), Transfers::check)
    }
}

impl Transfers {
    /// Sequential transfers of whole files in turn, half of them reads if the job reads and writes, without an end.
    #[must_use]
    pub fn new(reads: Option<Direction>, writes: Option<Direction>) -> Self {
        Self {
            reads,
            writes,
            read_percent: 50,
            access: JobAccess::default(),
            order: OffsetOrder::Sequential { skip: 0 },
            run: 1,
            repeats_offset: false,
            offset: 0,
            offset_increment: 0,
            span: 0,
            next_file: FileOrder::RoundRobin,
            transfers_per_file: 1,
            bytes: None,
            transfers: None,
            flushes: None,
            pauses: None,
            pacing: None,
        }
    }

    /// Directions of the transfers, reads before writes.
    pub fn directions(&self) -> impl Iterator<Item = &Direction> {
        self.reads.iter().chain(&self.writes)
    }

    fn check(&self) -> Result<(), String> {
        if self.reads.is_none() && self.writes.is_none() {
            return Err("a job of transfers reads or writes".into());
        }
        if self.directions().any(|d| d.align == 0) {
            return Err("offsets must be multiples of at least 1 byte".into());
        }
        if self.read_percent > 100 {
            let percent = self.read_percent;
            return Err(format!(
                "the percentage of reads must be 0 to 100, is {percent}"
            ));
        }
        if self.run == 0 || self.transfers_per_file == 0 {
            return Err("a run of transfers has at least one transfer".into());
        }
        if self.pauses.is_some_and(|p| p.after_transfers == 0) {
            return Err("a pause needs at least one transfer before it".into());
        }
        if let Some(pacing) = self.pacing
            && !(pacing.rate.is_finite() && pacing.rate > 0.0)
        {
            return Err(format!("a rate must be above 0, is {}", pacing.rate));
        }
        match &self.order {
            OffsetOrder::Sequential { .. } => Ok(()),
            OffsetOrder::Random { percent, .. } if *percent > 100 => Err(format!(
                "the percentage of random offsets must be 0 to 100, is {percent}"
            )),
            OffsetOrder::Random {
                spread: Spread::Once,
                ..
            } => self.check_blocks(),
            OffsetOrder::Random { spread, .. } => spread.check(),
        }
    }

    /// Checks that reads and writes have the same blocks, and that constant sizes are of one block: every block is
    /// visited once.
    fn check_blocks(&self) -> Result<(), String> {
        let mut directions = self.directions();
        let first = directions.next().map(|d| d.align);
        let is_block = |d: &Direction| d.size.constant().is_none_or(|size| size == d.align);
        if self.directions().all(is_block) && directions.all(|d| Some(d.align) == first) {
            return Ok(());
        }
        Err(
            "each block can be visited once only if reads and writes have the same blocks, and transfers of one \
             size have the size of a block"
                .into(),
        )
    }
}

impl Spread {
    /// Checks the parameters of the distribution.
    ///
    /// # Errors
    /// One sentence that names the first violation.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Once | Self::Uniform => Ok(()),
            Self::Zipf { theta } if theta.is_finite() && *theta > 0.0 => Ok(()),
            Self::Zipf { theta } => {
                Err(format!("the exponent of zipf must be above 0, is {theta}"))
            }
            Self::Pareto { h } if *h > 0.0 && *h < 1.0 => Ok(()),
            Self::Pareto { h } => Err(format!(
                "the fraction of a Pareto distribution must be above 0 and below 1, is {h}"
            )),
            Self::Normal { deviation_percent } => {
                // Offsets outside of the file are drawn again, which a larger deviation would make endless.
                if *deviation_percent > 0.0 && *deviation_percent <= 100.0 {
                    return Ok(());
                }
                Err(format!(
                    "the deviation of a normal distribution must be above 0 and at most 100 %, is {deviation_percent}"
                ))
            }
            Self::Zones { zones } => {
                let sum = |of: fn(&Zone) -> f64| zones.iter().map(of).sum::<f64>();
                let sums = [sum(|z| z.transfers_percent), sum(|z| z.size_percent)];
                let positive = |z: &Zone| z.transfers_percent >= 0.0 && z.size_percent > 0.0;
                if zones.iter().all(positive) && sums.iter().all(|s| (s - 100.0).abs() < 1e-6) {
                    return Ok(());
                }
                Err(format!(
                    "the percentages of zones must sum to 100, of transfers {} and of sizes {}",
                    sums[0], sums[1]
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers() -> Transfers {
        let direction = |row| Direction {
            row: OperationId(row),
            size: Value::Const(4096),
            align: 4096,
        };
        Transfers {
            order: OffsetOrder::Random {
                spread: Spread::Once,
                percent: 100,
            },
            ..Transfers::new(Some(direction(0)), Some(direction(1)))
        }
    }

    fn job(work: JobWork) -> Job {
        Job {
            fileset: FilesetId(0),
            first_file: 3,
            files: 2,
            shares_files: false,
            open_files: 2,
            prepare: OperationId(2),
            start_delay: Duration::ZERO,
            work,
        }
    }

    #[test]
    fn each_process_has_the_files_after_those_of_the_process_before() {
        let own = job(JobWork::Transfers(Box::new(transfers())));
        assert_eq!([0, 1, 5].map(|p| own.first_file_of(p)), [3, 5, 13]);
        let shared = Job {
            shares_files: true,
            ..own.clone()
        };
        assert_eq!([0, 5].map(|p| shared.first_file_of(p)), [3, 3]);
        // Five processes need the files 3 to 12.
        assert_eq!(own.check(5, 13), Ok(()));
        assert!(
            own.check(6, 13)
                .is_err_and(|e| e.contains("uses 15 files of a fileset of 13"))
        );
        assert_eq!(shared.check(6, 5), Ok(()));
    }

    #[test]
    fn numbers_without_a_meaning_are_refused() {
        type Change<'a> = &'a dyn Fn(&mut Transfers);
        let refused = |change: Change<'_>| {
            let mut changed = transfers();
            change(&mut changed);
            changed.check().unwrap_err()
        };
        let once = "each block can be visited once only if reads and writes";
        let spread = |spread: Spread| OffsetOrder::Random {
            spread,
            percent: 100,
        };
        let zone = |transfers_percent| Zone {
            transfers_percent,
            size_percent: 50.0,
        };
        let cases: [(Change<'_>, &str); 10] = [
            (&|t| (t.reads, t.writes) = (None, None), "reads or writes"),
            (&|t| t.read_percent = 101, "0 to 100, is 101"),
            (&|t| t.run = 0, "at least one transfer"),
            (&|t| t.reads.as_mut().unwrap().align = 0, "at least 1 byte"),
            (
                &|t| t.reads.as_mut().unwrap().size = Value::Const(8192),
                once,
            ),
            (
                &|t| t.order = spread(Spread::Zipf { theta: 0.0 }),
                "above 0, is 0",
            ),
            (
                &|t| t.order = spread(Spread::Pareto { h: 1.0 }),
                "below 1, is 1",
            ),
            (
                &|t| {
                    t.order = spread(Spread::Normal {
                        deviation_percent: f64::NAN,
                    })
                },
                "at most 100 %, is NaN",
            ),
            (
                &|t| {
                    t.order = spread(Spread::Normal {
                        deviation_percent: 101.0,
                    })
                },
                "at most 100 %, is 101",
            ),
            (
                &|t| {
                    t.order = spread(Spread::Zones {
                        zones: vec![zone(50.0), zone(40.0)],
                    })
                },
                "transfers 90 and of sizes 100",
            ),
        ];
        assert_eq!(transfers().check(), Ok(()));
        for (change, expected) in cases {
            let message = refused(change);
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn jobs_that_write_change_their_files() {
        let of = |work| job(work).changes_tree();
        let reads = Transfers {
            writes: None,
            ..transfers()
        };
        assert!(of(JobWork::Transfers(Box::new(transfers()))));
        assert!(!of(JobWork::Transfers(Box::new(reads))));
        let names = |op| JobWork::Names {
            op,
            row: OperationId(0),
            passes: None,
        };
        assert!(of(names(NameOp::Create)) && of(names(NameOp::Delete)));
        assert!(of(names(NameOp::MakeDir)) && of(names(NameOp::RemoveDir)));
        assert!(!of(names(NameOp::Stat)) && !of(names(NameOp::StatDir)));
    }
}
