//! Operations on data files, which exist during the whole run.

use super::choice::{Extent, whole_blocks};
use super::transfer_placement::block_of;
use super::{MixState, Position, Worker, WorkerExit};
use crate::worker::context::OpSubject;
use plimsoll_plan::MixOp;
use plimsoll_target::{FileOperation, OpError, OpenHow, OpenMode, Session};
use rand::RngExt;

impl<S: Session> Worker<S> {
    pub(super) async fn mix_read(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let direct = state.is_direct();
        let len = state.program.mix.reads.draw(&mut state.rng);
        let (member, mut offset, _) = state.next_place(state.reading, MixState::size);
        let Some(slot) = self.mix_slot(row, state, member, direct).await? else {
            return Ok(false);
        };
        let mut len = len;
        if direct {
            (offset, len) = (block_of(offset), whole_blocks(len));
        }
        let left = state.size(member).saturating_sub(offset);
        self.context.in_flight.plan(len.min(left));
        let read = self.session.read(self.slots[slot].opened(), offset, len);
        let read = self.context.timed(row, state.subject(member), |n| *n, read);
        let Some(n) = read.await? else {
            return Ok(false);
        };
        state.reading = Position {
            member: (n > 0).then_some(member),
            offset: offset + n,
        };
        Ok(true)
    }

    pub(super) async fn mix_write(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let direct = state.is_direct();
        let len = state.program.mix.writes.draw(&mut state.rng).max(1);
        let bound = |state: &MixState, member| self.planned(state, member);
        let (member, mut offset, begins) = state.next_place(state.writing, bound);
        let Some(slot) = self.mix_slot(row, state, member, direct).await? else {
            return Ok(false);
        };
        if begins && !state.program.mix.flags.overwrite {
            state.writing.member = None;
            if !self.mix_resize(state, member, slot, 0).await? {
                return Ok(false);
            }
        }
        // The last write of a file ends at the planned size; into an empty file, a write has any length.
        let mut len = match self.planned(state, member).saturating_sub(offset) {
            0 => len,
            left => len.min(left),
        };
        if direct {
            (offset, len) = (block_of(offset), whole_blocks(len));
        }
        let done = self
            .mix_put(row, state, member, slot, (offset, len))
            .await?;
        if done {
            state.writing = Position {
                member: Some(member),
                offset: offset + len,
            };
        }
        Ok(done)
    }

    /// Writes to an open file, with the durability that the flags of the mix demand.
    async fn mix_put(
        &mut self,
        row: u32,
        state: &mut MixState,
        member: u64,
        slot: usize,
        (offset, len): (u64, u64),
    ) -> Result<bool, WorkerExit> {
        let (stable, commit) = state.draw_durability();
        self.prepare_write(row, slot, offset, len)?;
        self.context.in_flight.plan(len);
        let handle = self.slots[slot].opened();
        let session = &mut self.session;
        let write = async {
            match stable {
                true => {
                    let offset = Some(offset);
                    let write = FileOperation::WriteStable { offset, len };
                    session.on_file(handle, write).await?;
                }
                false => session.write(handle, offset, len).await?,
            }
            flush_if(session, handle, commit).await
        };
        let done = self
            .context
            .timed(row, state.subject(member), |()| len, write);
        let done = done.await?.is_some();
        if done {
            state.grow(member, offset + len);
        }
        Ok(done)
    }

    /// Executes an operation at a random position.
    pub(super) async fn mix_random(
        &mut self,
        op: MixOp,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let direct = match op {
            MixOp::MmapRead | MixOp::MmapWrite | MixOp::Lock => false,
            _ => state.is_direct(),
        };
        let table = match op.reads() {
            true => &state.program.mix.reads,
            false => &state.program.mix.writes,
        };
        let len = table.draw(&mut state.rng).max(1);
        let (member, mut place) = match op {
            // A write may fill a truncated file; any other operation needs existing bytes.
            MixOp::WriteRand => {
                let planned = |state: &MixState, member| self.planned(state, member).max(len);
                state.random_place(len, direct, planned)
            }
            _ => state.random_place(len, direct, MixState::size),
        };
        let Some(slot) = self.mix_slot(row, state, member, direct).await? else {
            return Ok(false);
        };
        if op == MixOp::WriteRand {
            return self
                .mix_put(row, state, member, slot, (place.offset, place.len))
                .await;
        }
        let mapped = matches!(op, MixOp::MmapRead | MixOp::MmapWrite);
        if mapped && place.len == 0 {
            // An empty file cannot be mapped.
            let size = self.planned(state, member).max(len);
            if !self.mix_resize(state, member, slot, size).await? {
                return Ok(false);
            }
            place.len = len.min(size);
        }
        let (stable, commit) = match op {
            MixOp::Rmw | MixOp::MmapWrite => state.draw_durability(),
            _ => (false, false),
        };
        if op == MixOp::MmapWrite {
            self.prepare_write(row, slot, place.offset, place.len)?;
        }
        let subject = state.subject(member);
        self.mix_access(op, row, subject, slot, place, (stable, commit))
            .await
    }

    /// Executes the read, write, mapped access or lock of `op` on an extent of the file in `slot`.
    async fn mix_access(
        &mut self,
        op: MixOp,
        row: u32,
        subject: OpSubject,
        slot: usize,
        Extent { offset, len }: Extent,
        (stable, commit): (bool, bool),
    ) -> Result<bool, WorkerExit> {
        self.context.in_flight.plan(match op {
            MixOp::Lock => 0,
            _ => len,
        });
        let handle = self.slots[slot].opened();
        let session = &mut self.session;
        let work = async {
            let operation = match op {
                MixOp::ReadRand => return session.read(handle, offset, len).await,
                MixOp::Rmw => FileOperation::Modify { offset, len },
                MixOp::MmapRead => FileOperation::MapRead { offset, len },
                MixOp::MmapWrite => {
                    let flush = stable;
                    FileOperation::MapWrite { offset, len, flush }
                }
                _ => {
                    let len = len.max(1);
                    FileOperation::Lock { offset, len }
                }
            };
            let moved = session.on_file(handle, operation).await?;
            let flush = commit || (stable && op == MixOp::Rmw);
            flush_if(session, handle, flush).await?;
            Ok(moved)
        };
        let done = self.context.timed(row, subject, |n| *n, work).await?;
        Ok(done.is_some())
    }

    pub(super) async fn mix_read_file(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let direct = state.is_direct();
        let piece = state.program.mix.reads.greatest().max(1);
        let piece = if direct { whole_blocks(piece) } else { piece };
        let member = state.member();
        let how = OpenHow {
            direct,
            planned_size: state.size(member),
            ..OpenHow::plain(OpenMode::Read)
        };
        self.locate_member(state, member);
        let calls = self.context.calls(how.planned_size, piece);
        let session = &mut self.session;
        let read = async {
            let handle = session.open(how).await?;
            let mut at = 0;
            let read = loop {
                if let Err(e) = calls.next(at) {
                    break Err(e);
                }
                match session.read(&handle, at, piece).await {
                    Ok(0) => break Ok(at),
                    Ok(n) => at += n,
                    Err(e) => break Err(e),
                }
            };
            session.close(handle).await.and(read)
        };
        let read = self.context.timed(row, state.subject(member), |n| *n, read);
        Ok(read.await?.is_some())
    }

    pub(super) async fn mix_append(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let len = state.program.mix.writes.draw(&mut state.rng).max(1);
        let member = state.member();
        let Some(slot) = self.mix_slot(row, state, member, false).await? else {
            return Ok(false);
        };
        // A file that appends have doubled is truncated to its planned size, so that the data set
        // does not grow.
        let planned = self.planned(state, member);
        if state.size(member) + len > 2 * planned.max(len)
            && !self.mix_resize(state, member, slot, planned).await?
        {
            return Ok(false);
        }
        let (stable, commit) = state.draw_durability();
        self.prepare_append(row, slot, len)?;
        self.context.in_flight.plan(len);
        let handle = self.slots[slot].opened();
        let session = &mut self.session;
        let append = async {
            match stable {
                true => {
                    let append = FileOperation::WriteStable { offset: None, len };
                    session.on_file(handle, append).await?;
                }
                false => session.append(handle, len).await?,
            }
            flush_if(session, handle, commit).await
        };
        let done = self
            .context
            .timed(row, state.subject(member), |()| len, append);
        let done = done.await?.is_some();
        if done {
            state.grow(member, state.size(member) + len);
        }
        Ok(done)
    }

    pub(super) async fn mix_truncate(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let member = state.member();
        let Some(slot) = self.mix_slot(row, state, member, false).await? else {
            return Ok(false);
        };
        let align = state.program.mix.flags.align;
        let planned = self.planned(state, member);
        let size = state.rng.random_range(0..=planned / align) * align;
        self.mix_set_size(row, state, member, slot, size).await
    }

    pub(super) async fn mix_fsync(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let member = state.writing.member;
        let member = member.unwrap_or_else(|| state.member());
        let Some(slot) = self.mix_slot(row, state, member, false).await? else {
            return Ok(false);
        };
        let flush = self.session.fsync(self.slots[slot].opened());
        let done = self
            .context
            .timed(row, state.subject(member), |()| 0, flush);
        Ok(done.await?.is_some())
    }
}

/// Flushes a file if `flush` is set.
pub(super) async fn flush_if<S: Session>(
    session: &mut S,
    handle: &S::Handle,
    flush: bool,
) -> Result<(), OpError> {
    match flush {
        true => session.fsync(handle).await,
        false => Ok(()),
    }
}
