//! Percentiles in tables, and the marks of those that are uncertain.

use crate::format::latency;
use plimsoll_results::{LatencyFigures, OperationFigures, Percentile, PercentileFigure};

/// Percentiles of the lines and tables that show few.
pub const BRIEF_PERCENTILES: [Percentile; 2] = [Percentile::P50, Percentile::P99];

/// Mark after a percentile of too few operations.
pub const UNCERTAIN_MARK: &str = "?";

/// Explanation of [`UNCERTAIN_MARK`] below a table.
pub const UNCERTAIN_NOTE: &str = "?: fewer operations than the percentile needs (100 for p99, 1 000 for p99.9); the \
                            maximum latency is shown instead";

/// Mark before a time that is only a lower bound, because of operations in flight at the end.
pub const LOWER_BOUND_MARK: &str = "≥ ";

/// Explanation of [`LOWER_BOUND_MARK`] below a table.
pub const LOWER_BOUND_NOTE: &str = "≥: a lower bound; operations in flight at the end had taken that long, and none \
                                    that completed took longer";

/// Formats a time as [`latency`] does, with a mark if it is a lower bound.
#[must_use]
pub fn bounded(ms: f64, at_least: bool) -> String {
    if at_least {
        format!("{LOWER_BOUND_MARK}{}", latency(ms))
    } else {
        latency(ms)
    }
}

/// Formats the maximum latency or service time of an operation; `-` if it is not known.
#[must_use]
pub fn max_latency(o: &OperationFigures, of: PercentileKind) -> String {
    if !o.has_latencies() {
        return "-".into();
    }
    let figures = of.figures(o);
    bounded(figures.max_ms, figures.max_at_least)
}

/// Formats a figure of the completed operations, such as their mean; `-` if none completed.
#[must_use]
pub fn of_completed(o: &OperationFigures, ms: f64) -> String {
    match o.ops {
        0 => "-".into(),
        _ => latency(ms),
    }
}

/// Kind of a percentile's figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PercentileKind {
    /// The latency.
    Latency,
    /// The service time.
    Service,
}

impl PercentileKind {
    /// The figures of this kind of an operation.
    pub(crate) fn figures(self, o: &OperationFigures) -> &LatencyFigures {
        match self {
            Self::Latency => &o.latency,
            Self::Service => o.service(),
        }
    }

    /// The time of a percentile in milliseconds; both kinds are equal if nothing was paced.
    #[must_use]
    pub fn ms(self, figure: &PercentileFigure) -> f64 {
        match self {
            Self::Latency => figure.ms,
            Self::Service => figure.service_ms.unwrap_or(figure.ms),
        }
    }

    /// Whether that is only a lower bound. Older results have one mark for both kinds.
    #[must_use]
    pub fn at_least(self, figure: &PercentileFigure) -> bool {
        match self {
            Self::Latency => figure.at_least,
            Self::Service => figure.service_at_least.unwrap_or(figure.at_least),
        }
    }
}

/// Formats a percentile, with a mark if it has too few operations; `-` if it is not known.
#[must_use]
pub fn shown(figure: Option<PercentileFigure>, of: PercentileKind) -> String {
    let Some(figure) = figure else {
        return "-".into();
    };
    let mark = if figure.enough_samples {
        ""
    } else {
        UNCERTAIN_MARK
    };
    bounded(of.ms(&figure), of.at_least(&figure)) + mark
}

/// Whether any of some percentiles has too few operations.
pub(crate) fn any_doubtful(figures: impl IntoIterator<Item = Option<PercentileFigure>>) -> bool {
    figures.into_iter().flatten().any(|f| !f.enough_samples)
}
