//! The content of `run.json`.

use crate::Environment;
use crate::client_cache::ClientCache;
use crate::events::RunEvent;
use crate::hooks::CommandRun;
use crate::hosts::HostFigures;
use crate::latency::{LatencyFigures, LatencyKind, SummaryLatency};
use crate::mix::MixFigures;
use crate::percentile::{Percentile, PercentileFigure, Percentiles};
use crate::promise::PromiseResult;
use crate::qualifier::Qualifier;
use crate::schedule::EventSchedule;
use crate::simulation::SimulationFigures;
use crate::standstill::{AgeFigure, StallFigure, has_latencies};
use plimsoll_measure::system::SystemUse;
use plimsoll_measure::{
    ClockKind, Confidence, DrawnVariable, NfsClients, RankStage, RuledWait, StartFigures,
    Stationarity,
};
use plimsoll_plan::{Failure, Note, OpClass, OpKind, Plan, PopulatedFileset, Reason, Verification};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::Display;

/// Contents of `run.json`, the results of one run: figures, verdict, environment and Plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Version of the schema of `run.json`, which rises when a field is removed or changes meaning.
    pub schema_version: u32,
    /// Name of the workload that the run executed.
    pub workload: String,
    /// Seed of the run, from which all random choices follow.
    pub seed: u64,
    /// Time of day at which the run began: RFC 3339, in UTC.
    pub started_at: String,
    /// Length of the measured window in seconds, of a pattern the total length of all stages; 0 if nothing was
    /// measured.
    pub window_s: f64,
    /// Verdict on the run (valid, invalid, failed or interrupted), with the reasons why the run is not valid.
    pub validity: Validity,
    /// Judgement of the run by the promises of its Plan, in order; empty without promises, and if nothing was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<PromiseResult>,
    /// Qualifiers: facts that limit what the figures mean, valid or not, by kind. Empty if nothing was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qualifiers: Vec<Qualifier>,
    /// Figures of all counted operations together, over the measured window, or over all stages of a pattern.
    pub summary: Summary,
    /// Whether the rate of all counted operations together stayed the same during the measured window. Null if no
    /// interval has a completed operation, and for a pattern, whose stages have figures of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stationarity: Option<Stationarity>,
    /// Warm-ups and windows that a rule could end before their maximum, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ruled_waits: Vec<RuledWait>,
    /// Figures of each operation of the workload: one entry per name and kind of operation.
    pub operations: Vec<OperationFigures>,
    /// Groups of similar rows of `operations`; empty without similar rows, and for a pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<OperationGroup>,
    /// Figures of the procedures that the target called on a server: opening a file is one operation, but several
    /// procedures on NFS. Errors have the server's names. Empty if the target reports no procedures.
    pub procedures: Vec<OperationFigures>,
    /// Completion delay with io_uring: the time from the completion of an operation until the worker saw the
    /// completion, which shows how busy the lanes were. Each delay is an upper bound, because the operation may have
    /// completed at any time since the lane last looked at the ring. Null if no completion of a ring was recorded, as
    /// without io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_delay: Option<OperationFigures>,
    /// Percentiles that `plimsoll report --percentiles` requested for tables; null if tables show the default
    /// percentiles.
    pub percentiles_shown: Option<Percentiles>,
    /// Program that ran the workload, with its version.
    pub program: Program,
    /// Target of the run's load, as a URL with a description.
    pub target: Target,
    /// Clock of the run: real or virtual time.
    pub clock: ClockKind,
    /// Number of workers of the Plan, in all ranks.
    pub workers: u64,
    /// Number of lanes (threads) that drove the workers; 0 if the workers were never started. On an NFS target, each lane
    /// is an NFS client.
    pub lanes: u64,
    /// NFS clients that made the load, in all ranks, with the connections, sessions and open owners that the clients
    /// established. Null for other targets, if the server never replied, and in the results of a killed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs_clients: Option<NfsClients>,
    /// Time of day at which the run's clock began, from which times in seconds are counted: RFC 3339, in UTC. The clock
    /// begins after the work that precedes the first phase, such as connecting to the target. Null in virtual time, and
    /// if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_started_at: Option<String>,
    /// Time at which the measured window opened, in seconds since the run's clock began.
    pub window_start_s: f64,
    /// Number of the measured window, from 1; 0 if nothing was measured.
    pub window_number: u32,
    /// Figures of all workers up to the finish of the first worker; null for a single worker, if a worker did not
    /// finish by itself in the window, and for a pattern, whose stages have figures of their own.
    pub first_done: Option<CompletedFigures>,
    /// Figures of all workers up to the finish of the last worker; null if `first_done` is null.
    pub last_done: Option<CompletedFigures>,
    /// Resources used by the process and the machine during the measured window. Empty for a pattern, whose stages have
    /// figures of their own.
    pub system: SystemUse,
    /// Bytes read by operations, and the part that the client's own cache served; null if nothing was read, or if the
    /// source of the data is unknown.
    pub client_cache: Option<ClientCache>,
    /// Measured windows before the last measured window, in order; empty for a pattern.
    pub earlier_windows: Vec<Window>,
    /// Number of ranks that ran the Plan together: processes, or the workers of a pattern in virtual time.
    pub ranks: u32,
    /// Figures of the ranks of each host, in the order of ranks; empty if all ranks are on one host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostFigures>,
    /// Spread of the ranks' starts; null for a single rank, and in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<StartFigures>,
    /// Measured stages of a pattern, in order, each with a window of its own; empty for other workloads. The figures of
    /// the run are sums over all stages, and the window of the run is as long as the windows of all stages together.
    pub stages: Vec<Stage>,
    /// Figures of the simulated system in the measured window; null if the target is real, and for a pattern, whose
    /// stages have figures of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationFigures>,
    /// Offered, achieved and dropped operations of an operation mix; null for other workloads.
    pub mix: Option<MixFigures>,
    /// Events that the event rate scheduled for `eventlimit`, with the numbers used and dropped; null without an
    /// event rate, and in the results of a killed run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<EventSchedule>,
    /// Filesets of the workload that were created, or found and reused, before the run.
    pub filesets: Vec<PopulatedFileset>,
    /// Result of the verification of reads and files against acknowledged writes; null if the run was not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<Verification>,
    /// Hooks that ran: the user's commands before and after phases of the run, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRun>,
    /// Events of the system under test during the run, in order of planned time: events of the user and of a simulated
    /// system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<RunEvent>,
    /// Error that ended the run; null if no error ended the run.
    pub failure: Option<Failure>,
    /// Names of the hung workers, which were still in a system call 10 s after the end of the run; empty for none.
    pub hung_workers: Vec<String>,
    /// Statistics of the random variables that `testrandvar` flowops drew; empty without such flowops.
    pub variables: Vec<VariableFigures>,
    /// Notes for people on the workload and on the run, such as a slow host or a high hit ratio; notes do not affect
    /// the verdict.
    pub notes: Vec<Note>,
    /// Machine that ran the Plan (of rank 0, with several hosts), and file system of the work directory.
    pub environment: Environment,
    /// Plan of the run: the resolved workload, with all settings that determine its operations.
    pub plan: Plan,
}

/// Verdict on a run (valid, invalid, failed or interrupted), with the reasons why the run is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Validity {
    /// Judgement of the run: valid, invalid, failed or interrupted.
    pub verdict: Verdict,
    /// Reasons why the run is not valid; empty for a valid run.
    pub reasons: Vec<Reason>,
}

/// Judgement of a run, from the best to the worst.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// The run did what the Plan says, and met every criterion.
    Valid,
    /// The run ended, but not as the Plan says, or did not meet every criterion: the reasons say why.
    Invalid,
    /// An error ended the run before the end of its Plan.
    Failed,
    /// The user ended the run before the end of its Plan.
    Interrupted,
}

impl Verdict {
    /// Whether the run was measured to its end.
    #[must_use]
    pub fn is_measured(self) -> bool {
        matches!(self, Self::Valid | Self::Invalid)
    }
}

/// Figures of all counted operations of a window: file operations and asynchronous writes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Number of counted operations that succeeded in the window.
    pub ops: u64,
    /// Throughput: the operations in `ops` per second of the window.
    pub ops_per_s: f64,
    /// Bytes that the operations in `ops` moved, read and written.
    pub bytes: u128,
    /// Throughput in bytes: the bytes in `bytes` per second of the window.
    pub bytes_per_s: f64,
    /// Mean latency in milliseconds; 0 without operations. The latency of an operation is the response time if the
    /// operation had an intended start, and otherwise the service time.
    pub mean_ms: f64,
    /// Median latency of the counted operations in milliseconds; 0 without operations.
    pub p50_ms: f64,
    /// 99th percentile of the counted operations' latency in milliseconds; 0 without operations.
    pub p99_ms: f64,
    /// Number of counted operations that had an intended start, because the load was paced.
    pub paced_ops: u64,
    /// Service time of all operations; null if no operation was paced, because the latency is then the service time.
    pub service: Option<SummaryLatency>,
    /// Further percentiles of the counted operations' latency, in increasing order: the percentiles that every run
    /// keeps, and the requested percentiles.
    pub percentiles: Vec<PercentileFigure>,
    /// Number of failed operations of the workload, of every class: also operations that `ops` does not count.
    pub errors: u64,
    /// Rate in operations per second of the successful operations that move data from the target to the client.
    pub reads_per_s: f64,
    /// Rate in operations per second of the successful operations that move data from the client to the target.
    pub writes_per_s: f64,
    /// Processor time of the whole client divided by the number of operations, in microseconds; null without operations
    /// or without CPU accounting.
    pub cpu_us_per_op: Option<f64>,
    /// Number of operations in flight when the window ended. Percentiles include the ages of operations in flight as
    /// censored observations; counts, rates and the mean do not include operations in flight.
    pub in_flight: u64,
    /// Age of the oldest operation in flight at the window end, in milliseconds; null if no operation was in flight.
    pub oldest_in_flight_ms: Option<f64>,
    /// Maximum gap: the longest time in the window without a completed operation, in milliseconds. The resolution is at
    /// worst 1/256 of an interval. Null if completion times were not recorded.
    pub max_gap_ms: Option<f64>,
    /// Expected maximum gap: the mean longest gap if operations complete independently of each other at the mean rate,
    /// in milliseconds. Null if `max_gap_ms` is null.
    pub expected_max_gap_ms: Option<f64>,
    /// Stalls of the target: first the stalls of all ranks together, then, with several ranks, the stalls of each rank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<StallFigure>,
    /// Number of operations that did not return and were abandoned at the end of the run: calls without a reply, and
    /// operations of workers that hung in a system call.
    pub abandoned: u64,
    /// Confidence intervals of the figures; null for the stages of a pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
}

/// Figures of an operation of the workload, or of a procedure of the target: a row of the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationFigures {
    /// Name of the operation in the workload, or of the procedure that the target called.
    pub name: String,
    /// Kind of the operation, such as `read_whole`; `rpc` for a procedure.
    pub kind: OpKind,
    /// Class of the kind of operation; only operations of the classes `io` and `aio` count in the summary.
    pub class: OpClass,
    /// Number of operations of the row that succeeded in the window.
    pub ops: u64,
    /// Throughput: the operations in `ops` per second of the window.
    pub ops_per_s: f64,
    /// Bytes that the operations in `ops` moved, read and written.
    pub bytes: u128,
    /// Throughput in bytes: the bytes in `bytes` per second of the window.
    pub bytes_per_s: f64,
    /// Latency of the row: the response time of operations with an intended start, the service time of operations
    /// without an intended start.
    #[serde(flatten)]
    pub latency: LatencyFigures,
    /// Number of operations of the row that had an intended start, because the load was paced.
    pub paced_ops: u64,
    /// Service time, from call to return, of all operations of the row; null if no operation was paced, because the
    /// latency is then the service time.
    pub service: Option<LatencyFigures>,
    /// Further percentiles of the row's latency, in increasing order: the percentiles that every run keeps, and the
    /// requested percentiles.
    pub percentiles: Vec<PercentileFigure>,
    /// Processor time of the row's worker threads per operation in microseconds; null if processor time was not
    /// measured.
    pub cpu_us_per_op: Option<f64>,
    /// Number of operations of the row that failed in the window.
    pub errors: u64,
    /// Number of the failed operations in `errors` by errno name or protocol status.
    pub error_codes: BTreeMap<String, u64>,
    /// Number of operations of the row in flight when the window ended. The maximum and the percentiles of the row's
    /// latency include the age of each operation in flight as a censored observation, a lower bound of the latency.
    pub in_flight: u64,
    /// Age of the row's oldest operation in flight at the window end, in milliseconds; null if no operation was in
    /// flight.
    pub oldest_in_flight_ms: Option<f64>,
    /// Ages of the row's operations in flight at the window end, in increasing order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_flight_ages: Vec<AgeFigure>,
    /// Maximum gap: the longest time in the window without a completed operation of the row, in milliseconds. The
    /// resolution is at worst 1/256 of an interval. Null if completion times were not recorded.
    pub max_gap_ms: Option<f64>,
    /// Expected maximum gap: the mean longest gap if operations complete independently of each other at the mean rate,
    /// in milliseconds. Null if `max_gap_ms` is null.
    pub expected_max_gap_ms: Option<f64>,
    /// Confidence intervals of the row's figures; null if the window cannot tell any, and for procedures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
}

/// Similar rows as one row: rows of one kind whose names differ only in a final number, such as `readfile1` and
/// `readfile2`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationGroup {
    /// Number of rows of the group, at least 2.
    pub rows: u64,
    /// Figures of the operations of all rows together, under the name of the rows without the number. Gaps are null.
    pub figures: OperationFigures,
}

impl OperationGroup {
    /// Common name of the rows that are similar to a row: the row's name without a final number.
    pub(crate) fn name_of(row: &str) -> &str {
        match row.trim_end_matches(|c: char| c.is_ascii_digit()) {
            "" => row,
            name => name,
        }
    }

    /// Name of the group in tables, such as `readfile ×10`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} ×{}", self.figures.name, self.rows)
    }

    /// Whether the group has the row of the operations `name` of a kind.
    #[must_use]
    pub fn contains(&self, kind: OpKind, name: &str) -> bool {
        (self.figures.kind, &*self.figures.name) == (kind, Self::name_of(name))
    }
}

impl Run {
    /// Number of NFS clients that made the load, in all ranks; `None` for other targets, and if no worker was started.
    #[must_use]
    pub fn nfs_client_count(&self) -> Option<u64> {
        if let Some(clients) = &self.nfs_clients {
            return Some(clients.clients);
        }
        let schemes = ["nfs3:", "nfs4:"];
        let is_nfs = schemes.iter().any(|s| self.target.url.starts_with(s));
        (is_nfs && self.lanes > 0).then_some(self.lanes)
    }

    /// Percentiles that a table shows; `usual` if no percentiles were requested.
    #[must_use]
    pub fn shown_percentiles<'a>(&'a self, usual: &'a [Percentile]) -> &'a [Percentile] {
        Percentiles::shown_percentiles(self.percentiles_shown.as_ref(), usual)
    }
}

impl Summary {
    /// The latency of all counted operations at a percentile; `None` if the run stored no such percentile, and without
    /// latencies.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<PercentileFigure> {
        PercentileFigure::find(&self.percentiles, percentile, self.has_latencies())
    }

    /// Whether any latency is known: of a completed operation, or a lower bound from an operation in flight at the end.
    #[must_use]
    pub fn has_latencies(&self) -> bool {
        has_latencies(self.ops, self.oldest_in_flight_ms)
    }

    /// Whether the latency figures are response times, service times, or both.
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

    /// The latency of the row's operations at a percentile; `None` if the run stored no such percentile, and without
    /// latencies.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<PercentileFigure> {
        PercentileFigure::find(&self.percentiles, percentile, self.has_latencies())
    }

    /// Whether the latency figures are response times, service times, or both.
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

/// Program that ran the workload, with its version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Name of the program: `plimsoll`.
    pub name: String,
    /// Version of the program, such as `1.2.0`.
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

/// Target of a load, as a URL with a description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// URL of the target as given on the command line; in results that can be resumed, the path of a system file is
    /// absolute.
    pub url: String,
    /// Description of the target by the target itself, in words; known when the run has ended.
    pub description: String,
    /// Fingerprint of the text of the system file, by which resuming detects changes; absent unless the target is a
    /// simulated system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
}

impl Target {
    /// The part of the URL that says where the files are: the URL without options.
    #[must_use]
    pub fn place(&self) -> &str {
        let (place, _) = self.url.split_once('?').unwrap_or((&self.url, ""));
        place.strip_suffix(':').unwrap_or(place)
    }
}

/// A measured window, with the figures of the operations that completed in the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Number of the window in the run, from 1.
    pub number: u32,
    /// Time at which the window opened, in seconds since the run's clock began.
    pub start_s: f64,
    /// Length of the window in seconds.
    pub window_s: f64,
    /// Figures of all counted operations of the window together.
    pub summary: Summary,
    /// Whether the rate of all counted operations together stayed the same during the window; null if no interval
    /// has a completed operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stationarity: Option<Stationarity>,
    /// Figures of each operation of the workload: one entry per name and kind of operation.
    pub operations: Vec<OperationFigures>,
    /// Groups of similar rows of `operations`; empty without similar rows, and for a pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<OperationGroup>,
    /// Figures of the procedures that the target called on a server: opening a file is one operation, but several
    /// procedures on NFS. Errors have the server's names. Empty if the target reports no procedures.
    pub procedures: Vec<OperationFigures>,
    /// Completion delay with io_uring: the time from the completion of an operation until the worker saw the
    /// completion, which shows how busy the lanes were. Each delay is an upper bound, because the operation may have
    /// completed at any time since the lane last looked at the ring. Null if no completion of a ring was recorded, as
    /// without io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_delay: Option<OperationFigures>,
    /// Figures of all workers up to the finish of the first worker; null for a single worker, and if a worker did not
    /// finish by itself in the window.
    pub first_done: Option<CompletedFigures>,
    /// Figures of all workers up to the finish of the last worker; null if `first_done` is null.
    pub last_done: Option<CompletedFigures>,
    /// Resources used by the process and the machine during the window.
    pub system: SystemUse,
    /// Bytes read by operations, and the part that the client's own cache served; null if nothing was read, or if the
    /// source of the data is unknown.
    pub client_cache: Option<ClientCache>,
    /// Figures of the simulated system in the window; null if the target is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationFigures>,
}

/// Figures of all workers up to the finish of the first or of the last worker.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompletedFigures {
    /// Time of the finish of the first or last worker, in seconds since the window opened.
    pub after_s: f64,
    /// Number of counted operations of all workers up to the finish. At the first finish of several ranks, the number
    /// of each other rank's operations is interpolated linearly from zero to the rank's own first finish.
    pub ops: u64,
    /// Throughput of all workers: the operations in `ops` per second up to the finish.
    pub ops_per_s: f64,
    /// Bytes that the operations in `ops` moved up to the finish, read and written.
    pub bytes: u128,
    /// Throughput of all workers in bytes: the bytes in `bytes` per second up to the finish.
    pub bytes_per_s: f64,
}

/// A measured stage of a pattern: one iteration of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Number of the stage in the list of the pattern's stages, from 0.
    pub stage: u32,
    /// Name of the stage's phase, such as `precreate`.
    pub name: String,
    /// Number of the iteration of the stage's phase, from 0.
    pub iteration: u32,
    /// Window of all ranks, as long as the slowest rank took. Rates in MD-Workbench's output lines are over the window
    /// without the time that a rank needs to begin and to report.
    pub window: Window,
    /// Results of each rank in the stage, such as times and completed rounds, in rank order.
    pub ranks: Vec<RankStage>,
}

/// Statistics of the values that a `testrandvar` flowop drew from its random variable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariableFigures {
    /// Name that the workload gives to the `testrandvar` flowop.
    pub name: String,
    /// Number of values that the flowop drew.
    pub draws: u64,
    /// Arithmetic mean of the values that the flowop drew.
    pub mean: f64,
    /// Standard deviation of the values that the flowop drew.
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
