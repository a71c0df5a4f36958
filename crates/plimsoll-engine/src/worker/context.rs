//! The part of a worker that does not depend on the worker's target: time, choice of files, records.

use super::Chosen;
use super::sampling::CpuSampling;
use crate::file_pool::{BlockCursor, Choice, Existence, FilesetState, Want};
use crate::program::Compiled;
use crate::run_state::RunState;
use crate::schedule::{EventBacklog, WindowCounts};
use crate::sync::Semaphore;
use crate::worker_id::WorkerId;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::{InFlight, Nanos, OpTimes, Recorder};
use plimsoll_plan::{
    DirId, Failure, FileId, FilesetId, OnError, Plan, Rng, Supply, SupplyKind, Value,
};
use plimsoll_target::OpError;
use rustix::io::Errno;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

/// Executes and records an operation. Between the two readings of the clock are only the call and a store of the start
/// time. The code is a macro, because a function would take a closure or a future, which costs some nanoseconds.
/// Evaluates to `Ok(None)` if the operation failed and failures are counted.
macro_rules! timed {
    ($worker:expr, $row:expr, $subject:expr, $bytes:expr, $call:expr) => {
        match $worker.context.begin($row) {
            Ok(begun) => {
                let result = $call;
                let end = $worker.context.now();
                $worker
                    .context
                    .finish(end, $row, $subject, begun, $bytes, result)
            }
            Err(exit) => Err(exit),
        }
    };
}

/// Error code of an operation that was not issued because the open of its file failed.
const NOT_OPEN: &str = "NOT_OPEN";

/// Reason for the end of a worker. The type has one word, so that results with a `WorkerExit` are returned in
/// registers: a larger type costs every operation some nanoseconds.
pub(crate) struct WorkerExit(pub(crate) Box<ExitReason>);

const _: () = assert!(size_of::<WorkerExit>() == size_of::<usize>());

/// Reasons for the end of a worker, boxed in a [`WorkerExit`].
pub(crate) enum ExitReason {
    /// The run is over: the worker stopped at the deadline of the lane or at a requested stop.
    Stopped,
    /// The program is finished, or the requested operations are completed.
    Finished,
    /// The supply of an operation is used up.
    RanOut { row: u32, supply: Supply },
    /// The operation was not executed because the budget is used up, or failed after the end of the run.
    NotDone,
    /// An operation failed.
    Failed(Failure),
}

impl WorkerExit {
    #[cold]
    pub(crate) fn new(reason: ExitReason) -> Self {
        Self(Box::new(reason))
    }

    /// Whether the operation that ended the worker had no effect.
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

/// The file or directory of an operation, for its error message: kind (2 bits), fileset (30 bits) and number in the
/// fileset (32 bits). The type has one word, because writing parts and then reading the whole would stall every
/// operation.
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

    /// Appends the path, relative to the work directory; appends nothing without a subject.
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

/// Readings of the clocks at the start of an operation or of a wait.
pub(crate) struct StartedOp {
    /// Processor time of the thread before the operation, in nanoseconds; `None` unless the operation is sampled.
    pub(crate) cpu: Option<NonZeroU64>,
    pub(crate) start: Nanos,
}

/// Numbers of a worker's operations, transfers and bytes that a cap has not charged yet.
#[derive(Default, Clone, Copy)]
pub(crate) struct CapUsage {
    pub(crate) ops: u64,
    pub(crate) transfers: u64,
    pub(crate) bytes: u64,
}

/// A worker's cursors in one fileset, by [`Existence`].
#[derive(Default, Clone, Copy)]
pub(crate) struct FileCursors {
    pub(crate) files: [BlockCursor; 2],
    pub(crate) leaf_dirs: [BlockCursor; 2],
    /// Number of the next file of rotating opens.
    pub(crate) rotating: u64,
}

pub(crate) struct WorkerContext {
    pub(crate) lane: Lane,
    pub(crate) recorder: Rc<Recorder>,
    /// The operation in flight, as the controller sees it.
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) shared: Arc<RunState>,
    pub(crate) program: Arc<Compiled>,
    pub(crate) id: WorkerId,
    pub(crate) rng: Rng,
    /// A random stream per variable, so that the draws of a variable do not shift the draws of another.
    pub(crate) variable_rngs: Box<[Rng]>,
    pub(crate) cursors: Box<[FileCursors]>,
    /// Number of operations begun and of waits completed.
    pub(crate) recorded: u64,
    /// Intended start of the next operation in the schedule.
    pub(crate) intended: Option<Nanos>,
    pub(crate) budget: Option<u64>,
    /// Whether the operation in flight is charged to the budget once it has ended in the measured window.
    pub(crate) owes_budget: bool,
    pub(crate) cap_usage: Box<[CapUsage]>,
    /// Counts of the events that the worker has taken.
    pub(crate) events: WindowCounts,
    /// Backlogs of the event schedule; `None` until the worker takes an event of the schedule.
    pub(crate) event_backlog: Option<Box<EventBacklog>>,
    pub(crate) seen: Box<[u64]>,
    pub(crate) semaphores: Box<[Arc<Semaphore>]>,
    pub(crate) rotation_at: u32,
    pub(crate) cpu: CpuSampling,
}

impl WorkerContext {
    /// The value of a parameter of the program; drawn if the parameter is a random variable.
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

    /// Executes and records an operation. Returns `None` if the operation failed and failures are counted.
    ///
    /// Short operations use `timed!` instead: a future passed to this function is first copied into another future,
    /// which costs some nanoseconds.
    pub(crate) async fn timed<T>(
        &mut self,
        row: u32,
        subject: OpSubject,
        bytes: impl FnOnce(&T) -> u64,
        work: impl Future<Output = Result<T, OpError>>,
    ) -> Result<Option<T>, WorkerExit> {
        let begun = self.begin(row)?;
        let result = work.await;
        let end = self.now();
        self.finish(end, row, subject, begun, bytes, result)
    }

    /// Begins an operation, and charges the operation to the budget if the worker has a budget.
    #[inline(always)]
    pub(crate) fn begin(&mut self, row: u32) -> Result<StartedOp, WorkerExit> {
        if let Some(left) = self.budget {
            self.begin_with_budget(row, left)?;
        }
        Ok(self.start(row))
    }

    /// Starts an operation. The last steps are the reading of the clock and a store of the time.
    #[inline(always)]
    pub(crate) fn start(&mut self, row: u32) -> StartedOp {
        self.recorded += 1;
        let cpu = self.cpu.begin(&self.lane, row);
        let start = self.lane.now();
        self.in_flight.begin(row, start);
        StartedOp { cpu, start }
    }

    /// Reading of the lane's clock, which ends an operation.
    #[inline(always)]
    pub(crate) fn now(&self) -> Nanos {
        self.lane.now()
    }

    /// Ends an operation whose call returned at `end`. Returns `None` if the operation failed and failures are counted.
    #[inline(always)]
    pub(crate) fn finish<T>(
        &mut self,
        end: Nanos,
        row: u32,
        subject: OpSubject,
        begun: StartedOp,
        bytes: impl FnOnce(&T) -> u64,
        result: Result<T, OpError>,
    ) -> Result<Option<T>, WorkerExit> {
        match result {
            Ok(value) => {
                self.record_success(row, begun, end, bytes(&value))?;
                Ok(Some(value))
            }
            Err(error) => {
                self.owes_budget = false;
                let counted = self.failed(row, subject, begun.start, end, error);
                self.end_cpu_sample(row, &begun, end);
                self.in_flight.end();
                counted.map(|()| None)
            }
        }
    }

    /// Records an operation that succeeded. The function is not inlined, because the code that runs after every system
    /// call should be short and common to all operations.
    #[inline(never)]
    fn record_success(
        &mut self,
        row: u32,
        begun: StartedOp,
        end: Nanos,
        moved: u64,
    ) -> Result<(), WorkerExit> {
        self.note_if_long(begun.start, end);
        let paced = self.intended.is_some() || !self.cap_usage.is_empty();
        if begun.cpu.is_some() || self.owes_budget || paced {
            let recorded = self.record_slow_path(row, begun, end, moved);
            self.in_flight.end();
            return recorded;
        }
        self.recorder
            .record(row, OpTimes::unpaced(begun.start, end), moved);
        self.in_flight.end();
        self.check_deadline(end)
    }

    /// Records a close of the row `row` that sent no call to the target's server in the row `local`, and returns the
    /// close's part of the budget. The worker's caps charge the close, so that the workload is the same on all targets.
    #[inline(never)]
    pub(crate) fn record_local_close(
        &mut self,
        row: u32,
        local: u32,
        begun: &StartedOp,
        end: Nanos,
    ) -> Result<(), WorkerExit> {
        if !std::mem::take(&mut self.owes_budget) {
            self.budget = self.budget.map(|left| left + 1);
        }
        self.recorder
            .record(local, OpTimes::unpaced(begun.start, end), 0);
        self.end_cpu_sample(local, begun, end);
        self.charge(row, 0);
        self.in_flight.end();
        self.check_deadline(end)
    }

    /// Records an operation that was sampled, is paced, or is charged to a cap or the budget.
    #[inline(never)]
    fn record_slow_path(
        &mut self,
        row: u32,
        begun: StartedOp,
        end: Nanos,
        moved: u64,
    ) -> Result<(), WorkerExit> {
        if self.owes_budget {
            self.pay_budget(row, begun.start, end)?;
        }
        let times = OpTimes {
            intended: self.take_intended(row),
            ..OpTimes::unpaced(begun.start, end)
        };
        self.recorder.record(row, times, moved);
        self.end_cpu_sample(row, &begun, end);
        self.charge(row, moved);
        self.check_deadline(end)
    }

    /// Ends the sample of an operation's processor time, if the operation is sampled.
    #[inline]
    pub(crate) fn end_cpu_sample(&mut self, row: u32, begun: &StartedOp, end: Nanos) {
        if let Some(before) = begun.cpu {
            let times = (begun.start, end);
            self.cpu.end(&self.lane, &self.recorder, row, before, times);
        }
    }

    /// The intended start of an operation. Only the first counted operation after an event has an intended start.
    fn take_intended(&mut self, row: u32) -> Option<Nanos> {
        let counts = self.shared.rows[row as usize].counts;
        self.intended.take_if(|_| counts)
    }

    /// Executes and records a wait for other workers.
    pub(crate) async fn timed_wait<T>(
        &mut self,
        row: u32,
        wait: impl Future<Output = Result<T, Stopped>>,
    ) -> Result<T, WorkerExit> {
        let begun = self.start_wait(row);
        let value = wait.await?;
        self.waited(row, &begun, self.lane.now())?;
        Ok(value)
    }

    /// Starts a wait, which is not an operation in flight.
    pub(crate) fn start_wait(&mut self, row: u32) -> StartedOp {
        let cpu = self.cpu.begin(&self.lane, row);
        let start = self.lane.now();
        StartedOp { cpu, start }
    }

    /// Records a wait for other workers that ended at `end`, in the row of the waiting operation.
    #[inline(never)]
    pub(crate) fn waited(
        &mut self,
        row: u32,
        begun: &StartedOp,
        end: Nanos,
    ) -> Result<(), WorkerExit> {
        self.recorder
            .record(row, OpTimes::unpaced(begun.start, end), 0);
        self.end_cpu_sample(row, begun, end);
        self.recorded += 1;
        self.check_deadline(end)
    }

    /// Charges a counted operation to the budget of operations; before the measured window, notes that the operation is
    /// charged only if the operation ends in the window.
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

    /// Whether `at` is in the latest measured window or after it.
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

    /// Charges an operation that began before the measured window to the budget, if the operation ended in the window.
    /// If the budget is used up, the operation is not recorded and the worker ends.
    #[cold]
    fn pay_budget(&mut self, row: u32, start: Nanos, end: Nanos) -> Result<(), WorkerExit> {
        self.owes_budget = false;
        if !self.is_measured(end) {
            return Ok(());
        }
        let left = self
            .budget
            .expect("only an operation with a budget owes it");
        let paid = self.take_budget(left);
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

    /// Adds an operation to the operations that the worker's caps will charge.
    fn charge(&mut self, row: u32, bytes: u64) {
        let info = self.shared.rows[row as usize];
        for (cap, sum) in self.program.caps.iter().zip(&mut self.cap_usage) {
            let charged = match &cap.rows {
                Some(rows) => rows.contains(&row),
                None => info.counts,
            };
            if charged {
                sum.ops += 1;
                sum.transfers += u64::from(info.moves);
                sum.bytes = sum.bytes.saturating_add(bytes);
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
        let on_error = self.shared.plan.options.on_error;
        match self.record_failure(row, start, end, error, on_error)? {
            true => Err(self.refuse(row, subject, (self.shared.explain)(error))),
            false => Ok(()),
        }
    }

    /// Records an operation that failed. Returns whether the failure ends the run; otherwise the failure is only
    /// counted. After the deadline, returns `NotDone` as an error.
    pub(crate) fn record_failure(
        &mut self,
        row: u32,
        start: Nanos,
        end: Nanos,
        error: OpError,
        on_error: OnError,
    ) -> Result<bool, WorkerExit> {
        self.intended = None;
        self.note_if_long(start, end);
        self.recorder.record_error(row, start, end, &error.name());
        if end >= self.lane.deadline() {
            self.recorder.count_failed_at_end();
            return Err(WorkerExit::new(ExitReason::NotDone));
        }
        let timed_out = error.0 == Errno::TIMEDOUT;
        // On a silent server every further operation would also end by timeout.
        let is_lost = timed_out && self.recorder.is_server_silent();
        if on_error == OnError::Count && !is_lost {
            return Ok(false);
        }
        if timed_out {
            self.recorder.note_lost_to_silence();
        }
        Ok(true)
    }

    /// Counts an operation that was not issued because the open of its file failed. An operation that was not issued
    /// has no latency, and is charged neither to a cap nor to the budget.
    #[cold]
    pub(crate) fn not_issued(&mut self, row: u32) -> Result<(), WorkerExit> {
        let now = self.lane.now();
        self.check_deadline(now)?;
        self.intended = None;
        self.recorder.record_not_issued(row, now, NOT_OPEN);
        Ok(())
    }

    /// A failure that ends the run, regardless of the error policy.
    pub(crate) fn refuse(&self, row: u32, subject: OpSubject, error: String) -> WorkerExit {
        let mut path = Vec::new();
        subject.push_path(&self.shared.filesets, &mut path);
        self.failure(row, &path, error)
    }

    /// The failure of an operation on a path below the work directory.
    #[cold]
    pub(crate) fn failure(&self, row: u32, path: &[u8], error: String) -> WorkerExit {
        let operation = &self.shared.plan.operations[row as usize];
        WorkerExit::new(ExitReason::Failed(Failure {
            operation: operation.name.clone(),
            kind: Some(operation.kind),
            worker: Some(self.name()),
            path: path_in(&self.shared.plan, path),
            error,
            location: operation.location.clone(),
        }))
    }

    /// The name of the worker, such as `process-1/thread-3`.
    pub(crate) fn name(&self) -> String {
        worker_name(&self.shared.plan, self.id)
    }

    /// Takes an idle file of the kind: file `number` or the next idle file, or without a number the next file in
    /// round-robin order.
    #[inline(always)]
    pub(crate) fn choose_now(
        &mut self,
        fileset: u32,
        kind: Existence,
        number: Option<u64>,
    ) -> Choice {
        let files = &self.shared.filesets[fileset as usize].files;
        let cursor = &mut self.cursors[fileset as usize].files[kind as usize];
        match number {
            Some(n) => files.choose_at(kind, n),
            None => files.choose(kind, cursor),
        }
    }

    /// Takes a file as [`WorkerContext::choose_now`] does; waits while all files of the kind are busy.
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
        taken(choice, row, fileset, supply).map(FileId)
    }

    /// Takes a leaf directory of the kind; waits while all leaf directories of the kind are busy.
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
        taken(choice, row, fileset, supply)
    }

    /// Takes file `at` if the file exists; waits while another worker has the file. Returns whether the file exists.
    pub(crate) async fn claim(&self, at: Chosen) -> Result<bool, WorkerExit> {
        let set: &FilesetState = &self.shared.filesets[at.fileset as usize];
        let look = || set.files.claim(at.file.0);
        let mut choice = look();
        if choice == Choice::AllBusy {
            let want = Want::This(at.file.0);
            let wait = set.files.wait(want, &self.lane, &self.shared.idle, look);
            choice = wait.await?;
        }
        Ok(choice != Choice::None)
    }
}

/// The entry that was taken; without an entry, the reason for the end of the worker.
#[inline]
fn taken(choice: Choice, row: u32, fileset: u32, kind: SupplyKind) -> Result<u32, WorkerExit> {
    let Choice::Taken(entry) = choice else {
        let fileset = FilesetId(fileset);
        let supply = Supply { fileset, kind };
        return Err(WorkerExit::new(ExitReason::RanOut { row, supply }));
    };
    Ok(entry)
}

/// Text of the error that a path has left the work directory.
pub(crate) fn replaced(error: OpError) -> String {
    format!("the directory was replaced during the run: {error}")
}

/// A path below the work directory as text; `None` for an empty path.
pub(crate) fn path_in(plan: &Plan, path: &[u8]) -> Option<String> {
    if path.is_empty() {
        return None;
    }
    let below = String::from_utf8_lossy(path).into_owned();
    Some(plan.work_dir.dir.join(below).display().to_string())
}

/// The name of a worker, such as `process-1/thread-3`.
pub(crate) fn worker_name(plan: &Plan, id: WorkerId) -> String {
    let g = &plan.groups[id.group as usize];
    let process = id.number / g.thread_instances;
    let thread = id.number % g.thread_instances;
    format!("{}-{}/{}-{}", g.process, process + 1, g.thread, thread + 1)
}
