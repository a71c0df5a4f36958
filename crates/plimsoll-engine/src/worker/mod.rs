//! Workers, which run a program until the run ends, and record every operation.

mod calls;
#[macro_use]
mod context;
mod handles;
mod job;
mod mix;
mod ops;
mod pacer;
mod pattern;
mod sampling;
mod schedule;

pub(crate) use self::context::{CapUsage, FileCursors, WorkerContext, WorkerExit, worker_name};
use self::context::{ExitReason, OpSubject};
pub(crate) use job::JobState;
use ops::took_effect;
pub(crate) use pattern::owner_of;
pub(crate) use sampling::CpuSampling;

use crate::program::{Compiled, Instr};
use crate::sync::lock;
use plimsoll_lane::Task;
use plimsoll_plan::{FileId, Op, Plan, Value, WorkerGroup};
use plimsoll_target::{ContentPool, OpError, Session};
use rustix::io::Errno;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes that a worker of the group reads at once in reads of whole files for which the workload sets no size; 0
/// without reads of whole files.
pub(crate) fn whole_file_buffer(plan: &Plan, group: &WorkerGroup) -> u64 {
    let reads_whole =
        |op: &Op| matches!(op, Op::ReadWhole { size, .. } if *size == Value::Const(0));
    if !group.program.any_op(reads_whole) {
        return 0;
    }
    // A drawn file size has no known bound, but the size of a call has.
    let max = ops::MAX_WHOLE_FILE_CALL_BYTES;
    let sizes = plan.filesets.iter().map(|f| f.size.constant());
    let sizes = sizes.map(|size| size.unwrap_or(max).min(max));
    sizes.max().unwrap_or(0)
}

/// A chosen file. No other worker chooses the file before its release.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    /// Index of the file's fileset.
    pub(crate) fileset: u32,
    pub(crate) file: FileId,
}

impl Chosen {
    #[inline(always)]
    pub(crate) fn subject(self) -> OpSubject {
        OpSubject::file(self.fileset, self.file)
    }
}

/// A worker's descriptor slot, as Filebench's `fd=`: an open file and the positions of transfers.
pub(crate) struct Slot<H> {
    pub(crate) handle: Option<H>,
    /// The file that was last chosen for the slot.
    pub(crate) file: Option<Chosen>,
    /// Planned size of the slot's file in bytes.
    pub(crate) planned: u64,
    /// Next position of sequential transfers, in bytes.
    pub(crate) position: u64,
    /// Whether the latest open into the slot failed and the failure was counted.
    pub(crate) open_failed: bool,
}

impl<H> Default for Slot<H> {
    fn default() -> Self {
        Self {
            handle: None,
            file: None,
            planned: 0,
            position: 0,
            open_failed: false,
        }
    }
}

impl<H> Slot<H> {
    /// A slot whose open failed. The slot has no file, so that no operation uses the slot's previous file.
    #[cold]
    pub(crate) fn not_opened() -> Self {
        Self {
            open_failed: true,
            ..Self::default()
        }
    }

    /// The handle of the file in the slot, which must be open.
    #[inline(always)]
    pub(crate) fn opened(&self) -> &H {
        self.handle.as_ref().expect("the slot was opened before")
    }

    #[inline(always)]
    pub(crate) fn subject(&self) -> OpSubject {
        self.file.map_or(OpSubject::NO_SUBJECT, Chosen::subject)
    }
}

/// A worker: its session on the target, its descriptors, and its context.
pub(crate) struct Worker<S: Session> {
    // The session is the first field, because fields are dropped in order: the session waits for writes to descriptors
    // in the slots.
    pub(crate) session: S,
    pub(crate) slots: Vec<Slot<S::Handle>>,
    pub(crate) context: WorkerContext,
    /// For each running composite, its first instruction and the number of further iterations.
    loops: Box<[(usize, u64)]>,
}

/// The position of a worker in its program.
struct ProgramCounter {
    /// Index of the current instruction.
    at: usize,
    /// Remaining iterations of the current instruction, once the instruction has begun.
    left: Option<u64>,
    /// Number of running composites.
    depth: usize,
    /// Value of `WorkerContext::recorded` when the program began.
    recorded: u64,
}

impl ProgramCounter {
    fn begin(core: &WorkerContext) -> Self {
        Self {
            at: 0,
            left: None,
            depth: 0,
            recorded: core.recorded,
        }
    }
}

/// Error of a read that did not return the written data.
const WRONG_CONTENTS: OpError = OpError(Errno::BADMSG);

/// Pause of a worker after an execution of its whole program without an operation, in nanoseconds.
const IDLE_PROGRAM_PAUSE_NS: u64 = 1_000;

impl<S: Session> Worker<S> {
    pub(crate) fn new(session: S, core: WorkerContext) -> Self {
        let slots = (0..core.program.slots).map(|_| Slot::default()).collect();
        let loops = vec![(0, 0); core.program.nesting].into();
        Self {
            session,
            slots,
            context: core,
            loops,
        }
    }

    /// A task that runs until the run, the stage or the program ends. Mixes, jobs and sequences have separate `async`
    /// blocks: a future for all would be as large as the largest of the futures, and an `async fn` that takes a worker
    /// by value, or a call of such a function, has room for the worker twice.
    ///
    /// All tasks are boxed in this function, because the compiler puts a task into the codegen unit of the module that
    /// boxes the task, and compiles a session's operations again in each such unit.
    pub(crate) fn into_task<'a>(mut self, content: &ContentPool) -> Task<'a>
    where
        S: 'a,
    {
        if self.context.shared.stage.is_some() {
            return Box::pin(self.run_stage(content.clone()));
        }
        if let Some(job) = self.context.program.job.clone() {
            return Box::pin(async move {
                let exit = self.run_job(job).await;
                self.end(exit).await;
            });
        }
        match self.context.program.mix.clone() {
            Some(mix) => Box::pin(async move {
                let exit = self.run_mix(mix).await;
                self.end(exit).await;
            }),
            None => Box::pin(async move {
                let exit = self.run_sequence().await;
                self.end(exit).await;
            }),
        }
    }

    /// Runs a sequence until the run or the program ends.
    async fn run_sequence(&mut self) -> WorkerExit {
        let program = self.context.program.clone();
        loop {
            if self.context.recorded == 0 && self.context.lane.now() >= self.context.lane.deadline()
            {
                // The run was over before the worker began.
                break WorkerExit::new(ExitReason::Stopped);
            }
            if !self.context.lane.consume_poll_budget() {
                self.context.lane.yield_if_exhausted().await;
            }
            let before = self.context.recorded;
            if let Err(exit) = self.cycle(&program).await {
                break exit;
            }
            if self.context.recorded == before {
                let rest = self.context.lane.now() + IDLE_PROGRAM_PAUSE_NS;
                if self.context.lane.sleep_until(rest).await.is_err() {
                    break WorkerExit::new(ExitReason::Stopped);
                }
            }
        }
    }

    /// Executes the whole program once, operation by operation.
    #[inline]
    async fn cycle(&mut self, program: &Compiled) -> Result<(), WorkerExit> {
        let mut cursor = ProgramCounter::begin(&self.context);
        while let Some((row, op, state)) = self.advance(program, &mut cursor)? {
            let done = self.run_async(row, op, state).await;
            self.check_reads(row);
            done?;
        }
        Ok(())
    }

    /// Executes the program repeatedly, up to an operation that may have to wait, and returns this operation. Returns
    /// `None` at the end of the program, if the poll budget is used up or the program recorded nothing.
    ///
    /// The operations must be inlined into this function: see [`Session::is_immediate`].
    #[inline(never)]
    fn advance<'p>(
        &mut self,
        program: &'p Compiled,
        cursor: &mut ProgramCounter,
    ) -> Result<Option<(u32, &'p Op, u32)>, WorkerExit> {
        loop {
            let Some(instr) = program.code.get(cursor.at) else {
                if self.context.recorded == cursor.recorded
                    || !self.context.lane.consume_poll_budget()
                {
                    return Ok(None);
                }
                *cursor = ProgramCounter::begin(&self.context);
                continue;
            };
            match instr {
                Instr::Op {
                    row,
                    iters,
                    op,
                    state,
                } => {
                    let mut left = match cursor.left.take() {
                        Some(left) => left,
                        None => self.context.draw(*iters),
                    };
                    while left > 0 {
                        left -= 1;
                        match self.run_immediate(*row, op) {
                            Some(done) => {
                                self.check_reads(*row);
                                done?;
                            }
                            None => {
                                cursor.left = Some(left);
                                return Ok(Some((*row, op, *state)));
                            }
                        }
                    }
                    cursor.at += 1;
                }
                Instr::LoopBegin { iters, exit } => match self.context.draw(*iters) {
                    0 => cursor.at = *exit as usize,
                    n => {
                        cursor.at += 1;
                        self.loops[cursor.depth] = (cursor.at, n - 1);
                        cursor.depth += 1;
                    }
                },
                Instr::LoopEnd => {
                    let (begin, left) = &mut self.loops[cursor.depth - 1];
                    if *left == 0 {
                        cursor.depth -= 1;
                        cursor.at += 1;
                    } else {
                        *left -= 1;
                        cursor.at = *begin;
                    }
                }
            }
        }
    }

    /// Checks the data that the latest operation read, if the run is verified. A wrong read is counted as an error of
    /// the operation, regardless of the error policy: the run goes on, and its result is invalid.
    #[inline(always)]
    pub(super) fn check_reads(&mut self, row: u32) {
        for _ in 0..self.session.check_reads() {
            let now = self.context.lane.now();
            let recorder = &self.context.recorder;
            recorder.record_error(row, now, now, &WRONG_CONTENTS.name());
        }
    }

    /// Notes the reason for the end of the worker, and closes the worker's files.
    async fn end(&mut self, exit: WorkerExit) {
        let shared = self.context.shared.clone();
        let now = self.context.lane.now();
        if !matches!(*exit.0, ExitReason::Stopped | ExitReason::Failed(_)) {
            shared.worker_done(now);
        }
        match *exit.0 {
            ExitReason::Failed(failure) => shared.fail(failure, now),
            ExitReason::RanOut { row, supply } => shared.run_out(row, supply, now),
            ExitReason::Stopped | ExitReason::Finished | ExitReason::NotDone => {}
        }
        let program = &self.context.program;
        if program.takes_events() {
            shared.events_left(&self.context.events, program.follows_events(), now);
            if let Some(of_events) = &self.context.event_backlog {
                lock(&shared.backlog).add(&of_events.backlog);
            }
        }
        // The run does not wait for the files to be closed.
        shared.worker_exited(now);
        // Other workers need not wait for this worker any more.
        let semaphores = self.context.semaphores.iter();
        semaphores.for_each(|s| s.release_posters());
        self.take_last_completions().await;
        self.session.check_reads();
        for slot in &mut self.slots {
            if let Some(handle) = slot.handle.take() {
                // The run is over, so an error of the close does not belong to the result.
                let _ = self.session.close(handle).await;
                if let Some(at) = slot.file {
                    shared.filesets[at.fileset as usize].dec_open(at.file);
                }
            }
        }
        shared.ended[self.context.id.index as usize].store(true, Relaxed);
    }

    /// Records the completed asynchronous writes, and abandons the queued writes that no thread has begun. Every
    /// uncompleted write counts as in flight at the end.
    async fn take_last_completions(&mut self) {
        if self.session.aio_pending() == 0 {
            return;
        }
        let mut done = Vec::new();
        let _ = self.session.aio_take(0, &mut done).await;
        for (row, start) in self.session.aio_abandon() {
            self.context.recorder.note_in_flight_at_end(row, start);
        }
        // The run has ended, so only the first of several errors is reported.
        if let Err(exit) = self.record_completions(done)
            && let ExitReason::Failed(failure) = *exit.0
        {
            self.context.shared.fail(failure, self.context.lane.now());
        }
    }
}
