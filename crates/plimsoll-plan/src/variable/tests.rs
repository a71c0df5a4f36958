use super::*;
use crate::seed::Stream;

fn mean_of(d: Distribution) -> f64 {
    let s = Variable::new("x", d).sampler().unwrap();
    let mut rng = Stream::new(7).rng();
    (0..200_000).map(|_| s.draw(&mut rng) as f64).sum::<f64>() / 200_000.0
}

#[test]
fn the_gamma_function_is_that_of_factorials_and_of_halves() {
    let near = |x: f64, expected: f64| {
        let found = gamma_function(x);
        assert!((found / expected - 1.0).abs() < 1e-11, "{x}: {found}");
    };
    let mut factorial = 1.0;
    for n in 2..20 {
        near(f64::from(n), factorial);
        factorial *= f64::from(n);
    }
    let mut of_half = std::f64::consts::PI.sqrt() / 2.0;
    for n in 1..20 {
        near(f64::from(n) + 0.5, of_half);
        of_half *= f64::from(n) + 0.5;
    }
}

#[test]
fn draws_have_the_mean_of_their_distribution() {
    let (mean, sigma) = (5000.0, 200.0);
    let (offset, shape, scale) = (1000.0, 1.5, 2000.0);
    for d in [
        Distribution::Normal { mean, sigma },
        Distribution::Lognormal {
            mu: 7.0,
            sigma: 0.5,
        },
        Distribution::Gamma {
            offset,
            shape,
            scale,
        },
    ] {
        let (want, got) = (d.mean(), mean_of(d.clone()));
        assert!((got / want - 1.0).abs() < 0.02, "{d:?}: {got} for {want}");
    }
}

#[test]
fn means_are_those_of_the_textbook() {
    let near = |d: Distribution, expected: f64| {
        let mean = d.mean();
        assert!((mean / expected - 1.0).abs() < 1e-9, "{d:?}: {mean}");
    };
    let (lower, upper, mode) = (2.0, 5.0, 4.0);
    near(Distribution::Uniform { lower, upper }, 3.5);
    near(Distribution::Triangular { lower, upper, mode }, 11.0 / 3.0);
    let (mean, sigma) = (7.0, 2.0);
    near(Distribution::Normal { mean, sigma }, 7.0);
    near(Distribution::Exponential { mean }, 7.0);
    near(Distribution::Lognormal { mu: 1.0, sigma }, 3f64.exp());
    let (offset, shape, scale) = (10.0, 0.5, 6.0);
    near(
        Distribution::Gamma {
            offset,
            shape,
            scale,
        },
        13.0,
    );
    // The mean of a Weibull distribution is `scale` · Γ(1 + 1 / `shape`); with shape 0.5, Γ(3) is 2.
    near(Distribution::Weibull { shape, scale }, 12.0);
    near(
        Distribution::Table { rows: rows() },
        0.25 * 3.0 + 0.75 * 25.0,
    );
}

fn rows() -> Vec<Row> {
    let row = |percent, min, max| Row { percent, min, max };
    vec![row(25.0, 2.0, 4.0), row(75.0, 20.0, 30.0)]
}

#[test]
fn parameters_out_of_range_are_named() {
    let text = |d: &Distribution| d.check().expect_err("a distribution that is refused");
    let (mean, mu, offset) = (0.0, 0.0, 0.0);
    for sigma in [-0.5, f64::NAN, f64::INFINITY] {
        let expected = format!("the deviation must be at least 0, is {sigma}");
        assert_eq!(text(&Distribution::Normal { mean, sigma }), expected);
        assert_eq!(text(&Distribution::Lognormal { mu, sigma }), expected);
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let expected = |what: &str| format!("{what} must be above 0, is {bad}");
        let (good, exponential) = (1.0, Distribution::Exponential { mean: bad });
        assert_eq!(text(&exponential), expected("mean"));
        let gamma = |shape, scale| Distribution::Gamma {
            offset,
            shape,
            scale,
        };
        assert_eq!(text(&gamma(bad, good)), expected("shape"));
        assert_eq!(text(&gamma(good, -0.5)), "the mean must not be below min");
        let weibull = |shape, scale| Distribution::Weibull { shape, scale };
        assert_eq!(text(&weibull(bad, good)), expected("shape"));
        assert_eq!(text(&weibull(good, bad)), expected("scale"));
    }
    let (lower, upper) = (2.5, 2.0);
    assert_eq!(
        text(&Distribution::Uniform { lower, upper }),
        "lower (2.5) must not exceed upper (2)"
    );
    for (mode, shown) in [(0.5, "0.5"), (4.5, "4.5")] {
        let (lower, upper) = (1.0, 4.0);
        assert_eq!(
            text(&Distribution::Triangular { lower, upper, mode }),
            format!("needs lower ≤ mode ≤ upper, has 1, {shown}, 4")
        );
    }
}

#[test]
fn parameters_may_be_at_the_ends_of_their_ranges() {
    let (lower, upper, mode) = (2.0, 2.0, 2.0);
    for (d, draw) in [
        (Distribution::Uniform { lower, upper }, 2),
        (Distribution::Triangular { lower, upper, mode }, 2),
        (
            Distribution::Normal {
                mean: 3.0,
                sigma: 0.0,
            },
            3,
        ),
        (
            Distribution::Lognormal {
                mu: 5f64.ln(),
                sigma: 0.0,
            },
            5,
        ),
        (
            Distribution::Gamma {
                offset: 4.0,
                shape: 1.0,
                scale: 0.0,
            },
            4,
        ),
    ] {
        assert_eq!(d.check(), Ok(()), "{d:?}");
        assert_eq!(draws(&Variable::new("x", d), 3), [draw; 3]);
    }
}

#[test]
fn rows_of_a_table_are_in_order_and_sum_to_100() {
    let check = |rows: &[(f64, f64, f64)]| {
        let row = |r: &(f64, f64, f64)| Row {
            percent: r.0,
            min: r.1,
            max: r.2,
        };
        Distribution::Table {
            rows: rows.iter().map(row).collect(),
        }
        .check()
    };
    let refused = |text: &str| Err(text.to_owned());
    assert_eq!(check(&[]), refused("the table has no rows"));
    assert_eq!(
        check(&[(100.0, 1.0, 2.0), (0.0, 5.0, 4.5)]),
        refused("row {0, 5, 4.5} needs min ≤ max")
    );
    assert_eq!(
        check(&[(101.0, 1.0, 2.0), (-1.0, 1.0, 2.0)]),
        refused("row {-1, 1, 2} needs min ≤ max")
    );
    assert_eq!(
        check(&[(60.0, 1.0, 2.0), (41.0, 1.0, 2.0)]),
        refused("the percentages sum to 101, not to 100")
    );
    assert_eq!(check(&[(100.0, 3.0, 3.0), (0.0, 1.0, 2.0)]), Ok(()));
    let third = 100.0 / 3.0;
    assert_eq!(check(&[(third, 1.0, 2.0); 3]), Ok(()));
}

fn draws(variable: &Variable, count: usize) -> Vec<u64> {
    let sampler = variable.sampler().unwrap();
    let mut rng = Stream::new(3).rng();
    (0..count).map(|_| sampler.draw(&mut rng)).collect()
}

/// A variable whose every draw, before clamping and rounding, is `x`.
fn always(x: f64) -> Variable {
    Variable::new("x", Distribution::Uniform { lower: x, upper: x })
}

#[test]
fn draws_are_rounded_to_the_nearest_multiple() {
    let rounded = |x: f64, round: u64| draws(&Variable { round, ..always(x) }, 1)[0];
    for round in [0, 1] {
        assert_eq!([rounded(2.4, round), rounded(2.5, round)], [2, 3]);
    }
    assert_eq!([14.9, 15.1, 4.0].map(|x| rounded(x, 10)), [10, 20, 0]);
    assert_eq!([2.9, 3.1].map(|x| rounded(x, 2)), [2, 4]);
}

#[test]
fn bounds_clamp_draws_and_are_in_order() {
    let bounded = |x: f64, min: Option<f64>, max: Option<f64>| {
        let variable = Variable {
            min,
            max,
            ..always(x)
        };
        variable.sampler().map(|_| draws(&variable, 1)[0])
    };
    assert_eq!(bounded(7.0, None, None), Ok(7));
    assert_eq!(bounded(-7.0, None, None), Ok(0));
    assert_eq!(bounded(-7.0, Some(-9.0), None), Ok(0));
    assert_eq!(bounded(7.0, Some(8.0), None), Ok(8));
    assert_eq!(bounded(7.0, None, Some(6.0)), Ok(6));
    assert_eq!(bounded(7.0, Some(5.0), Some(5.0)), Ok(5));
    assert_eq!(
        bounded(7.0, Some(6.0), Some(5.0)),
        Err("min (6) must not exceed max (5)".into())
    );
    assert_eq!(
        bounded(7.0, None, Some(-1.0)),
        Err("min (0) must not exceed max (-1)".into())
    );
}

/// The fraction of draws up to each of several numbers agrees with the distribution function.
#[test]
fn draws_follow_the_distribution_function() {
    const DRAWS: usize = 40_000;
    let follows = |d: Distribution, function: &dyn Fn(f64) -> f64, numbers: &[f64]| {
        let found = draws(&Variable::new("x", d.clone()), DRAWS);
        for x in numbers {
            let p = function(*x);
            // Draws are rounded, so a result of `x` includes values up to `x` + 0.5.
            let n = found.iter().filter(|n| **n as f64 <= x - 0.5).count();
            let slack = 5.0 * (DRAWS as f64 * p * (1.0 - p)).sqrt() + 0.001 * DRAWS as f64;
            let expected = p * DRAWS as f64;
            assert!((n as f64 - expected).abs() <= slack, "{d:?}: {n} up to {x}");
        }
    };
    let (lower, upper, mode) = (10_000.0, 90_000.0, 30_000.0);
    let uniform = |x: f64| (x - lower) / (upper - lower);
    let numbers = [11_000.0, 25_000.0, 50_000.0, 89_000.0];
    follows(Distribution::Uniform { lower, upper }, &uniform, &numbers);
    let triangular = |x: f64| match x < mode {
        true => (x - lower).powi(2) / ((upper - lower) * (mode - lower)),
        false => 1.0 - (upper - x).powi(2) / ((upper - lower) * (upper - mode)),
    };
    let numbers = [15_000.0, 25_000.0, 30_000.0, 45_000.0, 80_000.0];
    let distribution = Distribution::Triangular { lower, upper, mode };
    follows(distribution, &triangular, &numbers);
    let mean = 20_000.0;
    let exponential = |x: f64| 1.0 - (-x / mean).exp();
    let numbers = [1000.0, 20_000.0, 60_000.0];
    follows(Distribution::Exponential { mean }, &exponential, &numbers);
    let (shape, scale) = (2.0, 30_000.0);
    let weibull = |x: f64| 1.0 - (-(x / scale).powi(2)).exp();
    let numbers = [5000.0, 30_000.0, 50_000.0];
    follows(Distribution::Weibull { shape, scale }, &weibull, &numbers);
    let row = |percent, min, max| Row { percent, min, max };
    let rows = vec![
        row(25.0, 1000.0, 3000.0),
        row(50.0, 9000.0, 9000.0),
        row(25.0, 10_000.0, 20_000.0),
    ];
    let table = |x: f64| match x {
        x if x < 3000.0 => 0.25 * (x - 1000.0) / 2000.0,
        x if x < 9000.0 => 0.25,
        x if x < 10_000.0 => 0.75,
        x => 0.75 + 0.25 * (x - 10_000.0) / 10_000.0,
    };
    let numbers = [1500.0, 2500.0, 5000.0, 9500.0, 12_000.0, 19_000.0];
    follows(Distribution::Table { rows }, &table, &numbers);
}
