//! Charts of searches for a load line.

use crate::chart::{Axis, Chart, ChartOverlay, Column, SeriesStyle, Unit};
use plimsoll_plan::Count;
use plimsoll_results::{LoadSearch, SearchRun};

/// Response time and throughput over load, and the loads in the order they were run; empty without
/// runs.
#[must_use]
pub fn of_search(search: &LoadSearch) -> Vec<Chart> {
    if search.runs.is_empty() {
        return vec![];
    }
    let loads = loads(search);
    vec![
        response(search, &loads),
        throughput(search, &loads),
        load_sequence(search),
    ]
}

/// All runs of one load.
struct LoadRuns<'a> {
    load: u64,
    runs: Vec<&'a SearchRun>,
}

impl LoadRuns<'_> {
    /// Whether it held in more than half of its runs, which is what counts as carried.
    fn is_sustained(&self) -> bool {
        2 * self.runs.iter().filter(|r| r.passed).count() > self.runs.len()
    }

    /// Mean of a figure over the runs that have it.
    fn mean(&self, figure: impl Fn(&SearchRun) -> Option<f64>) -> Option<f64> {
        let known: Vec<f64> = self.runs.iter().filter_map(|r| figure(r)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    }
}

/// The loads that were run, in increasing order.
fn loads(search: &LoadSearch) -> Vec<LoadRuns<'_>> {
    let mut loads: Vec<LoadRuns<'_>> = Vec::new();
    for run in &search.runs {
        match loads.iter_mut().find(|l| l.load == run.point.load) {
            Some(load) => load.runs.push(run),
            None => loads.push(LoadRuns {
                load: run.point.load,
                runs: vec![run],
            }),
        }
    }
    loads.sort_by_key(|l| l.load);
    loads
}

fn load_axis(search: &LoadSearch) -> Axis {
    Axis::linear(&format!("load in {}", search.metric), Unit::Count)
}

/// The highest load that is carried, where there is one.
fn line(search: &LoadSearch) -> ChartOverlay {
    match search.selection.load_line.sustained {
        Some(carried) => ChartOverlay::Mark {
            at: carried.load as f64,
            text: format!("load line {}", Count(carried.load)),
        },
        None => ChartOverlay::None,
    }
}

/// Columns of one figure: of loads that are carried, and of those that are not.
fn by_judgement(
    loads: &[LoadRuns<'_>],
    names: [&str; 2],
    unit: Unit,
    figure: impl Fn(&SearchRun) -> Option<f64> + Copy,
) -> Vec<Column> {
    let column = |name: &str, carried: bool, ink| Column {
        name: name.into(),
        unit,
        values: loads
            .iter()
            .map(|l| {
                let it = (l.is_sustained() == carried).then(|| l.mean(figure));
                it.flatten()
            })
            .collect(),
        ink: Some(ink),
    };
    vec![
        column(names[0], true, SeriesStyle::Series(0)),
        column(names[1], false, SeriesStyle::Series(1)),
    ]
}

/// Numbers of the runs of each load, for the table.
fn counts(loads: &[LoadRuns<'_>]) -> [Column; 2] {
    let column = |name: &str, count: &dyn Fn(&LoadRuns<'_>) -> usize| Column {
        name: name.into(),
        unit: Unit::Count,
        values: loads.iter().map(|l| Some(count(l) as f64)).collect(),
        ink: None,
    };
    [
        column("runs", &|l| l.runs.len()),
        column("passed", &|l| l.runs.iter().filter(|r| r.passed).count()),
    ]
}

fn response(search: &LoadSearch, loads: &[LoadRuns<'_>]) -> Chart {
    let mut columns = by_judgement(
        loads,
        ["sustained", "not sustained"],
        Unit::Milliseconds,
        |r| r.point.mean_ms,
    );
    columns.extend(counts(loads));
    Chart {
        id: "load-line".into(),
        title: "Response time over load".into(),
        about: "Mean response time at each load, of repeated loads the mean of their runs.".into(),
        x: load_axis(search),
        y: Axis::linear("response time", Unit::Milliseconds),
        at: loads.iter().map(|l| l.load as f64).collect(),
        columns,
        extra: line(search),
    }
}

fn throughput(search: &LoadSearch, loads: &[LoadRuns<'_>]) -> Chart {
    let mut columns = by_judgement(
        loads,
        ["achieved, sustained", "achieved, not sustained"],
        Unit::Number,
        |r| Some(r.point.achieved_ops_per_s),
    );
    if search
        .runs
        .iter()
        .any(|r| r.point.offered_ops_per_s.is_some())
    {
        columns.push(Column {
            name: "offered".into(),
            unit: Unit::Number,
            values: loads
                .iter()
                .map(|l| l.mean(|r| r.point.offered_ops_per_s))
                .collect(),
            ink: Some(SeriesStyle::Series(7)),
        });
    }
    Chart {
        id: "throughput".into(),
        title: "Throughput over load".into(),
        about: "Offered and achieved operations per second.".into(),
        x: load_axis(search),
        y: Axis::linear("operations/s", Unit::Number),
        at: loads.iter().map(|l| l.load as f64).collect(),
        columns,
        extra: line(search),
    }
}

/// Which load each run was of.
fn load_sequence(search: &LoadSearch) -> Chart {
    let column = |name: &str, held: bool, ink| Column {
        name: name.into(),
        unit: Unit::Count,
        values: search
            .runs
            .iter()
            .map(|r| (r.passed == held).then_some(r.point.load as f64))
            .collect(),
        ink: Some(ink),
    };
    Chart {
        id: "course".into(),
        title: "Search progress".into(),
        about: "The load of each run, in the order they were made.".into(),
        x: Axis::linear("run", Unit::Count),
        y: Axis::linear(&search.metric, Unit::Count),
        at: (1..=search.runs.len()).map(|n| n as f64).collect(),
        columns: vec![
            column("pass", true, SeriesStyle::Series(0)),
            column("fail", false, SeriesStyle::Series(1)),
        ],
        extra: ChartOverlay::None,
    }
}
