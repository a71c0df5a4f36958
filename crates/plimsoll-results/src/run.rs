//! The content of `run.json`.

use crate::Environment;
use crate::client_cache::ClientCache;
use crate::events::RunEvent;
use crate::hooks::CommandRun;
use crate::hosts::HostFigures;
use crate::latency::{LatencyFigures, LatencyKind, SummaryLatency};
use crate::mix::MixFigures;
use crate::percentile::{Percentile, PercentileFigure, Percentiles};
use crate::schedule::EventSchedule;
use crate::simulation::SimulationFigures;
use crate::standstill::{AgeFigure, StallFigure, has_latencies};
use plimsoll_measure::system::SystemUse;
use plimsoll_measure::{ClockKind, DrawnVariable, RankStage, StartFigures};
use plimsoll_plan::{Failure, Note, OpClass, OpKind, Plan, PopulatedFileset, Reason, Verification};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Everything known about one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Schema version of the document.
    pub schema_version: u32,
    /// Name of the workload.
    pub workload: String,
    /// Root of all random choices of the run.
    pub seed: u64,
    /// When the run began: RFC 3339, in UTC.
    pub started_at: String,
    /// Length of the measured window in seconds; 0 if nothing was measured.
    pub window_s: f64,
    /// Whether the figures may be used.
    pub validity: Validity,
    /// All operations together.
    pub summary: Summary,
    /// One entry per name and kind of operation.
    pub operations: Vec<OperationFigures>,
    /// Procedures that the target called on a server, where it does: a file's opening is one
    /// operation and, on NFS, three procedures. Errors are by the server's own names.
    pub procedures: Vec<OperationFigures>,
    /// With io_uring: times between the completion of an operation and its being seen by its worker, which
    /// shows how busy the lanes were; null otherwise. They are upper bounds: an operation that had
    /// completed before its lane looked may have done so at any time since the lane's last look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_delay: Option<OperationFigures>,
    /// Percentiles that tables show; null if no others were requested than the usual ones.
    pub percentiles_shown: Option<Percentiles>,
    /// Program that ran it.
    pub program: Program,
    /// Target of the load.
    pub target: Target,
    /// Clock of the run.
    pub clock: ClockKind,
    /// Workers of the Plan.
    pub workers: u64,
    /// Threads that drove them; 0 if they were never started.
    pub lanes: u64,
    /// Time of day at which the run's clock began, of which times in seconds are counted: RFC 3339, in UTC. It begins
    /// after what precedes the first phase, such as connecting to the target. Null in virtual time, and if nothing was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_started_at: Option<String>,
    /// When the measured window opened, in seconds since the run's clock began.
    pub window_start_s: f64,
    /// Number of the measured window, from 1; 0 if nothing was measured.
    pub window_number: u32,
    /// When the first worker finished its work; null unless there are several workers
    /// and each ended by itself, and for a pattern, whose stages say it.
    pub first_done: Option<CompletedFigures>,
    /// When the last worker did; null if `first_done` is.
    pub last_done: Option<CompletedFigures>,
    /// Use of the machine during the measured window.
    pub system: SystemUse,
    /// Data read, and the part that came from the client's own cache; null if nothing was read, or if
    /// it is not known.
    pub client_cache: Option<ClientCache>,
    /// Windows measured before the last one, in order; empty for a pattern.
    pub earlier_windows: Vec<Window>,
    /// Ranks that ran the Plan together: processes, or the workers of a pattern in virtual time.
    pub ranks: u32,
    /// What the ranks of each machine did, in the order of their ranks; empty if all are on one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostFigures>,
    /// How far apart the ranks started; null if there is one, and in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<StartFigures>,
    /// Stages of a pattern, in order, each a window of its own; the figures of the run are all of
    /// them together, and its window is as long as all of theirs.
    pub stages: Vec<Stage>,
    /// What the simulated system did in the measured window; null if the target is real, and for a
    /// pattern, whose stages say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationFigures>,
    /// The part of the load that was sustained; null unless the workload is an operation mix.
    pub mix: Option<MixFigures>,
    /// Events that the event rate scheduled for `eventlimit`, with the numbers used and dropped; null without an
    /// event rate, and in the results of a killed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<EventSchedule>,
    /// Filesets created or found before the run.
    pub filesets: Vec<PopulatedFileset>,
    /// Whether contents and files were what was acknowledged, if the run was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Commands of the user that ran before and after its phases, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRun>,
    /// What happened to the system under test while the run ran, in the order of time: events of the
    /// user and of a simulated system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RunEvent>,
    /// The error that ended the run.
    pub failure: Option<Failure>,
    /// Workers that were still in a system call long after the end.
    pub hung_workers: Vec<String>,
    /// Random variables under test.
    pub variables: Vec<VariableFigures>,
    /// Remarks on the workload and on the run.
    pub notes: Vec<Note>,
    /// The machine and the file system of the work directory.
    pub environment: Environment,
    /// The Plan of the run.
    pub plan: Plan,
}

/// Whether the figures of a run may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// The verdict.
    pub verdict: Verdict,
    /// Reasons why it is not valid; empty if it is.
    pub reasons: Vec<Reason>,
}

/// Verdict on a run, from the best to the worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The run did what its Plan says.
    Valid,
    /// The run ended, but not as its Plan says: see the reasons.
    Invalid,
    /// An error ended the run.
    Failed,
    /// The user ended the run.
    Interrupted,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        })
    }
}

/// All operations of a window that count: file operations and asynchronous writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Operations that succeeded.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Bytes moved.
    pub bytes: u128,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Mean latency in milliseconds; 0 without operations. The latency of an operation is its
    /// response time where it had an intended start, and its service time where it had none.
    pub mean_ms: f64,
    /// Median of the latency in milliseconds; 0 without operations.
    pub p50_ms: f64,
    /// 99th percentile of the latency in milliseconds; 0 without operations.
    pub p99_ms: f64,
    /// Operations that had an intended start, because the load was paced.
    pub paced_ops: u64,
    /// Service time of all operations; null if none was paced, and it is the latency.
    pub service: Option<SummaryLatency>,
    /// More percentiles, in increasing order: those that every run keeps and the requested ones.
    pub percentiles: Vec<PercentileFigure>,
    /// Failed operations, of every class.
    pub errors: u64,
    /// Operations that move data from the target, a second.
    pub reads_per_s: f64,
    /// Operations that move data to the target, a second.
    pub writes_per_s: f64,
    /// Processor time of the whole process, divided by the operations, in microseconds; null
    /// without operations or without accounting.
    pub cpu_us_per_op: Option<f64>,
    /// Operations in flight when the window ended. They are in the percentiles, as censored
    /// observations, and in no other figure.
    pub in_flight: u64,
    /// Age of the oldest of them in milliseconds; null if there was none.
    pub oldest_in_flight_ms: Option<f64>,
    /// Longest time in which none completed, in milliseconds and to a 512th of an interval; null
    /// where it is not known.
    pub max_gap_ms: Option<f64>,
    /// Longest such time that is likely at the mean rate, if operations complete independently of
    /// each other, in milliseconds; null if `max_gap_ms` is.
    pub expected_max_gap_ms: Option<f64>,
    /// Times in which the target stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<StallFigure>,
    /// Operations abandoned at the end of the run, because they did not return: calls without a reply,
    /// and operations of workers that hung in a system call.
    pub abandoned: u64,
}

/// A row of the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationFigures {
    /// Name the workload gave it.
    pub name: String,
    /// Kind of operation.
    pub kind: OpKind,
    /// Class of the kind; only `io` and `aio` count in the summary.
    pub class: OpClass,
    /// Operations that succeeded.
    pub ops: u64,
    /// Operations per second.
    pub ops_per_s: f64,
    /// Bytes moved.
    pub bytes: u128,
    /// Bytes per second.
    pub bytes_per_s: f64,
    /// Latency: response time of operations that had an intended start, service time of the others.
    #[serde(flatten)]
    pub latency: LatencyFigures,
    /// Operations that had an intended start, because the load was paced.
    pub paced_ops: u64,
    /// Service time, call to return, of all of them; null if none was paced, and it is the
    /// latency.
    pub service: Option<LatencyFigures>,
    /// More percentiles, in increasing order: those that every run keeps and the requested ones.
    pub percentiles: Vec<PercentileFigure>,
    /// Processor time of an operation in microseconds; null if it was not measured.
    pub cpu_us_per_op: Option<f64>,
    /// Failed operations.
    pub errors: u64,
    /// Failed operations by errno or protocol status.
    pub error_codes: BTreeMap<String, u64>,
    /// Operations in flight when the window ended; the maximum and the percentiles have them as
    /// censored observations, which take at least that long.
    pub in_flight: u64,
    /// Age of the oldest of them in milliseconds; null if there was none.
    pub oldest_in_flight_ms: Option<f64>,
    /// Ages of all of them, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight_ages: Vec<AgeFigure>,
    /// Longest time in which none completed, in milliseconds and to a 512th of an interval; null
    /// where it is not known.
    pub max_gap_ms: Option<f64>,
    /// Longest such time that is likely at the mean rate, if operations complete independently of
    /// each other, in milliseconds; null if `max_gap_ms` is.
    pub expected_max_gap_ms: Option<f64>,
}

impl Run {
    /// Percentiles that a table shows; `usual` if no percentiles were requested.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }
}

impl Summary {
    /// A percentile of all operations; `None` if the run does not have it.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<PercentileFigure> {
        let service = self.service.as_ref();
        let fixed = match percentile {
            Percentile::P50 => Some((self.p50_ms, service.map(|s| s.p50_ms))),
            Percentile::P99 => Some((self.p99_ms, service.map(|s| s.p99_ms))),
            _ => None,
        };
        let of = (self.ops, self.has_latencies());
        percentile.find(&self.percentiles, of, fixed)
    }

    /// Whether any latency is known: of a completed operation, or a lower bound from an operation in flight at the end.
    #[must_use]
    pub fn has_latencies(&self) -> bool {
        has_latencies(self.ops, self.oldest_in_flight_ms)
    }

    /// Kind of the latency.
    #[must_use]
    pub fn latency_kind(&self) -> LatencyKind {
        LatencyKind::of(self.paced_ops, self.ops)
    }

    /// Service time of all operations; equal to the latency if no operation was paced.
    #[must_use]
    pub fn service(&self) -> SummaryLatency {
        self.service.unwrap_or(SummaryLatency {
            mean_ms: self.mean_ms,
            p50_ms: self.p50_ms,
            p99_ms: self.p99_ms,
        })
    }
}

impl OperationFigures {
    /// Whether any latency is known: of a completed operation, or a lower bound from an operation in flight at the end.
    #[must_use]
    pub fn has_latencies(&self) -> bool {
        has_latencies(self.ops, self.oldest_in_flight_ms)
    }

    /// A percentile of the operation; `None` if the run does not have it.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<PercentileFigure> {
        let of = (self.ops, self.has_latencies());
        let pick: fn(&LatencyFigures) -> f64 = match percentile {
            Percentile::P50 => |f| f.p50_ms,
            Percentile::P95 => |f| f.p95_ms,
            Percentile::P99 => |f| f.p99_ms,
            Percentile::P999 => |f| f.p999_ms,
            _ => return percentile.find(&self.percentiles, of, None),
        };
        let fixed = (pick(&self.latency), self.service.as_ref().map(pick));
        percentile.find(&self.percentiles, of, Some(fixed))
    }

    /// Kind of the latency.
    #[must_use]
    pub fn latency_kind(&self) -> LatencyKind {
        LatencyKind::of(self.paced_ops, self.ops)
    }

    /// Service time of the operation; equal to the latency if the operation was not paced.
    #[must_use]
    pub fn service(&self) -> &LatencyFigures {
        self.service.as_ref().unwrap_or(&self.latency)
    }
}

/// The program that ran the workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl Program {
    /// Name and version of this program.
    #[must_use]
    pub fn plimsoll() -> Self {
        Self {
            name: "plimsoll".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// A target of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// As given on the command line; of results that can be resumed, the path of a system file is
    /// absolute.
    pub url: String,
    /// As the target describes itself.
    pub description: String,
    /// Fingerprint of the text of a simulated system; absent for other targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

/// A measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Number, from 1.
    pub number: u32,
    /// When it opened, in seconds since the run's clock began.
    pub start_s: f64,
    /// Length in seconds.
    pub window_s: f64,
    /// All operations together.
    pub summary: Summary,
    /// One entry per name and kind of operation.
    pub operations: Vec<OperationFigures>,
    /// Procedures that the target called on a server, where it does: a file's opening is one
    /// operation and, on NFS, three procedures. Errors are by the server's own names.
    pub procedures: Vec<OperationFigures>,
    /// With io_uring: times between the completion of an operation and its being seen by its worker, which
    /// shows how busy the lanes were; null otherwise. They are upper bounds: an operation that had
    /// completed before its lane looked may have done so at any time since the lane's last look.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_delay: Option<OperationFigures>,
    /// When the first worker finished its work; null unless there are several workers
    /// and each ended by itself.
    pub first_done: Option<CompletedFigures>,
    /// When the last worker did; null if `first_done` is.
    pub last_done: Option<CompletedFigures>,
    /// Use of the machine.
    pub system: SystemUse,
    /// Data read, and the part that came from the client's own cache; null if nothing was read, or if
    /// it is not known.
    pub client_cache: Option<ClientCache>,
    /// What the simulated system did; null if the target is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationFigures>,
}

/// Figures of all workers up to an instant, such as that at which the first of them finished.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletedFigures {
    /// The instant, in seconds since the window opened.
    pub after_s: f64,
    /// Operations of the summary up to it. At the first end of several ranks, those of
    /// another rank are what it had done at its own first end, as if it had come that far evenly.
    pub ops: u64,
    /// Operations per second up to it.
    pub ops_per_s: f64,
    /// Bytes moved up to it.
    pub bytes: u128,
    /// Bytes per second up to it.
    pub bytes_per_s: f64,
}

/// A stage of a pattern: a phase, or a repetition of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Number of the stage in the pattern, from 0.
    pub stage: u32,
    /// Name, such as `precreate`.
    pub name: String,
    /// Repetition, from 0.
    pub iteration: u32,
    /// The window of all ranks, as long as the slowest rank took. Rates of MD-Workbench's lines are
    /// over this time without the time a rank needs to begin and to report.
    pub window: Window,
    /// Figures of each rank.
    pub ranks: Vec<RankStage>,
}

/// Draws of a `testrandvar`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariableFigures {
    /// Name of the flowop.
    pub name: String,
    /// Draws.
    pub draws: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub sigma: f64,
}

impl VariableFigures {
    pub(crate) fn of(drawn: &DrawnVariable) -> Self {
        Self {
            name: drawn.name.clone(),
            draws: drawn.stats.count,
            mean: drawn.stats.mean,
            sigma: drawn.stats.deviation(),
        }
    }
}

#[cfg(test)]
mod tests;
