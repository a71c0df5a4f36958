//! Open loops: whether an offered rate is achieved, and the start delays of operations.

use crate::bench::Bench;
use crate::error::{BenchError, plausible};
use crate::load::SilentObserver;
use crate::table::{Goal, Row, Unit};
use plimsoll_engine::{Settings, Stop};
use plimsoll_measure::Latency;
use plimsoll_plan::{Count, OpKind, Overrides, Plan, SourceKind, counted};
use std::path::Path;
use std::time::Duration;

/// Offered rates of all workers together, in operations per second.
const RATES: [u64; 3] = [1_000, 10_000, 50_000];

/// Numbers of workers that share the rate.
const WORKERS: [u64; 3] = [1, 8, 64];

/// Maximum deviation of completed from scheduled operations, as a fraction.
const TOLERANCE: f64 = 0.001;

/// A target whose operations take no time, so that only pacing is measured.
const TARGET: &str = "null";

fn workload(rate: f64, workers: u64, arrivals: &str) -> String {
    format!(
        "[metric]\nname = \"loops\"\n[[component]]\nname = \"loop\"\nprocesses = {workers}\n\
         rate = {rate}\narrivals = \"{arrivals}\"\n[component.mix]\nstat = 100\n\
         [component.files]\ncount = 100\nsize = 0\n"
    )
}

/// Numbers of scheduled and completed operations of a paced load, and delays of their starts.
struct PacedFigures {
    scheduled: u64,
    completed: u64,
    start_delay: Latency,
}

fn plan(rate: u64, workers: u64, arrivals: &str, time: Duration) -> Result<Plan, BenchError> {
    let text = workload(rate as f64 / workers as f64, workers, arrivals);
    let overrides = Overrides {
        dir: Some("/".into()),
        time: Some(time),
        warmup: Some(plimsoll_plan::Warmup::Fixed(time / 5)),
        ..Overrides::default()
    };
    let context = plimsoll_workload::mix::Context {
        kind: SourceKind::File,
        temp_dir: Path::new("/").into(),
    };
    let workload = plimsoll_workload::mix::parse(&text, "benchmark.toml")?;
    Ok(plimsoll_workload::mix::lower(
        &workload, &overrides, &context,
    )?)
}

fn run(
    rate: u64,
    workers: u64,
    arrivals: &str,
    time: Duration,
) -> Result<PacedFigures, BenchError> {
    let plan = plan(rate, workers, arrivals, time)?;
    let settings = Settings {
        target: TARGET.into(),
        ..Settings::default()
    };
    let outcome = plimsoll_engine::run(&plan, &settings, &Stop::default(), &mut SilentObserver)?;
    let sum = |of: fn(&plimsoll_measure::ProcessCounts) -> u64| -> u64 {
        outcome.processes.iter().map(of).sum()
    };
    let start = plan.operations.iter().position(|o| o.kind == OpKind::Start);
    let rows = outcome.windows.last().map(|w| &w.totals.rows);
    let row = start.and_then(|at| rows.and_then(|rows| rows.get(at)));
    let row = row.expect("the Plan of a paced load has a row of starts, which is measured");
    let figures = PacedFigures {
        scheduled: sum(|p| p.counts.scheduled),
        completed: sum(|p| p.counts.completed),
        start_delay: row.service.clone(),
    };
    let expected = rate as f64 * time.as_secs_f64();
    // Random arrivals deviate from the expected number by a few standard deviations at most.
    let tolerance = 5.0 * expected.sqrt() + workers as f64;
    let deviation = (figures.scheduled as f64 - expected).abs();
    let what = format!("pacing of {rate} by {workers}");
    plausible(&what, deviation <= tolerance, || {
        let scheduled = figures.scheduled;
        format!("{scheduled} operations were scheduled instead of {expected}")
    })?;
    Ok(figures)
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let time = bench.time(5000);
    let mut rows = Vec::new();
    for arrivals in ["constant", "poisson"] {
        for rate in RATES {
            for workers in WORKERS {
                let figures = run(rate, workers, arrivals, time)?;
                let workers = counted(workers, "worker", "workers");
                let rate = Count(rate);
                let what = format!("{arrivals} arrivals, {rate} per second on {workers}");
                rows.push(Row::plain(
                    format!("{what}: completed/scheduled"),
                    Unit::Fraction,
                    figures.completed as f64 / figures.scheduled.max(1) as f64,
                    Goal::Within(1.0, TOLERANCE),
                ));
                rows.push(Row::plain(
                    format!("{what}: start delay, 99th percentile"),
                    Unit::Microseconds,
                    figures.start_delay.quantile(0.99) as f64 / 1e3,
                    Goal::None,
                ));
            }
        }
    }
    Ok(rows)
}
