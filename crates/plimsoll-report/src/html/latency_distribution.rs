//! Latency distributions, overall and over time, from `histograms.hlog`.

use crate::html::op_name::OpName;
use crate::html::timeline::WindowSpan;
use plimsoll_results::{Distribution, LatencyKind, SparseHistogram, SparseInterval, tag_of_text};
use std::collections::BTreeMap;

/// Maximum number of columns of a heat map.
pub const MAX_HEAT_COLUMNS: usize = 96;

/// Rows of a heat map per factor of ten.
const ROWS_PER_DECADE: f64 = 8.0;

/// Heat map: numbers of samples of an operation by time and latency.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Heat {
    /// Begin and end of each column, in seconds since the first shown window opened.
    pub columns: Vec<(f64, f64)>,
    /// Samples by column and row; [`Heat::row_ms`] gives the latencies of a row.
    pub cells: Vec<BTreeMap<i32, u64>>,
}

impl Heat {
    fn new(columns: &[(f64, f64)]) -> Self {
        Self {
            columns: columns.to_vec(),
            cells: vec![BTreeMap::new(); columns.len()],
        }
    }

    fn add(&mut self, at_s: f64, histogram: &SparseHistogram) {
        let behind = self.columns.partition_point(|c| c.0 <= at_s);
        let Some(cells) = behind.checked_sub(1).and_then(|i| self.cells.get_mut(i)) else {
            return;
        };
        for (value, n) in &histogram.counts {
            let decades = ((*value).max(1) as f64).log10();
            let row = (decades * ROWS_PER_DECADE).floor() as i32;
            *cells.entry(row).or_default() += n;
        }
    }

    /// Begin and end of a row in milliseconds.
    #[must_use]
    pub fn row_ms(row: i32) -> (f64, f64) {
        let edge = |row: i32| 10f64.powf(f64::from(row) / ROWS_PER_DECADE) / 1e6;
        (edge(row), edge(row + 1))
    }
}

/// Latency distributions of an operation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencyDistribution {
    /// Latencies: response times if the operation was paced, otherwise service times.
    pub latency: Distribution,
    /// Service times if the operation was paced, otherwise empty.
    pub service: Distribution,
    /// Latencies over time.
    pub heat: Heat,
}

/// Meaning of the times in a line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Latency,
    Service,
    Both,
}

/// Builder of latency distributions, fed line by line from a log.
pub struct LatencyDistributions {
    /// Shown windows.
    spans: Vec<WindowSpan>,
    /// When the first window opened, in seconds since the run's clock began.
    origin_s: f64,
    /// Operation of each tag, and whether the tag is of the operation's latencies, its service times, or both.
    tags: BTreeMap<String, (usize, Times)>,
    distributions: Vec<LatencyDistribution>,
}

impl LatencyDistributions {
    /// Selects the windows, operations and heat map columns.
    #[must_use]
    pub fn new(
        spans: &[WindowSpan],
        origin_s: f64,
        operations: &[OpName],
        columns: &[(f64, f64)],
    ) -> Self {
        let mut tags = BTreeMap::new();
        for (i, op) in operations.iter().enumerate() {
            let is_paced = |kind: LatencyKind| kind != LatencyKind::Service;
            for row in &op.rows {
                let tag = tag_of_text(&row.name, &op.kind);
                if is_paced(row.latency) {
                    tags.insert(format!("{tag}/response"), (i, Times::Latency));
                }
                let times = match (is_paced(op.latency), is_paced(row.latency)) {
                    (false, _) => Times::Latency,
                    (true, true) => Times::Service,
                    // A row without schedule in a group of which other rows are paced.
                    (true, false) => Times::Both,
                };
                tags.insert(tag, (i, times));
            }
        }
        let empty = LatencyDistribution {
            heat: Heat::new(columns),
            ..LatencyDistribution::default()
        };
        Self {
            spans: spans.to_vec(),
            origin_s,
            tags,
            distributions: vec![empty; operations.len()],
        }
    }

    /// Adds a line of the log.
    pub fn add(&mut self, line: &SparseInterval) {
        let Some((op, times)) = self.tags.get(&line.tag) else {
            return;
        };
        if !self.spans.iter().any(|s| s.number == line.window) {
            return;
        }
        let distribution = &mut self.distributions[*op];
        if *times != Times::Latency {
            distribution.service.add(&line.histogram);
        }
        if *times != Times::Service {
            distribution.latency.add(&line.histogram);
            // The log rounds times to milliseconds; the middle is in the right column nevertheless.
            let middle = line.start.as_secs_f64() + line.length.as_secs_f64() / 2.0;
            distribution
                .heat
                .add(middle - self.origin_s, &line.histogram);
        }
    }

    /// Distributions, in the order of the operations.
    #[must_use]
    pub fn finish(self) -> Vec<LatencyDistribution> {
        self.distributions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latency_of_a_paced_operation_is_its_response_time() {
        let op = |name: &str, latency| OpName::of_row(name, "read", name.into(), latency);
        let span = WindowSpan {
            number: 1,
            start_s: 0.0,
            length_s: 1.0,
        };
        let operations = [
            op("free", LatencyKind::Service),
            op("paced", LatencyKind::Mixed),
        ];
        let mut distributions = LatencyDistributions::new(&[span], 0.0, &operations, &[(0.0, 1.0)]);
        for (tag, ns) in [
            ("free/read", 10),
            ("free/read/response", 20),
            ("paced/read", 30),
            ("paced/read/response", 40),
        ] {
            let second = std::time::Duration::from_secs(1);
            distributions.add(&SparseInterval {
                window: 1,
                tag: tag.into(),
                start: std::time::Duration::ZERO,
                length: second,
                histogram: SparseHistogram {
                    counts: vec![(ns, 1)],
                },
            });
        }
        let found = distributions.finish();
        let of = |d: &Distribution| (d.count(), d.quantile(0.5));
        assert_eq!(
            (of(&found[0].latency), of(&found[0].service)),
            ((1, 10), (0, 0))
        );
        assert_eq!(
            (of(&found[1].latency), of(&found[1].service)),
            ((1, 40), (1, 30))
        );
        let seen: u64 = found[1].heat.cells[0].values().sum();
        assert_eq!(seen, 1);
    }

    #[test]
    fn heat_is_where_and_when_the_samples_were() {
        let mut heat = Heat::new(&[(0.0, 1.0), (1.0, 2.0)]);
        let samples = |counts: &[(u64, u64)]| SparseHistogram {
            counts: counts.to_vec(),
        };
        heat.add(0.0, &samples(&[(1_000_000, 3)]));
        heat.add(1.0, &samples(&[(1_000_001, 2), (1_100_000, 4)]));
        heat.add(-5.0, &samples(&[(7, 100)]));
        assert_eq!(heat.cells[0].values().sum::<u64>(), 3);
        assert_eq!(heat.cells[1].values().sum::<u64>(), 6);
        let (row, n) = heat.cells[1].first_key_value().unwrap();
        let (from, to) = Heat::row_ms(*row);
        assert!(from <= 1.000_001 && 1.1 < to && *n == 6, "{from} {to} {n}");
    }
}
