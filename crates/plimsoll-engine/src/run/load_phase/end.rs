//! The end of windows and of load phases.

use super::{CONTROL_POLL_INTERVAL, LoadPhase};
use crate::program::RowInfo;
use crate::run::host::Host;
use crate::run::team::{LocalStageResult, PackedInterval};
use crate::run::{EngineError, Event, Observer, drawn_variables};
use crate::stage_state::{StageDone, StageRun};
use crate::sync::lock;
use crate::worker::worker_name;
use plimsoll_lane::LaneKind;
use plimsoll_measure::system::{Snapshot, SystemUse};
use plimsoll_measure::{MeasuredWindow, Nanos, OpTotals, RankRow, RankStage};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Time after the end of the run after which a worker that has not ended is a hung worker.
pub(super) const HUNG_WORKER_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum deviation of the tick counter from the system's clock, as a fraction.
const CLOCK_TOLERANCE: f64 = 1e-3;

impl LoadPhase<'_> {
    /// Closes the window at the cursor, unless the window is closed already.
    pub(super) fn close_window(&mut self, observer: &mut dyn Observer) {
        if self.open.is_none() {
            return;
        }
        self.watch_window(observer);
        self.shared.window.close(self.cursor);
        let over = self.is_over() || self.stops_with_window();
        if over {
            self.await_lanes(observer);
            self.rendezvous();
        } else {
            // Workers between two operations deliver their results within a moment.
            plimsoll_runtime::sleep(Duration::from_millis(5));
        }
        self.collect(observer);
    }

    /// Waits for the other ranks at the end of a stage; the length of the wait is part of the stage's result.
    fn rendezvous(&mut self) {
        if self.shared.stage.is_none() || self.all_ended > 0 {
            return;
        }
        // Every process makes the collective calls of a stage in the same order: the first all-gather, the agreement on
        // the rounds, and the other all-gathers.
        let run = self.shared.stage.as_ref();
        if run.is_some_and(|run| run.completed_all_gathers() == 0) {
            self.all_gather(true);
        }
        self.agree_on_rounds(0);
        self.all_gather(true);
        if let Err(e) = self.team.barrier() {
            self.trouble.get_or_insert(e);
        }
        self.all_ended = self.shared.clock.now();
    }

    /// Tells a rank 0 without workers that the workers of the other ranks have ended.
    fn meet_coordinator(&mut self) {
        if self.team.root_works() {
            return;
        }
        // At the end of a stage, all ranks have met already.
        if self.shared.stage.is_none()
            && let Err(e) = self.team.barrier()
        {
            self.trouble.get_or_insert(e);
        }
        if self.team.is_root() {
            // A stop may have been requested while this rank was blocked.
            self.heed_stop();
        }
    }

    /// The results of this process: intervals that were not reported yet, and the process's part of a stage. The inner
    /// error is the error of a lost rank.
    pub(crate) fn into_local(
        self,
    ) -> (
        Vec<PackedInterval>,
        Result<Option<LocalStageResult>, EngineError>,
    ) {
        if let Some(e) = self.trouble {
            return (self.intervals, Err(e));
        }
        let Some(run) = self.shared.stage.as_ref() else {
            return (self.intervals, Ok(None));
        };
        let mut local = LocalStageResult {
            stage: run.stage,
            ranks: Vec::with_capacity(self.all.len()),
            samples: Vec::new(),
        };
        for worker in &self.all {
            // The workers of a pattern are the pattern's ranks.
            let rank = worker.index;
            let mut done = run.take_done(rank);
            let samples = std::mem::take(&mut done.samples);
            if !samples.is_empty() {
                local.samples.push((rank, samples));
            }
            local.ranks.push(self.rank_stage(run, rank, &done));
        }
        self.check_sums(run, &local.ranks);
        (self.intervals, Ok(Some(local)))
    }

    /// The results of a rank of this process.
    fn rank_stage(&self, run: &StageRun, rank: u32, done: &StageDone) -> RankStage {
        let totals = self.outcome.windows.last().map(|window| &window.totals);
        let totals = totals.filter(|_| !run.of(self.plan).1.warm_up);
        let rows = (0..)
            .zip(&self.plan.operations)
            .map(|(row, _)| match totals {
                // The process has only one rank, so the recorder has only the operations of this rank.
                Some(totals) if !run.shares_recorder() => RankRow::from(&totals.rows[row as usize]),
                Some(_) => done.row(row),
                None => RankRow::default(),
            });
        RankStage {
            rank,
            time_ns: (done.ended - done.begun).saturating_sub(done.waited),
            time_with_barrier_ns: self.all_ended.saturating_sub(done.begun),
            rounds: done.rounds,
            matches: done.matches,
            stonewall_rounds: done.stonewall_rounds,
            stonewall_ns: done.stonewall,
            rows: rows.collect(),
        }
    }

    /// Asserts that the operations of ranks that share a recorder add up to the operations of the window, unless the
    /// stage was cut short: the end of the window may have moved between the two records of an operation.
    fn check_sums(&self, run: &StageRun, ranks: &[RankStage]) {
        let is_cut_short = self.outcome.interrupted || self.outcome.is_cut_short();
        if is_cut_short || !run.shares_recorder() || run.of(self.plan).1.warm_up {
            return;
        }
        let window = self.outcome.windows.last();
        let window = window.expect("a stage that is measured has a window");
        for (row, totals) in window.totals.rows.iter().enumerate() {
            // The assertion is left out of release builds, in which a failed assertion would cost the results of a run.
            debug_assert_eq!(
                ranks.iter().map(|rank| rank.rows[row].ops).sum::<u64>(),
                totals.ops,
                "row {row}: the operations of the ranks add up to those of the window"
            );
        }
    }

    /// Asserts that the workers have released all entries of the filesets, unless the workers were cut off.
    fn check_filesets(&self) {
        if self.outcome.failure.is_some() || !self.outcome.hung_workers.is_empty() {
            return;
        }
        for set in &self.shared.filesets {
            // The assertion is left out of release builds, in which a failed assertion would cost the results of a run.
            debug_assert!(
                set.files.are_idle() && set.leaf_dirs.are_idle(),
                "an entry of {:?} is busy for ever, or not counted",
                set.id
            );
        }
    }

    pub(super) fn stops_with_window(&self) -> bool {
        self.shared.deadline.at() <= self.shared.window.bounds().end
    }

    fn collect(&mut self, observer: &mut dyn Observer) {
        let Some(open) = self.open.take() else { return };
        let system = open
            .system
            .map_or_else(SystemUse::default, |s| s.until(&Snapshot::take_at_end()));
        for interval in self.collector.drain() {
            self.report_interval(&interval, observer);
        }
        let (last, mut totals) = self.collector.finish();
        for interval in &last {
            self.report_interval(interval, observer);
        }
        self.periodic = None;
        totals.end = totals.end.max(totals.start);
        // Each hung worker may have an operation that never returned.
        let stuck = self.outcome.hung_workers.len() as u64;
        totals.abandoned = (totals.abandoned + stuck).min(totals.in_flight());
        let counted = |(ops, bytes): (u64, u128), (row, t): (&RowInfo, &OpTotals)| match row.counts
        {
            true => (ops + t.ops, bytes + t.bytes),
            false => (ops, bytes),
        };
        let rows = self.shared.rows.iter().zip(&totals.rows);
        totals.done = self.shared.ends.of_window(
            totals.number,
            self.all.len(),
            rows.fold((0, 0), counted),
            self.shared.done(None),
        );
        let length = totals.end - totals.start;
        if self.kind != LaneKind::Virtual && open.announced {
            self.check_clock(length, plimsoll_runtime::elapsed(open.instant));
        }
        let host = Host::of_this_process(self.collector.lanes().len(), &[&system]);
        // In virtual time the processor is always busy, and never the bottleneck.
        let host = Some(host).filter(|_| self.kind != LaneKind::Virtual);
        self.outcome.windows.push(MeasuredWindow {
            totals,
            client_share: host.as_ref().and_then(|h| h.cpu_share(0, system.seconds)),
            throttling: host.and_then(|h| h.throttling(0, system.seconds)),
            system,
            started: Some(open.started),
            ..MeasuredWindow::default()
        });
    }

    /// Notes a window that is longer by the tick counter than by the system's clock. The system's clock is read later,
    /// so a longer time by the system's clock means nothing.
    fn check_clock(&mut self, ticks: Nanos, system: Duration) {
        let (ticks, system) = (ticks as f64, system.as_nanos() as f64);
        if ticks > system * (1.0 + CLOCK_TOLERANCE) + 1e6 {
            self.outcome.notes.push(format!(
                "the processor's tick counter runs {:.2} % fast against the system's clock",
                (ticks / system - 1.0) * 100.0
            ));
        }
    }

    /// Waits until all lanes have ended, at most `HUNG_WORKER_TIMEOUT` beyond the deadline; the workers that have not
    /// ended by then are hung.
    fn await_lanes(&mut self, observer: &mut dyn Observer) {
        let mut since: Option<Instant> = None;
        while !self.collector.lanes().iter().all(|l| l.ended()) {
            self.check_progress(observer);
            if self.shared.clock.now() >= self.shared.deadline.at() {
                let since = since.get_or_insert_with(plimsoll_runtime::now);
                // A virtual lane never hangs in a system call.
                if self.kind != LaneKind::Virtual
                    && plimsoll_runtime::elapsed(*since) >= HUNG_WORKER_TIMEOUT
                {
                    break;
                }
            }
            self.bell.wait(CONTROL_POLL_INTERVAL);
        }
        // After a deadlock or a panic a worker has not ended, but the worker's lane has.
        let all_back = self.collector.lanes().iter().all(|l| l.ended());
        self.outcome.hung_workers = self
            .all
            .iter()
            .filter(|w| !all_back && !self.shared.ended[w.index as usize].load(Relaxed))
            .map(|w| worker_name(self.plan, *w))
            .collect();
    }

    /// Stops the workers and collects their last results.
    pub(super) fn end(&mut self, observer: &mut dyn Observer) {
        self.shared.deadline.bring_forward(self.cursor.max(1));
        if self.outcome.hung_workers.is_empty() {
            self.await_lanes(observer);
        }
        self.rendezvous();
        self.meet_coordinator();
        if self.open.is_some() {
            self.watch_window(observer);
            self.shared.window.close(self.cursor);
            self.collect(observer);
        }
        for text in lock(&self.shared.messages).drain(..) {
            observer.event(Event::Echo(&text));
        }
        if self.is_cut_short() || self.is_first_done() {
            self.team.request_stop_all();
        }
        self.outcome.notes.append(&mut lock(&self.shared.notes));
        self.outcome.processes = std::mem::take(&mut *lock(&self.shared.processes));
        self.outcome.processes.sort_by_key(|p| (p.group, p.number));
        self.outcome.backlog = std::mem::take(&mut *lock(&self.shared.backlog));
        let schedule = self.shared.event_counts(self.shared.window.bounds());
        self.outcome.schedules = Vec::from_iter(schedule);
        self.outcome.failure = lock(&self.shared.failure).take();
        self.check_filesets();
        let ran_out = lock(&self.shared.ran_out).take();
        // After the last window, an exhausted fileset does not matter for the result.
        self.outcome.ran_out = ran_out.filter(|r| !r.window_over || self.missed_window);
        self.outcome.variables = drawn_variables(self.plan, &lock(&self.shared.drawn));
    }
}
