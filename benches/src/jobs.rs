//! Jobs that fresh processes execute for the suite.

use crate::error::BenchError;
use crate::suite::{live, md, md_loop, nfs, planning, reactor, waiting};

/// A job: measures for a count, and returns figures by name as JSON.
type Job = fn(u64) -> Result<serde_json::Value, BenchError>;

/// All jobs, each with its name on the command line of a fresh process.
const JOBS: [(&str, Job); 9] = [
    (live::JOB, live::in_child),
    (md::NULL, md::null_in_child),
    (md::FILES, md::files_in_child),
    (md_loop::JOB, md_loop::in_child),
    (nfs::JOB, nfs::in_child),
    (planning::JOB, planning::in_child),
    (planning::FORMULA_JOB, planning::formulas_in_child),
    (reactor::JOB, reactor::in_child),
    (waiting::JOB, waiting::in_child),
];

/// Does a job and prints its figures.
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
        .map_err(|e| unknown(format!("`{count}` is not a count: {e}")))?;
    println!("{}", work(count)?);
    Ok(())
}
