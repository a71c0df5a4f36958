//! Judgement of a run by the promises of its Plan.

use crate::{OperationFigures, Percentile, PercentileFigure, Run, StallFigure};
use plimsoll_measure::Outcome;
use plimsoll_plan::{Condition, Count, Figure, Promise, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// Judgement of a run by a promise of the run's Plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PromiseResult {
    /// Name of the promise; empty for a promise without a name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Condition of the promise, such as `p99 <= 5ms`.
    pub condition: Condition,
    /// Whether the run kept the promise. A promise on a figure that is not known is not kept.
    pub kept: bool,
    /// Figure of the run: a time in seconds, a fraction, or a number; null if the figure is not known. A percentile of
    /// too few operations is the maximum, and may be a lower bound.
    pub value: Option<f64>,
    /// Distance of the figure from the limit, as a fraction of the limit: above 0 if the promise is kept, below 0 if
    /// not. Null for a limit of 0, and if the figure is not known.
    pub margin: Option<f64>,
    /// Sentence for people with the figure, or with the reason why the figure is not known.
    pub text: String,
}

impl PromiseResult {
    /// The promise with its name.
    #[must_use]
    pub fn promise(&self) -> Promise {
        Promise {
            name: self.name.clone(),
            condition: self.condition.clone(),
        }
    }

    /// Reason that makes a run invalid; `None` if the promise is kept.
    pub(crate) fn reason(&self) -> Option<Reason> {
        let text = || format!("the promise `{}` is broken: {}", self.promise(), self.text);
        (!self.kept).then(|| Reason::new(Promise::BROKEN, text()))
    }

    /// Judges a run with a measured window by all promises of its Plan, in order; empty without a window.
    pub(crate) fn all(run: &Run, more: &UnstoredFigures) -> Vec<Self> {
        if run.window_number == 0 {
            return vec![];
        }
        let promises = run.plan.promises.iter();
        promises
            .map(|promise| Self::of(promise, run, more))
            .collect()
    }

    fn of(promise: &Promise, run: &Run, more: &UnstoredFigures) -> Self {
        let condition = &promise.condition;
        let figures: Vec<Known> = match &condition.operation {
            None => vec![Measured::of_run(run, more).figure(condition.figure)],
            Some(name) => {
                let rows = run.operations.iter().filter(|row| row.name == *name);
                rows.map(|row| Measured::of_operation(row).figure(condition.figure))
                    .collect()
            }
        };
        let judged = figures
            .into_iter()
            .map(|known| Self::judged(promise, known));
        // The rows of several operations may have one name; the row with the worst judgement decides.
        let worst = judged.min_by(|a, b| {
            let margin = |result: &Self| result.margin.unwrap_or(f64::NEG_INFINITY);
            (a.kept, margin(a))
                .partial_cmp(&(b.kept, margin(b)))
                .expect("margins are finite or missing")
        });
        worst.unwrap_or_else(|| Self::judged(promise, Err("no such operation was executed".into())))
    }

    fn judged(promise: &Promise, known: Known) -> Self {
        let condition = &promise.condition;
        let result = |kept, value, margin, text| Self {
            name: promise.name.clone(),
            condition: condition.clone(),
            kept,
            value,
            margin,
            text,
        };
        let figure = match known {
            Ok(figure) => figure,
            Err(unknown) => {
                let text = format!("the figure `{}` is not known: {unknown}", condition.figure);
                return result(false, None, None, text);
            }
        };
        let wants_more = condition.relation.wants_more();
        let is_certain = if wants_more {
            figure.too_few.is_none()
        } else {
            !figure.is_lower_bound
        };
        let kept = condition.holds(figure.value) && is_certain;
        let bound = if figure.is_lower_bound {
            "at least "
        } else {
            ""
        };
        let mut text = format!(
            "{} {bound}{}",
            condition.figure.was(),
            condition.show_measured(figure.value)
        );
        if let Some((operations, needed)) = figure.too_few {
            text.push_str(&format!(
                ", the maximum of {} operations, of {} that the percentile needs",
                Count(operations),
                Count(needed)
            ));
        }
        if figure.is_lower_bound {
            text.push_str(", because operations were in flight at the end");
        }
        let margin = condition.margin(figure.value).map(|margin| {
            if kept {
                margin.max(0.0)
            } else {
                margin.min(0.0)
            }
        });
        result(kept, Some(figure.value), margin, text)
    }
}

/// Figures of a run that conditions can test and `run.json` does not contain.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct UnstoredFigures {
    /// Processor time that the client used, as a fraction of the processor time that the client may use; `None` if
    /// unknown.
    client_share: Option<f64>,
    /// Increase of the mean backlog from the first tenth of the measured window to the last, in nanoseconds; `None` if
    /// unknown.
    queue_growth_ns: Option<f64>,
}

impl UnstoredFigures {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        Self {
            client_share: outcome.windows.last().and_then(|w| w.client_share),
            queue_growth_ns: outcome.backlog.increase_ns(),
        }
    }
}

/// A figure, or the reason why the figure is not known.
type Known = Result<MeasuredFigure, String>;

/// Value of a figure of a run, with its uncertainty.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeasuredFigure {
    value: f64,
    /// Whether operations in flight at the end make the value a lower bound.
    is_lower_bound: bool,
    /// Number of the operations, and number that the percentile needs, if the value is the maximum because there were too
    /// few operations.
    too_few: Option<(u64, u64)>,
}

impl From<f64> for MeasuredFigure {
    fn from(value: f64) -> Self {
        Self {
            value,
            is_lower_bound: false,
            too_few: None,
        }
    }
}

/// Figures of a run, or of one of its operations, in the units of conditions.
struct Measured<'a> {
    ops: u64,
    ops_per_s: f64,
    bytes_per_s: f64,
    errors: u64,
    mean_ms: f64,
    service_mean_ms: f64,
    cpu_us_per_op: Option<f64>,
    percentile: Box<dyn Fn(Percentile) -> Option<PercentileFigure> + 'a>,
    /// The run, for figures that single operations do not have; `None` for an operation.
    whole: Option<(&'a Run, &'a UnstoredFigures)>,
}

impl<'a> Measured<'a> {
    fn of_run(run: &'a Run, more: &'a UnstoredFigures) -> Self {
        let summary = &run.summary;
        Self {
            ops: summary.ops,
            ops_per_s: summary.ops_per_s,
            bytes_per_s: summary.bytes_per_s,
            errors: summary.errors,
            mean_ms: summary.mean_ms,
            service_mean_ms: summary.service().mean_ms,
            cpu_us_per_op: summary.cpu_us_per_op,
            percentile: Box::new(|p| summary.percentile(p)),
            whole: Some((run, more)),
        }
    }

    fn of_operation(row: &'a OperationFigures) -> Self {
        Self {
            ops: row.ops,
            ops_per_s: row.ops_per_s,
            bytes_per_s: row.bytes_per_s,
            errors: row.errors,
            mean_ms: row.latency.mean_ms,
            service_mean_ms: row.service().mean_ms,
            cpu_us_per_op: row.cpu_us_per_op,
            percentile: Box::new(|p| row.percentile(p)),
            whole: None,
        }
    }

    fn figure(&self, figure: Figure) -> Known {
        let of_completed = |value: f64| match self.ops {
            0 => Err("no operation completed".to_owned()),
            _ => Ok(value.into()),
        };
        match figure {
            Figure::OpsPerS => Ok(self.ops_per_s.into()),
            Figure::MibPerS => Ok((self.bytes_per_s / MIB).into()),
            Figure::Mean => of_completed(self.mean_ms / 1e3),
            Figure::ServiceMean => of_completed(self.service_mean_ms / 1e3),
            Figure::Percentile(p) => self.percentile(p, |f| (f.ms, f.at_least)),
            Figure::ServicePercentile(p) => self.percentile(p, |f| {
                let of_latency = (f.ms, f.at_least);
                f.service_ms.zip(f.service_at_least).unwrap_or(of_latency)
            }),
            Figure::Cpu => match self.cpu_us_per_op {
                Some(us) => Ok((us / 1e6).into()),
                None => Err("processor time was not measured".into()),
            },
            Figure::Errors => Ok((self.errors as f64).into()),
            Figure::ErrorShare => match self.ops + self.errors {
                0 => Err("no operation completed".into()),
                all => Ok((self.errors as f64 / all as f64).into()),
            },
            Figure::Stalled => {
                let (run, _) = self.whole();
                let of_all = run.summary.stalls.iter().filter(|s| s.rank.is_none());
                let stalled_s: f64 = of_all.map(StallFigure::length_s).sum();
                Ok((stalled_s / run.window_s).into())
            }
            Figure::Client => {
                let (_, more) = self.whole();
                more.client_share
                    .map(MeasuredFigure::from)
                    .ok_or_else(|| "the processors of the client were not measured".into())
            }
            Figure::QueueGrowth => {
                let (_, more) = self.whole();
                more.queue_growth_ns
                    .map(|ns| (ns / 1e9).into())
                    .ok_or_else(|| {
                        "no operation began in the first or in the last tenth of the window".into()
                    })
            }
        }
    }

    fn whole(&self) -> (&'a Run, &'a UnstoredFigures) {
        self.whole
            .expect("a condition on an operation has a figure of operations")
    }

    /// A percentile in seconds. `part` selects the milliseconds of the latency or of the service time, and whether the
    /// milliseconds are a lower bound.
    fn percentile(
        &self,
        percentile: Percentile,
        part: impl Fn(&PercentileFigure) -> (f64, bool),
    ) -> Known {
        let figure = (self.percentile)(percentile).ok_or("no operation completed")?;
        let (ms, is_lower_bound) = part(&figure);
        let too_few = (!figure.enough_samples).then(|| (self.ops, percentile.needs()));
        Ok(MeasuredFigure {
            value: ms / 1e3,
            is_lower_bound,
            too_few,
        })
    }
}

#[cfg(test)]
mod tests;
