//! Thousands of workers on two threads, in real and in virtual time.

use super::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, Load, run};
use crate::table::{Goal, Row, Unit};
use plimsoll_engine::ClockKind;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the part that a fresh process does.
pub(crate) const JOB: &str = "reactor";

const TARGET: &str = "null:?latency=10ms";

/// Operations a second of a worker that waits 10 ms for each.
const OPS_PER_WORKER_PER_S: f64 = 100.0;

const WORKERS: u64 = 5000;

/// Nothing is written, so no directory is needed.
const UNUSED_DIR: &str = "/";

/// A file for each worker: opening the same one, they would wait for each other.
fn workload(workers: u64) -> String {
    format!(
        "define fileset name=files, path=/bench, entries={workers}, dirwidth=1000, size=1024t,
                        prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={workers} {{
           flowop read name=op, filesetname=files, iosize=4k }} }}
         run 1"
    )
}

fn load(workers: u64, time: Duration, clock: ClockKind) -> Result<Load, BenchError> {
    let how = BenchConditions {
        warmup: Duration::from_millis(500),
        clock,
        lanes: (clock == ClockKind::Real).then_some(2),
        ..BenchConditions::new(TARGET, time)
    };
    run(&workload(workers), Path::new(UNUSED_DIR), &how)
}

/// Peak memory of a process in which this many workers have run for half a second.
pub(crate) fn in_child(workers: u64) -> Result<serde_json::Value, BenchError> {
    let load = load(workers, Duration::from_millis(500), ClockKind::Real)?;
    Ok(serde_json::json!({ "bytes": child::peak_memory()?, "ops": load.ops }))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let workers = bench.pick(WORKERS, 500);
    let what = format!("{workers} workers on 2 lanes, null target of 10 ms latency");
    let real = load(workers, bench.time(5000), ClockKind::Real)?;
    let most = workers as f64 * OPS_PER_WORKER_PER_S * real.seconds;
    // A worker may complete one operation more than fits its time, never fewer than a tenth.
    let ops = real.ops as f64;
    plausible(
        "reactor",
        ops <= most + workers as f64 && ops >= most / 10.0,
        || format!("{ops} operations where {most} fit"),
    )?;
    let seconds = bench.pick(60, 2);
    let begin = Instant::now();
    let simulated = load(workers, Duration::from_secs(seconds), ClockKind::Virtual)?;
    let wall = begin.elapsed().as_secs_f64();
    let exact = workers as f64 * OPS_PER_WORKER_PER_S * seconds as f64;
    plausible(
        "virtual",
        (simulated.ops as f64 - exact).abs() <= workers as f64,
        || format!("{} operations instead of {exact}", simulated.ops),
    )?;
    Ok(vec![
        Row::plain(
            format!("{what}: operations"),
            Unit::PerSecond,
            real.ops_per_s(),
            Goal::Within(workers as f64 * OPS_PER_WORKER_PER_S, 0.01),
        ),
        Row::plain(
            format!("{what}: memory of a worker"),
            Unit::Bytes,
            memory_of_a_worker(bench, workers)?,
            Goal::AtMost(4096.0),
        ),
        Row::plain(
            format!("{what}: {seconds} s in virtual time take"),
            Unit::Seconds,
            wall,
            Goal::None,
        ),
    ])
}

/// Bytes that a process grows by with each worker beyond the first hundred.
fn memory_of_a_worker(bench: &Bench, workers: u64) -> Result<f64, BenchError> {
    const FEW: u64 = 100;
    let peak = |workers| {
        let report = child::run(JOB, workers, bench)?;
        let ops = child::number(&report, "ops")?;
        plausible("memory of a worker", ops >= workers as f64, || {
            format!("{workers} workers did {ops} operations")
        })?;
        child::number(&report, "bytes")
    };
    Ok((peak(workers)? - peak(FEW)?) / (workers - FEW) as f64)
}
