//! Moving data, and flushing it.

use super::super::context::OpSubject;
use super::super::{Slot, Worker, WorkerExit};
use plimsoll_lane::Lane;
use plimsoll_plan::{FileRef, FilesetId, Io, OperationId, Value};
use plimsoll_target::{AioDone, OpError, Session};
use rand::RngExt;

/// Bytes a whole file is read or written by at most in one call, when the workload sets no size:
/// every worker has a buffer of so many.
pub(in crate::worker) const MAX_WHOLE_FILE_CALL_BYTES: u64 = 64 << 20;

impl<S: Session> Worker<S> {
    /// Where a transfer of `size` bytes goes in the slot's file.
    #[inline(always)]
    fn offset(&mut self, row: u32, io: &Io, slot: usize, size: u64) -> Result<u64, WorkerExit> {
        if !io.random {
            return Ok(self.slots[slot].position);
        }
        let planned = self.slots[slot].planned;
        // A working set larger than the file would read nothing, or make the file longer.
        let set = match io.working_set {
            0 => planned,
            n if planned > 0 => n.min(planned),
            n => n,
        };
        if set < size || size == 0 {
            return Err(self.does_not_fit(row, size, set));
        }
        let u: f64 = self.context.rng.random();
        // No file is longer than a signed number says, and those are quicker to convert.
        let places = u * (set - size) as i64 as f64 / size as i64 as f64;
        Ok(places as i64 as u64 * size)
    }

    #[cold]
    fn does_not_fit(&self, row: u32, size: u64, set: u64) -> WorkerExit {
        let error =
            format!("a random transfer of {size} bytes does not fit the {set} bytes it may lie in");
        self.misuse(row, error)
    }

    /// Size and position of a transfer in a slot.
    #[inline(always)]
    pub(super) fn extent(
        &mut self,
        row: u32,
        io: &Io,
        slot: usize,
    ) -> Result<(u64, u64), WorkerExit> {
        let size = self.context.draw(io.size);
        let offset = self.offset(row, io, slot, size)?;
        Ok((size, offset))
    }

    pub(super) async fn read(&mut self, row: u32, io: &Io) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let (size, offset) = self.extent(row, io, slot)?;
        let slot = &mut self.slots[slot];
        let Some(handle) = &slot.handle else {
            return Ok(());
        };
        let begun = self.context.begin(row)?;
        let result = self.session.read(handle, offset, size).await;
        let done = self
            .context
            .finish(row, slot.subject(), begun, |n| *n, result)?;
        slot.has_read(io, offset, done);
        Ok(())
    }

    /// Has the bytes of the next write made, so that they need not be while it is timed.
    #[inline(always)]
    pub(in crate::worker) fn prepare_write(
        &mut self,
        row: u32,
        len: u64,
    ) -> Result<(), WorkerExit> {
        match self.session.compose(len) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.not_composed(row, len, &e)),
        }
    }

    #[cold]
    fn not_composed(&self, row: u32, len: u64, error: &OpError) -> WorkerExit {
        let error = format!("no memory for a write of {len} bytes: {error}");
        self.context.refuse(row, OpSubject::NO_SUBJECT, error)
    }

    pub(super) async fn write(&mut self, row: u32, io: &Io) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let (size, offset) = self.extent(row, io, slot)?;
        self.prepare_write(row, size)?;
        let slot = &mut self.slots[slot];
        let Some(handle) = &slot.handle else {
            return Ok(());
        };
        let begun = self.context.begin(row)?;
        let result = self.session.write(handle, offset, size).await;
        let done = self
            .context
            .finish(row, slot.subject(), begun, |()| size, result)?;
        slot.has_written(io, offset + size, done);
        Ok(())
    }

    pub(super) async fn read_whole(
        &mut self,
        row: u32,
        file: &FileRef,
        size: Value,
    ) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let size = self.context.draw(size);
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let planned = self.context.shared.filesets[*f as usize].layout.size(*id);
        let piece = if size == 0 {
            planned.clamp(1, MAX_WHOLE_FILE_CALL_BYTES)
        } else {
            size
        };
        let (session, lane) = (&mut self.session, self.context.lane.clone());
        if let Err(e) = session.reserve(piece) {
            let error = format!("no memory for transfers of {piece} bytes: {e}");
            return Err(self.misuse(row, error));
        }
        let read = async {
            let mut at = 0;
            loop {
                cut_short(&lane, at)?;
                match session.read(handle, at, piece).await? {
                    0 => return Ok(at),
                    n => at += n,
                }
            }
        };
        self.context
            .timed(row, OpSubject::file(*f, *id), |n| *n, read)
            .await
            .map(|_| ())
    }

    pub(super) async fn write_whole(
        &mut self,
        row: u32,
        file: &FileRef,
        source: Option<u8>,
        size: Value,
    ) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let size = self.context.draw(size);
        let from = self.slots[source.map_or(slot, usize::from)].file;
        let Some((f, id)) = from else {
            let error = format!(
                "no file was ever chosen in slot srcfd={}",
                source.unwrap_or(0)
            );
            return Err(self.misuse(row, error));
        };
        let total = self.context.shared.filesets[f as usize].layout.size(id);
        let piece = if size == 0 {
            total.clamp(1, MAX_WHOLE_FILE_CALL_BYTES)
        } else {
            size
        };
        self.prepare_write(row, total)?;
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let (session, lane) = (&mut self.session, self.context.lane.clone());
        let write = async {
            let mut at = 0;
            while at < total {
                cut_short(&lane, at)?;
                let n = piece.min(total - at);
                session.write(handle, at, n).await?;
                at += n;
            }
            Ok(total)
        };
        self.context
            .timed(row, OpSubject::file(*f, *id), |n| *n, write)
            .await
            .map(|_| ())
    }

    pub(super) async fn append(
        &mut self,
        row: u32,
        file: &FileRef,
        size: Value,
        random: bool,
    ) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let mut size = self.context.draw(size);
        if random {
            size = self.context.rng.random_range(0..=size);
        }
        self.prepare_write(row, size)?;
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let append = self.session.append(handle, size);
        self.context
            .timed(row, OpSubject::file(*f, *id), |()| size, append)
            .await
            .map(|_| ())
    }

    pub(super) async fn fsync(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        if self.slots[file.slot as usize].handle.is_none() && file.fileset.is_none() {
            return Err(self.misuse(row, format!("slot fd={} is not open", file.slot)));
        }
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let fsync = self.session.fsync(handle);
        self.context
            .timed(row, OpSubject::file(*f, *id), |()| 0, fsync)
            .await
            .map(|_| ())
    }

    pub(super) async fn fsync_set(
        &mut self,
        row: u32,
        fileset: FilesetId,
    ) -> Result<(), WorkerExit> {
        let (session, slots) = (&mut self.session, &self.slots);
        let flush = async {
            for slot in slots {
                match (&slot.handle, slot.file) {
                    (Some(handle), Some((f, _))) if f == fileset.0 => session.fsync(handle).await?,
                    _ => {}
                }
            }
            Ok(())
        };
        self.context
            .timed(row, OpSubject::NO_SUBJECT, |()| 0, flush)
            .await
            .map(|_| ())
    }

    pub(super) async fn aio_write(
        &mut self,
        row: u32,
        io: &Io,
        completion: OperationId,
    ) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let size = self.context.draw(io.size);
        let offset = self.offset(row, io, slot, size)?;
        if let Err(e) = self.session.aio_compose(size) {
            return Err(self.not_composed(row, size, &e));
        }
        let Slot {
            handle: Some(handle),
            file,
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let subject = file.map_or(OpSubject::NO_SUBJECT, |(f, id)| OpSubject::file(f, id));
        let session = &mut self.session;
        let queue = async { session.aio_write(handle, offset, size, completion.0) };
        self.context
            .timed(row, subject, |()| size, queue)
            .await
            .map(|_| ())
    }

    pub(super) async fn aio_wait(&mut self, row: u32) -> Result<(), WorkerExit> {
        let mut done: Vec<AioDone> = Vec::new();
        let count = (self.session.aio_pending() / 2).max(1);
        let lane = self.context.lane.clone();
        let start = lane.now();
        self.context.under_way.begin(row, start);
        let waited = self.session.aio_take(count, &mut done).await;
        let end = lane.now();
        self.context.under_way.end();
        if waited.is_err() {
            self.context.recorder.note_in_flight_at_end(row, start);
        }
        // The writes first: each belongs to where it completed, before the wait did.
        self.record_completions(done)?;
        waited?;
        self.context.waited(row, start, end)
    }

    /// Records asynchronous writes that have completed.
    pub(crate) fn record_completions(&mut self, mut done: Vec<AioDone>) -> Result<(), WorkerExit> {
        done.sort_by_key(|write| write.end);
        for write in done {
            match write.result {
                Ok(n) => {
                    self.context
                        .recorder
                        .record_completed_at(write.tag, write.start, write.end, n)
                }
                Err(e) => self.context.failed(
                    write.tag,
                    OpSubject::NO_SUBJECT,
                    write.start,
                    write.end,
                    e,
                )?,
            }
        }
        Ok(())
    }
}

impl<H> Slot<H> {
    #[inline(always)]
    pub(super) fn subject(&self) -> OpSubject {
        self.file
            .map_or(OpSubject::NO_SUBJECT, |(f, id)| OpSubject::file(f, id))
    }

    /// A sequential reader goes on behind what it has read, and at the end begins again.
    #[inline(always)]
    pub(super) fn has_read(&mut self, io: &Io, offset: u64, done: Option<u64>) {
        if let (Some(n), false) = (done, io.random) {
            self.position = if n == 0 { 0 } else { offset + n };
        }
    }

    /// A sequential writer goes on at `end`.
    #[inline(always)]
    pub(super) fn has_written(&mut self, io: &Io, end: u64, done: Option<()>) {
        if let (Some(()), false) = (done, io.random) {
            self.position = end;
        }
    }
}

/// Ends an operation of many calls between two of them when the run is over: it may have minutes
/// to go.
fn cut_short(lane: &Lane, done: u64) -> Result<(), OpError> {
    if done > 0 && lane.now() >= lane.deadline() {
        return Err(OpError(rustix::io::Errno::CANCELED));
    }
    Ok(())
}
