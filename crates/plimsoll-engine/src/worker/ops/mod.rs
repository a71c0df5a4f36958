//! What each operation does.

mod coordinate;
mod dirs;
mod fast_path;
mod files;
mod transfer;

pub(super) use transfer::MAX_WHOLE_FILE_CALL_BYTES;

use super::context::{ExitReason, OpSubject};
use super::{Worker, WorkerExit};
use crate::file_pool::Existence;
use plimsoll_plan::{FileRef, Op};
use plimsoll_target::{OpError, Session};
use std::pin::Pin;

impl<S: Session> Worker<S> {
    /// Does one operation of the program, which may have to wait for other workers or for the
    /// target.
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
            Op::Open(file) => self.open_explicit(row, file).await,
            Op::Create(file) => self.create(row, file).await,
            Op::Close { slot } => self.close(row, *slot).await,
            Op::Delete(file) => self.delete(row, file).await,
            _ => self.run_boxed(row, op, state).await,
        }
    }

    /// Operations that take their time, or that are rare, as a future of their own on the heap:
    /// one future of all operations is larger than a processor's instruction cache, and the short
    /// ones would pay for that after every system call. Made before the operation is timed.
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
            _ => Box::pin(self.coordinate(row, op, state)),
        }
    }

    /// Index of the slot an operation uses.
    pub(super) fn slot_of(&mut self, file: &FileRef) -> usize {
        let core = &mut self.context;
        let rotation = file.fileset.filter(|_| file.open_next).and_then(|fileset| {
            core.program
                .rotations
                .iter()
                .find(|r| r.fileset == fileset)
                .copied()
        });
        match rotation {
            Some(r) => {
                // From the top down.
                let turn = core.rotation_at % r.count;
                core.rotation_at = core.rotation_at.wrapping_add(1);
                (r.first + r.count - 1 - turn) as usize
            }
            None => file.slot as usize,
        }
    }

    /// The slot of a transfer, opened first if it is not open. `None` if that failed and
    /// failures are only counted.
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
        Ok(opened.then_some(slot))
    }

    /// Makes sure, before it is timed, that an operation on a directory's entry cannot leave the
    /// work directory by a symbolic link that somebody put there. Ends the run if it could,
    /// whatever is said of errors.
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
        let error = format!("the directory was replaced while the run went on: {error}");
        self.context.refuse(row, subject, error)
    }

    /// The workload asks for something that makes no sense.
    #[cold]
    pub(super) fn misuse(&self, row: u32, error: String) -> WorkerExit {
        WorkerExit::new(ExitReason::Failed(self.context.failure(row, error)))
    }
}

/// Whether an operation took effect: it did also when the run ended with it.
#[inline]
pub(super) fn took_effect<T>(done: &Result<Option<T>, WorkerExit>) -> bool {
    match done {
        Ok(done) => done.is_some(),
        Err(halt) => !halt.without_effect(),
    }
}
