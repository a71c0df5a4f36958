//! Sentences on operations in flight at the end, and on gaps.

use crate::format::latency;
use plimsoll_plan::Count;
use plimsoll_results::{Run, StallFigure, Summary};

/// Age or gap in milliseconds above which a sentence is shown even without a stall.
const LONG_GAP_MS: f64 = 1e3;

/// The number of operations in flight when the window ended, and the age of the oldest.
#[must_use]
pub fn in_flight(s: &Summary) -> String {
    let count = format!("{} in flight at the end", Count(s.in_flight));
    match s.oldest_in_flight_ms {
        Some(ms) => format!("{count}, the oldest for {}", latency(ms)),
        None => count,
    }
}

/// Sentences on operations in flight at the end and on gaps, if either lasted longer than a second.
#[must_use]
pub fn sentences(run: &Run) -> Vec<String> {
    let s = &run.summary;
    let is_long = |ms: &f64| *ms > LONG_GAP_MS;
    let mut sentences = Vec::new();
    if let Some(oldest) = s.oldest_in_flight_ms.filter(is_long) {
        let old = run.operations.iter().filter_map(|o| {
            let age = latency(o.oldest_in_flight_ms.filter(is_long)?);
            Some(format!("{} of {} ({age})", Count(o.in_flight), o.name))
        });
        let old: Vec<String> = old.collect();
        let old = match old.is_empty() {
            true => String::new(),
            false => format!(": {}", old.join(", ")),
        };
        let oldest = latency(oldest);
        sentences.push(format!(
            "oldest in flight: {oldest}{old}; these are lower bounds of their latencies"
        ));
    }
    if let Some((max, expected)) = s.max_gap_ms.filter(is_long).zip(s.expected_max_gap_ms) {
        sentences.push(format!(
            "maximum gap between completions: {}; expected at the mean rate: {}",
            latency(max),
            latency(expected)
        ));
    }
    sentences
}

/// Warning of a comparison about runs with stalls of the target.
#[must_use]
pub fn warning<'a>(name: &str, runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    let stalls = runs.flat_map(|r| &r.summary.stalls);
    let longest = stalls.map(StallFigure::length_s).reduce(f64::max)?;
    let longest = latency(longest * 1e3);
    Some(format!("{name} stalled for up to {longest}"))
}
