//! Parts of the suite that measure the memory of a process, each in a fresh one.

use crate::error::BenchError;
use crate::suite::{Bench, md, md_loop, nfs, planning, reactor, waiting};
use std::process::Command;

/// Does something with a count and reports figures by name.
type ChildJob = fn(u64) -> Result<serde_json::Value, BenchError>;

/// Jobs for a fresh process, by name.
const JOBS: [(&str, ChildJob); 7] = [
    (md::NULL, md::null_in_child),
    (md::FILES, md::files_in_child),
    (md_loop::JOB, md_loop::in_child),
    (nfs::JOB, nfs::in_child),
    (planning::JOB, planning::in_child),
    (reactor::JOB, reactor::in_child),
    (waiting::JOB, waiting::in_child),
];

/// Does a job and prints what it came to.
pub(crate) fn main(job: &str, count: &str) -> Result<(), BenchError> {
    let unknown = |reason: String| BenchError::Program {
        program: "plimsoll-benches",
        reason,
    };
    let (_, work) = JOBS
        .iter()
        .find(|(name, _)| *name == job)
        .ok_or_else(|| unknown(format!("there is no job `{job}`")))?;
    let count = count
        .parse()
        .map_err(|e| unknown(format!("`{count}` is no count: {e}")))?;
    println!("{}", work(count)?);
    Ok(())
}

/// Has a job done by a fresh process of this program, in a directory of its own.
pub(crate) fn run(job: &str, count: u64, bench: &Bench) -> Result<serde_json::Value, BenchError> {
    let fail = |reason: String| BenchError::Program {
        program: "plimsoll-benches --child",
        reason,
    };
    let program = std::env::current_exe().map_err(|e| fail(e.to_string()))?;
    let out = Command::new(program)
        .args(["--child", job, &count.to_string()])
        .envs(md::quick_environment(bench))
        .current_dir(bench.dir(job)?)
        .output()
        .map_err(|e| fail(e.to_string()))?;
    if !out.status.success() {
        return Err(fail(String::from_utf8_lossy(&out.stderr).trim().into()));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| fail(e.to_string()))
}

/// A number that a job printed.
pub(crate) fn number(report: &serde_json::Value, name: &str) -> Result<f64, BenchError> {
    report[name].as_f64().ok_or_else(|| BenchError::Program {
        program: "plimsoll-benches --child",
        reason: format!("no number `{name}` in {report}"),
    })
}

/// Most memory that this process has had resident, in bytes (VmHWM).
pub(crate) fn peak_memory() -> Result<u64, BenchError> {
    let status = procfs::process::Process::myself()?.status()?;
    Ok(status.vmhwm.unwrap_or(0) * 1024)
}
