//! Operation mixes in a report: the load, offered and achieved.

use crate::format::{inline, inline_latency, rate};
use crate::percentiles::bounded;
use crate::text::{list, paragraph};
use plimsoll_plan::{Count, scaled};
use plimsoll_results::{LatencyFigures, MixFigures, ScheduledFigures};

/// The load in a few words, with a note if the result is not comparable.
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

/// The offered and the achieved load, in total and of each component.
pub(crate) fn achieved(out: &mut String, mix: &MixFigures, columns: usize) {
    paragraph(out, "achieved: ", &parts(&mix.total), columns);
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
            false => inline_latency(f.mean_ms),
        };
        let bounded = |ms| inline(&bounded(ms, f.is_at_least(ms)));
        let (p99, max) = (bounded(f.p99_ms), bounded(f.max_ms));
        format!("{name} mean {mean}, p99 {p99}, max {max}")
    };
    let response = c.response.as_ref();
    parts.extend(response.map(|f| times("response", f)));
    let start_delay = c.start_delay.as_ref();
    parts.extend(start_delay.map(|f| times("client start delay", f)));
    list(&parts, "; ")
}
