//! Workers: they run a program until the run ends, and record every operation.

mod context;
mod mix;
mod ops;
mod pattern;
mod sampling;

use self::context::ExitReason;
pub(crate) use self::context::{FileCursors, LimiterUsage, WorkerContext, WorkerExit, worker_name};
use ops::took_effect;
pub(crate) use sampling::CpuSampling;

use crate::program::{Compiled, Instr};
use plimsoll_plan::{FileId, Op, Plan, Value, WorkerGroup};
use plimsoll_target::Session;

/// Bytes that a worker of the group reads at once where the workload sets no size and whole files
/// are read; 0 if there is no such read.
pub(crate) fn whole_file_buffer(plan: &Plan, group: &WorkerGroup) -> u64 {
    let mut reads_whole = false;
    group.program.for_each_op(&mut |_, _, op| {
        reads_whole |= matches!(
            op,
            Op::ReadWhole {
                size: Value::Const(0),
                ..
            }
        );
    });
    if !reads_whole {
        return 0;
    }
    // A size that is drawn has no bound that is known; the most that is read at once has.
    let largest = plan
        .filesets
        .iter()
        .map(|f| f.size.constant().unwrap_or(ops::MAX_WHOLE_FILE_CALL_BYTES));
    largest
        .max()
        .unwrap_or(0)
        .min(ops::MAX_WHOLE_FILE_CALL_BYTES)
}

/// A descriptor slot.
pub(crate) struct Slot<H> {
    pub(crate) handle: Option<H>,
    /// File that was last chosen here.
    pub(crate) file: Option<(u32, FileId)>,
    /// Planned size of that file.
    pub(crate) planned: u64,
    /// Next position of sequential transfers.
    pub(crate) position: u64,
}

impl<H> Default for Slot<H> {
    fn default() -> Self {
        Self {
            handle: None,
            file: None,
            planned: 0,
            position: 0,
        }
    }
}

/// A worker: its session on the target, its descriptors, and what it knows of itself.
pub(crate) struct Worker<S: Session> {
    // Dropped first: it waits for writes to descriptors in the slots.
    pub(crate) session: S,
    pub(crate) slots: Vec<Slot<S::Handle>>,
    pub(crate) context: WorkerContext,
    /// Where each composite that is running begins, and how often it runs again.
    loops: Box<[(usize, u64)]>,
}

/// Where a worker is in its program.
struct ProgramCounter {
    /// Instruction.
    at: usize,
    /// Times that it is still to be done, once it has begun.
    left: Option<u64>,
    /// Composites that are running.
    depth: usize,
    /// Operations recorded when the program began.
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

/// Nanoseconds a worker rests that found nothing to do in its whole program.
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

    /// Runs until the run ends or the program is done.
    pub(crate) async fn run(mut self) {
        let program = self.context.program.clone();
        if let Some(mix) = &program.mix {
            let halt = self.run_mix(mix.clone()).await;
            return self.end(halt).await;
        }
        let halt = loop {
            if self.context.recorded == 0 && self.context.lane.now() >= self.context.lane.deadline()
            {
                // The run was over before it began.
                break WorkerExit::new(ExitReason::Stopped);
            }
            if !self.context.lane.consume_poll_budget() {
                self.context.lane.yield_if_exhausted().await;
            }
            let before = self.context.recorded;
            if let Err(halt) = self.cycle(&program).await {
                break halt;
            }
            if self.context.recorded == before {
                let rest = self.context.lane.now() + IDLE_PROGRAM_PAUSE_NS;
                if self.context.lane.sleep_until(rest).await.is_err() {
                    break WorkerExit::new(ExitReason::Stopped);
                }
            }
        };
        self.end(halt).await;
    }

    /// Once through the program.
    #[inline]
    async fn cycle(&mut self, program: &Compiled) -> Result<(), WorkerExit> {
        let mut cursor = ProgramCounter::begin(&self.context);
        while let Some((row, op, state)) = self.advance(program, &mut cursor)? {
            self.run_async(row, op, state).await?;
        }
        Ok(())
    }

    /// Goes on in the program, from its end at its beginning, up to an operation that may have to
    /// wait, which is returned. `None` at the end of the program, when others should have a turn
    /// or nothing was done in all of it.
    ///
    /// The operations are inlined here, which matters: see [`Session::is_immediate`].
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
                            Some(done) => done?,
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

    /// Says why the worker ended, and closes what it has open.
    async fn end(mut self, halt: WorkerExit) {
        let shared = self.context.shared.clone();
        let now = self.context.lane.now();
        if !matches!(*halt.0, ExitReason::Stopped | ExitReason::Failed(_)) {
            shared.worker_done(now);
        }
        match *halt.0 {
            ExitReason::Failed(failure) => shared.fail(failure, now),
            ExitReason::RanOut { row, supply } => shared.run_out(row, supply, now),
            ExitReason::Stopped | ExitReason::Finished | ExitReason::NotDone => {}
        }
        // Closing may take long; the run does not wait for it to end.
        shared.worker_exited(now);
        self.context.retire();
        self.take_last_completions().await;
        for slot in &mut self.slots {
            if let Some(handle) = slot.handle.take() {
                // The run is over; an error here is no result of it.
                let _ = self.session.close(handle).await;
                if let Some((f, id)) = slot.file {
                    shared.filesets[f as usize].dec_open(id);
                }
            }
        }
        shared.worker_ended(self.context.index);
    }

    /// Records the asynchronous writes that have completed, and gives up those that nobody has
    /// begun; the others are under way at the end.
    async fn take_last_completions(&mut self) {
        if self.session.aio_pending() == 0 {
            return;
        }
        let mut done = Vec::new();
        let _ = self.session.aio_take(0, &mut done).await;
        // Those that no thread has begun have waited as well.
        for (row, start) in self.session.aio_under_way() {
            self.context.recorder.note_in_flight_at_end(row, start);
        }
        self.session.aio_abandon();
        // The first of several errors ends the run; here it has ended already.
        if let Err(halt) = self.record_completions(done)
            && let ExitReason::Failed(failure) = *halt.0
        {
            self.context.shared.fail(failure, self.context.lane.now());
        }
    }
}
