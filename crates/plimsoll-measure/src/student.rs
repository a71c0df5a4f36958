//! Student's t distribution with a whole number of degrees of freedom.

/// Probability that the absolute value of Student's t with `freedom` degrees of freedom, at least 1, exceeds `t`, which
/// is at least 0.
///
/// The finite series of M. Abramowitz, I. A. Stegun: Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.
pub(crate) fn tail(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    // Factors of the terms: 2/3 · 4/5 · 6/7 … for an odd number, 1/2 · 3/4 · 5/6 … for an even number.
    let (mut term, mut k) = match is_odd {
        true => (cos, 2),
        false => (1.0, 1),
    };
    let mut sum = 0.0;
    let terms = freedom / 2;
    for _ in 0..terms {
        sum += term;
        term *= cos * cos * f64::from(k) / f64::from(k + 1);
        k += 2;
    }
    let inside = match is_odd {
        true => std::f64::consts::FRAC_2_PI * (angle + sin * sum),
        false => sin * sum,
    };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// Quantile of Student's t: the value that t with `freedom` degrees of freedom, at least 1, does not exceed with the
/// probability `probability`, from 0.5 to below 1.
pub(crate) fn quantile(probability: f64, freedom: u32) -> f64 {
    let outside = 2.0 * (1.0 - probability);
    let mut high = 1.0;
    while tail(high, freedom) > outside {
        high *= 2.0;
    }
    let mut low = 0.0;
    loop {
        let middle = f64::midpoint(low, high);
        // The bounds are neighbours among the floating-point numbers.
        if middle <= low || middle >= high {
            return high;
        }
        match tail(middle, freedom) > outside {
            true => low = middle,
            false => high = middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two-sided tail by numeric integration of the density, whose constant follows from the recurrence of the gamma
    /// function.
    fn integrated(t: f64, freedom: u32) -> f64 {
        let n = f64::from(freedom);
        let density = |x: f64| (1.0 + x * x / n).powf(-(n + 1.0) / 2.0);
        let simpson = |from: f64, to: f64| {
            let steps = 20_000;
            let h = (to - from) / f64::from(steps);
            let inner: f64 = (1..steps)
                .map(|i| density(from + f64::from(i) * h) * if i % 2 == 1 { 4.0 } else { 2.0 })
                .sum();
            (density(from) + inner + density(to)) * h / 3.0
        };
        // Γ((n+1)/2) / Γ(n/2) · 1/√(nπ), from Γ(1/2) = √π and Γ(1) = 1.
        let pi = std::f64::consts::PI;
        let ratio = (1..freedom).fold(1.0 / pi.sqrt(), |r, k| f64::from(k) / 2.0 / r);
        1.0 - 2.0 * simpson(0.0, t) * ratio / (n * pi).sqrt()
    }

    #[test]
    fn the_series_is_the_integral_of_the_density() {
        for freedom in [1, 2, 3, 4, 7, 8, 30, 99] {
            for t in [0.1, 1.0, 2.5, 6.0] {
                let (series, integral) = (tail(t, freedom), integrated(t, freedom));
                assert!(
                    (series - integral).abs() < 1e-9,
                    "{t} {freedom}: {series} {integral}"
                );
            }
        }
        assert_eq!(tail(0.0, 5), 1.0);
        assert!(tail(f64::INFINITY, 5) < 1e-12 && tail(f64::INFINITY, 4) < 1e-12);
    }

    /// Quantiles of Student's t distribution from the table that textbooks print.
    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (probability, freedom, expected) in [
            (0.8, 1, 1.3764),
            (0.8, 7, 0.8960),
            (0.95, 10, 1.8125),
            (0.975, 1, 12.7062),
            (0.975, 2, 4.3027),
            (0.975, 3, 3.1824),
            (0.975, 7, 2.3646),
            (0.975, 10, 2.2281),
            (0.975, 29, 2.0452),
            (0.975, 30, 2.0423),
            (0.975, 100, 1.9840),
            (0.995, 1, 63.6567),
            (0.995, 2, 9.9248),
            (0.995, 3, 5.8409),
            (0.995, 10, 3.1693),
            (0.995, 29, 2.7564),
            (0.995, 100, 2.6259),
        ] {
            let found = quantile(probability, freedom);
            assert!((found - expected).abs() < 1e-4, "{freedom}: {found}");
        }
        assert!((quantile(0.975, 100_000) - 1.959_96).abs() < 1e-3);
    }
}
