//! Judgements of series whose truth is known.

use super::*;
use crate::normal::Noise;
use std::f64::consts::TAU;

const SECOND: Nanos = 1_000_000_000;

/// Number of series of each kind.
const SERIES: u64 = 1000;

/// Mean number of operations in an interval of a series.
const MEAN: f64 = 10_000.0;

/// The judgement of whole intervals of a second.
fn judge(ops: impl IntoIterator<Item = f64>) -> Stationarity {
    let mut counts = IntervalCounts::default();
    let mut intervals = 0;
    for ops in ops {
        counts.add_ops(intervals, SECOND, ops.max(0.0).round() as u64);
        intervals += 1;
    }
    Stationarity::of(&counts, intervals * SECOND).unwrap()
}

/// The judgements of 1000 series of `length` intervals, whose rate relative to the mean `rate` makes from the position
/// in the window, 0 to 1.
fn judge_series(
    length: usize,
    rate: impl Fn(&mut Noise, f64) -> f64,
) -> impl Iterator<Item = Stationarity> {
    (0..SERIES).map(move |seed| {
        let mut noise = Noise::new(seed);
        judge((0..length).map(|n| MEAN * rate(&mut noise, (n as f64 + 0.5) / length as f64)))
    })
}

/// Number of series of a kind that are steady.
fn steady(length: usize, rate: impl Fn(&mut Noise, f64) -> f64) -> usize {
    let all = judge_series(length, rate);
    all.filter(|s| s.judgement == RateJudgement::Steady).count()
}

#[test]
fn independent_rates_are_steady() {
    for (length, deviation) in [(20, 0.1), (60, 0.02), (60, 0.1), (60, 0.3), (300, 0.3)] {
        let steady = steady(length, |noise, _| 1.0 + deviation * noise.normal());
        assert!(steady >= 950, "{length} intervals, {deviation}: {steady}");
    }
}

#[test]
fn autocorrelated_rates_are_steady() {
    for (length, r, deviation) in [
        (60, 0.5, 0.1),
        (60, 0.7, 0.1),
        (60, 0.7, 0.3),
        (300, 0.9, 0.1),
    ] {
        let steady = steady(length, |noise, _| 1.0 + deviation * noise.correlated(r));
        assert!(steady >= 920, "{length} intervals, {r}: {steady}");
    }
}

#[test]
fn bursty_rates_are_steady() {
    for length in [60, 100, 300] {
        // Independent bursts of heavy-tailed size (Pareto), rare bursts of five times the rate, and states of high and
        // low rate that last for three intervals on average.
        let heavy = steady(length, |noise, _| 0.1 * (1.0 - noise.uniform()).powf(-0.4));
        let rare = steady(length, |noise, _| {
            let is_burst = noise.uniform() < 0.05;
            (if is_burst { 5.0 } else { 1.0 }) * (1.0 + 0.05 * noise.normal())
        });
        let states = steady(length, |noise, _| {
            if noise.uniform() < 1.0 / 3.0 {
                noise.latest = -noise.latest;
            }
            (if noise.latest > 0.0 { 1.0 } else { 0.3 }) * (1.0 + 0.05 * noise.normal())
        });
        for (kind, steady) in [("heavy", heavy), ("rare", rare), ("states", states)] {
            assert!(steady >= 920, "{length} intervals, {kind}: {steady}");
        }
    }
}

/// A start at 70 % of the rate lowers the mean by 0.6 % in two of 100 intervals, and by 1.5 % in five.
#[test]
fn a_level_matters_if_the_level_moves_the_mean() {
    for (slow, expected) in [(2, RateJudgement::Steady), (5, RateJudgement::Levels)] {
        let judged = judge((0..100).map(|n| if n < slow { 70.0 } else { 100.0 }));
        assert_eq!(judged.judgement, expected, "{slow}");
    }
}

#[test]
fn a_trend_of_a_tenth_is_found_with_its_size() {
    for (length, r) in [(60, 0.0), (60, 0.4), (300, 0.7)] {
        let (mut found, mut inside, mut sum) = (0, 0, 0.0);
        for judged in judge_series(length, |noise, at| {
            1.0 - 0.1 * (at - 0.5) + 0.02 * noise.correlated(r)
        }) {
            found += u32::from(judged.judgement == RateJudgement::Trend);
            let trend = judged.trend.unwrap();
            inside += u32::from((trend.low..=trend.high).contains(&-10.0));
            sum += trend.percent;
        }
        assert!(found >= 900, "{length} intervals, {r}: {found} found");
        assert!(
            (900..1000).contains(&inside),
            "{length} intervals, {r}: {inside} inside"
        );
        let mean = sum / SERIES as f64;
        assert!((mean + 10.0).abs() < 0.3, "{length} intervals, {r}: {mean}");
    }
}

#[test]
fn a_change_of_level_is_found_with_its_time_and_size() {
    for (length, r) in [(60, 0.0), (60, 0.4), (300, 0.7)] {
        let (mut found, mut near, mut sum) = (0, 0, 0.0);
        let change = 0.3 * length as f64;
        for judged in judge_series(length, |noise, at| {
            (if at < 0.3 { 1.0 } else { 1.1 }) + 0.02 * noise.correlated(r)
        }) {
            let Some(levels) = judged.levels else {
                continue;
            };
            found += 1;
            near += u32::from((levels.changed_at_s - change).abs() <= 0.05 * length as f64);
            sum += levels.after_ops_per_s / levels.before_ops_per_s;
        }
        assert!(found >= 900, "{length} intervals, {r}: {found} found");
        assert!(
            near >= found * 95 / 100,
            "{length} intervals, {r}: {near} of {found} near"
        );
        let mean = sum / f64::from(found);
        assert!(
            (mean - 1.1).abs() < 0.005,
            "{length} intervals, {r}: {mean}"
        );
    }
}

#[test]
fn a_rate_that_changes_by_less_than_a_twentieth_is_steady() {
    for change in [0.04, -0.04] {
        let trend = judge((0..60).map(|n| MEAN * (1.0 + change * f64::from(n) / 60.0)));
        let levels = judge((0..60).map(|n| MEAN * if n < 20 { 1.0 } else { 1.0 + change }));
        for judged in [trend, levels] {
            assert_eq!(judged.judgement, RateJudgement::Steady, "{judged}");
        }
    }
}

#[test]
fn two_levels_are_told_with_their_rates_and_the_time_of_the_change() {
    let judged = judge((0..60).map(|n| if n < 2 { 11_000.0 } else { 60_000.0 }));
    let levels = RateLevels {
        changed_at_s: 2.0,
        before_ops_per_s: 11_000.0,
        after_ops_per_s: 60_000.0,
    };
    assert_eq!(judged.levels, Some(levels));
    // The mean is (2 × 11 000 + 58 × 60 000) / 60 = 58 366.7, and 11 000 / 58 366.7 is 18.8 %.
    assert_eq!(
        judged.to_string(),
        "two levels: 11 000, then 60 000 ops/s from 2.0 s; greatest excursion -81.2 % at 0.0 s"
    );
}

#[test]
fn a_trend_is_told_over_the_window() {
    // The rate falls by 2 % of the mean each 3 s, and by 20 % in 30 s.
    let ops = (0..30).map(|n| 3000.0 * (1.0 - (f64::from(n) - 14.5) / 150.0));
    let judged = judge(ops);
    assert_eq!(judged.judgement, RateJudgement::Trend);
    assert_eq!(
        judged.to_string(),
        "falling, -20.0 % over the window (95 % confidence: -20.0 to -20.0 %); greatest excursion +9.7 % at 0.0 s"
    );
    let rising = judge((0..30).map(|n| 3000.0 + 20.0 * f64::from(n)));
    assert!(rising.to_string().starts_with("rising, +"), "{rising}");
}

#[test]
fn the_farthest_interval_is_the_greatest_excursion() {
    let judged = judge((0..20).map(|n| match n {
        7 => 0.0,
        12 => 1900.0,
        _ => 1000.0,
    }));
    let excursion = judged.excursion.unwrap();
    assert_eq!(excursion.at_s, 7.0);
    assert_eq!(excursion.percent, -100.0);
    // An interval in which nothing completed may have no record.
    let mut counts = IntervalCounts::default();
    (0..20)
        .filter(|n| *n != 7)
        .for_each(|n| counts.add_ops(n, SECOND, 1000));
    let judged = Stationarity::of(&counts, 20 * SECOND).unwrap();
    assert_eq!(
        judged.excursion.map(|e| (e.at_s, e.percent)),
        Some((7.0, -100.0))
    );
}

#[test]
fn too_few_intervals_or_operations_are_no_judgement() {
    let text = |judged: Stationarity| {
        assert_eq!(judged.judgement, RateJudgement::Unknown);
        judged.to_string()
    };
    assert_eq!(
        text(judge([500.0; 9])),
        "cannot tell, because the window has 9 intervals, fewer than 10"
    );
    assert_eq!(
        text(judge([9.0; 11])),
        "cannot tell, because the window has 99 operations, fewer than 100"
    );
    assert_eq!(Stationarity::of(&IntervalCounts::default(), 0), None);
    // Slices of two intervals leave the last of 199 intervals out.
    let late = judge((0..199).map(|n| if n == 198 { 1000.0 } else { 0.0 }));
    assert_eq!(
        text(late),
        "cannot tell, because operations completed only at the end of the window"
    );
    // The last interval is shorter than the others.
    let mut counts = IntervalCounts::default();
    (0..9).for_each(|n| counts.add_ops(n, SECOND, 500));
    counts.add_ops(9, SECOND / 2, 250);
    let judged = Stationarity::of(&counts, 9 * SECOND + SECOND / 2).unwrap();
    assert_eq!(
        text(judged),
        "cannot tell, because the window has 9 intervals, fewer than 10"
    );
}

#[test]
fn rates_that_change_slowly_are_no_judgement() {
    let wave = judge((0..60).map(|n| MEAN * (1.0 + 0.3 * (TAU * f64::from(n) / 30.0).sin())));
    assert_eq!(wave.judgement, RateJudgement::Unknown, "{wave}");
    assert!(
        wave.to_string()
            .starts_with("cannot tell, because the rate changes so slowly that 60 slices"),
        "{wave}"
    );
    // A wave of less than 5 % is neither a trend nor a change of level that matters.
    let ripple = judge((0..60).map(|n| MEAN * (1.0 + 0.02 * (TAU * f64::from(n) / 30.0).sin())));
    assert_eq!(ripple.judgement, RateJudgement::Steady, "{ripple}");
}

#[test]
fn slices_are_long_enough_for_their_number_and_their_operations() {
    let slices = |intervals: u64, ops| {
        let mut counts = IntervalCounts::default();
        (0..intervals).for_each(|n| counts.add_ops(n, SECOND, ops));
        let whole = counts.whole(intervals * SECOND);
        (whole.slice_size(), whole.slices(whole.slice_size()).len())
    };
    assert_eq!(slices(100, 1000), (1, 100));
    assert_eq!(slices(250, 1000), (3, 83));
    assert_eq!(slices(100, 2), (5, 20));
    assert_eq!(slices(100, 1), (10, 10));
    // A window of a million intervals, nearly all without a record.
    let mut counts = IntervalCounts::default();
    counts.add_ops(999_999, SECOND, 1000);
    let judged = Stationarity::of(&counts, 1_000_000 * SECOND).unwrap();
    assert_eq!(
        (judged.slices, judged.excursion.map(|e| e.at_s)),
        (100, Some(999_999.0))
    );
}
