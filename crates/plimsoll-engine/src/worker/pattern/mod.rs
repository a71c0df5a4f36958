//! Ranks of a pattern: workers whose steps are generated from a few numbers.

mod content;
mod fast_path;
mod objects;
mod transfers;

use super::context::{ExitReason, WorkerExit, path_in};
use super::{Worker, WorkerContext};
use crate::run_state::RunState;
use crate::stage_state::{Sample, StageDone, StageRun};
use crate::sync::lock;
use content::Contents;
use plimsoll_lane::LaneKind;
use plimsoll_measure::Nanos;
use plimsoll_plan::{Failure, OnError, Pattern, Samples, Stage, StageWork};
use plimsoll_target::{ContentPool, OpError, Session};
use rustix::io::Errno;
use std::num::NonZeroU64;

/// Waits shorter than this, in nanoseconds, are spun away: sleeping would make them longer. The
/// limit is MD-Workbench's.
const MAX_SPIN_NS: Nanos = 10_000_000;

/// Contents that were not what was written, named one by one at most.
const MAX_NAMED_MISMATCHES: usize = 16;

/// A rank at work on a stage.
struct Rank<'a, S: Session> {
    session: &'a mut S,
    context: &'a mut WorkerContext,
    shared: &'a RunState,
    run: &'a StageRun,
    pattern: &'a Pattern,
    stage: &'a Stage,
    rank: u32,
    begun: Nanos,
    /// Owner, set and number of the located object; a set without a number.
    at: (u32, u32, Option<u64>),
    contents: Contents,
    rounds: u64,
    stonewall_rounds: Option<u64>,
    stonewall: Option<Nanos>,
    waited: Nanos,
    samples: Vec<Vec<Sample>>,
    /// Contents that were not what was written.
    mismatches: usize,
}

impl<S: Session> Worker<S> {
    /// Runs a stage of the pattern to its end.
    pub(crate) async fn run_stage(mut self, content: ContentPool) {
        let shared = self.context.shared.clone();
        let halt = match shared.stage.as_ref() {
            Some(run) => match self.stage(&shared, run, content).await {
                Ok(()) => WorkerExit::new(ExitReason::Finished),
                Err(halt) => halt,
            },
            None => WorkerExit::new(ExitReason::Finished),
        };
        self.end(halt).await;
    }

    async fn stage(
        &mut self,
        shared: &RunState,
        run: &StageRun,
        content: ContentPool,
    ) -> Result<(), WorkerExit> {
        let Some((pattern, stage)) = run.of(&shared.plan) else {
            return Ok(());
        };
        let rank = self.context.index;
        let contents = Contents::new(pattern, rank, shared.plan.seed, content);
        let no_memory = || self.misuse_of_run("there is no memory for the objects' contents");
        let contents = contents.ok_or_else(no_memory)?;
        let mut worker = Rank {
            session: &mut self.session,
            context: &mut self.context,
            shared,
            run,
            pattern,
            stage,
            rank,
            begun: 0,
            at: (rank, 0, None),
            contents,
            rounds: 0,
            stonewall_rounds: None,
            stonewall: None,
            waited: 0,
            samples: Vec::new(),
            mismatches: 0,
        };
        worker.make_room_for_samples()?;
        worker.begun = worker.context.lane.now();
        let worked = match &stage.work {
            StageWork::Objects(work) => worker.objects(work).await,
            StageWork::Transfers(work) => worker.transfers(work).await,
        };
        *lock(&run.done) = Some(StageDone {
            begun: worker.begun,
            ended: worker.context.lane.now(),
            rounds: worker.rounds,
            stonewall_rounds: worker.stonewall_rounds,
            stonewall: worker.stonewall,
            waited: worker.waited,
            samples: worker.samples,
        });
        worked
    }

    fn misuse_of_run(&self, error: &str) -> WorkerExit {
        let failure = Failure::of("run", error.into());
        WorkerExit::new(ExitReason::Failed(failure))
    }
}

/// An operation that has begun.
struct StartedOp {
    cpu: Option<Nanos>,
    start: Nanos,
}

impl<S: Session> Rank<'_, S> {
    /// Room for the times of all operations, so that none is made while one is timed.
    fn make_room_for_samples(&mut self) -> Result<(), WorkerExit> {
        let wanted = match self.pattern.samples {
            _ if self.stage.warm_up => false,
            Samples::Off => false,
            Samples::First => self.rank == 0,
            Samples::All => true,
        };
        if !wanted {
            return Ok(());
        }
        let rows = self.shared.rows.len();
        self.samples = vec![Vec::new(); rows];
        for (row, operations) in self.expected_operations() {
            let room = &mut self.samples[row as usize];
            let operations = usize::try_from(operations).unwrap_or(usize::MAX);
            if room.try_reserve_exact(room.len() + operations).is_err() {
                let error = "there is no memory for the time of every operation";
                let failure = Failure::of("run", error.into());
                return Err(WorkerExit::new(ExitReason::Failed(failure)));
            }
        }
        Ok(())
    }

    /// Rows of the stage, and how often each is recorded at most.
    fn expected_operations(&self) -> Vec<(u32, u64)> {
        let sets = u64::from(self.pattern.sets);
        match &self.stage.work {
            StageWork::Objects(l) => {
                let rounds = self.most_rounds(l.rounds);
                let steps = l.steps.iter().map(|s| (s.row.0, rounds * sets));
                let dirs = l.make_sets.into_iter().chain(l.remove_sets);
                steps.chain(dirs.map(|r| (r.0, sets))).collect()
            }
            StageWork::Transfers(t) => {
                let once = [Some(t.open), t.sync, Some(t.close)];
                let once = once.into_iter().flatten().map(|r| (r.0, 1));
                once.chain([(t.transfer.0, self.most_rounds(t.rounds))])
                    .collect()
            }
        }
    }

    #[inline(always)]
    fn begin(&mut self, row: u32) -> StartedOp {
        self.context.recorded += 1;
        let cpu = self.context.cpu.begin(&self.context.lane, row);
        let start = self.context.lane.now();
        self.context.under_way.begin(row, start);
        StartedOp {
            cpu: cpu.map(NonZeroU64::get),
            start,
        }
    }

    /// Records an operation that has come back; `false` if it failed and failures are only
    /// counted. What comes first here is the reading of the clock.
    #[inline(always)]
    fn finish(
        &mut self,
        row: u32,
        begun: &StartedOp,
        bytes: u64,
        result: Result<(), OpError>,
    ) -> Result<bool, WorkerExit> {
        let end = self.context.lane.now();
        match result {
            Ok(()) => {
                self.context
                    .recorder
                    .record(row, begun.start, end, None, bytes);
                self.context.under_way.end();
                if let Some(before) = begun.cpu {
                    self.sampled_cpu(row, before, end);
                }
                if !self.samples.is_empty() {
                    let sample = (begun.start - self.begun, end - begun.start);
                    self.samples[row as usize].push(sample);
                }
                if end >= self.context.lane.deadline() {
                    return Err(WorkerExit::new(ExitReason::Stopped));
                }
                Ok(true)
            }
            Err(error) => {
                self.context.under_way.end();
                self.failed(row, begun.start, end, error).map(|()| false)
            }
        }
    }

    #[cold]
    fn sampled_cpu(&mut self, row: u32, before: Nanos, end: Nanos) {
        if let Some(after) = self.context.lane.thread_cpu() {
            let used = after - before;
            self.context.cpu.end(&self.context.recorder, row, used, end);
        }
    }

    #[cold]
    fn failed(
        &mut self,
        row: u32,
        start: Nanos,
        end: Nanos,
        error: OpError,
    ) -> Result<(), WorkerExit> {
        let name = error.name();
        self.context.recorder.record_error(row, start, end, &name);
        if end >= self.context.lane.deadline() {
            self.context.recorder.count_failed_at_end();
            return Err(WorkerExit::new(ExitReason::Stopped));
        }
        // Of a server that says nothing at all, each further operation would fail as late.
        let is_lost = error == OpError(Errno::TIMEDOUT) && self.context.recorder.is_server_silent();
        if self.stage.on_error == OnError::Count && !is_lost {
            return Ok(());
        }
        if error == OpError(Errno::TIMEDOUT) {
            self.context.recorder.note_lost_to_silence();
        }
        Err(self.exit(row, self.error_text(error)))
    }

    /// An error in words, with what it may mean past the page cache.
    fn error_text(&self, error: OpError) -> String {
        match self.pattern.direct && error == OpError(Errno::INVAL) {
            true => format!(
                "{error}: the file system does not take direct I/O (O_DIRECT), or not in \
                 transfers of this size"
            ),
            false => (self.context.shared.explain)(error),
        }
    }

    /// The end of the run because of an operation on the located name.
    #[cold]
    fn exit(&mut self, row: u32, error: String) -> WorkerExit {
        let failure = Failure {
            path: self.path(),
            ..self.context.failure(row, error)
        };
        WorkerExit::new(ExitReason::Failed(failure))
    }

    /// The located name.
    fn path(&self) -> Option<String> {
        let mut path = Vec::new();
        match self.at {
            (owner, set, Some(number)) => {
                self.pattern.push_object(owner, set, number, &mut path);
            }
            (owner, set, None) => self.pattern.push_set(owner, set, &mut path),
        }
        path_in(&self.shared.plan, &path)
    }

    /// Makes sure, before it is timed, that an operation cannot leave the work directory.
    async fn check_parent(&mut self, row: u32) -> Result<(), WorkerExit> {
        match self.session.check_parent().await {
            Ok(()) => Ok(()),
            Err(e) => Err(self.replaced(row, e)),
        }
    }

    #[cold]
    fn replaced(&mut self, row: u32, e: OpError) -> WorkerExit {
        let error = format!("the directory was replaced while the run went on: {e}");
        self.exit(row, error)
    }

    /// Waits as the stage asks for after an operation that began at `start`.
    #[inline]
    async fn wait_after(&mut self, start: Nanos) -> Result<(), WorkerExit> {
        if self.stage.waiting_factor > 0.0 {
            self.wait_between_operations(start).await?;
        }
        Ok(())
    }

    #[cold]
    async fn wait_between_operations(&mut self, start: Nanos) -> Result<(), WorkerExit> {
        let lane = &self.context.lane;
        let now = lane.now();
        let wait = ((now - start) as f64 * self.stage.waiting_factor) as Nanos;
        let until = now.saturating_add(wait).min(lane.deadline());
        if wait < MAX_SPIN_NS && lane.kind() == LaneKind::Blocking {
            while lane.now() < until {
                std::hint::spin_loop();
            }
        } else {
            lane.sleep_until(until).await?;
        }
        Ok(())
    }

    /// Whether the stonewall has come after `rounds` rounds.
    fn has_reached_stonewall(&self) -> bool {
        match self.stage.stonewall {
            Some(wall) => {
                let after = wall.after.as_nanos() as Nanos;
                self.context.lane.now() - self.begun >= after
            }
            None => false,
        }
    }

    /// Rounds to be done in all, after `done` of `total` when the stonewall has come or all are
    /// done: with wear-out as many as the fastest rank.
    async fn agree(&mut self, done: u64, total: u64) -> Result<u64, WorkerExit> {
        let Some(wall) = self.stage.stonewall else {
            return Ok(done);
        };
        if done < total {
            self.stonewall_rounds = Some(done);
            self.stonewall = Some(self.context.lane.now() - self.begun);
        }
        if !wall.wear_out {
            return Ok(done);
        }
        let before = self.context.lane.now();
        let agreed = self
            .run
            .agreed(&self.context.lane, &self.shared.idle, done)
            .await?;
        // A rank that was done early is not slower for it.
        self.waited += self.context.lane.now() - before;
        Ok(agreed.clamp(done, total.max(done)))
    }

    /// Most rounds that a stage can do.
    fn most_rounds(&self, rounds: plimsoll_plan::Rounds) -> u64 {
        use plimsoll_plan::Rounds;
        let states = &self.run.states;
        let largest = |of: &[u64]| of.iter().copied().max().unwrap_or(0);
        match rounds {
            Rounds::Count(n) => n,
            Rounds::Made => largest(&states.made),
            Rounds::Left { window, .. } => {
                let least = states.position.iter().copied().min().unwrap_or(0);
                window + largest(&states.position) - least
            }
        }
    }
}
