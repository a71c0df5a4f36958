//! The points of a curve: measured one after the other by this process, or ahead of their turn.

use super::CurveAbort;
use super::point_processes::{LostPoint, PointProcesses};
use crate::load_runner::LoadRunner;
use plimsoll_plan::Reason;
use plimsoll_results::{CurvePoint, CurveState, CurveWriter, Removal, RunDir, Verdict};
use std::collections::BTreeMap;

/// How the measuring of a point ended.
pub(super) enum PointEnd {
    /// With a run, whatever its verdict; and notes on it.
    Measured(Box<CurvePoint>, Vec<String>),
    /// The user ended it before there was a run.
    Interrupted,
    /// Its process ended without a run.
    Lost(Reason),
}

/// Where the points of a curve come from.
pub(super) struct Points {
    /// Points that an earlier process measured before those below them.
    earlier: BTreeMap<u64, CurvePoint>,
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
            processes: (jobs > 1).then(|| PointProcesses::new(dir, jobs, per_rank, left)),
            earlier,
        }
    }

    /// The point with this load, once it is measured. Points are requested in increasing order.
    pub(super) fn measure(
        &mut self,
        load: u64,
        runner: &mut LoadRunner<'_>,
        writer: &CurveWriter,
    ) -> Result<PointEnd, CurveAbort> {
        if let Some(point) = self.earlier.remove(&load) {
            return Ok(PointEnd::Measured(Box::new(point), vec![]));
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
                let point = CurvePoint::of(&run, load, &name);
                Ok(PointEnd::Measured(Box::new(point), vec![]))
            }
            Err(LostPoint::Interrupted) => Ok(PointEnd::Interrupted),
            Err(LostPoint::Refused(error)) => Err(CurveAbort::Refused(error)),
            Err(LostPoint::Died(text)) => Ok(PointEnd::Lost(Reason::new("failed", text))),
        }
    }

    /// Ends the processes, and removes what was measured ahead and does not belong to a curve that
    /// ended in this state: everything if a rule ended it, and what is not complete if an error did. What
    /// remains is used when the curve is resumed. Returns sentences about what could not be removed.
    pub(super) fn end(self, writer: &CurveWriter, state: CurveState) -> Vec<String> {
        let ahead = self.processes.map_or_else(Vec::new, PointProcesses::end);
        let earlier = self.earlier.into_values().map(|point| point.run);
        let runs = ahead.into_iter().chain(earlier);
        let runs = runs.map(|name| writer.run_named(&name));
        // A curve without points that was refused leaves nothing.
        let keeps_complete = state == CurveState::Failed && !writer.document().points.is_empty();
        let goes = |run: &RunDir| match state {
            CurveState::Interrupted | CurveState::Unfinished => false,
            CurveState::Complete | CurveState::Stopped => true,
            CurveState::Failed => !(keeps_complete && is_complete(run)),
        };
        let removed = runs.filter(goes).map(|run| {
            let removal = Removal::of(run.path()).and_then(Removal::execute);
            removal.map_err(|e| format!("a point beyond the end of the curve stays: {e}"))
        });
        removed.filter_map(Result::err).collect()
    }
}

/// Whether a run was measured to its end.
fn is_complete(run: &RunDir) -> bool {
    run.read()
        .is_ok_and(|run| matches!(run.validity.verdict, Verdict::Valid | Verdict::Invalid))
}
