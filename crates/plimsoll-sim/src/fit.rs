//! Fitting the free figures of a system file to measured or published response times.
//!
//! The sum of the squared differences of the logarithms of the response times is minimised by the
//! method of Nelder and Mead (Computer Journal 7(4), 1965) over the free figures, each on a scale on
//! which its bounds lie at infinity. The same seed is used in every trial, so that trials differ by
//! their figures alone.

use argmin::core::{CostFunction, Executor, State};
use argmin::solver::neldermead::NelderMead;
use plimsoll_plan::parse_duration;
use std::cell::RefCell;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Step of the first simplex on the scale of the logit.
const FIRST_STEP: f64 = 0.5;

/// The standard deviation of the costs of the simplex at which a fit has converged.
const COST_TOLERANCE: f64 = 1e-5;

/// Change of a figure from which its sensitivity is computed.
const SENSITIVITY_STEP: f64 = 0.02;

/// Significant digits of a fitted figure.
const FITTED_DIGITS: i32 = 4;

/// A figure of a system file that may be fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeFigure {
    /// Keys that lead to it, with dots.
    pub path: String,
    /// Its value as it is written.
    pub text: String,
    /// The least value that it may have, as a multiple of the present one.
    pub low: f64,
    /// The greatest, as a multiple of the present one.
    pub high: f64,
    span: Range<usize>,
}

/// The free figures of a system file, in the order of the text.
///
/// The text must be that of a valid system: what cannot be read has no free figures.
#[must_use]
pub fn free_figures(text: &str) -> Vec<FreeFigure> {
    let mut found = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        collect(table.get_ref(), &mut Vec::new(), text, &mut found);
    }
    found.sort_by_key(|figure| figure.span.start);
    found
}

fn collect(table: &DeTable<'_>, path: &mut Vec<String>, text: &str, found: &mut Vec<FreeFigure>) {
    if let (Some(value), Some(free)) = (table.get("value"), table.get("free"))
        && let Some((low, high)) = bounds(value.get_ref(), free.get_ref())
    {
        let span = value.span();
        let text = text[span.clone()].trim_matches('"').to_owned();
        found.push(FreeFigure {
            path: path.join("."),
            text,
            low,
            high,
            span,
        });
        return;
    }
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        if let DeValue::Table(inner) = value.get_ref() {
            collect(inner, path, text, found);
        }
        path.pop();
    }
}

/// The bounds as multiples of the value.
fn bounds(value: &DeValue<'_>, free: &DeValue<'_>) -> Option<(f64, f64)> {
    let DeValue::Array(bounds) = free else {
        return None;
    };
    let texts = [value, bounds.first()?.get_ref(), bounds.get(1)?.get_ref()].map(text_of);
    let quantity = |parse: &dyn Fn(&str) -> Option<f64>| {
        let [value, low, high] = texts.each_ref().map(|t| t.as_deref().and_then(parse));
        Some((low? / value?, high? / value?))
    };
    quantity(&|t| t.parse().ok())
        .or_else(|| quantity(&|t| crate::figures::parse_rate(t).ok()))
        .or_else(|| quantity(&|t| parse_duration(t).ok().map(|d| d.as_secs_f64())))
        .or_else(|| quantity(&|t| crate::figures::fractional_size(t).ok()))
        .filter(|(low, high)| *low > 0.0 && low < high && high.is_finite())
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of a system with its free figures multiplied by `factors`, rounded to four digits. All else,
/// comments too, stays as it is.
///
/// # Panics
/// If there is not one factor for each figure.
#[must_use]
pub fn with_figures(text: &str, figures: &[FreeFigure], factors: &[f64]) -> String {
    assert_eq!(figures.len(), factors.len(), "one factor for each figure");
    let mut out = String::with_capacity(text.len() + 16);
    let mut end = 0;
    for (figure, factor) in figures.iter().zip(factors) {
        out.push_str(&text[end..figure.span.start]);
        let written = scaled(&figure.text, *factor);
        match text[figure.span.clone()].starts_with('"') {
            true => out.push_str(&format!("\"{written}\"")),
            false => out.push_str(&written),
        }
        end = figure.span.end;
    }
    out.push_str(&text[end..]);
    out
}

/// A number with a unit, multiplied.
fn scaled(text: &str, factor: f64) -> String {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number
        .parse()
        .expect("a figure with bounds begins with its number");
    let value = number * factor;
    let places = (FITTED_DIGITS - 1 - value.abs().log10().floor() as i32).max(0) as usize;
    let written = format!("{value:.places$}");
    let written = match written.contains('.') {
        true => written.trim_end_matches('0').trim_end_matches('.'),
        false => &written,
    };
    format!("{written}{unit}")
}

/// What a fit came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The factor of each figure.
    pub factors: Vec<f64>,
    /// Natural logarithm of modelled over measured response time, of each fitted point.
    pub residuals: Vec<f64>,
    /// Change of the logarithm of the response time, root mean square over the points, for a change of
    /// the logarithm of each figure: a figure whose sensitivity is near 0 is not determined by the points.
    pub sensitivity: Vec<f64>,
    /// Trials that were made.
    pub trials: u64,
    /// Whether the method converged before `max_trials`.
    pub converged: bool,
}

/// Why a fit was not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FitError<E> {
    /// No figure has bounds.
    NothingFree,
    /// There are not more points than free figures.
    TooFewPoints {
        /// Points to fit to.
        points: usize,
        /// Free figures.
        free: usize,
    },
    /// A trial could not be made.
    Trial(E),
}

/// The problem that the solver minimises.
struct Problem<'a, F, E> {
    figures: &'a [FreeFigure],
    residuals: &'a RefCell<F>,
    failed: &'a RefCell<Option<(E, f64)>>,
}

impl<F, E> Problem<'_, F, E> {
    /// A figure's factor at a place of the unbounded scale.
    fn factors(&self, at: &[f64]) -> Vec<f64> {
        let factors = self.figures.iter().zip(at).map(|(figure, x)| {
            let share = 1.0 / (1.0 + (-x).exp());
            (figure.low.ln() + share * (figure.high / figure.low).ln()).exp()
        });
        factors.collect()
    }

    /// The place of the present values.
    fn begin(&self) -> Vec<f64> {
        let places = self.figures.iter().map(|figure| {
            // A value at a bound lies at infinity: a little inside, it can move.
            let share = (-figure.low.ln() / (figure.high / figure.low).ln()).clamp(0.02, 0.98);
            (share / (1.0 - share)).ln()
        });
        places.collect()
    }
}

impl<F, E> CostFunction for Problem<'_, F, E>
where
    F: FnMut(&[f64]) -> Result<Vec<f64>, E>,
{
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> Result<f64, argmin::core::Error> {
        // The solver panics when one of its first costs is an error: after a failure costs only rise.
        if let Some((_, failures)) = &mut *self.failed.borrow_mut() {
            *failures += 1.0;
            return Ok(f64::MAX.sqrt() + *failures);
        }
        match (self.residuals.borrow_mut())(&self.factors(at)) {
            Ok(residuals) => Ok(residuals.iter().map(|r| r * r).sum()),
            Err(e) => {
                *self.failed.borrow_mut() = Some((e, 0.0));
                Ok(f64::MAX.sqrt())
            }
        }
    }
}

/// Fits `figures`: `residuals` runs the system with a factor for each figure, and returns the natural
/// logarithm of modelled over measured response time at each of `points` points.
///
/// # Errors
/// See [`FitError`].
pub fn fit<E>(
    figures: &[FreeFigure],
    points: usize,
    max_trials: u64,
    residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Fitted, FitError<E>> {
    if figures.is_empty() {
        return Err(FitError::NothingFree);
    }
    if points <= figures.len() {
        return Err(FitError::TooFewPoints {
            points,
            free: figures.len(),
        });
    }
    let trials = RefCell::new(0u64);
    let mut residuals = residuals;
    let counted = RefCell::new(|factors: &[f64]| {
        *trials.borrow_mut() += 1;
        residuals(factors)
    });
    let failed = RefCell::new(None);
    let problem = Problem {
        figures,
        residuals: &counted,
        failed: &failed,
    };
    let begin = problem.begin();
    let simplex = (0..=begin.len()).map(|i| {
        let mut corner = begin.clone();
        if i > 0 {
            corner[i - 1] += FIRST_STEP;
        }
        corner
    });
    let solver = NelderMead::new(simplex.collect())
        .with_sd_tolerance(COST_TOLERANCE)
        .expect("the tolerance is above 0");
    let map = Problem::<(), ()> {
        figures,
        residuals: &RefCell::new(()),
        failed: &RefCell::new(None),
    };
    let outcome = Executor::new(problem, solver)
        .configure(|s| s.max_iters(max_trials))
        .run();
    if let Some((e, _)) = failed.take() {
        return Err(FitError::Trial(e));
    }
    let outcome = outcome.unwrap_or_else(|e| panic!("the solver failed by itself: {e}"));
    let best = outcome
        .state()
        .get_best_param()
        .expect("the solver made trials")
        .clone();
    let factors = map.factors(&best);
    let at_best = counted.borrow_mut()(&factors).map_err(FitError::Trial)?;
    let mut sensitivity = Vec::new();
    for i in 0..factors.len() {
        let mut moved = factors.clone();
        moved[i] *= 1.0 + SENSITIVITY_STEP;
        let there = counted.borrow_mut()(&moved).map_err(FitError::Trial)?;
        let squares = there
            .iter()
            .zip(&at_best)
            .map(|(a, b)| ((a - b) / (1.0 + SENSITIVITY_STEP).ln()).powi(2));
        sensitivity.push((squares.sum::<f64>() / points as f64).sqrt());
    }
    let converged = matches!(
        outcome.state().get_termination_reason(),
        Some(argmin::core::TerminationReason::SolverConverged)
    );
    let trials = *trials.borrow();
    Ok(Fitted {
        factors,
        residuals: at_best,
        sensitivity,
        trials,
        converged,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"title = "x"
[station.disk]
service = { value = "2ms", source = "A", free = ["500us", "8ms"] } # a comment
bandwidth = { value = "100 MB/s", free = ["50 MB/s", "1 GB/s"], source = "A" }
squared_cv = { value = 4, free = [1, 16] }
[station.cpu]
service = { value = "1ms", source = "P" }
"#;

    #[test]
    fn figures_with_bounds_are_free() {
        let figures = free_figures(TEXT);
        let found: Vec<_> = figures
            .iter()
            .map(|f| (f.path.as_str(), f.text.as_str(), f.low, f.high))
            .collect();
        assert_eq!(
            found,
            [
                ("station.disk.service", "2ms", 0.25, 4.0),
                ("station.disk.bandwidth", "100 MB/s", 0.5, 10.0),
                ("station.disk.squared_cv", "4", 0.25, 4.0),
            ]
        );
    }

    #[test]
    fn fitted_figures_take_the_place_of_the_old_ones() {
        let figures = free_figures(TEXT);
        let text = with_figures(TEXT, &figures, &[0.61803, 3.0, 1.23456789]);
        assert!(text.contains(r#"service = { value = "1.236ms", source = "A", free = ["500us", "8ms"] } # a comment"#), "{text}");
        assert!(text.contains(r#"value = "300 MB/s""#), "{text}");
        assert!(
            text.contains("squared_cv = { value = 4.938, free"),
            "{text}"
        );
        assert_eq!(with_figures(TEXT, &figures, &[1.0; 3]), TEXT);
    }

    #[test]
    fn known_figures_are_found_again() {
        let figures = free_figures(TEXT);
        let model = |f: &[f64], x: f64| 2.0 * f[0] + x / f[1] + x * x * f[2] / 50.0;
        let truth = [0.7, 2.5, 1.8];
        let points: Vec<f64> = (1..=8).map(f64::from).collect();
        let residuals = |factors: &[f64]| {
            let ratios = points
                .iter()
                .map(|x| (model(factors, *x) / model(&truth, *x)).ln());
            Ok::<Vec<f64>, ()>(ratios.collect())
        };
        let fitted = fit(&figures, points.len(), 2000, residuals).unwrap();
        assert!(fitted.converged);
        for (found, truth) in fitted.factors.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 0.05, "{fitted:?}");
        }
        assert!(
            fitted.residuals.iter().all(|r| r.abs() < 0.01),
            "{fitted:?}"
        );
        assert!(fitted.sensitivity.iter().all(|s| *s > 0.01), "{fitted:?}");
    }

    #[test]
    fn a_fit_needs_more_points_than_free_figures() {
        let figures = free_figures(TEXT);
        let never = |_: &[f64]| -> Result<Vec<f64>, ()> { unreachable!("no trial is made") };
        assert_eq!(
            fit(&figures, 3, 10, never),
            Err(FitError::TooFewPoints { points: 3, free: 3 })
        );
        assert_eq!(fit(&[], 3, 10, never), Err(FitError::NothingFree));
        let fails = fit(&figures, 9, 10, |_| Err("no"));
        assert_eq!(fails, Err(FitError::Trial("no")));
    }
}
