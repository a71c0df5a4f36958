//! One worker's operations, as the procedures that they become.

use super::data::{Open, Queued, Source};
use super::local::{Local, check};
use super::names::attributes;
use super::of_nfs;
use crate::error::OpError;
use crate::session::{AioDone, Attributes, EntryKind, Listed, OpenHow, Session, SessionSpec};
use plimsoll_lane::Stopped;
use plimsoll_measure::Clock;
use plimsoll_nfs::v3::{FsStat, GetAttr, PathConf, ReadLink, RmDir, Setting, Stable, access};
use rustix::io::Errno;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Of each so many bytes that are modified, the first eight are changed.
const MODIFIED: usize = 4096;

/// Memory of a buffer that is kept for the next operation, in bytes: of thousands of workers
/// each has one.
const KEPT: usize = 16 << 10;

pub(crate) struct NfsSession {
    local: Rc<Local>,
    clock: Clock,
    /// What operations on names work on.
    name: Vec<u8>,
    /// The second name of operations that take two.
    second: Vec<u8>,
    /// Directory that the name begins with, by its number, and the length of its path.
    kept: Option<(u64, usize)>,
    source: Source,
    /// What is read to be written again.
    buffer: Vec<u8>,
    queued: Vec<Queued>,
    /// Asynchronous writes that are over and were not taken yet.
    done: Vec<AioDone>,
}

/// An open file.
pub(crate) struct NfsHandle(Rc<Open>);

impl NfsSession {
    pub(super) fn new(local: Rc<Local>, spec: &SessionSpec) -> Result<Self, OpError> {
        Ok(Self {
            local,
            clock: spec.clock.clone(),
            name: Vec::new(),
            second: Vec::new(),
            kept: None,
            source: Source::new(&spec.content, spec.number)?,
            buffer: Vec::new(),
            queued: Vec::new(),
            done: Vec::new(),
        })
    }

    /// Reads up to `len` bytes into the buffer.
    async fn fill(&mut self, from: &Open, offset: u64, len: u64) -> Result<(), OpError> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(len, 0);
        let sink = |at: usize, bytes: &[u8]| buffer[at..at + bytes.len()].copy_from_slice(bytes);
        let read = self
            .local
            .read_range(from.file, offset, len as u64, sink)
            .await?;
        buffer.truncate(read as usize);
        self.buffer = buffer;
        Ok(())
    }

    /// Writes the buffer.
    async fn spill(&mut self, to: &Open, offset: u64) -> Result<u64, OpError> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.local.write_all(to, offset, to.stable, &buffer).await;
        let len = buffer.len() as u64;
        if buffer.capacity() <= KEPT {
            self.buffer = buffer;
        }
        written.map(|()| len)
    }

    /// Moves asynchronous writes that are over to the others; only those of a file, if one is
    /// given, are waited for.
    async fn settle(&mut self, of: Option<&Rc<Open>>) {
        poll_fn(|context| {
            self.queued
                .retain_mut(|q| match q.work.as_mut().poll(context) {
                    Poll::Pending => true,
                    Poll::Ready(result) => {
                        self.done.push(AioDone {
                            tag: q.tag,
                            start: q.start,
                            end: self.clock.now(),
                            result,
                        });
                        false
                    }
                });
            let waits = |q: &Queued| of.is_some_and(|of| Rc::ptr_eq(&q.of, of));
            match self.queued.iter().any(waits) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl Session for NfsSession {
    type Handle = NfsHandle;

    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.kept = None;
        self.name.clear();
        push(&mut self.name);
    }

    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        match self.kept {
            Some((kept, len)) if kept == dir => self.name.truncate(len),
            _ => {
                self.name.clear();
                push_dir(&mut self.name);
                self.kept = Some((dir, self.name.len()));
            }
        }
        push_name(&mut self.name);
    }

    /// There is nothing to reserve: data goes from the pool into messages, and what is read is
    /// looked at where it came.
    fn reserve(&mut self, _: u64) -> Result<(), OpError> {
        Ok(())
    }

    fn compose(&mut self, len: u64) -> Result<(), OpError> {
        self.source.compose(len)
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        let dir = super::local::split(&self.name).0;
        self.local.walk(dir).await.map(|_| ()).map_err(of_nfs)
    }

    async fn open(&mut self, how: OpenHow) -> Result<NfsHandle, OpError> {
        self.local.open(&self.name, how).await.map(NfsHandle)
    }

    /// COMMIT, if unstable data was written since the last one: what is closed is there for
    /// others, as it is with the clients of kernels. Else nothing, since the server knows no open
    /// files.
    async fn close(&mut self, handle: NfsHandle) -> Result<(), OpError> {
        if self.queued.iter().any(|q| Rc::ptr_eq(&q.of, &handle.0)) {
            self.settle(Some(&handle.0)).await;
        }
        match handle.0.is_dirty() {
            true => self.local.commit(&handle.0).await,
            false => Ok(()),
        }
    }

    async fn read(&mut self, handle: &NfsHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        handle.0.may_read()?;
        self.local
            .read_range(handle.0.file, offset, len, |_, _| ())
            .await
    }

    async fn write(&mut self, handle: &NfsHandle, offset: u64, len: u64) -> Result<(), OpError> {
        let open = &handle.0;
        open.may_write()?;
        let stable = open.stable;
        self.local
            .write_from(open, &mut self.source, offset, len, stable)
            .await
    }

    async fn read_bytes(
        &mut self,
        handle: &NfsHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        handle.0.may_read()?;
        let len = bytes.len() as u64;
        let sink = |at: usize, read: &[u8]| bytes[at..at + read.len()].copy_from_slice(read);
        self.local
            .read_range(handle.0.file, offset, len, sink)
            .await
    }

    async fn write_bytes(
        &mut self,
        handle: &NfsHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        handle.0.may_write()?;
        self.local
            .write_all(&handle.0, offset, handle.0.stable, bytes)
            .await
    }

    /// GETATTR for where the end is, then WRITE: another client may have moved it.
    async fn append(&mut self, handle: &NfsHandle, len: u64) -> Result<(), OpError> {
        handle.0.may_write()?;
        let size = self.local.size(handle.0.file).await.map_err(of_nfs)?;
        self.write(handle, size, len).await
    }

    async fn fsync(&mut self, handle: &NfsHandle) -> Result<(), OpError> {
        self.local.commit(&handle.0).await
    }

    async fn stat_handle(&mut self, handle: &NfsHandle) -> Result<Attributes, OpError> {
        let file = &handle.0.file;
        let asked = self
            .local
            .client
            .call::<GetAttr, _>(file, |a| attributes(&a));
        asked.await.map_err(of_nfs)
    }

    /// This client keeps no data.
    async fn drop_cache(&mut self, _: &NfsHandle) -> Result<(), OpError> {
        Ok(())
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        let (_, found) = self.local.find(&self.name).await?;
        Ok(attributes(&found))
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        self.local.remove(&self.name).await
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        self.local.make_dir(&self.name).await
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        let removed = self.local.with_entry(&self.name, async |entry| {
            self.local.client.call::<RmDir, _>(&entry, |_| ()).await
        });
        removed.await?;
        self.local.forget(&self.name);
        Ok(())
    }

    async fn list(&mut self) -> Result<Listed, OpError> {
        self.local.list(&self.name, false).await
    }

    fn locate_second(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.second.clear();
        push(&mut self.second);
    }

    async fn check_second_parent(&mut self) -> Result<(), OpError> {
        check(&self.second)?;
        let dir = super::local::split(&self.second).0;
        self.local.walk(dir).await.map(|_| ()).map_err(of_nfs)
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        self.local.rename(&self.name, &self.second).await
    }

    async fn access(&mut self) -> Result<(), OpError> {
        let object = self.local.object(&self.name).await?;
        let wanted = access::READ | access::MODIFY | access::EXTEND;
        self.local.may(object, wanted).await
    }

    async fn chmod(&mut self, mode: u32) -> Result<(), OpError> {
        let object = self.local.object(&self.name).await?;
        let set = Setting {
            mode: Some(mode & 0o777),
            ..Setting::NOTHING
        };
        self.local.set(object, set).await
    }

    async fn statfs(&mut self) -> Result<(), OpError> {
        let root = self.local.config.root;
        let asked = self.local.client.call::<FsStat, _>(&root, |_| ());
        asked.await.map_err(of_nfs)
    }

    async fn pathconf(&mut self) -> Result<(), OpError> {
        let root = self.local.config.root;
        let asked = self.local.client.call::<PathConf, _>(&root, |_| ());
        asked.await.map_err(of_nfs)
    }

    async fn truncate(&mut self, handle: &NfsHandle, len: u64) -> Result<(), OpError> {
        handle.0.may_write().map_err(|_| Errno::INVAL)?;
        self.local.set_size(handle.0.file, len).await
    }

    async fn lock(&mut self, _: &NfsHandle, _: u64, _: u64) -> Result<(), OpError> {
        Err(OpError(Errno::NOLCK))
    }

    async fn write_stable(
        &mut self,
        handle: &NfsHandle,
        offset: Option<u64>,
        len: u64,
    ) -> Result<(), OpError> {
        let open = &handle.0;
        open.may_write()?;
        let offset = match offset {
            Some(offset) => offset,
            None => self.local.size(open.file).await.map_err(of_nfs)?,
        };
        let stable = Stable::FileSync;
        self.local
            .write_from(open, &mut self.source, offset, len, stable)
            .await
    }

    async fn modify(&mut self, handle: &NfsHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        handle.0.may_read()?;
        handle.0.may_write()?;
        self.fill(&handle.0, offset, len).await?;
        for block in self.buffer.chunks_mut(MODIFIED) {
            for byte in block.iter_mut().take(8) {
                *byte = byte.wrapping_add(1);
            }
        }
        Ok(2 * self.spill(&handle.0, offset).await?)
    }

    async fn copy(
        &mut self,
        from: &NfsHandle,
        to: &NfsHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        from.0.may_read()?;
        to.0.may_write()?;
        self.fill(&from.0, offset, len).await?;
        self.spill(&to.0, offset).await
    }

    async fn map_read(&mut self, _: &NfsHandle, _: u64, _: u64) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    async fn map_write(&mut self, _: &NfsHandle, _: u64, _: u64, _: bool) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    async fn lookup(&mut self) -> Result<(), OpError> {
        self.local.object(&self.name).await.map(|_| ())
    }

    /// The link leads to the last name of the second path, which is in the same directory.
    async fn prepare_link(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        let to = super::local::split(&self.second).1;
        self.local.ensure_link(&self.name, to).await
    }

    async fn read_link(&mut self) -> Result<(), OpError> {
        let link = self.local.object(&self.name).await?;
        let read = self.local.client.call::<ReadLink, _>(&link, |_| ());
        read.await.map_err(of_nfs)
    }

    async fn list_plus(&mut self) -> Result<Listed, OpError> {
        self.local.list(&self.name, true).await
    }

    fn aio_write(
        &mut self,
        handle: &NfsHandle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        handle.0.may_write()?;
        let start = self.clock.now();
        let (local, of) = (self.local.clone(), handle.0.clone());
        let pieces = local.write_later(&of, &mut self.source, offset, len)?;
        let open = of.clone();
        let work = async move { local.all_written(&open, pieces).await.map(|()| len) };
        self.queued.push(Queued {
            tag,
            start,
            of,
            work: Box::pin(work),
        });
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.queued.len() + self.done.len()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        let mut taken = 0;
        poll_fn(|context| {
            self.queued
                .retain_mut(|q| match q.work.as_mut().poll(context) {
                    Poll::Pending => true,
                    Poll::Ready(result) => {
                        self.done.push(AioDone {
                            tag: q.tag,
                            start: q.start,
                            end: self.clock.now(),
                            result,
                        });
                        false
                    }
                });
            taken += self.done.len();
            done.append(&mut self.done);
            if taken >= count || self.queued.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let lane = &self.local.lane;
            match lane.now() >= lane.deadline() {
                true => Poll::Ready(Err(Stopped)),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Nothing waits to begin: what is queued has been sent.
    fn aio_abandon(&mut self) {}

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.local.entries(&self.name).await
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        self.local.get(&self.name).await
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        check(&self.name)?;
        self.local.put(&self.name, bytes).await
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        check(&self.name)?;
        match kind {
            EntryKind::Dir => self.remove_dir().await,
            _ => self.local.remove(&self.name).await,
        }
    }
}
