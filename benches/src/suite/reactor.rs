//! Thousands of workers on two threads, in real and in virtual time.

use crate::bench::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::{BenchConditions, Load, run};
use crate::table::{Goal, Row, Unit};
use crate::usage::peak_memory;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the job of a fresh process; its count is the number of workers.
pub(crate) const JOB: &str = "reactor";

const REAL: &str = "null:?latency=10ms&lanes=2";

const VIRTUAL: &str = "null:?latency=10ms&clock=virtual";

/// Operations per second of a worker that waits 10 ms for each.
const OPS_PER_WORKER_PER_S: f64 = 100.0;

const WORKERS: u64 = 5000;

/// The null target writes nothing, so no directory is needed.
const UNUSED_DIR: &str = "/";

/// A workload with a file for each worker, because workers that open the same file wait for each other.
fn workload(workers: u64) -> String {
    format!(
        "define fileset name=files, path=/bench, entries={workers}, dirwidth=1000, size=1024t,
                        prealloc
         define process name=p {{ thread name=t, memsize=4k, instances={workers} {{
           flowop read name=op, filesetname=files, iosize=4k }} }}
         run 1"
    )
}

fn load(workers: u64, time: Duration, target: &str) -> Result<Load, BenchError> {
    let how = BenchConditions {
        warmup: Duration::from_millis(500),
        ..BenchConditions::new(target, time)
    };
    run(&workload(workers), Path::new(UNUSED_DIR), &how)
}

/// Peak memory in bytes of a process in which `workers` workers have run for half a second.
pub(crate) fn in_child(workers: u64) -> Result<serde_json::Value, BenchError> {
    let ops = load(workers, Duration::from_millis(500), REAL)?.ops;
    plausible("memory per worker", ops >= workers, || {
        format!("{workers} workers completed {ops} operations")
    })?;
    Ok(serde_json::json!({ "bytes": peak_memory()? }))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let workers = bench.pick(WORKERS, 500);
    let what = format!("{workers} workers on 2 lanes, null target of 10 ms latency");
    let real = load(workers, bench.time(5000), REAL)?;
    let exact = workers as f64 * OPS_PER_WORKER_PER_S * real.seconds;
    // Each worker may complete one operation more, and the workers complete at least a tenth of the expected number.
    let ops = real.ops as f64;
    plausible(
        "reactor",
        ops <= exact + workers as f64 && ops >= exact / 10.0,
        || format!("{ops} operations instead of {exact}"),
    )?;
    let seconds = bench.pick(60, 2);
    let begin = Instant::now();
    let simulated = load(workers, Duration::from_secs(seconds), VIRTUAL)?;
    let wall = begin.elapsed().as_secs_f64();
    let exact = workers as f64 * OPS_PER_WORKER_PER_S * seconds as f64;
    plausible(
        "virtual",
        (simulated.ops as f64 - exact).abs() <= workers as f64,
        || format!("{} operations instead of {exact}", simulated.ops),
    )?;
    Ok(vec![
        Row::plain(
            format!("{what}: operations per second"),
            Unit::PerSecond,
            real.ops_per_s(),
            Goal::Within(workers as f64 * OPS_PER_WORKER_PER_S, 0.01),
        ),
        Row::plain(
            format!("{what}: memory per worker"),
            Unit::Bytes,
            child::memory_per_worker(JOB, workers, bench)?,
            Goal::AtMost(4096.0),
        ),
        Row::plain(
            format!("{what}: time to simulate {seconds} s"),
            Unit::Seconds,
            wall,
            Goal::None,
        ),
    ])
}
