//! Settings without effect on this target or machine: options of the command line are refused, settings of a workload
//! file are noted.

use super::host;
use plimsoll_plan::{Bytes, Cold, OpKind, Phase, Plan};
use plimsoll_target::Target;

/// Reasons to refuse the run: options of the command line that have no effect on this target and machine, as sentences.
pub(super) fn refusals(target: &dyn Target, plan: &Plan) -> Vec<String> {
    let available = host::available_memory().map(|m| m.bytes);
    let options = cold(target, plan).into_iter();
    options.chain(memory(plan, available)).collect()
}

/// Sentences on settings of the workload that have no effect.
pub(super) fn notes(target: &dyn Target, plan: &Plan) -> Vec<String> {
    let notes = rate(plan).into_iter().chain(limit(plan));
    notes.chain(advice(target, plan)).collect()
}

/// A note if a mix has advice about its files and the target has no page cache.
fn advice(target: &dyn Target, plan: &Plan) -> Option<String> {
    let mut mixes = plan.groups.iter().filter_map(|g| g.program.mix());
    mixes.find(|mix| mix.flags.fadvise.is_some())?;
    let why = target.uncacheable_reason()?;
    Some(format!("the advice of `fadvise` has no effect: {why}"))
}

/// A refusal if caches are to be dropped and the target has none.
fn cold(target: &dyn Target, plan: &Plan) -> Option<String> {
    let option = match plan.options.drop_caches {
        Cold::No => return None,
        Cold::Files => "--drop-caches",
        Cold::System => "--drop-caches=system",
    };
    let why = target.uncacheable_reason()?;
    Some(format!(
        "{option} has no effect: {why}; the option is for the target `posix` on a file system of a disk or a server"
    ))
}

/// A refusal if a pattern is to leave more memory free than is available.
fn memory(plan: &Plan, available: Option<u64>) -> Option<String> {
    let (pattern, available) = (plan.pattern()?, available?);
    let squeezed = pattern.stages.iter().filter_map(|s| s.squeeze_memory);
    let held = pattern.hold_memory.map(|bytes| ("-m", bytes));
    let (option, leave) = held
        .into_iter()
        .chain(squeezed.map(|bytes| ("-M", bytes)))
        .find(|(_, leave)| *leave > available)?;
    Some(format!(
        "{option} has no effect: {} must stay free, and only {} are available; a smaller size takes memory",
        Bytes(leave),
        Bytes(available)
    ))
}

/// A note if the schedule has less than one operation or event in all measured windows.
fn rate(plan: &Plan) -> Option<String> {
    let mix_rate = || {
        let paced = plan.groups.iter().map(|g| {
            let pacing = g.program.mix().map(|m| m.pacing.map(|p| p.rate))?;
            Some(pacing? * g.workers() as f64)
        });
        // A mix without a rate executes as many operations as it can.
        paced.sum::<Option<f64>>()
    };
    let (what, rate) = match plan.event_rate {
        Some(rate) => ("event", plan.has_schedule().then_some(rate)),
        None => ("operation", mix_rate()),
    };
    let rate = rate.filter(|rate| *rate > 0.0)?;
    let mut is_open = false;
    let mut seconds = 0.0;
    for phase in &plan.script {
        match phase {
            Phase::OpenWindow => is_open = true,
            Phase::CloseWindow => is_open = false,
            Phase::Wait { until, .. } if is_open => seconds += until.max_time()?.as_secs_f64(),
            _ => {}
        }
    }
    let due = rate * seconds;
    // Removes the rounding errors of the sum.
    let rate = (rate * 1e6).round() / 1e6;
    (due < 1.0).then(|| {
        format!(
            "fewer than one {what} is scheduled: {rate} per second for {seconds} s; use a \
             longer --time or a higher rate"
        )
    })
}

/// A note if the Plan has an event rate and no limiters.
fn limit(plan: &Plan) -> Option<String> {
    let rate = plan.event_rate.filter(|rate| *rate > 0.0)?;
    let limited = plan.operations.iter().any(|o| o.kind == OpKind::Limit);
    (!limited).then(|| {
        format!(
            "the rate of {rate} events per second has no effect: the workload has no limiter, such as \
             eventlimit"
        )
    })
}
