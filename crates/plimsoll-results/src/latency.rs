//! Figures of latencies, and the kind of latency of an operation.

use plimsoll_measure::{InFlightAges, Latency};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of the latency of operations: the response time of an operation with an intended start, the service time of any
/// other operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKind {
    /// Latency of operations none of which was paced: the service time, from call to return.
    Service,
    /// Latency of operations all of which were paced: the response time, from intended start to return.
    Response,
    /// Latency of operations of which only some were paced: the response time of paced operations, the service time of
    /// the other operations.
    Mixed,
}

impl LatencyKind {
    /// The kind of latency of `ops` operations, of which `paced` had an intended start.
    #[must_use]
    pub fn of(paced: u64, ops: u64) -> Self {
        match paced {
            0 => Self::Service,
            n if n < ops => Self::Mixed,
            _ => Self::Response,
        }
    }

    /// Name of the kind, such as `service time`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "latency",
            one => one.words(),
        }
    }

    /// The kind of latency in words, for tables; the words for [`Self::Mixed`] name both kinds of time.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Service => "service time",
            Self::Response => "response time",
            Self::Mixed => "response time of what was paced, service time of the rest",
        }
    }
}

/// Figures of a latency distribution in milliseconds; all figures are 0 without operations.
///
/// Percentiles and the maximum include the ages of operations in flight at the window end, as censored observations: an
/// operation in flight takes at least as long as its age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyFigures {
    /// Arithmetic mean of the completed operations' latencies in milliseconds, exact.
    pub mean_ms: f64,
    /// Minimum latency of the completed operations in milliseconds, exact.
    pub min_ms: f64,
    /// Median latency in milliseconds, to three significant digits.
    pub p50_ms: f64,
    /// 95th percentile of the latency in milliseconds, to three significant digits.
    pub p95_ms: f64,
    /// 99th percentile of the latency in milliseconds, to three significant digits.
    pub p99_ms: f64,
    /// 99.9th percentile of the latency in milliseconds, to three significant digits.
    pub p999_ms: f64,
    /// Maximum latency in milliseconds, exact unless `max_at_least` is true.
    pub max_ms: f64,
    /// Whether the maximum latency, and every percentile that equals the maximum, is only a lower bound, because an
    /// operation in flight at the window end has lasted longer than any completed operation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub max_at_least: bool,
}

impl LatencyFigures {
    /// Computes the latency figures from the latencies of completed operations and the ages of operations in flight.
    #[must_use]
    pub fn of(latency: &Latency, ages: &InFlightAges) -> Self {
        let quantile = |q| ms(latency.quantile_with(ages, q).ns as f64);
        Self {
            mean_ms: ms(latency.mean()),
            min_ms: ms(latency.min() as f64),
            p50_ms: quantile(0.5),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: ms(latency.max().max(ages.oldest()) as f64),
            max_at_least: ages.oldest() > latency.max(),
        }
    }

    /// Whether a percentile of `value_ms` milliseconds is only a lower bound: at or beyond a maximum latency that is
    /// the age of an operation in flight.
    #[must_use]
    pub fn is_at_least(&self, value_ms: f64) -> bool {
        self.max_at_least && value_ms >= self.max_ms
    }
}

/// Figures of the latency distribution of all counted operations together, in milliseconds; all figures are 0 without
/// operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLatency {
    /// Arithmetic mean of the completed operations' latencies in milliseconds, exact.
    pub mean_ms: f64,
    /// Median latency in milliseconds, to three significant digits.
    pub p50_ms: f64,
    /// 99th percentile of the latency in milliseconds, to three significant digits.
    pub p99_ms: f64,
}

impl SummaryLatency {
    /// Computes the latency figures from the latencies of completed operations and the ages of operations in flight.
    #[must_use]
    pub fn of(latency: &Latency, ages: &InFlightAges) -> Self {
        let quantile = |q| ms(latency.quantile_with(ages, q).ns as f64);
        Self {
            mean_ms: ms(latency.mean()),
            p50_ms: quantile(0.5),
            p99_ms: quantile(0.99),
        }
    }
}

pub(crate) fn ms(ns: f64) -> f64 {
    ns / 1e6
}

/// Rate per second: the count `n` divided by a time in seconds; 0 for a time of 0.
pub fn per_second(n: impl Into<u128>, seconds: f64) -> f64 {
    if seconds > 0.0 {
        n.into() as f64 / seconds
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_named_by_what_was_paced() {
        for (paced, ops, kind, name) in [
            (0, 0, LatencyKind::Service, "service time"),
            (0, 5, LatencyKind::Service, "service time"),
            (1, 5, LatencyKind::Mixed, "latency"),
            (4, 5, LatencyKind::Mixed, "latency"),
            (5, 5, LatencyKind::Response, "response time"),
        ] {
            assert_eq!((LatencyKind::of(paced, ops), kind.name()), (kind, name));
            assert!(kind.words().contains(name) != (kind == LatencyKind::Mixed));
        }
        let mixed = "response time of what was paced, service time of the rest";
        assert_eq!(LatencyKind::Mixed.words(), mixed);
    }

    #[test]
    fn figures_are_in_milliseconds() {
        let latency = Latency::of((1..=1000).map(|n| n * 1_000_000));
        let none = InFlightAges::default();
        let figures = LatencyFigures::of(&latency, &none);
        assert_eq!(
            (figures.mean_ms, figures.min_ms, figures.max_ms),
            (500.5, 1.0, 1000.0)
        );
        let about = |got: f64, expected: f64| assert!((got / expected - 1.0).abs() < 1e-3, "{got}");
        about(figures.p50_ms, 500.0);
        about(figures.p95_ms, 950.0);
        about(figures.p99_ms, 990.0);
        about(figures.p999_ms, 999.0);
        let summary = SummaryLatency::of(&latency, &none);
        let expected = (figures.mean_ms, figures.p50_ms, figures.p99_ms);
        assert_eq!((summary.mean_ms, summary.p50_ms, summary.p99_ms), expected);
    }

    #[test]
    fn what_waits_longest_gives_lower_bounds() {
        let mut ages = InFlightAges::default();
        ages.add(50_000_000);
        let figures = |n: usize, took: u64| {
            LatencyFigures::of(&Latency::of(std::iter::repeat_n(took, n)), &ages)
        };
        let bounds = |f: &LatencyFigures| {
            let all = [f.p50_ms, f.p95_ms, f.p99_ms].map(|ms| f.is_at_least(ms));
            (all, f.max_at_least)
        };
        let one_of_fifty = figures(49, 10_000_000);
        assert_eq!((one_of_fifty.max_ms, one_of_fifty.mean_ms), (50.0, 10.0));
        assert_eq!(one_of_fifty.p99_ms, 50.0);
        assert_eq!(bounds(&one_of_fifty), ([false, false, true], true));
        let one_of_hundred = figures(99, 10_000_000);
        assert_eq!(bounds(&one_of_hundred), ([false; 3], true));
        let alone = figures(0, 0);
        assert_eq!(bounds(&alone), ([true; 3], true));
        // An operation in flight gives no lower bound if its age is at most the latency of the completed operations.
        for took in [50_000_000, 80_000_000] {
            let known = figures(49, took);
            assert_eq!(known.max_ms, took as f64 / 1e6);
            assert_eq!(bounds(&known), ([false; 3], false));
            let text = serde_json::to_string(&known).unwrap();
            assert!(!text.contains("at_least"));
        }
    }
}
