//! Operations that read, write, append and flush files of filesets.

use crate::worker::context::OpSubject;
use crate::worker::{Slot, Worker, WorkerExit};
use plimsoll_plan::{FileRef, FilesetId, Io, OperationId, Value};
use plimsoll_target::{AioDone, OpError, Session, WritePlace};
use rand::RngExt;

/// Maximum size in bytes of a call that reads or writes a whole file, if the workload sets no size. The buffer of a
/// worker that reads whole files may have this size.
pub(in crate::worker) const MAX_WHOLE_FILE_CALL_BYTES: u64 = 64 << 20;

impl<S: Session> Worker<S> {
    /// The position of a transfer of `size` bytes in the slot's file.
    #[inline(always)]
    fn offset(&mut self, row: u32, io: &Io, slot: usize, size: u64) -> Result<u64, WorkerExit> {
        if !io.random {
            return Ok(self.slots[slot].position);
        }
        let planned = self.slots[slot].planned;
        // With a working set larger than the file, reads would return nothing, and writes would extend the file.
        let set = match io.working_set {
            0 => planned,
            n if planned > 0 => n.min(planned),
            n => n,
        };
        if set < size || size == 0 {
            return Err(self.does_not_fit(row, size, set));
        }
        let u: f64 = self.context.rng.random();
        // File sizes fit signed integers, which convert faster.
        let places = u * (set - size) as i64 as f64 / size as i64 as f64;
        let offset = places as i64 as u64 * size;
        debug_assert!(
            offset + size <= set,
            "{size} bytes at {offset} end beyond {set}"
        );
        Ok(offset)
    }

    #[cold]
    fn does_not_fit(&self, row: u32, size: u64, set: u64) -> WorkerExit {
        let error =
            format!("a random transfer of {size} bytes does not fit the {set} bytes it may lie in");
        self.misuse(row, error)
    }

    /// Size and position of the next transfer in the file of a slot.
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

    /// Size and position of the next read in the file of a slot. Records in `in_flight` the bytes to read, up to the
    /// end of the file.
    #[inline(always)]
    pub(super) fn extent_to_read(
        &mut self,
        row: u32,
        io: &Io,
        slot: usize,
    ) -> Result<(u64, u64), WorkerExit> {
        let (size, offset) = self.extent(row, io, slot)?;
        let left = self.slots[slot].planned.saturating_sub(offset);
        self.context.in_flight.plan(size.min(left));
        Ok((size, offset))
    }

    pub(super) async fn read(&mut self, row: u32, io: &Io) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let (size, offset) = self.extent_to_read(row, io, slot)?;
        let slot = &mut self.slots[slot];
        let handle = slot.opened();
        let done = timed!(
            self,
            row,
            slot.subject(),
            |n| *n,
            self.session.read(handle, offset, size).await
        );
        slot.note_read(io, offset, done?);
        Ok(())
    }

    /// Generates the bytes of the next write to an open file, so that the generation is not timed.
    #[inline(always)]
    pub(in crate::worker) fn prepare_write(
        &mut self,
        row: u32,
        slot: usize,
        offset: u64,
        len: u64,
    ) -> Result<(), WorkerExit> {
        let place = WritePlace::At(self.slots[slot].opened(), offset);
        match self.session.compose(place, len) {
            Ok(()) => Ok(()),
            Err(e) => Err(self.not_composed(row, len, &e)),
        }
    }

    /// [`prepare_write`](Self::prepare_write) for an append.
    pub(in crate::worker) fn prepare_append(
        &mut self,
        row: u32,
        slot: usize,
        len: u64,
    ) -> Result<(), WorkerExit> {
        let place = WritePlace::End(self.slots[slot].opened());
        let composed = self.session.compose(place, len);
        composed.map_err(|e| self.not_composed(row, len, &e))
    }

    /// [`prepare_write`](Self::prepare_write) for the located file, which the operation opens.
    pub(in crate::worker) fn prepare_new_file(
        &mut self,
        row: u32,
        len: u64,
    ) -> Result<(), WorkerExit> {
        let composed = self.session.compose(WritePlace::Located, len);
        composed.map_err(|e| self.not_composed(row, len, &e))
    }

    #[cold]
    fn not_composed(&self, row: u32, len: u64, error: &OpError) -> WorkerExit {
        self.misuse(
            row,
            format!("no memory for a write of {len} bytes: {error}"),
        )
    }

    pub(super) async fn write(&mut self, row: u32, io: &Io) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
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
            self.session.write(handle, offset, size).await
        );
        slot.note_written(io, offset + size, done?);
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
        let slot = &self.slots[slot];
        let piece = call_size(size, slot.planned);
        let calls = self.context.calls(slot.planned, piece);
        let session = &mut self.session;
        if let Err(e) = session.reserve(piece) {
            let error = format!("no memory for transfers of {piece} bytes: {e}");
            return Err(self.misuse(row, error));
        }
        let handle = slot.opened();
        let read = async {
            let mut at = 0;
            loop {
                calls.next(at)?;
                match session.read(handle, at, piece).await? {
                    0 => return Ok(at),
                    n => at += n,
                }
            }
        };
        self.context
            .timed(row, slot.subject(), |n| *n, read)
            .await?;
        Ok(())
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
        let source = source.map_or(slot, usize::from);
        if self.slots[source].open_failed {
            return self.not_open(row, source).await;
        }
        let Some(from) = self.slots[source].file else {
            let error = format!("no file was ever chosen in slot srcfd={source}");
            return Err(self.misuse(row, error));
        };
        let layout = &self.context.shared.filesets[from.fileset as usize].layout;
        let total = layout.size(from.file);
        let piece = call_size(size, total);
        self.prepare_write(row, slot, 0, total)?;
        let slot = &self.slots[slot];
        let calls = self.context.calls(total, piece);
        let session = &mut self.session;
        let handle = slot.opened();
        let write = async {
            let mut at = 0;
            while at < total {
                calls.next(at)?;
                let n = piece.min(total - at);
                session.write(handle, at, n).await?;
                at += n;
            }
            Ok(total)
        };
        self.context
            .timed(row, slot.subject(), |n| *n, write)
            .await?;
        Ok(())
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
        self.prepare_append(row, slot, size)?;
        self.context.in_flight.plan(size);
        let slot = &self.slots[slot];
        let append = self.session.append(slot.opened(), size);
        self.context
            .timed(row, slot.subject(), |()| size, append)
            .await?;
        Ok(())
    }

    pub(super) async fn fsync(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let slot = &self.slots[slot];
        let fsync = self.session.fsync(slot.opened());
        self.context
            .timed(row, slot.subject(), |()| 0, fsync)
            .await?;
        Ok(())
    }

    pub(super) async fn fsync_set(
        &mut self,
        row: u32,
        fileset: FilesetId,
    ) -> Result<(), WorkerExit> {
        let open = self.slots.iter().filter_map(|slot| {
            let of_set = slot.file.is_some_and(|at| at.fileset == fileset.0);
            slot.handle.as_ref().filter(|_| of_set)
        });
        let calls = self.context.calls_without_data(open.clone().count() as u64);
        let session = &mut self.session;
        let flush = async {
            for (done, handle) in (0..).zip(open) {
                calls.next(done)?;
                session.fsync(handle).await?;
            }
            Ok(())
        };
        self.context
            .timed(row, OpSubject::NO_SUBJECT, |()| 0, flush)
            .await?;
        Ok(())
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
        let (size, offset) = self.extent(row, io, slot)?;
        let slot = &self.slots[slot];
        let handle = slot.opened();
        let place = WritePlace::Queued(handle, offset);
        if let Err(e) = self.session.compose(place, size) {
            return Err(self.not_composed(row, size, &e));
        }
        self.context.in_flight.plan(size);
        timed!(
            self,
            row,
            slot.subject(),
            |()| size,
            self.session.aio_write(handle, offset, size, completion.0)
        )?;
        Ok(())
    }

    pub(super) async fn aio_wait(&mut self, row: u32) -> Result<(), WorkerExit> {
        let mut done: Vec<AioDone> = Vec::new();
        let count = (self.session.aio_pending() / 2).max(1);
        let lane = self.context.lane.clone();
        let begun = self.context.start_wait(row);
        let start = begun.start;
        self.context.in_flight.begin(row, start);
        let waited = self.session.aio_take(count, &mut done).await;
        let end = lane.now();
        self.context.note_if_long(start, end);
        if waited.is_err() {
            self.context.recorder.note_in_flight_at_end(row, start);
        }
        self.context.in_flight.end();
        // The writes are recorded before the wait: each write completed before the wait did.
        self.record_completions(done)?;
        waited?;
        self.context.waited(row, &begun, end)
    }

    /// Records completed asynchronous writes.
    pub(crate) fn record_completions(&mut self, mut done: Vec<AioDone>) -> Result<(), WorkerExit> {
        done.sort_by_key(|write| write.end);
        for write in done {
            let (row, start, end) = (write.tag, write.start, write.end);
            match write.result {
                Ok(n) => self
                    .context
                    .recorder
                    .record_completed_at(row, start, end, n),
                Err(e) => self
                    .context
                    .failed(row, OpSubject::NO_SUBJECT, start, end, e)?,
            }
        }
        Ok(())
    }
}

impl<H> Slot<H> {
    /// Advances a sequential reader, which continues at the beginning after the end of the file.
    #[inline(always)]
    pub(super) fn note_read(&mut self, io: &Io, offset: u64, done: Option<u64>) {
        if let (Some(n), false) = (done, io.random) {
            self.position = if n == 0 { 0 } else { offset + n };
        }
    }

    /// Advances a sequential writer to `end`.
    #[inline(always)]
    pub(super) fn note_written(&mut self, io: &Io, end: u64, done: Option<()>) {
        if let (Some(()), false) = (done, io.random) {
            self.position = end;
        }
    }
}

/// Bytes per call of a transfer of a whole file of `file` bytes; `size` is the size that the workload sets, or 0.
fn call_size(size: u64, file: u64) -> u64 {
    match size {
        0 => file.clamp(1, MAX_WHOLE_FILE_CALL_BYTES),
        size => size,
    }
}
