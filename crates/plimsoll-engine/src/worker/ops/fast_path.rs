//! Operations that never wait, as plain calls.
//!
//! A target that completes at once needs no futures, which would keep state across waits. The code between two system
//! calls runs with the processor caches that the kernel has just used, so the cost of the code is its number of
//! instructions and cache lines: plain calls have half as many instructions and cache lines as futures.
//!
//! The loop of a program inlines the plain calls, down to the system calls: see [`Session::is_immediate`] for the
//! reason why functions must not return after a system call.

use crate::file_pool::{Choice, Existence};
use crate::worker::{Chosen, Worker, WorkerExit};
use plimsoll_plan::{FileId, FileRef, FilesetId, Io, Op};
use plimsoll_target::Session;

impl<S: Session> Worker<S> {
    /// Executes one operation of the program if the target completes at once and the operation need not wait: the file
    /// of a transfer is open, or a file to choose is idle. Returns `None`, without effect, for an operation that may
    /// wait, and for rare or long operations.
    #[inline(always)]
    pub(in crate::worker) fn run_immediate(
        &mut self,
        row: u32,
        op: &Op,
    ) -> Option<Result<(), WorkerExit>> {
        if !S::HAS_FAST_PATH || !self.session.is_immediate() {
            return None;
        }
        match op {
            Op::Read(io) => {
                let slot = self.open_slot(&io.file)?;
                Some(self.read_now(row, io, slot))
            }
            Op::Write(io) => {
                let slot = self.open_slot(&io.file)?;
                Some(self.write_now(row, io, slot))
            }
            Op::Stat(file) if file.slot == 0 => {
                let chosen = self.next_file(file, Existence::Existing)?;
                Some(self.stat_now(row, chosen))
            }
            Op::Open(file) => {
                let chosen = self.next_to_open(file, Existence::Existing)?;
                Some(self.open_now(row, file, Existence::Existing, chosen))
            }
            Op::Create(file) => {
                let chosen = self.next_to_open(file, Existence::Missing)?;
                Some(self.open_now(row, file, Existence::Missing, chosen))
            }
            Op::Close { slot } => Some(self.close_now(row, *slot)),
            Op::Delete(file) if file.slot > 0 => {
                let chosen = self.file_of_slot(file.slot)?;
                Some(self.delete_now(row, file.slot, chosen))
            }
            _ => None,
        }
    }

    #[inline(always)]
    fn read_now(&mut self, row: u32, io: &Io, slot: usize) -> Result<(), WorkerExit> {
        let (size, offset) = self.extent_to_read(row, io, slot)?;
        let slot = &mut self.slots[slot];
        let handle = slot.opened();
        let done = timed!(
            self,
            row,
            slot.subject(),
            |n| *n,
            self.session.read_now(handle, offset, size)
        );
        slot.note_read(io, offset, done?);
        Ok(())
    }

    #[inline(always)]
    fn write_now(&mut self, row: u32, io: &Io, slot: usize) -> Result<(), WorkerExit> {
        let (size, offset) = self.extent(row, io, slot)?;
        self.prepare_write(row, slot, offset, size)?;
        self.context.in_flight.plan(size);
        let slot = &mut self.slots[slot];
        let handle = slot.opened();
        let done = timed!(
            self,
            row,
            slot.subject(),
            |()| size,
            self.session.write_now(handle, offset, size)
        );
        slot.note_written(io, offset + size, done?);
        Ok(())
    }

    #[inline(always)]
    fn stat_now(&mut self, row: u32, at: Chosen) -> Result<(), WorkerExit> {
        self.locate(at);
        let done = timed!(self, row, at.subject(), |_| 0, self.session.stat_now());
        self.context.shared.filesets[at.fileset as usize].release(at.file, Existence::Existing);
        done.map(|_| ())
    }

    #[inline(always)]
    fn open_now(
        &mut self,
        row: u32,
        file: &FileRef,
        kind: Existence,
        at: Chosen,
    ) -> Result<(), WorkerExit> {
        let how = self.locate_to_open(file, kind, at);
        let done = timed!(self, row, at.subject(), |_| 0, self.session.open_now(how));
        let slot = file.slot as usize;
        self.note_opened(slot, kind, at, how.planned_size, done)?;
        Ok(())
    }

    #[inline(always)]
    fn close_now(&mut self, row: u32, slot: u8) -> Result<(), WorkerExit> {
        let Some((handle, at)) = self.take_handle(row, slot)? else {
            return Ok(());
        };
        let done = timed!(
            self,
            row,
            at.subject(),
            |()| 0,
            self.session.close_now(handle)
        );
        self.note_closed(at);
        done.map(|_| ())
    }

    #[inline(always)]
    fn delete_now(&mut self, row: u32, slot: u8, at: Chosen) -> Result<(), WorkerExit> {
        self.locate(at);
        let done = match self.session.check_parent_now() {
            Ok(()) => timed!(self, row, at.subject(), |()| 0, self.session.unlink_now()),
            Err(e) => Err(self.replaced(row, at.subject(), e)),
        };
        self.note_deleted(slot, at, done)
    }

    /// The slot of the operation, if the slot is open.
    #[inline(always)]
    fn open_slot(&self, file: &FileRef) -> Option<usize> {
        let slot = file.slot as usize;
        let open = !file.open_next && self.slots[slot].handle.is_some();
        open.then_some(slot)
    }

    /// Takes the next file of the operation's fileset, if a file of this kind is idle.
    #[inline(always)]
    fn next_file(&mut self, file: &FileRef, kind: Existence) -> Option<Chosen> {
        let FilesetId(fileset) = file.fileset?;
        // The number of a file must be drawn once, whether or not the operation has to wait.
        if file.index.is_some() || file.open_next {
            return None;
        }
        match self.context.choose_now(fileset, kind, None) {
            Choice::Taken(i) => Some(Chosen {
                fileset,
                file: FileId(i),
            }),
            _ => None,
        }
    }

    /// Takes the next file of the operation's fileset, if the operation's slot is closed.
    #[inline(always)]
    fn next_to_open(&mut self, file: &FileRef, kind: Existence) -> Option<Chosen> {
        match self.slots[file.slot as usize].handle {
            None => self.next_file(file, kind),
            Some(_) => None,
        }
    }

    /// Takes the slot's file, if the file is idle and no other worker has the file open.
    #[inline(always)]
    fn file_of_slot(&mut self, slot: u8) -> Option<Chosen> {
        let slot = &self.slots[slot as usize];
        let at = slot.file?;
        let set = &self.context.shared.filesets[at.fileset as usize];
        let Choice::Taken(_) = set.files.claim(at.file.0) else {
            return None;
        };
        if set.open_count(at.file) > u32::from(slot.handle.is_some()) {
            set.release(at.file, Existence::Existing);
            return None;
        }
        Some(at)
    }
}
