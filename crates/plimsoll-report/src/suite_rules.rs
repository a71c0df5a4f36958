//! Rules of SPEC's file-server suites that a load curve of an equivalent workload keeps or breaks.

use crate::disclosure::has_suite_rules;
use crate::document::{Block, Line, Tone};
use plimsoll_plan::{Criteria, SourceKind};
use plimsoll_results::{LoadCurve, SeriesOf, SeriesRun};
use std::fmt;

/// Minimum number of load points of a curve.
const MIN_POINTS: usize = 10;

/// Maximum distance of a load from its even place, in percent of the distance between two even places.
const MAX_SHIFT_PERCENT: f64 = 30.0;

/// Published length of the measured window in seconds.
const WINDOW_S: f64 = 300.0;

/// Fraction by which a measured window may be shorter than its planned length, because the clock is read a moment early
/// or late.
const LENGTH_TOLERANCE: f64 = 0.001;

/// Minimum percentage of its scheduled operations that each process completes.
const PROCESS_PERCENT: f64 = 75.0;

/// Minimum percentage of the scheduled operations that all processes together complete.
const TOTAL_PERCENT: f64 = 95.0;

/// Published warm-up of a workload in seconds.
fn warmup_s(workload: &str) -> f64 {
    match workload {
        "ai-image" => 900.0,
        _ => 300.0,
    }
}

/// A rule of the suite, and whether a curve keeps the rule.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleCheck {
    /// Name of the rule, such as `number of load points`.
    pub rule: &'static str,
    /// Whether the curve keeps the rule.
    pub holds: bool,
    /// The measured and the required figure.
    pub figures: String,
}

impl fmt::Display for RuleCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.holds {
            true => "holds",
            false => "does not hold",
        };
        write!(f, "{}: {verdict} ({})", self.rule, self.figures)
    }
}

impl RuleCheck {
    /// The line of a report on the rule: a tick or a cross, the rule and the figures.
    pub(crate) fn line(&self) -> Block {
        let (mark, tone) = match self.holds {
            true => ('✓', Tone::Good),
            false => ('✗', Tone::Bad),
        };
        Block::Line(Line {
            label: format!("{mark} {}", self.rule),
            text: self.figures.clone(),
            tone,
            ..Line::default()
        })
    }
}

/// The load points of a curve that the rules concern: all measured points up to the highest valid load. Points beyond
/// that load found the end of the curve, and count in no figure.
struct RuledPoints<'a> {
    curve: SeriesOf<'a, LoadCurve>,
    points: Vec<&'a SeriesRun>,
}

/// Checks the rules of the published suite for a curve of a built-in equivalent workload; empty for a curve of any
/// other workload, and without a measured point.
#[must_use]
pub fn check(curve: SeriesOf<'_, LoadCurve>) -> Vec<RuleCheck> {
    let source = &curve.first_plan().source;
    if source.kind != SourceKind::Builtin || !has_suite_rules(&curve.name) {
        return vec![];
    }
    let highest = curve.figures.highest_valid_load.unwrap_or(u64::MAX);
    let measured = curve.series.measured();
    let points = measured.filter(|p| p.load.is_some_and(|load| load <= highest));
    let all = RuledPoints {
        points: points.collect(),
        curve,
    };
    if all.points.is_empty() {
        return vec![];
    }
    vec![
        all.number(),
        all.spacing(),
        all.order(),
        all.warmup(),
        all.window(),
        all.process_rate(),
        all.total_rate(),
        all.errors(),
        all.unchanged(),
    ]
}

impl RuledPoints<'_> {
    fn number(&self) -> RuleCheck {
        let found = self.points.len();
        RuleCheck {
            rule: "number of load points",
            holds: found >= MIN_POINTS,
            figures: format!("{found}; at least {MIN_POINTS} are required"),
        }
    }

    /// Checks that each load is near its even place: point *k* of *n* has its place at *k*/*n* of the highest load.
    fn spacing(&self) -> RuleCheck {
        let loads = || self.points.iter().filter_map(|p| p.load);
        let step = loads().max().unwrap_or(0) as f64 / self.points.len() as f64;
        let shifts = (1..).zip(loads()).map(|(place, load)| {
            let shift = (load as f64 - f64::from(place) * step).abs() / step;
            (load, 100.0 * shift)
        });
        let (load, shift) = shifts.fold((0, 0.0), |worst, p| if p.1 > worst.1 { p } else { worst });
        RuleCheck {
            rule: "even spacing of the loads",
            // The summand 1e-9 absorbs rounding errors.
            holds: shift <= MAX_SHIFT_PERCENT + 1e-9,
            figures: match shift > 0.0 {
                true => format!(
                    "load {load} is {shift:.1} % of a step from its place; at most {MAX_SHIFT_PERCENT} % are allowed"
                ),
                false => format!("every load is at its place, in steps of {step}"),
            },
        }
    }

    fn order(&self) -> RuleCheck {
        let broken = self.curve.runs.iter().filter(|run| !run.is_measured());
        let begins = self.points.iter().map(|p| &p.started_at);
        let (broken, ordered) = (broken.count(), begins.is_sorted());
        let figures = match (broken, ordered) {
            (0, true) => {
                "the points were measured in increasing order of load, without interruption".into()
            }
            (0, false) => "the points were not measured in increasing order of load".into(),
            (n, _) => format!(
                "{n} of {} runs failed or were interrupted",
                self.curve.runs.len()
            ),
        };
        RuleCheck {
            rule: "one ascending run",
            holds: broken == 0 && ordered,
            figures,
        }
    }

    fn warmup(&self) -> RuleCheck {
        let (found, published) = (self.curve.times_s().0, warmup_s(&self.curve.name));
        RuleCheck {
            rule: "warm-up",
            holds: found == published,
            figures: format!("{found} s; {published} s are published"),
        }
    }

    fn window(&self) -> RuleCheck {
        let planned = self.curve.times_s().1;
        let windows = self.points.iter().map(|p| p.window_s);
        let shortest = windows.fold(planned, f64::min);
        let is_whole = shortest >= WINDOW_S * (1.0 - LENGTH_TOLERANCE);
        let found = match shortest >= planned * (1.0 - LENGTH_TOLERANCE) {
            true => planned,
            false => shortest,
        };
        RuleCheck {
            rule: "measured window",
            holds: planned == WINDOW_S && is_whole,
            figures: format!(
                "{} s; {WINDOW_S} s are published",
                (found * 1e3).round() / 1e3
            ),
        }
    }

    fn process_rate(&self) -> RuleCheck {
        self.rate(
            "rate of each process",
            ("process_rate", |c| c.process_percent, PROCESS_PERCENT),
            |p| p.slowest_process_percent,
        )
    }

    fn total_rate(&self) -> RuleCheck {
        self.rate(
            "rate of all processes",
            ("total_rate", |c| c.total_percent, TOTAL_PERCENT),
            |p| Some(100.0 * p.achieved_ops_per_s / p.offered_ops_per_s?),
        )
    }

    /// Checks the percentage `percent` of each point against the minimum `required`. A point also keeps the rule if the
    /// point met the run's criterion with the code `code`, which excuses operations in flight at the end, and the
    /// criterion was at least as strict as the rule.
    fn rate(
        &self,
        rule: &'static str,
        (code, of, required): (&str, fn(&Criteria) -> f64, f64),
        percent: fn(&SeriesRun) -> Option<f64>,
    ) -> RuleCheck {
        let strict = self
            .curve
            .metric()
            .is_some_and(|m| of(&m.criteria) >= required);
        let met = |p: &SeriesRun| p.criteria.iter().any(|c| c.code == code && c.met);
        let keeps = |p: &SeriesRun| {
            percent(p).is_some_and(|percent| percent >= required) || strict && met(p)
        };
        let lowest = self
            .points
            .iter()
            .filter_map(|p| Some((percent(p)?, p.load?)));
        let lowest = lowest.min_by(|a, b| a.0.total_cmp(&b.0));
        RuleCheck {
            rule,
            holds: self.points.iter().all(|p| keeps(p)),
            figures: match lowest {
                Some((percent, load)) => {
                    format!("lowest {percent:.1} %, at load {load}; {required} % are required")
                }
                None => format!("without a schedule; {required} % are required"),
            },
        }
    }

    fn errors(&self) -> RuleCheck {
        let errors: u64 = self.points.iter().map(|p| p.errors).sum();
        RuleCheck {
            rule: "no errors",
            holds: errors == 0,
            figures: plimsoll_plan::counted(errors, "operation failed", "operations failed"),
        }
    }

    fn unchanged(&self) -> RuleCheck {
        let plan = self.curve.first_plan();
        let mut changes: Vec<String> = vec![];
        if !self.curve.is_comparable() {
            changes.push(format!("scale {}", self.curve.scale()));
        }
        let set = plan.parameters.iter().filter(|p| p.value != p.default);
        changes.extend(set.map(|p| format!("{} = {}", p.name, p.value)));
        RuleCheck {
            rule: "data and rates in full",
            holds: changes.is_empty(),
            figures: match changes.is_empty() {
                true => "scale 1, and no changed parameter".into(),
                false => changes.join(", "),
            },
        }
    }
}
