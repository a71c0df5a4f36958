//! Workers: they run a program until the run ends, and record every operation.

mod core;
mod ops;
mod program;
mod sampling;

use self::core::HaltReason;
pub(crate) use self::core::{Core, Halt, Hands, Uncharged, worker_name};
pub(crate) use program::{Compiled, RowInfo};
pub(crate) use sampling::CpuSampling;

use crate::outcome::Failure;
use plimsoll_plan::{FileId, QuitMode};
use plimsoll_target::Session;
use program::Instr;

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
    pub(crate) core: Core,
    /// Where each composite that is running begins, and how often it runs again.
    loops: Box<[(usize, u64)]>,
}

/// Nanoseconds a worker rests that found nothing to do in its whole program.
const REST: u64 = 1_000;

impl<S: Session> Worker<S> {
    pub(crate) fn new(session: S, core: Core) -> Self {
        let slots = (0..core.program.slots).map(|_| Slot::default()).collect();
        let loops = vec![(0, 0); core.program.nesting].into();
        Self {
            session,
            slots,
            core,
            loops,
        }
    }

    /// Runs until the run ends or the program is done.
    pub(crate) async fn run(mut self) {
        let halt = loop {
            self.core.lane.breathe().await;
            let before = self.core.recorded;
            if let Err(halt) = self.cycle().await {
                break halt;
            }
            if self.core.recorded == before {
                let rest = self.core.lane.now() + REST;
                if self.core.lane.sleep_until(rest).await.is_err() {
                    break Halt::new(HaltReason::Stopped);
                }
            }
        };
        self.end(halt).await;
    }

    /// Once through the program.
    async fn cycle(&mut self) -> Result<(), Halt> {
        let program = self.core.program.clone();
        let (mut depth, mut at) = (0, 0);
        while let Some(instr) = program.code.get(at) {
            at += 1;
            match instr {
                Instr::Do {
                    row,
                    iters,
                    op,
                    state,
                } => {
                    for _ in 0..self.core.draw(*iters) {
                        self.operate(*row, op, *state).await?;
                    }
                }
                Instr::Enter { iters, exit } => match self.core.draw(*iters) {
                    0 => at = *exit as usize,
                    n => {
                        self.loops[depth] = (at, n - 1);
                        depth += 1;
                    }
                },
                Instr::Next => {
                    let (begin, left) = &mut self.loops[depth - 1];
                    if *left == 0 {
                        depth -= 1;
                    } else {
                        *left -= 1;
                        at = *begin;
                    }
                }
            }
        }
        Ok(())
    }

    /// Says why the worker ended, and closes what it has open.
    async fn end(mut self, halt: Halt) {
        let shared = self.core.shared.clone();
        let now = self.core.lane.now();
        match *halt.0 {
            HaltReason::Failed(failure) => shared.fail(failure, now),
            HaltReason::NoResource { row, what } if shared.plan.quit == QuitMode::Timeout => {
                let error = format!(
                    "no {what} is left to work on; the workload ends by time only: give it more \
                     entries or less time, or end it with --quit alldone"
                );
                let failure = Failure {
                    error,
                    ..self.core.failure(row, String::new())
                };
                shared.fail(failure, now);
            }
            HaltReason::Stopped | HaltReason::Finished | HaltReason::NoResource { .. } => {}
        }
        self.core.retire();
        for slot in &mut self.slots {
            if let Some(handle) = slot.handle.take() {
                // The run is over; an error here is no result of it.
                let _ = self.session.close(handle).await;
            }
        }
        shared.worker_ended(self.core.index, now);
    }
}
