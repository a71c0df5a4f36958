//! Criteria of a result: schedules were achieved, the load of a mix was sustained, and the client caused no failure.

use plimsoll_measure::{BacklogGrowth, Latency, Outcome, ScheduleCounts};
use plimsoll_plan::{Criteria, OperationId, Plan, Reason};
use std::time::Duration;

/// Mean start delay, in nanoseconds, up to which the client never makes the result invalid.
const MIN_BLAMED_DELAY_NS: f64 = 1e6;

/// Maximum mean start delay of the client, as a fraction of the mean response time.
const MAX_CLIENT_DELAY_SHARE: f64 = 0.1;

/// Reasons why the schedule of a load, or the criteria of a business metric, make the result invalid.
pub(super) fn reasons(plan: &Plan, outcome: &Outcome) -> Vec<Reason> {
    let Some(window) = outcome.windows.last() else {
        return vec![];
    };
    let is_mix = |group: u32| {
        let group = plan.groups.get(group as usize);
        group.and_then(|g| g.program.mix())
    };
    let rows = window.totals.rows.iter().zip(&plan.operations);
    let counted = rows.filter(|(_, operation)| operation.kind.counts());
    let [mut latency, mut response, mut service] = std::array::from_fn(|_| Latency::default());
    for (row, _) in counted {
        latency.add(row.latency());
        if row.paced > 0 {
            response.add(&row.response);
            service.add(&row.service);
        }
    }
    let mut reasons = Vec::new();
    if let Some(metric) = &plan.metric {
        let paced = outcome
            .processes
            .iter()
            .filter(|p| is_mix(p.group).is_some_and(|m| m.pacing.is_some()));
        let processes: Vec<(u64, u64)> = paced.map(|p| achieved(&p.counts)).collect();
        let mean = (latency.count() > 0).then(|| Duration::from_nanos(latency.mean() as u64));
        let missed = metric.criteria.missed(&processes, mean);
        reasons.extend(missed.into_iter().map(|m| Reason::new(m.code, m.text)));
    }
    let criteria = plan.metric.as_ref().map(|metric| &metric.criteria);
    if criteria.is_none_or(Criteria::refuses_queue_growth) {
        reasons.extend(queue_growth(outcome, service.mean()));
    }
    let events: Vec<(u64, u64)> = outcome.schedules.iter().map(achieved).collect();
    let missed = Criteria::default().missed_total(
        &events,
        "the workers used",
        "the events that the rate scheduled",
    );
    reasons.extend(missed.map(|m| Reason::new(m.code, m.text)));
    let rows = plan.groups.iter().filter_map(|g| g.program.mix()?.pacing);
    let mut late = Latency::default();
    for OperationId(row) in rows.map(|p| p.start) {
        late.add(&window.totals.rows[row as usize].service);
    }
    if late.mean() > MIN_BLAMED_DELAY_NS && late.mean() > MAX_CLIENT_DELAY_SHARE * response.mean() {
        let text = format!(
            "the client itself started operations {:.1} ms late, which is {:.0} % of the mean \
             response time",
            late.mean() / 1e6,
            100.0 * late.mean() / response.mean().max(1.0)
        );
        reasons.push(Reason::new("client_start_delay", text));
    }
    reasons
}

/// The reason if the queue of the target grew through the last window.
fn queue_growth(outcome: &Outcome, mean_service_ns: f64) -> Option<Reason> {
    let BacklogGrowth { first_ns, last_ns } = outcome.backlog.growth(mean_service_ns)?;
    let text = format!(
        "the queue of the target grew: the schedule was {:.1} ms behind in the first tenth of the window and {:.1} ms \
         behind in the last (mean service time {:.1} ms)",
        first_ns / 1e6,
        last_ns / 1e6,
        mean_service_ns / 1e6
    );
    Some(Reason::new("queue_growth", text))
}

/// Numbers of scheduled and completed operations or events of a schedule.
fn achieved(counts: &ScheduleCounts) -> (u64, u64) {
    (counts.scheduled, counts.completed)
}
