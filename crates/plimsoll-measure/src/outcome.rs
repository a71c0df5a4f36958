//! The outcome of a run. The engine fills the outcome of each rank, ranks report their outcomes to rank 0, and results
//! are computed from the merged outcome.

use crate::system::SystemUse;
use crate::{
    HostCounts, LongReplies, NfsClients, ProcessCounts, RankStage, ScheduleCounts, SimulatedWindow,
    StartFigures, WindowBacklog, WindowTotals,
};
use plimsoll_plan::{Failure, PopulatedFileset, Reason, SourcePosition, Verification};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::SystemTime;

/// Used fraction of all processors, or of a CPU quota, above which the client counts as the bottleneck.
pub const CLIENT_SATURATED_SHARE: f64 = 0.95;

/// Everything measured and noted in a run.
///
/// Ranks report the serialised fields to rank 0.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Measured windows in order; of all ranks at rank 0, of the rank's own workers elsewhere.
    pub windows: Vec<MeasuredWindow>,
    /// Totals of the workers of this process in each window; only at rank 0 of several ranks.
    #[serde(skip)]
    pub own: Vec<WindowTotals>,
    /// Number of lanes of this process; only at rank 0 of several ranks.
    #[serde(skip)]
    pub own_lanes: usize,
    /// NFS clients of this process; `Some` only at rank 0 of several ranks, whose `nfs_clients` is the sum of all ranks.
    #[serde(skip)]
    pub own_nfs_clients: Option<NfsClients>,
    /// Spread of the ranks' starts in the load phase with the largest spread; only at rank 0 of several ranks.
    #[serde(skip)]
    pub starts: Option<StartFigures>,
    /// Stages of a pattern, in the order of their windows; only at rank 0.
    #[serde(skip)]
    pub stages: Vec<StageOutcome>,
    /// Filesets that were created, or found and reused, before the workers started.
    #[serde(skip)]
    pub populated: Vec<PopulatedFileset>,
    /// Failure that ended the run; `None` if no failure ended the run.
    pub failure: Option<Failure>,
    /// Operation that ended the run because the operation's fileset was exhausted; `None` if no operation did.
    pub ran_out: Option<RanOut>,
    /// Whether a stop request, such as the user's interrupt, ended the run.
    pub interrupted: bool,
    /// Result of the verification of contents and files; `None` if the run is not verified.
    #[serde(skip)]
    pub verification: Option<Verification>,
    /// Reasons that the engine has found why the result is invalid; further reasons follow from the figures.
    #[serde(skip)]
    pub reasons: Vec<Reason>,
    /// Names of hung workers: workers in a system call 10 s after the end of the run.
    pub hung_workers: Vec<String>,
    /// Remarks on the run for the user, as sentences that do not affect the validity of the result.
    pub notes: Vec<String>,
    /// Figures of each process of an operation mix in the last window.
    pub processes: Vec<ProcessCounts>,
    /// Backlogs of the processes of an operation mix, or of the event schedule, over the last window.
    pub backlog: WindowBacklog,
    /// Counts of the event schedule of each rank in the last window; empty without `eventlimit` and an event rate.
    pub schedules: Vec<ScheduleCounts>,
    /// Statistics of the random numbers that each `testrandvar` operation drew.
    pub variables: Vec<DrawnVariable>,
    /// Waits of the script that a rule could end, in order.
    #[serde(skip)]
    pub ruled_waits: Vec<RuledWait>,
    /// Description of the target for the results, in words.
    #[serde(skip)]
    pub target: String,
    /// Number of lanes that drove the workers.
    pub lanes: usize,
    /// NFS clients that drove the workers; `None` if the target is not NFS, or before the first reply of the server.
    pub nfs_clients: Option<NfsClients>,
    /// Remains of the work directory after the removal of the run's files.
    #[serde(skip)]
    pub cleanup: Cleanup,
    /// Replies of a server that were longer than its protocol allows, by procedure.
    pub long_replies: Vec<LongReplies>,
}

impl Outcome {
    /// Whether the run ended before the end of its script.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.failure.is_some() || self.ran_out.is_some() || !self.hung_workers.is_empty()
    }
}

/// End of a wait that a rule could end before the maximum length of the wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuledWait {
    /// Part of the run that the wait was.
    pub phase: RuledPhase,
    /// Rule: `mser`, `snia`, `slope` or `deviation` with their limits, or the maximum half width of the main figure's
    /// confidence interval, such as `±2 %`.
    pub rule: String,
    /// Length of the wait in seconds.
    pub seconds: f64,
    /// Whether the rule ended the wait; otherwise the wait ended at its maximum, or the run ended.
    pub held: bool,
}

/// Part of a run that a rule can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RuledPhase {
    /// Warm-up, which ends when the rate of operations is steady.
    WarmUp,
    /// Measured window, which ends when the main figure is precise.
    Window,
}

impl fmt::Display for RuledWait {
    /// The end of the wait as a phrase, such as `ended after 7.25 s, steady by mser`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, seconds, .. } = self;
        match (self.phase, self.held) {
            (RuledPhase::WarmUp, true) => write!(f, "ended after {seconds:.2} s, steady by {rule}"),
            (RuledPhase::WarmUp, false) => {
                write!(f, "ended after {seconds:.2} s, not steady by {rule}")
            }
            (RuledPhase::Window, true) => {
                write!(
                    f,
                    "ended after {seconds:.2} s, with an interval within {rule}"
                )
            }
            (RuledPhase::Window, false) => {
                write!(
                    f,
                    "ended after {seconds:.2} s, with an interval wider than {rule}"
                )
            }
        }
    }
}

/// The remains of a work directory after the removal of its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleanup {
    /// Paths of files that Plimsoll did not create, relative to the work directory.
    pub foreign: Vec<String>,
    /// Sentences about files that were not removed: the reason and, if possible, the command that removes the files.
    /// The list is empty if everything was removed.
    pub unremoved: Vec<String>,
}

/// Results of the ranks in a stage of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageOutcome {
    /// Number of the stage in the pattern, from 0.
    pub stage: u32,
    /// Results of each rank in the stage, in the order of rank numbers.
    pub ranks: Vec<RankStage>,
}

/// Measurements of the workers, the process and the machines in a measured window.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MeasuredWindow {
    /// Totals of the workers' operations, by row of the results.
    pub totals: WindowTotals,
    /// Wall clock at the start of the window; `None` in a run that was recovered from its intervals.
    pub started: Option<SystemTime>,
    /// Resources used by the process and the machine.
    pub system: SystemUse,
    /// Fraction of the processors used by the run, on the machine with the largest fraction.
    pub client_share: Option<f64>,
    /// Throttling by a CPU quota, on the machine that was throttled most; `None` in virtual time and without a quota.
    pub throttling: Option<Throttling>,
    /// The machines of the ranks; at rank 0 of several ranks.
    pub hosts: Vec<HostCounts>,
    /// Figures of the simulated system; `None` for a real target.
    #[serde(skip)]
    pub simulated: Option<SimulatedWindow>,
}

impl From<WindowTotals> for MeasuredWindow {
    fn from(totals: WindowTotals) -> Self {
        Self {
            totals,
            ..Self::default()
        }
    }
}

/// Throttling of a control group by a CPU quota.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Throttling {
    /// Lower bound of the fraction of a window in which the group was throttled: the mean over the processors that the
    /// group can use at a time.
    pub share: f64,
    /// Processors that the quota allows; `None` if the group with the quota is not visible.
    pub processors: Option<f64>,
    /// Directory of the group with the quota.
    pub group: Option<String>,
    /// Machine of the group, if the run has several machines.
    pub host: Option<String>,
}

/// An operation that exhausted its fileset in a time-limited run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RanOut {
    /// Name of the operation in the workload.
    pub operation: String,
    /// Position of the operation in the workload's text; `None` for a workload without text.
    pub place: Option<SourcePosition>,
    /// Kind of fileset entry that was exhausted, such as `existing file`.
    pub supply: String,
    /// Name of the fileset that had no entry in the state that the operation needs.
    pub fileset: String,
    /// Advice to the user against the exhaustion, as a clause such as [`RanOut::ADVICE`].
    pub advice: String,
    /// Time of the exhaustion in nanoseconds since the window opened, or since the workers started if no window was
    /// open.
    pub after_ns: u64,
    /// Whether a measured window was open when the fileset was exhausted.
    pub measured: bool,
    /// Whether the latest window had ended before the fileset was exhausted.
    pub window_over: bool,
}

impl RanOut {
    /// Advice for a supply exhausted by the workers.
    pub const ADVICE: &str =
        "give the fileset more entries or the run less time, or end it with --quit alldone";
}

impl fmt::Display for RanOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no {} of fileset `{}` was left for `{}`",
            self.supply, self.fileset, self.operation
        )?;
        if let Some(place) = &self.place {
            write!(f, " ({place})")?;
        }
        let seconds = self.after_ns as f64 / 1e9;
        let when = match self.measured {
            true => "of the measured window",
            false => "of work, with no window open",
        };
        write!(f, " after {seconds:.3} s {when}: {}", self.advice)
    }
}

/// Statistics of the random numbers that a `testrandvar` operation drew.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawnVariable {
    /// Name of the operation in the workload.
    pub name: String,
    /// Count, mean and standard deviation of the drawn numbers.
    pub stats: VariableStats,
}

/// Incremental mean and standard deviation (Welford 1962).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct VariableStats {
    /// Number of random numbers that were drawn.
    pub count: u64,
    /// Mean of the drawn random numbers; 0 without numbers.
    pub mean: f64,
    /// Sum of the squared distances of the random numbers from `mean`.
    squares: f64,
}

impl VariableStats {
    /// Adds the random number `x` to count, mean and standard deviation.
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        let distance = x - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (x - self.mean);
    }

    /// Merges the statistics of other random numbers (Chan, Golub, LeVeque 1979).
    pub fn merge(&mut self, other: &Self) {
        let count = self.count + other.count;
        if other.count == 0 {
            return;
        }
        let distance = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.mean += distance * share;
        self.squares += other.squares + distance * distance * self.count as f64 * share;
        self.count = count;
    }

    /// Sample standard deviation (n − 1); 0 for fewer than two numbers.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        match self.count {
            0 | 1 => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_series_are_one_series(
            a in prop::collection::vec(-1e6f64..1e6, 0..50),
            b in prop::collection::vec(-1e6f64..1e6, 0..50),
        ) {
            let of = |xs: &[f64]| {
                let mut s = VariableStats::default();
                xs.iter().for_each(|x| s.add(*x));
                s
            };
            let mut merged = of(&a);
            merged.merge(&of(&b));
            let all: Vec<f64> = a.iter().chain(&b).copied().collect();
            let whole = of(&all);
            prop_assert_eq!(merged.count, whole.count);
            prop_assert!((merged.mean - whole.mean).abs() < 1e-6);
            prop_assert!((merged.deviation() - whole.deviation()).abs() < 1e-3);
        }
    }
}
