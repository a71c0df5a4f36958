//! What each operation does.

use super::core::{HaltReason, Subject};
use super::{Halt, Slot, Worker};
use crate::outcome::VariableStats;
use crate::store::Kind;
use crate::sync::lock;
use plimsoll_plan::{Access, FileId, FileRef, FilesetId, Io, LimitKind, Op, OperationId, Value};
use plimsoll_target::{AioDone, OpenHow, OpenMode, Session};
use rand::RngExt;

/// Bytes a whole file is read or written by at most, when the workload sets no size.
const WHOLE: u64 = 1 << 30;

impl<S: Session> Worker<S> {
    /// Does one operation of the program.
    #[inline]
    pub(super) async fn operate(&mut self, row: u32, op: &Op, state: u32) -> Result<(), Halt> {
        match op {
            Op::Read(io) => self.read(row, io).await,
            Op::Write(io) => self.write(row, io).await,
            Op::Stat(file) => self.stat(row, file).await,
            Op::Open(file) => self.open_explicit(row, file).await,
            Op::Create(file) => self.create(row, file).await,
            Op::Close { slot } => self.close(row, *slot).await,
            Op::ReadWhole { file, size } => self.read_whole(row, file, *size).await,
            Op::WriteWhole {
                file,
                source_slot,
                size,
            } => self.write_whole(row, file, *source_slot, *size).await,
            Op::Append { file, size, random } => self.append(row, file, *size, *random).await,
            Op::Delete(file) => self.delete(row, file).await,
            Op::AioWrite { io, completion } => self.aio_write(row, io, *completion).await,
            Op::AioWait => self.aio_wait(row).await,
            Op::Fsync(file) => self.fsync(row, file).await,
            Op::FsyncSet { fileset } => self.fsync_set(row, *fileset).await,
            Op::MakeDir { fileset, index } => self.make_dir(row, fileset.0, *index).await,
            Op::RemoveDir { fileset, index } => self.remove_dir(row, fileset.0, *index).await,
            Op::ListDir { fileset, index } => self.list_dir(row, fileset.0, *index).await,
            _ => self.coordinate(row, op, state).await,
        }
    }

    /// Operations that do not touch the target.
    async fn coordinate(&mut self, row: u32, op: &Op, state: u32) -> Result<(), Halt> {
        let core = &mut self.core;
        let shared = core.shared.clone();
        match op {
            Op::SemBlock { value, high_water } => {
                let (count, high) = (core.draw(*value), core.draw(*high_water));
                let (lane, semaphore) =
                    (core.lane.clone(), core.semaphores[state as usize].clone());
                core.timed_wait(row, semaphore.take(&lane, &shared.idle, count, high))
                    .await
            }
            Op::SemPost {
                targets,
                value,
                blocking,
            } => {
                let (count, lane) = (core.draw(*value), core.lane.clone());
                let post = async {
                    for row in targets {
                        for semaphore in &shared.semaphores[row.0 as usize] {
                            semaphore
                                .post(&lane, &shared.idle, count, *blocking)
                                .await?;
                        }
                    }
                    Ok(())
                };
                core.timed_wait(row, post).await
            }
            Op::Block => {
                let (lane, seen) = (core.lane.clone(), core.seen[state as usize]);
                let wait = shared.wakeups[row as usize].wait(&lane, &shared.idle, seen);
                core.seen[state as usize] = core.timed_wait(row, wait).await?;
                Ok(())
            }
            Op::Wakeup { targets } => {
                targets
                    .iter()
                    .for_each(|t| shared.wakeups[t.0 as usize].wake());
                core.timed_wait(row, std::future::ready(Ok(()))).await
            }
            Op::Hog { value } => {
                let (stores, lane) = (core.draw(*value), core.lane.clone());
                let work = async {
                    lane.busy(stores).await;
                    Ok(())
                };
                core.timed(row, Subject::Nothing, |()| 0, work)
                    .await
                    .map(|_| ())
            }
            Op::Delay { seconds } => {
                let time = core.draw(*seconds).saturating_mul(1_000_000_000);
                let wait = core.lane.sleep_until(core.lane.now().saturating_add(time));
                core.timed_wait(row, wait).await
            }
            Op::Limit { kind, .. } => self.limit(row, *kind, state).await,
            Op::FinishOnCount { value, targets } => {
                let value = self.core.draw(*value);
                self.finish_at(row, value, shared.done(targets.as_deref()).0)
                    .await
            }
            Op::FinishOnBytes { value, targets } => {
                let value = self.core.draw(*value);
                self.finish_at(row, value, shared.done(targets.as_deref()).1)
                    .await
            }
            Op::Print { text } => {
                lock(&shared.said).push(format!("{}: {text}", core.name()));
                core.timed_wait(row, std::future::ready(Ok(()))).await
            }
            Op::TestVariable { value } => {
                let drawn = core.draw(*value);
                let mut all = lock(&shared.drawn);
                let at = all.iter().position(|(r, _)| *r == row).unwrap_or_else(|| {
                    all.push((row, VariableStats::default()));
                    all.len() - 1
                });
                all[at].1.add(drawn as f64);
                drop(all);
                core.timed_wait(row, std::future::ready(Ok(()))).await
            }
            _ => unreachable!("operations on the target are handled before"),
        }
    }

    async fn finish_at(&mut self, row: u32, value: u64, done: u64) -> Result<(), Halt> {
        self.core
            .timed_wait(row, std::future::ready(Ok(())))
            .await?;
        if done >= value {
            Err(Halt::new(HaltReason::Finished))
        } else {
            Ok(())
        }
    }

    async fn limit(&mut self, row: u32, kind: LimitKind, state: u32) -> Result<(), Halt> {
        const MIB: u64 = 1 << 20;
        let core = &mut self.core;
        let sum = &mut core.uncharged[state as usize];
        let events = match kind {
            LimitKind::Calls => 1,
            LimitKind::IoOps => std::mem::take(&mut sum.transfers),
            LimitKind::Ops => std::mem::take(&mut sum.ops),
            // The part of a MiB that is left over is charged by a later call.
            LimitKind::Bandwidth => {
                let whole = sum.bytes / MIB;
                sum.bytes %= MIB;
                whole
            }
        };
        core.pace(events).await?;
        let intended = core.intended.take();
        core.timed_wait(row, std::future::ready(Ok(()))).await?;
        core.intended = intended;
        Ok(())
    }

    /// Index of the slot an operation uses.
    fn slot_of(&mut self, file: &FileRef) -> usize {
        let core = &mut self.core;
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
    async fn ready_slot(&mut self, row: u32, file: &FileRef) -> Result<Option<usize>, Halt> {
        let slot = self.slot_of(file);
        if self.slots[slot].handle.is_some() {
            return Ok(Some(slot));
        }
        let open_row = file.implicit_open.map_or(row, |r| r.0);
        let opened = self.open_into(open_row, file, slot, Kind::Present).await?;
        Ok(opened.then_some(slot))
    }

    /// Chooses a file and opens it into a slot; `false` if it failed and failures are counted.
    async fn open_into(
        &mut self,
        row: u32,
        file: &FileRef,
        slot: usize,
        kind: Kind,
    ) -> Result<bool, Halt> {
        let Some(FilesetId(f)) = file.fileset else {
            return Err(self.misuse(row, format!("slot fd={} is not open", file.slot)));
        };
        let number = match (file.index, file.open_next) {
            (Some(index), _) => Some(self.core.draw(index)),
            (None, true) => {
                let hand = &mut self.core.hands[f as usize].rotating;
                *hand += 1;
                Some(*hand - 1)
            }
            (None, false) => None,
        };
        let id = self.core.choose(row, f, kind, number).await?;
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        let how = OpenHow {
            mode: match shared.plan.filesets[f as usize].access {
                _ if kind == Kind::Absent => OpenMode::ReadWrite,
                Access::ReadWrite => OpenMode::ReadWrite,
                Access::ReadOnly => OpenMode::Read,
                Access::WriteOnly => OpenMode::Write,
            },
            create: kind == Kind::Absent,
            direct: file.direct,
            dsync: file.dsync,
            no_read_ahead: file.no_read_ahead,
            planned_size: set.layout.size(id),
        };
        self.session.locate(|path| set.layout.push_file(id, path));
        let open = self.session.open(how);
        let handle = match self
            .core
            .timed(row, Subject::File(f, id), |_| 0, open)
            .await
        {
            Ok(handle) => handle,
            Err(halt) => {
                // The run may have ended with the very call that made the file.
                let made = kind == Kind::Absent && !halt.is_failure();
                if made {
                    set.files.changed(Kind::Present);
                }
                set.release(id, if made { Kind::Present } else { kind });
                return Err(halt);
            }
        };
        let now = if handle.is_some() {
            Kind::Present
        } else {
            kind
        };
        if handle.is_some() {
            set.opened(id);
            if kind == Kind::Absent {
                set.files.changed(Kind::Present);
            }
            self.slots[slot] = Slot {
                handle,
                file: Some((f, id)),
                planned: how.planned_size,
                position: 0,
            };
        }
        set.release(id, now);
        Ok(now == Kind::Present && self.slots[slot].handle.is_some())
    }

    async fn open_explicit(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let slot = self.slot_of(file);
        self.must_be_closed(row, slot)?;
        self.open_into(row, file, slot, Kind::Present)
            .await
            .map(|_| ())
    }

    async fn create(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let slot = self.slot_of(file);
        self.must_be_closed(row, slot)?;
        self.open_into(row, file, slot, Kind::Absent)
            .await
            .map(|_| ())
    }

    fn must_be_closed(&self, row: u32, slot: usize) -> Result<(), Halt> {
        match self.slots[slot].handle {
            None => Ok(()),
            Some(_) => Err(self.misuse(row, format!("slot fd={slot} is already open"))),
        }
    }

    /// The workload asks for something that makes no sense.
    fn misuse(&self, row: u32, error: String) -> Halt {
        Halt::new(HaltReason::Failed(self.core.failure(row, error)))
    }

    async fn close(&mut self, row: u32, slot: u8) -> Result<(), Halt> {
        let entry = &mut self.slots[slot as usize];
        let (Some(handle), Some((f, id))) = (entry.handle.take(), entry.file) else {
            // After an open that failed and was counted there is nothing to close.
            if self.core.shared.plan.options.on_error == plimsoll_plan::OnError::Count {
                return Ok(());
            }
            return Err(self.misuse(row, format!("slot fd={slot} is not open")));
        };
        self.core.shared.filesets[f as usize].closed(id);
        let close = self.session.close(handle);
        self.core
            .timed(row, Subject::File(f, id), |()| 0, close)
            .await
            .map(|_| ())
    }

    /// Where a transfer of `size` bytes goes in the slot's file.
    #[inline]
    fn offset(&mut self, row: u32, io: &Io, slot: usize, size: u64) -> Result<u64, Halt> {
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
            let error = format!(
                "a random transfer of {size} bytes does not fit the {set} bytes it may lie in"
            );
            return Err(self.misuse(row, error));
        }
        let u: f64 = self.core.rng.random();
        Ok((u * (set - size) as f64 / size as f64) as u64 * size)
    }

    #[inline]
    async fn read(&mut self, row: u32, io: &Io) -> Result<(), Halt> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let size = self.core.draw(io.size);
        let offset = self.offset(row, io, slot, size)?;
        let Slot {
            handle: Some(handle),
            file,
            position,
            ..
        } = &mut self.slots[slot]
        else {
            return Ok(());
        };
        let subject = file.map_or(Subject::Nothing, |(f, id)| Subject::File(f, id));
        let read = self.session.read(handle, offset, size);
        if let Some(n) = self.core.timed(row, subject, |n| *n, read).await?
            && !io.random
        {
            *position = if n == 0 { 0 } else { offset + n };
        }
        Ok(())
    }

    #[inline]
    async fn write(&mut self, row: u32, io: &Io) -> Result<(), Halt> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let size = self.core.draw(io.size);
        let offset = self.offset(row, io, slot, size)?;
        let Slot {
            handle: Some(handle),
            file,
            position,
            ..
        } = &mut self.slots[slot]
        else {
            return Ok(());
        };
        let subject = file.map_or(Subject::Nothing, |(f, id)| Subject::File(f, id));
        let write = self.session.write(handle, offset, size);
        if self
            .core
            .timed(row, subject, |()| size, write)
            .await?
            .is_some()
            && !io.random
        {
            *position = offset + size;
        }
        Ok(())
    }

    async fn read_whole(&mut self, row: u32, file: &FileRef, size: Value) -> Result<(), Halt> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let size = self.core.draw(size);
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let planned = self.core.shared.filesets[*f as usize].layout.size(*id);
        let piece = if size == 0 {
            planned.clamp(1, WHOLE)
        } else {
            size
        };
        let session = &mut self.session;
        let read = async {
            let mut at = 0;
            loop {
                match session.read(handle, at, piece).await? {
                    0 => return Ok(at),
                    n => at += n,
                }
            }
        };
        self.core
            .timed(row, Subject::File(*f, *id), |n| *n, read)
            .await
            .map(|_| ())
    }

    async fn write_whole(
        &mut self,
        row: u32,
        file: &FileRef,
        source: Option<u8>,
        size: Value,
    ) -> Result<(), Halt> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let size = self.core.draw(size);
        let from = self.slots[source.map_or(slot, usize::from)].file;
        let Some((f, id)) = from else {
            let error = format!(
                "no file was ever chosen in slot srcfd={}",
                source.unwrap_or(0)
            );
            return Err(self.misuse(row, error));
        };
        let total = self.core.shared.filesets[f as usize].layout.size(id);
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let piece = if size == 0 {
            total.clamp(1, WHOLE)
        } else {
            size
        };
        let session = &mut self.session;
        let write = async {
            let mut at = 0;
            while at < total {
                let n = piece.min(total - at);
                session.write(handle, at, n).await?;
                at += n;
            }
            Ok(total)
        };
        self.core
            .timed(row, Subject::File(*f, *id), |n| *n, write)
            .await
            .map(|_| ())
    }

    async fn append(
        &mut self,
        row: u32,
        file: &FileRef,
        size: Value,
        random: bool,
    ) -> Result<(), Halt> {
        let Some(slot) = self.ready_slot(row, file).await? else {
            return Ok(());
        };
        let mut size = self.core.draw(size);
        if random {
            size = self.core.rng.random_range(0..=size);
        }
        let Slot {
            handle: Some(handle),
            file: Some((f, id)),
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let append = self.session.append(handle, size);
        self.core
            .timed(row, Subject::File(*f, *id), |()| size, append)
            .await
            .map(|_| ())
    }

    async fn delete(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let in_slot = (file.slot > 0)
            .then(|| self.slots[file.slot as usize].file)
            .flatten();
        let shared = self.core.shared.clone();
        let (f, id) = match in_slot {
            Some((f, id)) => {
                if !self.core.claim(f, id).await? {
                    return Ok(());
                }
                let own = u16::from(self.slots[file.slot as usize].handle.is_some());
                let set = &shared.filesets[f as usize];
                if set.open_count(id) > own {
                    // Others hold it open: it is left alone.
                    set.release(id, Kind::Present);
                    return Ok(());
                }
                (f, id)
            }
            None => {
                let Some(FilesetId(f)) = file.fileset else {
                    return Err(self.misuse(row, "there is no file to delete".into()));
                };
                match self.choose_closed(row, f, file.index).await? {
                    Some(id) => (f, id),
                    None => return Ok(()),
                }
            }
        };
        let set = &shared.filesets[f as usize];
        self.session.locate(|path| set.layout.push_file(id, path));
        let unlink = self.session.unlink();
        let done = self
            .core
            .timed(row, Subject::File(f, id), |()| 0, unlink)
            .await;
        let gone = happened(&done);
        if gone {
            set.files.changed(Kind::Absent);
        }
        set.release(id, if gone { Kind::Absent } else { Kind::Present });
        done.map(|_| ())
    }

    /// Chooses the next existing file that nobody holds open; `None` if all are open.
    ///
    /// Filebench does nothing when the next file is open. The file would be missed for good
    /// then, and a workload that makes as many files as it deletes would fill its fileset.
    async fn choose_closed(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
    ) -> Result<Option<FileId>, Halt> {
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        let number = index.map(|i| self.core.draw(i));
        for step in 0..u64::from(set.layout.files()) {
            let number = number.map(|n| n.wrapping_add(step));
            let id = self.core.choose(row, f, Kind::Present, number).await?;
            if set.open_count(id) == 0 {
                return Ok(Some(id));
            }
            set.release(id, Kind::Present);
        }
        Ok(None)
    }

    #[inline]
    async fn stat(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let slot = &self.slots[file.slot as usize];
        if let (true, Some(handle), Some((f, id))) = (file.slot > 0, &slot.handle, slot.file) {
            let stat = self.session.stat_handle(handle);
            return self
                .core
                .timed(row, Subject::File(f, id), |_| 0, stat)
                .await
                .map(|_| ());
        }
        let Some(FilesetId(f)) = file.fileset else {
            return Err(self.misuse(row, format!("slot fd={} is not open", file.slot)));
        };
        let number = file.index.map(|i| self.core.draw(i));
        let id = self.core.choose(row, f, Kind::Present, number).await?;
        let layout = &self.core.shared.filesets[f as usize].layout;
        self.session.locate(|path| layout.push_file(id, path));
        let stat = self.session.stat();
        let done = self
            .core
            .timed(row, Subject::File(f, id), |_| 0, stat)
            .await;
        self.core.shared.filesets[f as usize].release(id, Kind::Present);
        done.map(|_| ())
    }

    async fn fsync(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
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
        self.core
            .timed(row, Subject::File(*f, *id), |()| 0, fsync)
            .await
            .map(|_| ())
    }

    async fn fsync_set(&mut self, row: u32, fileset: FilesetId) -> Result<(), Halt> {
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
        self.core
            .timed(row, Subject::Nothing, |()| 0, flush)
            .await
            .map(|_| ())
    }

    async fn make_dir(&mut self, row: u32, f: u32, index: Option<Value>) -> Result<(), Halt> {
        let number = index.map(|i| self.core.draw(i));
        let dir = self
            .core
            .choose_leaf_dir(row, f, Kind::Absent, number)
            .await?;
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        self.session
            .locate(|path| set.layout.push_leaf_dir(dir, path));
        let make = self.session.make_dir();
        let done = self
            .core
            .timed(row, Subject::LeafDir(f, dir), |()| 0, make)
            .await;
        let made = happened(&done);
        if made {
            set.leaf_dirs.changed(Kind::Present);
        }
        set.release_leaf_dir(dir, if made { Kind::Present } else { Kind::Absent });
        done.map(|_| ())
    }

    async fn remove_dir(&mut self, row: u32, f: u32, index: Option<Value>) -> Result<(), Halt> {
        let number = index.map(|i| self.core.draw(i));
        let dir = self
            .core
            .choose_leaf_dir(row, f, Kind::Present, number)
            .await?;
        let shared = self.core.shared.clone();
        let set = &shared.filesets[f as usize];
        self.session
            .locate(|path| set.layout.push_leaf_dir(dir, path));
        let remove = self.session.remove_dir();
        let done = self
            .core
            .timed(row, Subject::LeafDir(f, dir), |()| 0, remove)
            .await;
        let gone = happened(&done);
        if gone {
            set.leaf_dirs.changed(Kind::Absent);
        }
        set.release_leaf_dir(dir, if gone { Kind::Absent } else { Kind::Present });
        done.map(|_| ())
    }

    async fn list_dir(&mut self, row: u32, f: u32, index: Option<Value>) -> Result<(), Halt> {
        let number = index.map(|i| self.core.draw(i));
        let set = self.core.shared.filesets[f as usize].clone();
        let dir = set.pick_dir(number);
        self.session.locate(|path| set.layout.push_dir(dir, path));
        let list = self.session.list();
        self.core
            .timed(row, Subject::Dir(f, dir), |l| l.bytes, list)
            .await
            .map(|_| ())
    }

    async fn aio_write(&mut self, row: u32, io: &Io, completion: OperationId) -> Result<(), Halt> {
        let Some(slot) = self.ready_slot(row, &io.file).await? else {
            return Ok(());
        };
        let size = self.core.draw(io.size);
        let offset = self.offset(row, io, slot, size)?;
        let Slot {
            handle: Some(handle),
            file,
            ..
        } = &self.slots[slot]
        else {
            return Ok(());
        };
        let subject = file.map_or(Subject::Nothing, |(f, id)| Subject::File(f, id));
        let session = &mut self.session;
        let queue = async { session.aio_write(handle, offset, size, completion.0) };
        self.core
            .timed(row, subject, |()| size, queue)
            .await
            .map(|_| ())
    }

    async fn aio_wait(&mut self, row: u32) -> Result<(), Halt> {
        let mut done: Vec<AioDone> = Vec::new();
        let count = (self.session.aio_pending() / 2).max(1);
        let wait = self.session.aio_take(count, &mut done);
        let waited = self.core.timed_wait(row, wait).await;
        for write in done {
            match write.result {
                Ok(n) => self
                    .core
                    .recorder
                    .record(write.tag, write.start, write.end, None, n),
                Err(e) => self
                    .core
                    .failed(write.tag, Subject::Nothing, write.end, e)?,
            }
        }
        waited
    }
}

/// Whether an operation took effect: it did also when the run ended with it.
fn happened(done: &Result<Option<()>, Halt>) -> bool {
    match done {
        Ok(done) => done.is_some(),
        Err(halt) => !halt.is_failure(),
    }
}
