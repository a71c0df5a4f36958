//! Open loops: whether a rate that is asked for is kept, and how late operations begin.

use super::Bench;
use crate::error::{BenchError, plausible};
use crate::table::{Goal, Row, Unit};
use plimsoll_engine::{Event, Observer, Settings, Stop};
use plimsoll_measure::Latency;
use plimsoll_plan::{Count, OpKind, Overrides, SourceKind, counted};
use std::path::Path;
use std::time::Duration;

/// Operations a second that all workers together are asked for.
const RATES: [u64; 3] = [1_000, 10_000, 50_000];

/// Workers that share them.
const WORKERS: [u64; 3] = [1, 8, 64];

/// Share of what was due that may be missing or too much.
const TOLERANCE: f64 = 0.001;

/// Operations that take no time, so that only pacing is measured.
const TARGET: &str = "null";

struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

fn workload(rate: f64, workers: u64, arrivals: &str) -> String {
    format!(
        "[metric]\nname = \"loops\"\n[[component]]\nname = \"loop\"\nprocesses = {workers}\n\
         rate = {rate}\narrivals = \"{arrivals}\"\n[component.mix]\nstat = 100\n\
         [component.files]\ncount = 100\nsize = 0\n"
    )
}

/// What came of a load: operations due and done, and how late they began.
struct PacedFigures {
    due: u64,
    done: u64,
    late: Latency,
}

fn run(
    rate: u64,
    workers: u64,
    arrivals: &str,
    time: Duration,
) -> Result<PacedFigures, BenchError> {
    let what = format!("pacing of {rate} by {workers}");
    let text = workload(rate as f64 / workers as f64, workers, arrivals);
    let overrides = Overrides {
        dir: Some("/".into()),
        time: Some(time),
        warmup: Some(time / 5),
        ..Overrides::default()
    };
    let context = plimsoll_mix::Context {
        kind: SourceKind::File,
        temp_dir: Path::new("/").into(),
    };
    let workload = plimsoll_mix::parse(&text, "benchmark.toml")?;
    let plan = plimsoll_mix::lower(&workload, &overrides, &context)?;
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
    let kept = PacedFigures {
        due: sum(|p| p.scheduled),
        done: sum(|p| p.completed),
        late: row.map_or_else(Latency::default, |r| r.service.clone()),
    };
    let asked = rate as f64 * time.as_secs_f64();
    // Random arrivals are as many as asked for to within a few deviations.
    let spread = 5.0 * asked.sqrt() + workers as f64;
    plausible(&what, (kept.due as f64 - asked).abs() <= spread, || {
        format!(
            "{} operations were due where {asked} were asked for",
            kept.due
        )
    })?;
    Ok(kept)
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let time = bench.time(5000);
    let mut rows = Vec::new();
    for arrivals in ["constant", "poisson"] {
        for rate in RATES {
            for workers in WORKERS {
                let kept = run(rate, workers, arrivals, time)?;
                let of = counted(workers, "worker", "workers");
                let what = format!("{arrivals} arrivals, {} a second on {of}", Count(rate));
                rows.push(Row::plain(
                    format!("{what}: done of due"),
                    Unit::Share,
                    kept.done as f64 / kept.due.max(1) as f64,
                    Goal::Within(1.0, TOLERANCE),
                ));
                rows.push(Row::plain(
                    format!("{what}: late starts, 99th percentile"),
                    Unit::Microseconds,
                    kept.late.quantile(0.99) as f64 / 1e3,
                    Goal::None,
                ));
            }
        }
    }
    Ok(rows)
}
