//! Plan of a workload for measurements at several loads.

use crate::cli::{CommonRunArgs, CriteriaArgs};
use crate::exit::CommandError;
use crate::vary;
use crate::workload::{self, WorkloadSource};
use plimsoll_plan::{Condition, OnError, Plan};

/// Plan of a workload at load `max`, the highest load of a curve or search, with the given criteria and the conditions
/// `until`, which no valid run meets. The files of every smaller load are a part of the files at load `max`.
///
/// # Errors
/// If the workload has no business metric, or if `max` is out of the workload's range of loads.
pub fn at(
    found: &WorkloadSource,
    how: &CommonRunArgs,
    criteria: &CriteriaArgs,
    until: &[Condition],
    max: u64,
) -> Result<Plan, CommandError> {
    let reading = workload::parse(found)?;
    let mut overrides = workload::changes(how, &found.name)?;
    let one = reading.lower(found, &overrides)?;
    if one.metric.is_none() {
        return Err(CommandError::usage(format!(
            "`{}` has no business metric to be a load of: load points are for operation mixes \
             such as `vda` (`plimsoll workloads list` names them); `plimsoll run {0}` runs it once, and --vary \
             varies a parameter instead",
            found.name
        )));
    }
    overrides.load = Some(max);
    overrides.most = Some(max);
    // Load points count errors of operations by default: a counted error makes its run invalid without ending the
    // series.
    overrides.options.on_error = how.on_error.map_or(OnError::Count, Into::into);
    let mut plan = reading.lower(found, &overrides)?;
    if let Some(metric) = &mut plan.metric {
        let c = &mut metric.criteria;
        c.latency = criteria.latency_limit.or(c.latency);
        c.process_percent = criteria.min_process_rate.map_or(c.process_percent, percent);
        c.total_percent = criteria.min_total_rate.map_or(c.total_percent, percent);
    }
    vary::add_promises(&mut plan, &vary::promises(until))?;
    workload::adapt_to_target(&mut plan, &how.files);
    Ok(plan)
}

/// Converts a fraction of scheduled operations to percent, rounded to six decimals: 0.29 becomes 29, not 28.999….
fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}
