//! Operations in flight at the end, and times in which nothing completed.

use crate::latency::ms;
use plimsoll_measure::{Gap, InFlightAges, Stall, WindowTotals, expected_max_gap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Operations of about the same age in flight when the window ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgeFigure {
    /// Their age in milliseconds, with three significant digits: a lower bound of their latency.
    pub at_least_ms: f64,
    /// Number of operations.
    pub ops: u64,
}

impl AgeFigure {
    pub(crate) fn all(ages: &InFlightAges) -> Vec<Self> {
        let figure = |(age, ops): (u64, u64)| Self {
            at_least_ms: ms(age as f64),
            ops,
        };
        ages.counts().into_iter().map(figure).collect()
    }
}

/// Age of the oldest in milliseconds; none if nothing was in flight.
pub(crate) fn oldest_ms(ages: &InFlightAges) -> Option<f64> {
    (ages.count() > 0).then(|| ms(ages.oldest() as f64))
}

/// A time in which the target stalled: an operation was in flight that usually takes far less, and
/// none completed for more than a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallFigure {
    /// Begin, in seconds since the window opened.
    pub start_s: f64,
    /// End, in seconds since the window opened.
    pub end_s: f64,
    /// Whether the window ended in it.
    pub at_end: bool,
    /// Whether it makes the result invalid: it lies at the end, or takes more than a twentieth of
    /// the window.
    pub invalidates: bool,
    /// The rank whose operations stood still by its own clock; null if those of all did.
    pub rank: Option<u32>,
}

impl StallFigure {
    fn of(stall: &Stall, rank: Option<u32>) -> Self {
        Self {
            start_s: stall.gap.from as f64 / 1e9,
            end_s: stall.gap.to as f64 / 1e9,
            at_end: stall.at_end,
            invalidates: stall.counts,
            rank,
        }
    }

    /// Those of a window: of all ranks together, and of each by itself where there are several.
    pub(crate) fn all(totals: &WindowTotals) -> Vec<Self> {
        let all = totals.stalls.iter().map(|s| Self::of(s, None));
        let ranks = &totals.rank_stalls;
        all.chain(ranks.iter().map(|r| Self::of(&r.stall, Some(r.rank))))
            .collect()
    }

    /// Length in seconds.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// The longest gap in milliseconds, and the longest that is likely at the mean rate.
pub(crate) fn gaps_ms(gap: Gap, window_s: f64, completions: u64) -> (f64, f64) {
    let likely = expected_max_gap((window_s * 1e9) as u64, completions);
    (ms(gap.length() as f64), ms(likely))
}

/// Whether latencies are known: of `ops` completed operations, or as lower bounds of operations in
/// flight at the end.
pub(crate) fn has_latencies(ops: u64, oldest_in_flight_ms: Option<f64>) -> bool {
    ops > 0 || oldest_in_flight_ms > Some(0.0)
}
