//! Opening, making, closing, deleting and examining files.

use super::super::context::OpSubject;
use super::super::{Slot, Worker, WorkerExit};
use super::took_effect;
use crate::file_pool::Existence;
use plimsoll_plan::{Access, FileId, FileRef, FilesetId, Value};
use plimsoll_target::{OpenHow, OpenMode, Session};

/// A file that was chosen: nobody else works on it.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    /// Index of its fileset.
    pub(super) fileset: u32,
    pub(super) file: FileId,
}

impl Chosen {
    #[inline(always)]
    pub(super) fn subject(self) -> OpSubject {
        OpSubject::file(self.fileset, self.file)
    }
}

impl<S: Session> Worker<S> {
    /// Chooses a file and opens it into a slot; `false` if it failed and failures are counted.
    pub(super) async fn open_into(
        &mut self,
        row: u32,
        file: &FileRef,
        slot: usize,
        kind: Existence,
    ) -> Result<bool, WorkerExit> {
        let Some(FilesetId(f)) = file.fileset else {
            return Err(self.misuse(row, format!("slot fd={} is not open", file.slot)));
        };
        let number = match (file.index, file.open_next) {
            (Some(index), _) => Some(self.context.draw(index)),
            (None, true) => {
                let cursor = &mut self.context.cursors[f as usize].rotating;
                *cursor += 1;
                Some(*cursor - 1)
            }
            (None, false) => None,
        };
        let id = self.context.choose(row, f, kind, number).await?;
        let chosen = Chosen {
            fileset: f,
            file: id,
        };
        self.open_file(row, file, slot, kind, chosen).await
    }

    /// Opens a file that was chosen into a slot; `false` likewise.
    async fn open_file(
        &mut self,
        row: u32,
        file: &FileRef,
        slot: usize,
        kind: Existence,
        chosen: Chosen,
    ) -> Result<bool, WorkerExit> {
        let how = self.locate_to_open(file, kind, chosen);
        let done = match self.context.begin(row) {
            Ok(begun) => {
                let result = self.session.open(how).await;
                self.context
                    .finish(row, chosen.subject(), begun, |_| 0, result)
            }
            Err(halt) => Err(halt),
        };
        self.has_opened(slot, kind, chosen, how.planned_size, done)
    }

    /// Names a file that was chosen, and says how it is opened.
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
            no_read_ahead: file.no_read_ahead,
            planned_size: set.layout.size(at.file),
        }
    }

    /// What opening or making a file came to: the slot has it, and the file is idle again.
    #[inline(always)]
    pub(super) fn has_opened(
        &mut self,
        slot: usize,
        kind: Existence,
        at: Chosen,
        planned: u64,
        done: Result<Option<S::Handle>, WorkerExit>,
    ) -> Result<bool, WorkerExit> {
        let set = &self.context.shared.filesets[at.fileset as usize];
        // The run may have ended with the very call that made the file.
        let exists = kind == Existence::Existing || took_effect(&done);
        if exists && kind == Existence::Missing {
            set.files.set_existence(Existence::Existing);
        }
        let opened = done.map(|handle| {
            let opened = handle.is_some();
            if opened {
                set.inc_open(at.file);
                self.slots[slot] = Slot {
                    handle,
                    file: Some((at.fileset, at.file)),
                    planned,
                    position: 0,
                };
            }
            opened
        });
        let now = if exists { Existence::Existing } else { kind };
        set.release(at.file, now);
        opened
    }

    pub(super) async fn open_explicit(
        &mut self,
        row: u32,
        file: &FileRef,
    ) -> Result<(), WorkerExit> {
        let slot = self.slot_of(file);
        self.must_be_closed(row, slot)?;
        self.open_into(row, file, slot, Existence::Existing)
            .await
            .map(|_| ())
    }

    pub(super) async fn create(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        let slot = self.slot_of(file);
        self.must_be_closed(row, slot)?;
        self.open_into(row, file, slot, Existence::Missing)
            .await
            .map(|_| ())
    }

    pub(super) fn must_be_closed(&self, row: u32, slot: usize) -> Result<(), WorkerExit> {
        match self.slots[slot].handle {
            None => Ok(()),
            Some(_) => Err(self.misuse(row, format!("slot fd={slot} is already open"))),
        }
    }

    pub(super) async fn close(&mut self, row: u32, slot: u8) -> Result<(), WorkerExit> {
        let Some((handle, at)) = self.take_handle(row, slot)? else {
            return Ok(());
        };
        let done = match self.context.begin(row) {
            Ok(begun) => {
                let result = self.session.close(handle).await;
                self.context
                    .finish(row, at.subject(), begun, |()| 0, result)
            }
            Err(halt) => Err(halt),
        };
        self.has_closed(at);
        done.map(|_| ())
    }

    /// From now on others may delete the file. Not before its close is over, which may still have
    /// something to send for it.
    #[inline(always)]
    pub(super) fn has_closed(&self, at: Chosen) {
        self.context.shared.filesets[at.fileset as usize].dec_open(at.file);
    }

    /// Takes the handle out of a slot that is to be closed; `None` if there is nothing to close
    /// because the open failed and was counted.
    #[inline(always)]
    pub(super) fn take_handle(
        &mut self,
        row: u32,
        slot: u8,
    ) -> Result<Option<(S::Handle, Chosen)>, WorkerExit> {
        let entry = &mut self.slots[slot as usize];
        let (Some(handle), Some((f, id))) = (entry.handle.take(), entry.file) else {
            return self.nothing_to_close(row, slot);
        };
        let at = Chosen {
            fileset: f,
            file: id,
        };
        Ok(Some((handle, at)))
    }

    #[cold]
    fn nothing_to_close<T>(&self, row: u32, slot: u8) -> Result<Option<T>, WorkerExit> {
        if self.context.shared.plan.options.on_error == plimsoll_plan::OnError::Count {
            return Ok(None);
        }
        Err(self.misuse(row, format!("slot fd={slot} is not open")))
    }

    pub(super) async fn delete(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        let in_slot = (file.slot > 0)
            .then(|| self.slots[file.slot as usize].file)
            .flatten();
        let shared = self.context.shared.clone();
        let (f, id) = match in_slot {
            Some((f, id)) => {
                if !self.context.claim(f, id).await? {
                    return Ok(());
                }
                let own = u32::from(self.slots[file.slot as usize].handle.is_some());
                let set = &shared.filesets[f as usize];
                if set.open_count(id) > own {
                    // Others hold it open: it is left alone.
                    set.release(id, Existence::Existing);
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
        let chosen = Chosen {
            fileset: f,
            file: id,
        };
        self.locate(chosen);
        self.check_parent(row, chosen.subject()).await?;
        let done = match self.context.begin(row) {
            Ok(begun) => {
                let result = self.session.unlink().await;
                self.context
                    .finish(row, chosen.subject(), begun, |()| 0, result)
            }
            Err(halt) => Err(halt),
        };
        self.has_deleted(file.slot, chosen, done)
    }

    /// What deleting a file came to: it is idle again, and the slot forgets it, unless the slot
    /// still has it open.
    #[inline(always)]
    pub(super) fn has_deleted(
        &mut self,
        slot: u8,
        at: Chosen,
        done: Result<Option<()>, WorkerExit>,
    ) -> Result<(), WorkerExit> {
        let gone = took_effect(&done);
        let set = &self.context.shared.filesets[at.fileset as usize];
        if gone {
            set.files.set_existence(Existence::Missing);
            let entry = &mut self.slots[slot as usize];
            if slot > 0 && entry.handle.is_none() {
                entry.file = None;
            }
        }
        set.release(
            at.file,
            if gone {
                Existence::Missing
            } else {
                Existence::Existing
            },
        );
        done.map(|_| ())
    }

    /// Names a file that was chosen.
    #[inline(always)]
    pub(super) fn locate(&mut self, at: Chosen) {
        self.context.shared.filesets[at.fileset as usize].locate(at.file, &mut self.session);
    }

    /// Chooses the next existing file that nobody holds open; `None` if all are open.
    ///
    /// Filebench does nothing when the next file is open. The file would be missed for good
    /// then, and a workload that makes as many files as it deletes would fill its fileset.
    pub(super) async fn choose_closed(
        &mut self,
        row: u32,
        f: u32,
        index: Option<Value>,
    ) -> Result<Option<FileId>, WorkerExit> {
        let shared = self.context.shared.clone();
        let set = &shared.filesets[f as usize];
        let number = index.map(|i| self.context.draw(i));
        for step in 0..u64::from(set.layout.files()) {
            let number = number.map(|n| n.wrapping_add(step));
            let id = self
                .context
                .choose(row, f, Existence::Existing, number)
                .await?;
            if set.open_count(id) == 0 {
                return Ok(Some(id));
            }
            set.release(id, Existence::Existing);
        }
        Ok(None)
    }

    #[inline]
    pub(super) async fn stat(&mut self, row: u32, file: &FileRef) -> Result<(), WorkerExit> {
        let slot = &self.slots[file.slot as usize];
        if let (true, Some(handle), Some((f, id))) = (file.slot > 0, &slot.handle, slot.file) {
            let stat = self.session.stat_handle(handle);
            return self
                .context
                .timed(row, OpSubject::file(f, id), |_| 0, stat)
                .await
                .map(|_| ());
        }
        let Some(FilesetId(f)) = file.fileset else {
            return Err(self.misuse(row, format!("slot fd={} is not open", file.slot)));
        };
        let number = file.index.map(|i| self.context.draw(i));
        let id = self
            .context
            .choose(row, f, Existence::Existing, number)
            .await?;
        let chosen = Chosen {
            fileset: f,
            file: id,
        };
        self.locate(chosen);
        let done = match self.context.begin(row) {
            Ok(begun) => {
                let result = self.session.stat().await;
                self.context
                    .finish(row, chosen.subject(), begun, |_| 0, result)
            }
            Err(halt) => Err(halt),
        };
        self.context.shared.filesets[f as usize].release(id, Existence::Existing);
        done.map(|_| ())
    }
}
