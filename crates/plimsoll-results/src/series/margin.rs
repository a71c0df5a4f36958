//! Margin of a run: the smallest relative distance from its criteria and promises.

use crate::{MixFigures, PromiseResult, Run};
use plimsoll_plan::Criteria;

/// Minimum distance of a run from a criterion or a promise of its Plan, as a fraction of the limit: positive if the run
/// passed, negative if the run failed; `None` without a comparable figure, and for a run with errors, which is never
/// marginal.
pub(super) fn margin(run: &Run) -> Option<f64> {
    if run.summary.errors > 0 {
        return None;
    }
    let metric = run.plan.metric.as_ref();
    let of_criteria = metric
        .zip(run.mix.as_ref())
        .and_then(|(metric, mix)| margin_of_criteria(&metric.criteria, mix, run.summary.mean_ms));
    let of_promises = run.promises.iter().filter_map(|p: &PromiseResult| p.margin);
    of_criteria.into_iter().chain(of_promises).reduce(f64::min)
}

/// Minimum distance of an operation mix from its criteria.
///
/// The margin counts one operation per process that was in flight at the window end as completed, like the criteria.
fn margin_of_criteria(criteria: &Criteria, mix: &MixFigures, mean_ms: f64) -> Option<f64> {
    let total = &mix.total;
    let processes: u64 = mix
        .components
        .iter()
        .map(|c| c.processes)
        .fold(0, u64::saturating_add);
    let is_paced = total.offered_ops_per_s.is_some() && total.scheduled > 0;
    let sustained_percent = is_paced
        .then(|| 100.0 * total.completed.saturating_add(processes) as f64 / total.scheduled as f64);
    let slowest = mix.components.iter().filter_map(|c| {
        let in_flight = 100.0 * c.processes as f64 / c.carried.scheduled as f64;
        Some(c.carried.slowest_process_percent? + in_flight)
    });
    let slowest_percent = slowest.reduce(f64::min);
    let above = |value: Option<f64>, least: f64| Some((value? - least) / least);
    let limit_ms = criteria.latency.map(|limit| limit.as_secs_f64() * 1e3);
    [
        above(sustained_percent, criteria.total_percent),
        above(slowest_percent, criteria.process_percent),
        limit_ms.map(|limit| (limit - mean_ms) / limit),
    ]
    .into_iter()
    .flatten()
    // A criterion of zero gives no finite fraction.
    .filter(|margin| margin.is_finite())
    .reduce(f64::min)
}

#[cfg(test)]
mod tests;
