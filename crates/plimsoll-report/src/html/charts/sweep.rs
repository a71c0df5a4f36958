//! Charts of sweeps over one or two parameters.

use super::MIN_HEAT_LEVEL;
use super::curve::INVALID;
use super::loads::Loads;
use crate::html::chart::{Axis, Cell, Chart, ChartOverlay, Column, Scale, Unit};
use plimsoll_results::{
    Percentile, SeriesOf, SeriesRun, Sweep, VariedNumbers, VariedParameter, VariedUnit,
};

/// Minimum ratio of the greatest value to the least for a logarithmic axis.
const MIN_LOGARITHMIC_RATIO: f64 = 16.0;

/// Half of the size of a heat map's cell on an axis with a single value, as a distance on the axis.
const HALF_CELL: f64 = 0.15;

/// Axis of a parameter, with the values in the order of the parameter.
struct ValueAxis {
    axis: Axis,
    values: Vec<f64>,
}

impl ValueAxis {
    /// The axis of a parameter; `None` for values that are not numbers.
    fn of(parameter: &VariedParameter) -> Option<Self> {
        let values = parameter.numbers()?;
        Some(Self {
            axis: axis(parameter, &values),
            values: values.numbers,
        })
    }
}

/// Charts of latency and throughput over the values of one parameter, or heat maps over the values of two; empty for more
/// parameters, for values that are not numbers, and with fewer than two measured runs.
pub(super) fn of_sweep(sweep: SeriesOf<'_, Sweep>) -> Vec<Chart> {
    if sweep.measured().count() < 2 {
        return vec![];
    }
    match &sweep.figures.parameters[..] {
        [only] => ValueAxis::of(only).map_or_else(Vec::new, |axis| lines(sweep, axis)),
        [rows, columns] => match (ValueAxis::of(rows), ValueAxis::of(columns)) {
            (Some(rows), Some(columns)) => heat_maps(sweep, [&rows, &columns]),
            _ => vec![],
        },
        _ => vec![],
    }
}

/// Axis of a parameter's values, logarithmic if the values have a wide range.
fn axis(parameter: &VariedParameter, values: &VariedNumbers) -> Axis {
    let (label, unit) = match values.unit {
        VariedUnit::Number => (parameter.name.clone(), Unit::Number),
        VariedUnit::Bytes => (format!("{} in bytes", parameter.name), Unit::Number),
        VariedUnit::Milliseconds => (parameter.name.clone(), Unit::Milliseconds),
    };
    let numbers = || values.numbers.iter().copied();
    let (least, greatest) = (
        numbers().fold(f64::INFINITY, f64::min),
        numbers().fold(0.0, f64::max),
    );
    if least > 0.0 && greatest >= MIN_LOGARITHMIC_RATIO * least {
        Axis::scaled(&label, unit, Scale::Log)
    } else {
        Axis::linear(&label, unit)
    }
}

fn lines(sweep: SeriesOf<'_, Sweep>, over: ValueAxis) -> Vec<Chart> {
    let runs = sweep.series.measured();
    let runs = runs.map(|run| (over.values[run.configuration as usize], run));
    let loads = Loads::over(over.axis.clone(), runs);
    vec![
        loads.percentiles(&sweep.first_plan().promises),
        loads.latency_over_throughput(),
        loads.throughput(INVALID),
    ]
}

/// Heat maps of throughput and 99th percentile, with the first parameter on the vertical axis and the second parameter
/// on the horizontal axis.
fn heat_maps(sweep: SeriesOf<'_, Sweep>, axes: [&ValueAxis; 2]) -> Vec<Chart> {
    let p99 = |run: &SeriesRun| run.percentile(Percentile::P99).map(|figure| figure.ms);
    let maps = [
        heat_map(
            sweep,
            axes,
            (
                "throughput-map",
                "Throughput",
                "operations per second",
                Unit::Number,
            ),
            |run| Some(run.achieved_ops_per_s),
        ),
        heat_map(
            sweep,
            axes,
            (
                "p99-map",
                "99th percentile",
                "99th percentile of the latency",
                Unit::Milliseconds,
            ),
            p99,
        ),
    ];
    maps.into_iter().flatten().collect()
}

/// Heat map of a figure above 0; `None` without such a figure. `names` are identifier, title, the figure in words, and
/// its unit.
fn heat_map(
    sweep: SeriesOf<'_, Sweep>,
    [rows, columns]: [&ValueAxis; 2],
    (id, title, figure, unit): (&str, &str, &str, Unit),
    value: impl Fn(&SeriesRun) -> Option<f64>,
) -> Option<Chart> {
    let value_at = |row: usize, column: usize| {
        let number = sweep.figures.configuration(&[row, column]);
        let run = sweep.series.runs_of(number).find(|run| run.is_measured())?;
        value(run).filter(|value| *value > 0.0)
    };
    let (heights, widths) = (cells(rows), cells(columns));
    let mut drawn: Vec<(Cell, f64)> = Vec::new();
    for (row, y) in heights.iter().enumerate() {
        for (column, x) in widths.iter().enumerate() {
            drawn.extend(value_at(row, column).map(|value| {
                let cell = Cell {
                    x: *x,
                    y: *y,
                    depth: 1.0,
                };
                (cell, value)
            }));
        }
    }
    let values = || drawn.iter().map(|(_, value)| *value);
    let (least, greatest) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let depth = |value: f64| {
        if greatest <= least {
            return 1.0;
        }
        let share = (value.ln() - least.ln()) / (greatest.ln() - least.ln());
        MIN_HEAT_LEVEL + (1.0 - MIN_HEAT_LEVEL) * share
    };
    let about = format!(
        "The darker a cell, the greater the {figure}: from {} in the lightest cell to {} in the darkest, by ratio.",
        unit.show(least),
        unit.show(greatest)
    );
    let names = &sweep.figures.parameters[0];
    let columns_of_table = names.values.iter().enumerate().map(|(row, name)| {
        let values = (0..widths.len()).map(|column| value_at(row, column));
        Column::tabular(&format!("{} {name}", names.name), unit, values.collect())
    });
    Some(Chart {
        id: id.into(),
        title: title.into(),
        about,
        x: columns.axis.clone(),
        y: Axis {
            from_zero: false,
            ..rows.axis.clone()
        },
        at: columns.values.clone(),
        columns: columns_of_table.collect(),
        extra: ChartOverlay::Heat(
            drawn
                .iter()
                .map(|(cell, value)| Cell {
                    depth: depth(*value),
                    ..*cell
                })
                .collect(),
        ),
        ..Chart::default()
    })
}

/// Begin and end of the cell of each value on its axis: a cell reaches half of the way to its neighbours, by the scale
/// of the axis.
fn cells(over: &ValueAxis) -> Vec<(f64, f64)> {
    let ValueAxis { axis, values } = over;
    let is_logarithmic = axis.scale == Scale::Log;
    let at = |value: f64| axis.scale.position(value);
    let back = |position: f64| {
        if is_logarithmic {
            10f64.powf(position)
        } else {
            position
        }
    };
    let mut positions: Vec<f64> = values.iter().map(|value| at(*value)).collect();
    positions.sort_by(f64::total_cmp);
    let half = |from: f64, to: f64| (to - from) / 2.0;
    let cell = |value: &f64| {
        let own = at(*value);
        let place = positions.iter().position(|p| *p == own);
        let place = place.expect("the positions are of the values");
        let before = place.checked_sub(1).map(|i| half(positions[i], own));
        let after = positions.get(place + 1).map(|next| half(own, *next));
        let (before, after) = (before.or(after), after.or(before));
        (
            back(own - before.unwrap_or(HALF_CELL)),
            back(own + after.unwrap_or(HALF_CELL)),
        )
    };
    values.iter().map(cell).collect()
}
