//! Charts of runs, load curves, searches, sweeps and paired comparisons.

mod ab;
mod comparison;
mod curve;
mod forest;
mod history;
mod loads;
mod search;
mod sweep;

pub use ab::of_pairs;
pub use comparison::of_comparison;
pub(crate) use comparison::{latencies, relative_changes};
pub use history::of_history;

use curve::of_curve;
use search::of_search;
use sweep::of_sweep;

use crate::compare::Metric;
use crate::html::chart::{
    Axis, Cell, Chart, ChartOverlay, Column, MAX_SERIES, Mark, Room, Scale, SeriesStyle, Unit,
    coinciding,
};
use crate::html::latency_distribution::{Heat, LatencyDistribution};
use crate::html::loaded_result::{LoadedResult, spans};
use crate::html::op_name::OpName;
use crate::html::timeline::{Point, Timeline};
use crate::{MIB, duration_text};
use plimsoll_plan::Count;
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
    let mut heat_maps = heat_maps(loaded);
    mark_events(&mut heat_maps, &loaded.run);
    // All charts over time have the same axis.
    let all = charts.iter().chain(&heat_maps);
    let reach = range(all.flat_map(Chart::xs));
    for chart in charts.iter_mut().chain(&mut heat_maps) {
        chart.reach[0] = reach;
    }
    charts.extend(percentiles(loaded));
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
    /// for each operation. `value` computes the figure from a point and the point's length in seconds. Operations whose
    /// values coincide share a line. With more than [`MAX_SERIES`] lines, the last line is the sum of the operations
    /// without a line.
    fn sums(self, (id, title): (&str, &str), y: Axis, value: impl Fn(&Point, f64) -> f64) -> Chart {
        let values = |points: &Vec<Point>| {
            let points = points.iter().zip(&self.timeline.length_s);
            points
                .map(|(point, seconds)| Some(value(point, *seconds)))
                .collect()
        };
        let each = self.timeline.operations.iter().map(values).enumerate();
        let mut each: Vec<(usize, Vec<Option<f64>>)> = each.collect();
        each.retain(|(_, values)| values.iter().flatten().any(|v| *v > 0.0));
        let add = |series: &[(usize, Vec<Option<f64>>)]| -> Vec<Option<f64>> {
            let at = |i: usize| series.iter().filter_map(|(_, s)| s[i]).sum();
            let points = 0..self.timeline.start_s.len();
            points.map(|i| Some(at(i))).collect()
        };
        let sum = (each.len() != 1).then(|| add(&each));
        let before = usize::from(sum.is_some());
        let drawn = sum.iter().chain(each.iter().map(|(_, values)| values));
        let lines = coinciding(&y, &drawn.cloned().collect::<Vec<_>>());
        let lines = &lines[before..];
        let mut columns = vec![];
        columns.extend(sum.map(|all| Column::drawn("all", y.unit, all, SeriesStyle::Main)));
        let count = lines.iter().max().map_or(0, |last| last + 1 - before);
        let own = if count > MAX_SERIES {
            MAX_SERIES - 1
        } else {
            count
        };
        let pairs = each.iter().map(|(i, _)| *i).zip(lines.iter().copied());
        let of_own = pairs.filter(|(_, line)| (before..before + own).contains(line));
        // The line of the other operations has the last colour.
        let other = (count > own).then_some((MAX_SERIES, before + own));
        let styles = styles(of_own.chain(other));
        let mut rest = vec![];
        for ((i, values), line) in each.into_iter().zip(lines) {
            if *line >= before + own {
                rest.push((i, values));
                continue;
            }
            // An operation that coincides with the sum shares the line of the sum.
            let style = if *line < before {
                SeriesStyle::Main
            } else {
                styles[line - before]
            };
            add_to_line(
                &mut columns,
                &self.operations[i].label,
                y.unit,
                values,
                style,
            );
        }
        if !rest.is_empty() {
            let name = format!("{} others", rest.len());
            let style = SeriesStyle::Series(MAX_SERIES - 1);
            columns.push(Column::drawn(&name, y.unit, add(&rest), style));
        }
        self.chart(id, title, self.point(), y, columns)
    }

    fn latencies(self, id: &str, title: String, value: fn(&Point) -> Option<f64>) -> Chart {
        let y = Axis::scaled("latency", Unit::Milliseconds, Scale::Log);
        let values = |points: &Vec<Point>| points.iter().map(value).collect();
        let each: Vec<Vec<Option<f64>>> = self.timeline.operations.iter().map(values).collect();
        let lines = coinciding(&y, &each);
        let shown = lines.iter().take_while(|line| **line < MAX_SERIES).count();
        let lines = &lines[..shown];
        let styles = styles(lines.iter().copied().enumerate());
        let mut columns = vec![];
        for ((values, line), op) in each.into_iter().zip(lines).zip(self.operations) {
            add_to_line(&mut columns, &op.label, y.unit, values, styles[*line]);
        }
        let mut about = self.point();
        if id.ends_with("-p99") {
            let has_groups = self.operations[..shown].iter().any(|op| op.rows.len() > 1);
            match (self.timeline.intervals_per_point > 1, has_groups) {
                (true, true) => about.push_str(" It shows the maximum of its intervals and rows."),
                (true, false) => about.push_str(" It shows the maximum of its intervals."),
                (false, true) => about.push_str(" A line of ×N shows the maximum of its rows."),
                (false, false) => {}
            }
        }
        let about = about + &omitted_note(shown, self.operations.len());
        self.chart(id, &title, about, y, columns)
    }
}

/// Style of each line. `series` has the number of each operation with the number of its line; the numbers of new lines
/// ascend from the number of the first line. An operation has the same colour in all charts unless two lines would have
/// the same colour.
fn styles(series: impl Iterator<Item = (usize, usize)>) -> Vec<SeriesStyle> {
    let mut operations: Vec<usize> = vec![];
    let mut last = None;
    for (operation, line) in series {
        if last.is_none_or(|last| line > last) {
            operations.push(operation);
            last = Some(line);
        }
    }
    let has_own_colors = operations.iter().all(|operation| *operation < MAX_SERIES);
    let style =
        |(line, operation)| SeriesStyle::Series(if has_own_colors { operation } else { line });
    operations.into_iter().enumerate().map(style).collect()
}

/// Adds a column in a style. A column in the style of an earlier column shares the line of the earlier column.
fn add_to_line(
    columns: &mut Vec<Column>,
    name: &str,
    unit: Unit,
    values: Vec<Option<f64>>,
    style: SeriesStyle,
) {
    let is_joined = columns.iter().any(|c| c.style == Some(style));
    columns.push(Column {
        is_joined,
        ..Column::drawn(name, unit, values, style)
    });
}

/// Minimum and maximum of values; `None` without values.
fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |range, v| {
        let (min, max) = range.unwrap_or((v, v));
        Some((min.min(v), max.max(v)))
    })
}

/// The note on a chart that only shows the most frequent operations.
fn omitted_note(shown: usize, operations: usize) -> String {
    match shown < operations {
        true => format!(" The {shown} most frequent of {operations} operations."),
        false => String::new(),
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
        omitted_note(
            MAX_SERIES.min(loaded.operations.len()),
            loaded.operations.len()
        )
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

/// Heat maps of latency over time, one per operation, with the same axes and shades; only for at least two columns.
#[must_use]
pub fn heat_maps(loaded: &LoadedResult) -> Vec<Chart> {
    let shown = loaded.distributions.iter().zip(&loaded.operations);
    let enough = |d: &LatencyDistribution| d.heat.columns.len() > 1 && d.latency.count() > 0;
    let shown = shown.take(MAX_SERIES).enumerate();
    let shown: Vec<_> = shown.filter(|(_, (d, _))| enough(d)).collect();
    let cells = || shown.iter().flat_map(|(_, (d, _))| &d.heat.cells);
    let rows = cells().flat_map(|c| c.keys()).map(|row| Heat::row_ms(*row));
    let latencies = range(rows.flat_map(|(from, to)| [from, to]));
    let max = cells().flat_map(|c| c.values()).copied().max().unwrap_or(1);
    let map = |(i, (d, op)): &(usize, (&LatencyDistribution, &OpName))| Chart {
        reach: [None, latencies],
        ..heat_map(*i, &d.heat, op, max)
    };
    shown.iter().map(map).collect()
}

/// Samples of a column of a heat map, by row.
type HeatCells = BTreeMap<i32, u64>;

/// A heat map in which a cell of `max` operations is darkest.
fn heat_map(number: usize, heat: &Heat, op: &OpName, max: u64) -> Chart {
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
        about: "Latency over time: the darker a cell, the more operations completed then with that latency.".into(),
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
        extra: ChartOverlay::Heat(cells(heat, max)),
        room: Room::Small,
        shades: shades(max),
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

/// Opacity of a cell of `n` operations if the darkest cell has `max`. The opacity is logarithmic, so one operation is
/// visible beside a million.
fn depth(n: u64, max: u64) -> f64 {
    let fraction = (n as f64).ln_1p() / (max.max(2) as f64).ln_1p();
    let step = (fraction * HEAT_LEVELS).ceil() / HEAT_LEVELS;
    MIN_HEAT_LEVEL + (1.0 - MIN_HEAT_LEVEL) * step
}

/// Legend of heat maps: the opacities of 1, 10, 100, … operations, and of `max` operations.
fn shades(max: u64) -> Vec<(String, f64)> {
    let powers = (0..20).map(|n| 10u64.saturating_pow(n));
    let counts = powers.take_while(|n| *n < max).chain([max]);
    let shade = |n| (Count(n).to_string(), depth(n, max));
    let mut shades: Vec<(String, f64)> = counts.map(shade).collect();
    if let Some((last, _)) = shades.last_mut() {
        last.push_str(if max == 1 {
            " operation"
        } else {
            " operations"
        });
    }
    shades
}

/// Cells of a heat map; cells that are adjacent in time and equal in opacity are merged.
fn cells(heat: &Heat, max: u64) -> Vec<Cell> {
    let mut open: BTreeMap<i32, Cell> = BTreeMap::new();
    let mut done = Vec::new();
    for (column, counts) in heat.columns.iter().zip(&heat.cells) {
        for (row, n) in counts {
            let cell = Cell {
                x: *column,
                y: Heat::row_ms(*row),
                depth: depth(*n, max),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::chart::{KeyEntry, variable};

    /// Charts of operations that completed `ops` of each point of a second.
    fn charts(ops: &[&[u64]]) -> Vec<Chart> {
        let point = |ops: &u64| Point {
            ops: *ops,
            ..Point::default()
        };
        let points = ops[0].len();
        let timeline = Timeline {
            start_s: (0..points).map(|i| i as f64).collect(),
            length_s: vec![1.0; points],
            intervals_per_point: 1,
            interval_s: 1.0,
            operations: ops.iter().map(|o| o.iter().map(point).collect()).collect(),
        };
        let name = |i: usize| {
            OpName::of_row(
                &format!("op{i}"),
                "read",
                format!("op{i}"),
                LatencyKind::Service,
            )
        };
        let operations: Vec<OpName> = (0..ops.len()).map(name).collect();
        over_time(TimeSeriesInput {
            timeline: &timeline,
            operations: &operations,
            staged: false,
        })
    }

    fn key(chart: &Chart) -> Vec<String> {
        chart.key().iter().map(KeyEntry::label).collect()
    }

    #[test]
    fn operations_of_a_closed_loop_are_one_line() {
        let chart = &charts(&[&[1000, 2000], &[1001, 1999], &[500, 500], &[999, 2001]])[0];
        assert_eq!(key(chart), ["all", "op0, op1 and op3", "op2"]);
        let styles: Vec<SeriesStyle> = chart.lines().map(|(_, style)| style).collect();
        let numbered = [0, 2].map(SeriesStyle::Series);
        assert_eq!(styles, [&[SeriesStyle::Main], &numbered[..]].concat());
        assert_eq!(chart.columns.len(), 5, "the table has each operation");
        let only = &charts(&[&[1000, 2000]])[0];
        assert_eq!(key(only), ["op0"]);
        let beside_nothing = &charts(&[&[10_000, 20_000], &[1, 1]])[0];
        assert_eq!(key(beside_nothing), ["all and op0", "op1"]);
    }

    #[test]
    fn no_two_lines_of_a_chart_have_the_same_colour() {
        // Each operation completes in a second of its own.
        let alone = |op: usize| (0..12).map(|i| if i == op { 1000 } else { 0 }).collect();
        let rates: Vec<Vec<u64>> = (0..12).map(alone).collect();
        let chart = &charts(&rates.iter().map(|r| &r[..]).collect::<Vec<_>>())[0];
        assert_eq!(key(chart).last().unwrap(), "5 others");
        let mut variables: Vec<&str> = chart.lines().map(|(_, s)| variable(s)).collect();
        assert_eq!(variables.len(), 1 + MAX_SERIES);
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables.len(), 1 + MAX_SERIES);
    }

    #[test]
    fn heat_maps_of_a_run_have_one_scale() {
        let heat = |n: u64| Heat {
            columns: vec![(0.0, 1.0), (1.0, 2.0)],
            cells: vec![HeatCells::from([(40, n)]), HeatCells::from([(48, 1)])],
        };
        let depths =
            |n: u64| -> Vec<f64> { cells(&heat(n), 1000).iter().map(|c| c.depth).collect() };
        assert_eq!(depths(1000), [1.0, depths(1)[0]]);
        assert!(depths(10)[0] < depths(100)[0] && depths(100)[0] < 1.0);
        let legend = shades(1000);
        let names: Vec<&str> = legend.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["1", "10", "100", "1 000 operations"]);
        assert_eq!(legend[1].1, depths(10)[0]);
    }
}
