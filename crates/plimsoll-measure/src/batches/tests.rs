//! Intervals of series whose long-term figures are known.

use super::*;
use crate::OpTotals;
use crate::normal::Noise;

const SECOND: Nanos = 1_000_000_000;

/// Number of series of each kind.
const SERIES: u64 = 1000;

/// Batches of one interval of a second each, from the operations and the mean latency of each interval.
fn batches(intervals: &[(f64, f64)]) -> Vec<Batch> {
    let batch = |(ops, mean): &(f64, f64)| {
        let ops = ops.max(0.0).round() as u64;
        let latency = (mean.max(0.0) * 1e6).round() as Nanos;
        Batch {
            ops,
            sum: u128::from(ops) * u128::from(latency),
            counts: vec![(latency, ops)],
        }
    };
    intervals.iter().map(batch).collect()
}

/// Result of the intervals of one figure in many series.
#[derive(Debug, Default)]
struct Coverage {
    covered: usize,
    missed: usize,
    untold: usize,
}

impl Coverage {
    fn add(&mut self, bounds: Option<Bounds>, truth: f64) {
        match bounds {
            None => self.untold += 1,
            Some(b) if b.low <= truth && truth <= b.high => self.covered += 1,
            Some(_) => self.missed += 1,
        }
    }

    fn share(&self) -> f64 {
        self.covered as f64 / (self.covered + self.missed) as f64
    }
}

/// Coverage of the rate and of the mean latency in series of `length` intervals, both of which are `level` on average.
fn coverage(length: usize, level: impl Fn(&mut Noise) -> f64) -> [Coverage; 2] {
    let mut all = [Coverage::default(), Coverage::default()];
    for seed in 0..SERIES {
        let mut noise = Noise::new(seed);
        let levels: Vec<f64> = (0..length).map(|_| level(&mut noise)).collect();
        let of_rate: Vec<(f64, f64)> = levels.iter().map(|l| (10_000.0 * l, 1.0)).collect();
        let of_mean: Vec<(f64, f64)> = levels.iter().map(|l| (10_000.0, *l)).collect();
        all[0].add(Confidence::of(&batches(&of_rate), 1.0).ops_per_s, 10_000.0);
        all[1].add(Confidence::of(&batches(&of_mean), 1.0).mean_ms, 1.0);
    }
    all
}

/// States of high and low rate: a state ends with the probability `leaving`, and is left for the other.
fn states(noise: &mut Noise, leaving: f64) -> f64 {
    if noise.uniform() < leaving {
        noise.latest = -noise.latest;
    }
    if noise.latest > 0.0 { 1.6 } else { 0.4 }
}

#[test]
fn intervals_contain_the_long_term_figures_of_independent_autocorrelated_and_bursty_series() {
    for length in [20, 60, 120, 300] {
        let independent = coverage(length, |noise| 1.0 + 0.1 * noise.normal());
        let skewed = coverage(length, |noise| -(1.0 - noise.uniform()).ln());
        let correlated = coverage(length, |noise| 1.0 + 0.1 * noise.correlated(0.3));
        let bursty = coverage(length, |noise| states(noise, 0.5));
        for (kind, all) in [
            ("independent", independent),
            ("skewed", skewed),
            ("correlated", correlated),
            ("bursty", bursty),
        ] {
            for figure in all {
                let share = figure.share();
                assert!(
                    (0.92..=0.98).contains(&share),
                    "{kind}, {length}: {figure:?}"
                );
                assert!(figure.untold <= 100, "{kind}, {length}: {figure:?}");
            }
        }
    }
}

#[test]
fn slow_changes_widen_the_interval_or_make_the_window_unable_to_tell() {
    for (length, r, untold) in [
        (120, 0.5, 20),
        (300, 0.8, 50),
        (60, 0.8, 700),
        (60, 0.95, 980),
    ] {
        let [rate, mean] = coverage(length, |noise| 1.0 + 0.1 * noise.correlated(r));
        for figure in [rate, mean] {
            assert!(figure.missed <= 80, "{r}, {length}: {figure:?}");
            assert!(figure.untold <= untold, "{r}, {length}: {figure:?}");
        }
    }
    let [rate, _] = coverage(300, |noise| states(noise, 0.1));
    assert!(rate.missed <= 80 && rate.untold <= 200, "{rate:?}");
}

/// Windows that end at the first look at which the interval is narrow: chance ends some windows early, when the interval
/// is too narrow.
#[test]
fn windows_that_end_when_the_interval_is_narrow_still_have_right_intervals() {
    for deviation in [0.1, 0.2, 0.4] {
        let mut coverage = Coverage::default();
        for seed in 0..SERIES {
            let mut noise = Noise::new(seed);
            let mut rates = Vec::new();
            let mut look = MIN_BATCHES as usize;
            let bounds = loop {
                rates.push((10_000.0 * (1.0 + deviation * noise.normal()), 1.0));
                if rates.len() < look {
                    continue;
                }
                look += (look / 20).max(1);
                let bounds = Confidence::of(&batches(&rates), 1.0).ops_per_s;
                if bounds.is_some_and(|b| b.relative_half_width() <= 0.05) {
                    break bounds;
                }
            };
            coverage.add(bounds, 10_000.0);
        }
        assert!(coverage.share() >= 0.92, "{deviation}: {coverage:?}");
    }
}

#[test]
fn a_trend_has_no_interval() {
    for seed in 0..SERIES {
        let mut noise = Noise::new(seed);
        let falling = |n: u32| 10_000.0 * (1.5 - f64::from(n) / 60.0 + 0.02 * noise.normal());
        let rates: Vec<(f64, f64)> = (0..60).map(falling).map(|rate| (rate, 1.0)).collect();
        let confidence = Confidence::of(&batches(&rates), 1.0);
        assert_eq!(confidence.ops_per_s, None, "seed {seed}");
    }
}

#[test]
fn intervals_of_percentiles_contain_the_percentiles_of_the_distribution() {
    let mut all: [Coverage; 3] = Default::default();
    for seed in 0..SERIES {
        let mut noise = Noise::new(seed);
        let series: Vec<Batch> = (0..40)
            .map(|_| {
                let mut batch = Batch::default();
                // Exponentially distributed with a mean of 1 ms.
                let latencies = (0..100).map(|_| (-(1.0 - noise.uniform()).ln() * 1e6) as Nanos);
                batch.add(100, &Latency::of(latencies));
                batch
            })
            .collect();
        let confidence = Confidence::of(&series, 1.0);
        let figures = [
            (confidence.p50_ms, 0.5f64),
            (confidence.p95_ms, 0.95),
            (confidence.p99_ms, 0.99),
        ];
        for (coverage, (bounds, share)) in all.iter_mut().zip(figures) {
            coverage.add(bounds, -(1.0 - share).ln());
        }
    }
    for figure in all {
        let share = figure.share();
        assert!(
            (0.92..=0.98).contains(&share) && figure.untold <= 50,
            "{figure:?}"
        );
    }
}

/// Checked by hand: residuals ±10 alternate, so that the batches count as independent; the variance of the mean of 20
/// batches is `20 · 100 / 19 / 20`, and Student's quantile for 19 degrees of freedom is 2.093.
#[test]
fn the_interval_of_alternating_rates_is_that_of_independent_rates() {
    let rates: Vec<(f64, f64)> = (0..20)
        .map(|n| (f64::from(100 + 20 * (n % 2)), 1.0))
        .collect();
    let bounds = Confidence::of(&batches(&rates), 1.0).ops_per_s.unwrap();
    let half = 2.093_02 * (100.0 / 19.0f64).sqrt();
    assert!((bounds.low - 110.0 + half).abs() < 1e-3, "{bounds:?}");
    assert!((bounds.high - 110.0 - half).abs() < 1e-3, "{bounds:?}");
    assert!((bounds.relative_half_width() - half / 110.0).abs() < 1e-6);
}

#[test]
fn equal_batches_have_the_figures_as_intervals() {
    let confidence = Confidence::of(&batches(&[(50.0, 2.0); 20]), 0.5);
    let exact = |value| {
        Some(Bounds {
            low: value,
            high: value,
        })
    };
    assert_eq!(confidence.ops_per_s, exact(100.0));
    assert_eq!(confidence.mean_ms, exact(2.0));
    assert_eq!(
        (confidence.p50_ms, confidence.p95_ms),
        (exact(2.0), exact(2.0))
    );
    assert_eq!(confidence.p99_ms, exact(2.0));
}

fn interval(index: u64, rows: &[(u64, Nanos)]) -> Interval {
    let row = |(ops, latency): &(u64, Nanos)| OpTotals {
        ops: *ops,
        service: Latency::of((0..*ops).map(|_| *latency)),
        ..OpTotals::default()
    };
    Interval {
        window: 1,
        index,
        opened: 0,
        start: index * SECOND,
        length: SECOND,
        rows: rows.iter().map(row).collect(),
        completions: crate::Completions::new(SECOND, rows.len()),
    }
}

#[test]
fn batches_grow_with_the_window_and_keep_every_operation() {
    let mut all = Batches::default();
    let n = 1000;
    for index in 0..n {
        all.add(&interval(index, &[(2, 5000), (1, 1000 * (index % 2 + 1))]));
    }
    assert_eq!((all.size, all.rows[0].len()), (8, 125));
    let ops = |row: usize| all.rows[row].iter().map(|b| b.ops).sum::<u64>();
    assert_eq!((ops(0), ops(1)), (2 * n, n));
    assert_eq!(all.rows[1][3].counts, [(1000, 4), (2000, 4)]);
    assert_eq!(all.rows[1][3].sum, 12_000);
    let both = all.confidence(|_| true, n * SECOND);
    assert_eq!(
        both.ops_per_s,
        Some(Bounds {
            low: 3.0,
            high: 3.0
        })
    );
    let one = all.confidence(|row| row == 1, n * SECOND);
    assert_eq!(
        one.mean_ms,
        Some(Bounds {
            low: 0.0015,
            high: 0.0015
        })
    );
}

#[test]
fn windows_that_cannot_tell_say_why() {
    let mut few = Batches::default();
    (0..19).for_each(|index| few.add(&interval(index, &[(3, 5)])));
    let doubt = few.confidence(|_| true, 19 * SECOND).doubt;
    assert_eq!(
        doubt.as_deref(),
        Some("the window has 19 intervals, fewer than 20")
    );
    // Operations at the end of the window fill no interval before.
    let mut late = Batches::default();
    late.add(&interval(40, &[(1, 5)]));
    let doubt = late.confidence(|_| true, 40 * SECOND).doubt;
    assert_eq!(doubt.as_deref(), Some("the window has no operation"));
    assert_eq!(
        Batches::default().confidence(|_| true, SECOND).ops_per_s,
        None
    );
}
