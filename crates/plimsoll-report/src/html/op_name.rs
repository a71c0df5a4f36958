//! Names of operations on pages.

use plimsoll_results::{IntervalRow, LatencyKind};

/// Name and kind of a row of the results, or of a group of similar rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpName {
    /// Rows of the results: one, or all rows of a group.
    pub rows: Vec<RowName>,
    /// Kind of the operation as printed.
    pub kind: String,
    /// Name on a page, followed by the kind if another row has the same name.
    pub label: String,
    /// Kind of the latency of all rows together.
    pub latency: LatencyKind,
}

/// Name of a row of the results, and the kind of latency that the row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowName {
    /// Name in the workload.
    pub name: String,
    /// Kind of the row's latency.
    pub latency: LatencyKind,
}

impl OpName {
    /// An operation with a single row of the results.
    #[must_use]
    pub fn of_row(name: &str, kind: &str, label: String, latency: LatencyKind) -> Self {
        Self {
            rows: vec![RowName {
                name: name.to_owned(),
                latency,
            }],
            kind: kind.to_owned(),
            label,
            latency,
        }
    }

    /// Whether a row of `intervals.csv` belongs to this operation.
    #[must_use]
    pub fn matches(&self, row: &IntervalRow) -> bool {
        row.kind == self.kind && self.rows.iter().any(|own| own.name == row.operation)
    }
}

/// Name of a row or a group in tables and charts; with the kind if another row or group has the same name.
#[must_use]
pub fn label(name: &str, kind: &str, is_shared: bool) -> String {
    match is_shared {
        true => format!("{name} ({kind})"),
        false => name.to_owned(),
    }
}
