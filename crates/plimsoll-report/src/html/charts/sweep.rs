//! Charts of sweeps over one parameter.

use super::loads::Loads;
use crate::html::chart::{Axis, Chart, Scale, Unit};
use plimsoll_results::{SeriesOf, Sweep, VariedUnit};

/// Minimum ratio of the greatest value to the least for a logarithmic axis.
const MIN_LOGARITHMIC_RATIO: f64 = 16.0;

/// Charts of latency and throughput over the values; empty for several parameters, for values that are not numbers, and
/// with fewer than two measured values.
pub(super) fn of_sweep(sweep: SeriesOf<'_, Sweep>) -> Vec<Chart> {
    let [parameter] = &sweep.figures.parameters[..] else {
        return vec![];
    };
    let Some(values) = parameter.numbers() else {
        return vec![];
    };
    if sweep.measured().count() < 2 {
        return vec![];
    }
    let (label, unit) = match values.unit {
        VariedUnit::Number => (parameter.name.clone(), Unit::Number),
        VariedUnit::Bytes => (format!("{} in bytes", parameter.name), Unit::Number),
        VariedUnit::Milliseconds => (parameter.name.clone(), Unit::Milliseconds),
    };
    let least = values.numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.numbers.iter().copied().fold(0.0, f64::max);
    let axis = match least > 0.0 && greatest >= MIN_LOGARITHMIC_RATIO * least {
        true => Axis::scaled(&label, unit, Scale::Log),
        false => Axis::linear(&label, unit),
    };
    let runs = sweep.series.measured();
    let runs = runs.map(|run| (values.numbers[run.configuration as usize], run));
    let loads = Loads::over(axis, runs);
    vec![
        loads.percentiles(&sweep.first_plan().promises),
        loads.latency_over_throughput(),
        loads.throughput(["achieved", "achieved, invalid runs"]),
    ]
}
