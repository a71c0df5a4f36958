//! The reasons why a result is invalid.

use super::{criteria, stalls};
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_measure::{
    CLIENT_SATURATED_SHARE, MeasuredWindow, Outcome, RateJudgement, Stationarity,
};
use plimsoll_plan::{Plan, Reason, Requirement, counted};
use std::collections::BTreeSet;

/// Throttled fraction of a window above which a CPU quota makes the result invalid.
const CLIENT_THROTTLED_SHARE: f64 = 0.05;

/// The reason that a server stopped replying.
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

/// The windows of the result: every stage of a pattern, and the last window of any other workload.
fn result_windows<'a>(plan: &Plan, outcome: &'a Outcome) -> &'a [MeasuredWindow] {
    match plan.pattern() {
        Some(_) => &outcome.windows,
        None => outcome.windows.last().map_or(&[], std::slice::from_ref),
    }
}

/// The reasons that operations failed, that no operation completed, or that nothing was measured.
fn completions(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let result = result_windows(plan, outcome);
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

/// The reason that stages of a pattern completed no round, even if they made or removed directories.
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

/// The reason that the client was the bottleneck. A closed loop, with or without a cap, is as fast as client and server
/// together; only a schedule has a rate that the client can miss.
fn client_saturated(plan: &Plan, outcome: &Outcome) -> Option<Reason> {
    let share = outcome.windows.last()?.client_share?;
    let percent = share * 100.0;
    (share > CLIENT_SATURATED_SHARE && plan.has_schedule()).then(|| {
        let text = format!(
            "the client used {percent:.0} % of its processors, which may have limited the rate"
        );
        Reason::new("client_saturated", text)
    })
}

/// The reason that a CPU quota kept the client from running. Unlike a busy processor, a quota makes a closed loop
/// slower than client and server together.
fn client_throttled(plan: &Plan, outcome: &Outcome) -> Option<Reason> {
    let throttled = result_windows(plan, outcome).iter();
    let throttled = throttled.filter_map(|w| w.throttling.as_ref());
    let most = throttled.max_by(|a, b| a.share.total_cmp(&b.share))?;
    (most.share > CLIENT_THROTTLED_SHARE).then(|| {
        let client = match &most.host {
            Some(host) => format!("the client {host}"),
            None => "the client".into(),
        };
        let quota = match (most.processors, &most.group) {
            (Some(processors), Some(group)) => format!(
                "the control group `{group}` has a CPU quota of {}",
                QuotaUse::processors_text(processors)
            ),
            _ => {
                "a control group that is not visible here has a CPU quota, or its quota was lifted"
                    .into()
            }
        };
        let percent = most.share.min(1.0) * 100.0;
        let text = format!(
            "{client} was throttled for at least {percent:.0} % of the measured window: {quota}"
        );
        Reason::new("client_throttled", text)
    })
}

/// The reasons that acknowledged data was lost, or that the loss of data is unknown.
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

/// The reason that the rate was not steady although the user required a steady rate.
fn unsteady(plan: &Plan, outcome: &Outcome) -> Option<Reason> {
    let is_required = plan.options.require.contains(&Requirement::Steady);
    if !is_required || outcome.failure.is_some() || outcome.interrupted {
        return None;
    }
    let totals = &outcome.windows.last()?.totals;
    let rate = Stationarity::of(&totals.counts, totals.end.saturating_sub(totals.start))?;
    (rate.judgement != RateJudgement::Steady).then(|| {
        let text = format!("the rate was required to be steady: {rate}");
        Reason::new(Requirement::Steady.reason_code(), text)
    })
}

/// All reasons why the result is invalid; empty for a valid result.
pub(super) fn verdict(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let mut reasons = completions(plan, outcome);
    let ran_out = outcome.ran_out.as_ref();
    reasons.extend(ran_out.map(|r| Reason::new("fileset_exhausted", r.to_string())));
    reasons.extend(lost_data(outcome));
    reasons.extend(unanswered(outcome));
    reasons.extend(client_throttled(plan, outcome));
    reasons.extend(client_saturated(plan, outcome));
    reasons.extend(criteria::reasons(plan, outcome));
    reasons.extend(stalls::reasons(plan, outcome));
    reasons.extend(unsteady(plan, outcome));
    if !outcome.hung_workers.is_empty() {
        let text = format!(
            "{} did not return from a system call within 10 s of the end",
            outcome.hung_workers.join(", ")
        );
        reasons.push(Reason::new("hung_workers", text));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Throttling;

    fn window(throttling: Option<Throttling>) -> MeasuredWindow {
        MeasuredWindow {
            throttling,
            ..MeasuredWindow::default()
        }
    }

    fn throttling(share: f64) -> Throttling {
        Throttling {
            share,
            processors: Some(0.1),
            group: Some("/sys/fs/cgroup/x".into()),
            host: None,
        }
    }

    fn text(windows: Vec<MeasuredWindow>) -> Option<String> {
        let outcome = Outcome {
            windows,
            ..Outcome::default()
        };
        let reason = client_throttled(&Plan::empty("w"), &outcome)?;
        assert_eq!(reason.code, "client_throttled");
        Some(reason.text)
    }

    #[test]
    fn a_client_that_was_throttled_for_more_than_a_twentieth_of_the_window_is_a_reason() {
        let of = |share| text(vec![window(Some(throttling(share)))]);
        assert_eq!(of(0.05), None);
        let expected = |percent| {
            Some(format!(
                "the client was throttled for at least {percent} % of the measured window: the control group \
                 `/sys/fs/cgroup/x` has a CPU quota of 0.1 processors"
            ))
        };
        assert_eq!(of(0.06), expected(6));
        // Time and throttling are read at different instants, so the share may exceed 1.
        assert_eq!(of(1.01), expected(100));
        assert_eq!(text(vec![window(None)]), None);
        assert_eq!(text(vec![]), None);
        // Only the last window is the result.
        let earlier = window(Some(throttling(0.5)));
        assert_eq!(text(vec![earlier, window(None)]), None);
    }

    #[test]
    fn a_rate_that_was_not_steady_is_a_reason_only_if_required() {
        const SECOND: u64 = 1_000_000_000;
        let outcome = |rate: fn(u64) -> u64, seconds| {
            let mut window = window(None);
            (0..seconds).for_each(|n| window.totals.counts.add_ops(n, SECOND, rate(n)));
            window.totals.end = seconds * SECOND;
            Outcome {
                windows: vec![window],
                ..Outcome::default()
            }
        };
        let mut plan = Plan::empty("w");
        let falling = outcome(|n| 1000 - 10 * n, 20);
        assert_eq!(unsteady(&plan, &falling), None);
        plan.options.require.insert(Requirement::Steady);
        let reason = unsteady(&plan, &falling).unwrap();
        assert_eq!(reason.code, "unsteady");
        let expected = "the rate was required to be steady: falling, -";
        assert!(reason.text.starts_with(expected), "{reason:?}");
        assert_eq!(unsteady(&plan, &outcome(|_| 1000, 20)), None);
        let short = unsteady(&plan, &outcome(|_| 1000, 5)).unwrap();
        assert!(short.text.contains("cannot tell"), "{short:?}");
        // The figures of an interrupted run are of a part of the window.
        let interrupted = Outcome {
            interrupted: true,
            ..falling
        };
        assert_eq!(unsteady(&plan, &interrupted), None);
    }

    #[test]
    fn the_machine_and_what_is_known_of_its_quota_are_named() {
        let hidden = Throttling {
            processors: None,
            group: None,
            host: Some("b".into()),
            ..throttling(0.5)
        };
        assert_eq!(
            text(vec![window(Some(hidden))]).unwrap(),
            "the client b was throttled for at least 50 % of the measured window: a control group that is not \
             visible here has a CPU quota, or its quota was lifted"
        );
    }
}
