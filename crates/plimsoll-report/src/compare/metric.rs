//! Figures that are compared.

use crate::format::{latency, rate};
use plimsoll_plan::{Count, Figure};
use plimsoll_results::Percentile;
use serde::Serialize;
use std::fmt;

/// A compared figure, in the order of the tables. The JSON form is a name such as `ops_per_s` or `p99_ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub enum Metric {
    /// Operations per second.
    OpsPerS,
    /// MiB per second.
    MibPerS,
    /// Mean latency in milliseconds: response time of paced operations, service time of other operations.
    MeanMs,
    /// Percentile of the latency in milliseconds.
    PercentileMs(Percentile),
    /// Mean service time in milliseconds, of paced results.
    ServiceMeanMs,
    /// Percentile of the service time in milliseconds, of paced results.
    ServicePercentileMs(Percentile),
    /// Processor time per operation in microseconds.
    CpuUsPerOp,
    /// Failed operations.
    Errors,
    /// Highest valid load of a curve.
    Peak,
    /// Overall response time of a curve by the rule of SPEC SFS 2014, in milliseconds.
    OrtMs,
    /// Overall response time of a curve by the rule of SPECsfs2008, in milliseconds.
    Ort2008Ms,
}

/// Compared figures other than percentiles, each with its name in JSON and its table title.
const NAMED_METRICS: [(Metric, [&str; 2]); 9] = [
    (Metric::OpsPerS, ["ops_per_s", "ops/s"]),
    (Metric::MibPerS, ["mib_per_s", "MiB/s"]),
    (Metric::MeanMs, ["mean_ms", "mean latency"]),
    (
        Metric::ServiceMeanMs,
        ["service_mean_ms", "mean service time"],
    ),
    (Metric::CpuUsPerOp, ["cpu_us_per_op", "CPU µs/op"]),
    (Metric::Errors, ["errors", "errors"]),
    (Metric::Peak, ["highest_valid_load", "highest valid load"]),
    (Metric::OrtMs, ["ort_ms", "overall response time"]),
    (
        Metric::Ort2008Ms,
        ["ort_2008_ms", "overall response time (2008 rule)"],
    ),
];

/// Figures of curves, each with its name in conditions; the other figures have the names of
/// [`Figure`](plimsoll_plan::Figure).
const CURVE_METRICS: [(Metric, &str); 3] = [
    (Metric::Peak, "highest-valid-load"),
    (Metric::OrtMs, "ort"),
    (Metric::Ort2008Ms, "ort2008"),
];

/// List of the figures in conditions, for error messages.
pub(super) const METRIC_HELP: &str = "ops/s, MiB/s, mean, a percentile such as p50 or p99.99, service mean, service p99 and \
                                other percentiles of the service time, cpu, errors, highest-valid-load, ort, ort2008";

impl Metric {
    /// Name of the figure in conditions.
    #[must_use]
    pub fn name(self) -> String {
        let figure = match self {
            Self::OpsPerS => Figure::OpsPerS,
            Self::MibPerS => Figure::MibPerS,
            Self::MeanMs => Figure::Mean,
            Self::PercentileMs(p) => Figure::Percentile(p),
            Self::ServiceMeanMs => Figure::ServiceMean,
            Self::ServicePercentileMs(p) => Figure::ServicePercentile(p),
            Self::CpuUsPerOp => Figure::Cpu,
            Self::Errors => Figure::Errors,
            Self::Peak | Self::OrtMs | Self::Ort2008Ms => {
                let named = CURVE_METRICS.iter().find(|(metric, _)| *metric == self);
                return named
                    .expect("every figure of curves has a name")
                    .1
                    .to_owned();
            }
        };
        figure.to_string()
    }

    /// The figure with a name in conditions.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        if let Some((metric, _)) = CURVE_METRICS.iter().find(|(_, known)| *known == name) {
            return Some(*metric);
        }
        match Figure::of_name(name)? {
            Figure::OpsPerS => Some(Self::OpsPerS),
            Figure::MibPerS => Some(Self::MibPerS),
            Figure::Mean => Some(Self::MeanMs),
            Figure::Percentile(p) => Some(Self::PercentileMs(p)),
            Figure::ServiceMean => Some(Self::ServiceMeanMs),
            Figure::ServicePercentile(p) => Some(Self::ServicePercentileMs(p)),
            Figure::Cpu => Some(Self::CpuUsPerOp),
            Figure::Errors => Some(Self::Errors),
            Figure::ErrorShare | Figure::Stalled | Figure::Client | Figure::QueueGrowth => None,
        }
    }

    /// Name in JSON and table title of a figure; a percentile has no entry in [`NAMED_METRICS`] and is not permitted.
    fn named(self) -> [&'static str; 2] {
        let found = NAMED_METRICS.iter().find(|(metric, _)| *metric == self);
        found.expect("every figure but percentiles has a name").1
    }

    /// Title of the table that compares the figure in all results, such as `median latency` or `p99 service time`.
    #[must_use]
    pub fn title(self) -> String {
        let of = |p: Percentile, what: &str| match p {
            Percentile::P50 => format!("median {what}"),
            p => format!("{p} {what}"),
        };
        match self {
            Self::PercentileMs(p) => of(p, "latency"),
            Self::ServicePercentileMs(p) => of(p, "service time"),
            _ => self.named()[1].to_owned(),
        }
    }

    /// Formats a value of the figure for a table cell, with the precision of the figure.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::OpsPerS | Self::MibPerS => rate(value),
            Self::CpuUsPerOp => format!("{value:.1}"),
            Self::Errors if value.fract() == 0.0 => Count(value as u64).to_string(),
            Self::Errors => format!("{value:.1}"),
            Self::Peak => rate(value),
            _ => latency(value),
        }
    }

    /// Percentile of a latency or service time; `None` for figures such as the mean latency or the error count.
    #[must_use]
    pub fn percentile(self) -> Option<Percentile> {
        match self {
            Self::PercentileMs(p) | Self::ServicePercentileMs(p) => Some(p),
            _ => None,
        }
    }

    /// Whether the figure is a service time, which equals the latency of unpaced operations.
    pub(super) fn is_service(self) -> bool {
        matches!(self, Self::ServiceMeanMs | Self::ServicePercentileMs(_))
    }

    /// Whether tables leave the figure out if it is zero in all results.
    pub(crate) fn is_hidden_at_zero(self) -> bool {
        matches!(self, Self::Errors | Self::MibPerS)
    }

    /// Whether a greater value is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::OpsPerS | Self::MibPerS | Self::Peak)
    }
}

/// Name of a percentile in JSON, such as `p99_ms` and `p99.99_ms`; the 99.9th percentile is `p999_ms`.
fn json_name(percentile: Percentile) -> String {
    match percentile {
        Percentile::P999 => "p999_ms".into(),
        p => format!("{p}_ms"),
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        match metric {
            Metric::PercentileMs(p) => json_name(p),
            Metric::ServicePercentileMs(p) => format!("service_{}", json_name(p)),
            _ => metric.named()[0].to_owned(),
        }
    }
}
