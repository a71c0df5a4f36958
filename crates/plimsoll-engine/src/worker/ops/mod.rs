//! Dispatch of a program's operations, and what the operations have in common: slots, implicit opens, errors.

mod coordinate;
mod dirs;
mod fast_path;
mod files;
mod transfer;

pub(super) use transfer::MAX_WHOLE_FILE_CALL_BYTES;

use super::context::{OpSubject, replaced};
use super::{Worker, WorkerExit};
use crate::file_pool::Existence;
use plimsoll_plan::{FileRef, Op};
use plimsoll_target::{OpError, Session};
use std::future::ready;
use std::pin::Pin;

impl<S: Session> Worker<S> {
    /// Executes one operation of the program, which may wait for other workers or for the target.
    pub(super) async fn run_async(
        &mut self,
        row: u32,
        op: &Op,
        state: u32,
    ) -> Result<(), WorkerExit> {
        match op {
            Op::Read(io) => self.read(row, io).await,
            Op::Write(io) => self.write(row, io).await,
            Op::Stat(file) => self.stat(row, file).await,
            Op::Open(file) => self.open_explicit(row, file, Existence::Existing).await,
            Op::Create(file) => self.open_explicit(row, file, Existence::Missing).await,
            Op::Close { slot } => self.close(row, *slot).await,
            Op::Delete(file) => self.delete(row, file).await,
            _ => self.run_boxed(row, op, state).await,
        }
    }

    /// A long or rare operation, as a separate future on the heap, created before the operation is timed. The code of a
    /// common future of all operations would exceed the instruction cache, which would slow down short operations after
    /// every system call.
    #[inline(never)]
    fn run_boxed<'a>(
        &'a mut self,
        row: u32,
        op: &'a Op,
        state: u32,
    ) -> Pin<Box<dyn Future<Output = Result<(), WorkerExit>> + 'a>> {
        match op {
            Op::ReadWhole { file, size } => Box::pin(self.read_whole(row, file, *size)),
            Op::WriteWhole {
                file,
                source_slot,
                size,
            } => Box::pin(self.write_whole(row, file, *source_slot, *size)),
            Op::Append { file, size, random } => Box::pin(self.append(row, file, *size, *random)),
            Op::AioWrite { io, completion } => Box::pin(self.aio_write(row, io, *completion)),
            Op::AioWait => Box::pin(self.aio_wait(row)),
            Op::Fsync(file) => Box::pin(self.fsync(row, file)),
            Op::FsyncSet { fileset } => Box::pin(self.fsync_set(row, *fileset)),
            Op::MakeDir { fileset, index } => {
                Box::pin(self.change_dir(row, fileset.0, *index, Existence::Existing))
            }
            Op::RemoveDir { fileset, index } => {
                Box::pin(self.change_dir(row, fileset.0, *index, Existence::Missing))
            }
            Op::ListDir { fileset, index } => Box::pin(self.list_dir(row, fileset.0, *index)),
            Op::SemBlock { value, high_water } => {
                Box::pin(self.context.sem_block(row, state, *value, *high_water))
            }
            Op::SemPost {
                targets,
                value,
                blocking,
            } => Box::pin(self.context.sem_post(row, targets, *value, *blocking)),
            Op::Block => Box::pin(self.context.block(row, state)),
            Op::Wakeup { targets } => Box::pin(ready(self.context.wakeup(row, targets))),
            Op::Hog { value } => Box::pin(self.context.hog(row, *value)),
            Op::Delay {
                seconds,
                nanoseconds,
            } => Box::pin(self.context.delay(row, *seconds, *nanoseconds)),
            Op::Limit { kind, .. } => Box::pin(self.context.limit(row, *kind, state)),
            Op::FinishOnCount { value, targets } => {
                let done = self.context.shared.done(targets.as_deref()).0.into();
                Box::pin(ready(self.context.finish_at(row, *value, done)))
            }
            Op::FinishOnBytes { value, targets } => {
                let done = self.context.shared.done(targets.as_deref()).1;
                Box::pin(ready(self.context.finish_at(row, *value, done)))
            }
            Op::Print { text } => Box::pin(ready(self.context.print(row, text))),
            Op::TestVariable { value } => Box::pin(ready(self.context.test_variable(row, *value))),
            Op::Read(_)
            | Op::Write(_)
            | Op::Stat(_)
            | Op::Open(_)
            | Op::Create(_)
            | Op::Close { .. }
            | Op::Delete(_) => unreachable!("`run_async` executes short operations"),
        }
    }

    /// Index of the slot that an operation uses.
    pub(super) fn slot_of(&mut self, file: &FileRef) -> usize {
        let core = &mut self.context;
        let Some(fileset) = file.fileset.filter(|_| file.open_next) else {
            return file.slot as usize;
        };
        let rotations = &core.program.rotations;
        let slots = rotations.iter().find(|r| r.fileset == fileset);
        let slots = slots.expect("every fileset with rotating opens has slots for them");
        // Rotating opens use the slots from the top down.
        let turn = core.rotation_at % slots.count;
        core.rotation_at = core.rotation_at.wrapping_add(1);
        (slots.first + slots.count - 1 - turn) as usize
    }

    /// The slot of a transfer, opened first if the slot is closed. `None` if the open failed and failures are counted:
    /// the failed open in its own row, and the transfer as not issued. An open without a row of its own is counted
    /// once, in the transfer's row.
    #[inline]
    pub(super) async fn ready_slot(
        &mut self,
        row: u32,
        file: &FileRef,
    ) -> Result<Option<usize>, WorkerExit> {
        let slot = self.slot_of(file);
        if self.slots[slot].handle.is_some() {
            return Ok(Some(slot));
        }
        let open_row = file.implicit_open.map_or(row, |r| r.0);
        let opened = self
            .open_into(open_row, file, slot, Existence::Existing)
            .await?;
        if !opened && open_row != row {
            // The failure belongs to the open; the transfer was not issued.
            self.context.not_issued(row)?;
        }
        Ok(opened.then_some(slot))
    }

    /// Checks, before an operation is timed, that no foreign symbolic link leads the operation's path out of the work
    /// directory. A path that leads out of the work directory ends the run, regardless of the error policy.
    pub(super) async fn check_parent(
        &mut self,
        row: u32,
        subject: OpSubject,
    ) -> Result<(), WorkerExit> {
        match self.session.check_parent().await {
            Ok(()) => Ok(()),
            Err(e) => Err(self.replaced(row, subject, e)),
        }
    }

    #[cold]
    fn replaced(&self, row: u32, subject: OpSubject, error: OpError) -> WorkerExit {
        self.context.refuse(row, subject, replaced(error))
    }

    /// A failure that ends the run because an operation of the workload is impossible.
    #[cold]
    pub(super) fn misuse(&self, row: u32, error: String) -> WorkerExit {
        self.context.refuse(row, OpSubject::NO_SUBJECT, error)
    }

    /// Handles an operation on a slot that is not open. If the slot's open failed and was counted, counts the operation
    /// as not issued, and the program goes on. An operation on a slot that no open has used is an error of the program,
    /// which ends the run.
    #[cold]
    async fn not_open(&mut self, row: u32, slot: usize) -> Result<(), WorkerExit> {
        if !self.slots[slot].open_failed {
            return Err(self.closed(row, slot));
        }
        self.context.not_issued(row)?;
        // Without a call to the target, only this yield gives the lane's other workers their turn.
        if !self.context.lane.consume_poll_budget() {
            self.context.lane.yield_if_exhausted().await;
        }
        Ok(())
    }

    #[cold]
    fn closed(&self, row: u32, slot: usize) -> WorkerExit {
        self.misuse(row, format!("slot fd={slot} is not open"))
    }
}

/// Whether an operation took effect, even if the run ended during the operation.
#[inline]
pub(super) fn took_effect<T>(done: &Result<Option<T>, WorkerExit>) -> bool {
    match done {
        Ok(done) => done.is_some(),
        Err(exit) => !exit.without_effect(),
    }
}
