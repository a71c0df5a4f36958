//! Runs a workload text on the engine.

use crate::error::{BenchError, plausible};
use plimsoll_engine::{Event, Observer, Outcome, Settings, Stop};
use plimsoll_measure::OpTotals;
use plimsoll_plan::{Overrides, Plan, SourceKind};
use std::path::Path;
use std::time::Duration;

/// Results of a run of a workload, and the counted operations in the last window of the run.
pub(crate) struct Load {
    /// Number of counted operations in the last window of the run, in all rows together.
    pub(crate) ops: u64,
    /// Length of the window in seconds of the run's clock.
    pub(crate) seconds: f64,
    plan: Plan,
    outcome: Outcome,
}

impl Load {
    pub(crate) fn ops_per_s(&self) -> f64 {
        self.ops as f64 / self.seconds
    }

    /// Wall time per operation of a single worker in nanoseconds, including all overhead.
    pub(crate) fn ns_per_op(&self) -> f64 {
        self.seconds * 1e9 / self.ops as f64
    }

    /// Processor time of the process per operation in the window, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        let window = self.outcome.windows.last();
        let process = window.and_then(|w| w.system.process.as_ref());
        process.map_or(f64::NAN, |p| p.cpu_s() * 1e6 / self.ops as f64)
    }

    /// Totals of the row named `name`; zeros if the results have no such row.
    pub(crate) fn row(&self, name: &str) -> OpTotals {
        let rows = self.outcome.windows.last().map(|w| &w.totals.rows);
        let at = self.plan.operations.iter().position(|o| o.name == name);
        at.and_then(|at| rows.and_then(|rows| rows.get(at)))
            .cloned()
            .unwrap_or_default()
    }

    /// Number of operations of the row named `name`.
    pub(crate) fn ops_of(&self, name: &str) -> u64 {
        self.row(name).ops
    }
}

/// Ignores all events.
pub(crate) struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

/// Conditions of a run: the URL of the target, the lengths of window and warm-up, and whether the run keeps its files.
#[derive(Clone)]
pub(crate) struct BenchConditions<'a> {
    pub(crate) target: &'a str,
    pub(crate) time: Duration,
    pub(crate) warmup: Duration,
    /// Whether the run keeps its files, so that the next round reuses them.
    pub(crate) keep: bool,
}

impl BenchConditions<'_> {
    /// Conditions of a run on the target URL `target` with a window of `time`, a fifth of `time` as warm-up, and
    /// without kept files.
    pub(crate) fn new(target: &str, time: Duration) -> BenchConditions<'_> {
        BenchConditions {
            target,
            time,
            warmup: time / 5,
            keep: false,
        }
    }
}

/// The Plan of a workload in the Workload Model Language, with its files below `dir`.
pub(crate) fn plan(text: &str, dir: &Path, mut overrides: Overrides) -> Result<Plan, BenchError> {
    overrides.dir = Some(dir.into());
    let workload = plimsoll_workload::wml::parse(text, "benchmark.f")?;
    let context = plimsoll_workload::wml::Context {
        kind: SourceKind::File,
        temp_dir: dir.into(),
        current_dir: dir.into(),
        load: &|_| None,
        date: "2026-01-01".into(),
        hostname: "client".into(),
    };
    Ok(plimsoll_workload::wml::lower(
        &workload, &overrides, &context,
    )?)
}

/// Runs a workload in the Workload Model Language; fails if an operation fails, if none completes, or if the length of
/// the window deviates from `how.time` by more than 1 %.
pub(crate) fn run(text: &str, dir: &Path, how: &BenchConditions<'_>) -> Result<Load, BenchError> {
    let mut overrides = Overrides {
        time: Some(how.time),
        warmup: Some(plimsoll_plan::Warmup::Fixed(how.warmup)),
        ..Overrides::default()
    };
    overrides.options.keep = how.keep;
    let plan = plan(text, dir, overrides)?;
    let settings = Settings {
        target: how.target.into(),
        ..Settings::default()
    };
    let outcome = plimsoll_engine::run(&plan, &settings, &Stop::default(), &mut SilentObserver)?;
    if let Some(failure) = &outcome.failure {
        let reason = failure.to_string();
        return Err(BenchError::implausible(&failure.operation, reason));
    }
    let what = format!("load on `{}`", how.target);
    let window = outcome.windows.last().map(|w| &w.totals);
    let (ops, length) = window.map_or((0, 0), |w| {
        let rows = w.rows.iter().zip(&plan.operations);
        let counted = rows.filter(|(_, o)| o.kind.counts());
        (counted.map(|(r, _)| r.ops).sum(), w.end - w.start)
    });
    plausible(&what, ops > 0, || "no operation completed".into())?;
    let requested = how.time.as_secs_f64();
    let seconds = length as f64 / 1e9;
    let exact = (seconds - requested).abs() < 0.01 * requested + 1e-6;
    plausible(&what, exact, || {
        format!("the window was {seconds} s long instead of {requested} s")
    })?;
    Ok(Load {
        ops,
        seconds,
        plan,
        outcome,
    })
}
