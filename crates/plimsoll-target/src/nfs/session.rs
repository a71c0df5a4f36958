//! One worker's operations on an NFS target, whichever its version.

use super::backend::{NfsBackend, OpenFile, PendingWrite, Stability};
use super::cache::CachedFile;
use super::dir_handle_cache::{check, split};
use crate::error::OpError;
use crate::session::Session;
use crate::session_types::{AioDone, Attributes, EntryKind, ListTotals, OpenHow, SessionSpec};
use crate::write_data::WriteData;
use plimsoll_lane::Stopped;
use plimsoll_measure::{Clock, Nanos};
use plimsoll_plan::Stream;
use rustix::io::Errno;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Of each so many bytes that are modified, the first eight are changed.
const MODIFY_STRIDE_BYTES: usize = 4096;

/// Memory of a buffer that is kept for the next operation, in bytes: of thousands of workers
/// each has one.
const RETAINED_BUFFER_BYTES: usize = 16 << 10;

pub(crate) struct NfsSession<W: NfsBackend> {
    local: Rc<W>,
    who: W::Opener,
    clock: Clock,
    /// What operations on names work on.
    name: Vec<u8>,
    /// The second name of operations that take two.
    second: Vec<u8>,
    /// Directory that the name begins with, by its number, and the length of its path.
    kept: Option<(u64, usize)>,
    source: WriteData,
    /// What is read to be written again.
    buffer: Vec<u8>,
    queued: Vec<InFlightWrite<W::Open>>,
    /// Asynchronous writes that are over and were not taken yet.
    done: Vec<AioDone>,
}

/// An open file, and what is kept of it.
pub(crate) struct NfsHandle<O>(Rc<O>, Option<Rc<CachedFile>>);

/// An asynchronous write that is under way.
struct InFlightWrite<O> {
    tag: u32,
    start: Nanos,
    of: Rc<O>,
    work: PendingWrite,
}

impl<W: NfsBackend> NfsSession<W> {
    pub(crate) fn new(local: Rc<W>, who: W::Opener, spec: &SessionSpec) -> Result<Self, OpError> {
        Ok(Self {
            local,
            who,
            clock: spec.clock.clone(),
            name: Vec::new(),
            second: Vec::new(),
            kept: None,
            source: WriteData::new(&spec.content, spec.number)?,
            buffer: Vec::new(),
            queued: Vec::new(),
            done: Vec::new(),
        })
    }

    /// Reads up to `len` bytes into the buffer.
    async fn read_into_buffer(
        &mut self,
        from: &W::Open,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.resize(len, 0);
        let sink = |at: usize, bytes: &[u8]| buffer[at..at + bytes.len()].copy_from_slice(bytes);
        let read = self.local.read(from, offset, len as u64, sink).await?;
        buffer.truncate(read as usize);
        self.buffer = buffer;
        Ok(())
    }

    /// Writes the buffer.
    async fn write_buffer(&mut self, to: &W::Open, offset: u64) -> Result<u64, OpError> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.local.write_bytes(to, offset, &buffer).await;
        let len = buffer.len() as u64;
        if buffer.capacity() <= RETAINED_BUFFER_BYTES {
            self.buffer = buffer;
        }
        written.map(|()| len)
    }

    /// So many bytes of a file were written.
    fn note_write(&self, handle: &NfsHandle<W::Open>, offset: u64, len: u64) {
        if let Some(kept) = &handle.1 {
            kept.note_write(offset, len);
            self.local.cache().invalidate_other_opens(kept);
        }
    }

    /// What is kept of a file has served an operation on it.
    fn note_cache_hit(&self, kept: Option<&CachedFile>) {
        if kept.is_some_and(CachedFile::has_cached_before_open) {
            self.local.note_delegation_hit();
        }
    }

    /// Has asynchronous writes go on, and moves those that are over to the others.
    fn advance(&mut self, context: &mut Context<'_>) {
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
    }

    /// Moves asynchronous writes that are over to the others; only those of a file, if one is
    /// given, are waited for.
    async fn collect_finished_writes(&mut self, of: Option<&Rc<W::Open>>) {
        poll_fn(|context| {
            self.advance(context);
            let waits = |q: &InFlightWrite<W::Open>| of.is_some_and(|of| Rc::ptr_eq(&q.of, of));
            match self.queued.iter().any(waits) {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
    }
}

impl<W: NfsBackend> Session for NfsSession<W> {
    type Handle = NfsHandle<W::Open>;

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
        Ok(self.source.prepare(len)?)
    }

    fn begin_content(&mut self, stream: Stream) {
        self.source.restart(stream);
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        self.local.change_dir(split(&self.name).0).await
    }

    async fn open(&mut self, how: OpenHow) -> Result<Self::Handle, OpError> {
        let opened = self.local.open(&self.who, &self.name, how).await?;
        let cache = self.local.cache();
        let promise = || self.local.delegation_of(&self.name);
        let kept = cache.open(&self.name, promise);
        if how.create || how.truncate {
            cache.invalidate(&self.name);
        }
        if let (Some(kept), Some(attributes)) = (&kept, opened.attributes()) {
            kept.note_attributes(attributes);
            match how.truncate {
                true => kept.note_truncate(0),
                false => cache.store_attributes(&self.name, attributes, self.clock.now(), promise),
            }
        }
        Ok(NfsHandle(opened, kept))
    }

    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        if self.queued.iter().any(|q| Rc::ptr_eq(&q.of, &handle.0)) {
            self.collect_finished_writes(Some(&handle.0)).await;
        }
        self.local.close(&handle.0).await
    }

    async fn read(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError> {
        handle.0.may_read()?;
        let (cache, kept) = (self.local.cache(), handle.1.as_deref());
        if let Some(there) = cache.data(kept, (offset, len), self.clock.now()) {
            self.note_cache_hit(kept);
            return Ok(there);
        }
        let read = self.local.read(&handle.0, offset, len, |_, _| ()).await?;
        if let Some(kept) = kept {
            kept.note_read(offset, len, read);
        }
        Ok(read)
    }

    async fn write(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        let open = &handle.0;
        open.may_write()?;
        self.local
            .write(open, &mut self.source, offset, len, Stability::AsOpened)
            .await?;
        self.note_write(handle, offset, len);
        Ok(())
    }

    async fn read_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        handle.0.may_read()?;
        let len = bytes.len() as u64;
        let sink = |at: usize, read: &[u8]| bytes[at..at + read.len()].copy_from_slice(read);
        self.local.read(&handle.0, offset, len, sink).await
    }

    async fn write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        handle.0.may_write()?;
        self.local.write_bytes(&handle.0, offset, bytes).await?;
        self.note_write(handle, offset, bytes.len() as u64);
        Ok(())
    }

    /// GETATTR for where the end is, then WRITE: another client may have moved it.
    async fn append(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError> {
        handle.0.may_write()?;
        let end = self.stat_handle(handle).await?.size;
        self.write(handle, end, len).await
    }

    async fn fsync(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        self.local.commit(&handle.0).await
    }

    async fn stat_handle(&mut self, handle: &Self::Handle) -> Result<Attributes, OpError> {
        let (cache, kept) = (self.local.cache(), handle.1.as_deref());
        if let Some(attributes) = cache.open_attributes(kept, self.clock.now()) {
            self.note_cache_hit(kept);
            return Ok(attributes);
        }
        let attributes = self.local.stat_open(&handle.0).await?;
        if let Some(kept) = kept {
            kept.note_attributes(attributes);
            let promise = || self.local.delegation_of(&kept.path);
            cache.store_attributes(&kept.path, attributes, self.clock.now(), promise);
        }
        Ok(attributes)
    }

    /// This client keeps no data.
    async fn drop_cache(&mut self, _: &Self::Handle) -> Result<(), OpError> {
        Ok(())
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        let cache = self.local.cache();
        let promise = || self.local.delegation_of(&self.name);
        if let Some((attributes, promised)) = cache.name(&self.name, self.clock.now(), promise) {
            if promised {
                self.local.note_delegation_hit();
            }
            return Ok(attributes);
        }
        let attributes = self.local.stat(&self.name).await?;
        cache.store_attributes(&self.name, attributes, self.clock.now(), promise);
        Ok(attributes)
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        let removed = self.local.remove(&self.name).await;
        self.local.cache().invalidate(&self.name);
        removed
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        let made = self.local.make_dir(&self.name).await;
        self.local.cache().invalidate(&self.name);
        made
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        let removed = self.local.remove_dir(&self.name).await;
        self.local.cache().invalidate_below(&self.name);
        removed
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.local.list(&self.name, false).await
    }

    fn locate_second(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.second.clear();
        push(&mut self.second);
    }

    async fn check_second_parent(&mut self) -> Result<(), OpError> {
        check(&self.second)?;
        self.local.change_dir(split(&self.second).0).await
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        let renamed = self.local.rename(&self.name, &self.second).await;
        self.local.cache().invalidate_below(&self.name);
        self.local.cache().invalidate_below(&self.second);
        renamed
    }

    async fn access(&mut self) -> Result<(), OpError> {
        self.local.access_read_write(&self.name).await
    }

    async fn chmod(&mut self, mode: u32) -> Result<(), OpError> {
        let changed = self.local.chmod(&self.name, mode & 0o777).await;
        self.local.cache().invalidate(&self.name);
        changed
    }

    async fn statfs(&mut self) -> Result<(), OpError> {
        self.local.statfs().await
    }

    async fn pathconf(&mut self) -> Result<(), OpError> {
        self.local.pathconf().await
    }

    async fn truncate(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError> {
        handle.0.may_write().map_err(|_| Errno::INVAL)?;
        self.local.set_len(&handle.0, len).await?;
        if let Some(kept) = &handle.1 {
            kept.note_truncate(len);
            self.local.cache().invalidate_other_opens(kept);
        }
        Ok(())
    }

    async fn lock(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        self.local.lock(&handle.0, offset, len).await
    }

    async fn write_stable(
        &mut self,
        handle: &Self::Handle,
        offset: Option<u64>,
        len: u64,
    ) -> Result<(), OpError> {
        let open = &handle.0;
        open.may_write()?;
        let offset = match offset {
            Some(offset) => offset,
            None => self.stat_handle(handle).await?.size,
        };
        self.local
            .write(open, &mut self.source, offset, len, Stability::Stable)
            .await?;
        self.note_write(handle, offset, len);
        Ok(())
    }

    async fn modify(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        handle.0.may_read()?;
        handle.0.may_write()?;
        self.read_into_buffer(&handle.0, offset, len).await?;
        for block in self.buffer.chunks_mut(MODIFY_STRIDE_BYTES) {
            for byte in block.iter_mut().take(8) {
                *byte = byte.wrapping_add(1);
            }
        }
        let written = self.write_buffer(&handle.0, offset).await?;
        self.note_write(handle, offset, written);
        Ok(2 * written)
    }

    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        from.0.may_read()?;
        to.0.may_write()?;
        self.read_into_buffer(&from.0, offset, len).await?;
        let written = self.write_buffer(&to.0, offset).await?;
        self.note_write(to, offset, written);
        Ok(written)
    }

    async fn map_read(&mut self, _: &Self::Handle, _: u64, _: u64) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    async fn map_write(
        &mut self,
        _: &Self::Handle,
        _: u64,
        _: u64,
        _: bool,
    ) -> Result<(), OpError> {
        Err(OpError(Errno::OPNOTSUPP))
    }

    async fn lookup(&mut self) -> Result<(), OpError> {
        self.local.lookup(&self.name).await
    }

    /// The link leads to the last name of the second path, which is in the same directory.
    async fn prepare_link(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        let to = split(&self.second).1;
        self.local.ensure_link(&self.name, to).await
    }

    async fn read_link(&mut self) -> Result<(), OpError> {
        self.local.read_link(&self.name).await
    }

    async fn list_plus(&mut self) -> Result<ListTotals, OpError> {
        self.local.list(&self.name, true).await
    }

    fn aio_compose(&mut self, len: u64) -> Result<(), OpError> {
        self.compose(len)
    }

    fn aio_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        handle.0.may_write()?;
        let start = self.clock.now();
        self.note_write(handle, offset, len);
        let of = handle.0.clone();
        let work = self.local.write_later(&of, &mut self.source, offset, len)?;
        self.queued.push(InFlightWrite {
            tag,
            start,
            of,
            work,
        });
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.queued.len() + self.done.len()
    }

    fn aio_under_way(&self) -> Vec<(u32, Nanos)> {
        self.queued.iter().map(|q| (q.tag, q.start)).collect()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        let mut taken = 0;
        poll_fn(|context| {
            self.advance(context);
            taken += self.done.len();
            done.append(&mut self.done);
            if taken >= count || self.queued.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let lane = self.local.lane();
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
        self.local.get(&self.who, &self.name).await
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        check(&self.name)?;
        let put = self.local.put(&self.who, &self.name, bytes).await;
        self.local.cache().invalidate(&self.name);
        put
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        check(&self.name)?;
        match kind {
            EntryKind::Dir => self.remove_dir().await,
            _ => self.unlink().await,
        }
    }
}
