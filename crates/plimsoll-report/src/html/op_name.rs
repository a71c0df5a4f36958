//! Names of operations on pages.

use plimsoll_results::{IntervalRow, LatencyKind, OperationFigures, Run};

/// Name and kind of a row of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpName {
    /// Name in the workload.
    pub name: String,
    /// Kind of the operation as printed.
    pub kind: String,
    /// Name on a page, followed by the kind if another row has the same name.
    pub label: String,
    /// Kind of the operation's latency.
    pub latency: LatencyKind,
}

impl OpName {
    /// Whether a row of `intervals.csv` belongs to this operation.
    #[must_use]
    pub fn matches(&self, row: &IntervalRow) -> bool {
        row.operation == self.name && row.kind == self.kind
    }
}

/// Name of a row on a page, followed by its kind if another row has the same name.
#[must_use]
pub fn label(run: &Run, operation: &OperationFigures) -> String {
    let same = |o: &&OperationFigures| o.name == operation.name;
    match run.operations.iter().filter(same).count() {
        0 | 1 => operation.name.clone(),
        _ => format!("{} ({})", operation.name, operation.kind),
    }
}
