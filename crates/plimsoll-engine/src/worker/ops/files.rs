//! Operations that open, create, close, delete and examine files of filesets.

use super::took_effect;
use crate::file_pool::Existence;
use crate::worker::{Chosen, Slot, Worker, WorkerExit};
use plimsoll_plan::{Access, FileRef, FilesetId, OnError, Value};
use plimsoll_target::{AccessAdvice, OpenHow, OpenMode, Session};

impl<S: Session> Worker<S> {
    /// Chooses a file and opens the file into a slot; `false` if the open failed and failures are counted.
    pub(super) async fn open_into(
        &mut self,
        row: u32,
        file: &FileRef,
        slot: usize,
        kind: Existence,
    ) -> Result<bool, WorkerExit> {
        let Some(FilesetId(fileset)) = file.fileset else {
            self.not_open(row, slot).await?;
            return Ok(false);
        };
        let number = match (file.index, file.open_next) {
            (Some(index), _) => Some(self.context.draw(index)),
            (None, true) => {
                let cursor = &mut self.context.cursors[fileset as usize].rotating;
                *cursor += 1;
                Some(*cursor - 1)
            }
            (None, false) => None,
        };
        let id = self.context.choose(row, fileset, kind, number).await?;
        let at = Chosen { fileset, file: id };
        let how = self.locate_to_open(file, kind, at);
        let done = timed!(self, row, at.subject(), |_| 0, self.session.open(how).await);
        self.note_opened(slot, kind, at, how.planned_size, done)
    }

    /// Passes the path of a chosen file to the session; returns how the file is to be opened.
    #[inline(always)]
    pub(super) fn locate_to_open(
        &mut self,
        file: &FileRef,
        kind: Existence,
        at: Chosen,
    ) -> OpenHow {
        let set = &self.context.shared.filesets[at.fileset as usize];
        set.locate(at.file, &mut self.session);
        OpenHow {
            mode: match self.context.shared.plan.filesets[at.fileset as usize].access {
                _ if kind == Existence::Missing => OpenMode::ReadWrite,
                Access::ReadWrite => OpenMode::ReadWrite,
                Access::ReadOnly => OpenMode::Read,
                Access::WriteOnly => OpenMode::Write,
            },
            create: kind == Existence::Missing,
            truncate: false,
            direct: file.direct,
            dsync: file.dsync,
            advice: file.no_read_ahead.then_some(AccessAdvice::Random),
            planned_size: set.layout.size(at.file),
        }
    }

    /// Puts an opened or created file into its slot, and makes the file idle again.
    #[inline(always)]
    pub(super) fn note_opened(
        &mut self,
        slot: usize,
        kind: Existence,
        at: Chosen,
        planned: u64,
        done: Result<Option<S::Handle>, WorkerExit>,
    ) -> Result<bool, WorkerExit> {
        let set = &self.context.shared.filesets[at.fileset as usize];
        // The run may have ended during the call that created the file.
        let exists = kind == Existence::Existing || took_effect(&done);
        if exists && kind == Existence::Missing {
            set.files.set_existence(Existence::Existing);
        }
        let opened = done.map(|handle| {
            let opened = handle.is_some();
            let slot = &mut self.slots[slot];
            debug_assert!(slot.handle.is_none(), "a slot is filled that is open");
            if opened {
                set.inc_open(at.file);
                *slot = Slot {
                    handle,
                    file: Some(at),
                    planned,
                    ..Slot::default()
                };
            } else {
                *slot = Slot::not_opened();
            }
            opened
        });
        let now = if exists { Existence::Existing } else { kind };
        set.release(at.file, now);
        opened
    }

    /// Opens the file of an open or create operation into the operation's slot, and creates a missing file. A slot that
    /// is already open is an error of the workload, which ends the run.
    pub(super) async fn open_explicit(
        &mut self,
        row: u32,
        file: &FileRef,
        kind: Existence,
    ) -> Result<(), WorkerExit> {
        let slot = self.slot_of(file);
        if self.slots[slot].handle.is_some() {
            return Err(self.misuse(row, format!("slot fd={slot} is already open")));
        }
        self.open_into(row, file, slot, kind).await?;
        Ok(())
    }

    pub(super) async fn close(&mut self, row: u32, slot: u8) -> Result<(), WorkerExit> {
        let Some((handle, at)) = self.take_handle(row, slot)? else {
            return Ok(());
        };
        let begun = self.context.begin(row)?;
        let result = self.session.close(handle).await;
        let end = self.context.now();
        let is_local = result.is_ok() && self.session.was_close_local();
        let local = self.context.shared.rows[row as usize].local_close;
        let done = match local.filter(|_| is_local) {
            Some(local) => self.context.record_local_close(row, local, &begun, end),
            None => {
                let done = self
                    .context
                    .finish(end, row, at.subject(), begun, |()| 0, result);
                done.map(|_| ())
            }
        };
        self.note_closed(at);
        done
    }

    /// Lets other workers delete the file. Must be called after the file's close, which may still write the file.
    #[inline(always)]
    pub(super) fn note_closed(&self, at: Chosen) {
        self.context.shared.filesets[at.fileset as usize].dec_open(at.file);
    }

    /// Takes the handle out of a slot that is to be closed; `None` if the slot has no handle and this is not an error,
    /// for example because the open failed and was counted.
    #[inline(always)]
    pub(super) fn take_handle(
        &mut self,
        row: u32,
        slot: u8,
    ) -> Result<Option<(S::Handle, Chosen)>, WorkerExit> {
        let entry = &mut self.slots[slot as usize];
        match (entry.handle.take(), entry.file) {
            (Some(handle), Some(at)) => Ok(Some((handle, at))),
            _ => self.nothing_to_close(row, slot),
        }
    }

    #[cold]
    fn nothing_to_close<T>(&mut self, row: u32, slot: u8) -> Result<Option<T>, WorkerExit> {
        if self.slots[slot as usize].open_failed {
            return self.context.not_issued(row).map(|()| None);
        }
        match self.context.shared.plan.options.on_error {
            OnError::Count => Ok(None),
            OnError::Stop => Err(self.closed(row, slot.into())),
        }
    }

    pub(super) async fn delete(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        let slot = &self.slots[file.slot as usize];
        if file.slot > 0 && slot.open_failed {
            return self.not_open(row, file.slot.into()).await;
        }
        let own = u32::from(slot.handle.is_some());
        let at = match (slot.file.filter(|_| file.slot > 0), file.fileset) {
            (Some(at), _) => {
                if !self.context.claim(at).await? {
                    return Ok(());
                }
                let set = &self.context.shared.filesets[at.fileset as usize];
                if set.open_count(at.file) > own {
                    // A file that other workers have open is not deleted.
                    set.release(at.file, Existence::Existing);
                    return Ok(());
                }
                at
            }
            (None, Some(FilesetId(fileset))) => {
                match self.choose_closed(row, fileset, file.index).await? {
                    Some(at) => at,
                    None => return Ok(()),
                }
            }
            (None, None) => return Err(self.misuse(row, "there is no file to delete".into())),
        };
        self.locate(at);
        let done = match self.check_parent(row, at.subject()).await {
            Ok(()) => timed!(self, row, at.subject(), |()| 0, self.session.unlink().await),
            Err(exit) => Err(exit),
        };
        self.note_deleted(file.slot, at, done)
    }

    /// Makes a file idle again after a delete, and removes a deleted file from its slot unless the slot has the file
    /// open.
    #[inline(always)]
    pub(super) fn note_deleted(
        &mut self,
        slot: u8,
        at: Chosen,
        done: Result<Option<()>, WorkerExit>,
    ) -> Result<(), WorkerExit> {
        let set = &self.context.shared.filesets[at.fileset as usize];
        let mut now = Existence::Existing;
        if took_effect(&done) {
            now = Existence::Missing;
            set.files.set_existence(now);
            let entry = &mut self.slots[slot as usize];
            if slot > 0 && entry.handle.is_none() {
                entry.file = None;
            }
        }
        set.release(at.file, now);
        done.map(|_| ())
    }

    /// Passes the path of a chosen file to the session for its next operation.
    #[inline(always)]
    pub(super) fn locate(&mut self, at: Chosen) {
        self.context.shared.filesets[at.fileset as usize].locate(at.file, &mut self.session);
    }

    /// Takes the next existing file that no worker has open; `None` if all files are open.
    ///
    /// The search replaces a rule of Filebench, whose delete has no effect if the next file is open: by that rule, a
    /// workload that creates as many files as it deletes fills its fileset.
    async fn choose_closed(
        &mut self,
        row: u32,
        fileset: u32,
        index: Option<Value>,
    ) -> Result<Option<Chosen>, WorkerExit> {
        let set = self.context.shared.filesets[fileset as usize].clone();
        let number = index.map(|i| self.context.draw(i));
        for step in 0..u64::from(set.layout.files()) {
            let number = number.map(|n| n.wrapping_add(step));
            let file = self
                .context
                .choose(row, fileset, Existence::Existing, number)
                .await?;
            if set.open_count(file) == 0 {
                return Ok(Some(Chosen { fileset, file }));
            }
            set.release(file, Existence::Existing);
        }
        Ok(None)
    }

    #[inline]
    pub(super) async fn stat(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        let slot = &self.slots[file.slot as usize];
        if let (true, Some(handle)) = (file.slot > 0, &slot.handle) {
            let stat = self.session.stat_handle(handle);
            self.context.timed(row, slot.subject(), |_| 0, stat).await?;
            return Ok(());
        }
        let Some(FilesetId(fileset)) = file.fileset else {
            return self.not_open(row, file.slot.into()).await;
        };
        let number = file.index.map(|i| self.context.draw(i));
        let id = self
            .context
            .choose(row, fileset, Existence::Existing, number)
            .await?;
        let at = Chosen { fileset, file: id };
        self.locate(at);
        let done = timed!(self, row, at.subject(), |_| 0, self.session.stat().await);
        self.context.shared.filesets[fileset as usize].release(id, Existence::Existing);
        done.map(|_| ())
    }
}
