//! Operations in flight at the end of a window, stalls and gaps.

use crate::latency::ms;
use plimsoll_measure::{Gap, InFlightAges, Stall, WindowTotals, expected_max_gap};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number of operations in flight at the window end whose ages are equal to three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgeFigure {
    /// Age of the operations in flight in milliseconds, to three significant digits: a lower bound of the operations'
    /// latency.
    pub at_least_ms: f64,
    /// Number of operations in flight of the age `at_least_ms`.
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

/// Age of the oldest operation in flight in milliseconds; `None` if no operation was in flight.
pub(crate) fn oldest_ms(ages: &InFlightAges) -> Option<f64> {
    (ages.count() > 0).then(|| ms(ages.oldest() as f64))
}

/// A stall of the target: a period of more than 1 s in which no operation completed, although an operation was in
/// flight that usually takes at most a tenth of the period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallFigure {
    /// Start of the stall in seconds since the window opened.
    pub start_s: f64,
    /// End of the stall in seconds since the window opened.
    pub end_s: f64,
    /// Whether the measured window ended during the stall.
    pub at_end: bool,
    /// Whether the stall makes the result invalid: the window ended during the stall, or all stalls together took more
    /// than 5 % of the window.
    pub invalidates: bool,
    /// Number of the rank whose workers saw the stall, with times on the rank's own clock; null for a stall of all
    /// ranks together.
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

    /// Stalls of a window: of all ranks together, and of each rank if there are several.
    pub(crate) fn all(totals: &WindowTotals) -> Vec<Self> {
        let all = totals.stalls.iter().map(|s| Self::of(s, None));
        let ranks = &totals.rank_stalls;
        all.chain(ranks.iter().map(|r| Self::of(&r.stall, Some(r.rank))))
            .collect()
    }

    /// Length of the stall in seconds.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// The maximum gap, and the expected maximum gap at the mean rate, both in milliseconds.
pub(crate) fn gaps_ms(gap: Gap, window_s: f64, completions: u64) -> (f64, f64) {
    let likely = expected_max_gap((window_s * 1e9) as u64, completions);
    (ms(gap.length() as f64), ms(likely))
}

/// Whether any latency is known: of `ops` completed operations, or a lower bound from an operation in flight at the
/// end.
pub(crate) fn has_latencies(ops: u64, oldest_in_flight_ms: Option<f64>) -> bool {
    ops > 0 || oldest_in_flight_ms > Some(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_of_all_come_before_those_of_each_rank() {
        let stall = |from, to, counts: bool| Stall {
            gap: Gap { from, to },
            at_end: !counts,
            counts,
        };
        let totals = WindowTotals {
            stalls: vec![stall(1_500_000_000, 4_000_000_000, true)],
            rank_stalls: vec![plimsoll_measure::RankStall {
                rank: 3,
                stall: stall(0, 2_000_000_000, false),
            }],
            ..WindowTotals::default()
        };
        let figure = |start_s, end_s, invalidates: bool, rank| StallFigure {
            start_s,
            end_s,
            at_end: !invalidates,
            invalidates,
            rank,
        };
        let all = StallFigure::all(&totals);
        assert_eq!(
            all,
            [
                figure(1.5, 4.0, true, None),
                figure(0.0, 2.0, false, Some(3))
            ]
        );
        assert_eq!(all[0].length_s(), 2.5);
    }

    #[test]
    fn ages_are_in_milliseconds() {
        let mut ages = InFlightAges::default();
        assert_eq!((oldest_ms(&ages), AgeFigure::all(&ages)), (None, vec![]));
        [500_000, 2_000_000, 500_000]
            .into_iter()
            .for_each(|age| ages.add(age));
        assert_eq!(oldest_ms(&ages), Some(2.0));
        let figures = AgeFigure::all(&ages);
        assert_eq!(figures.iter().map(|f| f.ops).collect::<Vec<_>>(), [2, 1]);
        assert!((figures[0].at_least_ms - 0.5).abs() < 1e-3);
        assert!((figures[1].at_least_ms - 2.0).abs() < 4e-3);
    }

    #[test]
    fn gaps_are_compared_with_those_that_are_likely() {
        let gap = Gap {
            from: 1_000_000,
            to: 4_500_000,
        };
        let (longest, likely) = gaps_ms(gap, 10.0, 1_000_000);
        assert_eq!(longest, 3.5);
        // Completions 10 µs apart, times ln(1e6) + 0.577.
        assert!((likely - 0.143_927).abs() < 1e-6, "{likely}");
        assert_eq!(gaps_ms(gap, 10.0, 0).1, 10_000.0);
    }

    #[test]
    fn latencies_are_known_of_what_completed_or_waited() {
        let known = [
            (0, None),
            (0, Some(0.0)),
            (0, Some(0.1)),
            (1, None),
            (1, Some(0.0)),
        ]
        .map(|(ops, oldest)| has_latencies(ops, oldest));
        assert_eq!(known, [false, false, true, true, true]);
    }
}
