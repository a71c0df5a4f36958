//! Percentiles in tables, and what is said of those that have too few operations.

use crate::format::latency;
use plimsoll_results::{OperationFigures, Percentile, PercentileFigure};

/// Percentiles of the lines and tables that show few.
pub const FEW: [Percentile; 2] = [Percentile::P50, Percentile::P99];

/// What stands behind a percentile of too few operations.
pub const DOUBT: &str = "?";

/// What is said below a table in which that stands.
pub const DOUBTFUL: &str = "?: fewer operations than the percentile needs (100 for p99, 1 000 for p99.9); the \
                            greatest latency stands for it";

/// What stands before a time that is only known to be at least so long, from operations under way at
/// the end.
pub const AT_LEAST: &str = "≥ ";

/// The greatest latency of an operation, as [`latency`] shows it.
#[must_use]
pub fn greatest(o: &OperationFigures, max_ms: f64) -> String {
    match o.is_at_least(max_ms) {
        true => format!("{AT_LEAST}{}", latency(max_ms)),
        false => latency(max_ms),
    }
}

/// Which figure of a percentile is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The latency.
    Latency,
    /// The service time.
    Service,
}

impl Of {
    /// The time of a percentile in milliseconds; of what was not paced both are the same.
    #[must_use]
    pub fn ms(self, figure: &PercentileFigure) -> f64 {
        match self {
            Self::Latency => figure.ms,
            Self::Service => figure.service_ms.unwrap_or(figure.ms),
        }
    }
}

/// A percentile as a text, as [`latency`] shows it, with a mark where it has too few operations; `none`
/// where it is not known.
#[must_use]
pub fn shown(figure: Option<PercentileFigure>, of: Of, none: &str) -> String {
    let Some(figure) = figure else {
        return none.to_owned();
    };
    let mark = if figure.enough { "" } else { DOUBT };
    let bound = if figure.at_least { AT_LEAST } else { "" };
    format!("{bound}{}{mark}", latency(of.ms(&figure)))
}

/// The same for a text in which nothing lines up.
#[must_use]
pub fn told(figure: Option<PercentileFigure>, of: Of, none: &str) -> String {
    shown(figure, of, none).replace("  ", " ")
}

/// Lines up cells of which some are marked: the others get a space in the mark's place.
pub(crate) fn line_up(cells: &mut [&mut Vec<String>]) {
    let marked = |c: &String| c.ends_with(DOUBT);
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
    figures.into_iter().flatten().any(|f| !f.enough)
}
