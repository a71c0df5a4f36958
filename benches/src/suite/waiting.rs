//! The cost of an operation when many workers wait for one file.

use crate::bench::Bench;
use crate::child::{self, is_quick};
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, run};
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use crate::usage::process_cpu_s;
use std::path::Path;
use std::time::Duration;

/// Name of the job of a fresh process; its count is the number of waiting workers.
pub(crate) const JOB: &str = "waiting";

/// A target on which an operation takes 1 µs of virtual time, during which all other workers wait.
const TARGET: &str = "null:?latency=1us&clock=virtual";

/// Numbers of workers that wait.
const WAITERS: [u64; 5] = [10, 100, 1000, 10_000, 100_000];

/// Maximum ratio of the cost of an operation with many waiters to the cost with the fewest.
const MAX_COST_RATIO: f64 = 2.0;

/// A workload in which one worker holds the file, and all other workers wait for the file.
fn workload(waiters: u64) -> String {
    format!(
        "define fileset name=files, path=/bench, entries=1, dirwidth=1000, size=0, prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={} {{
           flowop statfile name=op, filesetname=files }} }}
         run 1",
        waiters + 1
    )
}

/// Operations of a run of `micros` microseconds of virtual time, and its processor time in seconds.
fn cost(waiters: u64, micros: u64) -> Result<(u64, f64), BenchError> {
    let how = BenchConditions {
        warmup: Duration::ZERO,
        ..BenchConditions::new(TARGET, Duration::from_micros(micros))
    };
    let before = process_cpu_s();
    let load = run(&workload(waiters), Path::new("/"), &how)?;
    let spent = process_cpu_s() - before;
    plausible(JOB, load.ops.abs_diff(micros) <= 1, || {
        format!(
            "{} operations of 1 µs, one by one, in {micros} µs",
            load.ops
        )
    })?;
    Ok((load.ops, spent))
}

/// The cost of an operation: the difference of a long and a short run, which excludes the cost of
/// starting and ending the workers.
pub(crate) fn in_child(waiters: u64) -> Result<serde_json::Value, BenchError> {
    let micros = if is_quick() { 2000 } else { 2_000_000 };
    let (few, short) = cost(waiters, micros / 20)?;
    let (many, long) = cost(waiters, micros)?;
    let each = (long - short) * 1e9 / (many - few) as f64;
    Ok(serde_json::json!({ "ns": each }))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let waiters = &WAITERS[..bench.pick(WAITERS.len(), 3)];
    let mut figures = vec![Vec::new(); waiters.len()];
    for _ in 0..bench.rounds() {
        for (waiters, figures) in waiters.iter().zip(&mut figures) {
            let report = child::run(JOB, *waiters, bench)?;
            figures.push(child::number(&report, "ns")?);
        }
    }
    let figures: Vec<Figures> = figures.into_iter().map(Figures::new).collect();
    let what = |n: u64| format!("{n} workers wait for one file: processor time per operation");
    let (fewest, others) = (&figures[0], figures[1..].iter().zip(&waiters[1..]));
    let first = Row::median(what(waiters[0]), Unit::Nanoseconds, fewest, Goal::None);
    let rows = others.map(|(figures, n)| {
        let name = format!("{} wait", waiters[0]);
        let goal = Goal::AtMost(MAX_COST_RATIO);
        Row::with_reference(what(*n), Unit::Nanoseconds, figures, &name, fewest, goal)
    });
    Ok(std::iter::once(first).chain(rows).collect())
}
