//! Ranks of a pattern: workers whose steps are generated from a few parameters.

mod content;
mod fast_path;
mod objects;
mod offsets;
mod search;
mod transfers;

pub(crate) use offsets::owner_of;

use super::context::{ExitReason, StartedOp, WorkerExit, replaced};
use super::{Worker, WorkerContext};
use crate::run_state::RunState;
use crate::stage_state::{StageDone, StageRun};
use content::Contents;
use plimsoll_lane::LaneKind;
use plimsoll_measure::{Nanos, OpTimes, RankTotals};
use plimsoll_plan::{Failure, Pattern, Rounds, Samples, Stage, StageWork};
use plimsoll_target::{ContentPool, OpError, OpenHow, OpenMode, Session};
use rustix::io::Errno;

/// Waits shorter than this limit, in nanoseconds, spin, because sleeping would prolong such waits. The limit is
/// MD-Workbench's.
const MAX_SPIN_NS: Nanos = 10_000_000;

/// Maximum number of objects with wrong contents that are named.
const MAX_NAMED_MISMATCHES: usize = 16;

/// Name of a pattern that a rank has located.
enum Located {
    /// Data set: rank and number.
    Set(u32, u32),
    /// Object that is a file: owner, data set and number.
    Object(u32, u32, u64),
    /// Object that is a directory: owner, data set and number.
    Directory(u32, u32, u64),
}

/// A rank that executes a stage.
struct Rank<'a, S: Session> {
    session: &'a mut S,
    context: &'a mut WorkerContext,
    shared: &'a RunState,
    run: &'a StageRun,
    pattern: &'a Pattern,
    stage: &'a Stage,
    rank: u32,
    done: StageDone,
    at: Located,
    /// Path of the directory or file that a search has located; `None` in other stages.
    path_in_tree: Option<Vec<u8>>,
    contents: Contents,
    /// Number of objects with wrong contents.
    mismatches: usize,
}

impl<S: Session> Worker<S> {
    /// Runs a stage of the pattern to its end.
    pub(in crate::worker) async fn run_stage(mut self, content: ContentPool) {
        let shared = self.context.shared.clone();
        let run = shared.stage.as_ref().expect("ranks run in a stage");
        let exit = match self.stage(&shared, run, content).await {
            Ok(()) => WorkerExit::new(ExitReason::Finished),
            Err(exit) => exit,
        };
        self.end(exit).await;
    }

    async fn stage(
        &mut self,
        shared: &RunState,
        run: &StageRun,
        content: ContentPool,
    ) -> Result<(), WorkerExit> {
        let (pattern, stage) = run.of(&shared.plan);
        let rank = self.context.id.index;
        let contents = Contents::new(pattern, rank, shared.plan.seed, content);
        let contents = contents.ok_or_else(|| no_memory("the objects' contents"))?;
        let mut worker = Rank {
            session: &mut self.session,
            context: &mut self.context,
            shared,
            run,
            pattern,
            stage,
            rank,
            done: StageDone {
                rows: match run.shares_recorder() && !stage.warm_up {
                    true => vec![None; shared.rows.len()],
                    false => vec![],
                },
                ..StageDone::default()
            },
            at: Located::Set(rank, 0),
            path_in_tree: None,
            contents,
            mismatches: 0,
        };
        worker.make_room_for_samples()?;
        worker.done.begun = worker.context.lane.now();
        let worked = match &stage.work {
            StageWork::Objects(work) => worker.objects(work).await,
            StageWork::Transfers(work) => worker.transfers(work).await,
            StageWork::Search(work) => worker.search(work).await,
        };
        worker.done.ended = worker.context.lane.now();
        run.end(rank, worker.done);
        worked
    }
}

fn no_memory(of: &str) -> WorkerExit {
    let failure = Failure::of("run", format!("not enough memory for {of}"));
    WorkerExit::new(ExitReason::Failed(failure))
}

impl<S: Session> Rank<'_, S> {
    /// Allocates memory for the times of all operations before the first operation is timed.
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
        self.done.samples = vec![Vec::new(); rows];
        for (row, operations) in self.expected_operations() {
            let room = &mut self.done.samples[row as usize];
            let operations = usize::try_from(operations).unwrap_or(usize::MAX);
            room.try_reserve_exact(room.len() + operations)
                .map_err(|_| no_memory("the time of every operation"))?;
        }
        Ok(())
    }

    /// The rows of the stage, each with the maximum number of records; no rows for a search, whose tree is unknown.
    fn expected_operations(&self) -> Vec<(u32, u64)> {
        let sets = u64::from(self.pattern.sets);
        let with_objects = self.pattern.sets_with_objects().len() as u64;
        match &self.stage.work {
            StageWork::Objects(l) => {
                let rounds = self.max_rounds(l.rounds);
                let steps = l.steps.iter().map(|s| (s.row.0, rounds * with_objects));
                let dirs = l.make_sets.into_iter().chain(l.remove_sets);
                steps.chain(dirs.map(|r| (r.0, sets))).collect()
            }
            StageWork::Search(_) => vec![],
            StageWork::Transfers(t) => {
                let once = [Some(t.open), t.sync, Some(t.close)];
                let once = once.into_iter().flatten().map(|r| (r.0, 1));
                once.chain([(t.transfer.0, self.max_rounds(t.rounds))])
                    .collect()
            }
        }
    }

    /// Ends and records an operation; `false` if the operation failed and failures are counted. The first step is the
    /// reading of the clock.
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
                self.context.note_if_long(begun.start, end);
                self.context
                    .recorder
                    .record(row, OpTimes::unpaced(begun.start, end), bytes);
                self.context.in_flight.end();
                if let Some(own) = self.totals_mut(row, end) {
                    own.ops += 1;
                    own.bytes += u128::from(bytes);
                    own.latency.record(end - begun.start);
                }
                self.context.end_cpu_sample(row, begun, end);
                if !self.done.samples.is_empty() {
                    let sample = (begun.start - self.done.begun, end - begun.start);
                    self.done.samples[row as usize].push(sample);
                }
                if end >= self.context.lane.deadline() {
                    return Err(WorkerExit::new(ExitReason::Stopped));
                }
                Ok(true)
            }
            Err(error) => {
                let counted = self.failed(row, begun.start, end, error);
                self.context.end_cpu_sample(row, begun, end);
                self.context.in_flight.end();
                counted.map(|()| false)
            }
        }
    }

    /// The rank's own totals for an operation that ended at `end`; `None` if the rank keeps no totals, or if the
    /// operation is not measured.
    #[inline]
    fn totals_mut(&mut self, row: u32, end: Nanos) -> Option<&mut RankTotals> {
        match self.done.rows.is_empty() || !self.shared.window.bounds().contains(end) {
            true => None,
            false => self.done.totals_mut(row),
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
        let on_error = self.stage.on_error;
        if let Some(own) = self.totals_mut(row, end) {
            own.errors += 1;
        }
        match self
            .context
            .record_failure(row, start, end, error, on_error)?
        {
            true => Err(self.exit(row, self.error_text(error))),
            false => Ok(()),
        }
    }

    /// The text of an error; for direct I/O, EINVAL is explained by its probable cause.
    fn error_text(&self, error: OpError) -> String {
        match self.pattern.direct && error == OpError(Errno::INVAL) {
            true => format!(
                "{error}: the file system does not take direct I/O (O_DIRECT), or not in \
                 transfers of this size"
            ),
            false => (self.context.shared.explain)(error),
        }
    }

    /// A failure that ends the run because of an operation on the located name.
    #[cold]
    fn exit(&self, row: u32, error: String) -> WorkerExit {
        self.context.failure(row, &self.path(), error)
    }

    /// The path of the located object, set or name of a search, relative to the work directory.
    fn path(&self) -> Vec<u8> {
        if let Some(path) = &self.path_in_tree {
            return path.clone();
        }
        let mut path = Vec::new();
        let pattern = self.pattern;
        match self.at {
            Located::Set(owner, set) => pattern.push_set(owner, set, &mut path),
            Located::Object(owner, set, number) => {
                pattern.push_object(owner, set, number, &mut path);
            }
            Located::Directory(owner, set, number) => {
                pattern.push_directory(owner, set, number, &mut path);
            }
        }
        path
    }

    /// Checks, before an operation is timed, that the operation's path does not leave the work directory.
    async fn check_parent(&mut self, row: u32) -> Result<(), WorkerExit> {
        let checked = self.session.check_parent().await;
        checked.map_err(|e| self.exit(row, replaced(e)))
    }

    /// Options for opening an object to be read or, if `create`, to be created and written.
    #[inline(always)]
    fn how_to_open(&self, create: bool) -> OpenHow {
        OpenHow {
            create,
            truncate: create,
            direct: self.pattern.direct,
            planned_size: self.pattern.object_size,
            ..OpenHow::plain(if create {
                OpenMode::Write
            } else {
                OpenMode::Read
            })
        }
    }

    /// Whether a step of a round is left out, because the owner created no object in this round.
    #[inline(always)]
    fn is_missing(&self, rounds: Rounds, owner: u32, round: u64) -> bool {
        rounds == Rounds::Made && round >= self.run.states.made[owner as usize]
    }

    /// Waits after an operation that began at `start`, for as long as the stage demands.
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

    /// Whether the time of the stonewall has passed.
    fn has_reached_stonewall(&self) -> bool {
        match self.stage.stonewall {
            Some(wall) => {
                let after = wall.after.as_nanos() as Nanos;
                self.context.lane.now() - self.done.begun >= after
            }
            None => false,
        }
    }

    /// The number of rounds to execute, when the rank has completed `done` of `total` rounds at the stonewall or at the
    /// end of all rounds. With wear-out, returns the number of rounds of the fastest rank.
    async fn agree(&mut self, done: u64, total: u64) -> Result<u64, WorkerExit> {
        let Some(wall) = self.stage.stonewall else {
            return Ok(done);
        };
        if done < total {
            self.done.stonewall_rounds = Some(done);
            self.done.stonewall = Some(self.context.lane.now() - self.done.begun);
        }
        if !wall.wear_out {
            return Ok(done);
        }
        let before = self.context.lane.now();
        let agreed = self
            .run
            .agreed(&self.context.lane, &self.shared.idle, self.rank, done)
            .await?;
        // The wait is not part of the rank's own time.
        self.done.waited += self.context.lane.now() - before;
        Ok(agreed.clamp(done, total.max(done)))
    }

    /// The maximum number of rounds that any rank can execute in a stage.
    fn max_rounds(&self, rounds: Rounds) -> u64 {
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
