//! Table of histograms: a row for each occupied bucket of an interval's distributions.

use crate::parquet::ParquetError;
use crate::parquet::level::Level;
use crate::parquet::run_facts::{self, OfRun, RunFacts};
use crate::parquet::table::{Cell, Column, Table, column};
use crate::parquet::windows::{WindowFacts, Windows};
use plimsoll_diagnostics::foreign;
use plimsoll_results::{Run, RunDir, SparseHistogram, SparseInterval, tag_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Suffix of the tag of latencies; the tag of service times lacks the suffix.
const LATENCY_TAG: &str = "/response";

type Named = Arc<(String, String)>;

/// A row of the table.
pub(crate) struct Row {
    run: Arc<RunFacts>,
    window: Arc<WindowFacts>,
    number: u32,
    clock_s: f64,
    length_s: f64,
    operation: Named,
    bucket: Bucket,
}

/// A bucket of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bucket {
    /// Greatest latency of the bucket in nanoseconds.
    latency_ns: u64,
    /// Number of operations with a latency in the bucket.
    count: u64,
    /// Number of operations with a service time in the bucket.
    service_count: u64,
}

impl OfRun for Row {
    fn run(&self) -> &Arc<RunFacts> {
        &self.run
    }
}

pub(crate) fn columns() -> Vec<Column<Row>> {
    let mut columns = run_facts::columns();
    columns.extend([
        column("part", Cell::Text(|r: &Row| Some(r.window.part.name()))),
        column("window_number", Cell::Count(|r| Some(u64::from(r.number)))),
        column(
            "stage",
            Cell::Text(|r| r.window.stage.as_ref().map(|s| s.0.as_str())),
        ),
        column(
            "iteration",
            Cell::Count(|r| r.window.stage.as_ref().map(|s| u64::from(s.1))),
        ),
        column("clock_s", Cell::Real(|r| Some(r.clock_s))),
        column("length_s", Cell::Real(|r| Some(r.length_s))),
        column("time", Cell::Time(|r| r.run.time_us(r.clock_s))),
        column(
            "level",
            Cell::Text(|r| Some(Level::of_name(&r.operation.1).name())),
        ),
        column("operation", Cell::Text(|r| Some(&r.operation.0))),
        column("kind", Cell::Text(|r| Some(&r.operation.1))),
        column("latency_ns", Cell::Count(|r| Some(r.bucket.latency_ns))),
        column("count", Cell::Count(|r| Some(r.bucket.count))),
        column(
            "service_count",
            Cell::Count(|r| Some(r.bucket.service_count)),
        ),
    ]);
    columns
}

/// Adds the distributions of a run.
pub(crate) fn add(
    table: &mut Table<Row>,
    facts: &Arc<RunFacts>,
    (run, windows): (&Run, &Windows),
    dir: &RunDir,
) -> Result<(), ParquetError> {
    let mut adder = Adder {
        table,
        facts,
        windows,
        names: names(run),
        window: None,
        service: None,
        failure: None,
    };
    dir.each_histogram(&mut |line| adder.line(line))?;
    adder.flush();
    match adder.failure {
        Some(e) => Err(e),
        None => Ok(()),
    }
}

/// Names and kinds of operations by tag.
fn names(run: &Run) -> BTreeMap<String, Named> {
    let windows = run.earlier_windows.iter();
    let windows = windows.chain(run.stages.iter().map(|s| &s.window));
    let of_windows = windows.flat_map(|w| w.operations.iter().chain(&w.procedures));
    let rows = run.operations.iter().chain(&run.procedures);
    let figures = rows.chain(of_windows).map(|o| (&o.name, o.kind));
    let planned = run.plan.operations.iter().map(|o| (&o.name, o.kind));
    figures
        .chain(planned)
        .map(|(name, kind)| {
            let named = (foreign::escaped(name).into_owned(), kind.to_string());
            (tag_of(name, kind), Arc::new(named))
        })
        .collect()
}

/// Combines the two consecutive lines of an interval's operation: service times and, if the operation was paced,
/// latencies.
struct Adder<'a> {
    table: &'a mut Table<Row>,
    facts: &'a Arc<RunFacts>,
    windows: &'a Windows,
    names: BTreeMap<String, Named>,
    window: Option<(u32, Arc<WindowFacts>)>,
    /// Service times that may be followed by a line of latencies.
    service: Option<SparseInterval>,
    failure: Option<ParquetError>,
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
        let service = service.unwrap_or_default();
        let operation = self.operation(tag);
        self.push(&line, &operation, &merged(&line.histogram, &service));
    }

    /// Adds service times without a following line of latencies: service times are then the latencies.
    fn flush(&mut self) {
        if let Some(line) = self.service.take() {
            let operation = self.operation(&line.tag);
            let buckets = merged(&line.histogram, &line.histogram);
            self.push(&line, &operation, &buckets);
        }
    }

    fn operation(&mut self, tag: &str) -> Named {
        if let Some(named) = self.names.get(tag) {
            return Arc::clone(named);
        }
        // The log may contain operations that the figures lack, from windows that the workload discarded.
        let (name, kind) = tag.rsplit_once('/').unwrap_or((tag, ""));
        let named = Arc::new((name.to_owned(), kind.to_owned()));
        self.names.insert(tag.to_owned(), Arc::clone(&named));
        named
    }

    fn push(&mut self, line: &SparseInterval, operation: &Named, buckets: &[Bucket]) {
        let window = match self.window.take() {
            Some((number, window)) if number == line.window => window,
            _ => Arc::new(self.windows.get(line.window)),
        };
        self.window = Some((line.window, Arc::clone(&window)));
        for bucket in buckets {
            if self.failure.is_some() {
                return;
            }
            let row = Row {
                run: Arc::clone(self.facts),
                window: Arc::clone(&window),
                number: line.window,
                clock_s: seconds(line.start),
                length_s: seconds(line.length),
                operation: Arc::clone(operation),
                bucket: *bucket,
            };
            self.failure = self.table.push(row).err();
        }
    }
}

/// The nearest number of seconds; adding whole seconds and a fraction would round twice.
fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
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
