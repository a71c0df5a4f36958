//! Charts of runs, load curves, searches, sweeps and paired comparisons.

mod ab;
mod comparison;
mod curve;
mod forest;
mod loads;
mod search;
mod sweep;

pub use ab::of_pairs;
pub use comparison::of_comparison;
pub(crate) use comparison::{latencies, relative_changes};

use curve::of_curve;
use search::of_search;
use sweep::of_sweep;

use crate::compare::Metric;
use crate::html::chart::{
    Axis, Cell, Chart, ChartOverlay, Column, MAX_SERIES, Mark, Scale, SeriesStyle, Unit,
};
use crate::html::latency_distribution::{Heat, LatencyDistribution};
use crate::html::loaded_result::{LoadedResult, spans};
use crate::html::op_name::OpName;
use crate::html::timeline::{Point, Timeline};
use crate::{MIB, duration_text};
use plimsoll_results::{Distribution, LatencyKind, Run, RunEvent, StallFigure};
use std::collections::BTreeMap;

/// Number of different opacities of heat map cells: adjacent cells with equal opacity are drawn as one.
const HEAT_LEVELS: f64 = 8.0;

/// Minimum opacity of a cell that has a sample.
const MIN_HEAT_LEVEL: f64 = 0.12;

/// All charts of a load curve, a search or a sweep, in the order of the page; empty for other series.
#[must_use]
pub fn of_series(series: &plimsoll_results::Series) -> Vec<Chart> {
    if let Some(curve) = series.as_curve() {
        return of_curve(curve);
    }
    if let Some(sweep) = series.as_sweep() {
        return of_sweep(sweep);
    }
    series.as_search().map_or_else(Vec::new, of_search)
}

/// All charts of a run, in the order of the page.
#[must_use]
pub fn of_run(loaded: &LoadedResult) -> Vec<Chart> {
    let mut charts = over_time(TimeSeriesInput::of(loaded));
    shade(&mut charts, loaded);
    mark_events(&mut charts, &loaded.run);
    charts.extend(percentiles(loaded));
    let mut heat_maps = heat_maps(loaded);
    mark_events(&mut heat_maps, &loaded.run);
    charts.extend(heat_maps);
    charts
}

/// Marks the events of a run in charts over time.
fn mark_events(charts: &mut [Chart], run: &Run) {
    let (spans, origin) = spans(run);
    let ends = spans.iter().map(|s| origin + s.start_s + s.length_s);
    let end = ends.fold(0.0, f64::max);
    let shown = |event: &&RunEvent| event.start_s.is_some_and(|s| (origin..=end).contains(&s));
    let mark = |event: &RunEvent| Some((event.start_s? - origin, event.action.clone()));
    mark_times(charts, run.events.iter().filter(shown).filter_map(mark));
}

/// Adds vertical lines to charts over time: for each event its time in seconds on the first axis, and its action.
pub fn mark_times(charts: &mut [Chart], events: impl IntoIterator<Item = (f64, String)>) {
    let events = events.into_iter();
    let marks: Vec<Mark> = events.map(|(at, text)| Mark { at, text }).collect();
    if marks.is_empty() {
        return;
    }
    for chart in charts {
        chart.marks.clone_from(&marks);
        chart.about.push_str(" Vertical lines: events.");
    }
}

/// Shades the stalls of the target, whether of all ranks or of one rank.
fn shade(charts: &mut [Chart], loaded: &LoadedResult) {
    let run = &loaded.run;
    let of_stages = run.stages.iter().map(|s| &s.window);
    let origin = of_stages.clone().next().map_or(0.0, |w| w.start_s);
    let mut times = Vec::new();
    let mut add = |start: f64, stalls: &[StallFigure]| {
        times.extend(stalls.iter().map(|s| (start + s.start_s, start + s.end_s)));
    };
    if run.stages.is_empty() {
        add(0.0, &run.summary.stalls);
    }
    of_stages.for_each(|w| add(w.start_s - origin, &w.summary.stalls));
    if times.is_empty() {
        return;
    }
    for chart in charts {
        chart.extra = ChartOverlay::Shaded(times.clone());
        chart
            .about
            .push_str(" Shaded: nothing completed, although operations were in flight.");
    }
}

/// Input of charts over time, for a completed run or a run in progress.
#[derive(Debug, Clone, Copy)]
pub struct TimeSeriesInput<'a> {
    /// Throughput and latency, point by point.
    pub timeline: &'a Timeline,
    /// The operations of the timeline, in its order.
    pub operations: &'a [OpName],
    /// Whether each point is a stage of a pattern.
    pub staged: bool,
}

impl<'a> TimeSeriesInput<'a> {
    fn of(loaded: &'a LoadedResult) -> Self {
        Self {
            timeline: &loaded.timeline,
            operations: &loaded.operations,
            staged: !loaded.run.stages.is_empty(),
        }
    }
}

/// Throughput and latency over time; empty if nothing was measured.
#[must_use]
pub fn over_time(input: TimeSeriesInput<'_>) -> Vec<Chart> {
    let line = input.timeline;
    if line.start_s.is_empty() || input.operations.is_empty() {
        return vec![];
    }
    let has = |occurs: fn(&Point) -> bool| line.operations.iter().flatten().any(occurs);
    let number = |label| Axis::linear(label, Unit::Number);
    let mut charts = vec![input.sums(
        ("throughput", "Operations per second"),
        number("operations/s"),
        |p, seconds| p.ops as f64 / seconds,
    )];
    if has(|p| p.bytes > 0) {
        let mib = |p: &Point, seconds: f64| p.bytes as f64 / seconds / MIB;
        charts.push(input.sums(("bandwidth", "MiB per second"), number("MiB/s"), mib));
    }
    charts.extend(latency_over_time(input));
    if has(|p| p.errors > 0) {
        let axis = Axis::linear("errors", Unit::Count);
        let errors = |p: &Point, _| p.errors as f64;
        charts.push(input.sums(("errors", "Failed operations"), axis, errors));
    }
    charts
}

/// Latency over time, and service time over time if operations were paced.
fn latency_over_time(input: TimeSeriesInput<'_>) -> Vec<Chart> {
    let points = || input.timeline.operations.iter().flatten();
    let sum = |count: fn(&Point) -> u64| points().map(count).sum();
    let kind = LatencyKind::of(sum(|p| p.paced), sum(|p| p.ops));
    let name = kind.name();
    let mut charts = vec![
        input.latencies("latency", format!("Mean {name}"), |p| p.mean_ms(p.latency)),
        input.latencies(
            "latency-p99",
            format!("99th percentile of the {name}"),
            |p| p.p99_ms(p.latency),
        ),
    ];
    if kind == LatencyKind::Mixed {
        for chart in &mut charts {
            chart
                .about
                .push_str(&format!(" The latency is the {}.", kind.words()));
        }
    }
    if kind != LatencyKind::Service {
        charts.extend([
            input.latencies("service", "Mean service time".into(), |p| {
                p.mean_ms(p.service)
            }),
            input.latencies(
                "service-p99",
                "99th percentile of the service time".into(),
                |p| p.p99_ms(p.service),
            ),
        ]);
    }
    charts
}

fn time_axis() -> Axis {
    Axis::linear("seconds since the window opened", Unit::Seconds)
}

impl TimeSeriesInput<'_> {
    /// The meaning of a point, in a sentence.
    fn point(self) -> String {
        let per_point = self.timeline.intervals_per_point;
        if self.staged && per_point == 1 {
            return "A point is a stage, or an interval of a long one.".into();
        }
        let interval = duration_text(self.timeline.interval_s);
        match per_point {
            0 | 1 => format!("A point is an interval of {interval}."),
            n => format!("A point is {n} intervals of {interval}."),
        }
    }

    fn chart(self, id: &str, title: &str, about: String, y: Axis, columns: Vec<Column>) -> Chart {
        let line = self.timeline;
        let points = line.start_s.iter().zip(&line.length_s);
        Chart {
            id: id.into(),
            title: title.into(),
            about,
            x: time_axis(),
            y,
            // The position is the middle of the time that a point covers.
            at: points.map(|(start, length)| start + length / 2.0).collect(),
            columns,
            ..Chart::default()
        }
    }

    /// Chart over time of a figure that can be summed, such as throughput: the sum of all operations, and one series
    /// for each operation. `value` computes the figure from a point and the point's length in seconds. If more than
    /// [`MAX_SERIES`] operations have values, the last series combines the operations without a series.
    fn sums(self, (id, title): (&str, &str), y: Axis, value: impl Fn(&Point, f64) -> f64) -> Chart {
        let values = |points: &Vec<Point>| {
            let points = points.iter().zip(&self.timeline.length_s);
            points
                .map(|(point, seconds)| value(point, *seconds))
                .collect()
        };
        let each: Vec<Vec<f64>> = self.timeline.operations.iter().map(values).collect();
        let add = |series: &[&Vec<f64>]| -> Vec<Option<f64>> {
            let at = |i: usize| series.iter().map(|s| s[i]).sum();
            let points = 0..self.timeline.start_s.len();
            points.map(|i| Some(at(i))).collect()
        };
        let used = |v: &(usize, &Vec<f64>)| v.1.iter().any(|v| *v > 0.0);
        let shown: Vec<(usize, &Vec<f64>)> = each.iter().enumerate().filter(used).collect();
        let mut columns = vec![];
        if shown.len() != 1 {
            let all = add(&each.iter().collect::<Vec<_>>());
            columns.push(Column::drawn("all", y.unit, all, SeriesStyle::Main));
        }
        let crowded = shown.len() > MAX_SERIES;
        let own = if crowded { MAX_SERIES - 1 } else { shown.len() };
        for (at, (i, values)) in shown[..own].iter().enumerate() {
            let label = &self.operations[*i].label;
            let style = SeriesStyle::Series(if crowded { at } else { *i });
            let values = values.iter().copied().map(Some).collect();
            columns.push(Column::drawn(label, y.unit, values, style));
        }
        if crowded {
            let rest: Vec<&Vec<f64>> = shown[own..].iter().map(|(_, v)| *v).collect();
            let name = format!("{} others", rest.len());
            let style = SeriesStyle::Series(MAX_SERIES - 1);
            columns.push(Column::drawn(&name, y.unit, add(&rest), style));
        }
        self.chart(id, title, self.point(), y, columns)
    }

    fn latencies(self, id: &str, title: String, value: fn(&Point) -> Option<f64>) -> Chart {
        let shown = self.timeline.operations.iter().zip(self.operations);
        let columns = shown.take(MAX_SERIES).enumerate().map(|(i, (points, op))| {
            let style = SeriesStyle::Series(i);
            let values = points.iter().map(value).collect();
            Column::drawn(&op.label, Unit::Milliseconds, values, style)
        });
        let mut about = self.point();
        if id.ends_with("-p99") && self.timeline.intervals_per_point > 1 {
            about.push_str(" It shows the maximum of its intervals.");
        }
        let about = about + &omitted_note(self.operations);
        let y = Axis::scaled("latency", Unit::Milliseconds, Scale::Log);
        self.chart(id, &title, about, y, columns.collect())
    }
}

/// The note on a chart that only shows the most frequent operations.
fn omitted_note(operations: &[OpName]) -> String {
    match operations.len() {
        n if n > MAX_SERIES => format!(" The {MAX_SERIES} most frequent of {n} operations."),
        _ => String::new(),
    }
}

/// Positions of the percentile chart's points: nine for each step of 90 %, 99 %, 99.9 %, …
fn percentile_positions(samples: u64) -> Vec<f64> {
    let decades = (samples.max(10) as f64).log10().ceil() as i32;
    let mut positions = vec![0.0];
    for decade in 1..=decades {
        let rest = (1..=9).rev().map(|k| f64::from(k) * 10f64.powi(-decade));
        positions.extend(rest.map(|rest| 1.0 - rest));
    }
    positions
}

/// Latency over percentile, a line for each operation; `None` without samples.
#[must_use]
pub fn percentiles(loaded: &LoadedResult) -> Option<Chart> {
    let shown = || {
        let all = loaded.distributions.iter().zip(&loaded.operations);
        all.take(MAX_SERIES)
    };
    let max = shown().map(|(d, _)| d.latency.count()).max();
    let at = percentile_positions(max.filter(|max| *max > 0)?);
    let mut columns: Vec<Column> = Vec::new();
    let mut push = |name: String, distribution: &Distribution| {
        let style = SeriesStyle::Series(columns.len());
        let values = distribution.quantiles_ms(&at);
        columns.push(Column::drawn(&name, Unit::Milliseconds, values, style));
    };
    for (distribution, op) in shown() {
        let name = match op.latency {
            LatencyKind::Service => op.label.clone(),
            kind => format!("{}, {}", op.label, kind.name()),
        };
        push(name, &distribution.latency);
    }
    for (distribution, op) in shown().filter(|(d, _)| d.service.count() > 0) {
        push(format!("{}, service time", op.label), &distribution.service);
    }
    let about = format!(
        "The latency that the given percentage of operations does not exceed.{}",
        omitted_note(&loaded.operations)
    );
    let names = ("percentiles", "Latency distribution");
    Some(over_percentile(names, about, at, columns))
}

/// Latencies of all operations over percentile, a line for each named distribution up to [`MAX_SERIES`]; `None` without
/// samples. `when` completes the phrase `all operations …`.
fn distributions_of(
    title: &str,
    when: &str,
    distributions: &[(String, &Distribution)],
) -> Option<Chart> {
    let shown = &distributions[..distributions.len().min(MAX_SERIES)];
    let max = shown.iter().map(|(_, of)| of.count()).max();
    let at = percentile_positions(max.filter(|max| *max > 0)?);
    let column = |(number, (name, of)): (usize, &(String, &Distribution))| {
        let (style, values) = (SeriesStyle::Series(number), of.quantiles_ms(&at));
        Column::drawn(name, Unit::Milliseconds, values, style)
    };
    let columns: Vec<Column> = shown.iter().enumerate().map(column).collect();
    let mut about =
        format!("The latency that the given percentage of all operations does not exceed, {when}.");
    if shown.len() < distributions.len() {
        let all = distributions.len();
        about.push_str(&format!(" The first {MAX_SERIES} of {all} results."));
    }
    Some(over_percentile(
        ("distributions", title),
        about,
        at,
        columns,
    ))
}

/// Name of a figure in the id of a chart.
fn id_of(metric: Metric) -> String {
    String::from(metric).replace(['.', '_'], "-")
}

/// Chart of latency over percentile, up to the last position that any column reaches.
fn over_percentile(
    (id, title): (&str, &str),
    about: String,
    mut at: Vec<f64>,
    mut columns: Vec<Column>,
) -> Chart {
    let reached = |i: &usize| columns.iter().any(|c| c.values[*i].is_some());
    let shown = (0..at.len()).take_while(reached).count();
    at.truncate(shown);
    for column in &mut columns {
        column.values.truncate(shown);
    }
    Chart {
        id: id.into(),
        title: title.into(),
        about,
        x: Axis::scaled("percentage of the operations", Unit::Share, Scale::Tail),
        y: Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
        at,
        columns,
        ..Chart::default()
    }
}

/// Heat maps of latency over time, one per operation; only for at least two columns.
#[must_use]
pub fn heat_maps(loaded: &LoadedResult) -> Vec<Chart> {
    let shown = loaded.distributions.iter().zip(&loaded.operations);
    let enough = |d: &LatencyDistribution| d.heat.columns.len() > 1 && d.latency.count() > 0;
    shown
        .take(MAX_SERIES)
        .enumerate()
        .filter(|(_, (d, _))| enough(d))
        .map(|(i, (d, op))| heat_map(i, &d.heat, op))
        .collect()
}

/// Samples of a column of a heat map, by row.
type HeatCells = BTreeMap<i32, u64>;

fn heat_map(number: usize, heat: &Heat, op: &OpName) -> Chart {
    let total = |cells: &HeatCells| cells.values().sum::<u64>();
    let samples = heat.cells.iter().map(|c| Some(total(c) as f64)).collect();
    type Row = fn(&HeatCells) -> Option<i32>;
    let edge = |name, row: Row, edge: fn((f64, f64)) -> f64| {
        let rows = heat.cells.iter().map(row);
        let values = rows.map(|row| Some(edge(Heat::row_ms(row?)))).collect();
        Column::tabular(name, Unit::Milliseconds, values)
    };
    let (lowest, highest): (Row, Row) = (
        |c| c.keys().next().copied(),
        |c| c.keys().next_back().copied(),
    );
    let fullest = |c: &HeatCells| {
        let best = c.iter().max_by_key(|(_, n)| **n);
        best.map(|(row, _)| *row)
    };
    Chart {
        id: format!("heat-{}", number + 1),
        title: heat_title(op),
        about: "The darker a cell, the more operations completed then with that latency.".into(),
        x: time_axis(),
        y: Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
        at: heat.columns.iter().map(|c| (c.0 + c.1) / 2.0).collect(),
        columns: vec![
            Column::tabular("operations", Unit::Count, samples),
            edge("most of them from", fullest, |row| row.0),
            edge("to", fullest, |row| row.1),
            edge("all of them from", lowest, |row| row.0),
            edge("to", highest, |row| row.1),
        ],
        extra: ChartOverlay::Heat(cells(heat)),
        ..Chart::default()
    }
}

fn heat_title(op: &OpName) -> String {
    let what = match op.latency {
        LatencyKind::Service => "Service times",
        LatencyKind::Response => "Response times",
        LatencyKind::Mixed => "Latencies",
    };
    format!("{what} of {} over time", op.label)
}

/// Cells of a heat map; cells that are adjacent in time and equal in opacity are merged.
fn cells(heat: &Heat) -> Vec<Cell> {
    let all = heat.cells.iter().flat_map(|c| c.values());
    let max = all.copied().max().unwrap_or(1).max(2) as f64;
    // The opacity is logarithmic, so one operation is visible beside a million.
    let depth = |n: u64| {
        let fraction = (n as f64).ln_1p() / max.ln_1p();
        let step = (fraction * HEAT_LEVELS).ceil() / HEAT_LEVELS;
        MIN_HEAT_LEVEL + (1.0 - MIN_HEAT_LEVEL) * step
    };
    let mut open: BTreeMap<i32, Cell> = BTreeMap::new();
    let mut done = Vec::new();
    for (column, counts) in heat.columns.iter().zip(&heat.cells) {
        for (row, n) in counts {
            let cell = Cell {
                x: *column,
                y: Heat::row_ms(*row),
                depth: depth(*n),
            };
            match open.get_mut(row) {
                Some(before) if before.depth == cell.depth && before.x.1 == cell.x.0 => {
                    before.x.1 = cell.x.1;
                }
                Some(before) => done.push(std::mem::replace(before, cell)),
                None => _ = open.insert(*row, cell),
            }
        }
    }
    done.extend(open.into_values());
    done
}
