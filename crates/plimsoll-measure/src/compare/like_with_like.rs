//! Simulated comparisons of equal systems: every difference is due to chance.

use super::*;
use crate::normal::standard_normal;
use std::collections::HashMap;

/// Number of figures per comparison.
const FIGURES: usize = 60;

/// Number of simulated comparisons.
const COMPARISONS: usize = 1000;

/// Dependence between the figures of a run.
#[derive(Debug, Clone, Copy)]
struct Figures {
    /// Absolute correlation of two figures of a run, 0 to 1: a common factor of the run moves latencies and rates in
    /// opposite directions.
    correlation: f64,
    /// Whether every second figure is a whole number with many ties, like a count of errors.
    counts: bool,
}

impl Figures {
    /// Generates the figures of a run.
    fn run(self, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let (common, own) = (self.correlation.sqrt(), (1.0 - self.correlation).sqrt());
        let factor = standard_normal(random);
        let figure = |i: usize| {
            let sign = if i.is_multiple_of(3) { -1.0 } else { 1.0 };
            let z = sign * common * factor + own * standard_normal(random);
            match self.counts && i.is_multiple_of(2) {
                true => (z - 0.5).max(0.0).floor(),
                false => (0.2 * z).exp(),
            }
        };
        (0..FIGURES).map(figure).collect()
    }
}

/// The p-value of the Mann–Whitney test. For measurements without ties, p-values are cached by `u`, which is much
/// faster than counting.
fn test_p(first: &[f64], second: &[f64], table: &mut HashMap<u64, f64>) -> f64 {
    let wins = |a: &f64| second.iter().filter(|b| a > *b).count();
    let u: usize = first.iter().map(wins).sum();
    match ties(first, second) > 0.0 {
        true => mann_whitney(first, second).unwrap().p,
        false => *table
            .entry(u as u64)
            .or_insert_with(|| mann_whitney(first, second).unwrap().p),
    }
}

/// The p-values of the tests of all figures of two sets of runs.
///
/// Bootstrap intervals are omitted: an interval can only raise the p-value of a [`Difference`], so intervals can only
/// reduce the number of significant figures.
fn p_values(
    figures: Figures,
    runs: usize,
    random: &mut Xoshiro256PlusPlus,
    table: &mut HashMap<u64, f64>,
) -> Vec<f64> {
    let mut set = || -> Vec<Vec<f64>> { (0..runs).map(|_| figures.run(random)).collect() };
    let (first, second) = (set(), set());
    let of = |set: &[Vec<f64>], i: usize| set.iter().map(|run| run[i]).collect::<Vec<f64>>();
    let p = |i| test_p(&of(&first, i), &of(&second, i), table);
    (0..FIGURES).map(p).collect()
}

/// At most one in twenty comparisons of equal systems finds a difference. The limit is 6 %, because the fraction among
/// a thousand comparisons has a standard deviation of 0.7 %.
#[test]
fn chance_is_found_in_at_most_one_of_twenty_comparisons() {
    let of = |correlation, counts| Figures {
        correlation,
        counts,
    };
    for figures in [
        of(0.0, false),
        of(0.5, false),
        of(0.9, false),
        of(0.99, false),
        of(0.5, true),
    ] {
        for runs in [4, 8, 16] {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(33);
            let mut table = HashMap::new();
            let (mut found, mut found_singly) = (0, 0);
            for _ in 0..COMPARISONS {
                let p = p_values(figures, runs, &mut random, &mut table);
                found += usize::from(significant(&p).contains(&true));
                found_singly += usize::from(p.iter().any(|p| *p <= FALSE_DISCOVERY_RATE));
            }
            let limit = COMPARISONS * 6 / 100;
            assert!(found <= limit, "{figures:?}, {runs} runs: {found}");
            // Separate tests of the figures find a difference in at least every third comparison.
            if figures.correlation <= 0.5 {
                assert!(
                    3 * found_singly > COMPARISONS,
                    "{figures:?}, {runs} runs: {found_singly}"
                );
            }
        }
    }
}
