//! Charts of searches for a load line.

use super::loads::{Loads, offered};
use crate::html::chart::{Axis, Chart, ChartOverlay, Column, SeriesStyle, Unit};
use plimsoll_results::{LoadSearch, SeriesOf, SeriesRun};
use std::collections::BTreeMap;

/// Charts of response time and throughput over load, and of the sequence of loads; empty without runs.
pub(super) fn of_search(search: SeriesOf<'_, LoadSearch>) -> Vec<Chart> {
    if search.measured().next().is_none() {
        return vec![];
    }
    let mut by_load: BTreeMap<u64, LoadRuns<'_>> = BTreeMap::new();
    for run in search.series.measured() {
        by_load
            .entry(run.load.unwrap_or_default())
            .or_default()
            .0
            .push(run);
    }
    let loads = Loads {
        metric: search.series.metric_name(),
        at: by_load.keys().map(|load| *load as f64).collect(),
        load_line: search.figures.load_line.sustained.map(|s| s.load),
    };
    let runs: Vec<LoadRuns<'_>> = by_load.into_values().collect();
    vec![
        response(&runs, &loads),
        throughput(&runs, &loads),
        load_sequence(search),
    ]
}

/// All runs of one load.
#[derive(Default)]
struct LoadRuns<'a>(Vec<&'a SeriesRun>);

impl LoadRuns<'_> {
    fn passed(&self) -> usize {
        self.0.iter().filter(|r| r.is_valid()).count()
    }

    /// Whether the load passed in more than half of its runs.
    fn is_sustained(&self) -> bool {
        2 * self.passed() > self.0.len()
    }

    /// Mean of a figure over the runs that have it.
    fn mean(&self, figure: impl Fn(&SeriesRun) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.0.iter().filter_map(|r| figure(r)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

fn values<T>(runs: &[LoadRuns<'_>], figure: impl Fn(&LoadRuns<'_>) -> T) -> Vec<T> {
    runs.iter().map(figure).collect()
}

/// Two columns of one figure: sustained loads, and other loads.
fn by_judgement(
    runs: &[LoadRuns<'_>],
    names: [&str; 2],
    unit: Unit,
    figure: impl Fn(&SeriesRun) -> Option<f64> + Copy,
) -> Vec<Column> {
    let column = |name: &str, sustained: bool, number| {
        let shown = |l: &LoadRuns<'_>| {
            let mean = l.mean(figure);
            mean.filter(|_| l.is_sustained() == sustained)
        };
        Column::drawn(name, unit, values(runs, shown), SeriesStyle::Series(number))
    };
    vec![column(names[0], true, 0), column(names[1], false, 1)]
}

fn response(runs: &[LoadRuns<'_>], loads: &Loads<'_>) -> Chart {
    let about = "Mean response time at each load, of repeated loads the mean of their runs.";
    let names = ["sustained", "not sustained"];
    let mut columns = by_judgement(runs, names, Unit::Milliseconds, |r| r.mean_ms);
    let mut count = |name, count: fn(&LoadRuns<'_>) -> usize| {
        let counts = values(runs, |l| Some(count(l) as f64));
        columns.push(Column::tabular(name, Unit::Count, counts));
    };
    count("runs", |l| l.0.len());
    count("passed", |l| l.passed());
    loads.response("load-line", about.into(), columns)
}

fn throughput(runs: &[LoadRuns<'_>], loads: &Loads<'_>) -> Chart {
    let names = ["achieved, sustained", "achieved, not sustained"];
    let achieved = |r: &SeriesRun| Some(r.achieved_ops_per_s);
    let mut columns = by_judgement(runs, names, Unit::Number, achieved);
    columns.extend(offered(values(runs, |l| l.mean(|r| r.offered_ops_per_s))));
    loads.throughput(columns)
}

/// The load of each run, in the order of the runs.
fn load_sequence(search: SeriesOf<'_, LoadSearch>) -> Chart {
    let column = |name: &str, passed: bool, number| {
        let load = |r: &SeriesRun| {
            r.load
                .filter(|_| r.is_valid() == passed)
                .map(|load| load as f64)
        };
        let loads = search.measured().map(load).collect();
        Column::drawn(name, Unit::Count, loads, SeriesStyle::Series(number))
    };
    Chart {
        id: "course".into(),
        title: "Search progress".into(),
        about: "The load of each run, in the order they were made.".into(),
        x: Axis::linear("run", Unit::Count),
        y: Axis::linear(search.metric_name(), Unit::Count),
        at: (1..=search.measured().count()).map(|n| n as f64).collect(),
        columns: vec![column("pass", true, 0), column("fail", false, 1)],
        is_stacked: false,
        extra: ChartOverlay::None,
        marks: vec![],
    }
}
