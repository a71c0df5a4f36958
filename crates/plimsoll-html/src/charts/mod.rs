//! Which charts a run and a load curve have.

mod curve;
mod search;

pub use curve::of_curve;
pub use search::of_search;

use crate::chart::{Axis, Cell, Chart, ChartOverlay, Column, MAX_SERIES, Scale, SeriesStyle, Unit};
use crate::latency_distribution::{Heat, LatencyDistribution};
use crate::loaded_result::{LoadedResult, OpName};
use crate::timeline::{Series, Timeline};
use plimsoll_plan::show_duration;
use plimsoll_results::{LatencyKind, StallFigure};
use std::time::Duration;

/// Bytes of a MiB.
const MIB: f64 = 1_048_576.0;

/// Depths that cells of a heat map have: neighbours of one depth are drawn as one.
const HEAT_LEVELS: f64 = 8.0;

/// Least depth of a cell that has a sample.
const MIN_HEAT_LEVEL: f64 = 0.12;

/// All charts of a run, in the order of the page.
#[must_use]
pub fn of_run(loaded: &LoadedResult) -> Vec<Chart> {
    let mut charts = over_time(TimeSeriesInput::of(loaded));
    shade(&mut charts, loaded);
    charts.extend(percentiles(loaded));
    charts.extend(heat_maps(loaded));
    charts
}

/// Shades the times in which the target stood still, of all ranks or of one.
fn shade(charts: &mut [Chart], loaded: &LoadedResult) {
    let run = &loaded.run;
    let of_stages = run.stages.iter().map(|s| &s.window);
    let origin = of_stages.clone().next().map_or(0.0, |w| w.start_s);
    let mut times = Vec::new();
    let mut add = |start: f64, stalls: &[StallFigure]| {
        times.extend(stalls.iter().map(|s| (start + s.start_s, start + s.end_s)));
    };
    match run.stages.is_empty() {
        true => add(0.0, &run.summary.stalls),
        false => of_stages.for_each(|w| add(w.start_s - origin, &w.summary.stalls)),
    }
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

/// What charts over time are made of: of a run that is over, or of one that goes on.
#[derive(Debug, Clone, Copy)]
pub struct TimeSeriesInput<'a> {
    /// Throughput and latency, point by point.
    pub timeline: &'a Timeline,
    /// The operations of the timeline, in its order.
    pub operations: &'a [OpName],
    /// Whether points are stages of a pattern.
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
pub fn over_time(seen: TimeSeriesInput<'_>) -> Vec<Chart> {
    let line = seen.timeline;
    if line.start_s.is_empty() || seen.operations.is_empty() {
        return vec![];
    }
    let ops = |s: &Series| line.per_second(&s.ops);
    let mib = |s: &Series| -> Vec<f64> {
        let bytes = line.per_second(&s.bytes);
        bytes.into_iter().map(|b| b / MIB).collect()
    };
    let errors = |s: &Series| s.errors.iter().map(|n| *n as f64).collect();
    let mut charts = vec![sums(
        seen,
        "throughput",
        "Operations per second",
        "operations/s",
        Unit::Number,
        ops,
    )];
    let moved = |s: &Series| s.bytes.iter().any(|b| *b > 0);
    if line.operations.iter().any(moved) {
        charts.push(sums(
            seen,
            "bandwidth",
            "MiB per second",
            "MiB/s",
            Unit::Number,
            mib,
        ));
    }
    charts.extend(latency_over_time(seen));
    if line
        .operations
        .iter()
        .any(|s| s.errors.iter().any(|n| *n > 0))
    {
        charts.push(sums(
            seen,
            "errors",
            "Failed operations",
            "errors",
            Unit::Count,
            errors,
        ));
    }
    charts
}

/// Latency over time, and service time where that is something else.
fn latency_over_time(seen: TimeSeriesInput<'_>) -> Vec<Chart> {
    let operations = &seen.timeline.operations;
    let sum = |counts: fn(&Series) -> &Vec<u64>| operations.iter().flat_map(counts).sum();
    let kind = LatencyKind::of(sum(|s| &s.paced), sum(|s| &s.ops));
    let mut charts = vec![
        latencies(seen, "latency", &format!("Mean {}", kind.name()), |s| {
            s.mean_ms(&s.latency)
        }),
        latencies(
            seen,
            "latency-p99",
            &format!("99th percentile of the {}", kind.name()),
            |s| s.p99_ms(&s.latency),
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
        charts.push(latencies(seen, "service", "Mean service time", |s| {
            s.mean_ms(&s.service)
        }));
        charts.push(latencies(
            seen,
            "service-p99",
            "99th percentile of the service time",
            |s| s.p99_ms(&s.service),
        ));
    }
    charts
}

/// Where points are drawn: in the middle of the time they stand for.
fn interval_midpoints(seen: TimeSeriesInput<'_>) -> Vec<f64> {
    let line = seen.timeline;
    let points = line.start_s.iter().zip(&line.length_s);
    points.map(|(start, length)| start + length / 2.0).collect()
}

/// What a point of a series over time is.
fn point(seen: TimeSeriesInput<'_>) -> String {
    if seen.staged && seen.timeline.together == 1 {
        return "A point is a stage, or an interval of a long one.".into();
    }
    let interval = Duration::try_from_secs_f64(seen.timeline.interval_s).unwrap_or_default();
    match seen.timeline.together {
        0 | 1 => format!("A point is an interval of {}.", show_duration(interval)),
        n => format!("A point is {n} intervals of {}.", show_duration(interval)),
    }
}

fn time_axis() -> Axis {
    Axis::linear("seconds since the window opened", Unit::Seconds)
}

/// A chart of something that can be added up over operations.
fn sums(
    seen: TimeSeriesInput<'_>,
    id: &str,
    title: &str,
    label: &str,
    unit: Unit,
    values: impl Fn(&Series) -> Vec<f64>,
) -> Chart {
    let each: Vec<Vec<f64>> = seen.timeline.operations.iter().map(&values).collect();
    let add = |series: &[Vec<f64>]| -> Vec<Option<f64>> {
        let at = |i: usize| series.iter().map(|s| s[i]).sum();
        (0..seen.timeline.start_s.len())
            .map(|i| Some(at(i)))
            .collect()
    };
    let used = |v: &&(usize, &Vec<f64>)| v.1.iter().any(|v| *v > 0.0);
    let shown: Vec<(usize, &Vec<f64>)> = each.iter().enumerate().filter(|v| used(&v)).collect();
    let mut columns = vec![];
    if shown.len() != 1 {
        columns.push(column("all", unit, add(&each), SeriesStyle::Main));
    }
    // Rows that have no colour of their own are shown as one.
    let own = if shown.len() > MAX_SERIES {
        MAX_SERIES - 1
    } else {
        shown.len()
    };
    for (i, values) in &shown[..own] {
        let label = &seen.operations[*i].label;
        let ink = SeriesStyle::Series(if shown.len() > MAX_SERIES {
            columns.len() - 1
        } else {
            *i
        });
        columns.push(column(
            label,
            unit,
            values.iter().copied().map(Some).collect(),
            ink,
        ));
    }
    if own < shown.len() {
        let rest: Vec<Vec<f64>> = shown[own..].iter().map(|(_, v)| (*v).clone()).collect();
        let name = format!("{} others", rest.len());
        columns.push(column(
            &name,
            unit,
            add(&rest),
            SeriesStyle::Series(MAX_SERIES - 1),
        ));
    }
    Chart {
        id: id.into(),
        title: title.into(),
        about: point(seen),
        x: time_axis(),
        y: Axis::linear(label, unit),
        at: interval_midpoints(seen),
        columns,
        extra: ChartOverlay::None,
    }
}

fn column(name: &str, unit: Unit, values: Vec<Option<f64>>, ink: SeriesStyle) -> Column {
    Column {
        name: name.into(),
        unit,
        values,
        ink: Some(ink),
    }
}

/// What is left out of a chart that shows only the most frequent operations.
fn omitted_note(operations: &[OpName]) -> String {
    match operations.len() {
        n if n > MAX_SERIES => format!(" The {MAX_SERIES} most frequent of {n} operations."),
        _ => String::new(),
    }
}

fn latencies(
    seen: TimeSeriesInput<'_>,
    id: &str,
    title: &str,
    values: impl Fn(&Series) -> Vec<Option<f64>>,
) -> Chart {
    let shown = seen.timeline.operations.iter().zip(seen.operations);
    let columns = shown.take(MAX_SERIES).enumerate().map(|(i, (series, op))| {
        column(
            &op.label,
            Unit::Milliseconds,
            values(series),
            SeriesStyle::Series(i),
        )
    });
    let mut about = point(seen);
    if id.ends_with("-p99") && seen.timeline.together > 1 {
        about.push_str(" It shows the maximum of its intervals.");
    }
    Chart {
        id: id.into(),
        title: title.into(),
        about: about + &omitted_note(seen.operations),
        x: time_axis(),
        y: Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
        at: interval_midpoints(seen),
        columns: columns.collect(),
        extra: ChartOverlay::None,
    }
}

/// Shares at which the percentile chart has points: nine in each step of 90 %, 99 %, 99.9 %, …
fn shares(samples: u64) -> Vec<f64> {
    let decades = (samples.max(10) as f64).log10().ceil() as i32;
    let mut shares = vec![0.0];
    for decade in 1..=decades {
        let left = (1..=9).rev().map(|k| f64::from(k) * 10f64.powi(-decade));
        shares.extend(left.map(|left| 1.0 - left));
    }
    shares
}

/// Latency over percentile, of each operation; `None` without samples.
#[must_use]
pub fn percentiles(loaded: &LoadedResult) -> Option<Chart> {
    let shown = || {
        loaded
            .spreads
            .iter()
            .zip(&loaded.operations)
            .take(MAX_SERIES)
    };
    let most = shown().map(|(s, _)| s.latency.count()).max()?;
    if most == 0 {
        return None;
    }
    let at = shares(most);
    let mut columns: Vec<Column> = Vec::new();
    for (spread, op) in shown() {
        let name = match op.latency {
            LatencyKind::Service => op.label.clone(),
            kind => format!("{}, {}", op.label, kind.name()),
        };
        let ink = SeriesStyle::Series(columns.len());
        let latency = spread.latency.quantiles_ms(&at);
        columns.push(column(&name, Unit::Milliseconds, latency, ink));
    }
    for (spread, op) in shown().filter(|(s, _)| s.service.count() > 0) {
        let name = format!("{}, service time", op.label);
        let ink = SeriesStyle::Series(columns.len());
        let service = spread.service.quantiles_ms(&at);
        columns.push(column(&name, Unit::Milliseconds, service, ink));
    }
    let reached = |i: &usize| columns.iter().any(|c: &Column| c.values[*i].is_some());
    let shown = (0..at.len()).take_while(reached).count();
    for c in &mut columns {
        c.values.truncate(shown);
    }
    Some(Chart {
        id: "percentiles".into(),
        title: "Latency distribution".into(),
        about: format!(
            "The latency that a share of the operations does not exceed.{}",
            omitted_note(&loaded.operations)
        ),
        x: Axis::scaled("share of the operations", Unit::Share, Scale::Tail),
        y: Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
        at: at[..shown].to_vec(),
        columns,
        extra: ChartOverlay::None,
    })
}

/// Latency over time of each operation, where there are at least two columns to compare.
#[must_use]
pub fn heat_maps(loaded: &LoadedResult) -> Vec<Chart> {
    let shown = loaded
        .spreads
        .iter()
        .zip(&loaded.operations)
        .take(MAX_SERIES);
    let enough = |s: &LatencyDistribution| s.heat.columns.len() > 1 && s.latency.count() > 0;
    shown
        .enumerate()
        .filter(|(_, (s, _))| enough(s))
        .map(|(i, (s, op))| heat_map(i, &s.heat, op))
        .collect()
}

fn heat_map(number: usize, heat: &Heat, op: &OpName) -> Chart {
    let total = |cells: &std::collections::BTreeMap<i32, u64>| cells.values().sum::<u64>();
    let samples = heat.cells.iter().map(|c| Some(total(c) as f64)).collect();
    let row = |pick: fn(&std::collections::BTreeMap<i32, u64>) -> Option<i32>, upper: bool| {
        let edge = move |row: i32| {
            let (from, to) = Heat::row_ms(row);
            if upper { to } else { from }
        };
        heat.cells.iter().map(|c| pick(c).map(edge)).collect()
    };
    let fullest = |c: &std::collections::BTreeMap<i32, u64>| {
        let best = c.iter().max_by_key(|(_, n)| **n);
        best.map(|(row, _)| *row)
    };
    let plain = |name: &str, unit, values| Column {
        name: name.into(),
        unit,
        values,
        ink: None,
    };
    Chart {
        id: format!("heat-{}", number + 1),
        title: heat_title(op),
        about: "The darker a cell, the more operations completed then with that latency.".into(),
        x: time_axis(),
        y: Axis::scaled("latency", Unit::Milliseconds, Scale::Log),
        at: heat.columns.iter().map(|c| (c.0 + c.1) / 2.0).collect(),
        columns: vec![
            plain("operations", Unit::Count, samples),
            plain("most of them from", Unit::Milliseconds, row(fullest, false)),
            plain("to", Unit::Milliseconds, row(fullest, true)),
            plain(
                "all of them from",
                Unit::Milliseconds,
                row(|c| c.keys().next().copied(), false),
            ),
            plain(
                "to",
                Unit::Milliseconds,
                row(|c| c.keys().next_back().copied(), true),
            ),
        ],
        extra: ChartOverlay::Heat(cells(heat)),
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

/// Cells of a heat map; neighbours in time that are as dark are one.
fn cells(heat: &Heat) -> Vec<Cell> {
    let all = heat.cells.iter().flat_map(|c| c.values());
    let most = all.copied().max().unwrap_or(1).max(2) as f64;
    // One operation is still seen beside a million.
    let depth = |n: u64| {
        let share = (n as f64).ln_1p() / most.ln_1p();
        let step = (share * HEAT_LEVELS).ceil() / HEAT_LEVELS;
        MIN_HEAT_LEVEL + (1.0 - MIN_HEAT_LEVEL) * step
    };
    let mut open: std::collections::BTreeMap<i32, Cell> = std::collections::BTreeMap::new();
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
