//! The metadata pattern: what a rank does on nothing, and on a tmpfs beside the system calls that
//! MD-Workbench makes.

use super::{Bench, md_loop};
use crate::child;
use crate::error::{BenchError, plausible};
use crate::rounds::{Contender, Figures, interleave};
use crate::table::{Goal, Row, Unit};
use clap::Parser;
use plimsoll_engine::{Event, Observer, Outcome, Settings, Stop};
use plimsoll_md::{Arguments, Options};
use std::path::Path;

/// Name of the job of a rank on the null target; its count is the rounds of an iteration.
pub(crate) const NULL: &str = "md-null";

/// Name of the job on files; its count is the ranks.
pub(crate) const FILES: &str = "md-files";

/// Rounds of a quick run on files.
const QUICK: &str = "PLIMSOLL_BENCH_QUICK";

/// Operations a second of a rank of MD-Workbench's own null interface, on the machine that Plimsoll
/// was first measured on.
const DUMMY: f64 = 5.8e6;

/// Iterations of the benchmark phase.
const ITERATIONS: u64 = 5;

/// How much a rank does on files.
pub(crate) struct Size {
    /// Objects of a set before the first iteration.
    pub(crate) precreated: u64,
    /// Rounds of an iteration.
    pub(crate) rounds: u64,
    /// Iterations.
    pub(crate) iterations: u64,
}

/// Whether this process does its part of a quick run.
pub(crate) fn is_quick() -> bool {
    std::env::var_os(QUICK).is_some()
}

/// How much a rank does on files in this process.
pub(crate) fn size() -> Size {
    let each = if is_quick() { 20 } else { 3000 };
    Size {
        precreated: each,
        rounds: each,
        iterations: ITERATIONS,
    }
}

/// The arguments of `plimsoll md`.
#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    arguments: Arguments,
}

/// Hears nothing.
struct SilentObserver;

impl Observer for SilentObserver {
    fn event(&mut self, _: Event<'_>) {}
}

/// Runs `plimsoll md` with these arguments in as many processes, and gives what rank 0 has.
fn run(arguments: &[&str], ranks: u32) -> Result<Outcome, BenchError> {
    let wrong = |reason: String| BenchError::Implausible {
        what: "md".into(),
        reason,
    };
    let all = std::iter::once("md").chain(arguments.iter().copied());
    let parsed = CommandLine::try_parse_from(all).map_err(|e| wrong(e.to_string()))?;
    let options = Options::new(&parsed.arguments).map_err(wrong)?;
    let joined = plimsoll_ranks::connect(Some(ranks)).map_err(|e| wrong(e.to_string()))?;
    let plan = plimsoll_md::lower(&options, ranks, None).map_err(wrong)?;
    let settings = Settings {
        target: options.target.clone(),
        ..Settings::default()
    };
    let outcome = plimsoll_engine::run_ranks(
        &plan,
        &settings,
        &Stop::default(),
        &mut SilentObserver,
        &*joined,
    )?;
    match outcome.reasons.first() {
        Some(reason) => Err(wrong(reason.text.clone())),
        None => Ok(outcome),
    }
}

/// Operations a second of each iteration of the benchmark phase, by the slowest rank: the stages
/// between the first and the last.
fn rates(outcome: &Outcome) -> Vec<f64> {
    let last = outcome.stages.len().saturating_sub(1);
    let benchmark = outcome.stages.iter().zip(&outcome.windows);
    benchmark
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
    let rounds_asked = format!("-I={rounds}");
    let outcome = run(
        &[
            "-i=dummy",
            "-P=1000",
            &format!("-R={ITERATIONS}"),
            &rounds_asked,
        ],
        1,
    )?;
    let (rates, bytes) = (rates(&outcome), child::peak_memory()?);
    Ok(serde_json::json!({ "rates": rates, "bytes": bytes }))
}

/// Ranks on files below the current directory.
pub(crate) fn files_in_child(ranks: u64) -> Result<serde_json::Value, BenchError> {
    let here = Path::new(".");
    let io = |e| BenchError::io("make a directory in", here, e);
    // Processes of one run share it: the first makes it, by its own name for it.
    let dir = std::env::current_dir().map_err(io)?.join("md");
    let dir = format!("--dir={}", dir.display());
    let size = size();
    let arguments = [
        dir,
        format!("-P={}", size.precreated),
        format!("-I={}", size.rounds),
        format!("-R={}", size.iterations),
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
            "metadata pattern, null target, 1 rank: operations",
            Unit::PerSecond,
            &figures(&null)?,
            Goal::AtLeast(2.0 * DUMMY),
        ),
        Row::plain(
            "metadata pattern: memory of rank 0 grows, with ten times the operations, by",
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
            format!("metadata pattern on tmpfs, {ranks} rank{plural}: operations"),
            Unit::PerSecond,
            &figures[0],
            "hand-written loop",
            &figures[1],
            Goal::AtLeast(0.95),
        ));
    }
    Ok(rows)
}

/// Operations a second of as many hand-written loops at once, each in a process of its own, as
/// ranks are.
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

/// Makes a job on files a quick one.
pub(crate) fn quick_environment(bench: &Bench) -> Option<(&'static str, &'static str)> {
    bench.quick.then_some((QUICK, "1"))
}
