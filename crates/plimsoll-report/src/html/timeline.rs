//! Throughput and latency over time, from `intervals.csv`.

use crate::html::op_name::OpName;
use plimsoll_results::IntervalRow;

/// Maximum number of points of a series; more intervals are merged into fewer points.
pub const MAX_POINTS: u64 = 720;

/// Measured window of a run, with its place in the charts over time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowSpan {
    /// Number of the measured window in the run, from 1.
    pub number: u32,
    /// Time at which the measured window opened, in seconds since the first shown window opened.
    pub start_s: f64,
    /// Length of the measured window in seconds.
    pub length_s: f64,
}

/// Figures of each operation over time; each point merges one or more consecutive intervals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Begin of each point, in seconds since the first shown window opened.
    pub start_s: Vec<f64>,
    /// Length of each point in seconds.
    pub length_s: Vec<f64>,
    /// Number of intervals that each point of the timeline merges.
    pub intervals_per_point: u64,
    /// Length of an interval of `intervals.csv` in seconds.
    pub interval_s: f64,
    /// Figures by operation, in the order of the requested operations, and by point.
    pub operations: Vec<Vec<Point>>,
}

/// Figures of one operation over the intervals that a point merges.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Point {
    /// Number of calls of the operation that succeeded.
    pub ops: u64,
    /// Bytes that the operation read or wrote.
    pub bytes: u128,
    /// Number of calls of the operation that failed.
    pub errors: u64,
    /// Number of completed calls of the operation that had an intended start, set by a schedule.
    pub paced: u64,
    /// Latencies: response times if the operation is paced, otherwise service times.
    pub latency: Latencies,
    /// Service times of the operation, whether paced or not.
    pub service: Latencies,
}

/// Sum and 99th percentile of latencies or service times of one operation over the intervals that a point merges.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Latencies {
    /// Sum of the latencies or service times of all completed calls in milliseconds, for the mean.
    pub sum_ms: f64,
    /// Highest 99th percentile among the merged intervals, in milliseconds.
    pub p99_ms: f64,
}

impl Latencies {
    fn add(&mut self, ops: u64, mean_ms: f64, p99_ms: f64) {
        self.sum_ms += mean_ms * ops as f64;
        self.p99_ms = self.p99_ms.max(p99_ms);
    }
}

impl Point {
    /// Adds the figures of the operation in one interval to the point.
    pub fn add(&mut self, row: &IntervalRow) {
        self.ops += row.ops;
        self.bytes += row.bytes;
        self.errors += row.errors;
        self.paced += row.paced_ops;
        self.latency.add(row.ops, row.mean_ms, row.p99_ms);
        let mean_ms = row.service_mean_ms.unwrap_or(row.mean_ms);
        let p99_ms = row.service_p99_ms.unwrap_or(row.p99_ms);
        self.service.add(row.ops, mean_ms, p99_ms);
    }

    /// Mean of the point's latencies or service times in milliseconds; `None` if no operation completed.
    #[must_use]
    pub fn mean_ms(&self, times: Latencies) -> Option<f64> {
        (self.ops > 0).then(|| times.sum_ms / self.ops as f64)
    }

    /// Highest 99th percentile of latencies or service times among the point's intervals, in milliseconds; `None` if no
    /// operation completed.
    #[must_use]
    pub fn p99_ms(&self, times: Latencies) -> Option<f64> {
        (self.ops > 0).then_some(times.p99_ms)
    }
}

impl Timeline {
    /// Merges the rows of the selected windows and operations to at most [`MAX_POINTS`] points, but at least one per
    /// window. Intervals without a row, in which no operation completed, count too.
    #[must_use]
    pub fn of(rows: &[IntervalRow], spans: &[WindowSpan], operations: &[OpName]) -> Self {
        let interval_s = rows.iter().map(|r| r.length_s).fold(0.0, f64::max);
        if interval_s <= 0.0 {
            return Self::default();
        }
        let intervals = |s: &WindowSpan| {
            let happened = rows.iter().any(|r| r.window == s.number);
            // Rounding may put the end of a window slightly after the end of an interval.
            let by_length = (s.length_s / interval_s - 1e-6).ceil().max(0.0) as u64;
            by_length.max(u64::from(happened))
        };
        let counts: Vec<u64> = spans.iter().map(intervals).collect();
        let all = counts.iter().fold(0, |all: u64, n| all.saturating_add(*n));
        let intervals_per_point = all.div_ceil(MAX_POINTS).max(1);
        let mut line = Self {
            intervals_per_point,
            interval_s,
            ..Self::default()
        };
        // Each window as its number, its count of intervals, and the index of the window's first point.
        let mut windows = Vec::new();
        let width = intervals_per_point as f64 * interval_s;
        for (span, intervals) in spans.iter().zip(counts) {
            windows.push((span.number, intervals, line.start_s.len()));
            for i in 0..intervals.div_ceil(intervals_per_point) {
                let start = i as f64 * width;
                let left = span.length_s - start;
                line.start_s.push(span.start_s + start);
                line.length_s
                    .push(if left > 0.0 { left.min(width) } else { width });
            }
        }
        line.operations = vec![vec![Point::default(); line.start_s.len()]; operations.len()];
        for row in rows {
            let op = operations.iter().position(|o| o.matches(row));
            let window = windows.iter().find(|w| w.0 == row.window);
            if let (Some(op), Some((_, intervals, first))) = (op, window)
                && *intervals > 0
            {
                // Operations that completed exactly at the end of the window are in an interval of length 0; count them
                // in the preceding interval.
                let interval = row.interval.min(intervals - 1);
                let point = first + (interval / intervals_per_point) as usize;
                line.operations[op][point].add(row);
            }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_results::LatencyKind;

    fn row(window: u32, interval: u64, ops: u64) -> IntervalRow {
        IntervalRow {
            window,
            interval,
            start_s: interval as f64,
            length_s: 1.0,
            operation: "read".into(),
            kind: "read".into(),
            ops,
            bytes: 100 * u128::from(ops),
            errors: 1,
            mean_ms: 2.0,
            p50_ms: 2.0,
            p99_ms: interval as f64,
            max_ms: 10.0,
            paced_ops: ops / 2,
            service_mean_ms: Some(1.0),
            ..IntervalRow::default()
        }
    }

    fn read() -> Vec<OpName> {
        let label = "read".to_owned();
        vec![OpName::of_row("read", "read", label, LatencyKind::Service)]
    }

    fn span(number: u32, start_s: f64, length_s: f64) -> WindowSpan {
        WindowSpan {
            number,
            start_s,
            length_s,
        }
    }

    fn ops(timeline: &Timeline) -> Vec<u64> {
        timeline.operations[0].iter().map(|p| p.ops).collect()
    }

    #[test]
    fn an_interval_in_which_nothing_was_done_is_a_point_of_zero() {
        let rows = [row(1, 0, 10), row(1, 2, 5), row(2, 0, 7)];
        let t = Timeline::of(&rows, &[span(1, 0.0, 2.5), span(2, 4.0, 1.0)], &read());
        assert_eq!(t.start_s, [0.0, 1.0, 2.0, 4.0]);
        assert_eq!(t.length_s, [1.0, 1.0, 0.5, 1.0]);
        assert_eq!(ops(&t), [10, 0, 5, 7]);
        let empty = t.operations[0][1];
        assert_eq!(empty.mean_ms(empty.latency), None);
    }

    #[test]
    fn an_hour_of_intervals_is_few_points_and_loses_nothing() {
        let rows: Vec<IntervalRow> = (0..3600).map(|i| row(1, i, i)).collect();
        let t = Timeline::of(&rows, &[span(1, 0.0, 3600.0)], &read());
        assert_eq!((t.intervals_per_point, t.start_s.len()), (5, 720));
        let s = &t.operations[0];
        let sum = |of: fn(&Point) -> u64| s.iter().map(of).sum::<u64>();
        assert_eq!(sum(|p| p.ops), 3600 * 3599 / 2);
        let bytes: u128 = s.iter().map(|p| p.bytes).sum();
        assert_eq!(bytes, 100 * 3600 * 3599 / 2);
        assert_eq!((s[1].ops, s[1].latency.p99_ms, s[1].errors), (35, 9.0, 5));
        assert!((s[7].mean_ms(s[7].latency).unwrap() - 2.0).abs() < 1e-12);
        assert!((s[7].mean_ms(s[7].service).unwrap() - 1.0).abs() < 1e-12);
        let kind = LatencyKind::of(sum(|p| p.paced), sum(|p| p.ops));
        assert_eq!(kind, LatencyKind::Mixed);
    }

    #[test]
    fn what_lies_behind_the_end_is_of_the_last_interval() {
        let rows = [row(1, 0, 10), row(1, 2, 3), row(1, u64::MAX, 5)];
        let t = Timeline::of(&rows, &[span(1, 0.0, 2.0)], &read());
        assert_eq!(ops(&t), [10, 8]);
        assert_eq!(Timeline::of(&[], &[], &read()), Timeline::default());
    }
}
