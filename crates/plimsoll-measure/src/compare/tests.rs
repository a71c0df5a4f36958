use super::*;
use proptest::prelude::*;

/// The test's probability by its definition: over all ways to choose which of the measurements
/// are the first set's, how many have a `u` at least as far from the middle.
fn by_counting(first: &[f64], second: &[f64]) -> f64 {
    let all = [first, second].concat();
    let (n, total) = (first.len(), all.len());
    let middle = (n * second.len()) as f64 / 2.0;
    let u_of = |chosen: u32| {
        let mut u = 0.0;
        for (_, a) in all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1) {
            for (_, b) in all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 0) {
                u += if a > b { 1.0 } else { 0.0 };
            }
        }
        u
    };
    let far = (u_of((1 << n) - 1) - middle).abs();
    let (mut extreme, mut ways) = (0.0, 0.0);
    for chosen in (0u32..1 << total).filter(|c| c.count_ones() as usize == n) {
        ways += 1.0;
        if (u_of(chosen) - middle).abs() >= far - 1e-9 {
            extreme += 1.0;
        }
    }
    extreme / ways
}

#[test]
fn the_test_gives_published_figures() {
    // Mann and Whitney's statistic for two groups of ages, whose exact and approximate
    // probabilities other programs give as 1/9 and 0.11134688653314041.
    let (a, b) = ([19.0, 22.0, 16.0, 29.0, 24.0], [20.0, 11.0, 17.0, 12.0]);
    let test = mann_whitney(&a, &b).unwrap();
    assert_eq!((test.u, test.exact), (17.0, true));
    assert!((test.p - 1.0 / 9.0).abs() < 1e-12, "{}", test.p);
    // Two groups of three equal values among ten: the variance is 25/12 · (11 − 48/90), the distance 7.
    let p = normal_p(5.0, 5.0, 5.0, 48.0);
    let deviation = (25.0f64 / 12.0 * (11.0 - 48.0 / 90.0)).sqrt();
    let expected = complementary_error(7.0 / deviation / std::f64::consts::SQRT_2);
    assert!((p - expected).abs() < 1e-12, "{p}");
    let p = normal_p(5.0, 4.0, 17.0, 0.0);
    assert!((p - 0.111_346_886_533_140_41).abs() < 1e-7, "{p}");
}

#[test]
fn two_sets_of_five_that_do_not_overlap_differ() {
    let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0]);
    let d = Difference::of(&a, &b).unwrap();
    assert!((d.test.p - 2.0 / 252.0).abs() < 1e-12, "{}", d.test.p);
    assert!((d.change - 5.0 / 3.0).abs() < 1e-12);
    assert!(d.interval.0 > 0.0 && d.interval.1 > d.change && d.is_significant());
    assert!(Difference::of(&a, &a).is_some_and(|d| !d.is_significant()));
    let less = Difference::of(&b, &a).unwrap();
    assert!(less.interval.1 < 0.0 && less.is_significant());
}

#[test]
fn three_runs_are_too_few_for_any_statement() {
    // One of forty ranks is extreme with a probability of exactly 0.05.
    assert!(!has_enough_runs(1, 39) && has_enough_runs(1, 40));
    assert!(
        !has_enough_runs(3, 3)
            && has_enough_runs(4, 4)
            && has_enough_runs(5, 5)
            && !has_enough_runs(1, 20)
    );
    for n in [0, 1, 100] {
        assert!(!has_enough_runs(n, 0) && !has_enough_runs(0, n));
    }
    let d = Difference::of(&[1.0, 1.1, 1.2], &[100.0, 101.0, 102.0]).unwrap();
    assert!((d.test.p - 0.1).abs() < 1e-12 && !d.is_significant());
}

#[test]
fn a_difference_is_significant_by_its_interval_and_its_test() {
    let is_significant = |interval, p| {
        let test = MannWhitney {
            u: 0.0,
            p,
            exact: true,
        };
        let difference = Difference {
            change: 0.1,
            interval,
            test,
        };
        difference.is_significant()
    };
    assert!(is_significant((0.1, 0.2), 0.049) && is_significant((-0.2, -0.1), 0.049));
    assert!(!is_significant((0.1, 0.2), 0.05) && !is_significant((-0.2, -0.1), 0.05));
    for around in [(-0.1, 0.1), (0.0, 0.2), (-0.2, 0.0)] {
        assert!(!is_significant(around, 0.001), "{around:?}");
    }
}

#[test]
fn the_error_function_is_that_of_the_tables() {
    for (x, expected) in [
        (0.0, 1.0),
        (0.25, 0.723_673_609_8),
        (0.5, 0.479_500_122_2),
        (1.0, 0.157_299_207_0),
        (2.0, 0.004_677_734_981),
        (3.0, 2.209_049_7e-5),
    ] {
        let got = complementary_error(x);
        assert!((got / expected - 1.0).abs() < 1.3e-7, "{x}: {got}");
    }
    assert_eq!(normal_p(4.0, 5.0, 10.0, 0.0), 1.0);
}

#[test]
fn probabilities_are_exact_for_up_to_fifty_different_measurements() {
    let test = |n: u32, m: u32| {
        let set = |from: u32, count: u32| (from..from + count).map(f64::from).collect::<Vec<_>>();
        mann_whitney(&set(0, n), &set(n, m)).unwrap()
    };
    assert!(test(20, 30).exact && test(1, 49).exact && test(49, 1).exact);
    assert!(!test(21, 30).exact && !test(1, 50).exact);
    assert!((test(1, 49).p - 2.0 / 50.0).abs() < 1e-12);
    let ties = mann_whitney(&[1.0, 2.0, 2.0], &[2.0, 3.0]).unwrap();
    assert_eq!((ties.u, ties.exact), (1.0, false));
    assert_eq!(super::ties(&[1.0, 2.0, 2.0], &[2.0, 3.0, 3.0]), 24.0 + 6.0);
}

#[test]
fn changes_are_of_the_size_of_the_first_mean_whatever_its_sign() {
    let d = Difference::of(&[-10.0, -12.0], &[-5.0, -6.0]).unwrap();
    assert!((d.change - 0.5).abs() < 1e-12 && d.interval.0 > 0.0);
    assert!(Difference::of(&[1.0, 2.0], &[1.0]).is_none());
    assert!(Difference::of(&[1.0, 2.0], &[1.0, f64::INFINITY]).is_none());
    assert!(Difference::of(&[1.0, 2.0], &[1.0, 2.0]).is_some());
    assert_eq!(bootstrap(&[0.0; 3], &[1.0; 3]), None);
}

#[test]
fn the_interval_leaves_a_fortieth_of_the_draws_at_either_end() {
    let (a, b): (_, Vec<f64>) = ([1.0; 2], (0..40).map(|i| f64::from(i).sqrt()).collect());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut mean_of_draws = |values: &[f64]| {
        let draws = values
            .iter()
            .map(|_| values[rng.random_range(0..values.len())]);
        draws.sum::<f64>() / values.len() as f64
    };
    let draws: Vec<f64> = (0..10_000)
        .map(|_| {
            let base = mean_of_draws(&a);
            mean_of_draws(&b) - base
        })
        .collect();
    let (low, high) = bootstrap(&a, &b).unwrap();
    let count = |is_outside: &dyn Fn(f64) -> bool| draws.iter().filter(|d| is_outside(**d)).count();
    assert_eq!((count(&|d| d < low), count(&|d| d > high)), (250, 250));
}

#[test]
fn one_measurement_far_off_does_not_make_a_difference() {
    let (a, b) = (
        [10.0, 10.1, 9.9, 10.2, 9.8],
        [10.05, 9.95, 10.15, 9.85, 300.0],
    );
    assert!(!Difference::of(&a, &b).unwrap().is_significant());
}

#[test]
fn what_has_no_share_has_no_difference() {
    assert_eq!(Difference::of(&[0.0, 0.0], &[1.0, 2.0]), None);
    assert_eq!(Difference::of(&[1.0], &[1.0, 2.0]), None);
    assert_eq!(Difference::of(&[1.0, f64::NAN], &[1.0, 2.0]), None);
    assert_eq!(mann_whitney(&[], &[1.0]), None);
}

#[test]
fn equal_measurements_are_no_difference() {
    let d = Difference::of(&[5.0; 6], &[5.0; 6]).unwrap();
    assert_eq!(
        (d.test.p, d.test.exact, d.interval),
        (1.0, false, (0.0, 0.0))
    );
}

/// All draws of three measurements with replacement, of both sets, are 729: the interval is
/// read from their exact distribution.
#[test]
fn the_interval_is_that_of_all_possible_draws() {
    let (a, b) = ([10.0, 11.0, 13.0], [12.0, 15.0, 16.0]);
    let draws = |v: [f64; 3]| -> Vec<f64> {
        let all = (0..27).map(|i| (v[i % 3] + v[i / 3 % 3] + v[i / 9]) / 3.0);
        all.collect()
    };
    let mut changes: Vec<f64> = draws(a)
        .iter()
        .flat_map(|a| draws(b).into_iter().map(move |b| (b - a) / a))
        .collect();
    changes.sort_by(f64::total_cmp);
    let (low, high) = bootstrap(&a, &b).unwrap();
    // Within a percent of the probability to either side.
    let at = |share: f64| changes[(share * 728.0) as usize];
    assert!((at(0.015)..=at(0.035)).contains(&low), "{low}");
    assert!((at(0.965)..=at(0.985)).contains(&high), "{high}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_exact_probability_is_that_of_counting(
        ranks in Just((0..9).collect::<Vec<i32>>()).prop_shuffle(),
        n in 1usize..8,
        m in 1usize..2,
    ) {
        let values: Vec<f64> = ranks.iter().map(|r| f64::from(*r) * 1.5).collect();
        let (a, b) = values.split_at(n);
        let test = mann_whitney(a, &b[..b.len().min(5 * m)]).unwrap();
        let counted = by_counting(a, &b[..b.len().min(5 * m)]);
        prop_assert!((test.p - counted).abs() < 1e-9, "{} {counted}", test.p);
    }

    #[test]
    fn the_sides_do_not_matter(
        a in prop::collection::vec(1.0f64..100.0, 2..12),
        b in prop::collection::vec(1.0f64..100.0, 2..12),
    ) {
        let (one, other) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
        prop_assert!((one.p - other.p).abs() < 1e-12);
        prop_assert!((one.u + other.u - (a.len() * b.len()) as f64).abs() < 1e-9);
        prop_assert!((0.0..=1.0).contains(&one.p));
        let d = Difference::of(&a, &b).unwrap();
        prop_assert!(d.interval.0 <= d.interval.1);
    }

    #[test]
    fn the_normal_distribution_stands_in_well(
        a in prop::collection::vec(0.0f64..1.0, 20..24),
        b in prop::collection::vec(0.2f64..1.2, 20..24),
    ) {
        let exact = mann_whitney(&a, &b).unwrap();
        let normal = normal_p(a.len() as f64, b.len() as f64, exact.u, 0.0);
        prop_assert!((exact.p - normal).abs() < 0.01, "{} {normal}", exact.p);
    }
}
