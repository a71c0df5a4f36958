//! A run of a series, with the figures for tables of the series.

use crate::series::margin::margin;
use crate::series::{NextRun, Purpose};
use crate::simulation::ElementTime;
use crate::{
    CommandRun, MixFigures, OperationFigures, Percentile, PercentileFigure, Percentiles, Reason,
    ResultsError, Run, RunDir, Verdict,
};
use plimsoll_measure::Bottleneck;
use plimsoll_plan::{Criteria, OpKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A run of a series that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRun {
    /// Results directory, relative to the series'.
    pub directory: String,
    /// Number of the run's configuration in the series, from 0.
    pub configuration: u32,
    /// Root of all random choices of the run.
    pub seed: u64,
    /// Offered load in business metrics, of a curve or a search; null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// Purpose of the run in a search; null elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
    /// Minimum distance of rates and latency from their criteria, as a fraction of the criterion:
    /// above 0 the run passed, below 0 it failed. Null if nothing can be compared, if an operation
    /// failed, and if the run was client-limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Throughput achieved, in operations per second.
    pub achieved_ops_per_s: f64,
    /// Mean response time in milliseconds: from the intended start of operations to their return. Of
    /// operations that are not paced it is the service time. Null if no operation completed.
    pub mean_ms: Option<f64>,
    /// Judgement of the run; `valid` if it met every criterion.
    pub verdict: Verdict,
    /// Reasons why it is not valid; empty if it is.
    pub reasons: Vec<Reason>,
    /// Results of the criteria.
    pub criteria: Vec<CriterionResult>,
    /// Offered throughput in operations per second; null if the workload is not paced.
    pub offered_ops_per_s: Option<f64>,
    /// Minimum percentage of its scheduled operations that a process completed; null without pacing.
    pub slowest_process_percent: Option<f64>,
    /// Median of the response time in milliseconds; null if no operation completed or was in flight. If
    /// none completed and some were in flight at the end, all percentiles are lower bounds;
    /// `percentiles` states which are.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the response time in milliseconds; null if the median is.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the response time in milliseconds; null if the median is.
    pub p99_ms: Option<f64>,
    /// Maximum response time in milliseconds; null if the median is.
    pub max_ms: Option<f64>,
    /// Whether the maximum is only a lower bound, from an operation in flight at the end.
    pub max_at_least: bool,
    /// More percentiles of the response time, in increasing order.
    pub percentiles: Vec<PercentileFigure>,
    /// Mean service time in milliseconds: from call to return; null if no operation completed.
    pub service_mean_ms: Option<f64>,
    /// Bytes per second read from the target; operations that read and write count in both.
    pub read_bytes_per_s: f64,
    /// Bytes per second written to the target.
    pub write_bytes_per_s: f64,
    /// Bytes per second moved by all operations, each counted once.
    pub bytes_per_s: f64,
    /// Operations that failed.
    pub errors: u64,
    /// Seconds measured.
    pub window_s: f64,
    /// Where the response time went: at each element of a simulated system, as the mean of an operation;
    /// what is missing from the mean response time was spent at the client, before the operation was
    /// sent. Empty if the target is real.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_at: Vec<ElementTime>,
    /// The station that limited the simulated system; null if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// User's commands that ran before and after the phases of the run, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRun>,
    /// Start of the run: RFC 3339, in UTC.
    pub started_at: String,
}

/// Result of one criterion for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionResult {
    /// A word for programs, such as `total_rate`; that of the reason if it failed.
    pub code: String,
    /// Whether the run met it.
    pub met: bool,
    /// A sentence for people, with the figure and the requirement.
    pub text: String,
}

impl SeriesRun {
    /// The entry of `run`, which was made for `next`; `directory` is the name of its results directory.
    #[must_use]
    pub fn of(run: &Run, next: &NextRun, directory: &str) -> Self {
        let total = run.mix.as_ref().map(|m| &m.total);
        let summary = &run.summary;
        let moved = |by: fn(OpKind) -> bool| -> f64 {
            let rows = run.operations.iter().filter(|o| by(o.kind));
            rows.map(|o| o.bytes_per_s).sum()
        };
        let mut reasons = run.validity.reasons.clone();
        if let Some(failure) = &run.failure
            && !reasons.iter().any(|r| r.code == "failed")
        {
            reasons.push(Reason::new("failed", failure.to_string()));
        }
        let criteria = match (&run.plan.metric, run.window_number) {
            (Some(metric), 1..) => results(run, &metric.criteria),
            _ => vec![],
        };
        // Without completed operations there are no latencies.
        let of_done = |ms: f64| (summary.ops > 0).then_some(ms);
        // An operation in flight at the end gives a lower bound of percentiles, but no mean.
        let known = |ms: f64| summary.has_latencies().then_some(ms);
        let counted = || run.operations.iter().filter(|o| o.kind.counts());
        let max_ms = counted().map(|o| o.latency.max_ms).fold(0.0, f64::max);
        let bounds = |o: &OperationFigures| o.latency.max_ms >= max_ms && o.latency.max_at_least;
        let simulation = run.simulation.as_ref();
        let mut entry = Self {
            directory: directory.to_owned(),
            configuration: next.configuration,
            seed: next.seed,
            load: next.load,
            purpose: next.purpose,
            margin: None,
            achieved_ops_per_s: summary.ops_per_s,
            mean_ms: of_done(summary.mean_ms),
            verdict: run.validity.verdict,
            reasons,
            criteria,
            offered_ops_per_s: total.and_then(|t| t.offered_ops_per_s),
            slowest_process_percent: total.and_then(|t| t.slowest_process_percent),
            p50_ms: known(summary.p50_ms),
            p95_ms: summary
                .percentile(Percentile::P95)
                .and_then(|p95| known(p95.ms)),
            p99_ms: known(summary.p99_ms),
            max_ms: known(max_ms),
            max_at_least: counted().any(bounds),
            percentiles: summary.percentiles.clone(),
            service_mean_ms: of_done(summary.service().mean_ms),
            read_bytes_per_s: moved(OpKind::reads),
            write_bytes_per_s: moved(OpKind::writes),
            bytes_per_s: summary.bytes_per_s,
            errors: summary.errors,
            window_s: run.window_s,
            time_at: simulation.map_or_else(Vec::new, |s| s.mean_times(&run.operations)),
            bottleneck: simulation.and_then(|s| s.bottleneck.clone()),
            commands: run.commands.clone(),
            started_at: run.started_at.clone(),
        };
        if next.load.is_some() && !entry.is_client_limited() {
            entry.margin = margin(run).map(|m| {
                // The margin is an estimate, because processes of one component may have different numbers of scheduled
                // operations, of which only the mean is known here. The exact verdict decides the sign.
                if entry.is_valid() {
                    m.max(0.0)
                } else {
                    m.min(0.0)
                }
            });
        }
        entry
    }

    /// Whether the run met every criterion.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.verdict == Verdict::Valid
    }

    /// Whether the load was paced, so that response and service times differ.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.percentiles.iter().any(|p| p.service_ms.is_some())
    }

    /// Whether the run was measured to its end, so that its verdict is valid or invalid.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        matches!(self.verdict, Verdict::Valid | Verdict::Invalid)
    }

    /// The reason why a series ended with this failed run.
    #[must_use]
    pub fn failure(&self) -> Reason {
        let texts: Vec<&str> = self.reasons.iter().map(|r| r.text.as_str()).collect();
        let texts = texts.join("; ");
        let text = match self.load {
            Some(load) => format!("load {load}: {texts}"),
            None => texts,
        };
        Reason::new("failed", text)
    }

    /// Adds missing percentiles from the results of the run.
    pub(crate) fn add_percentiles(
        &mut self,
        run: &RunDir,
        wanted: &Percentiles,
    ) -> Result<(), ResultsError> {
        let kept = |p: &Percentile| self.percentiles.iter().any(|f| f.percentile == *p);
        if !wanted.as_slice().iter().all(kept) {
            self.percentiles = run.read_with(Some(wanted))?.summary.percentiles;
        }
        Ok(())
    }

    /// A percentile of the response time; `None` if the entry does not have it.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<PercentileFigure> {
        let ms = match percentile {
            Percentile::P50 => self.p50_ms,
            Percentile::P95 => self.p95_ms,
            Percentile::P99 => self.p99_ms,
            _ => None,
        };
        // The entry does not contain the number of operations, which follows from rate and time.
        let ops = (self.achieved_ops_per_s * self.window_s).round() as u64;
        let ops = self.mean_ms.map_or(0, |_| ops.max(1));
        let known = self.mean_ms.or(self.p50_ms).is_some();
        percentile.find(&self.percentiles, (ops, known), ms.map(|ms| (ms, None)))
    }
}

/// Results of the criteria for a run, in a fixed order.
fn results(run: &Run, criteria: &Criteria) -> Vec<CriterionResult> {
    let mix = run.mix.as_ref();
    let mut met = Vec::new();
    if let Some(slowest) = mix.and_then(|m| m.total.slowest_process_percent) {
        let required = criteria.process_percent;
        let text = format!(
            "every process completed at least {slowest:.1} % of its scheduled operations; {required} % are required"
        );
        met.push(("process_rate", text));
    }
    if let Some(percent) = mix.and_then(sustained_percent) {
        let required = criteria.total_percent;
        let text = format!(
            "all processes together completed {percent:.1} % of their scheduled operations; {required} % are required"
        );
        met.push(("total_rate", text));
    }
    met.push(("errors", "no operation failed".to_owned()));
    if let Some(limit) = criteria.latency {
        let mean = run.summary.mean_ms;
        let limit = limit.as_secs_f64() * 1e3;
        let text = format!("the mean response time was {mean:.3} ms; the limit is {limit} ms");
        met.push(("latency", text));
    }
    if mix.is_some_and(|m| m.total.offered_ops_per_s.is_some()) {
        let text = "the client had processor time left".to_owned();
        met.push(("client_saturated", text));
    }
    let is_throttled = run
        .validity
        .reasons
        .iter()
        .any(|r| r.code == "client_throttled");
    if is_throttled || run.system.quota.is_some() {
        let text = "a CPU quota held up the client for at most a twentieth of the time";
        met.push(("client_throttled", text.to_owned()));
    }
    if let Some(late) = mix.and_then(|m| m.total.start_delay) {
        let text = format!(
            "the client began operations {:.3} ms after their scheduled start, on average",
            late.mean_ms
        );
        met.push(("client_start_delay", text));
    }
    let text = "the target did not stall at the end, nor for more than a twentieth of the time";
    met.push(("stalled", text.to_owned()));
    let missed = |code: &str| run.validity.reasons.iter().find(|r| r.code == code);
    let result = |(code, text): (&str, String)| CriterionResult {
        code: code.into(),
        met: missed(code).is_none(),
        text: missed(code).map_or(text, |r| r.text.clone()),
    };
    met.into_iter().map(result).collect()
}

/// Percentage of the scheduled operations that completed.
fn sustained_percent(mix: &MixFigures) -> Option<f64> {
    let total = &mix.total;
    total.offered_ops_per_s?;
    (total.scheduled > 0).then(|| 100.0 * total.completed as f64 / total.scheduled as f64)
}
