//! What an operation costs when many workers wait for one file.

use super::{Bench, md};
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, run};
use crate::rounds::Figures;
use crate::table::{Goal, Row, Unit};
use plimsoll_engine::ClockKind;
use std::path::Path;
use std::time::Duration;

/// Name of the part that a fresh process does.
pub(crate) const JOB: &str = "waiting";

/// An operation takes a microsecond of virtual time, so that the others have to wait for it.
const TARGET: &str = "null:?latency=1us";

/// Workers that wait, from few to many.
const WAITERS: [u64; 5] = [10, 100, 1000, 10_000, 100_000];

/// Most that an operation may cost with many waiters, over what it costs with the fewest.
const MAX_COST_RATIO: f64 = 2.0;

/// One worker has the file, and the others wait for it.
fn workload(waiters: u64) -> String {
    format!(
        "define fileset name=files, path=/bench, entries=1, dirwidth=1000, size=0, prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={} {{
           flowop statfile name=op, filesetname=files }} }}
         run 1",
        waiters + 1
    )
}

/// Processor time of this process so far, in nanoseconds.
fn processor_time() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

/// Operations of a run of this many microseconds of virtual time, and the processor time it takes.
fn cost(waiters: u64, micros: u64) -> Result<(u64, f64), BenchError> {
    let how = BenchConditions {
        warmup: Duration::ZERO,
        clock: ClockKind::Virtual,
        ..BenchConditions::new(TARGET, Duration::from_micros(micros))
    };
    let before = processor_time();
    let load = run(&workload(waiters), Path::new("/"), &how)?;
    let spent = processor_time() - before;
    plausible(JOB, load.ops.abs_diff(micros) <= 1, || {
        format!(
            "{} operations of 1 µs, one by one, in {micros} µs",
            load.ops
        )
    })?;
    Ok((load.ops, spent))
}

/// What an operation costs by a long run less a short one: what starting and ending so many
/// workers takes is in both.
pub(crate) fn in_child(waiters: u64) -> Result<serde_json::Value, BenchError> {
    let micros = if md::is_quick() { 2000 } else { 2_000_000 };
    let (few, short) = cost(waiters, micros / 20)?;
    let (many, long) = cost(waiters, micros)?;
    let each = (long - short) / (many - few) as f64;
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
    let what = |n: u64| format!("{n} workers wait for one file: processor time of an operation");
    let (fewest, others) = (&figures[0], figures[1..].iter().zip(&waiters[1..]));
    let first = Row::median(what(waiters[0]), Unit::Nanoseconds, fewest, Goal::None);
    let rows = others.map(|(figures, n)| {
        let whose = format!("{} wait", waiters[0]);
        let goal = Goal::AtMost(MAX_COST_RATIO);
        Row::with_reference(what(*n), Unit::Nanoseconds, figures, &whose, fewest, goal)
    });
    Ok(std::iter::once(first).chain(rows).collect())
}
