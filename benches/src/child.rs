//! Fresh processes of this program, for benchmarks that measure the memory of a process.

use crate::bench::Bench;
use crate::error::BenchError;
use std::process::Command;

/// Environment variable that marks a process of a quick run.
const QUICK: &str = "PLIMSOLL_BENCH_QUICK";

/// Whether this process is part of a quick run.
pub(crate) fn is_quick() -> bool {
    std::env::var_os(QUICK).is_some()
}

/// Runs a job in a fresh process of this program, in a directory of its own; returns its figures.
pub(crate) fn run(job: &str, count: u64, bench: &Bench) -> Result<serde_json::Value, BenchError> {
    let fail = |reason: String| BenchError::Program {
        program: "plimsoll-benches --child",
        reason,
    };
    let program = std::env::current_exe().map_err(|e| fail(e.to_string()))?;
    let out = Command::new(program)
        .args(["--child", job, &count.to_string()])
        .envs(bench.quick.then_some((QUICK, "1")))
        .current_dir(bench.dir(job)?)
        .output()
        .map_err(|e| fail(e.to_string()))?;
    if !out.status.success() {
        return Err(fail(String::from_utf8_lossy(&out.stderr).trim().into()));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| fail(e.to_string()))
}

/// Takes the figure `name` from the JSON object that a job printed.
pub(crate) fn number(report: &serde_json::Value, name: &str) -> Result<f64, BenchError> {
    report[name].as_f64().ok_or_else(|| BenchError::Program {
        program: "plimsoll-benches --child",
        reason: format!("no number `{name}` in {report}"),
    })
}

/// Bytes by which the process of a job grows per worker beyond the first hundred.
pub(crate) fn memory_per_worker(job: &str, workers: u64, bench: &Bench) -> Result<f64, BenchError> {
    const FEW: u64 = 100;
    let peak = |workers| number(&run(job, workers, bench)?, "bytes");
    Ok((peak(workers)? - peak(FEW)?) / (workers - FEW) as f64)
}
