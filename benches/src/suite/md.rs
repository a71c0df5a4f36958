//! The metadata pattern: a rank on the null target, and on a tmpfs compared with the system calls of
//! MD-Workbench.

use super::md_loop;
use super::md_loop::{ITERATIONS, size};
use crate::bench::Bench;
use crate::child;
use crate::error::{BenchError, plausible};
use crate::load::SilentObserver;
use crate::rounds::{Contender, Figures, interleave};
use crate::table::{Goal, Row, Unit};
use crate::usage::peak_memory;
use clap::Parser;
use plimsoll_engine::{Outcome, Settings, Stop};
use plimsoll_workload::md::{Arguments, Options};
use std::path::Path;

/// Name of the job of a rank on the null target; its count is the number of rounds of an iteration.
pub(crate) const NULL: &str = "md-null";

/// Name of the job on files; its count is the number of ranks.
pub(crate) const FILES: &str = "md-files";

/// Operations per second of a rank of MD-Workbench's own null interface, measured on the machine of Plimsoll's first
/// measurements.
const DUMMY: f64 = 5.8e6;

/// The arguments of `plimsoll md`.
#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

/// Runs `plimsoll md` with `arguments` in `ranks` processes, and returns the outcome of rank 0.
fn run(arguments: &[&str], ranks: u32) -> Result<Outcome, BenchError> {
    let wrong = |reason: String| BenchError::implausible("md", reason);
    let all = std::iter::once("md").chain(arguments.iter().copied());
    let parsed = CommandLine::try_parse_from(all).map_err(|e| wrong(e.to_string()))?;
    let options = Options::new(&parsed.arguments).map_err(wrong)?;
    let joined = plimsoll_ranks::connect(Some(ranks), None).map_err(|e| wrong(e.to_string()))?;
    let plan = plimsoll_workload::md::lower(&options, ranks, None).map_err(wrong)?;
    let settings = Settings {
        target: options.target.clone(),
        ..Settings::default()
    };
    let outcome = plimsoll_engine::run_ranks(
        &plan,
        &settings,
        &Stop::default(),
        &mut SilentObserver,
        &joined,
    )?;
    match outcome.reasons.first() {
        Some(reason) => Err(wrong(reason.text.clone())),
        None => Ok(outcome),
    }
}

/// Operations per second of each iteration of the benchmark phase, by the slowest rank. The first and the last stage do
/// not belong to the benchmark phase.
fn rates(outcome: &Outcome) -> Vec<f64> {
    let last = outcome.stages.len().saturating_sub(1);
    let stages = outcome.stages.iter().zip(&outcome.windows);
    stages
        .take(last)
        .skip(1)
        .map(|(stage, window)| {
            let ops: u64 = window.totals.rows.iter().map(|r| r.ops).sum();
            let slowest = stage.ranks.iter().map(|r| r.time_ns).max().unwrap_or(0);
            ops as f64 * 1e9 / slowest.max(1) as f64
        })
        .collect()
}

/// A rank on the null target.
pub(crate) fn null_in_child(rounds: u64) -> Result<serde_json::Value, BenchError> {
    let (iterations, rounds) = (format!("-R={ITERATIONS}"), format!("-I={rounds}"));
    let outcome = run(&["-i=dummy", "-P=1000", &iterations, &rounds], 1)?;
    let (rates, bytes) = (rates(&outcome), peak_memory()?);
    Ok(serde_json::json!({ "rates": rates, "bytes": bytes }))
}

/// Ranks on files below the current directory.
pub(crate) fn files_in_child(ranks: u64) -> Result<serde_json::Value, BenchError> {
    let here = Path::new(".");
    let io = |e| BenchError::io("create a directory in", here, e);
    // The processes of a run share the directory, which the first process creates.
    let dir = std::env::current_dir().map_err(io)?.join("md");
    let dir = format!("--dir={}", dir.display());
    let size = size();
    let arguments = [
        dir,
        format!("-P={}", size.precreated),
        format!("-I={}", size.rounds),
        format!("-R={ITERATIONS}"),
    ];
    let outcome = run(&arguments.each_ref().map(String::as_str), ranks as u32)?;
    Ok(serde_json::json!({ "rates": rates(&outcome) }))
}

fn figures(report: &serde_json::Value) -> Result<Figures, BenchError> {
    let rates = report["rates"].as_array();
    let rates: Vec<f64> = rates.map_or_else(Vec::new, |r| {
        r.iter().filter_map(serde_json::Value::as_f64).collect()
    });
    plausible("md", rates.len() as u64 == ITERATIONS, || {
        format!("five iterations in {report}")
    })?;
    Ok(Figures::new(rates))
}

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Row>, BenchError> {
    let few = bench.pick(100_000, 100);
    let null = child::run(NULL, few, bench)?;
    let many = child::run(NULL, 10 * few, bench)?;
    let grown = child::number(&many, "bytes")? - child::number(&null, "bytes")?;
    let mut rows = vec![
        Row::median(
            "metadata pattern, null target, 1 rank: operations per second",
            Unit::PerSecond,
            &figures(&null)?,
            Goal::AtLeast(2.0 * DUMMY),
        ),
        Row::plain(
            "metadata pattern: growth of rank 0's memory with ten times the operations",
            Unit::Mebibytes,
            grown.max(0.0) / f64::from(1 << 20),
            Goal::AtMost(2.0),
        ),
    ];
    for ranks in [1, 2] {
        let contenders: Vec<Contender<'_>> = vec![
            Box::new(|| Ok(figures(&child::run(FILES, ranks, bench)?)?.median())),
            Box::new(|| plain_loop(ranks, bench)),
        ];
        let figures = interleave(bench.rounds(), contenders)?;
        let plural = if ranks == 1 { "" } else { "s" };
        rows.push(Row::with_reference(
            format!("metadata pattern on tmpfs, {ranks} rank{plural}: operations per second"),
            Unit::PerSecond,
            &figures[0],
            "minimal loop",
            &figures[1],
            Goal::AtLeast(0.95),
        ));
    }
    Ok(rows)
}

/// Operations per second of `ranks` concurrent minimal loops, each in a process of its own.
fn plain_loop(ranks: u64, bench: &Bench) -> Result<f64, BenchError> {
    let reports: Vec<_> = std::thread::scope(|scope| {
        let loops: Vec<_> = (0..ranks)
            .map(|n| scope.spawn(move || child::run(md_loop::JOB, n, bench)))
            .collect();
        loops
            .into_iter()
            .map(|l| l.join().unwrap_or_else(|p| std::panic::resume_unwind(p)))
            .collect()
    });
    let mut sum = 0.0;
    for report in reports {
        sum += figures(&report?)?.median();
    }
    Ok(sum)
}
