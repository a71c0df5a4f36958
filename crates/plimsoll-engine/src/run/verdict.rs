//! What makes a result invalid.

use super::{criteria, stalls};
use crate::outcome::Outcome;
use plimsoll_plan::{Plan, Reason, counted};

/// Share of all processors above which the client is taken to have been the bottleneck.
const CLIENT_SATURATED_SHARE: f64 = 0.95;

/// Whether a rate was asked for.
fn is_paced(plan: &Plan) -> bool {
    let paced =
        |g: &plimsoll_plan::WorkerGroup| g.program.mix().is_some_and(|m| m.pacing.is_some());
    plan.event_rate.is_some() || plan.groups.iter().any(paced)
}

/// That a server fell silent, and when.
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
        text.push_str(&format!(": {operations} given up at the end"));
    }
    Some(Reason::new("server_not_responding", text))
}

/// What makes the result invalid.
pub(super) fn verdict(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let mut reasons = Vec::new();
    // Every stage of a pattern is a part of its result; of other workloads the last window is.
    let result = match plan.pattern() {
        Some(_) => &outcome.windows[..],
        None => outcome.windows.last().map_or(&[][..], std::slice::from_ref),
    };
    if !result.is_empty() {
        let rows = || {
            result
                .iter()
                .flat_map(|w| w.totals.rows.iter().zip(&plan.operations))
        };
        let ops: u64 = rows()
            .filter(|(_, o)| o.kind.counts())
            .map(|(r, _)| r.ops)
            .sum();
        let errors: u64 = rows()
            .filter(|(_, o)| o.kind.is_of_workload())
            .map(|(r, _)| r.error_count())
            .sum();
        if errors > 0 && outcome.failure.is_none() {
            let text = format!("{errors} operations failed in the measured window");
            reasons.push(Reason::new("errors", text));
        }
        if ops == 0 {
            let text = "no operation completed in the measured window";
            reasons.push(Reason::new("no_operations", text));
        }
    } else if outcome.failure.is_none() && outcome.ran_out.is_none() {
        reasons.push(Reason::new("no_window", "the workload measures nothing"));
    }
    if let Some(ran_out) = &outcome.ran_out {
        reasons.push(Reason::new("fileset_exhausted", ran_out.to_string()));
    }
    reasons.extend(unanswered(outcome));
    // A closed loop is as fast as client and server together; only when a rate was asked for can
    // the client have kept the server from it.
    if let Some(share) = outcome.windows.last().and_then(|w| w.client_share)
        && share > CLIENT_SATURATED_SHARE
        && is_paced(plan)
    {
        let share = share * 100.0;
        let text = format!(
            "the client used {share:.0} % of its processors: it may be what held the rate back"
        );
        reasons.push(Reason::new("client_saturated", text));
    }
    reasons.extend(criteria::reasons(plan, outcome));
    reasons.extend(stalls::reasons(plan, outcome));
    if !outcome.stuck.is_empty() {
        let text = format!(
            "{} did not come back from a system call within 10 s of the end",
            outcome.stuck.join(", ")
        );
        reasons.push(Reason::new("hung_workers", text));
    }
    reasons
}
