use super::*;
use proptest::prelude::*;

/// The p-value by definition: the fraction of assignments of the measurements to the sets whose `u` is at least as far
/// from the middle. Equal measurements count half.
fn by_counting(first: &[f64], second: &[f64]) -> f64 {
    let all = [first, second].concat();
    let (n, total) = (first.len(), all.len());
    let middle = (n * second.len()) as f64 / 2.0;
    let u_of = |chosen: u32| {
        let mut u = 0.0;
        for (_, a) in all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 1) {
            for (_, b) in all.iter().enumerate().filter(|(i, _)| chosen >> i & 1 == 0) {
                u += match a.total_cmp(b) {
                    std::cmp::Ordering::Greater => 1.0,
                    std::cmp::Ordering::Equal => 0.5,
                    std::cmp::Ordering::Less => 0.0,
                };
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
    // Mann and Whitney's statistic for two groups of ages; other programs give the exact and approximate p-values 1/9
    // and 0.11134688653314041.
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
    assert!(d.test.separated && d.p() == d.test.p);
    // The means differ by 5.
    assert!(d.interval.0 > 0.0 && d.interval.0 < 5.0 && d.interval.1 > 5.0);
    let less = Difference::of(&b, &a).unwrap();
    assert!(less.test.separated && less.interval.1 < 0.0 && less.p() == d.p());
    let touching = Difference::of(&a, &[5.0, 6.0, 7.0, 8.0, 9.0]).unwrap();
    assert!(!touching.test.separated);
}

#[test]
fn the_number_of_runs_limits_what_can_be_shown() {
    // One of forty ranks is extreme with a probability of exactly 0.05, and one run has no variation.
    assert!(!has_enough_runs(1, 40) && !has_enough_runs(40, 1));
    // Sets of 2 and 7 measurements are separated by 2 of 36 assignments (p = 0.056), and sets of 2 and 8 measurements
    // by 2 of 45 assignments (p = 0.044).
    assert!(!has_enough_runs(2, 7) && has_enough_runs(2, 8) && has_enough_runs(8, 2));
    assert!(!has_enough_runs(3, 3) && has_enough_runs(4, 4) && has_enough_runs(5, 5));
    for n in [0, 1, 100] {
        assert!(!has_enough_runs(n, 0) && !has_enough_runs(0, n));
    }
    // C(8, 4) = 70, C(10, 5) = 252, C(12, 6) = 924, C(14, 7) = 3432, C(16, 8) = 12 870.
    for (figures, runs) in [
        (0, 4),
        (1, 4),
        (2, 5),
        (6, 5),
        (7, 6),
        (23, 6),
        (24, 7),
        (60, 7),
        (85, 7),
        (86, 8),
    ] {
        assert_eq!(runs_needed(figures), runs, "{figures}");
        let most = |n: usize| (1..=n).fold(1.0, |w, i| w * (n + i) as f64 / i as f64);
        let smallest = |n| 2.0 / most(n);
        assert!(smallest(runs) * figures as f64 <= 0.05);
        assert!(runs == 4 || smallest(runs - 1) * figures as f64 > 0.05);
    }
}

#[test]
fn a_difference_has_the_p_of_the_test_if_its_interval_excludes_zero() {
    let p = |interval| {
        let test = MannWhitney {
            u: 0.0,
            p: 0.01,
            exact: true,
            separated: true,
        };
        Difference { interval, test }.p()
    };
    assert_eq!([p((0.1, 0.2)), p((-0.2, -0.1))], [0.01; 2]);
    for around in [(-0.1, 0.1), (0.0, 0.2), (-0.2, 0.0)] {
        assert_eq!(p(around), 1.0, "{around:?}");
    }
}

#[test]
fn the_false_discovery_rate_is_controlled_as_published() {
    // The fifteen p-values of the example of Benjamini and Hochberg (1995): the first four are significant;
    // Bonferroni's procedure finds three.
    let published = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0000,
    ];
    let found = significant(&published);
    assert_eq!(found.iter().filter(|s| **s).count(), 4);
    assert_eq!(found[..5], [true, true, true, true, false]);
    // The order of the p-values does not affect which differences are significant.
    let mut backwards = published;
    backwards.reverse();
    let mut expected = found.clone();
    expected.reverse();
    assert_eq!(significant(&backwards), expected);
    // A single p-value has the whole rate, and the limit itself is significant.
    assert_eq!(significant(&[0.05]), [true]);
    assert_eq!(significant(&[0.051]), [false]);
    assert_eq!(significant(&[]), [false; 0]);
    // A p-value above its own limit is significant if a greater p-value is within its limit.
    assert_eq!(significant(&[0.03, 0.04, 0.05]), [true; 3]);
    assert_eq!(significant(&[0.03, 0.04, 0.06]), [false; 3]);
    assert_eq!(significant(&[0.02, f64::NAN, 0.02]), [true, false, true]);
}

#[test]
fn changes_are_relative_to_the_first_figure() {
    for (from, to, change) in [
        (2.0, 2.5, 0.25),
        (2.0, 0.0, -1.0),
        (0.0, 102.0, f64::INFINITY),
        (0.0, 0.0, 0.0),
        (-0.0, 0.0, 0.0),
        (-10.0, -5.0, 0.5),
        (0.0, -1.0, f64::NEG_INFINITY),
    ] {
        assert_eq!(relative_change(from, to), change, "{from} {to}");
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
    assert_eq!((ties.u, ties.exact), (1.0, true));
    assert_eq!(super::ties(&[1.0, 2.0, 2.0], &[2.0, 3.0, 3.0]), 24.0 + 6.0);
}

#[test]
fn sets_that_cannot_vary_have_no_difference() {
    assert!(Difference::of(&[1.0, 2.0], &[1.0]).is_none());
    assert!(Difference::of(&[1.0], &[1.0, 2.0]).is_none());
    assert!(Difference::of(&[1.0, 2.0], &[1.0, f64::INFINITY]).is_none());
    assert!(Difference::of(&[1.0, f64::NAN], &[1.0, 2.0]).is_none());
    assert!(Difference::of(&[1.0, 2.0], &[1.0, 2.0]).is_some());
    assert_eq!(mann_whitney(&[], &[1.0]), None);
}

#[test]
fn from_zero_there_is_a_difference_like_any_other() {
    let d = Difference::of(&[0.0; 5], &[3.0, 5.0, 4.0, 1.0, 9.0]).unwrap();
    assert!(d.test.separated && d.interval.0 > 0.0);
    assert!((d.p() - 2.0 / 252.0).abs() < 1e-12);
    // Zero and negative zero are equal.
    let same = Difference::of(&[0.0; 5], &[-0.0; 5]).unwrap();
    assert_eq!((same.test.p, same.test.separated), (1.0, false));
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
    let (low, high) = bootstrap(&a, &b);
    let count = |is_outside: &dyn Fn(f64) -> bool| draws.iter().filter(|d| is_outside(**d)).count();
    assert_eq!((count(&|d| d < low), count(&|d| d > high)), (250, 250));
}

#[test]
fn one_measurement_far_off_does_not_make_a_difference() {
    let (a, b) = (
        [10.0, 10.1, 9.9, 10.2, 9.8],
        [10.05, 9.95, 10.15, 9.85, 300.0],
    );
    assert_eq!(Difference::of(&a, &b).unwrap().p(), 1.0);
}

#[test]
fn equal_measurements_are_no_difference() {
    let d = Difference::of(&[5.0; 6], &[5.0; 6]).unwrap();
    assert_eq!(
        (d.test.p, d.test.exact, d.interval),
        (1.0, true, (0.0, 0.0))
    );
}

/// Two sets of three measurements have 729 draws with replacement: the interval is read from their exact distribution.
#[test]
fn the_interval_is_that_of_all_possible_draws() {
    let (a, b) = ([10.0, 11.0, 13.0], [12.0, 15.0, 16.0]);
    let draws = |v: [f64; 3]| -> Vec<f64> {
        let all = (0..27).map(|i| (v[i % 3] + v[i / 3 % 3] + v[i / 9]) / 3.0);
        all.collect()
    };
    let mut differences: Vec<f64> = draws(a)
        .iter()
        .flat_map(|a| draws(b).into_iter().map(move |b| b - a))
        .collect();
    differences.sort_by(f64::total_cmp);
    let (low, high) = bootstrap(&a, &b);
    // Each bound of the 95 % interval is within 1 % of its quantile (2.5 % or 97.5 %) of the exact distribution.
    let at = |share: f64| differences[(share * 728.0) as usize];
    assert!((at(0.015)..=at(0.035)).contains(&low), "{low}");
    assert!((at(0.965)..=at(0.985)).contains(&high), "{high}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_exact_probability_is_that_of_counting(
        ranks in Just((0..9).collect::<Vec<i32>>()).prop_shuffle(),
        ties in 1i32..5,
        n in 1usize..9,
    ) {
        let values: Vec<f64> = ranks.iter().map(|r| f64::from(r / ties) * 1.5).collect();
        let (a, b) = values.split_at(n);
        let test = mann_whitney(a, b).unwrap();
        let counted = by_counting(a, b);
        prop_assert!((test.p - counted).abs() < 1e-9, "{} {counted}", test.p);
    }

    #[test]
    fn what_is_significant_is_what_the_definition_says(
        p in prop::collection::vec((0.0f64..1.0).prop_map(|p| p * p * p), 0..40),
    ) {
        // The expected `k` is the largest number of p-values of which all are at most `limit(k)`.
        let below = |limit: f64| p.iter().filter(|p| **p <= limit).count();
        let limit = |k: usize| 0.05 * k as f64 / p.len() as f64;
        let k = (0..=p.len()).rev().find(|k| below(limit(*k)) >= *k).unwrap();
        let expected: Vec<bool> = p.iter().map(|p| k > 0 && *p <= limit(k)).collect();
        prop_assert_eq!(significant(&p), expected);
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
