//! Throughput and latency over time, from `intervals.csv`.

use crate::html::op_name::OpName;
use plimsoll_results::IntervalRow;

/// Maximum number of points of a series; more intervals are merged into fewer points.
pub const MAX_POINTS: u64 = 720;

/// A window of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowSpan {
    /// Number, from 1.
    pub number: u32,
    /// Time at which the window opened, in seconds since the first shown window opened.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
}

/// Points in time, and the figures of each operation at each point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline {
    /// Begin of each point, in seconds since the first shown window opened.
    pub start_s: Vec<f64>,
    /// Length of each point in seconds.
    pub length_s: Vec<f64>,
    /// Number of intervals per point.
    pub intervals_per_point: u64,
    /// Length of an interval in seconds.
    pub interval_s: f64,
    /// One entry per operation, in the order of the operations.
    pub operations: Vec<Series>,
}

/// Figures of an operation, point by point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Operations that succeeded.
    pub ops: Vec<u64>,
    /// Bytes moved.
    pub bytes: Vec<u128>,
    /// Operations that failed.
    pub errors: Vec<u64>,
    /// Operations that had an intended start.
    pub paced: Vec<u64>,
    /// Latencies: response times of paced operations, service times of other operations.
    pub latency: LatencySeries,
    /// Service times.
    pub service: LatencySeries,
}

/// Latencies of an operation, point by point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LatencySeries {
    /// Sum of the latencies of a point in milliseconds.
    pub sum_ms: Vec<f64>,
    /// 99th percentile of a point in milliseconds; the maximum over the merged intervals.
    pub p99_ms: Vec<f64>,
}

impl LatencySeries {
    fn new(points: usize) -> Self {
        Self {
            sum_ms: vec![0.0; points],
            p99_ms: vec![0.0; points],
        }
    }

    fn add(&mut self, point: usize, ops: u64, mean_ms: f64, p99_ms: f64) {
        self.sum_ms[point] += mean_ms * ops as f64;
        self.p99_ms[point] = self.p99_ms[point].max(p99_ms);
    }
}

impl Series {
    fn new(points: usize) -> Self {
        Self {
            ops: vec![0; points],
            bytes: vec![0; points],
            errors: vec![0; points],
            paced: vec![0; points],
            latency: LatencySeries::new(points),
            service: LatencySeries::new(points),
        }
    }

    fn add(&mut self, point: usize, row: &IntervalRow) {
        self.ops[point] += row.ops;
        self.bytes[point] += row.bytes;
        self.errors[point] += row.errors;
        self.paced[point] += row.paced_ops;
        self.latency.add(point, row.ops, row.mean_ms, row.p99_ms);
        let mean_ms = row.service_mean_ms.unwrap_or(row.mean_ms);
        let p99_ms = row.service_p99_ms.unwrap_or(row.p99_ms);
        self.service.add(point, row.ops, mean_ms, p99_ms);
    }

    /// Mean of each point in milliseconds; `None` where no operation completed.
    #[must_use]
    pub fn mean_ms(&self, times: &LatencySeries) -> Vec<Option<f64>> {
        let means = times.sum_ms.iter().zip(&self.ops);
        means
            .map(|(sum, n)| (*n > 0).then(|| sum / *n as f64))
            .collect()
    }

    /// 99th percentile of each point in milliseconds; `None` where no operation completed.
    #[must_use]
    pub fn p99_ms(&self, times: &LatencySeries) -> Vec<Option<f64>> {
        let shown = times.p99_ms.iter().zip(&self.ops);
        shown.map(|(p, n)| (*n > 0).then_some(*p)).collect()
    }
}

/// Points of a window.
struct WindowPoints {
    span: WindowSpan,
    first: usize,
    points: u64,
    intervals: u64,
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
        let mut windows = Vec::new();
        for (span, intervals) in spans.iter().zip(counts) {
            let window = WindowPoints {
                span: *span,
                first: line.start_s.len(),
                points: intervals.div_ceil(intervals_per_point),
                intervals,
            };
            line.add_window(&window);
            windows.push(window);
        }
        let points = line.start_s.len();
        line.operations = vec![Series::new(points); operations.len()];
        for row in rows {
            let op = operations.iter().position(|o| o.matches(row));
            let window = windows.iter().find(|w| w.span.number == row.window);
            if let (Some(op), Some(window)) = (op, window)
                && window.intervals > 0
            {
                // Operations that completed exactly at the end of the window are in an interval of length 0; count them
                // in the preceding interval.
                let interval = row.interval.min(window.intervals - 1);
                let point = window.first + (interval / intervals_per_point) as usize;
                line.operations[op].add(point, row);
            }
        }
        line
    }

    fn add_window(&mut self, window: &WindowPoints) {
        let width = self.intervals_per_point as f64 * self.interval_s;
        for i in 0..window.points {
            let start = i as f64 * width;
            let left = window.span.length_s - start;
            self.start_s.push(window.span.start_s + start);
            self.length_s
                .push(if left > 0.0 { left.min(width) } else { width });
        }
    }

    /// Converts counts to rates per second, point by point.
    #[must_use]
    pub fn per_second<N: Copy + Into<u128>>(&self, counts: &[N]) -> Vec<f64> {
        let counts = counts.iter().zip(&self.length_s);
        counts.map(|(n, s)| (*n).into() as f64 / s).collect()
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
        vec![OpName {
            name: "read".into(),
            kind: "read".into(),
            label: "read".into(),
            latency: LatencyKind::Service,
        }]
    }

    fn span(number: u32, start_s: f64, length_s: f64) -> WindowSpan {
        WindowSpan {
            number,
            start_s,
            length_s,
        }
    }

    #[test]
    fn an_interval_in_which_nothing_was_done_is_a_point_of_zero() {
        let rows = [row(1, 0, 10), row(1, 2, 5), row(2, 0, 7)];
        let t = Timeline::of(&rows, &[span(1, 0.0, 2.5), span(2, 4.0, 1.0)], &read());
        assert_eq!(t.start_s, [0.0, 1.0, 2.0, 4.0]);
        assert_eq!(t.length_s, [1.0, 1.0, 0.5, 1.0]);
        assert_eq!(t.operations[0].ops, [10, 0, 5, 7]);
        assert_eq!(t.per_second(&t.operations[0].ops), [10.0, 0.0, 10.0, 7.0]);
        let s = &t.operations[0];
        assert_eq!(s.mean_ms(&s.latency)[1], None);
    }

    #[test]
    fn an_hour_of_intervals_is_few_points_and_loses_nothing() {
        let rows: Vec<IntervalRow> = (0..3600).map(|i| row(1, i, i)).collect();
        let t = Timeline::of(&rows, &[span(1, 0.0, 3600.0)], &read());
        assert_eq!((t.intervals_per_point, t.start_s.len()), (5, 720));
        let s = &t.operations[0];
        assert_eq!(s.ops.iter().sum::<u64>(), 3600 * 3599 / 2);
        assert_eq!(s.bytes.iter().sum::<u128>(), 100 * 3600 * 3599 / 2);
        assert_eq!((s.ops[1], s.latency.p99_ms[1], s.errors[1]), (35, 9.0, 5));
        assert!((s.mean_ms(&s.latency)[7].unwrap() - 2.0).abs() < 1e-12);
        assert!((s.mean_ms(&s.service)[7].unwrap() - 1.0).abs() < 1e-12);
        let kind = LatencyKind::of(s.paced.iter().sum(), s.ops.iter().sum());
        assert_eq!(kind, LatencyKind::Mixed);
    }

    #[test]
    fn what_lies_behind_the_end_is_of_the_last_interval() {
        let rows = [row(1, 0, 10), row(1, 2, 3), row(1, u64::MAX, 5)];
        let t = Timeline::of(&rows, &[span(1, 0.0, 2.0)], &read());
        assert_eq!(t.operations[0].ops, [10, 8]);
        assert_eq!(Timeline::of(&[], &[], &read()), Timeline::default());
    }
}
