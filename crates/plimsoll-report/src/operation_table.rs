//! The table of operations in documents that lay out their columns themselves.

use crate::format::{inline, mib_per_s, rate};
use crate::percentiles::{PercentileKind, max_latency, of_completed, shown};
use plimsoll_plan::Count;
use plimsoll_results::{OperationFigures, Percentile};

/// Names of the columns, and a row for each operation and for the service time of each paced one.
#[derive(Debug, Clone)]
pub struct OperationTable {
    /// Names of the columns.
    pub head: Vec<String>,
    /// Cells of the rows.
    pub rows: Vec<Vec<String>>,
}

impl OperationTable {
    /// The table with these percentiles, and with the minimum if `with_min`; `name` is that of an
    /// operation in the document.
    #[must_use]
    pub fn new(
        operations: &[OperationFigures],
        shown: &[Percentile],
        with_min: bool,
        name: impl Fn(&OperationFigures) -> String,
    ) -> Self {
        let mut head: Vec<String> = [
            "operation",
            "kind",
            "ops",
            "ops/s",
            "MiB/s",
            "errors",
            "mean",
        ]
        .map(str::to_owned)
        .into();
        head.extend(with_min.then(|| "min".to_owned()));
        head.extend(shown.iter().map(Percentile::to_string));
        head.extend(["max", "CPU µs/op"].map(str::to_owned));
        let latencies = |o: &OperationFigures, of: PercentileKind| {
            let mut cells = latency_cells(o, shown, of, "–");
            if with_min {
                cells.insert(1, of_completed(o, of.figures(o).min_ms, "–"));
            }
            cells.into_iter().map(|cell| inline(&cell))
        };
        let mut rows = Vec::new();
        for o in operations {
            let mut row = vec![
                name(o),
                o.kind.to_string(),
                Count(o.ops).to_string(),
                rate(o.ops_per_s),
                mib_per_s(o.bytes_per_s),
                Count(o.errors).to_string(),
            ];
            row.extend(latencies(o, PercentileKind::Latency));
            row.push(o.cpu_us_per_op.map_or("–".into(), |us| format!("{us:.1}")));
            rows.push(row);
            if o.service.is_some() {
                let mut row = vec![format!("{}, service time", name(o))];
                row.resize(6, String::new());
                row.extend(latencies(o, PercentileKind::Service));
                row.push(String::new());
                rows.push(row);
            }
        }
        Self { head, rows }
    }
}

/// Mean, percentiles and maximum of an operation, aligned; `none` where they are not known.
#[must_use]
pub fn latency_cells(
    o: &OperationFigures,
    percentiles: &[Percentile],
    of: PercentileKind,
    none: &str,
) -> Vec<String> {
    let mut cells = vec![of_completed(o, of.figures(o).mean_ms, none)];
    cells.extend(
        percentiles
            .iter()
            .map(|p| shown(o.percentile(*p), of, none)),
    );
    cells.push(max_latency(o, of, none));
    cells
}
