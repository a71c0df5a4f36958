//! Report on a fit: the free figures of a system, and modelled beside measured response times.

use crate::document::{Block, Document, Figure, Line, Table, Tone};
use crate::format::latency;
use plimsoll_plan::counted;
use serde::Serialize;

/// Results of a fit: figures, points and a judgement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitReport {
    /// Name of the system, as the user gave it.
    pub system: String,
    /// Name of the curve to which the system was fitted, as the user gave it.
    pub curve: String,
    /// Name of the workload with which the curve was measured.
    pub workload: String,
    /// Unit of the loads, such as `streams`.
    pub metric: String,
    /// Free figures, in the order of the system file.
    pub figures: Vec<FittedFigure>,
    /// The points of the curve, in increasing order of load.
    pub points: Vec<FittedPoint>,
    /// Number of trials of the fit: simulations of the curve, each with one set of free figures.
    pub trials: u64,
    /// Whether the fit is good.
    pub good: bool,
    /// Reasons why the fit is not good; empty for a good fit.
    pub reasons: Vec<String>,
    /// Further notes on the fit.
    pub notes: Vec<String>,
    /// Path of the system file with the fitted figures.
    pub output: String,
}

/// A free figure, with its value before and after the fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedFigure {
    /// Path of the figure in the system file: keys separated by dots.
    pub name: String,
    /// Value before the fit.
    pub before: String,
    /// Value after the fit.
    pub fitted: String,
    /// Minimum and maximum of the figure.
    pub bounds: (String, String),
    /// Whether the fitted value is the minimum or the maximum.
    pub at_bound: bool,
    /// Elasticity of the response time to the figure, root mean square over the fitted points: its change
    /// in percent for a change of the figure by 1 %.
    pub elasticity: f64,
    /// Sum of the squared residuals of the fitted points if the figure is a tenth less than fitted, or at its minimum.
    pub squares_below: f64,
    /// Sum of the squared residuals of the fitted points if the figure is a tenth more than fitted, or at its maximum.
    pub squares_above: f64,
}

/// A load point, measured and modelled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FittedPoint {
    /// Number of the point in the curve, from 1.
    pub number: usize,
    /// Load in the unit of the curve.
    pub load: f64,
    /// Mean response time of the curve in milliseconds.
    pub measured_ms: f64,
    /// Mean response time of the fitted system in milliseconds.
    pub modelled_ms: f64,
    /// Natural logarithm of modelled over measured.
    pub residual: f64,
    /// Whether the point was held out of the fit.
    pub held_out: bool,
}

impl FitReport {
    /// Root mean square of the residuals, and the residual farthest from 0, both as differences in percent; of the
    /// held-out or of the fitted points.
    fn errors(&self, held_out: bool) -> Option<(f64, f64)> {
        let points = self.points.iter().filter(|p| p.held_out == held_out);
        let residuals: Vec<f64> = points.map(|p| p.residual).collect();
        let mean = residuals.iter().map(|r| r * r).sum::<f64>() / residuals.len() as f64;
        let farthest = |a: &f64, b: &f64| a.abs().total_cmp(&b.abs());
        let maximum = residuals.iter().copied().max_by(farthest)?;
        Some((percent(mean.sqrt()), percent(maximum)))
    }

    /// The report as pretty-printed JSON.
    ///
    /// # Panics
    /// Never: every report can be serialised.
    #[must_use]
    pub fn to_json(&self) -> String {
        let text = serde_json::to_string_pretty(self).expect("a report has a form in JSON");
        text + "\n"
    }

    /// The report as a document with figures, points and notes.
    #[must_use]
    pub fn document(&self) -> Document {
        let held_out = self.points.iter().filter(|p| p.held_out).count();
        let fitted = self.points.len() - held_out;
        let (state, tone) = if self.good {
            ("the fit is good".to_owned(), Tone::Good)
        } else {
            let reasons = self.reasons.join("; ");
            (format!("the fit is not good: {reasons}"), Tone::Bad)
        };
        let title = format!("{} fitted to {}", self.system, self.curve);
        let mut document = Document::new(title, state, tone);
        document.head = vec![Block::facts(vec![
            Figure::new("workload", &self.workload),
            Figure::unit(counted(fitted as u64, "point", "points"), "fitted"),
            Figure::unit(held_out.to_string(), "held out"),
            Figure::count(self.trials, "trial", "trials"),
        ])];
        let mut blocks = vec![
            Block::Table(self.figures_table()),
            Block::Table(self.points_table()),
        ];
        for (name, held_out) in [("fitted", false), ("held out", true)] {
            let errors = self.errors(held_out);
            blocks.extend(errors.map(|(mean, maximum)| {
                let maximum = signed(maximum);
                let text =
                    format!("{mean:.1} % off (root mean square), largest difference {maximum}");
                Line::of(name, text)
            }));
        }
        blocks.extend(self.notes.iter().map(|note| Line::of("note", note)));
        blocks.push(Line::of("fitted figures", &self.output));
        document.section("fit", "Fit", blocks);
        document
    }

    fn figures_table(&self) -> Table {
        let head = "figure|before|fitted|minimum|maximum|latency per 1 %|off at -10 %|at +10 %";
        let mut table = Table::new("Fitted figures", head.split('|'));
        let fitted = self.points.iter().filter(|p| !p.held_out).count();
        let off = |squares: f64| format!("{:.1} %", percent((squares / fitted as f64).sqrt()));
        for f in &self.figures {
            table.row(vec![
                f.name.clone(),
                f.before.clone(),
                f.fitted.clone(),
                f.bounds.0.clone(),
                f.bounds.1.clone(),
                format!("{:.2} %", f.elasticity),
                off(f.squares_below),
                off(f.squares_above),
            ]);
        }
        table
    }

    fn points_table(&self) -> Table {
        let head = [
            "point",
            &self.metric,
            "measured",
            "modelled",
            "difference",
            "",
        ];
        let mut table = Table::new("Points of the curve", head);
        for p in &self.points {
            table.row(vec![
                p.number.to_string(),
                p.load.to_string(),
                latency(p.measured_ms),
                latency(p.modelled_ms),
                signed(percent(p.residual)),
                if p.held_out { "held out" } else { "" }.into(),
            ]);
        }
        table
    }
}

/// A residual as a difference in percent.
fn percent(residual: f64) -> f64 {
    100.0 * residual.exp_m1()
}

/// A change in percent with its sign.
fn signed(percent: f64) -> String {
    match percent.abs() {
        p if p < 10.0 => format!("{percent:+.1} %"),
        _ => format!("{percent:+.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{self, Layout};

    #[test]
    fn the_maximum_difference_has_the_sign_of_its_point() {
        let point = |number: usize, modelled_ms: f64, held_out| FittedPoint {
            number,
            load: number as f64,
            measured_ms: 10.0,
            modelled_ms,
            residual: (modelled_ms / 10.0).ln(),
            held_out,
        };
        let report = FitReport {
            system: "filer".into(),
            curve: "curve".into(),
            workload: "vda".into(),
            metric: "streams".into(),
            figures: vec![],
            // Half the time is a greater residual than 1.5 times the time.
            points: vec![
                point(1, 5.0, false),
                point(2, 15.0, false),
                point(3, 10.5, true),
            ],
            trials: 1,
            good: true,
            reasons: vec![],
            notes: vec![],
            output: "fitted.toml".into(),
        };
        let layout = Layout {
            width: 80,
            color: false,
        };
        let text = terminal::render(&report.document(), layout);
        let mean = percent(((0.5f64.ln().powi(2) + 1.5f64.ln().powi(2)) / 2.0).sqrt());
        let fitted =
            format!("fitted: {mean:.1} % off (root mean square), largest difference -50 %\n");
        assert!(text.contains(&fitted), "{text}");
        let held_out = "held out: 5.0 % off (root mean square), largest difference +5.0 %\n";
        assert!(text.contains(held_out), "{text}");
    }
}
