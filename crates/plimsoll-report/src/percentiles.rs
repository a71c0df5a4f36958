//! Percentiles in tables, and what is said of those that have too few operations.

use crate::format::latency;
use plimsoll_results::{OperationFigures, Percentile, PercentileFigure};

/// Percentiles of the lines and tables that show few.
pub const BRIEF_PERCENTILES: [Percentile; 2] = [Percentile::P50, Percentile::P99];

/// What stands behind a percentile of too few operations.
pub const UNCERTAIN_MARK: &str = "?";

/// What is said below a table in which that stands.
pub const UNCERTAIN_NOTE: &str = "?: fewer operations than the percentile needs (100 for p99, 1 000 for p99.9); the \
                            greatest latency stands for it";

/// What stands before a time that is only known to be at least so long, from operations under way at
/// the end.
pub const LOWER_BOUND_MARK: &str = "≥ ";

/// The sentence on that.
pub const AT_LEAST_MEANS: &str = "≥: it takes at least so long; operations were under way at the end that had waited \
                                  so long, and none of those that completed took longer";

/// A time as [`latency`] shows it, with a mark where it is a lower bound.
#[must_use]
pub fn bounded(ms: f64, at_least: bool) -> String {
    match at_least {
        true => format!("{LOWER_BOUND_MARK}{}", latency(ms)),
        false => latency(ms),
    }
}

/// The greatest latency of an operation, or its greatest service time, as [`latency`] shows it; `none`
/// where it is not known.
#[must_use]
pub fn greatest(o: &OperationFigures, of: PercentileKind, none: &str) -> String {
    if !o.has_latencies() {
        return none.to_owned();
    }
    match of {
        PercentileKind::Latency => bounded(o.latency.max_ms, o.is_at_least(o.latency.max_ms)),
        PercentileKind::Service => {
            let max_ms = o.service().max_ms;
            bounded(max_ms, o.is_service_at_least(max_ms))
        }
    }
}

/// A figure of the operations that completed, such as their mean, as [`latency`] shows it; `none` where
/// there are none.
#[must_use]
pub fn of_done(o: &OperationFigures, ms: f64, none: &str) -> String {
    match o.ops {
        0 => none.to_owned(),
        _ => latency(ms),
    }
}

/// Which figure of a percentile is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PercentileKind {
    /// The latency.
    Latency,
    /// The service time.
    Service,
}

impl PercentileKind {
    /// The time of a percentile in milliseconds; of what was not paced both are the same.
    #[must_use]
    pub fn ms(self, figure: &PercentileFigure) -> f64 {
        match self {
            Self::Latency => figure.ms,
            Self::Service => figure.service_ms.unwrap_or(figure.ms),
        }
    }

    /// Whether that is known only as a lower bound. Older results have one mark for both.
    #[must_use]
    pub fn at_least(self, figure: &PercentileFigure) -> bool {
        match self {
            Self::Latency => figure.at_least,
            Self::Service => figure.service_at_least.unwrap_or(figure.at_least),
        }
    }
}

/// A percentile as a text, as [`latency`] shows it, with a mark where it has too few operations; `none`
/// where it is not known.
#[must_use]
pub fn shown(figure: Option<PercentileFigure>, of: PercentileKind, none: &str) -> String {
    let Some(figure) = figure else {
        return none.to_owned();
    };
    let mark = if figure.enough_samples {
        ""
    } else {
        UNCERTAIN_MARK
    };
    bounded(of.ms(&figure), of.at_least(&figure)) + mark
}

/// The same for a text in which nothing lines up.
#[must_use]
pub fn shown_inline(figure: Option<PercentileFigure>, of: PercentileKind, none: &str) -> String {
    shown(figure, of, none).replace("  ", " ")
}

/// Lines up cells of which some are marked: the others get a space in the mark's place.
pub(crate) fn align_marked(cells: &mut [&mut Vec<String>]) {
    let marked = |c: &String| c.ends_with(UNCERTAIN_MARK);
    if cells.iter().any(|row| row.iter().any(marked)) {
        for cell in cells.iter_mut().flat_map(|row| row.iter_mut()) {
            if !marked(cell) && !cell.is_empty() {
                cell.push(' ');
            }
        }
    }
}

/// Whether any of some percentiles has too few operations.
pub(crate) fn any_doubtful(figures: impl IntoIterator<Item = Option<PercentileFigure>>) -> bool {
    figures.into_iter().flatten().any(|f| !f.enough_samples)
}
