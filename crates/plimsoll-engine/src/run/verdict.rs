//! The reasons why a result is invalid.

use super::{criteria, stalls};
use crate::outcome::Outcome;
use plimsoll_plan::{Plan, Reason, counted};
use std::collections::BTreeSet;

/// Fraction of all processors above which the client counts as the bottleneck.
const CLIENT_SATURATED_SHARE: f64 = 0.95;

/// Whether a rate was requested.
fn is_paced(plan: &Plan) -> bool {
    let paced =
        |g: &plimsoll_plan::WorkerGroup| g.program.mix().is_some_and(|m| m.pacing.is_some());
    plan.event_rate.is_some() || plan.groups.iter().any(paced)
}

/// That a server stopped replying, and when.
fn unanswered(outcome: &Outcome) -> Option<Reason> {
    let window = &outcome.windows.last()?.totals;
    let since = window.unanswered_since?;
    let after = since.saturating_sub(window.start) as f64 / 1e9;
    let mut text = match since > window.start {
        true => format!("the server did not answer from {after:.1} s of the measured window on"),
        false => "the server did not answer in the measured window".into(),
    };
    if window.abandoned > 0 {
        let operations = counted(window.abandoned, "operation was", "operations were");
        text.push_str(&format!(": {operations} abandoned at the end"));
    }
    Some(Reason::new("server_not_responding", text))
}

/// That operations failed, that none completed, or that nothing was measured.
fn completions(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    // Every stage of a pattern is a part of its result; of other workloads the last window is.
    let result = match plan.pattern() {
        Some(_) => &outcome.windows[..],
        None => outcome.windows.last().map_or(&[][..], std::slice::from_ref),
    };
    let failed = outcome.failure.is_some();
    if result.is_empty() {
        let excused = failed || outcome.ran_out.is_some();
        let no_window = Reason::new("no_window", "the workload measures nothing");
        return Vec::from_iter((!excused).then_some(no_window));
    }
    let (mut ops, mut errors) = (0, 0);
    let windows = result.iter().map(|w| &w.totals.rows);
    for (row, operation) in windows.flat_map(|rows| rows.iter().zip(&plan.operations)) {
        if operation.kind.counts() {
            ops += row.ops;
        }
        if operation.kind.is_of_workload() {
            errors += row.error_count();
        }
    }
    let mut reasons = Vec::new();
    if errors > 0 && !failed {
        let text = format!("{errors} operations failed in the measured window");
        reasons.push(Reason::new("errors", text));
    }
    if ops == 0 {
        let text = "no operation completed in the measured window";
        reasons.push(Reason::new("no_operations", text));
    } else if !failed && !outcome.interrupted {
        reasons.extend(idle_stages(plan, outcome));
    }
    reasons
}

/// That stages of a pattern did none of their work, although directories may have been made or removed.
fn idle_stages(plan: &Plan, outcome: &Outcome) -> Option<Reason> {
    let stages = &plan.pattern()?.stages;
    let idle = outcome.stages.iter().filter_map(|done| {
        let stage = &stages[done.stage as usize];
        let is_idle = !stage.warm_up
            && stage.work.has_rounds()
            && done.ranks.iter().all(|rank| rank.rounds == 0);
        is_idle.then_some(&*stage.name)
    });
    let names: BTreeSet<&str> = idle.collect();
    (!names.is_empty()).then(|| {
        let names = Vec::from_iter(names).join(", ");
        Reason::new(
            "no_operations",
            format!("no round was completed in: {names}"),
        )
    })
}

/// That the client was the bottleneck. A closed loop is as fast as client and server together; only
/// if a rate was requested can the client have kept the server from it.
fn client_saturated(plan: &Plan, outcome: &Outcome) -> Option<Reason> {
    let share = outcome.windows.last()?.client_share?;
    let percent = share * 100.0;
    (share > CLIENT_SATURATED_SHARE && is_paced(plan)).then(|| {
        let text = format!(
            "the client used {percent:.0} % of its processors, which may have limited the rate"
        );
        Reason::new("client_saturated", text)
    })
}

/// That something acknowledged was lost, or that it is not known.
fn lost_data(outcome: &Outcome) -> Vec<Reason> {
    let Some(found) = &outcome.verification else {
        return vec![];
    };
    let mut reasons = Vec::new();
    if found.wrong_reads > 0 {
        let reads = counted(found.wrong_reads, "read", "reads");
        let text = format!("{reads} did not return what was written");
        reasons.push(Reason::new("wrong_contents", text));
    }
    if found.bad_files() > 0 {
        let kinds = [
            (found.missing, "missing"),
            (found.short, "too short"),
            (found.wrong, "with wrong contents"),
            (found.unreadable, "unreadable"),
        ];
        let kinds = kinds.iter().filter(|(n, _)| *n > 0);
        let kinds: Vec<String> = kinds.map(|(n, what)| format!("{n} {what}")).collect();
        let files = counted(found.bad_files(), "file", "files");
        let text = format!(
            "{files} of {} lost something that was acknowledged: {}",
            found.files,
            kinds.join(", ")
        );
        reasons.push(Reason::new("data_lost", text));
    }
    if let Some(why) = found.skipped.as_ref().filter(|_| !outcome.interrupted) {
        let text = format!("the files were not all read again, because {why}");
        reasons.push(Reason::new("not_verified", text));
    }
    reasons
}

/// Why the result is invalid.
pub(super) fn verdict(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let mut reasons = completions(plan, outcome);
    let ran_out = outcome.ran_out.as_ref();
    reasons.extend(ran_out.map(|r| Reason::new("fileset_exhausted", r.to_string())));
    reasons.extend(lost_data(outcome));
    reasons.extend(unanswered(outcome));
    reasons.extend(client_saturated(plan, outcome));
    reasons.extend(criteria::reasons(plan, outcome));
    reasons.extend(stalls::reasons(plan, outcome));
    if !outcome.stuck.is_empty() {
        let text = format!(
            "{} did not return from a system call within 10 s of the end",
            outcome.stuck.join(", ")
        );
        reasons.push(Reason::new("hung_workers", text));
    }
    reasons
}
