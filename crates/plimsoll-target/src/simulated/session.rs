//! A worker's operations on simulated files.

use super::now;
use super::store::{Call, CallKind, Fate, Store};
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation, missing, modify_blocks};
use crate::session::Session;
use crate::session_types::{AioDone, Attributes, EntryKind, ListTotals, OpenHow, SessionSpec};
use crate::timed_writes::TimedWrites;
use crate::write_data::WriteData;
use memmap2::MmapMut;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use plimsoll_plan::Stream;
use plimsoll_runtime::sync::lock;
use rustix::io::Errno;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct SimulatedSession {
    shared: Arc<Mutex<Store>>,
    number: u64,
    root: Vec<u8>,
    lane: Lane,
    content: WriteData,
    path: Vec<u8>,
    destination: Vec<u8>,
    of_load: bool,
    limit: Option<Duration>,
    queued: TimedWrites,
}

/// An open file.
pub(crate) struct SimulatedFile(u64);

impl SimulatedSession {
    pub(super) fn new(
        shared: Arc<Mutex<Store>>,
        root: Vec<u8>,
        lane: &Lane,
        spec: &SessionSpec,
        limit: Option<Duration>,
    ) -> Result<Self, OpError> {
        let number = lock(&shared).next_session();
        Ok(Self {
            shared,
            number,
            root,
            lane: lane.clone(),
            content: WriteData::new(&spec.content, spec.number)?,
            path: vec![],
            destination: vec![],
            of_load: !spec.unmeasured,
            limit: spec.silence.or(limit),
            queued: TimedWrites::default(),
        })
    }

    fn located(&self, push: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut name = vec![];
        push(&mut name);
        let is_stray = |name: &[u8]| {
            name.starts_with(b"/") || name.split(|b| *b == b'/').any(|part| part == b"..")
        };
        if is_stray(&name) {
            let shown = String::from_utf8_lossy(&name).into_owned();
            lock(&self.shared).strays.push(shown);
        }
        let mut path = self.root.clone();
        if !name.is_empty() && name != b"." {
            path.push(b'/');
            path.extend(name.strip_suffix(b"/").unwrap_or(&name));
        }
        path
    }

    /// Makes a call: after the call's delay, `work` changes the files unless the call fails.
    async fn call<R>(
        &self,
        kind: CallKind,
        work: impl FnOnce(&mut Store, Fate) -> Result<R, Errno>,
    ) -> Result<R, OpError> {
        let mut fate = lock(&self.shared).begin(kind, self.of_load, now());
        let limit = self.limit.map(|limit| limit.as_nanos() as u64);
        if fate.never_returns && limit.is_none() {
            std::future::pending::<()>().await;
        }
        if let Some(limit) = limit
            && (fate.never_returns || fate.delay_ns > limit)
        {
            (fate.delay_ns, fate.error) = (limit, Some(Errno::TIMEDOUT));
        }
        if fate.delay_ns > 0 {
            let end = self.lane.now() + fate.delay_ns;
            self.lane.uncancellable_sleep_until(end).await;
        }
        let mut store = lock(&self.shared);
        let done = match fate.error {
            Some(e) => Err(e),
            None => work(&mut store, fate),
        };
        let name = self.path.rsplit(|b| *b == b'/').next().unwrap_or(&[]);
        let changes = matches!(kind, CallKind::Open | CallKind::Write | CallKind::Unlink);
        let call = Call {
            kind,
            process: plimsoll_runtime::process_id(),
            changes_file: changes && !name.starts_with(b".plimsoll"),
            at_ns: now(),
            session: self.number,
            of_load: self.of_load,
            error: done.as_ref().err().copied(),
            is_falsified: done.is_ok() && (fate.is_wrong || fate.is_lost),
        };
        store.calls.push(call);
        Ok(done?)
    }

    async fn write_at(&self, inode: u64, offset: Option<u64>, bytes: &[u8]) -> Result<(), OpError> {
        self.call(CallKind::Write, |store, fate| {
            let offset = offset.unwrap_or_else(|| store.size(inode));
            match fate.is_lost {
                true => store.set_len(inode, store.size(inode).max(offset + bytes.len() as u64)),
                false => store.write(inode, offset, bytes),
            }
        })
        .await
    }

    async fn read_at(&self, inode: u64, offset: u64, len: u64) -> Result<Vec<u8>, OpError> {
        self.call(CallKind::Read, |store, fate| {
            let mut bytes = store.read(inode, offset, len);
            if fate.is_short && bytes.len() > 1 {
                bytes.truncate(bytes.len() / 2);
            }
            if fate.is_wrong
                && let Some(byte) = bytes.first_mut()
            {
                *byte ^= 0xff;
            }
            Ok(bytes)
        })
        .await
    }

    /// The next bytes of the worker's content.
    fn next_content(&mut self, len: u64) -> Result<Vec<u8>, Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::FBIG)?;
        let mut bytes = Vec::with_capacity(len);
        self.content.prepare(len as u64)?;
        while bytes.len() < len {
            let piece = self.content.next_chunk((len - bytes.len()) as u64)?;
            bytes.extend_from_slice(piece);
        }
        Ok(bytes)
    }

    async fn on_path<R>(
        &self,
        kind: CallKind,
        work: impl FnOnce(&mut Store, &[u8]) -> Result<R, Errno>,
    ) -> Result<R, OpError> {
        self.call(kind, |store, _| work(store, &self.path)).await
    }
}

impl Session for SimulatedSession {
    type Handle = SimulatedFile;

    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.path = self.located(push);
    }

    fn reserve(&mut self, _: u64) -> Result<(), OpError> {
        Ok(())
    }

    fn begin_content(&mut self, stream: Stream) {
        self.content.restart(stream);
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        Ok(lock(&self.shared).check_parent(&self.path)?)
    }

    async fn open(&mut self, how: OpenHow) -> Result<SimulatedFile, OpError> {
        self.on_path(CallKind::Open, |store, path| {
            store.open(path, how.create, how.truncate)
        })
        .await
        .map(SimulatedFile)
    }

    async fn close(&mut self, _: SimulatedFile) -> Result<(), OpError> {
        self.call(CallKind::Close, |_, _| Ok(())).await
    }

    async fn read(&mut self, file: &SimulatedFile, offset: u64, len: u64) -> Result<u64, OpError> {
        Ok(self.read_at(file.0, offset, len).await?.len() as u64)
    }

    async fn write(&mut self, file: &SimulatedFile, offset: u64, len: u64) -> Result<(), OpError> {
        let bytes = self.next_content(len)?;
        self.write_at(file.0, Some(offset), &bytes).await
    }

    async fn read_bytes(
        &mut self,
        file: &SimulatedFile,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        let read = self.read_at(file.0, offset, bytes.len() as u64).await?;
        bytes[..read.len()].copy_from_slice(&read);
        Ok(read.len() as u64)
    }

    async fn write_bytes(
        &mut self,
        file: &SimulatedFile,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        self.write_at(file.0, Some(offset), bytes).await
    }

    async fn append(&mut self, file: &SimulatedFile, len: u64) -> Result<(), OpError> {
        let bytes = self.next_content(len)?;
        self.write_at(file.0, None, &bytes).await
    }

    async fn fsync(&mut self, _: &SimulatedFile) -> Result<(), OpError> {
        self.call(CallKind::Sync, |_, _| Ok(())).await
    }

    async fn stat_handle(&mut self, file: &SimulatedFile) -> Result<Attributes, OpError> {
        self.call(CallKind::Stat, |store, _| {
            Ok(Attributes {
                kind: EntryKind::File,
                size: store.size(file.0),
                changed_ns: None,
            })
        })
        .await
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.on_path(CallKind::Stat, |store, path| store.attributes(path))
            .await
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        self.on_path(CallKind::Unlink, |store, path| store.unlink(path))
            .await
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        self.on_path(CallKind::MakeDir, |store, path| store.make_dir(path))
            .await
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.on_path(CallKind::RemoveDir, |store, path| store.remove_dir(path))
            .await
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        let names = self.entries().await?;
        Ok(ListTotals {
            entries: names.len() as u64,
            bytes: names.iter().map(|(name, _)| name.len() as u64).sum(),
        })
    }

    fn set_destination(&mut self) {
        std::mem::swap(&mut self.path, &mut self.destination);
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        self.on_path(CallKind::Other, |store, path| {
            store.rename(path, &self.destination)
        })
        .await
    }

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        match operation {
            NameOperation::StatMissing => missing(self.stat().await),
            NameOperation::Access | NameOperation::Chmod(_) => {
                self.on_path(CallKind::Other, |store, path| {
                    store.attributes(path).map(|_| 0)
                })
                .await
            }
            NameOperation::StatFs | NameOperation::PathConf => {
                self.call(CallKind::Other, |_, _| Ok(0)).await
            }
            _ => Err(OpError(Errno::OPNOTSUPP)),
        }
    }

    async fn on_file(
        &mut self,
        file: &SimulatedFile,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let inode = file.0;
        match operation {
            FileOperation::DropCache => Ok(0),
            FileOperation::FlushData => self.fsync(file).await.map(|()| 0),
            FileOperation::Truncate(len) | FileOperation::Allocate(len) => {
                self.call(CallKind::Other, |store, _| store.set_len(inode, len))
                    .await?;
                Ok(0)
            }
            FileOperation::Lock { .. } => self.call(CallKind::Other, |_, _| Ok(0)).await,
            FileOperation::WriteStable { offset, len } => {
                let bytes = self.next_content(len)?;
                self.write_at(inode, offset, &bytes).await?;
                Ok(len)
            }
            FileOperation::MapWrite { offset, len, .. } => {
                let bytes = self.next_content(len)?;
                self.write_at(inode, Some(offset), &bytes).await?;
                Ok(len)
            }
            FileOperation::WriteBytesStable { offset, bytes }
            | FileOperation::MapWriteBytes { offset, bytes, .. } => {
                self.write_at(inode, Some(offset), bytes).await?;
                Ok(bytes.len() as u64)
            }
            FileOperation::Modify { offset, len } => {
                let mut bytes = self.read_at(inode, offset, len).await?;
                if (bytes.len() as u64) < len {
                    return Err(Errno::IO.into());
                }
                modify_blocks(&mut bytes);
                self.write_at(inode, Some(offset), &bytes).await?;
                Ok(len * 2)
            }
            FileOperation::MapRead { offset, len } => {
                self.read_at(inode, offset, len).await?;
                Ok(len)
            }
            FileOperation::MapReadBytes { offset, bytes } => {
                let read = self.read_at(inode, offset, bytes.len() as u64).await?;
                bytes[..read.len()].copy_from_slice(&read);
                Ok(read.len() as u64)
            }
        }
    }

    async fn copy(
        &mut self,
        from: &SimulatedFile,
        to: &SimulatedFile,
        (offset, len): (u64, u64),
    ) -> Result<u64, OpError> {
        let bytes = self.read_at(from.0, offset, len).await?;
        self.write_at(to.0, Some(offset), &bytes).await?;
        Ok(bytes.len() as u64)
    }

    fn aio_write_bytes(
        &mut self,
        file: &SimulatedFile,
        offset: u64,
        bytes: MmapMut,
        len: usize,
        tag: u32,
    ) -> Result<(), OpError> {
        self.queue(file, offset, &bytes[..len], tag)
    }

    fn aio_write(
        &mut self,
        file: &SimulatedFile,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        let bytes = self.next_content(len)?;
        self.queue(file, offset, &bytes, tag)
    }

    fn aio_pending(&self) -> usize {
        self.queued.pending()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.queued.take(&self.lane, count, done).await
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        self.queued.under_way()
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.on_path(CallKind::Other, |store, path| {
            match store.dirs.contains(path) {
                true => Ok(store.children(path)),
                false => Err(Errno::NOENT),
            }
        })
        .await
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        self.on_path(CallKind::Read, |store, path| store.get(path))
            .await
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        self.on_path(CallKind::Write, |store, path| store.put(path, bytes))
            .await
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        match kind {
            EntryKind::Dir => self.remove_dir().await,
            _ => self.unlink().await,
        }
    }
}

impl SimulatedSession {
    /// Queues an asynchronous write; the files change at once, and the write is reported after its
    /// delay.
    fn queue(
        &mut self,
        file: &SimulatedFile,
        offset: u64,
        bytes: &[u8],
        tag: u32,
    ) -> Result<(), OpError> {
        let mut store = lock(&self.shared);
        let fate = store.begin(CallKind::Write, self.of_load, now());
        let result = match fate.error {
            Some(e) => Err(e.into()),
            None if fate.is_lost => Ok(bytes.len() as u64),
            None => store
                .write(file.0, offset, bytes)
                .map(|()| bytes.len() as u64)
                .map_err(OpError::from),
        };
        let start = self.lane.now();
        let end = match fate.never_returns {
            true => Nanos::MAX,
            false => start + fate.delay_ns,
        };
        self.queued.push(AioDone {
            tag,
            start,
            end,
            result,
        });
        Ok(())
    }
}
