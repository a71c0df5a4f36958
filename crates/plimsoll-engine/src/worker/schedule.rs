//! The schedule of a worker, and the counts of its scheduled operations.

use super::context::{ExitReason, WorkerContext, WorkerExit};
use super::pacer::Pacer;
use crate::schedule::WindowCounts;
use crate::sync::lock;
use plimsoll_measure::{Nanos, OpTimes, ProcessCounts, WindowBacklog, WindowBounds};
use plimsoll_plan::{Pacing, Rng};

/// The schedule of a worker; without a pacer, an operation begins when the operation before has ended.
pub(super) struct Schedule {
    pacer: Option<Pacer>,
    /// The row of start delays, if operations are paced.
    start_row: u32,
    counts: WindowCounts,
    /// Backlogs of the worker's scheduled operations; empty without a schedule.
    backlog: Box<WindowBacklog>,
}

impl Schedule {
    /// A schedule that begins at `begin`.
    pub(super) fn new(pacing: Option<Pacing>, begin: Nanos, rng: &mut Rng) -> Self {
        Self {
            pacer: pacing.map(|p| Pacer::new(p.rate, p.arrivals, begin, rng)),
            start_row: pacing.map_or(0, |p| p.start.0),
            counts: WindowCounts::default(),
            backlog: Box::default(),
        }
    }

    /// Waits for the scheduled time of the next operation, which becomes the operation's intended start. Returns at
    /// once without a schedule.
    pub(super) async fn await_due(
        &mut self,
        context: &mut WorkerContext,
        rng: &mut Rng,
    ) -> Result<(), WorkerExit> {
        let Some(pacer) = &mut self.pacer else {
            return Ok(());
        };
        let now = context.lane.now();
        let window = context.shared.window.bounds();
        let counts = self.counts.in_window(window);
        pacer.catch_up(now, rng, |due| {
            let dropped = u64::from(window.contains(due));
            counts.scheduled += dropped;
            counts.dropped += dropped;
        });
        let due = pacer.due();
        self.backlog
            .record(window, due.max(now), pacer.backlog(now, counts.dropped));
        pacer.advance(rng);
        if due > now {
            context.lane.sleep_until(due).await?;
            // The worker was idle, so the client caused the delay.
            let times = OpTimes::unpaced(due, context.lane.now());
            context.recorder.record(self.start_row, times, 0);
        }
        let window = context.shared.window.bounds();
        self.counts.in_window(window).scheduled += u64::from(window.contains(due));
        context.intended = Some(due);
        Ok(())
    }

    /// Counts an operation that has just completed.
    pub(super) fn note_completed(&mut self, context: &WorkerContext) {
        let window = context.shared.window.bounds();
        let counts = self.counts.in_window(window);
        counts.completed += u64::from(window.contains(context.lane.now()));
    }

    /// Adds the counts of the worker, which ended with `exit`, to the counts of the run.
    pub(super) fn end(mut self, context: &WorkerContext, exit: &WorkerExit) {
        // Operations scheduled until the end of the window are lost if the run ended first, or the last operation ended
        // too late.
        let is_over = match *exit.0 {
            ExitReason::Stopped => true,
            ExitReason::NotDone => context.lane.now() >= context.lane.deadline(),
            _ => false,
        };
        if is_over {
            self.add_left(context.shared.window.bounds());
        }
        lock(&context.shared.backlog).add(&self.backlog);
        lock(&context.shared.processes).push(ProcessCounts {
            group: context.id.group,
            number: context.id.number,
            counts: self.counts.counts,
        });
    }

    /// Adds the operations of the window that are still scheduled when the run is over to the counts.
    fn add_left(&mut self, window: WindowBounds) {
        let counts = self.counts.in_window(window);
        if let (Some(pacer), true) = (&self.pacer, window.number > 0) {
            counts.scheduled += pacer.left_until(window.end);
        }
    }
}
