//! Columns that identify the run of a row.

use crate::parquet::source::RunSource;
use crate::parquet::table::{Cell, Column, column};
use plimsoll_diagnostics::foreign;
use plimsoll_measure::ClockKind;
use plimsoll_plan::hash::{FNV1A_BASIS, fnv1a};
use plimsoll_results::Run;
use std::sync::Arc;

const MICROS_PER_S: f64 = 1e6;

/// Facts about a run, which every row of the run contains.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFacts {
    /// Identifier of the run wherever its results are: 16 hexadecimal digits, the FNV-1a hash of its start, host,
    /// workload, seed and target.
    pub run_id: String,
    /// Location of the run's results, and the results that contain them.
    pub source: RunSource,
    /// Start of the run, in microseconds since 1970; `None` if the results do not state a start.
    pub started_us: Option<i64>,
    /// Start of the run's clock, in microseconds since 1970; the start of the run if the results do not state it.
    pub clock_started_us: Option<i64>,
    /// Name of the workload.
    pub workload: String,
    /// Verdict of the run, as in `run.json`.
    pub verdict: String,
    /// Target as given on the command line.
    pub target: String,
    /// Clock of the run.
    pub clock: ClockKind,
    /// Seed: the root of all random choices.
    pub seed: u64,
    /// Fraction of the full data and rates; `None` without an operation mix.
    pub scale: Option<f64>,
    /// Number of workers.
    pub workers: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Name of the host.
    pub host: String,
    /// Version of the program that made the run.
    pub program_version: String,
}

impl RunFacts {
    /// The facts of a run.
    #[must_use]
    pub fn of(run: &Run, source: &RunSource) -> Self {
        let text = |text: &str| foreign::escaped(text).into_owned();
        let us = |time: &str| Some(time.parse::<jiff::Timestamp>().ok()?.as_microsecond());
        let started_us = us(&run.started_at);
        Self {
            run_id: run_id(run),
            source: source.clone(),
            started_us,
            clock_started_us: run.clock_started_at.as_deref().map_or(started_us, us),
            workload: text(&run.workload),
            verdict: run.validity.verdict.to_string(),
            target: text(&run.target.url),
            clock: run.clock,
            seed: run.seed,
            scale: run.mix.as_ref().map(|m| m.scale),
            workers: run.workers,
            ranks: run.ranks,
            host: text(&run.environment.host),
            program_version: text(&run.program.version),
        }
    }

    /// Time of day at `clock_s` seconds of the run's clock, in microseconds since 1970; `None` for a virtual clock.
    pub(crate) fn time_us(&self, clock_s: f64) -> Option<i64> {
        let started = self
            .clock_started_us
            .filter(|_| self.clock == ClockKind::Real)?;
        let after = (clock_s * MICROS_PER_S).round();
        // The conversion from a float saturates, and the sum must not overflow.
        started.checked_add(after as i64)
    }
}

fn run_id(run: &Run) -> String {
    let parts = [
        run.started_at.as_str(),
        &run.environment.host,
        &run.workload,
        &run.seed.to_string(),
        &run.target.url,
    ];
    let bytes = parts.iter().flat_map(|p| p.bytes().chain([0]));
    format!("{:016x}", bytes.fold(FNV1A_BASIS, fnv1a))
}

/// A row that belongs to a run.
pub(crate) trait OfRun {
    /// The facts of the row's run.
    fn run(&self) -> &Arc<RunFacts>;
}

/// Name of a clock.
fn clock_name(clock: ClockKind) -> &'static str {
    match clock {
        ClockKind::Real => "real",
        ClockKind::Virtual => "virtual",
    }
}

/// Columns of the run, the first columns of every table.
pub(crate) fn columns<R: OfRun>() -> Vec<Column<R>> {
    vec![
        column("run_id", Cell::Text(|r: &R| Some(&r.run().run_id))),
        column("results", Cell::Text(|r| Some(&r.run().source.results))),
        column("results_kind", Cell::Text(|r| Some(&r.run().source.kind))),
        column("run_path", Cell::Text(|r| Some(&r.run().source.run_path))),
        column("started_at", Cell::Time(|r| r.run().started_us)),
        column("workload", Cell::Text(|r| Some(&r.run().workload))),
        column("load", Cell::Count(|r| r.run().source.load)),
        column(
            "load_metric",
            Cell::Text(|r| r.run().source.load_metric.as_deref()),
        ),
        column(
            "profile_filesystem",
            Cell::Text(|r| r.run().source.profile_filesystem.as_deref()),
        ),
        column(
            "profile_case",
            Cell::Text(|r| r.run().source.profile_case.as_deref()),
        ),
        column("verdict", Cell::Text(|r| Some(&r.run().verdict))),
        column("target", Cell::Text(|r| Some(&r.run().target))),
        column("clock", Cell::Text(|r| Some(clock_name(r.run().clock)))),
        column("seed", Cell::Unsigned(|r| Some(r.run().seed))),
        column("scale", Cell::Real(|r| r.run().scale)),
        column("workers", Cell::Count(|r| Some(r.run().workers))),
        column("ranks", Cell::Count(|r| Some(u64::from(r.run().ranks)))),
        column("host", Cell::Text(|r| Some(&r.run().host))),
        column(
            "program_version",
            Cell::Text(|r| Some(&r.run().program_version)),
        ),
    ]
}
