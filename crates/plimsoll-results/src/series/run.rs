//! A run of a series, with the figures for tables of the series.

use crate::series::margin::margin;
use crate::series::{NextRun, PhaseFigures, Purpose, Settling};
use crate::simulation::ElementTime;
use crate::{
    CommandRun, MixFigures, OperationFigures, Percentile, PercentileFigure, Percentiles,
    PromiseResult, Qualifier, QualifierKind, Reason, ResultsError, Run, RunDir, Verdict,
};
use plimsoll_measure::{Bottleneck, Stationarity};
use plimsoll_plan::{Criteria, OpKind, Requirement};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Entry of a finished run in `series.json`, with the figures for the tables of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRun {
    /// Results directory of the run, relative to the directory of the series.
    pub directory: String,
    /// Number of the run's configuration in the series, from 0.
    pub configuration: u32,
    /// Seed of the run, from which all random choices follow.
    pub seed: u64,
    /// Offered load in business metrics; null unless the series is a curve or a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// Value of the parameter in a search over a parameter, in its unit; null in other series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Purpose of the run in a search; null in other series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
    /// Margin: the smallest relative distance of the run's figures from the criteria and promises, as a fraction of the
    /// limit. Above 0 the run passed, below 0 the run failed. Null except in a load curve and a search, without a
    /// comparable figure, if an operation failed, and if the client limited the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Achieved rate: successful counted operations per second of the measured window.
    pub achieved_ops_per_s: f64,
    /// Mean response time in milliseconds, from intended start to return of the operations; for operations that are not
    /// paced, the mean service time. Null if no operation completed.
    pub mean_ms: Option<f64>,
    /// Judgement of the run; `valid` if the run met every criterion.
    pub verdict: Verdict,
    /// Reasons why the run is not valid; empty for a valid run.
    pub reasons: Vec<Reason>,
    /// Qualifiers of the run as in `run.json`, except that the series consists of one run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub qualifiers: Vec<Qualifier>,
    /// Results of the criteria of a valid load point; empty without a business metric, and if nothing was measured.
    pub criteria: Vec<CriterionResult>,
    /// Judgement of the run by the promises of its Plan, as in `run.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<PromiseResult>,
    /// Offered rate: operations per second that the schedule starts; null if the workload is not a paced operation mix.
    pub offered_ops_per_s: Option<f64>,
    /// Completed operations of the slowest process, as a percentage of its scheduled operations; null without pacing.
    pub slowest_process_percent: Option<f64>,
    /// Median response time in milliseconds; null if no operation completed or was in flight. If operations were only
    /// in flight at the end and none completed, all percentiles are lower bounds. `percentiles` marks the percentiles
    /// that are lower bounds.
    pub p50_ms: Option<f64>,
    /// 95th percentile of the response time in milliseconds; null if the median is null.
    pub p95_ms: Option<f64>,
    /// 99th percentile of the response time in milliseconds; null if the median is null.
    pub p99_ms: Option<f64>,
    /// Maximum response time in milliseconds; null if the median is null.
    pub max_ms: Option<f64>,
    /// Whether the maximum is only a lower bound, because an operation in flight at the end has lasted longer than any
    /// completed operation.
    pub max_at_least: bool,
    /// Further percentiles of the response time, in increasing order: the percentiles that every run keeps, and the
    /// requested percentiles.
    pub percentiles: Vec<PercentileFigure>,
    /// Mean service time in milliseconds, from call to return; null if no operation completed.
    pub service_mean_ms: Option<f64>,
    /// Bytes per second moved by operations that read from the target. Operations that both read and write count with
    /// all their bytes, here and in `write_bytes_per_s`.
    pub read_bytes_per_s: f64,
    /// Bytes per second moved by operations that write to the target. Operations that both read and write count with
    /// all their bytes, here and in `read_bytes_per_s`.
    pub write_bytes_per_s: f64,
    /// Bytes per second moved by all operations, with the bytes of each operation counted once.
    pub bytes_per_s: f64,
    /// Number of failed operations of the run, of every class.
    pub errors: u64,
    /// Length of the run's measured window in seconds; 0 if nothing was measured.
    pub window_s: f64,
    /// Whether the rate of all counted operations together stayed the same during the measured window; null as in
    /// `run.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stationarity: Option<Stationarity>,
    /// Mean time of an operation at each element of a simulated system. The rest of the mean response time was spent at
    /// the client, before the operation was sent. Empty if the target is real.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_at: Vec<ElementTime>,
    /// Bottleneck: the station of the simulated system with the busiest instance; null if no station was busy, and if
    /// the target is real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<Bottleneck>,
    /// Figures of the phase of a suite; null in other series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PhaseFigures>,
    /// Wait before the run for the machine to come to rest; null without such a wait, and if the process of the run ended
    /// before it listed the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settling: Option<Settling>,
    /// The user's commands that ran before the run, whose phase is `run`, and before and after phases of the run, in
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRun>,
    /// Time of day at which the run began: RFC 3339, in UTC.
    pub started_at: String,
}

/// Result of one criterion of a valid load point for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CriterionResult {
    /// Code of the criterion for programs, such as `total_rate`; equal to the code of the run's reason if the run
    /// missed the criterion.
    pub code: String,
    /// Whether the run met the criterion; a run that missed a criterion is invalid.
    pub met: bool,
    /// Sentence for people with the measured figure and the requirement of the criterion; the text of the run's reason
    /// if the run missed the criterion.
    pub text: String,
}

impl SeriesRun {
    /// Load of a run of a curve or a search, or value of the parameter in a search over a parameter; `None` in other
    /// series.
    #[must_use]
    pub fn load_or_value(&self) -> Option<u64> {
        self.load.or(self.value)
    }

    /// Makes the entry of `run`, which was made for the request `next`; `directory` is the name of the run's results
    /// directory.
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
        // Runs beside the run may show the spread.
        let qualifiers = run.qualifiers.iter();
        let qualifiers = qualifiers.filter(|q| q.kind != QualifierKind::OneRun);
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
            value: next.value,
            purpose: next.purpose,
            margin: None,
            achieved_ops_per_s: summary.ops_per_s,
            mean_ms: of_done(summary.mean_ms),
            verdict: run.validity.verdict,
            reasons,
            qualifiers: qualifiers.cloned().collect(),
            criteria,
            promises: run.promises.clone(),
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
            stationarity: run.stationarity.clone(),
            time_at: simulation.map_or_else(Vec::new, |s| s.mean_times(&run.operations)),
            bottleneck: simulation.and_then(|s| s.bottleneck.clone()),
            phase: PhaseFigures::of(run),
            settling: None,
            commands: run.commands.clone(),
            started_at: run.started_at.clone(),
        };
        let is_judged = next.load.is_some() || next.purpose.is_some();
        if is_judged && !entry.is_client_limited() {
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

    /// Whether the verdict of the run is valid: the run met every criterion.
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
        self.verdict.is_measured()
    }

    /// The reason why a series ended with this failed run: the texts of the run's reasons, with the load.
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

    /// Adds the wanted percentiles that the entry lacks, from the results of the run.
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

    /// The response time at a percentile; `None` if the run stored no such percentile, and without latencies.
    #[must_use]
    pub fn percentile(&self, percentile: Percentile) -> Option<PercentileFigure> {
        let known = self.mean_ms.or(self.p50_ms).is_some();
        PercentileFigure::find(&self.percentiles, percentile, known)
    }
}

/// Results of all criteria that apply to a run, in a fixed order.
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
    let is_paced = mix.is_some_and(|m| m.total.offered_ops_per_s.is_some());
    if is_paced && criteria.refuses_queue_growth() {
        let text = "the queue of the target did not grow steadily through the measured window";
        met.push(("queue_growth", text.to_owned()));
    }
    let text = "the target did not stall at the end, nor for more than a twentieth of the time";
    met.push(("stalled", text.to_owned()));
    for requirement in &run.plan.options.require {
        let text = match (requirement, &run.stationarity) {
            (Requirement::Steady, Some(rate)) => {
                format!("the rate was steady, as required: {rate}")
            }
            (Requirement::Steady, None) => continue,
            (Requirement::Storage, _) => "the figures are of the storage, as required".into(),
            (Requirement::Quiet, _) => "the machine was not shared, as required".into(),
        };
        met.push((requirement.reason_code(), text));
    }
    let missed = |code: &str| run.validity.reasons.iter().find(|r| r.code == code);
    let result = |(code, text): (&str, String)| CriterionResult {
        code: code.into(),
        met: missed(code).is_none(),
        text: missed(code).map_or(text, |r| r.text.clone()),
    };
    met.into_iter().map(result).collect()
}

/// Percentage of the scheduled operations of all processes that completed; `None` without a schedule.
fn sustained_percent(mix: &MixFigures) -> Option<f64> {
    let total = &mix.total;
    total.offered_ops_per_s?;
    (total.scheduled > 0).then(|| 100.0 * total.completed as f64 / total.scheduled as f64)
}
