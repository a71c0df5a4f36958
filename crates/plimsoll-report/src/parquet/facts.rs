//! Cells that identify the run and the window of a row.

use crate::parquet::source::RunSource;
use crate::parquet::table::{Cell, bits, count, real, text, time};
use plimsoll_measure::ClockKind;
use plimsoll_plan::hash::{FNV1A_BASIS, fnv1a};
use plimsoll_results::{Run, Stage};
use std::collections::BTreeMap;

const MICROS_PER_S: f64 = 1e6;

/// Cells that every row of a run begins with, and the run's clock.
pub(crate) struct RunFacts {
    /// First cells of every row of the run: its identifier, results directory, workload, verdict, target and settings.
    pub(crate) cells: Vec<Cell>,
    /// Time of day at second 0 of the run's clock, in microseconds since 1970; `None` for a virtual clock.
    clock_started_us: Option<i64>,
}

impl RunFacts {
    pub(crate) fn of(run: &Run, source: &RunSource) -> Self {
        let us = |time: &str| Some(time.parse::<jiff::Timestamp>().ok()?.as_microsecond());
        let started_us = us(&run.started_at);
        let clock_started_us = run.clock_started_at.as_deref().map_or(started_us, us);
        let cells = vec![
            text("run_id", &*run_id(run)),
            text("results", &*source.results),
            text("results_kind", &*source.kind),
            text("run_path", &*source.run_path),
            time("started_at", started_us),
            text("workload", &*run.workload),
            count("load", source.load),
            text("load_metric", source.load_metric.as_deref()),
            text("profile_filesystem", source.profile_filesystem.as_deref()),
            text("profile_case", source.profile_case.as_deref()),
            text("verdict", &*run.validity.verdict.to_string()),
            text("target", &*run.target.url),
            text("clock", &*run.clock.to_string()),
            bits("seed", run.seed),
            real("scale", run.mix.as_ref().map(|m| m.scale)),
            count("workers", run.workers),
            count("ranks", u64::from(run.ranks)),
            text("host", &*run.environment.host),
            text("program_version", &*run.program.version),
        ];
        Self {
            cells,
            clock_started_us: clock_started_us.filter(|_| run.clock == ClockKind::Real),
        }
    }

    /// Time of day at `clock_s` seconds of the run's clock, in microseconds since 1970; `None` for a virtual clock.
    pub(crate) fn time_us(&self, clock_s: f64) -> Option<i64> {
        let after = (clock_s * MICROS_PER_S).round();
        // `as i64` saturates for a huge `clock_s`, and the checked sum then is `None`.
        self.clock_started_us?.checked_add(after as i64)
    }
}

/// Identifier of a run that does not depend on the place of the results: the FNV-1a hash, as 16 hexadecimal digits, of
/// the run's start time, host, workload, seed and target.
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

/// Cells that identify a measured window, and the time at which the window opened.
pub(super) struct WindowFacts {
    /// Cells of the window: part of the run, window number, stage of a pattern, and iteration of the stage.
    pub(super) cells: [Cell; 4],
    /// Time at which the window opened, in seconds of the run's clock; `None` if the figures of the window were
    /// discarded.
    pub(super) start_s: Option<f64>,
}

impl WindowFacts {
    /// Cells of a window; `part` is `run`, `earlier_window`, `stage`, `rank` or `dropped_window`.
    pub(super) fn new(
        part: &str,
        number: u32,
        stage: Option<&Stage>,
        start_s: Option<f64>,
    ) -> Self {
        let cells = [
            text("part", part),
            count("window_number", u64::from(number)),
            text("stage", stage.map(|s| s.name.as_str())),
            count("iteration", stage.map(|s| u64::from(s.iteration))),
        ];
        Self { cells, start_s }
    }
}

/// Measured windows of a run, by window number.
pub(super) struct Windows(BTreeMap<u32, WindowFacts>);

impl Windows {
    pub(super) fn of(run: &Run) -> Self {
        let mut windows = BTreeMap::new();
        let mut add = |number, part, stage, start_s| {
            let facts = WindowFacts::new(part, number, stage, Some(start_s));
            windows.insert(number, facts);
        };
        for w in &run.earlier_windows {
            add(w.number, "earlier_window", None, w.start_s);
        }
        if run.stages.is_empty() && run.window_number > 0 {
            add(run.window_number, "run", None, run.window_start_s);
        }
        for s in &run.stages {
            add(s.window.number, "stage", Some(s), s.window.start_s);
        }
        Self(windows)
    }

    /// Facts of the measured window `number`. A window that `run.json` lacks is a `dropped_window`: the workload
    /// discarded the window's figures.
    pub(super) fn get(&mut self, number: u32) -> &WindowFacts {
        let dropped = || WindowFacts::new("dropped_window", number, None, None);
        self.0.entry(number).or_insert_with(dropped)
    }
}

/// Level of the stack that a row measures, by the name of the row's operation kind: an operation of the workload, an
/// NFS procedure, or the completion delays of an io_uring ring.
pub(super) fn level(kind: &str) -> &'static str {
    match kind {
        "rpc" => "procedure",
        "completion_delay" => "completion_delay",
        _ => "operation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::OpKind;

    #[test]
    fn kinds_that_no_workload_executes_are_levels_of_their_own() {
        for kind in [OpKind::Rpc, OpKind::CompletionDelay, OpKind::Read] {
            let is_operation = level(&kind.to_string()) == "operation";
            assert_eq!(is_operation, kind.is_of_workload());
        }
    }
}
