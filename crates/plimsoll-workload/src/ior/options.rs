//! Options of IOR: arguments with defaults filled in and contradictions refused.

use super::Arguments;
use crate::md::{Place, place_of};
use plimsoll_plan::{RankOrder, RankShift, Stonewall, TransferOrder};

/// The options of `plimsoll ior`, complete and without contradictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Size of a block in bytes.
    pub block_size: u64,
    /// Size of a transfer in bytes, a divisor of the block size.
    pub transfer_size: u64,
    /// Number of segments, which is the number of blocks of each task.
    pub segments: u64,
    /// Whether each task has a file of its own.
    pub file_per_proc: bool,
    /// Whether a repetition has a write phase.
    pub writes: bool,
    /// Whether a repetition has a read phase.
    pub reads: bool,
    /// Order of the transfers in a file.
    pub order: TransferOrder,
    /// Shift from a reader to the writer of the data.
    pub owner: RankShift,
    /// Random choice of the writer whose data is read.
    pub reorder: Option<Reorder>,
    /// Number of repetitions, at least 1.
    pub repetitions: u32,
    /// Time limit of each phase; `None` without a limit.
    pub stonewall: Option<Stonewall>,
    /// Maximum number of transfers of each task in a phase.
    pub most_transfers: Option<u64>,
    /// Work directory, and the directory of the files.
    pub place: Place,
    /// The target's URL.
    pub target: String,
    /// Seed of the contents of the files.
    pub seed: u64,
    /// The parsed command line.
    pub arguments: Arguments,
}

/// Random choice of the writers whose data is read: IOR's `-Z`, and the seed of `-X`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    shuffles: bool,
    seed: i64,
}

impl Reorder {
    /// Choice of the writers in a repetition, numbered from 0. A negative seed changes with each repetition.
    #[must_use]
    pub fn in_repetition(self, repetition: u32) -> RankOrder {
        let seed = match self.seed < 0 {
            true => self.seed.unsigned_abs() + u64::from(repetition),
            false => self.seed.unsigned_abs(),
        };
        match self.shuffles {
            true => RankOrder::Shuffled { seed },
            false => RankOrder::Random { seed },
        }
    }
}

/// The directives of `-O`.
#[derive(Default)]
struct Directives {
    wear_out: bool,
    iterations: Option<u64>,
}

impl Options {
    /// Checks arguments and fills in defaults.
    ///
    /// # Errors
    /// One sentence that states the unsupported option or the contradiction.
    pub fn new(args: &Arguments) -> Result<Self, String> {
        if let Some(why) = args.refused.reason() {
            return Err(why);
        }
        if args.verbose > 1 {
            return Err("-v is supported once: it prints a line for each task".into());
        }
        let directives = directives(&args.directives)?;
        let (block_size, transfer_size) = sizes(args)?;
        check_order(args, block_size == transfer_size)?;
        let stonewall = args.deadline.filter(|time| !time.is_zero());
        if directives.wear_out && stonewall.is_none() {
            return Err(
                "stoneWallingWearOut takes effect after the stonewall; set one with -D SECONDS"
                    .into(),
            );
        }
        let repetitions = args.repetitions.unwrap_or(1);
        if !(1..=MAX_REPETITIONS).contains(&repetitions) {
            return Err(format!(
                "-i is {repetitions}: expected 1 to {MAX_REPETITIONS}"
            ));
        }
        let seed = args.signature.unwrap_or(1);
        let offset_seed = args.random_offset_seed.unwrap_or(seed);
        let moves = args.reorder_tasks || args.reorder_random > 0;
        let constant = if moves {
            args.task_offset.unwrap_or(1)
        } else {
            0
        };
        let test_file = args.test_file.clone();
        let is_given = args.write || args.read;
        Ok(Self {
            block_size,
            transfer_size,
            segments: args.segment_count.unwrap_or(1),
            file_per_proc: args.file_per_proc,
            writes: args.write || !is_given,
            reads: args.read || !is_given,
            order: match args.random_offset {
                0 => TransferOrder::Sequential,
                1 => TransferOrder::Shuffled { seed: offset_seed },
                _ => TransferOrder::Random { seed: offset_seed },
            },
            owner: RankShift {
                constant: constant.into(),
                per_set: 0,
            },
            reorder: (args.reorder_random > 0).then(|| Reorder {
                shuffles: args.reorder_random > 1,
                seed: args.reorder_seed.unwrap_or(0),
            }),
            repetitions,
            stonewall: stonewall.map(|after| Stonewall {
                after,
                wear_out: directives.wear_out,
            }),
            most_transfers: directives.iterations,
            place: place_of(
                args.dir.as_deref(),
                &test_file.unwrap_or_else(|| "testFile".into()),
            )?,
            target: args.api.target()?,
            seed,
            arguments: args.clone(),
        })
    }

    /// Number of transfers of each task in a phase without a stonewall, at most 2⁶³.
    #[must_use]
    pub fn transfers(&self) -> u64 {
        let all = (self.block_size / self.transfer_size).saturating_mul(self.segments);
        let all = all.min(1 << 63);
        self.most_transfers.map_or(all, |most| most.min(all))
    }
}

/// Maximum number of repetitions; each phase of a repetition has results of its own.
const MAX_REPETITIONS: u32 = 1000;

/// Sizes of a block and of a transfer in bytes.
fn sizes(args: &Arguments) -> Result<(u64, u64), String> {
    let (block, transfer) = (
        args.block_size.unwrap_or(1 << 20),
        args.transfer_size.unwrap_or(256 << 10),
    );
    if transfer == 0 {
        return Err("-t 0: a transfer must have at least 1 byte".into());
    }
    if block < transfer || block % transfer != 0 {
        return Err(format!(
            "-b {block} is not a multiple of the transfer size -t {transfer}"
        ));
    }
    if args.segment_count == Some(0) {
        return Err("-s 0 leaves nothing to do: expected at least 1 segment".into());
    }
    Ok((block, transfer))
}

/// Refuses contradictions between the options for the order of transfers and tasks, as IOR does.
fn check_order(args: &Arguments, one_transfer: bool) -> Result<(), String> {
    let reorders = args.reorder_tasks || args.reorder_random > 0;
    let refused = [
        (
            args.reorder_tasks && args.reorder_random > 0,
            "-C and -Z both choose the data to read: choose one",
        ),
        (
            args.random_offset > 0 && reorders && !args.file_per_proc,
            "-z in a shared file chooses transfers of all tasks, so -C and -Z have no effect: leave them out, or \
             use -F",
        ),
        (
            args.random_offset == 1 && one_transfer,
            "-z shuffles the transfers of a block, which has only one: choose -b above -t, or give -z twice",
        ),
        (
            args.task_offset.is_some() && !reorders,
            "-Q has an effect only with -C or -Z",
        ),
        (
            args.reorder_seed.is_some() && args.reorder_random == 0,
            "-X has an effect only with -Z",
        ),
        (
            args.random_offset_seed.is_some() && args.random_offset == 0,
            "--random-offset-seed has an effect only with -z",
        ),
    ];
    match refused.into_iter().find(|(is, _)| *is) {
        Some((_, why)) => Err(why.into()),
        None => Ok(()),
    }
}

fn directives(given: &[String]) -> Result<Directives, String> {
    let mut all = Directives::default();
    for directive in given.iter().flat_map(|text| text.split(',')) {
        let number = |text: &str| {
            let number = text.parse::<u64>();
            number.map_err(|_| format!("-O {directive}: expected a whole number"))
        };
        match directive.split_once('=') {
            Some(("stoneWallingWearOut", value)) => all.wear_out = number(value)? != 0,
            Some(("stoneWallingWearOutIterations", value)) => {
                all.iterations = Some(number(value)?).filter(|n| *n > 0);
            }
            Some((name, _)) => {
                return Err(format!(
                    "-O {name} is not supported: expected stoneWallingWearOut or \
                     stoneWallingWearOutIterations"
                ));
            }
            None => return Err(format!("-O {directive}: expected NAME=VALUE")),
        }
    }
    Ok(all)
}
