//! Operations on names: creation and removal of files and directories, and queries about files that stay. The worker
//! owns the names that it creates and removes, and so knows the existing names. If an operation needs a name in the
//! other state, the worker creates or removes a name as preparation.

use super::choice::whole_blocks;
use super::data::flush_if;
use super::owned_names::NameKind;
use super::{MixState, Worker, WorkerExit};
use crate::tree_names::LINK_SUFFIX;
use crate::worker::context::OpSubject;
use crate::worker::took_effect;
use plimsoll_plan::{FileId, FilesetId, MixOp};
use plimsoll_target::{FileOperation, FilesetEntry, NameOperation, OpenHow, OpenMode, Session};

/// Maximum size in bytes of a turnover file that is created as preparation of an operation.
const MAX_INLINE_CREATE_BYTES: u64 = 64 << 10;

impl MixState {
    fn take(&mut self, kind: NameKind, exists: bool) -> Option<u32> {
        self.names[kind as usize].take(exists, &mut self.rng)
    }

    fn give(&mut self, kind: NameKind, number: u32, exists: bool) {
        self.names[kind as usize].give(number, exists);
    }

    fn fileset_of(&self, kind: NameKind) -> FilesetId {
        let files = &self.program.mix.files;
        let set = match kind {
            NameKind::Turnover => files.turnover,
            NameKind::Empty => files.empty,
            NameKind::Dir => None,
        };
        set.unwrap_or(files.data)
    }

    fn name_of(&self, kind: NameKind, number: u32) -> OpSubject {
        let set = self.fileset_of(kind).0;
        match kind {
            NameKind::Dir => OpSubject::leaf_dir(set, number),
            NameKind::Turnover | NameKind::Empty => OpSubject::file(set, FileId(number)),
        }
    }
}

impl<S: Session> Worker<S> {
    /// Passes the path of a name to the session for its next operation.
    fn locate_name(&mut self, state: &MixState, kind: NameKind, number: u32) {
        let set = state.fileset_of(kind).0 as usize;
        let entry = match kind {
            NameKind::Dir => FilesetEntry::LeafDir(number),
            NameKind::Turnover | NameKind::Empty => FilesetEntry::File(FileId(number)),
        };
        self.context.shared.filesets[set].locate_entry(entry, &mut self.session);
    }

    /// Creates or removes a name that was taken, as an operation or as preparation of an operation, and returns the
    /// name to the worker's names. `false` if the change failed and failures are counted.
    async fn change(
        &mut self,
        row: u32,
        state: &mut MixState,
        kind: NameKind,
        number: u32,
        make: bool,
    ) -> Result<bool, WorkerExit> {
        let subject = state.name_of(kind, number);
        self.locate_name(state, kind, number);
        self.check_parent(row, subject).await?;
        let size = match kind {
            NameKind::Turnover if make => self
                .planned_turnover(state, number)
                .min(MAX_INLINE_CREATE_BYTES),
            _ => 0,
        };
        if size > 0 {
            self.prepare_new_file(row, size)?;
        }
        let session = &mut self.session;
        let how = OpenHow {
            create: true,
            planned_size: size,
            ..OpenHow::plain(OpenMode::Write)
        };
        let work = async {
            match (kind, make) {
                (NameKind::Dir, true) => session.make_dir().await,
                (NameKind::Dir, false) => session.remove_dir().await,
                (_, false) => session.unlink().await,
                (_, true) => {
                    let handle = session.open(how).await?;
                    let written = match size {
                        0 => Ok(()),
                        size => session.write(&handle, 0, size).await,
                    };
                    session.close(handle).await.and(written)
                }
            }
        };
        let done = self.context.timed(row, subject, |()| 0, work).await;
        let there = took_effect(&done) == make;
        state.give(kind, number, there);
        Ok(done?.is_some())
    }

    fn planned_turnover(&self, state: &MixState, number: u32) -> u64 {
        let set = state.fileset_of(NameKind::Turnover).0 as usize;
        self.context.shared.filesets[set]
            .layout
            .size(FileId(number))
    }

    /// Takes an existing name (`there`) or a missing name. If no name is in the wanted state, changes another name as
    /// preparation; `None` if the change failed and failures are counted.
    async fn take_name(
        &mut self,
        state: &mut MixState,
        kind: NameKind,
        there: bool,
    ) -> Result<Option<u32>, WorkerExit> {
        if let Some(number) = state.take(kind, there) {
            return Ok(Some(number));
        }
        // The check of a Plan ensures that the worker has a name, which is in the other state.
        if let Some(other) = state.take(kind, !there) {
            let prepare = state.program.prepare;
            self.change(prepare, state, kind, other, there).await?;
        }
        Ok(state.take(kind, there))
    }

    pub(super) async fn mix_unlink(
        &mut self,
        op: MixOp,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let kind = match op {
            MixOp::Unlink => NameKind::Empty,
            _ => NameKind::Turnover,
        };
        match self.take_name(state, kind, true).await? {
            Some(number) => self.change(row, state, kind, number, false).await,
            None => Ok(false),
        }
    }

    pub(super) async fn mix_create(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        match self.take_name(state, NameKind::Empty, false).await? {
            Some(number) => self.change(row, state, NameKind::Empty, number, true).await,
            None => Ok(false),
        }
    }

    pub(super) async fn mix_directory(
        &mut self,
        op: MixOp,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let make = op == MixOp::Mkdir;
        match self.take_name(state, NameKind::Dir, !make).await? {
            Some(number) => self.change(row, state, NameKind::Dir, number, make).await,
            None => Ok(false),
        }
    }

    pub(super) async fn mix_rename(
        &mut self,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let kind = NameKind::Turnover;
        let Some(from) = self.take_name(state, kind, true).await? else {
            return Ok(false);
        };
        let to = self.take_name(state, kind, false).await;
        let to = match to {
            Ok(Some(to)) => to,
            other => {
                state.give(kind, from, true);
                return other.map(|_| false);
            }
        };
        self.locate_name(state, kind, to);
        self.check_parent(row, state.name_of(kind, to)).await?;
        self.session.set_destination();
        let subject = state.name_of(kind, from);
        self.locate_name(state, kind, from);
        self.check_parent(row, subject).await?;
        let rename = self.session.rename();
        let done = self.context.timed(row, subject, |()| 0, rename).await;
        let moved = took_effect(&done);
        state.give(kind, from, !moved);
        state.give(kind, to, moved);
        Ok(done?.is_some())
    }

    /// Writes a whole turnover file, or copies a data file to a turnover file. Uses a missing file, or an existing file
    /// if none is missing.
    pub(super) async fn mix_make_file(
        &mut self,
        op: MixOp,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let kind = NameKind::Turnover;
        let absent = state.take(kind, false);
        let replaces = absent.is_none();
        let Some(number) = absent.or_else(|| state.take(kind, true)) else {
            return Ok(false);
        };
        let done = match op {
            MixOp::Copyfile => self.copy_file(row, state, number).await,
            _ => self.write_file(row, state, number).await,
        };
        // A replaced file exists even if the new contents are incomplete. A file whose creation failed may exist, and
        // is removed.
        let there = replaces || took_effect(&done);
        if !there && matches!(&done, Ok(None)) {
            self.forget(state, number).await;
        }
        state.give(kind, number, there);
        Ok(done?.is_some())
    }

    /// Removes the remains of a file whose creation failed, so that the file counts as missing.
    async fn forget(&mut self, state: &mut MixState, number: u32) {
        self.locate_name(state, NameKind::Turnover, number);
        // The failed creation may have left nothing.
        let _ = self.session.remove(plimsoll_target::EntryKind::File).await;
    }

    async fn write_file(
        &mut self,
        row: u32,
        state: &mut MixState,
        number: u32,
    ) -> Result<Option<u64>, WorkerExit> {
        let direct = state.is_direct();
        let (stable, commit) = state.draw_durability();
        let mut piece = state.program.mix.writes.greatest().max(1);
        let mut total = self.planned_turnover(state, number);
        if direct {
            (total, piece) = (whole_blocks(total), whole_blocks(piece));
        }
        let how = OpenHow {
            create: true,
            truncate: true,
            direct,
            planned_size: total,
            ..OpenHow::plain(OpenMode::Write)
        };
        let subject = state.name_of(NameKind::Turnover, number);
        self.locate_name(state, NameKind::Turnover, number);
        self.prepare_new_file(row, piece.min(total))?;
        let calls = self.context.calls(total, piece);
        let session = &mut self.session;
        let write = async {
            let handle = session.open(how).await?;
            let all = async {
                let mut at = 0;
                while at < total {
                    calls.next(at)?;
                    let n = piece.min(total - at);
                    match stable {
                        true => {
                            let (offset, len) = (Some(at), n);
                            let write = FileOperation::WriteStable { offset, len };
                            session.on_file(&handle, write).await?;
                        }
                        false => session.write(&handle, at, n).await?,
                    }
                    at += n;
                }
                flush_if(session, &handle, commit).await
            };
            let written = all.await;
            session.close(handle).await.and(written)?;
            Ok(total)
        };
        self.context.timed(row, subject, |n| *n, write).await
    }

    async fn copy_file(
        &mut self,
        row: u32,
        state: &mut MixState,
        number: u32,
    ) -> Result<Option<u64>, WorkerExit> {
        let piece = state.program.mix.reads.greatest().max(1);
        let member = state.member();
        let data = state.program.mix.files.data.0 as usize;
        let set = state.fileset_of(NameKind::Turnover).0 as usize;
        let shared = self.context.shared.clone();
        let (from, to) = (&shared.filesets[data], &shared.filesets[set]);
        let (source, size) = (state.file(member), state.size(member));
        let reading = OpenHow {
            planned_size: size,
            ..OpenHow::plain(OpenMode::Read)
        };
        let writing = OpenHow {
            create: true,
            truncate: true,
            planned_size: size,
            ..OpenHow::plain(OpenMode::Write)
        };
        let subject = state.name_of(NameKind::Turnover, number);
        // Each piece is read and written, and each byte counts twice.
        let calls = self.context.calls(2 * size, 2 * piece);
        let session = &mut self.session;
        let copy = async {
            from.locate(source, session);
            let source = session.open(reading).await?;
            to.locate(FileId(number), session);
            let copied = match session.open(writing).await {
                Err(e) => Err(e),
                Ok(copy) => {
                    let all = async {
                        let mut at = 0;
                        loop {
                            calls.next(at)?;
                            match session.copy(&source, &copy, (at, piece)).await? {
                                0 => return Ok(at),
                                n => at += n,
                            }
                        }
                    };
                    let copied = all.await;
                    session.close(copy).await.and(copied)
                }
            };
            session.close(source).await.and(copied)
        };
        // Each byte is read and written, and counts twice.
        self.context.timed(row, subject, |n| 2 * *n, copy).await
    }

    /// Executes a query about a name, or a change of its permissions.
    pub(super) async fn mix_name(
        &mut self,
        op: MixOp,
        row: u32,
        state: &mut MixState,
    ) -> Result<bool, WorkerExit> {
        let member = state.member();
        let mut subject = state.subject(member);
        let data = state.program.mix.files.data.0;
        let set = &self.context.shared.filesets[data as usize];
        let layout = &set.layout;
        let file = state.file(member);
        match op {
            MixOp::Statfs | MixOp::Pathconf => subject = OpSubject::NO_SUBJECT,
            MixOp::Readdir | MixOp::Readdirplus => {
                let dir = layout.dir_of(file);
                subject = OpSubject::dir(data, dir);
                set.locate_entry(FilesetEntry::Dir(dir), &mut self.session);
            }
            MixOp::NegStat => self.session.locate(|path| {
                layout.push_file(file, path);
                // No name of a fileset has the letter `x`, so no file has this name.
                path.push(b'x');
            }),
            MixOp::Readlink => {
                // The link to a file is created before the link is first read.
                set.locate(file, &mut self.session);
                self.session.set_destination();
                self.session.locate(|path| {
                    layout.push_file(file, path);
                    path.push(LINK_SUFFIX);
                });
                let prepared = self.session.on_name(NameOperation::PrepareLink).await;
                if let Err(e) = prepared {
                    let now = self.context.lane.now();
                    self.context.failed(row, subject, now, now, e)?;
                    return Ok(false);
                }
            }
            _ => set.locate(file, &mut self.session),
        }
        let mode = match state.with_probability(50.0) {
            true => 0o600,
            false => 0o644,
        };
        let session = &mut self.session;
        let work = async {
            let operation = match op {
                MixOp::Stat => return session.stat().await.map(|_| 0),
                MixOp::Readdir => return session.list().await.map(|l| l.bytes),
                MixOp::NegStat => NameOperation::StatMissing,
                MixOp::Access => NameOperation::Access,
                MixOp::Chmod => NameOperation::Chmod(mode),
                MixOp::Lookup => NameOperation::Lookup,
                MixOp::Readlink => NameOperation::ReadLink,
                MixOp::Readdirplus => NameOperation::ListPlus,
                MixOp::Statfs => NameOperation::StatFs,
                _ => NameOperation::PathConf,
            };
            session.on_name(operation).await
        };
        let done = self.context.timed(row, subject, |n| *n, work);
        Ok(done.await?.is_some())
    }
}
