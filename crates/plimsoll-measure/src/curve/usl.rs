//! The Universal Scalability Law, fitted to a curve.
//!
//! The law (Gunther, "Guerrilla Capacity Planning", 2007) says that N units of load achieve
//! X(N) = λN / (1 + σ(N−1) + κN(N−1)): λ is the throughput of the first unit, σ the fraction of the
//! work that is serialised (contention), κ the cost of each pair of units that has to agree
//! (coherency).
//!
//! With d(N) = N/X(N) the law is a parabola, d = a + bN + cN², where a = (1−σ)/λ, b = (σ−κ)/λ, c = κ/λ. Linear least
//! squares for d would overweight slow points, so the linear fit is only the first guess; the method of Levenberg and
//! Marquardt then minimises the squared differences in throughput. Load and throughput are scaled by their maxima,
//! which makes the fit independent of units.
//!
//! Every fit has λ > 0, 0 ≤ σ ≤ 1 and κ ≥ 0. If the best parabola violates a bound, the parameter is set to the bound
//! and the other parameters are fitted again; the fit with the smallest sum of squares wins.

use super::Curve;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Minimum number of points for a fit: the number of parameters plus one.
const MIN_POINTS: usize = 4;

/// Minimum number of points that achieve less than in proportion to load, by at least [`MIN_SHORTFALL`].
const MIN_POINTS_BENT: usize = 2;

/// Fraction of λN by which the law must fall short of λN at a point beyond the bend. Nearer to the straight line, the
/// coefficients of the law describe the line, whatever the coefficient of determination.
const MIN_SHORTFALL: f64 = 0.05;

/// Maximum probability that points of a straight line, with normally distributed errors, fit the law as well as the
/// measured points do.
const MAX_CHANCE: f64 = 0.01;

/// Maximum number of iterations; a handful suffices after the first guess.
const MAX_FIT_STEPS: usize = 200;

/// Rounding error, in scaled units, below which a parameter counts as zero.
const ROUNDING: f64 = 1e-12;

/// Maximum number of parameters of a fit.
const MAX_FIT_PARAMETERS: usize = 3;

type Vector = [f64; MAX_FIT_PARAMETERS];
type Matrix = [Vector; MAX_FIT_PARAMETERS];

/// A Universal Scalability Law fitted to the points of a load curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UslFit {
    /// λ: operations per second that one unit of load achieves; more than 0.
    pub lambda: f64,
    /// σ, contention: the fraction of the work that is serialised, 0 to 1.
    pub sigma: f64,
    /// κ, coherency: the cost of each pair of units of load, at least 0.
    pub kappa: f64,
    /// Residuals: the measured throughput minus the throughput of the law at each point, in operations per second.
    pub residuals: Vec<f64>,
    /// Coefficient of determination: the fraction of the variance of throughput that the law explains, at most 1.
    pub r_squared: f64,
}

impl UslFit {
    /// Throughput of the law at a load, in operations per second.
    #[must_use]
    pub fn throughput(&self, load: f64) -> f64 {
        let pairs = load * (load - 1.0);
        self.lambda * load / (1.0 + self.sigma * (load - 1.0) + self.kappa * pairs)
    }

    /// The largest difference between law and measurement at a point of the `curve` of the fit, as a fraction of the
    /// measured throughput.
    #[must_use]
    pub fn max_deviation(&self, curve: &Curve) -> f64 {
        let points = curve.points().iter();
        let deviations = points.map(|p| (self.throughput(p.load) / p.achieved - 1.0).abs());
        deviations.fold(0.0, f64::max)
    }

    /// The load of the law's maximum throughput, √((1−σ)/κ); `None` if κ is 0 and throughput grows
    /// without limit.
    #[must_use]
    pub fn peak_load(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma) / self.kappa).sqrt())
    }
}

/// Reason why a curve has no fit, or why the points do not determine the coefficients of the fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum UslError {
    /// Fewer than four points cannot determine three parameters.
    TooFew {
        /// Number of load points of the curve, which is less than four.
        have: usize,
    },
    /// A point has no throughput, which the law excludes.
    NothingAchieved {
        /// Load of the point without throughput.
        load: f64,
    },
    /// Throughput is constant: there is nothing to fit.
    Flat,
    /// The iteration did not converge to valid parameters.
    NoFit,
    /// Throughput is in proportion to load at too many points.
    TooFewBent {
        /// Number of load points whose throughput is less than in proportion to load, which is less than two.
        have: usize,
    },
    /// Throughput differs from a straight line by an amount that errors of the points can cause.
    WithinErrors {
        /// Probability that errors of the points make a straight line appear as bent.
        chance: f64,
    },
}

impl fmt::Display for UslError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { have } => {
                write!(f, "{MIN_POINTS} load points are needed, there are {have}")
            }
            Self::NothingAchieved { load } => write!(f, "nothing was achieved at load {load}"),
            Self::Flat => f.write_str("throughput is the same at every load"),
            Self::NoFit => f.write_str("no parameters of the law fit these points"),
            Self::TooFewBent { have } => write!(
                f,
                "{MIN_POINTS_BENT} load points are needed whose throughput is at least {} % less than in proportion \
                 to load, there {} {have}",
                100.0 * MIN_SHORTFALL,
                if *have == 1 { "is" } else { "are" }
            ),
            Self::WithinErrors { chance } => write!(
                f,
                "deviations of the load points from the law make a straight line appear as bent with a probability of \
                 {:.0} %, and at most {} % are allowed",
                100.0 * chance,
                100.0 * MAX_CHANCE
            ),
        }
    }
}

impl std::error::Error for UslError {}

impl Curve {
    /// Fits the Universal Scalability Law to throughput over load, by least squares over all points, where the points
    /// determine its coefficients. All numbers of a fit are finite.
    ///
    /// Of a straight line, a law fits any part: at least two points must fall short of λN. Scatter bends a line too: by
    /// the F test with the two coefficients that the law adds to a line from the origin, the sum of squares that the
    /// law leaves must be too small for chance.
    ///
    /// # Errors
    /// [`UslError`] if the curve has too few points, no throughput at a point or constant throughput, if the
    /// iteration does not converge, or if the curve is not bent, or is bent within the errors of the points.
    pub fn fit_usl(&self) -> Result<UslFit, UslError> {
        let fit = self.least_squares_law()?;
        let points = self.points();
        let is_bent = |load| fit.throughput(load) <= (1.0 - MIN_SHORTFALL) * fit.lambda * load;
        let have = points.iter().filter(|p| is_bent(p.load)).count();
        if have < MIN_POINTS_BENT {
            return Err(UslError::TooFewBent { have });
        }
        let chance = self.chance_of_bend(&fit);
        if chance > MAX_CHANCE {
            return Err(UslError::WithinErrors { chance });
        }
        Ok(fit)
    }

    /// Probability that points of a straight line from the origin leave a law as small a sum of squares, relative to
    /// the sum that the line leaves: the F test with 2 and n − 3 degrees of freedom, whose upper tail is the ratio of
    /// the two sums to the power (n − 3)/2.
    fn chance_of_bend(&self, fit: &UslFit) -> f64 {
        let points = self.points();
        let sum = |of: &dyn Fn(&super::Point) -> f64| points.iter().map(of).sum::<f64>();
        let slope = sum(&|p| p.load * p.achieved) / sum(&|p| p.load * p.load);
        let line = sum(&|p| (p.achieved - slope * p.load).powi(2));
        let law: f64 = fit.residuals.iter().map(|r| r * r).sum();
        (law / line).powf((points.len() - MAX_FIT_PARAMETERS) as f64 / 2.0)
    }

    /// The law with the smallest sum of squares over all points.
    pub(super) fn least_squares_law(&self) -> Result<UslFit, UslError> {
        let data = Scaled::of(self)?;
        let n1 = 1.0 / data.max_load;
        // Coefficients of 1, n and n² in each term of d(n), by family.
        let (one, n, n_squared) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
        let families: [&[Vector]; 6] = [
            &[one, n, n_squared],
            &[one, n],
            &[one, [0.0, -n1, 1.0]],
            &[one],
            // The last two families have σ = 1, so that d(n) has no constant term: a second unit of load adds no
            // throughput.
            &[n, n_squared],
            &[n],
        ];
        families
            .iter()
            .filter_map(|family| {
                let (q, squares) = data.fit(family)?;
                Some((Denominator::of(family, &q).law(n1)?, squares))
            })
            // Of two equally good fits, the fit with more free parameters comes first.
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .and_then(|(law, _)| data.finish(law, self))
            .ok_or(UslError::NoFit)
    }
}

/// Parameters of the law: contention σ, coherency κ, and λ in scaled units of throughput.
struct UslParameters {
    lambda: f64,
    sigma: f64,
    kappa: f64,
}

/// d(n) = a + bn + cn² in scaled units.
struct Denominator(f64, f64, f64);

impl Denominator {
    fn of(family: &[Vector], q: &Vector) -> Self {
        let sum = |i: usize| family.iter().zip(q).map(|(term, q)| q * term[i]).sum();
        Self(sum(0), sum(1), sum(2))
    }

    /// Parameters of the law, if within their ranges; `n1` is one unit of load in scaled units.
    fn law(&self, n1: f64) -> Option<UslParameters> {
        // Signs are judged in scaled units, where all terms have comparable size.
        let Self(a, b, c) = *self;
        let near_zero = ROUNDING * (a.abs() + b.abs() + c.abs());
        let clean = |v: f64| if v.abs() <= near_zero { 0.0 } else { v };
        // With N = n/n1: d = a + (b·n1)N + (c·n1²)N², and b·n1 + c·n1² is σ over λ.
        let (a, contention) = (clean(a), clean(b + c * n1) * n1);
        let c = clean(c) * n1 * n1;
        let inverse = a + contention;
        if a < 0.0 || contention < 0.0 || c < 0.0 || inverse <= 0.0 {
            return None;
        }
        let law = UslParameters {
            lambda: 1.0 / inverse,
            sigma: contention / inverse,
            kappa: c / inverse,
        };
        let finite = law.lambda.is_finite() && law.sigma.is_finite() && law.kappa.is_finite();
        finite.then_some(law)
    }
}

/// Points of a curve, with load and throughput as fractions of the maximum load and the maximum throughput.
struct Scaled {
    /// Scaled load n and scaled throughput x of each point, above 0 and at most 1.
    points: Vec<(f64, f64)>,
    max_load: f64,
    max_throughput: f64,
}

impl Scaled {
    fn of(curve: &Curve) -> Result<Self, UslError> {
        let points = curve.points();
        if points.len() < MIN_POINTS {
            return Err(UslError::TooFew { have: points.len() });
        }
        if let Some(idle) = points.iter().find(|p| p.achieved <= 0.0) {
            return Err(UslError::NothingAchieved { load: idle.load });
        }
        let max = |of: fn(&super::Point) -> f64| points.iter().map(of).fold(0.0, f64::max);
        let (max_load, max_throughput) = (max(|p| p.load), max(|p| p.achieved));
        if points.iter().all(|p| p.achieved == max_throughput) {
            return Err(UslError::Flat);
        }
        let scale = |p: &super::Point| (p.load / max_load, p.achieved / max_throughput);
        Ok(Self {
            points: points.iter().map(scale).collect(),
            max_load,
            max_throughput,
        })
    }

    /// Best coefficients of the family's terms, and the remaining sum of squares.
    fn fit(&self, family: &[Vector]) -> Option<(Vector, f64)> {
        let mut q = self.first_guess(family)?;
        let mut squares = self.squares(family, &q)?;
        let mut damping = 1e-3;
        for _ in 0..MAX_FIT_STEPS {
            let (normal, gradient) = self.normal_equations(family, &q);
            let mut damped = normal;
            for (i, row) in damped.iter_mut().enumerate().take(family.len()) {
                row[i] += damping * normal[i][i];
            }
            let step = solve(damped, gradient, family.len())?;
            let mut next = q;
            for (value, change) in next.iter_mut().zip(step) {
                *value += change;
            }
            match self.squares(family, &next) {
                Some(better) if better < squares => {
                    let gain = squares - better;
                    (q, squares) = (next, better);
                    damping = (damping / 10.0).max(1e-12);
                    if gain <= f64::EPSILON * squares {
                        break;
                    }
                }
                _ if damping > 1e12 => break,
                _ => damping *= 10.0,
            }
        }
        Some((q, squares))
    }

    /// Linear least squares of n/x, weighted to make the errors equal to the errors of x in first order.
    fn first_guess(&self, family: &[Vector]) -> Option<Vector> {
        let (mut normal, mut right) = (Matrix::default(), Vector::default());
        for (n, x) in &self.points {
            let weight = (x * x / n).powi(2);
            let terms = terms(family, *n);
            for i in 0..family.len() {
                right[i] += weight * terms[i] * n / x;
                for j in 0..family.len() {
                    normal[i][j] += weight * terms[i] * terms[j];
                }
            }
        }
        solve(normal, right, family.len())
    }

    fn denominator(family: &[Vector], q: &Vector, n: f64) -> f64 {
        let terms = terms(family, n);
        terms.iter().zip(q).map(|(t, q)| t * q).sum()
    }

    /// Sum of the squared differences in throughput; `None` if the law is undefined at a point.
    fn squares(&self, family: &[Vector], q: &Vector) -> Option<f64> {
        let mut sum = 0.0;
        for (n, x) in &self.points {
            let d = Self::denominator(family, q, *n);
            if d <= 0.0 || !d.is_finite() {
                return None;
            }
            sum += (x - n / d).powi(2);
        }
        sum.is_finite().then_some(sum)
    }

    /// JᵀJ and Jᵀr of the differences in throughput.
    fn normal_equations(&self, family: &[Vector], q: &Vector) -> (Matrix, Vector) {
        let (mut normal, mut gradient) = (Matrix::default(), Vector::default());
        for (n, x) in &self.points {
            let d = Self::denominator(family, q, *n);
            let slope = -n / (d * d);
            let terms = terms(family, *n);
            for i in 0..family.len() {
                gradient[i] += slope * terms[i] * (x - n / d);
                for j in 0..family.len() {
                    normal[i][j] += slope * slope * terms[i] * terms[j];
                }
            }
        }
        (normal, gradient)
    }

    /// Converts the fit to the units of the curve.
    fn finish(&self, law: UslParameters, curve: &Curve) -> Option<UslFit> {
        let mut fit = UslFit {
            // n = N·n1 and x = X/max, so n/x must be multiplied by max_load/max_throughput.
            lambda: law.lambda * self.max_throughput / self.max_load,
            sigma: law.sigma,
            kappa: law.kappa,
            residuals: vec![],
            r_squared: 0.0,
        };
        let points = curve.points();
        let residual = |p: &super::Point| p.achieved - fit.throughput(p.load);
        fit.residuals = points.iter().map(residual).collect();
        let mean = points.iter().map(|p| p.achieved).sum::<f64>() / points.len() as f64;
        let spread: f64 = points.iter().map(|p| (p.achieved - mean).powi(2)).sum();
        let left: f64 = fit.residuals.iter().map(|r| r * r).sum();
        fit.r_squared = 1.0 - left / spread;
        (fit.lambda.is_finite() && fit.r_squared.is_finite()).then_some(fit)
    }
}

/// Values of the family's terms at a scaled load.
fn terms(family: &[Vector], n: f64) -> Vector {
    let mut values = Vector::default();
    for (value, [a, b, c]) in values.iter_mut().zip(family) {
        *value = a + n * (b + c * n);
    }
    values
}

/// Solves the first `size` equations by Gaussian elimination with pivoting; `None` if singular.
fn solve(mut a: Matrix, mut b: Vector, size: usize) -> Option<Vector> {
    for column in 0..size {
        let pivot = (column..size).max_by(|i, j| {
            let (i, j) = (a[*i][column].abs(), a[*j][column].abs());
            i.total_cmp(&j)
        })?;
        a.swap(column, pivot);
        b.swap(column, pivot);
        if a[column][column] == 0.0 || !a[column][column].is_finite() {
            return None;
        }
        for row in column + 1..size {
            let factor = a[row][column] / a[column][column];
            let above = a[column];
            for (value, above) in a[row].iter_mut().zip(above).take(size) {
                *value -= factor * above;
            }
            b[row] -= factor * b[column];
        }
    }
    let mut x = Vector::default();
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|j| a[row][j] * x[j]).sum();
        x[row] = (b[row] - known) / a[row][row];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved_whatever_their_order() {
        // The equations x + 2y + 3z = 14, 2x + y − z = 1 and −x + 4y + 2z = 13 have the solution 1, 2, 3.
        let (a, b) = (
            [[1.0, 2.0, 3.0], [2.0, 1.0, -1.0], [-1.0, 4.0, 2.0]],
            [14.0, 1.0, 13.0],
        );
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
            let solved = solve(order.map(|i| a[i]), order.map(|i| b[i]), 3).unwrap();
            for (value, expected) in solved.into_iter().zip([1.0, 2.0, 3.0]) {
                assert!((value - expected).abs() < 1e-12, "{solved:?}");
            }
        }
        // The first pivot is zero, and only two of the three equations are solved.
        let some = solve(
            [[0.0, 4.0, 9.0], [2.0, 6.0, 9.0], [9.0; 3]],
            [8.0, 18.0, 9.0],
            2,
        );
        assert_eq!(some.unwrap()[..2], [3.0, 2.0]);
    }

    #[test]
    fn equations_without_a_solution_have_none() {
        let of = |first: f64| solve([[first, 2.0, 0.0], [1.0, 2.0, 0.0], [0.0; 3]], [1.0; 3], 2);
        assert_eq!(of(1.0), None, "the same twice");
        assert_eq!(of(f64::INFINITY), None);
        assert_eq!(of(f64::NAN), None);
        assert!(of(3.0).is_some());
    }

    const ALL: [Vector; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

    /// Points that no law fits exactly.
    fn data() -> Scaled {
        Scaled {
            points: vec![(0.25, 0.4), (0.5, 0.9), (0.75, 1.0), (1.0, 0.8)],
            max_load: 40.0,
            max_throughput: 2000.0,
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + b.abs())
    }

    #[test]
    fn terms_are_values_of_parabolas() {
        let family = [[1.0, 2.0, 3.0], [0.0, -0.5, 1.5]];
        assert_eq!(terms(&family, 2.0), [17.0, 5.0, 0.0]);
        let Denominator(a, b, c) = Denominator::of(&family, &[2.0, 10.0, 99.0]);
        assert_eq!((a, b, c), (2.0, -1.0, 21.0));
        assert_eq!(Scaled::denominator(&family, &[2.0, 10.0, 99.0], 2.0), 84.0);
    }

    #[test]
    fn the_parameters_of_a_law_are_found_in_its_denominator() {
        let (lambda, sigma, kappa, n1) = (100.0, 0.1, 0.01, 1.0 / 32.0);
        let (a, b, c) = (
            (1.0 - sigma) / lambda,
            (sigma - kappa) / lambda,
            kappa / lambda,
        );
        let law = Denominator(a, b / n1, c / (n1 * n1)).law(n1).unwrap();
        assert!(near(law.lambda, lambda) && near(law.sigma, sigma) && near(law.kappa, kappa));
    }

    #[test]
    fn parameters_out_of_their_ranges_are_no_law() {
        let law = |a, b, c| {
            Denominator(a, b, c)
                .law(0.5)
                .map(|l| (l.lambda, l.sigma, l.kappa))
        };
        assert_eq!(law(0.5, 0.5, 1.0), Some((1.0, 0.5, 0.25)));
        assert_eq!(law(-0.1, 1.0, 1.0), None);
        assert_eq!(law(1.0, -0.1, 0.0), None);
        assert_eq!(law(1.0, 1.0, -0.1), None);
        assert_eq!(law(0.0, 0.0, 1.0), Some((4.0, 1.0, 1.0)));
        assert_eq!(law(0.0, 0.0, 0.0), None);
        assert_eq!(law(1e-310, 0.0, 0.0), None, "no finite throughput");
        // The rounding error of a zero depends on the size of all three coefficients.
        assert_eq!(law(-1.5e-12, 1.0, 1.0), Some((4.0 / 3.0, 1.0, 1.0 / 3.0)));
        assert_eq!(law(-2.5e-12, 1.0, 1.0), None);
        assert_eq!(law(1.0, 1.0, -1.5e-12).map(|l| l.2), Some(0.0));
        assert_eq!(law(1.0, -0.5 - 1e-12, 1.0).map(|l| l.1), Some(0.0));
    }

    #[test]
    fn the_first_guess_has_the_least_weighted_squares() {
        let family = &ALL[..2];
        let guess = data().first_guess(family).unwrap();
        assert_eq!(guess[2], 0.0);
        // At the optimum, the squares of n/x, each weighted by (x²/n)², are stationary in all parameters.
        let slope = |of: fn(f64) -> f64| -> f64 {
            let points = data().points.into_iter();
            points
                .map(|(n, x)| {
                    let weight = x.powi(4) / (n * n);
                    weight * of(n) * (n / x - guess[0] - guess[1] * n)
                })
                .sum()
        };
        assert!(
            near(slope(|_| 1.0), 0.0) && near(slope(|n| n), 0.0),
            "{guess:?}"
        );
    }

    #[test]
    fn squares_are_those_of_the_differences_in_throughput() {
        let data = data();
        let squares = |q: Vector| data.squares(&ALL, &q);
        // The denominators are 0.75, 1, 1.25 and 1.5.
        let differences = [0.4 - 1.0 / 3.0, 0.4, 0.4, 0.8 - 2.0 / 3.0];
        let expected: f64 = differences.iter().map(|d| d * d).sum();
        assert!(near(squares([0.5, 1.0, 0.0]).unwrap(), expected));
        for q in [
            [0.0; 3],
            [-1.0, 0.0, 0.0],
            [1.0, -2.0, 0.0],
            [f64::INFINITY, 0.0, 0.0],
            [f64::NAN, 0.0, 0.0],
        ] {
            assert_eq!(squares(q), None, "{q:?}");
        }
    }

    #[test]
    fn normal_equations_are_those_of_the_derivatives() {
        let (data, q) = (data(), [0.5, 0.3, 0.4]);
        let families: [&[Vector]; 2] = [&ALL, &[ALL[0], [0.0, -0.1, 1.0]]];
        for family in families {
            let throughput = |q: &Vector, n: f64| n / Scaled::denominator(family, q, n);
            let derivative = |i: usize, n: f64| {
                let (mut more, mut less) = (q, q);
                more[i] += 1e-5;
                less[i] -= 1e-5;
                (throughput(&more, n) - throughput(&less, n)) / 2e-5
            };
            let (mut normal, mut gradient) = (Matrix::default(), Vector::default());
            for (n, x) in &data.points {
                let mut slopes = Vector::default();
                (0..family.len()).for_each(|i| slopes[i] = derivative(i, *n));
                let difference = x - throughput(&q, *n);
                for ((row, sum), slope) in normal.iter_mut().zip(&mut gradient).zip(slopes) {
                    *sum += slope * difference;
                    row.iter_mut()
                        .zip(slopes)
                        .for_each(|(sum, other)| *sum += slope * other);
                }
            }
            let (got_normal, got_gradient) = data.normal_equations(family, &q);
            let got = got_normal.concat().into_iter().chain(got_gradient);
            for (got, expected) in got.zip(normal.concat().into_iter().chain(gradient)) {
                assert!((got - expected).abs() < 1e-6, "{got} {expected}");
            }
        }
    }

    #[test]
    fn at_the_best_fit_no_parameter_makes_the_squares_less() {
        let data = data();
        for size in 1..=3 {
            let (q, squares) = data.fit(&ALL[..size]).unwrap();
            assert_eq!(data.squares(&ALL[..size], &q), Some(squares));
            let (_, gradient) = data.normal_equations(&ALL[..size], &q);
            assert!(
                gradient.iter().all(|g| g.abs() < 1e-6),
                "{size}: {gradient:?}"
            );
        }
    }
}
