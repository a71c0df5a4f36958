//! Fitting the free figures of a system file to measured or published response times.
//!
//! The sum of squared differences between the logarithms of modelled and measured response times is minimised by the
//! method of Nelder and Mead (Computer Journal 7(4), 1965). The variables are the free figures, each on a scale with
//! its bounds at infinity. Every trial uses the same seed, so that trials differ only in their figures.

use crate::figures::{fractional_size, parse_rate};
use argmin::core::{CostFunction, Executor, State};
use argmin::solver::neldermead::NelderMead;
use plimsoll_plan::parse_duration;
use std::cell::RefCell;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Edge length of the first simplex, on the logit scale.
const FIRST_STEP: f64 = 0.5;

/// Standard deviation of the simplex costs below which a fit has converged.
const COST_TOLERANCE: f64 = 1e-5;

/// Relative change of a figure, up and down, for its sensitivity.
pub const SENSITIVITY_STEP: f64 = 0.1;

/// Cost of refused trials: far above the cost of any real trial.
const NOT_MADE: f64 = 1e100;

/// Distance to a bound, as a fraction of the bound, below which a fitted figure counts as at the bound.
const BOUND_TOLERANCE: f64 = 0.002;

/// Number of significant digits to which a fitted figure is rounded in the system file.
const FITTED_DIGITS: i32 = 4;

/// Maximum number of precisions for a figure, each with one digit more than the last, before a figure whose rounded
/// value violates a bound is set to the bound.
const MORE_DIGITS: i32 = 8;

/// A figure of a system file with bounds for fitting.
#[derive(Debug, Clone, PartialEq)]
pub struct FreeFigure {
    /// Place of the figure in the system file as a TOML path with dots, such as `station.disk.service`.
    pub path: String,
    /// Value of the figure as the system file writes the value.
    pub text: String,
    /// Lower bound of the figure as a multiple of the value in the system file.
    pub low: f64,
    /// Upper bound of the figure as a multiple of the value in the system file.
    pub high: f64,
    /// Lower and upper bound of the figure as the system file writes the bounds.
    pub bounds: (String, String),
    /// Whether the value of the figure is a TOML string instead of a number.
    is_text: bool,
    /// Whether the figure has no key `source`, which states the provenance.
    is_unmarked: bool,
    span: Range<usize>,
}

impl FreeFigure {
    /// Whether the factor moves the figure to a bound.
    #[must_use]
    pub fn is_at_bound(&self, factor: f64) -> bool {
        [self.low, self.high]
            .iter()
            .any(|bound| (factor / bound - 1.0).abs() < BOUND_TOLERANCE)
    }

    /// Value times `factor` in the notation of the text, within the bounds: rounded to four significant digits, or to
    /// more digits if the rounded value would violate a bound.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> String {
        let (number, unit) = split(&self.text);
        let (low, high) = (number * self.low, number * self.high);
        let value = number * factor.clamp(self.low, self.high);
        let places = FITTED_DIGITS - 1 - value.abs().log10().floor() as i32;
        let shown = |places: i32| trimmed(format!("{value:.0$}", places.max(0) as usize));
        // If rounding violates the bounds, use more digits.
        let is_inside = |text: &String| text.parse().is_ok_and(|v: f64| (low..=high).contains(&v));
        let more = (places..places + MORE_DIGITS).map(shown).find(is_inside);
        let bound = || match factor < 1.0 {
            true => self.bounds.0.clone(),
            false => self.bounds.1.clone(),
        };
        more.map_or_else(bound, |number| format!("{number}{unit}"))
    }
}

/// Splits a text into a number and a unit.
fn split(text: &str) -> (f64, &str) {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number = number
        .parse()
        .expect("a figure with bounds begins with its number");
    (number, unit)
}

/// Removes trailing zeros from the fraction of a number.
fn trimmed(number: String) -> String {
    match number.contains('.') {
        true => number
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => number,
    }
}

/// The free figures of a system file, in text order.
///
/// The text must be a valid system: unreadable parts yield no figures.
#[must_use]
pub fn free_figures(text: &str) -> Vec<FreeFigure> {
    let mut found = Vec::new();
    if let Ok(table) = DeTable::parse(text) {
        collect(table.get_ref(), &mut Vec::new(), &mut found);
    }
    found.sort_by_key(|figure| figure.span.start);
    found
}

fn collect(table: &DeTable<'_>, path: &mut Vec<String>, found: &mut Vec<FreeFigure>) {
    if let (Some(value), Some(free)) = (table.get("value"), table.get("free"))
        && let Some(figure) = free_figure(value, free.get_ref())
    {
        found.push(FreeFigure {
            path: path.join("."),
            is_unmarked: !table.contains_key("source"),
            ..figure
        });
        return;
    }
    for (key, value) in table {
        path.push(key.get_ref().to_string());
        if let DeValue::Table(inner) = value.get_ref() {
            collect(inner, path, found);
        }
        path.pop();
    }
}

/// The free figure of a TOML value and its bounds, without the path.
fn free_figure(value: &Spanned<DeValue<'_>>, free: &DeValue<'_>) -> Option<FreeFigure> {
    let DeValue::Array(bounds) = free else {
        return None;
    };
    let bound = |i: usize| text_of(bounds.get(i)?.get_ref());
    let (text, bounds) = (text_of(value.get_ref())?, (bound(0)?, bound(1)?));
    let quantity = |parse: &dyn Fn(&str) -> Option<f64>| {
        let value = parse(&text)?;
        Some((parse(&bounds.0)? / value, parse(&bounds.1)? / value))
    };
    let (low, high) = quantity(&|t| t.parse().ok())
        .or_else(|| quantity(&|t| parse_rate(t).ok()))
        .or_else(|| quantity(&|t| parse_duration(t).ok().map(|d| d.as_secs_f64())))
        .or_else(|| quantity(&|t| fractional_size(t).ok()))
        .filter(|(low, high)| *low > 0.0 && low < high && high.is_finite())?;
    Some(FreeFigure {
        path: String::new(),
        is_text: matches!(value.get_ref(), DeValue::String(_)),
        is_unmarked: false,
        span: value.span(),
        text,
        low,
        high,
        bounds,
    })
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(plain(&number.to_string())),
        DeValue::Float(number) => Some(plain(&number.to_string())),
        _ => None,
    }
}

/// A TOML number without sign and digit separators.
fn plain(number: &str) -> String {
    number.trim_start_matches('+').replace('_', "")
}

/// The text of a system with its free figures multiplied by `factors`, rounded to four digits and marked as assumed.
/// Everything else, including comments, is unchanged.
///
/// # Panics
/// If `figures` and `factors` differ in length.
#[must_use]
pub fn with_figures(text: &str, figures: &[FreeFigure], factors: &[f64]) -> String {
    assert_eq!(figures.len(), factors.len(), "one factor for each figure");
    let mut out = String::with_capacity(text.len() + 16);
    let mut end = 0;
    for (figure, factor) in figures.iter().zip(factors) {
        out.push_str(&text[end..figure.span.start]);
        let written = figure.scaled(*factor);
        match figure.is_text {
            true => out.push_str(&format!("\"{written}\"")),
            false => out.push_str(&written),
        }
        end = figure.span.end;
        if figure.is_unmarked {
            // An inline table, as opposed to a table with a line per key.
            let is_inline = text[end..].trim_start().starts_with([',', '}']);
            out.push_str(if is_inline { ", " } else { "\n" });
            out.push_str("source = \"A\"");
        }
    }
    out.push_str(&text[end..]);
    out
}

/// The figures that a fit has found, and the quality of the fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// Factor by which the fit multiplies each free figure.
    pub factors: Vec<f64>,
    /// Natural logarithm of modelled over measured response time, at each fitted point.
    pub residuals: Vec<f64>,
    /// Sensitivity of the response times to each free figure.
    pub sensitivity: Vec<Sensitivity>,
    /// Number of trials of the fit: simulations of all points with one set of figures, except the repetition of the
    /// best trial.
    pub trials: u64,
    /// Whether the method of Nelder and Mead converged before the maximum number of trials.
    pub converged: bool,
}

/// Sensitivity of the points to a figure. A figure with a low elasticity is not determined by the points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sensitivity {
    /// Root mean square over the points of the change of the logarithm of the response time per change of the logarithm
    /// of the figure.
    pub elasticity: f64,
    /// Sum of the squared residuals if the figure is a tenth less than its fitted value, or at its lower bound.
    pub squares_below: f64,
    /// Sum of the squared residuals if the figure is a tenth more than its fitted value, or at its upper bound.
    pub squares_above: f64,
}

/// Reason why a fit has found no figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FitError<E> {
    /// The system file has no free figure: a figure with bounds (`free`).
    NothingFree,
    /// Error of the caller, who could not make a trial of the fit.
    Trial(E),
}

/// Sum of the squares of logarithmic residuals, which a fit minimises.
#[must_use]
pub fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

/// Objective function of the solver: the sum of the squared residuals of a trial.
struct Problem<'a, F, E> {
    figures: &'a [FreeFigure],
    trials: &'a RefCell<Trials<F, E>>,
}

/// Trials of a fit: the caller's function that makes a trial, the numbers of trials, and the caller's first error.
struct Trials<F, E> {
    residuals: F,
    made: u64,
    max: u64,
    /// Solver trials that were refused because of the trial limit or an earlier error.
    refused: u64,
    failed: Option<E>,
}

/// Factors of the figures at a point of the unbounded scale.
fn factors(figures: &[FreeFigure], at: &[f64]) -> Vec<f64> {
    let factors = figures.iter().zip(at).map(|(figure, x)| {
        let share = 1.0 / (1.0 + (-x).exp());
        (figure.low.ln() + share * (figure.high / figure.low).ln()).exp()
    });
    factors.collect()
}

/// Point of the present values on the unbounded scale.
fn begin(figures: &[FreeFigure]) -> Vec<f64> {
    let places = figures.iter().map(|figure| {
        // A value at a bound would be at infinity, so the start is slightly inside the bounds.
        let share = (-figure.low.ln() / (figure.high / figure.low).ln()).clamp(0.02, 0.98);
        (share / (1.0 - share)).ln()
    });
    places.collect()
}

impl<F, E> CostFunction for Problem<'_, F, E>
where
    F: FnMut(&[f64]) -> Result<Vec<f64>, E>,
{
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, at: &Vec<f64>) -> Result<f64, argmin::core::Error> {
        let mut trials = self.trials.borrow_mut();
        // The solver panics if one of its first costs is an error, so refused trials get increasing costs instead.
        if trials.failed.is_some() || trials.made >= trials.max {
            trials.refused += 1;
            return Ok(NOT_MADE * (1.0 + trials.refused as f64));
        }
        trials.made += 1;
        match (trials.residuals)(&factors(self.figures, at)) {
            Ok(residuals) => Ok(sum_of_squares(&residuals)),
            Err(e) => {
                trials.failed = Some(e);
                Ok(NOT_MADE)
            }
        }
    }
}

/// Fits `figures` in at most `max_trials` trials: `residuals` runs the system with a factor for each figure, and
/// returns the natural logarithm of modelled over measured response time at each point. Two more trials per figure,
/// with the figure a tenth less and a tenth more, determine its sensitivity.
///
/// # Errors
/// See [`FitError`].
///
/// # Panics
/// If there are no points.
pub fn fit<E>(
    figures: &[FreeFigure],
    max_trials: u64,
    residuals: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Fitted, FitError<E>> {
    if figures.is_empty() {
        return Err(FitError::NothingFree);
    }
    let trials = RefCell::new(Trials {
        residuals,
        made: 0,
        max: max_trials.max(1),
        refused: 0,
        failed: None,
    });
    let problem = Problem {
        figures,
        trials: &trials,
    };
    let solver = NelderMead::new(simplex(&begin(figures)))
        .with_sd_tolerance(COST_TOLERANCE)
        .expect("the tolerance is above 0");
    let outcome = Executor::new(problem, solver)
        .configure(|s| s.max_iters(max_trials))
        .run();
    if let Some(e) = trials.borrow_mut().failed.take() {
        return Err(FitError::Trial(e));
    }
    let outcome = outcome.unwrap_or_else(|e| panic!("the solver failed by itself: {e}"));
    let state = outcome.state();
    let best = state
        .get_best_param()
        .expect("the solver made trials")
        .clone();
    let converged = matches!(
        state.get_termination_reason(),
        Some(argmin::core::TerminationReason::SolverConverged)
    );
    drop(outcome);
    let mut trials = trials.into_inner();
    let converged = converged && trials.refused == 0;
    let factors = factors(figures, &best);
    let at_best = (trials.residuals)(&factors).map_err(FitError::Trial)?;
    let sensitivity = (0..figures.len()).map(|i| {
        trials.made += 2;
        sensitivity(figures, i, &factors, &mut trials.residuals)
    });
    let sensitivity = sensitivity.collect::<Result<_, E>>();
    Ok(Fitted {
        sensitivity: sensitivity.map_err(FitError::Trial)?,
        factors,
        residuals: at_best,
        trials: trials.made,
        converged,
    })
}

/// Vertices of the first simplex of the method of Nelder and Mead: `begin`, and for each figure a vertex with a larger
/// value.
fn simplex(begin: &[f64]) -> Vec<Vec<f64>> {
    let corners = (0..=begin.len()).map(|i| {
        let mut corner = begin.to_vec();
        if i > 0 {
            corner[i - 1] += FIRST_STEP;
        }
        corner
    });
    corners.collect()
}

/// Sensitivity of figure number `i`.
fn sensitivity<E>(
    figures: &[FreeFigure],
    i: usize,
    factors: &[f64],
    residuals: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Sensitivity, E> {
    let FreeFigure { low, high, .. } = figures[i];
    let mut moved = |by: f64| {
        let mut moved = factors.to_vec();
        moved[i] = (moved[i] * by).clamp(low, high);
        residuals(&moved).map(|residuals| (moved[i], residuals))
    };
    let (less, below) = moved(1.0 - SENSITIVITY_STEP)?;
    let (more, above) = moved(1.0 + SENSITIVITY_STEP)?;
    assert!(!above.is_empty(), "a fit has points");
    let slopes = above
        .iter()
        .zip(&below)
        .map(|(a, b)| (a - b) / (more / less).ln());
    let slopes: Vec<f64> = slopes.collect();
    Ok(Sensitivity {
        elasticity: (sum_of_squares(&slopes) / slopes.len() as f64).sqrt(),
        squares_below: sum_of_squares(&below),
        squares_above: sum_of_squares(&above),
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
            text.contains("squared_cv = { value = 4.938, source = \"A\", free"),
            "{text}"
        );
        let marked = TEXT.replace("value = 4,", "value = 4, source = \"A\",");
        assert_eq!(with_figures(TEXT, &figures, &[1.0; 3]), marked);
        let lines = "[station.disk.service]\nvalue = '2ms' # x\nfree = ['1ms', '4ms']\n";
        let figures = free_figures(lines);
        assert_eq!(
            with_figures(lines, &figures, &[1.5]),
            "[station.disk.service]\nvalue = \"3ms\"\nsource = \"A\" # x\nfree = ['1ms', '4ms']\n"
        );
    }

    #[test]
    fn rounding_does_not_leave_the_bounds() {
        let text =
            "[station.disk]\nservice = { value = \"2ms\", free = [\"1.23436ms\", \"3ms\"] }\n";
        let figures = free_figures(text);
        assert_eq!(figures[0].scaled(0.617_18), "1.2344ms");
        assert_eq!(figures[0].scaled(0.1), "1.2344ms");
        assert_eq!(figures[0].scaled(9.0), "3ms");
        assert!(figures[0].is_at_bound(1.5) && !figures[0].is_at_bound(1.0));
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
        let fitted = fit(&figures, 2000, residuals).unwrap();
        assert!(fitted.converged);
        for (found, truth) in fitted.factors.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 0.05, "{fitted:?}");
        }
        assert!(
            fitted.residuals.iter().all(|r| r.abs() < 0.01),
            "{fitted:?}"
        );
        assert!(
            fitted
                .sensitivity
                .iter()
                .all(|s| s.elasticity > 0.01 && s.squares_below > 1e-4 && s.squares_above > 1e-4),
            "{fitted:?}"
        );
    }

    #[test]
    fn a_fit_ends_with_its_trials_or_the_first_that_fails() {
        let figures = free_figures(TEXT);
        let never = |_: &[f64]| -> Result<Vec<f64>, ()> { unreachable!("no trial is made") };
        assert_eq!(fit(&[], 10, never), Err(FitError::NothingFree));
        let mut made = 0;
        let fails = fit(&figures, 10, |_| {
            made += 1;
            Err("no")
        });
        assert_eq!((fails, made), (Err(FitError::Trial("no")), 1));
        let far =
            |factors: &[f64]| Ok::<Vec<f64>, ()>(factors.iter().map(|f| f.ln() - 1.0).collect());
        let fitted = fit(&figures, 7, far).unwrap();
        assert_eq!((fitted.trials, fitted.converged), (7 + 2 * 3, false));
    }
}
