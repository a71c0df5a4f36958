//! Table of histograms: a row for each occupied bucket of an interval's distributions.

use crate::parquet::ParquetError;
use crate::parquet::facts::{RunFacts, WindowFacts, Windows, level};
use crate::parquet::table::{Cell, Table, count, real, text, time};
use plimsoll_results::{Run, RunDir, SparseHistogram, SparseInterval, tag_of};
use std::collections::BTreeMap;
use std::time::Duration;

/// Suffix of the tag of latencies; the tag of service times lacks the suffix.
const LATENCY_TAG: &str = "/response";

/// A bucket of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bucket {
    /// Greatest latency of the bucket in nanoseconds.
    latency_ns: u64,
    /// Number of operations with a latency in the bucket.
    count: u64,
    /// Number of operations with a service time in the bucket.
    service_count: u64,
}

impl Bucket {
    fn cells(self) -> [Cell; 3] {
        [
            count("latency_ns", self.latency_ns),
            count("count", self.count),
            count("service_count", self.service_count),
        ]
    }
}

/// Sample row of the table of histograms, after the cells of run and window: it defines the names and types of the
/// columns.
pub(super) fn sample(facts: &RunFacts) -> Vec<Cell> {
    let line = line_cells(facts, [Duration::ZERO; 2], ("", ""));
    [&line[..], &Bucket::default().cells()].concat()
}

/// Cells that all buckets of one line of `histograms.hlog` share; `times` are the interval's start and length.
fn line_cells(
    facts: &RunFacts,
    times: [Duration; 2],
    (operation, kind): (&str, &str),
) -> [Cell; 6] {
    // One division gives the nearest floating-point number of seconds; adding whole seconds and a fraction would round
    // twice.
    let [start_s, length_s] = times.map(|time| time.as_nanos() as f64 / 1e9);
    [
        real("clock_s", start_s),
        real("length_s", length_s),
        time("time", facts.time_us(start_s)),
        text("level", level(kind)),
        text("operation", operation),
        text("kind", kind),
    ]
}

/// Adds the distributions of a run.
pub(super) fn add(
    table: &mut Table,
    facts: &RunFacts,
    (run, windows): (&Run, &mut Windows),
    dir: &RunDir,
) -> Result<(), ParquetError> {
    let mut adder = Adder {
        table,
        facts,
        windows,
        names: names(run),
        service: None,
        result: Ok(()),
    };
    dir.each_histogram(&mut |line| adder.line(line))?;
    adder.flush();
    adder.result
}

/// Names and kinds of operations by tag.
fn names(run: &Run) -> BTreeMap<String, (String, String)> {
    let windows = run.earlier_windows.iter();
    let windows = windows.chain(run.stages.iter().map(|s| &s.window));
    let of_windows = windows.flat_map(|w| w.operations.iter().chain(&w.procedures));
    let rows = run.operations.iter().chain(&run.procedures);
    let figures = rows.chain(of_windows).map(|o| (&o.name, o.kind));
    let planned = run.plan.operations.iter().map(|o| (&o.name, o.kind));
    let named = |(name, kind): (&String, _)| {
        let tag = tag_of(name, kind);
        (tag, (name.clone(), kind.to_string()))
    };
    figures.chain(planned).map(named).collect()
}

/// Combines the two consecutive lines of an interval's operation: service times and, if the operation was paced,
/// latencies.
struct Adder<'a> {
    table: &'a mut Table,
    facts: &'a RunFacts,
    windows: &'a mut Windows,
    names: BTreeMap<String, (String, String)>,
    /// Service times that may be followed by a line of latencies.
    service: Option<SparseInterval>,
    result: Result<(), ParquetError>,
}

impl Adder<'_> {
    fn line(&mut self, line: SparseInterval) {
        let Some(tag) = line.tag.strip_suffix(LATENCY_TAG) else {
            self.flush();
            self.service = Some(line);
            return;
        };
        let same = |s: &SparseInterval| {
            s.tag == tag && (s.window, s.start, s.length) == (line.window, line.start, line.length)
        };
        if !self.service.as_ref().is_some_and(same) {
            self.flush();
        }
        let service = self.service.take().map(|s| s.histogram);
        self.push(tag, &line, &service.unwrap_or_default());
    }

    /// Adds service times without a following line of latencies: service times are then the latencies.
    fn flush(&mut self) {
        if let Some(line) = self.service.take() {
            self.push(&line.tag, &line, &line.histogram);
        }
    }

    fn push(&mut self, tag: &str, line: &SparseInterval, service: &SparseHistogram) {
        if self.result.is_err() {
            return;
        }
        let named = match self.names.get(tag) {
            Some((name, kind)) => (name.as_str(), kind.as_str()),
            // `histograms.hlog` may contain operations that `run.json` lacks, from windows that the workload discarded.
            None => tag.rsplit_once('/').unwrap_or((tag, "")),
        };
        let cells = line_cells(self.facts, [line.start, line.length], named);
        let WindowFacts { cells: window, .. } = self.windows.get(line.window);
        let of_line = self.facts.cells.iter().chain(window).chain(&cells);
        let mut buckets = merged(&line.histogram, service).into_iter();
        self.result = buckets.try_for_each(|bucket| {
            let bucket = bucket.cells();
            self.table.push(of_line.clone().chain(&bucket))
        });
    }
}

/// The buckets of latencies and of service times, in increasing order.
fn merged(latency: &SparseHistogram, service: &SparseHistogram) -> Vec<Bucket> {
    let (mut latencies, mut services) = (
        latency.counts.iter().copied().peekable(),
        service.counts.iter().copied().peekable(),
    );
    let mut found = Vec::with_capacity(latency.counts.len());
    loop {
        let next = [latencies.peek(), services.peek()];
        let Some(latency_ns) = next.iter().flatten().map(|(value, _)| *value).min() else {
            return found;
        };
        let is_it = |(value, _): &(u64, u64)| *value == latency_ns;
        found.push(Bucket {
            latency_ns,
            count: latencies.next_if(is_it).map_or(0, |(_, n)| n),
            service_count: services.next_if(is_it).map_or(0, |(_, n)| n),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram() -> impl Strategy<Value = SparseHistogram> {
        let counts = prop::collection::btree_map(0u64..40, 1u64..9, 0..20);
        counts.prop_map(|counts| SparseHistogram {
            counts: counts.into_iter().collect(),
        })
    }

    proptest! {
        #[test]
        fn merged_buckets_have_every_sample_once_and_are_in_order(
            latency in histogram(),
            service in histogram(),
        ) {
            let buckets = merged(&latency, &service);
            prop_assert!(buckets.windows(2).all(|w| w[0].latency_ns < w[1].latency_ns));
            let of = |count: fn(&Bucket) -> u64| -> Vec<(u64, u64)> {
                let counts = buckets.iter().map(|b| (b.latency_ns, count(b)));
                counts.filter(|(_, n)| *n > 0).collect()
            };
            prop_assert_eq!(of(|b| b.count), latency.counts);
            prop_assert_eq!(of(|b| b.service_count), service.counts);
        }
    }
}
