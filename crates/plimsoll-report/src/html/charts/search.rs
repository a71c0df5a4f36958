//! Charts of searches for a load line.

use super::loads::{Loads, limits_of_series, passed};
use crate::html::chart::{Axis, Chart, Column, CrossedPoints, SeriesStyle, Unit};
use plimsoll_results::{LoadSearch, SeriesOf, SeriesRun};

/// Word for loads that are not sustained.
const NOT_SUSTAINED: &str = "not sustained";

/// Charts of a search: latency and throughput over the load or the searched parameter, and the loads or values in the
/// order of the runs; empty for a search without runs.
pub(super) fn of_search(search: SeriesOf<'_, LoadSearch>) -> Vec<Chart> {
    if search.measured().next().is_none() {
        return vec![];
    }
    let load_line = search.figures.load_line.sustained.map(|s| s.load);
    let loads = Loads::of(search.series, load_line);
    let first = match search.searched() {
        None => vec![response(search, &loads)],
        Some(_) => vec![
            loads.percentiles(&search.first_plan().promises),
            loads.latency_over_throughput(),
        ],
    };
    let others = [loads.throughput(NOT_SUSTAINED), load_sequence(search)];
    first.into_iter().chain(others).collect()
}

fn response(search: SeriesOf<'_, LoadSearch>, loads: &Loads<'_>) -> Chart {
    let about = "Response time at each load, of repeated loads the mean of their runs.";
    let limits = limits_of_series(search.series);
    let mut chart = loads.response("load-line", about.into(), NOT_SUSTAINED, limits);
    let mut count = |name, count: fn(&[&SeriesRun]) -> usize| {
        let counts = loads.values(|runs| Some(count(runs) as f64));
        chart
            .columns
            .push(Column::tabular(name, Unit::Count, counts));
    };
    count("runs", |runs| runs.len());
    count("passed", passed);
    chart
}

/// The load of each run, in the order of the runs.
fn load_sequence(search: SeriesOf<'_, LoadSearch>) -> Chart {
    let loads = search
        .measured()
        .map(|run| Some(run.load_or_value()? as f64));
    let name = search.load_name();
    let mut column = Column::drawn(&name, Unit::Count, loads.collect(), SeriesStyle::Series(0));
    let failed = (0..)
        .zip(search.measured())
        .filter(|(_, run)| !run.is_valid());
    column.crossed = CrossedPoints {
        at: failed.map(|(at, _)| at).collect(),
        word: "fail",
    };
    Chart {
        id: "course".into(),
        title: "Search progress".into(),
        about: "The load, or the value of the parameter, of each run, in the order of the runs. A cross is a run that \
                failed."
            .into(),
        x: Axis::linear("run", Unit::Count),
        y: Axis::linear(&name, Unit::Count),
        at: (1..=search.measured().count()).map(|n| n as f64).collect(),
        columns: vec![column],
        ..Chart::default()
    }
}
