//! Operation mixes in a report: the load, and how much of it was carried.

use crate::format::{latency, rate};
use crate::percentiles::bounded;
use crate::text::{paragraph, whole};
use plimsoll_plan::{Count, scaled};
use plimsoll_results::{LatencyFigures, MixFigures, ScheduledFigures};

/// The load in a few words; a result that is not comparable says so here.
pub(crate) fn load(out: &mut String, mix: &MixFigures, columns: usize) {
    if mix.load == 0 {
        return;
    }
    let mut text = format!("{} {}", Count(mix.load), mix.metric);
    if mix.scale != 1.0 {
        text.push_str(&format!("; {}", scaled(mix.scale)));
    }
    paragraph(out, "  load: ", &text, columns);
}

/// What was due and what was done, in all and of each component.
pub(crate) fn sustained(out: &mut String, mix: &MixFigures, columns: usize) {
    let all = parts(&mix.total);
    paragraph(out, "achieved: ", &all, columns);
    if mix.components.len() > 1 {
        for c in &mix.components {
            let label = format!("  {} ({} processes): ", c.name, Count(c.processes));
            paragraph(out, &label, &parts(&c.carried), columns);
        }
    }
}

fn parts(c: &ScheduledFigures) -> String {
    let mut parts = Vec::new();
    match c.offered_ops_per_s {
        Some(asked) => parts.push(format!(
            "{} of {} ops/s offered",
            rate(c.achieved_ops_per_s),
            rate(asked)
        )),
        None => parts.push(format!("{} ops/s, not paced", rate(c.achieved_ops_per_s))),
    }
    if let Some(percent) = c.slowest_process_percent {
        parts.push(format!("slowest process {percent:.1} %"));
    }
    if c.dropped > 0 {
        parts.push(format!("{} dropped", Count(c.dropped)));
    }
    // In a table the unit has two columns.
    let time = |ms| latency(ms).replace("  ", " ");
    let times = |what: &str, f: &LatencyFigures, is_at_least: &dyn Fn(f64) -> bool| {
        let mean = match f.max_ms > 0.0 && f.mean_ms == 0.0 {
            true => "-".to_owned(),
            false => time(f.mean_ms),
        };
        let bounded = |ms| bounded(ms, is_at_least(ms)).replace("  ", " ");
        let (p99, max) = (bounded(f.p99_ms), bounded(f.max_ms));
        format!("{what} mean {mean}, p99 {p99}, max {max}")
    };
    let response = c.response.as_ref();
    parts.extend(response.map(|f| times("response", f, &|ms| c.is_at_least(ms))));
    let late = c.start_delay.as_ref();
    parts.extend(late.map(|f| times("client start delay", f, &|_| false)));
    let parts: Vec<String> = parts.iter().map(|p| whole(p)).collect();
    parts.join("; ")
}
