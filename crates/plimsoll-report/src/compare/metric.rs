//! Figures that are compared.

use crate::format::{latency, rate};
use plimsoll_plan::Count;
use serde::{Deserialize, Serialize};

/// A figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Operations a second.
    OpsPerS,
    /// MiB a second.
    MibPerS,
    /// Mean latency in milliseconds: response time of paced operations, service time of the others.
    MeanMs,
    /// Median latency in milliseconds.
    P50Ms,
    /// 99th percentile of the latency in milliseconds.
    P99Ms,
    /// 99.9th percentile of the latency in milliseconds.
    P999Ms,
    /// Mean service time in milliseconds, of results that were paced.
    ServiceMeanMs,
    /// Median of the service time in milliseconds, of results that were paced.
    ServiceP50Ms,
    /// 99th percentile of the service time in milliseconds, of results that were paced.
    ServiceP99Ms,
    /// 99.9th percentile of the service time in milliseconds, of results that were paced.
    ServiceP999Ms,
    /// Processor time of an operation in microseconds.
    CpuUsPerOp,
    /// Failed operations.
    Errors,
    /// Overall response time of a curve by the rule of SPEC SFS 2014, in milliseconds.
    OrtMs,
    /// The same by the rule of SPECsfs2008.
    Ort2008Ms,
    /// Highest valid load of a curve.
    Peak,
}

impl Metric {
    /// All of them, in the order they are shown in.
    pub const ALL: [Self; 15] = [
        Self::OpsPerS,
        Self::MibPerS,
        Self::MeanMs,
        Self::P50Ms,
        Self::P99Ms,
        Self::P999Ms,
        Self::ServiceMeanMs,
        Self::ServiceP50Ms,
        Self::ServiceP99Ms,
        Self::ServiceP999Ms,
        Self::CpuUsPerOp,
        Self::Errors,
        Self::Peak,
        Self::OrtMs,
        Self::Ort2008Ms,
    ];

    /// Name in conditions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpsPerS => "ops/s",
            Self::MibPerS => "MiB/s",
            Self::MeanMs => "mean",
            Self::P50Ms => "p50",
            Self::P99Ms => "p99",
            Self::P999Ms => "p99.9",
            Self::ServiceMeanMs => "service mean",
            Self::ServiceP50Ms => "service p50",
            Self::ServiceP99Ms => "service p99",
            Self::ServiceP999Ms => "service p99.9",
            Self::CpuUsPerOp => "cpu",
            Self::Errors => "errors",
            Self::OrtMs => "ort",
            Self::Ort2008Ms => "ort2008",
            Self::Peak => "peak",
        }
    }

    /// Heading of a table of it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::OpsPerS => "ops/s",
            Self::MibPerS => "MiB/s",
            Self::MeanMs => "mean latency",
            Self::P50Ms => "median latency",
            Self::P99Ms => "p99 latency",
            Self::P999Ms => "p99.9 latency",
            Self::ServiceMeanMs => "mean service time",
            Self::ServiceP50Ms => "median service time",
            Self::ServiceP99Ms => "p99 service time",
            Self::ServiceP999Ms => "p99.9 service time",
            Self::CpuUsPerOp => "CPU µs/op",
            Self::Errors => "errors",
            Self::OrtMs => "overall response time",
            Self::Ort2008Ms => "overall response time by the rule of 2008",
            Self::Peak => "highest valid load",
        }
    }

    /// A value as a person reads it.
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

    /// Whether it is of the service time, which is the latency itself where nothing was paced.
    pub(super) fn is_service(self) -> bool {
        matches!(
            self,
            Self::ServiceMeanMs | Self::ServiceP50Ms | Self::ServiceP99Ms | Self::ServiceP999Ms
        )
    }

    /// Whether more of it is better.
    #[must_use]
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::OpsPerS | Self::MibPerS | Self::Peak)
    }
}
