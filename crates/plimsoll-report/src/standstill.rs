//! What is said of operations under way at the end, and of times in which nothing completed.

use crate::format::latency;
use plimsoll_plan::Count;
use plimsoll_results::{Run, StallFigure, Summary};

/// Seconds without a completion that are worth a sentence even where they were no stall.
const LONG_GAP_S: f64 = 1.0;

/// How many operations were under way when the window ended, and how long the oldest had waited.
#[must_use]
pub fn in_flight(s: &Summary) -> String {
    let count = format!("{} in flight at the end", Count(s.in_flight));
    match s.oldest_in_flight_ms {
        Some(ms) => format!("{count}, the oldest for {}", duration_text(ms)),
        None => count,
    }
}

/// Sentences on a run in which something stood still, or on one that ended with an operation older
/// than a second; none for others.
#[must_use]
pub fn sentences(run: &Run) -> Vec<String> {
    let s = &run.summary;
    let mut sentences = Vec::new();
    if s.oldest_in_flight_ms
        .is_some_and(|ms| ms > LONG_GAP_S * 1e3)
    {
        let mut old: Vec<_> = run.operations.iter().collect();
        old.retain(|o| {
            o.oldest_in_flight_ms
                .is_some_and(|ms| ms > LONG_GAP_S * 1e3)
        });
        let of = old.iter().map(|o| {
            let oldest = o
                .oldest_in_flight_ms
                .map_or_else(String::new, duration_text);
            format!("{} of {} ({oldest})", Count(o.in_flight), o.name)
        });
        let of: Vec<String> = of.collect();
        let of = match of.is_empty() {
            true => String::new(),
            false => format!(": {}", of.join(", ")),
        };
        sentences.push(format!(
            "oldest in flight: {}{of}; they took at least so long",
            s.oldest_in_flight_ms
                .map_or_else(String::new, duration_text)
        ));
    }
    if let (Some(longest), Some(likely)) = (s.max_gap_ms, s.expected_max_gap_ms)
        && longest > LONG_GAP_S * 1e3
    {
        sentences.push(format!(
            "maximum gap between completions: {}; expected at the mean rate: {}",
            duration_text(longest),
            duration_text(likely)
        ));
    }
    sentences
}

/// What a comparison says of runs in which the target stood still.
#[must_use]
pub fn warning<'a>(name: &str, runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    let stalls = runs.flat_map(|r| &r.summary.stalls);
    let longest = stalls.map(StallFigure::length_s).reduce(f64::max)?;
    Some(format!(
        "{name} stalled for up to {}",
        duration_text(longest * 1e3)
    ))
}

/// A time in running text.
fn duration_text(ms: f64) -> String {
    latency(ms).replace("  ", " ")
}
