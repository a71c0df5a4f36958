//! The part of a worker that does not depend on the target: time, choice, records.

use super::sampling::CpuSampling;
use crate::file_pool::{BlockCursor, Choice, Existence, FilesetState, Want};
use crate::program::Compiled;
use crate::run_state::RunState;
use crate::sync::Semaphore;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{InFlight, Nanos, Recorder};
use plimsoll_plan::{DirId, Failure, FileId, FilesetId, Rng, Supply, SupplyKind, Value};
use plimsoll_target::OpError;
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

/// Why a worker stops. One word, so that results that carry it travel in registers: a larger one
/// costs every operation some nanoseconds.
pub(crate) struct WorkerExit(pub(crate) Box<ExitReason>);

const _: () = assert!(size_of::<WorkerExit>() == size_of::<usize>());

/// What a [`WorkerExit`] says.
pub(crate) enum ExitReason {
    /// The run is over.
    Stopped,
    /// The program says it is done, or the operations asked for are.
    Finished,
    /// The operation's supply is used up.
    RanOut { row: u32, supply: Supply },
    /// The operation was not carried out: no ticket was left, or it failed after the end.
    NotDone,
    /// An operation failed.
    Failed(Failure),
}

impl WorkerExit {
    #[cold]
    pub(crate) fn new(reason: ExitReason) -> Self {
        Self(Box::new(reason))
    }

    /// Whether the operation that gave it took no effect.
    pub(crate) fn without_effect(&self) -> bool {
        matches!(*self.0, ExitReason::Failed(_) | ExitReason::NotDone)
    }
}

impl From<Stopped> for WorkerExit {
    #[cold]
    fn from(_: Stopped) -> Self {
        Self::new(ExitReason::Stopped)
    }
}

/// What an operation works on, for saying so when it fails: kind (2 bits), fileset (30) and
/// number in it (32). One word for the reason that [`WorkerExit`] is one: written in parts and read as
/// a whole, it would stall every operation.
#[derive(Clone, Copy)]
pub(crate) struct OpSubject(u64);

impl OpSubject {
    const FILE: u64 = 1;
    const DIR: u64 = 2;
    const LEAF_DIR: u64 = 3;
    const KIND_SHIFT: u32 = 62;

    pub(crate) const NO_SUBJECT: Self = Self(0);

    #[inline]
    fn of(kind: u64, fileset: u32, number: u32) -> Self {
        debug_assert!(fileset < 1 << 30, "a Plan has fewer filesets");
        Self(kind << Self::KIND_SHIFT | u64::from(fileset) << 32 | u64::from(number))
    }

    #[inline]
    pub(crate) fn file(fileset: u32, file: FileId) -> Self {
        Self::of(Self::FILE, fileset, file.0)
    }

    pub(crate) fn dir(fileset: u32, dir: DirId) -> Self {
        Self::of(Self::DIR, fileset, dir.0)
    }

    pub(crate) fn leaf_dir(fileset: u32, dir: u32) -> Self {
        Self::of(Self::LEAF_DIR, fileset, dir)
    }

    /// Appends the path, relative to the work directory; nothing if there is none.
    fn push_path(self, filesets: &[Arc<FilesetState>], out: &mut Vec<u8>) {
        let fileset = (self.0 >> 32) as usize & ((1 << 30) - 1);
        let number = self.0 as u32;
        let layout = || &filesets[fileset].layout;
        match self.0 >> Self::KIND_SHIFT {
            Self::FILE => layout().push_file(FileId(number), out),
            Self::DIR => layout().push_dir(DirId(number), out),
            Self::LEAF_DIR => layout().push_leaf_dir(number, out),
            _ => {}
        }
    }
}

/// An operation that has begun.
pub(crate) struct StartedOp {
    /// Processor time of the thread before it, if it is sampled.
    cpu: Option<NonZeroU64>,
    start: Nanos,
}

/// What a limiter has not charged yet.
#[derive(Default, Clone, Copy)]
pub(crate) struct LimiterUsage {
    pub(crate) ops: u64,
    pub(crate) transfers: u64,
    pub(crate) bytes: u64,
}

/// Hands of a worker in one fileset.
#[derive(Default, Clone, Copy)]
pub(crate) struct FileCursors {
    pub(crate) existing: BlockCursor,
    pub(crate) missing: BlockCursor,
    pub(crate) leaf_dirs: [BlockCursor; 2],
    /// Next file of rotating opens.
    pub(crate) rotating: u64,
}

pub(crate) struct WorkerContext {
    pub(crate) lane: Lane,
    pub(crate) recorder: Rc<Recorder>,
    /// The operation that it is in, for a controller that waits in vain.
    pub(crate) under_way: Arc<InFlight>,
    pub(crate) shared: Arc<RunState>,
    pub(crate) program: Arc<Compiled>,
    /// Group, and number within it.
    pub(crate) group: u32,
    pub(crate) number: u32,
    /// Number in the run.
    pub(crate) index: u32,
    pub(crate) rng: Rng,
    /// One stream a variable, so that one's draws do not shift another's.
    pub(crate) variable_rngs: Box<[Rng]>,
    pub(crate) cursors: Box<[FileCursors]>,
    /// Operations recorded so far.
    pub(crate) recorded: u64,
    /// When the schedule meant the next operation to start.
    pub(crate) intended: Option<Nanos>,
    pub(crate) budget: Option<u64>,
    /// The operation under way pays its ticket when it ends: only then it is known whether it
    /// falls into the measured window.
    pub(crate) owes_budget: bool,
    pub(crate) limiter_usage: Box<[LimiterUsage]>,
    pub(crate) seen: Box<[u64]>,
    pub(crate) semaphores: Box<[Arc<Semaphore>]>,
    pub(crate) rotation_at: u32,
    pub(crate) cpu: CpuSampling,
}

impl WorkerContext {
    /// A number of the program.
    #[inline]
    pub(crate) fn draw(&mut self, value: Value) -> u64 {
        match value {
            Value::Const(n) => n,
            Value::Draw(v) => {
                let v = v.0 as usize;
                self.shared.samplers[v].draw(&mut self.variable_rngs[v])
            }
        }
    }

    /// Does an operation and records it. Returns `None` when it failed and failures are only
    /// counted.
    ///
    /// Operations whose own cost is small call [`WorkerContext::begin`] and [`WorkerContext::finish`] around the
    /// operation themselves: a future handed in here is copied into another one first, and that
    /// costs them some nanoseconds.
    pub(crate) async fn timed<T>(
        &mut self,
        row: u32,
        subject: OpSubject,
        bytes: impl FnOnce(&T) -> u64,
        work: impl Future<Output = Result<T, OpError>>,
    ) -> Result<Option<T>, WorkerExit> {
        let begun = self.begin(row)?;
        let result = work.await;
        self.finish(row, subject, begun, bytes, result)
    }

    /// An operation begins: what comes last here is the reading of the clock, and a store of what it
    /// read.
    #[inline(always)]
    pub(crate) fn begin(&mut self, row: u32) -> Result<StartedOp, WorkerExit> {
        self.recorded += 1;
        if let Some(left) = self.budget {
            self.begin_with_budget(row, left)?;
        }
        let cpu = self.cpu.begin(&self.lane, row);
        let start = self.lane.now();
        self.under_way.begin(row, start);
        Ok(StartedOp { cpu, start })
    }

    /// An operation has come back: what comes first here is the reading of the clock. Between
    /// the two there is nothing but the operation and a store. Returns `None` when it failed and failures are
    /// only counted.
    #[inline(always)]
    pub(crate) fn finish<T>(
        &mut self,
        row: u32,
        subject: OpSubject,
        begun: StartedOp,
        bytes: impl FnOnce(&T) -> u64,
        result: Result<T, OpError>,
    ) -> Result<Option<T>, WorkerExit> {
        let end = self.lane.now();
        match result {
            Ok(value) => {
                self.record_success(row, begun, end, bytes(&value))?;
                Ok(Some(value))
            }
            Err(error) => {
                self.owes_budget = false;
                self.under_way.end();
                self.failed(row, subject, begun.start, end, error)
                    .map(|()| None)
            }
        }
    }

    /// Records an operation that succeeded. One function for all operations, called: what every
    /// operation runs through after a system call should be few instructions that are the same
    /// for all.
    #[inline(never)]
    fn record_success(
        &mut self,
        row: u32,
        begun: StartedOp,
        end: Nanos,
        moved: u64,
    ) -> Result<(), WorkerExit> {
        let paced = self.intended.is_some() || !self.limiter_usage.is_empty();
        if begun.cpu.is_some() || self.owes_budget || paced {
            return self.record_slow_path(row, begun, end, moved);
        }
        self.recorder.record(row, begun.start, end, None, moved);
        self.under_way.end();
        self.check_deadline(end)
    }

    /// The same for an operation that was sampled, is paced or charged, or owes a ticket.
    #[inline(never)]
    fn record_slow_path(
        &mut self,
        row: u32,
        begun: StartedOp,
        end: Nanos,
        moved: u64,
    ) -> Result<(), WorkerExit> {
        let cpu = begun
            .cpu
            .and_then(|before| Some(self.lane.thread_cpu()? - before.get()));
        self.under_way.end();
        if self.owes_budget {
            self.pay_budget(row, begun.start, end)?;
        }
        let intended = match self.intended {
            None => None,
            Some(_) => self.paced(row),
        };
        self.recorder.record(row, begun.start, end, intended, moved);
        if let Some(used) = cpu {
            self.cpu.end(&self.recorder, row, used, end);
        }
        self.charge(row, moved);
        self.check_deadline(end)
    }

    /// When the schedule meant an operation to start; only the first that counts after a limiter
    /// is paced.
    fn paced(&mut self, row: u32) -> Option<Nanos> {
        if self.shared.rows[row as usize].counts {
            self.intended.take()
        } else {
            None
        }
    }

    /// Does something that waits for other workers, and records it.
    pub(crate) async fn timed_wait<T>(
        &mut self,
        row: u32,
        wait: impl Future<Output = Result<T, Stopped>>,
    ) -> Result<T, WorkerExit> {
        let start = self.lane.now();
        let value = wait.await?;
        self.waited(row, start, self.lane.now())?;
        Ok(value)
    }

    /// Records a wait that is over.
    #[inline(never)]
    pub(crate) fn waited(&mut self, row: u32, start: Nanos, end: Nanos) -> Result<(), WorkerExit> {
        self.recorder.record(row, start, end, None, 0);
        self.recorded += 1;
        self.check_deadline(end)
    }

    /// Takes a ticket for an operation that counts, or says that it has to when it ends.
    #[cold]
    fn begin_with_budget(&mut self, row: u32, left: u64) -> Result<(), WorkerExit> {
        if self.shared.rows[row as usize].counts {
            if !self.is_measured(self.lane.now()) {
                self.owes_budget = true;
            } else if self.take_budget(left).is_err() {
                return Err(WorkerExit::new(ExitReason::NotDone));
            }
        }
        Ok(())
    }

    /// Whether this instant is not before the measured window.
    fn is_measured(&self, at: Nanos) -> bool {
        let window = self.shared.window.bounds();
        window.number > 0 && at >= window.start
    }

    fn take_budget(&mut self, left: u64) -> Result<(), WorkerExit> {
        let more = || self.shared.tickets.as_ref().map_or(0, |t| t.take());
        let left = if left > 0 { left } else { more() };
        self.budget = Some(left.saturating_sub(1));
        if left == 0 {
            Err(WorkerExit::new(ExitReason::Finished))
        } else {
            Ok(())
        }
    }

    /// Takes the ticket of an operation that began before the measured window, if it ended in
    /// it. When none is left, the operation is one too many.
    #[cold]
    fn pay_budget(&mut self, row: u32, start: Nanos, end: Nanos) -> Result<(), WorkerExit> {
        self.owes_budget = false;
        if !self.is_measured(end) {
            return Ok(());
        }
        let paid = self.take_budget(self.budget.unwrap_or(0));
        if paid.is_err() {
            self.recorder.note_in_flight_at_end(row, start);
        }
        paid
    }

    #[inline(always)]
    fn check_deadline(&self, now: Nanos) -> Result<(), WorkerExit> {
        if now < self.lane.deadline() {
            return Ok(());
        }
        Err(WorkerExit::new(ExitReason::Stopped))
    }

    /// Adds an operation to what the worker's limiters will charge.
    fn charge(&mut self, row: u32, bytes: u64) {
        let info = self.shared.rows[row as usize];
        for (limiter, sum) in self.program.limiters.iter().zip(&mut self.limiter_usage) {
            let charged = match &limiter.rows {
                Some(rows) => rows.contains(&row),
                None => info.counts,
            };
            if charged {
                sum.ops += 1;
                sum.transfers += u64::from(info.moves);
                sum.bytes += bytes;
            }
        }
    }

    #[cold]
    pub(crate) fn failed(
        &mut self,
        row: u32,
        subject: OpSubject,
        start: Nanos,
        end: Nanos,
        error: OpError,
    ) -> Result<(), WorkerExit> {
        self.intended = None;
        self.recorder.record_error(row, start, end, &error.name());
        // Of a server that says nothing at all, each further operation would fail as late.
        let is_lost = error.0 == Errno::TIMEDOUT && self.recorder.is_server_silent();
        if self.shared.plan.options.on_error == plimsoll_plan::OnError::Count && !is_lost {
            return match end >= self.lane.deadline() {
                true => Err(self.failed_at_end()),
                false => Ok(()),
            };
        }
        if end >= self.lane.deadline() {
            return Err(self.failed_at_end());
        }
        if error.0 == Errno::TIMEDOUT {
            self.recorder.note_lost_to_silence();
        }
        let failure = Failure {
            path: self.path_of(subject),
            ..self.failure(row, (self.shared.explain)(error))
        };
        Err(WorkerExit::new(ExitReason::Failed(failure)))
    }

    /// An operation that was under way when the run ended has failed since.
    fn failed_at_end(&self) -> WorkerExit {
        self.recorder.count_failed_at_end();
        WorkerExit::new(ExitReason::NotDone)
    }

    /// A failure that no option lets pass.
    pub(crate) fn refuse(&self, row: u32, subject: OpSubject, error: String) -> WorkerExit {
        WorkerExit::new(ExitReason::Failed(Failure {
            path: self.path_of(subject),
            ..self.failure(row, error)
        }))
    }

    pub(crate) fn failure(&self, row: u32, error: String) -> Failure {
        let operation = &self.shared.plan.operations[row as usize];
        Failure {
            operation: operation.name.clone(),
            kind: Some(operation.kind),
            worker: Some(self.name()),
            path: None,
            error,
            location: operation.location.clone(),
        }
    }

    /// `process-1/thread-3`.
    pub(crate) fn name(&self) -> String {
        worker_name(&self.shared.plan, self.group as usize, self.number)
    }

    fn path_of(&self, subject: OpSubject) -> Option<String> {
        let mut path = Vec::new();
        subject.push_path(&self.shared.filesets, &mut path);
        path_in(&self.shared.plan, &path)
    }

    /// Takes a file of the kind the operation needs, the next one round or the one with this
    /// number, if there is one that nobody works on.
    #[inline(always)]
    pub(crate) fn choose_now(
        &mut self,
        fileset: u32,
        kind: Existence,
        number: Option<u64>,
    ) -> Choice {
        let files = &self.shared.filesets[fileset as usize].files;
        let cursors = &mut self.cursors[fileset as usize];
        let cursor = if kind == Existence::Existing {
            &mut cursors.existing
        } else {
            &mut cursors.missing
        };
        match number {
            Some(n) => files.choose_at(kind, n),
            None => files.choose(kind, cursor),
        }
    }

    /// Takes a file likewise; waits while all of them are busy.
    #[inline]
    pub(crate) async fn choose(
        &mut self,
        row: u32,
        fileset: u32,
        kind: Existence,
        number: Option<u64>,
    ) -> Result<FileId, WorkerExit> {
        let mut choice = self.choose_now(fileset, kind, number);
        if choice == Choice::AllBusy {
            let (shared, lane) = (self.shared.clone(), self.lane.clone());
            let files = &shared.filesets[fileset as usize].files;
            let look = || self.choose_now(fileset, kind, number);
            let want = Want::Any(kind, number);
            choice = files.wait(want, &lane, &shared.idle, look).await?;
        }
        let supply = match kind {
            Existence::Existing => SupplyKind::Files,
            Existence::Missing => SupplyKind::MissingFiles,
        };
        match choice {
            Choice::Taken(i) => Ok(FileId(i)),
            _ => Err(ran_out(row, fileset, supply)),
        }
    }

    /// Takes a leaf directory likewise.
    pub(crate) async fn choose_leaf_dir(
        &mut self,
        row: u32,
        fileset: u32,
        kind: Existence,
        number: Option<u64>,
    ) -> Result<u32, WorkerExit> {
        let shared = &self.shared;
        let set = &shared.filesets[fileset as usize];
        let cursor = &mut self.cursors[fileset as usize].leaf_dirs[kind as usize];
        let mut look = || match number {
            Some(n) => set.leaf_dirs.choose_at(kind, n),
            None => set.leaf_dirs.choose(kind, cursor),
        };
        let mut choice = look();
        if choice == Choice::AllBusy {
            let want = Want::Any(kind, number);
            let wait = set.leaf_dirs.wait(want, &self.lane, &shared.idle, look);
            choice = wait.await?;
        }
        let supply = match kind {
            Existence::Existing => SupplyKind::LeafDirs,
            Existence::Missing => SupplyKind::MissingLeafDirs,
        };
        match choice {
            Choice::Taken(i) => Ok(i),
            _ => Err(ran_out(row, fileset, supply)),
        }
    }

    /// Takes this file if it exists; waits while another worker has it.
    pub(crate) async fn claim(&self, fileset: u32, file: FileId) -> Result<bool, WorkerExit> {
        let set: &FilesetState = &self.shared.filesets[fileset as usize];
        let look = || set.files.claim(file.0);
        let mut choice = look();
        if choice == Choice::AllBusy {
            let want = Want::This(file.0);
            let wait = set.files.wait(want, &self.lane, &self.shared.idle, look);
            choice = wait.await?;
        }
        Ok(choice != Choice::None)
    }

    /// The worker has ended: nobody needs to wait for it any more.
    pub(crate) fn retire(&self) {
        self.semaphores.iter().for_each(|s| s.release_posters());
    }
}

#[cold]
fn ran_out(row: u32, fileset: u32, kind: SupplyKind) -> WorkerExit {
    let fileset = FilesetId(fileset);
    let supply = Supply { fileset, kind };
    WorkerExit::new(ExitReason::RanOut { row, supply })
}

/// A path below the work directory as people read it; nothing if there is none.
pub(crate) fn path_in(plan: &plimsoll_plan::Plan, path: &[u8]) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let below = String::from_utf8_lossy(path).into_owned();
    Some(plan.work_dir.dir.join(below).display().to_string())
}

/// Name of a worker: `process-1/thread-3`.
pub(crate) fn worker_name(plan: &plimsoll_plan::Plan, group: usize, number: u32) -> String {
    let g = &plan.groups[group];
    let (process, thread) = (number / g.thread_instances, number % g.thread_instances);
    format!("{}-{}/{}-{}", g.process, process + 1, g.thread, thread + 1)
}
