//! The points of a curve: measured one after the other by this process, or ahead of their turn.

use super::CurveAbort;
use super::point_processes::{LostPoint, PointProcesses};
use crate::console;
use crate::load_runner::LoadRunner;
use plimsoll_engine::Stop;
use plimsoll_plan::Reason;
use plimsoll_results::{CurvePoint, CurveWriter, Removal, RunDir, Verdict};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum time after which a signal to a group of processes has reached this one as well.
const GROUP_SIGNAL_TIMEOUT: Duration = Duration::from_millis(500);

/// Interval at which it checks whether it has.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How the measuring of a point ended.
pub(super) enum PointEnd {
    /// With a run, whatever its verdict; and notes on it.
    Measured(Box<CurvePoint>, Vec<String>),
    /// With a run that an earlier process had measured.
    MeasuredBefore(Box<CurvePoint>),
    /// The user ended it before there was a run.
    Interrupted,
    /// Its process ended without a run.
    Lost(Reason),
}

/// What becomes of runs that were measured ahead when the curve ends before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// They stay, for the curve can be resumed.
    Kept,
    /// Those that were measured to their end stay.
    KeptIfComplete,
    /// They go: the curve is the same as without them.
    Removed,
}

/// Where the points of a curve come from.
pub(super) struct Points {
    /// Points that an earlier process measured before those below them.
    earlier: BTreeMap<u64, CurvePoint>,
    /// The other loads that are missing, when the curve begins or is resumed.
    left: Vec<u64>,
    /// Number of points that are measured at a time.
    jobs: usize,
    /// Processes that measure several at a time.
    processes: Option<PointProcesses>,
}

impl Points {
    /// The points that are missing, of which at most `jobs` are measured at a time.
    pub(super) fn new(runner: &LoadRunner<'_>, writer: &CurveWriter, jobs: usize) -> Self {
        let missing = writer.document().missing();
        let unlisted = missing
            .iter()
            .filter_map(|load| writer.unlisted_point(*load));
        let earlier: BTreeMap<u64, CurvePoint> = unlisted.map(|p| (p.load, p)).collect();
        let left: Vec<u64> = missing
            .into_iter()
            .filter(|load| !earlier.contains_key(load))
            .collect();
        let jobs = jobs.min(left.len());
        let per_rank = runner.output.per_rank;
        let dir = writer.dir().path();
        Self {
            processes: (jobs > 1).then(|| PointProcesses::new(dir, jobs, per_rank, left.clone())),
            earlier,
            left,
            jobs,
        }
    }

    /// The loads that are measured if no rule ends the curve.
    pub(super) fn left(&self) -> &[u64] {
        &self.left
    }

    /// Number of points that are measured at a time.
    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    /// The point with this load, once it is measured. Points are requested in increasing order.
    pub(super) fn measure(
        &mut self,
        load: u64,
        runner: &mut LoadRunner<'_>,
        writer: &CurveWriter,
    ) -> Result<PointEnd, CurveAbort> {
        if let Some(point) = self.earlier.remove(&load) {
            runner.runs += 1;
            return Ok(PointEnd::MeasuredBefore(Box::new(point)));
        }
        let Some(processes) = &mut self.processes else {
            let measured = runner
                .measure(load, |plan, started, clock| {
                    writer.point(load, plan, started, clock)
                })
                .map_err(CurveAbort::Refused)?;
            let point = CurvePoint::of(&measured.run, load, &measured.dir?.name());
            return Ok(PointEnd::Measured(Box::new(point), measured.notes));
        };
        match processes.measure(load, runner) {
            Ok(name) => {
                let run = writer.run_named(&name).read()?;
                runner.used = true;
                if run.validity.verdict == Verdict::Interrupted && !is_stopped(runner.stop) {
                    return Ok(terminated(load));
                }
                let point = CurvePoint::of(&run, load, &name);
                Ok(PointEnd::Measured(Box::new(point), vec![]))
            }
            Err(LostPoint::Interrupted) => Ok(PointEnd::Interrupted),
            Err(LostPoint::Terminated) if is_stopped(runner.stop) => Ok(PointEnd::Interrupted),
            Err(LostPoint::Terminated) => Ok(terminated(load)),
            Err(LostPoint::Refused(error)) => Err(CurveAbort::Refused(error)),
            Err(LostPoint::Died(text)) => Ok(PointEnd::Lost(Reason::new("failed", text))),
        }
    }

    /// Ends the processes. What they measured ahead, and the curve did not come to, has this fate; what an
    /// earlier process measured stays in any case. Returns sentences about what stays.
    pub(super) fn end(self, writer: &CurveWriter, fate: Fate) -> Vec<String> {
        let ahead = self.processes.map_or_else(Vec::new, PointProcesses::end);
        let runs = ahead.iter().map(|name| writer.run_named(name));
        let goes = |run: &RunDir| match fate {
            Fate::Kept => false,
            Fate::KeptIfComplete => !is_complete(run),
            Fate::Removed => true,
        };
        let mut texts = Vec::new();
        for run in runs.filter(goes) {
            if let Err(e) = Removal::of(run.path()).and_then(Removal::execute) {
                texts.push(format!("a point beyond the end of the curve stays: {e}"));
            }
        }
        if fate == Fate::Removed {
            let runs: Vec<&str> = self.earlier.values().map(|p| p.run.as_str()).collect();
            let (what, verb) = match runs[..] {
                [] => return texts,
                [_] => ("was", "stays"),
                _ => ("were", "stay"),
            };
            texts.push(format!(
                "beyond the end of the curve, {} {what} measured by an earlier process and {verb}",
                runs.join(", ")
            ));
        }
        texts
    }
}

/// The end of a point whose process was terminated by itself, for instance because memory was short.
fn terminated(load: u64) -> PointEnd {
    let text = format!("load {load}: the process that measures it was terminated");
    console::err(&format!("error: {text}\n"));
    PointEnd::Lost(Reason::new("failed", text))
}

/// Whether the user ends the curve too. A signal to a group of processes may reach this one after the
/// process of a point.
fn is_stopped(stop: &Stop) -> bool {
    let begun = Instant::now();
    while !stop.is_requested() && begun.elapsed() < GROUP_SIGNAL_TIMEOUT {
        std::thread::sleep(STOP_POLL_INTERVAL);
    }
    stop.is_requested()
}

/// Whether a run was measured to its end.
fn is_complete(run: &RunDir) -> bool {
    run.read()
        .is_ok_and(|run| matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid))
}
