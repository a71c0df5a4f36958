//! Opening, making, closing, deleting and examining files.

use super::super::core::Subject;
use super::super::{Halt, Slot, Worker};
use super::happened;
use crate::store::Kind;
use plimsoll_plan::{Access, FileId, FileRef, FilesetId, Value};
use plimsoll_target::{OpenHow, OpenMode, Session};

impl<S: Session> Worker<S> {
    /// Chooses a file and opens it into a slot; `false` if it failed and failures are counted.
    pub(super) async fn open_into(
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
            truncate: false,
            direct: file.direct,
            dsync: file.dsync,
            no_read_ahead: file.no_read_ahead,
            planned_size: set.layout.size(id),
        };
        self.session.locate(|path| set.layout.push_file(id, path));
        let open = self.session.open(how);
        let handle = match self
            .core
            .timed(row, Subject::file(f, id), |_| 0, open)
            .await
        {
            Ok(handle) => handle,
            Err(halt) => {
                // The run may have ended with the very call that made the file.
                let made = kind == Kind::Absent && !halt.without_effect();
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

    pub(super) async fn open_explicit(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let slot = self.slot_of(file);
        self.must_be_closed(row, slot)?;
        self.open_into(row, file, slot, Kind::Present)
            .await
            .map(|_| ())
    }

    pub(super) async fn create(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let slot = self.slot_of(file);
        self.must_be_closed(row, slot)?;
        self.open_into(row, file, slot, Kind::Absent)
            .await
            .map(|_| ())
    }

    pub(super) fn must_be_closed(&self, row: u32, slot: usize) -> Result<(), Halt> {
        match self.slots[slot].handle {
            None => Ok(()),
            Some(_) => Err(self.misuse(row, format!("slot fd={slot} is already open"))),
        }
    }

    pub(super) async fn close(&mut self, row: u32, slot: u8) -> Result<(), Halt> {
        let entry = &mut self.slots[slot as usize];
        let (Some(handle), Some((f, id))) = (entry.handle.take(), entry.file) else {
            // After an open that failed and was counted there is nothing to close.
            if self.core.shared.plan.options.on_error == plimsoll_plan::OnError::Count {
                return Ok(());
            }
            return Err(self.misuse(row, format!("slot fd={slot} is not open")));
        };
        self.core.shared.filesets[f as usize].closed(id);
        let begun = self.core.begin(row)?;
        let result = self.session.close(handle).await;
        self.core
            .finish(row, Subject::file(f, id), begun, |()| 0, result)
            .map(|_| ())
    }

    pub(super) async fn delete(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
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
        self.check_parent(row, Subject::file(f, id)).await?;
        let unlink = self.session.unlink();
        let done = self
            .core
            .timed(row, Subject::file(f, id), |()| 0, unlink)
            .await;
        let gone = happened(&done);
        if gone {
            set.files.changed(Kind::Absent);
            // The file is not the slot's any more, unless the slot still has it open.
            let slot = &mut self.slots[file.slot as usize];
            if file.slot > 0 && slot.handle.is_none() {
                slot.file = None;
            }
        }
        set.release(id, if gone { Kind::Absent } else { Kind::Present });
        done.map(|_| ())
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
    pub(super) async fn stat(&mut self, row: u32, file: &FileRef) -> Result<(), Halt> {
        let slot = &self.slots[file.slot as usize];
        if let (true, Some(handle), Some((f, id))) = (file.slot > 0, &slot.handle, slot.file) {
            let stat = self.session.stat_handle(handle);
            return self
                .core
                .timed(row, Subject::file(f, id), |_| 0, stat)
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
        let done = match self.core.begin(row) {
            Ok(begun) => {
                let result = self.session.stat().await;
                let subject = Subject::file(f, id);
                self.core.finish(row, subject, begun, |_| 0, result)
            }
            Err(halt) => Err(halt),
        };
        self.core.shared.filesets[f as usize].release(id, Kind::Present);
        done.map(|_| ())
    }
}
