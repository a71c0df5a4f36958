mod properties;

use super::*;
use crate::normal::standard_normal;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A published curve: name, points (load or throughput, mean latency in ms), published overall response time, and
/// overall response time computed by hand to four digits.
struct Published {
    name: &'static str,
    points: &'static [(f64, f64)],
    published: f64,
    computed: f64,
}

const NFS_2008: [Published; 5] = [
    Published {
        name: "Avere FXT 3800 ×32 over a WAN",
        points: &[
            (165131.0, 0.3),
            (330450.0, 0.4),
            (495831.0, 0.5),
            (661422.0, 0.7),
            (828151.0, 0.8),
            (993323.0, 1.1),
            (1160562.0, 1.3),
            (1328345.0, 2.0),
            (1476954.0, 3.6),
            (1592334.0, 5.8),
        ],
        published: 1.24,
        computed: 1.2399,
    },
    Published {
        name: "Avere FXT 3800 ×3, AmpliStor",
        points: &[
            (17807.0, 0.3),
            (35659.0, 0.4),
            (53529.0, 0.5),
            (71387.0, 0.6),
            (89262.0, 0.8),
            (107172.0, 0.9),
            (125280.0, 1.1),
            (143069.0, 1.4),
            (160721.0, 1.9),
            (180229.0, 3.0),
        ],
        published: 0.95,
        computed: 0.9531,
    },
    Published {
        name: "Avere FXT 3800 ×3, S3",
        points: &[
            (17807.0, 0.3),
            (35659.0, 0.4),
            (53527.0, 0.5),
            (71390.0, 0.6),
            (89240.0, 0.7),
            (107177.0, 0.9),
            (125280.0, 1.0),
            (143070.0, 1.3),
            (160697.0, 1.8),
            (180141.0, 2.1),
        ],
        published: 0.86,
        computed: 0.8639,
    },
    Published {
        name: "Avere FXT 3800 ×3, local ZFS",
        points: &[
            (17859.0, 0.3),
            (35758.0, 0.4),
            (53680.0, 0.5),
            (71595.0, 0.6),
            (89506.0, 0.7),
            (107481.0, 0.8),
            (125649.0, 1.0),
            (143458.0, 1.3),
            (161102.0, 1.7),
            (180538.0, 2.7),
        ],
        published: 0.88,
        computed: 0.8754,
    },
    Published {
        name: "Avere FXT 3800 ×3, ZFS",
        points: &[
            (17808.0, 0.3),
            (35658.0, 0.4),
            (53519.0, 0.5),
            (71383.0, 0.6),
            (89274.0, 0.7),
            (107189.0, 0.8),
            (125289.0, 1.0),
            (143053.0, 1.2),
            (160709.0, 1.7),
            (180043.0, 2.7),
        ],
        published: 0.87,
        computed: 0.8654,
    },
];

const VDA_2014: Published = Published {
    name: "IBM DeepFlash 150",
    points: &[
        (170.0, 1.6),
        (340.0, 1.8),
        (510.0, 1.9),
        (680.0, 2.3),
        (850.0, 2.7),
        (1020.0, 2.7),
        (1190.0, 2.8),
        (1360.0, 3.2),
        (1530.0, 3.9),
        (1700.0, 30.0),
    ],
    published: 4.12,
    computed: 4.1222,
};

/// Achieved operations per second at the points of the VDA curve.
const VDA_OPS: [f64; 10] = [
    1700.0, 3401.0, 5102.0, 6803.0, 8503.0, 10204.0, 11904.0, 13605.0, 15306.0, 16980.0,
];

fn point(load: f64, achieved: f64, latency_ms: f64) -> Point {
    Point {
        load,
        achieved,
        latency_ms,
        verdict: PointVerdict::Valid,
    }
}

/// A curve whose throughput equals its load.
fn curve(points: &[(f64, f64)]) -> Curve {
    let points = points.iter().map(|(x, y)| point(*x, *x, *y));
    Curve::new(points.collect()).unwrap()
}

#[test]
fn published_curves_of_2008_give_their_published_figure() {
    for p in &NFS_2008 {
        let c = curve(p.points);
        let ort = c.overall_response_time(Rule::Sfs2008).unwrap();
        assert!((ort - p.computed).abs() < 5e-5, "{}: {ort}", p.name);
        assert_eq!(
            format!("{ort:.2}"),
            format!("{:.2}", p.published),
            "{}",
            p.name
        );
    }
}

#[test]
fn the_published_curve_of_2014_gives_its_published_figure() {
    let c = curve(VDA_2014.points);
    let ort = c.overall_response_time(Rule::Sfs2014).unwrap();
    assert!(
        (ort - VDA_2014.computed).abs() < 5e-5,
        "{}: {ort}",
        VDA_2014.name
    );
    assert_eq!(format!("{ort:.2}"), format!("{:.2}", VDA_2014.published));
    // The rule of SPECsfs2008 gives another overall response time than the rule of SPEC SFS 2014.
    let other = c.overall_response_time(Rule::Sfs2008).unwrap();
    assert!((other - 3.79).abs() < 0.005, "{other}");
}

#[test]
fn the_rules_differ_in_their_axis() {
    let points = vec![point(1.0, 10.0, 2.0), point(2.0, 40.0, 4.0)];
    let c = Curve::new(points).unwrap();
    // The area over throughput, a triangle to (10, 2) and (2+4)/2 over 30, is divided by 40.
    let ort = c.overall_response_time(Rule::Sfs2008).unwrap();
    assert!((ort - (10.0 + 90.0) / 40.0).abs() < 1e-12);
    assert_eq!(c.overall_response_time(Rule::Sfs2014), Ok(3.0));
}

#[test]
fn invalid_points_are_kept_but_count_for_nothing() {
    let mut points: Vec<Point> = [(1.0, 1.0), (2.0, 1.0), (3.0, 1.0), (4.0, 90.0)]
        .map(|(x, y)| point(x, x, y))
        .to_vec();
    points[3].verdict = PointVerdict::Invalid;
    let c = Curve::new(points).unwrap();
    assert_eq!(c.points().len(), 4);
    assert_eq!(c.peak().map(|p| p.load), Some(3.0));
    assert_eq!(c.overall_response_time(Rule::Sfs2014), Ok(1.0));
    let ort = c.overall_response_time(Rule::Sfs2008).unwrap();
    assert!((ort - 2.5 / 3.0).abs() < 1e-12);
}

/// Beyond the peak, the area over throughput is undefined; the area over load is defined.
#[test]
fn beyond_the_peak_only_the_newer_rule_has_a_figure() {
    let points = vec![
        point(1.0, 100.0, 1.0),
        point(2.0, 200.0, 1.0),
        point(3.0, 150.0, 4.0),
    ];
    let curve = Curve::new(points).unwrap();
    let error = CurveError::NotIncreasing {
        index: 2,
        before: 200.0,
        value: 150.0,
    };
    assert_eq!(curve.overall_response_time(Rule::Sfs2008), Err(error));
    assert_eq!(curve.overall_response_time(Rule::Sfs2014), Ok(1.75));
}

#[test]
fn too_few_valid_points_are_an_error() {
    let none = Curve::new(vec![]).unwrap();
    let too_few = |have, need| Err(CurveError::TooFew { have, need });
    assert_eq!(none.peak(), None);
    assert_eq!(none.overall_response_time(Rule::Sfs2008), too_few(0, 1));
    let one = curve(&[(5.0, 2.0)]);
    assert_eq!(one.overall_response_time(Rule::Sfs2008), Ok(1.0));
    assert_eq!(one.overall_response_time(Rule::Sfs2014), too_few(1, 2));
    let idle = Curve::new(vec![point(5.0, 0.0, 2.0)]).unwrap();
    let e = idle.overall_response_time(Rule::Sfs2008);
    assert!(
        matches!(e, Err(CurveError::NotIncreasing { index: 0, .. })),
        "{e:?}"
    );
}

#[test]
fn numbers_out_of_range_are_refused() {
    for bad in [f64::NAN, f64::INFINITY, -1.0, 1e101] {
        for place in 0..3 {
            let mut fields = [1.0, 1.0, 1.0];
            fields[place] = bad;
            let [load, achieved, latency] = fields;
            let points = vec![point(0.5, 0.5, 0.5), point(load, achieved, latency)];
            let e = Curve::new(points).unwrap_err();
            assert_eq!(e, CurveError::OutOfRange { index: 1 }, "{fields:?}");
        }
    }
    assert!(Curve::new(vec![point(0.0, 0.0, 0.0)]).is_err());
    assert!(Curve::new(vec![point(1.0, 0.0, 0.0)]).is_ok());
}

#[test]
fn knees_of_published_curves() {
    // The expected knees were computed independently, by the largest distance from the chord.
    let knee = |p: &Published| curve(p.points).knee().map(|k| k.load);
    assert_eq!(knee(&NFS_2008[0]), Ok(1160562.0));
    assert_eq!(knee(&NFS_2008[1]), Ok(125280.0));
    // The latency of the last point alone determines the knee.
    let (load, have) = (1530.0, 1);
    assert_eq!(knee(&VDA_2014), Err(KneeError::TooFewBeyond { load, have }));
}

#[test]
fn scatter_of_flat_latencies_is_no_knee() {
    let scatter = [
        (50.0, 0.428),
        (100.0, 0.379),
        (150.0, 0.284),
        (200.0, 0.358),
        (250.0, 0.338),
    ];
    let Err(KneeError::WithinErrors {
        load,
        distance_ms,
        error_ms,
    }) = curve(&scatter).knee()
    else {
        panic!("a knee: {:?}", curve(&scatter).knee());
    };
    // The third point is half a latency range of 0.144 ms below the line, and the latency falls by the whole range.
    assert_eq!(load, 150.0);
    assert!((distance_ms - 0.072).abs() < 1e-12, "{distance_ms}");
    assert!((error_ms - 0.144).abs() < 1e-12, "{error_ms}");
}

/// Straight curves with normally distributed errors of 1 ms. The limit is four standard deviations above 6 % of 2000
/// curves.
#[test]
fn errors_of_the_points_of_a_straight_curve_are_rarely_a_knee() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for length in [4, 5, 6, 8, 12, 20] {
        for rise_ms in [0.0, 0.5, 1.5, 3.0] {
            let mut found = 0;
            for _ in 0..2000 {
                let point = |load: f64| {
                    let latency_ms = 100.0 + rise_ms * load + standard_normal(&mut random);
                    (load, latency_ms)
                };
                let points: Vec<(f64, f64)> = (1..=length).map(f64::from).map(point).collect();
                found += u32::from(curve(&points).knee().is_ok());
            }
            assert!(found <= 162, "{length} points, {rise_ms} ms: {found}");
        }
    }
}

#[test]
fn a_knee_is_farther_from_the_line_than_twice_the_error_of_the_points() {
    // The knee is 50 ms below the line (half of a range of 100 ms); the fourth point is above the line between its
    // neighbours by its latency less 50 ms.
    let knee = |fourth| {
        curve(&[
            (1.0, 0.0),
            (2.0, 0.0),
            (3.0, 0.0),
            (4.0, fourth),
            (5.0, 100.0),
        ])
        .knee()
        .map(|p| p.load)
    };
    assert_eq!(knee(74.0), Ok(3.0));
    let (load, distance_ms, error_ms) = (3.0, 50.0, 26.0);
    let error = KneeError::WithinErrors {
        load,
        distance_ms,
        error_ms,
    };
    assert_eq!(knee(76.0), Err(error));
}

#[test]
fn a_curve_without_a_turn_has_no_knee() {
    let of = |ys: &[f64]| {
        let xs = (1..).map(f64::from);
        let points: Vec<(f64, f64)> = xs.zip(ys.iter().copied()).collect();
        curve(&points).knee().map(|p| p.load)
    };
    let beyond = |load, have| Err(KneeError::TooFewBeyond { load, have });
    assert_eq!(of(&[1.0, 1.0, 9.0]), Err(KneeError::TooFew { have: 3 }));
    assert_eq!(of(&[1.0, 1.0, 1.0, 9.0]), beyond(3.0, 1));
    assert_eq!(of(&[1.0, 1.0, 5.0, 9.0]), Ok(2.0), "four points");
    assert_eq!(of(&[2.0; 8]), Err(KneeError::NoTurn), "flat");
    assert_eq!(
        of(&[1.0, 2.0, 3.0, 4.0, 5.0]),
        Err(KneeError::NoTurn),
        "straight"
    );
    assert_eq!(
        of(&[1.0, 6.0, 8.0, 9.0, 9.5]),
        Err(KneeError::NoTurn),
        "bends the other way"
    );
    // A dent without a return by a load step is no knee; the bend after the dent is.
    assert_eq!(of(&[1.0, 1.0, 1.3, 1.3, 1.3, 1.3, 5.0, 9.0]), Ok(6.0));
}

fn usl_curve(lambda: f64, sigma: f64, kappa: f64, loads: &[f64]) -> Curve {
    let x = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
    let points = loads.iter().map(|n| point(*n, x(*n), 1.0));
    Curve::new(points.collect()).unwrap()
}

#[test]
fn a_known_law_is_found_again() {
    let loads = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0];
    let fit = usl_curve(995.65, 0.02671, 0.000769, &loads)
        .fit_usl()
        .unwrap();
    assert!((fit.lambda - 995.65).abs() < 1e-6, "{fit:?}");
    assert!((fit.sigma - 0.02671).abs() < 1e-9, "{fit:?}");
    assert!((fit.kappa - 0.000769).abs() < 1e-11, "{fit:?}");
    assert!((fit.r_squared - 1.0).abs() < 1e-12, "{fit:?}");
    assert!(fit.residuals.iter().all(|r| r.abs() < 1e-6), "{fit:?}");
    // √((1 − 0.02671) / 0.000769) = 35.576
    assert!((fit.peak_load().unwrap() - 35.576).abs() < 1e-3);
    assert!((fit.throughput(1.0) - 995.65).abs() < 1e-6);
}

#[test]
fn a_published_fit_is_reproduced() {
    // SPEC SDM 91 on a Sun SPARCcenter 2000, as fitted by the R package `usl` and shown in its
    // manual: coefficients, range of the residuals, and their standard error on 4 degrees of
    // freedom.
    let measured = [
        (1.0, 64.9),
        (18.0, 995.9),
        (36.0, 1652.4),
        (72.0, 1853.2),
        (108.0, 1828.9),
        (144.0, 1775.0),
        (216.0, 1702.2),
    ];
    let points = measured.map(|(n, x)| point(n, x, 1.0)).to_vec();
    let fit = Curve::new(points).unwrap().fit_usl().unwrap();
    assert!((fit.lambda - 89.9952).abs() < 1e-3, "{fit:?}");
    assert!((fit.sigma - 0.027_728_5).abs() < 1e-6, "{fit:?}");
    assert!((fit.kappa - 0.000_104_4).abs() < 1e-7, "{fit:?}");
    let least = fit.residuals.iter().copied().fold(f64::INFINITY, f64::min);
    let most = fit.residuals.iter().copied().fold(0.0, f64::max);
    assert_eq!(format!("{least:.1} {most:.1}"), "-81.7 111.1");
    let squares: f64 = fit.residuals.iter().map(|r| r * r).sum();
    assert_eq!(format!("{:.1}", (squares / 4.0).sqrt()), "82.8");
    let mean = measured.iter().map(|(_, x)| x).sum::<f64>() / 7.0;
    let spread: f64 = measured.iter().map(|(_, x)| (x - mean).powi(2)).sum();
    assert!((fit.r_squared - (1.0 - squares / spread)).abs() < 1e-12);
    assert_eq!(format!("{:.2}", fit.peak_load().unwrap()), "96.52");
}

#[test]
fn the_published_vda_curve_scales_all_but_linearly() {
    let points = VDA_2014.points.iter().zip(VDA_OPS);
    let points = points.map(|((load, ms), ops)| point(*load, ops, *ms));
    let vda = Curve::new(points.collect()).unwrap();
    assert_eq!(vda.fit_usl(), Err(UslError::TooFewBent { have: 0 }));
    let fit = vda.least_squares_law().unwrap();
    // The law has about ten operations per second per stream, and 0.1 % less at the end.
    assert!((fit.throughput(1000.0) - 10_003.0).abs() < 15.0, "{fit:?}");
    assert!(fit.sigma * 1700.0 < 0.01, "{fit:?}");
    assert!(fit.r_squared > 0.999_99, "{fit:?}");
    let sum: f64 = fit.residuals.iter().map(|r| r.abs()).sum();
    assert!(sum < 60.0 && sum > 1.0, "{fit:?}");
}

#[test]
fn parameters_stay_in_their_ranges() {
    // For superlinear throughput σ would be negative, so σ is zero.
    let up = [(1.0, 1.0), (2.0, 2.2), (3.0, 3.4), (4.0, 4.8)];
    let points = up.map(|(n, x)| point(n, x, 1.0)).to_vec();
    let fit = Curve::new(points).unwrap().least_squares_law().unwrap();
    assert_eq!((fit.sigma, fit.kappa), (0.0, 0.0), "{fit:?}");
    assert_eq!(fit.peak_load(), None);
    // Best λ of X = λN by hand: ΣNX / ΣN² = 34.8 / 30.
    assert!((fit.lambda - 34.8 / 30.0).abs() < 1e-9, "{fit:?}");
    // Throughput that falls from the first point on is explained by contention alone.
    let down = [(1.0, 9.0), (2.0, 5.0), (3.0, 3.0), (4.0, 2.0)];
    let points = down.map(|(n, x)| point(n, x, 1.0)).to_vec();
    let fit = Curve::new(points).unwrap().least_squares_law().unwrap();
    assert!(
        (0.0..=1.0).contains(&fit.sigma) && fit.kappa > 0.0,
        "{fit:?}"
    );
}

/// Curves whose best parabola has parameters out of range: throughput that is initially superlinear, never above the
/// throughput of one unit, or almost constant.
#[test]
fn no_law_on_a_grid_fits_better() {
    let curves: [&[f64]; 6] = [
        &[1.0, 2.2, 3.3, 3.9, 4.0],
        &[1.0, 1.5, 1.8, 2.05, 2.3],
        &[9.0, 5.0, 4.5, 4.4, 4.3],
        &[5.0, 4.8, 4.9, 5.1, 4.95],
        &[9.0, 5.0, 3.0, 2.0, 1.5],
        &[1.0, 2.1, 2.9, 4.2, 5.0],
    ];
    for curve in curves {
        let measured: Vec<(f64, f64)> = (1..).map(f64::from).zip(curve.iter().copied()).collect();
        let points = measured.iter().map(|(n, x)| point(*n, *x, 1.0)).collect();
        let fit = Curve::new(points).unwrap().least_squares_law().unwrap();
        let left: f64 = fit.residuals.iter().map(|r| r * r).sum();
        for sigma in (0..=50).map(|i| f64::from(i) / 50.0) {
            for kappa in (0..=100).map(|i| f64::from(i) / 50.0) {
                let unit = |n: f64| n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
                let (mut by_unit, mut of_unit) = (0.0, 0.0);
                for (n, x) in &measured {
                    by_unit += x * unit(*n);
                    of_unit += unit(*n).powi(2);
                }
                let lambda = by_unit / of_unit;
                let squares: f64 = measured
                    .iter()
                    .map(|(n, x)| (x - lambda * unit(*n)).powi(2))
                    .sum();
                assert!(
                    left <= squares + 1e-9,
                    "{curve:?} {fit:?}: σ {sigma}, κ {kappa}"
                );
            }
        }
    }
}

#[test]
fn scatter_of_proportional_throughput_is_no_law() {
    // About 10 operations per second per unit, with errors of up to 8 %. The law fits 99 % of the variance.
    let scatter = [
        (10.0, 92.0),
        (20.0, 215.0),
        (30.0, 310.0),
        (40.0, 380.0),
        (50.0, 475.0),
    ];
    let scatter = Curve::new(scatter.map(|(n, x)| point(n, x, 1.0)).to_vec()).unwrap();
    let fit = scatter.least_squares_law().unwrap();
    assert!(fit.r_squared > 0.98, "{fit:?}");
    let Err(UslError::WithinErrors { chance }) = scatter.fit_usl() else {
        panic!("{:?}", scatter.fit_usl());
    };
    // The best line is ΣNX / ΣN² = 53 470 / 5 500 = 9.7218 per unit, and leaves a sum of squares of 988.38; with five
    // points the probability is the ratio of the sums of squares to the power of 1.
    let left: f64 = fit.residuals.iter().map(|r| r * r).sum();
    assert!((chance - left / 988.38).abs() < 1e-4, "{chance}, {left}");
}

#[test]
fn reasons_are_stated_in_words() {
    let actual = [
        UslError::TooFew { have: 3 }.to_string(),
        UslError::NothingAchieved { load: 2.5 }.to_string(),
        UslError::Flat.to_string(),
        UslError::NoFit.to_string(),
        UslError::TooFewBent { have: 1 }.to_string(),
        UslError::WithinErrors { chance: 0.314 }.to_string(),
        KneeError::TooFew { have: 2 }.to_string(),
        KneeError::NoTurn.to_string(),
        KneeError::TooFewBeyond {
            load: 30.0,
            have: 1,
        }
        .to_string(),
        KneeError::WithinErrors {
            load: 150.0,
            distance_ms: 0.072,
            error_ms: 0.144,
        }
        .to_string(),
        CurveError::OutOfRange { index: 0 }.to_string(),
        CurveError::TooFew { have: 0, need: 2 }.to_string(),
    ];
    let expected = [
        "4 load points are needed, there are 3",
        "nothing was achieved at load 2.5",
        "throughput is the same at every load",
        "no parameters of the law fit these points",
        "2 load points are needed whose throughput is at least 5 % less than in proportion to load, there is 1",
        "deviations of the load points from the law make a straight line appear as bent with a probability of 31 %, \
         and at most 1 % are allowed",
        "4 load points are needed, there are 2",
        "the response time does not turn up",
        "the response time turns up at load 30, but 2 load points are needed beyond the turn, there is 1",
        "at load 150 the response time is 0.072 ms below a straight line, but load points deviate from a rising curve \
         by up to 0.144 ms",
        "load point 1 has a number that is negative, infinite or not a number, or a load of zero",
        "2 valid load points are needed, there are 0",
    ];
    assert_eq!(actual, expected);
    let error = CurveError::NotIncreasing {
        index: 2,
        before: 5.0,
        value: 4.5,
    };
    assert_eq!(
        error.to_string(),
        "load points come in increasing order, but point 3 is at 4.5 after 5"
    );
}

#[test]
fn numbers_may_be_as_large_and_small_as_their_bounds() {
    let is_possible = |load, achieved, ms| Curve::new(vec![point(load, achieved, ms)]).is_ok();
    assert!(is_possible(1e-100, 0.0, 0.0) && is_possible(1e100, 1e100, 1e100));
    assert!(!is_possible(0.9e-100, 0.0, 0.0) && !is_possible(1.1e100, 0.0, 0.0));
}

/// The knee by its definition, point by point.
fn knee_by_definition(points: &[(f64, f64)]) -> Option<f64> {
    let (n, last) = (points.len(), points.len() - 1);
    let least = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
    if n < 4 || most == least {
        return None;
    }
    let below = |i: usize| {
        let (x, y) = points[i];
        (x - points[0].0) / (points[last].0 - points[0].0) - (y - least) / (most - least)
    };
    let mut knee = None;
    for i in 1..last {
        let turns = below(i) >= below(i - 1) && below(i) > below(i + 1);
        let mut comes_back = false;
        for j in i + 1..n {
            if below(j) > below(i) {
                break;
            }
            comes_back |= below(j) <= below(i) - 1.0 / last as f64;
        }
        let is_farthest = knee.is_none_or(|k| below(i) >= below(k));
        if turns && comes_back && below(i) > 0.0 && is_farthest {
            knee = Some(i);
        }
    }
    knee.map(|i| points[i].0)
}

#[test]
fn what_cannot_be_fitted_has_a_reason() {
    let fit = |points: &[(f64, f64)]| {
        let points = points.iter().map(|(n, x)| point(*n, *x, 1.0));
        Curve::new(points.collect()).unwrap().fit_usl()
    };
    let three = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)];
    assert_eq!(fit(&three), Err(UslError::TooFew { have: 3 }));
    let flat = [(1.0, 5.0), (2.0, 5.0), (3.0, 5.0), (4.0, 5.0)];
    assert_eq!(fit(&flat), Err(UslError::Flat));
    let idle = [(1.0, 5.0), (2.0, 5.0), (3.0, 0.0), (4.0, 6.0)];
    assert_eq!(fit(&idle), Err(UslError::NothingAchieved { load: 3.0 }));
}
