//! The host of the ranks of a simulated curve, in place of the program `plimsoll`.

use crate::execution::{Shared, with};
use plimsoll_engine::{Event, Outcome, Stop};
use plimsoll_measure::Interval;
use plimsoll_plan::Plan;
use plimsoll_runtime::SimulationHandle;
use plimsoll_series::{Host, RunBegin, RunView, StateChange};
use std::time::Duration;

/// Time from the end of a run until the curve lists the run. A kill before the listing leaves an unlisted run, which
/// the next attempt must find.
const TIME_UNTIL_LISTED: Duration = Duration::from_millis(30);

/// Run at one load of the curve, as rank 0 measured the run.
#[derive(Debug, Clone)]
pub struct MeasuredPoint {
    /// Load of the run, in business metrics.
    pub load: u64,
    /// Plan of the run, which differs from the other runs' Plans by the load.
    pub plan: Plan,
    /// Outcome of the run from the engine.
    pub outcome: Box<Outcome>,
    /// Intervals of the run that rank 0 received.
    pub intervals: Vec<Interval>,
    /// End of the measurement, in nanoseconds of the simulation.
    pub at: u64,
    /// Whether the loop reported that the results were written. Results can exist without a report if a kill precedes
    /// the report.
    pub is_written: bool,
}

impl MeasuredPoint {
    /// Whether the run was measured to its end.
    pub(super) fn is_whole(&self) -> bool {
        self.outcome.failure.is_none() && !self.outcome.interrupted
    }
}

/// The measured runs and the messages of rank 0 in an attempt.
#[derive(Debug, Default)]
pub(super) struct AttemptLog {
    /// Runs that rank 0 measured in the attempt, in the order of measurement.
    pub(super) measured: Vec<MeasuredPoint>,
    /// Whether other processes may work on the files after the last run.
    pub(super) are_busy: bool,
    /// Warnings and errors that rank 0 reported to the user.
    pub(super) warnings: Vec<String>,
}

/// Host of the simulated ranks in place of the program `plimsoll`: records the measurements and messages that the
/// program would show or write.
pub(super) struct CurveHost {
    pub(super) stop: Stop,
    pub(super) handle: SimulationHandle,
    pub(super) log: Shared<AttemptLog>,
}

impl CurveHost {
    fn warned(&self, line: &str) {
        with(&self.log, |log| log.warnings.push(line.to_owned()));
    }
}

impl Host for CurveHost {
    fn stop(&self) -> &Stop {
        &self.stop
    }

    fn view<'a>(&'a self, run: RunBegin<'a>) -> Box<dyn RunView + 'a> {
        Box::new(PointView {
            host: self,
            run,
            intervals: vec![],
            is_measured: false,
        })
    }

    fn warn(&self, line: &str) {
        self.warned(line);
    }

    fn error(&self, line: &str) {
        self.warned(line);
    }

    fn note(&self, state: StateChange<'_>) {
        if let StateChange::ResultsWritten(_) = state {
            with(&self.log, |log| {
                let last = log.measured.last_mut();
                last.expect("only a run that was measured has results")
                    .is_written = true;
            });
        }
    }
}

/// The view of the run at a load.
struct PointView<'a> {
    host: &'a CurveHost,
    run: RunBegin<'a>,
    intervals: Vec<Interval>,
    is_measured: bool,
}

impl RunView for PointView<'_> {
    fn event(&mut self, event: &Event<'_>) {
        if let Event::Interval(interval) = event {
            self.intervals.push((*interval).clone());
        }
    }

    fn measured(&mut self, outcome: &Outcome) {
        self.is_measured = true;
        let point = MeasuredPoint {
            load: self.run.facts.load.expect("a run of a curve has a load"),
            plan: self.run.config.plan.clone(),
            outcome: Box::new(outcome.clone()),
            intervals: std::mem::take(&mut self.intervals),
            at: self.host.handle.now(),
            is_written: false,
        };
        with(&self.host.log, |log| log.measured.push(point));
    }

    fn end(&mut self, outcome: &Outcome) {
        // A run that fails without a measurement has an outcome too.
        if !self.is_measured {
            self.measured(outcome);
        }
        let are_busy = !outcome.cleanup.unremoved.is_empty();
        with(&self.host.log, |log| log.are_busy = are_busy);
        plimsoll_runtime::sleep(TIME_UNTIL_LISTED);
    }
}
