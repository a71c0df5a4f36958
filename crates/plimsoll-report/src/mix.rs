//! Scheduled loads in a report: the offered and the achieved load.

use crate::document::{Block, Line};
use crate::format::{latency, rate};
use crate::percentiles::bounded;
use crate::text::list;
use plimsoll_plan::Count;
use plimsoll_results::{EventSchedule, LatencyFigures, Run, ScheduledFigures};

/// Lines on the offered and the achieved load, in total and for each component of a mix.
pub(crate) fn achieved(run: &Run) -> Vec<Block> {
    let line = |(component, text): (Option<String>, String)| match component {
        None => Line::of("achieved", text),
        Some(component) => Line::nested(component, text),
    };
    offered_and_achieved(run).into_iter().map(line).collect()
}

/// Texts on the offered and the achieved load of a run: first the total, without a label, then each component of a mix,
/// labelled with its name and number of processes. Empty without a schedule or a mix.
fn offered_and_achieved(run: &Run) -> Vec<(Option<String>, String)> {
    let mut texts = Vec::new();
    if let Some(mix) = &run.mix {
        texts.push((None, parts(&mix.total)));
        let several = mix.components.iter().filter(|_| mix.components.len() > 1);
        texts.extend(several.map(|c| {
            let component = format!("{} ({} processes)", c.name, Count(c.processes));
            (Some(component), parts(&c.carried))
        }));
    }
    texts.extend(run.schedule.as_ref().map(|s| (None, events(s))));
    texts
}

fn events(schedule: &EventSchedule) -> String {
    let mut parts = vec![format!(
        "{} of {} events/s offered",
        rate(schedule.achieved_events_per_s),
        rate(schedule.offered_events_per_s)
    )];
    if schedule.dropped > 0 {
        parts.push(format!("{} dropped", Count(schedule.dropped)));
    }
    list(&parts, "; ")
}

fn parts(c: &ScheduledFigures) -> String {
    let mut parts = Vec::new();
    match c.offered_ops_per_s {
        Some(offered) => parts.push(format!(
            "{} of {} ops/s offered",
            rate(c.achieved_ops_per_s),
            rate(offered)
        )),
        None => parts.push(format!("{} ops/s, not paced", rate(c.achieved_ops_per_s))),
    }
    if let Some(percent) = c.slowest_process_percent {
        parts.push(format!("slowest process {percent:.1} %"));
    }
    if c.dropped > 0 {
        parts.push(format!("{} dropped", Count(c.dropped)));
    }
    let times = |name: &str, f: &LatencyFigures| {
        let mean = match f.max_ms > 0.0 && f.mean_ms == 0.0 {
            true => "-".to_owned(),
            false => latency(f.mean_ms),
        };
        let bounded = |ms| bounded(ms, f.is_at_least(ms));
        let (p99, max) = (bounded(f.p99_ms), bounded(f.max_ms));
        format!("{name} mean {mean}, p99 {p99}, max {max}")
    };
    let response = c.response.as_ref();
    parts.extend(response.map(|f| times("response", f)));
    let start_delay = c.start_delay.as_ref();
    parts.extend(start_delay.map(|f| times("client start delay", f)));
    list(&parts, "; ")
}
