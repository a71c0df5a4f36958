//! Scheduled loads in a report: the offered and the achieved load.

use crate::document::{Block, Line};
use crate::format::{latency, rate};
use crate::percentiles::bounded;
use crate::text::list;
use plimsoll_plan::Count;
use plimsoll_results::{EventSchedule, LatencyFigures, Run, ScheduledFigures};

/// Report lines on offered and achieved load: one for the whole run, and one for each of several components of a mix. A
/// run with neither a schedule nor a mix has no report lines on load.
pub(crate) fn achieved(run: &Run) -> Vec<Block> {
    let mut lines = Vec::new();
    if let Some(mix) = &run.mix {
        lines.push(Line::of("achieved", parts(&mix.total)));
        let several = mix.components.iter().filter(|_| mix.components.len() > 1);
        lines.extend(several.map(|c| {
            let component = format!("{} ({} processes)", c.name, Count(c.processes));
            Line::nested(component, parts(&c.carried))
        }));
    }
    let schedule = run.schedule.as_ref();
    lines.extend(schedule.map(|s| Line::of("achieved", events(s))));
    lines
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
