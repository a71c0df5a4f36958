//! Percentiles in tables, and the marks of those that are uncertain.

use crate::format::latency;
use plimsoll_results::{LatencyFigures, OperationFigures, Percentile, PercentileFigure};

/// Default percentiles of lines and short tables.
pub const BRIEF_PERCENTILES: [Percentile; 2] = [Percentile::P50, Percentile::P99];

/// Mark after a percentile with too few operations.
pub const UNCERTAIN_MARK: &str = "?";

/// Explanation of [`UNCERTAIN_MARK`] below a table.
pub const UNCERTAIN_NOTE: &str = "?: fewer operations than the percentile needs (100 for p99, 1 000 for p99.9); the \
                            maximum latency is shown instead";

/// Mark before a lower bound of a time.
pub const LOWER_BOUND_MARK: &str = "≥ ";

/// Explanation of [`LOWER_BOUND_MARK`] below a table.
pub const LOWER_BOUND_NOTE: &str = "≥: a lower bound; operations in flight at the end had taken that long, and none \
                                    that completed took longer";

/// A formatted figure with the marks of a lower bound and of too few operations.
pub(crate) fn marked(figure: &str, at_least: bool, enough_samples: bool) -> String {
    let bound = if at_least { LOWER_BOUND_MARK } else { "" };
    let doubt = if enough_samples { "" } else { UNCERTAIN_MARK };
    format!("{bound}{figure}{doubt}")
}

/// Formats a time in milliseconds as [`latency`] does, with a mark for a lower bound.
#[must_use]
pub fn bounded(ms: f64, at_least: bool) -> String {
    marked(&latency(ms), at_least, true)
}

/// Choice between the latency and the service time of a percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PercentileKind {
    /// The latency.
    Latency,
    /// The service time.
    Service,
}

impl PercentileKind {
    /// The latency figures of this kind.
    pub(crate) fn figures(self, o: &OperationFigures) -> &LatencyFigures {
        match self {
            Self::Latency => &o.latency,
            Self::Service => o.service(),
        }
    }

    /// Time of a percentile in milliseconds; the service time of unpaced operations equals the latency.
    #[must_use]
    pub fn ms(self, figure: &PercentileFigure) -> f64 {
        match self {
            Self::Latency => figure.ms,
            Self::Service => figure.service_ms.unwrap_or(figure.ms),
        }
    }

    /// Whether the percentile's time is only a lower bound, because of operations in flight at the end. Results of
    /// older versions have one mark for both latency and service time.
    #[must_use]
    pub fn at_least(self, figure: &PercentileFigure) -> bool {
        match self {
            Self::Latency => figure.at_least,
            Self::Service => figure.service_at_least.unwrap_or(figure.at_least),
        }
    }
}

/// Mean, minimum, 50th, 95th, 99th and 99.9th percentile, and maximum of an operation's latencies or service times in
/// milliseconds, for exports. If all calls are still in flight, mean and minimum are `None`, and percentiles and
/// maximum are lower bounds.
pub(crate) fn columns(o: &OperationFigures, f: &LatencyFigures) -> [Option<f64>; 7] {
    let completed = |ms: f64| (o.ops > 0).then_some(ms);
    let known = |ms: f64| o.has_latencies().then_some(ms);
    let [p50, p95, p99, p999, max] = [f.p50_ms, f.p95_ms, f.p99_ms, f.p999_ms, f.max_ms].map(known);
    let [mean, min] = [f.mean_ms, f.min_ms].map(completed);
    [mean, min, p50, p95, p99, p999, max]
}

/// Formats a percentile, with a mark for too few operations or a lower bound; `-` if unknown.
#[must_use]
pub fn shown(figure: Option<PercentileFigure>, of: PercentileKind) -> String {
    let Some(figure) = figure else {
        return "-".into();
    };
    let time = latency(of.ms(&figure));
    marked(&time, of.at_least(&figure), figure.enough_samples)
}

/// Whether any of the percentiles has too few operations.
pub(crate) fn any_doubtful(figures: impl IntoIterator<Item = Option<PercentileFigure>>) -> bool {
    figures.into_iter().flatten().any(|f| !f.enough_samples)
}
