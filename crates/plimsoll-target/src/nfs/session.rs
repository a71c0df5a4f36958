//! One worker's operations on an NFS target, independent of the NFS version.

mod async_writes;
mod rare_operations;

use super::backend::NfsBackend;
use super::cache::{Cache, CachedFile};
use super::dir_handle_cache::{check, split};
use super::handle::{InFlightWrite, NfsHandle};
use super::transfer;
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session::Session;
use crate::session_types::{
    AioDone, Attributes, CallSigns, EntryKind, ListTotals, OpenHow, SessionSpec, WritePlace,
};
use crate::timed_writes::wait_until;
use crate::write_data::{RestOfBytes, WriteData};
use memmap2::MmapMut;
use plimsoll_lane::Stopped;
use plimsoll_measure::{Clock, Nanos};
use plimsoll_nfs::v3::Stable;
use plimsoll_plan::Stream;
use std::rc::Rc;

pub(crate) struct NfsSession<B: NfsBackend> {
    client: Rc<B>,
    opener: B::Opener,
    clock: Clock,
    /// The name that operations work on.
    name: Vec<u8>,
    /// The destination of operations that take two names.
    destination: Vec<u8>,
    /// The number of the directory at the beginning of the name, and the length of the directory's
    /// path.
    dir: Option<(u64, usize)>,
    source: WriteData,
    /// Bytes that were read and will be written back.
    buffer: Vec<u8>,
    signs: CallSigns,
    /// Whether the last close succeeded without a call to the server.
    was_close_local: bool,
    in_flight: Vec<InFlightWrite<B::File>>,
    /// Completed asynchronous writes that the worker has not taken yet.
    done: Vec<AioDone>,
}

impl<B: NfsBackend> NfsSession<B> {
    pub(crate) fn new(
        client: Rc<B>,
        opener: B::Opener,
        spec: &SessionSpec,
    ) -> Result<Self, OpError> {
        Ok(Self {
            client,
            opener,
            clock: spec.clock.clone(),
            name: Vec::new(),
            destination: Vec::new(),
            dir: None,
            source: WriteData::new(&spec.content, spec.number)?,
            buffer: Vec::new(),
            signs: CallSigns::of(spec),
            was_close_local: false,
            in_flight: Vec::new(),
            done: Vec::new(),
        })
    }

    fn cache(&self) -> &Cache {
        &self.client.state().cache
    }

    /// Writes the caller's bytes (not content of the session) with the requested stability, and updates the cached data
    /// of the file.
    async fn write_given(
        &mut self,
        handle: &NfsHandle<B::File>,
        offset: u64,
        bytes: &[u8],
        stability: Stable,
    ) -> Result<(), OpError> {
        let open = &handle.open;
        open.check_writable()?;
        transfer::write_bytes(&*self.client, open, offset, bytes, stability).await?;
        self.note_write(handle, offset, bytes.len() as u64);
        Ok(())
    }

    /// Writes `len` bytes of the session's content.
    async fn write_content(
        &mut self,
        handle: &NfsHandle<B::File>,
        (offset, len): (u64, u64),
        stability: Stable,
    ) -> Result<(), OpError> {
        let open = &handle.open;
        open.check_writable()?;
        transfer::write(
            &*self.client,
            open,
            &mut self.source,
            (offset, len),
            stability,
            || self.signs.call_completed(),
        )
        .await?;
        self.note_write(handle, offset, len);
        Ok(())
    }

    /// Updates the cache after a write.
    fn note_write(&self, handle: &NfsHandle<B::File>, offset: u64, len: u64) {
        if let Some(cached) = &handle.cached {
            cached.note_write(offset, len);
            self.cache().invalidate_other_opens(cached);
        }
    }

    /// Counts an operation that the cache of a file served.
    fn note_cache_hit(&self, cached: Option<&CachedFile>) {
        if cached.is_some_and(CachedFile::has_cached_before_open) {
            self.client.note_delegation_hit();
        }
    }
}

impl<B: NfsBackend> Session for NfsSession<B> {
    type Handle = NfsHandle<B::File>;

    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.dir = None;
        self.name.clear();
        push(&mut self.name);
    }

    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        match self.dir {
            Some((known, len)) if known == dir => self.name.truncate(len),
            _ => {
                self.name.clear();
                push_dir(&mut self.name);
                self.dir = Some((dir, self.name.len()));
            }
        }
        push_name(&mut self.name);
    }

    /// The sessions of NFS targets need no buffer: written data goes from the pool into messages, and read data stays
    /// in the message.
    fn reserve(&mut self, _: u64) -> Result<(), OpError> {
        Ok(())
    }

    fn compose(&mut self, _: WritePlace<'_, Self::Handle>, len: u64) -> Result<(), OpError> {
        Ok(self.source.prepare(len)?)
    }

    fn begin_content(&mut self, stream: Stream) {
        self.source.restart(stream);
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        self.client.walk(split(&self.name).0).await.map(|_| ())
    }

    async fn open(&mut self, how: OpenHow) -> Result<Self::Handle, OpError> {
        let opened = self.client.open(&self.opener, &self.name, how).await?;
        let cache = self.cache();
        let delegation = || self.client.delegation_of(&self.name);
        let cached = cache.open(&self.name, delegation);
        if how.create || how.truncate {
            cache.invalidate(&self.name);
        }
        if let (Some(cached), Some(attributes)) = (&cached, opened.attributes) {
            cached.note_attributes(attributes);
            match how.truncate {
                true => cached.note_truncate(0),
                false => {
                    cache.store_attributes(&self.name, attributes, self.clock.now(), delegation)
                }
            }
        }
        Ok(NfsHandle {
            open: opened,
            cached,
        })
    }

    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        let of_file = |q: &InFlightWrite<_>| Rc::ptr_eq(&q.of, &handle.open);
        let has_writes = self.in_flight.iter().any(of_file);
        if has_writes {
            self.finish_writes(&handle.open).await;
        }
        let called = self.client.close(&handle.open).await?;
        self.was_close_local = !called && !has_writes;
        Ok(())
    }

    fn was_close_local(&self) -> bool {
        self.was_close_local
    }

    async fn read(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError> {
        handle.open.check_readable()?;
        let (cache, cached) = (self.cache(), handle.cached.as_deref());
        if let Some(bytes) = cache.data(cached, (offset, len), self.clock.now()) {
            self.note_cache_hit(cached);
            return Ok(bytes);
        }
        let range = (offset, len);
        let read = transfer::read(
            &*self.client,
            &handle.open,
            range,
            |_, _| (),
            || self.signs.call_completed(),
        )
        .await?;
        if let Some(cached) = cached {
            cached.note_read(offset, len, read);
        }
        Ok(read)
    }

    async fn write(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        let stability = handle.open.stability;
        self.write_content(handle, (offset, len), stability).await
    }

    async fn read_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        handle.open.check_readable()?;
        let range = (offset, bytes.len() as u64);
        let sink = |at: usize, read: &[u8]| bytes[at..at + read.len()].copy_from_slice(read);
        transfer::read(&*self.client, &handle.open, range, sink, || {
            self.signs.call_completed()
        })
        .await
    }

    async fn write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        let stability = handle.open.stability;
        self.write_given(handle, offset, bytes, stability).await
    }

    /// Determines the size as `stat_handle` does – from the cache, or else by GETATTR –, and calls WRITE at the end of
    /// the file: NFS has no append. If the size is cached, data that another client has appended since are overwritten.
    async fn append(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError> {
        handle.open.check_writable()?;
        let end = self.stat_handle(handle).await?.size;
        self.write(handle, end, len).await
    }

    async fn fsync(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        self.client.commit(&handle.open).await
    }

    async fn stat_handle(&mut self, handle: &Self::Handle) -> Result<Attributes, OpError> {
        let (cache, cached) = (self.cache(), handle.cached.as_deref());
        if let Some(attributes) = cache.open_attributes(cached, self.clock.now()) {
            self.note_cache_hit(cached);
            return Ok(attributes);
        }
        let attributes = self.client.stat_open(&handle.open.file).await?;
        if let Some(cached) = cached {
            cached.note_attributes(attributes);
            let delegation = || self.client.delegation_of(&cached.path);
            cache.store_attributes(&cached.path, attributes, self.clock.now(), delegation);
        }
        Ok(attributes)
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        let cache = self.cache();
        let delegation = || self.client.delegation_of(&self.name);
        if let Some((attributes, is_delegated)) =
            cache.name(&self.name, self.clock.now(), delegation)
        {
            if is_delegated {
                self.client.note_delegation_hit();
            }
            return Ok(attributes);
        }
        let attributes = self.client.stat(&self.name).await?;
        cache.store_attributes(&self.name, attributes, self.clock.now(), delegation);
        Ok(attributes)
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        let removed = self.client.remove(&self.name, false).await;
        self.cache().invalidate(&self.name);
        removed
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        check(&self.name)?;
        let made = self.client.make_dir(&self.name).await;
        self.cache().invalidate(&self.name);
        made
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        let removed = self.client.remove(&self.name, true).await;
        self.cache().invalidate_below(&self.name);
        removed
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.client.list(&self.name, false, &self.signs).await
    }

    fn set_destination(&mut self) {
        std::mem::swap(&mut self.name, &mut self.destination);
        self.dir = None;
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        let renamed = self.client.rename(&self.name, &self.destination).await;
        self.cache().invalidate_below(&self.name);
        self.cache().invalidate_below(&self.destination);
        renamed
    }

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        self.operate_on_name(operation).await
    }

    async fn on_file(
        &mut self,
        handle: &Self::Handle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        self.operate_on_file(handle, operation).await
    }

    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        range: (u64, u64),
    ) -> Result<u64, OpError> {
        self.copy_through_buffer(from, to, range, |_| ()).await
    }

    fn aio_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        handle.open.check_writable()?;
        let start = self.clock.now();
        self.note_write(handle, offset, len);
        let (of, source) = (&handle.open, &mut self.source);
        let work = self.client.write_later(of, source, offset, len)?;
        self.queue(tag, start, of, work);
        Ok(())
    }

    fn aio_write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: MmapMut,
        len: usize,
        tag: u32,
    ) -> Result<(), OpError> {
        handle.open.check_writable()?;
        let start = self.clock.now();
        self.note_write(handle, offset, len as u64);
        let (of, mut source) = (&handle.open, RestOfBytes(&bytes[..len]));
        let work = self
            .client
            .write_later(of, &mut source, offset, len as u64)?;
        self.queue(tag, start, of, work);
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.in_flight.len() + self.done.len()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        let lane = self.client.state().lane.clone();
        let mut taken = 0;
        wait_until(&lane, |context| {
            self.advance(context);
            taken += self.done.len();
            done.append(&mut self.done);
            taken >= count || self.in_flight.is_empty()
        })
        .await
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        self.in_flight.iter().map(|q| (q.tag, q.start)).collect()
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.client.entries(&self.name).await
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        self.client.get(&self.opener, &self.name).await
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        check(&self.name)?;
        let put = self.client.put(&self.opener, &self.name, bytes).await;
        self.cache().invalidate(&self.name);
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
