//! Properties of arbitrary curves.

use super::*;

/// Curves with increasing loads, throughput independent of load, and arbitrary latencies.
fn any_curve() -> impl Strategy<Value = Curve> {
    let step = (0.01f64..1e4, 0.01f64..1e4, 0.0f64..1e3);
    prop::collection::vec(step, 2..12).prop_map(|steps| {
        let (mut load, mut achieved) = (0.0, 0.0);
        let points = steps.into_iter().map(|(dx, da, y)| {
            load += dx;
            achieved += da;
            point(load, achieved, y)
        });
        Curve::new(points.collect()).unwrap()
    })
}

fn changed(c: &Curve, change: impl Fn(&mut Point)) -> Curve {
    let mut points = c.points().to_vec();
    points.iter_mut().for_each(change);
    Curve::new(points).unwrap()
}

const RULES: [Rule; 2] = [Rule::Sfs2008, Rule::Sfs2014];

proptest! {
    #[test]
    fn overall_response_time_scales_with_latency_alone(c in any_curve(), by in 0.01f64..100.0) {
        for rule in RULES {
            let ort = c.overall_response_time(rule).unwrap();
            let wide = changed(&c, |p| { p.load *= by; p.achieved *= by; });
            let slow = changed(&c, |p| p.latency_ms *= by);
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs().max(1e-9);
            prop_assert!(near(wide.overall_response_time(rule).unwrap(), ort));
            prop_assert!(near(slow.overall_response_time(rule).unwrap(), ort * by));
        }
    }

    #[test]
    fn overall_response_time_grows_with_every_latency(
        c in any_curve(),
        at in any::<prop::sample::Index>(),
        by in 0.0f64..100.0,
    ) {
        let mut points = c.points().to_vec();
        let at = at.index(points.len());
        points[at].latency_ms += by;
        let slower = Curve::new(points).unwrap();
        for rule in RULES {
            let (a, b) = (c.overall_response_time(rule), slower.overall_response_time(rule));
            prop_assert!(a.unwrap() <= b.unwrap() + 1e-9);
        }
    }

    #[test]
    fn overall_response_time_is_a_mean(c in any_curve()) {
        let ys: Vec<f64> = c.points().iter().map(|p| p.latency_ms).collect();
        let low = ys.iter().copied().fold(f64::INFINITY, f64::min);
        let high = ys.iter().copied().fold(0.0, f64::max);
        let of_2014 = c.overall_response_time(Rule::Sfs2014).unwrap();
        prop_assert!(of_2014 >= low - 1e-9 && of_2014 <= high + 1e-9);
        prop_assert!(c.overall_response_time(Rule::Sfs2008).unwrap() <= high + 1e-9);
        // On one axis, the two areas differ by the triangle at the origin.
        let same = changed(&c, |p| p.achieved = p.load);
        let (first, last) = (same.points()[0], same.points()[same.points().len() - 1]);
        let by_2008 = same.overall_response_time(Rule::Sfs2008).unwrap() * last.load;
        let area = of_2014 * (last.load - first.load) + first.load * first.latency_ms / 2.0;
        prop_assert!((by_2008 - area).abs() <= 1e-6 * area.max(1e-6), "{by_2008} {area}");
    }

    #[test]
    fn a_point_on_a_straight_line_changes_nothing(c in any_curve(), share in 0.01f64..0.99) {
        let mut points = c.points().to_vec();
        let mix = |a: f64, b: f64| a + share * (b - a);
        let between = point(
            mix(points[0].load, points[1].load),
            mix(points[0].achieved, points[1].achieved),
            mix(points[0].latency_ms, points[1].latency_ms),
        );
        points.insert(1, between);
        let finer = Curve::new(points).unwrap();
        for rule in RULES {
            let (a, b) = (c.overall_response_time(rule), finer.overall_response_time(rule));
            let (a, b) = (a.unwrap(), b.unwrap());
            prop_assert!((a - b).abs() <= 1e-9 * a.max(1e-6), "{a} {b}");
        }
    }

    #[test]
    fn points_out_of_order_are_refused_and_not_sorted(
        c in any_curve(),
        at in any::<prop::sample::Index>(),
    ) {
        let mut points = c.points().to_vec();
        let at = at.index(points.len() - 1);
        points.swap(at, at + 1);
        let e = Curve::new(points.clone()).unwrap_err();
        let there = matches!(e, CurveError::NotIncreasing { index, .. } if index == at + 1);
        prop_assert!(there, "{e}");
        points[at + 1] = points[at];
        prop_assert!(Curve::new(points).is_err(), "a load twice");
    }

    #[test]
    fn a_knee_is_that_of_the_definition(latencies in prop::collection::vec(0u32..9, 1..9)) {
        let points: Vec<(f64, f64)> =
            (1..).map(f64::from).zip(latencies.into_iter().map(f64::from)).collect();
        let curve = curve(&points);
        let knee = (points.len() >= 4).then(|| curve.turn()).flatten().map(|turn| points[turn.index].0);
        prop_assert_eq!(knee, knee_by_definition(&points), "{:?}", points);
    }

    #[test]
    fn the_knee_knows_no_units(
        c in any_curve(),
        x in 0.01f64..100.0,
        y in 0.01f64..100.0,
        idle_ms in 0.0f64..100.0,
    ) {
        let position = |c: &Curve| {
            let knee = c.knee().ok()?.load;
            c.points().iter().position(|p| p.load == knee)
        };
        let scaled = changed(&c, |p| { p.load *= x; p.latency_ms = p.latency_ms * y + idle_ms; });
        prop_assert_eq!(position(&c), position(&scaled));
    }

    #[test]
    fn any_law_is_found_again(
        lambda in 1e-3f64..1e6,
        sigma in 0.0f64..0.9,
        // The bend is relative to the highest load, so that every law bends within the curve.
        bend in 0.0f64..3.0,
        first in 1.0f64..50.0,
        step in 0.5f64..50.0,
        count in 4usize..15,
    ) {
        let loads: Vec<f64> = (0..count).map(|i| first + step * i as f64).collect();
        let most = loads[count - 1];
        let kappa = bend / (most * most);
        let fit = usl_curve(lambda, sigma, kappa, &loads).least_squares_law();
        // With σ near 1 and no other term, throughput may be constant to the last digit.
        prop_assume!(fit != Err(UslError::Flat));
        let fit = fit.unwrap();
        let around = (most / (most - first)).powi(2) * 1e-7;
        prop_assert!((fit.lambda / lambda - 1.0).abs() < around * most, "{:?}", fit);
        prop_assert!((fit.sigma - sigma).abs() < around * most, "{:?}", fit);
        prop_assert!((fit.kappa - kappa).abs() * most < around * most, "{:?}", fit);
        for n in loads {
            let x = lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
            prop_assert!((fit.throughput(n) / x - 1.0).abs() < 1e-8, "{:?}", fit);
        }
    }

    #[test]
    fn a_fit_is_finite_and_no_worse_than_a_line(c in any_curve()) {
        match c.least_squares_law() {
            Err(UslError::TooFew { have }) => prop_assert!(have < 4),
            Err(e) => prop_assert!(false, "{e}"),
            Ok(fit) => {
                prop_assert!(fit.lambda > 0.0 && fit.lambda.is_finite());
                prop_assert!((0.0..=1.0).contains(&fit.sigma));
                prop_assert!(fit.kappa >= 0.0 && fit.kappa.is_finite());
                let left: f64 = fit.residuals.iter().map(|r| r * r).sum();
                let (mut nx, mut nn) = (0.0, 0.0);
                for p in c.points() {
                    nx += p.load * p.achieved;
                    nn += p.load * p.load;
                }
                let line: f64 = c
                    .points()
                    .iter()
                    .map(|p| (p.achieved - nx / nn * p.load).powi(2))
                    .sum();
                prop_assert!(left <= line * (1.0 + 1e-6) + 1e-9, "{left} {line}");
            }
        }
    }
}
