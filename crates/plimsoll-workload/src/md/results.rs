//! Counts of a stage, from which the output lines are made.

use crate::md::lower::row;
use crate::md::numbers::{MIB, ratio, seconds};
use crate::md::options::Workbench;
use crate::md::run_info::Position;
use plimsoll_measure::{Nanos, OpTotals, RankStage, seven_number_summary};
use plimsoll_plan::{Plan, StageProgress, StageWork};

/// Counts of one kind of operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) ops: u64,
    pub(crate) errors: u64,
    /// Minimum, quartiles, 90th and 99th percentile, maximum; all 0 without samples.
    pub(crate) quantiles: [Nanos; 7],
}

/// Counts of one rank or of all ranks in a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Time of the slowest rank in nanoseconds.
    pub(crate) time: Nanos,
    /// Time of the slowest rank, including its wait for the other ranks, in nanoseconds.
    pub(crate) time_with_barrier: Nanos,
    pub(crate) make_set: Count,
    pub(crate) remove_set: Count,
    pub(crate) create: Count,
    pub(crate) stat: Count,
    pub(crate) read: Count,
    pub(crate) delete: Count,
    /// Bytes transferred by operations of any kind.
    pub(crate) bytes: u128,
}

impl Counts {
    /// Counts of all ranks together.
    pub(crate) fn of_all(plan: &Plan, ranks: &[RankStage], rows: &[OpTotals]) -> Self {
        let mut all = Self::default();
        for rank in ranks {
            all.add(&Self::of_rank(plan, rank));
        }
        for (name, count) in all.named() {
            if let Some(i) = index(plan, name) {
                count.quantiles = seven_number_summary(&rows[i].service);
            }
        }
        all
    }

    /// Counts of one rank.
    pub(crate) fn of_rank(plan: &Plan, rank: &RankStage) -> Self {
        let mut counts = Self {
            time: rank.time_ns,
            time_with_barrier: rank.time_with_barrier_ns,
            bytes: rank.rows.iter().map(|r| r.bytes).sum(),
            ..Self::default()
        };
        for (name, count) in counts.named() {
            if let Some(i) = index(plan, name) {
                let row = &rank.rows[i];
                *count = Count {
                    ops: row.ops,
                    errors: row.errors,
                    quantiles: row.quantiles_ns,
                };
            }
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.time = self.time.max(other.time);
        self.time_with_barrier = self.time_with_barrier.max(other.time_with_barrier);
        self.bytes += other.bytes;
        let mut other = other.clone();
        for ((_, mine), (_, theirs)) in self.named().into_iter().zip(other.named()) {
            mine.ops += theirs.ops;
            mine.errors += theirs.errors;
        }
    }

    fn named(&mut self) -> [(&'static str, &mut Count); 6] {
        [
            (row::MAKE_SET, &mut self.make_set),
            (row::REMOVE_SET, &mut self.remove_set),
            (row::CREATE, &mut self.create),
            (row::STAT, &mut self.stat),
            (row::READ, &mut self.read),
            (row::DELETE, &mut self.delete),
        ]
    }

    /// Number of failed operations of every kind.
    pub(crate) fn errors(&self) -> u64 {
        let mut copy = self.clone();
        copy.named().iter().map(|(_, c)| c.errors).sum()
    }

    /// Duration of the slowest operation on an object, in nanoseconds.
    pub(crate) fn slowest(&self) -> Nanos {
        let kinds = [self.create, self.stat, self.read, self.delete];
        let max = kinds.iter().map(|c| c.quantiles[6]).max();
        max.expect("there are kinds")
    }

    /// Throughput in MiB per second of created and read objects of `object_size` bytes.
    pub(crate) fn throughput(&self, object_size: u64) -> f64 {
        let bytes = (self.create.ops + self.read.ops) as f64 * object_size as f64;
        ratio(bytes / MIB, seconds(self.time))
    }
}

/// Index of the row with this name.
fn index(plan: &Plan, name: &str) -> Option<usize> {
    plan.operations.iter().position(|o| o.name == name)
}

/// Returns the positions after a run: each stage that advances positions adds its completed rounds to the positions
/// before the run.
///
/// `done` has the results of the ranks for each stage. The result is `None` if the Plan has no pattern, a stage was not
/// run, or a result is from a rank that the pattern does not have.
#[must_use]
pub fn position_after(plan: &Plan, done: &[Vec<RankStage>]) -> Option<Position> {
    let pattern = plan.groups.first()?.program.pattern()?;
    if done.len() != pattern.stages.len() {
        return None;
    }
    let mut positions: Vec<u64> = (0..pattern.ranks).map(|r| pattern.position_of(r)).collect();
    for (stage, ranks) in pattern.stages.iter().zip(done) {
        let moves = matches!(&stage.work,
            StageWork::Objects(work) if work.advances == StageProgress::Position);
        if moves {
            for rank in ranks {
                *positions.get_mut(rank.rank as usize)? += rank.rounds;
            }
        }
    }
    Position::of_ranks(positions)
}

/// Number of rounds at the stonewall in MD-Workbench's output: the maximum over all ranks, or 0 without a stonewall.
/// With wear-out, the number is the completed rounds, even if no rank reached the stonewall.
pub(crate) fn stonewall_rounds(w: &Workbench, ranks: &[RankStage]) -> u64 {
    let of = |r: &RankStage| match w.wear_out {
        true => r.rounds,
        false => r.stonewall_rounds.unwrap_or(0),
    };
    match w.stonewall {
        Some(_) => ranks.iter().map(of).max().unwrap_or(0),
        None => 0,
    }
}
