//! The sessions of a verified run.
//!
//! Names, records and contents are prepared before an operation is timed, and checks and acknowledgements
//! follow after it ([`Session::check_reads`]). What remains in the timed part are loads and stores of a few
//! words, and where names or lengths change a lock that is free.

use super::buffers::{MAX_COMPOSED_BYTES, memory};
use super::ledger::{Ledger, Presence};
use super::record::FileRecord;
use super::session_state::{VerifyingHandle, VerifyingSession, WrittenRange};
use crate::error::OpError;
use crate::session::Session;
use crate::session_types::{
    AioDone, Attributes, EntryKind, FilesetEntry, ListTotals, OpenHow, WritePlace,
};
use plimsoll_lane::Stopped;
use plimsoll_measure::Nanos;
use plimsoll_plan::{FileId, FilesetId, Layout, Stream};
use rustix::io::Errno;

impl<S: Session> Session for VerifyingSession<S> {
    type Handle = VerifyingHandle<S::Handle>;

    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.located = None;
        self.inner.locate(push);
    }

    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        self.located = None;
        self.inner.locate_in(dir, push_dir, push_name);
    }

    fn locate_entry(&mut self, fileset: FilesetId, layout: &Layout, entry: FilesetEntry) {
        self.located = match entry {
            FilesetEntry::File(file) => Some(self.ledger.locate(fileset, file)),
            FilesetEntry::Dir(_) | FilesetEntry::LeafDir(_) => None,
        };
        self.inner.locate_entry(fileset, layout, entry);
    }

    fn begin_populating(&mut self, fileset: FilesetId, file: FileId) {
        self.located = Some(Ledger::locate_to_populate(fileset, file));
    }

    fn is_immediate(&self) -> bool {
        self.inner.is_immediate()
    }

    fn reserve(&mut self, len: u64) -> Result<(), OpError> {
        self.found.reserve(len)
    }

    /// Composes nothing: contents depend on the place, which [`Session::compose_at`] has.
    fn compose(&mut self, _: u64) -> Result<(), OpError> {
        Ok(())
    }

    fn compose_at(&mut self, place: WritePlace<'_, Self::Handle>, len: u64) -> Result<(), OpError> {
        self.append_at = None;
        let (record, offset) = match place {
            WritePlace::At(handle, offset) => (handle.record.as_ref(), offset),
            WritePlace::Located => (self.located.as_ref().map(|l| &l.record), 0),
            WritePlace::End(handle) => match &handle.record {
                Some(record) => {
                    let at = record.reserve_append(len);
                    self.append_at = Some(at);
                    (Some(record), at)
                }
                None => (None, 0),
            },
        };
        match record {
            Some(record) => {
                let stamp = self.ledger.stamp_of(record);
                let len = len.min(MAX_COMPOSED_BYTES);
                self.composed.prepare(stamp, offset, len)
            }
            None => self.inner.compose(len),
        }
    }

    fn check_reads(&mut self) -> u64 {
        for write in self.acknowledged.drain(..) {
            write
                .record
                .acknowledge(write.before, write.begin, write.end);
        }
        std::mem::take(&mut self.wrong_reads) + self.found.check(&self.ledger)
    }

    fn begin_content(&mut self, stream: Stream) {
        self.inner.begin_content(stream);
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        self.inner.check_parent().await
    }

    async fn open(&mut self, how: OpenHow) -> Result<Self::Handle, OpError> {
        let Some(located) = self.located.take() else {
            let inner = self.inner.open(how).await?;
            return Ok(VerifyingHandle {
                inner,
                record: None,
            });
        };
        let truncated = Self::begin_open(&located, how);
        let opened = self.inner.open(how).await;
        if let Some(epoch) = truncated {
            located.record.end_truncate(epoch, 0, opened.is_ok());
        }
        let inner = opened?;
        Ok(VerifyingHandle {
            inner,
            record: Self::has_opened(located, how),
        })
    }

    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        let done = self.inner.close(handle.inner).await;
        lost_if_failed(&done, handle.record.as_deref());
        done
    }

    async fn read(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<u64, OpError> {
        let Some(record) = &handle.record else {
            return self.inner.read(&handle.inner, offset, len).await;
        };
        let read = self.read_kept(&handle.inner, record, (offset, len)).await?;
        Ok(read.1)
    }

    async fn write(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        match &handle.record {
            None => self.inner.write(&handle.inner, offset, len).await,
            Some(record) => {
                let range = (offset, len);
                self.write_stamped(&handle.inner, record, range, false)
                    .await
            }
        }
    }

    async fn read_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        self.inner.read_bytes(&handle.inner, offset, bytes).await
    }

    async fn write_bytes(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        debug_assert!(handle.record.is_none(), "contents follow from the place");
        self.inner.write_bytes(&handle.inner, offset, bytes).await
    }

    /// Appends at the end of what was written by this process: the contents depend on the place.
    async fn append(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError> {
        match &handle.record {
            None => self.inner.append(&handle.inner, len).await,
            Some(record) => self.append_stamped(&handle.inner, record, len, false).await,
        }
    }

    async fn fsync(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        let done = self.inner.fsync(&handle.inner).await;
        lost_if_failed(&done, handle.record.as_deref());
        done
    }

    async fn stat_handle(&mut self, handle: &Self::Handle) -> Result<Attributes, OpError> {
        self.inner.stat_handle(&handle.inner).await
    }

    async fn drop_cache(&mut self, handle: &Self::Handle) -> Result<(), OpError> {
        self.inner.drop_cache(&handle.inner).await
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.inner.stat().await
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        let located = self.begin_remove();
        self.inner.unlink().await?;
        if let Some(located) = located {
            located.name.set(Presence::Gone);
        }
        Ok(())
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        self.inner.make_dir().await
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.inner.remove_dir().await
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.inner.list().await
    }

    fn locate_second(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.second = None;
        self.inner.locate_second(push);
    }

    fn locate_second_file(&mut self, fileset: FilesetId, layout: &Layout, file: FileId) {
        self.second = Some(self.ledger.locate(fileset, file));
        self.inner.locate_second_file(fileset, layout, file);
    }

    async fn check_second_parent(&mut self) -> Result<(), OpError> {
        self.inner.check_second_parent().await
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        let names = self.located.take().zip(self.second.take());
        if let Some((from, to)) = &names {
            from.name.set(Presence::Unknown);
            to.name.set(Presence::Unknown);
        }
        self.inner.rename().await?;
        if let Some((from, to)) = names
            && from.presence == Presence::There
        {
            from.name.set(Presence::Gone);
            to.name.install(from.record);
        }
        Ok(())
    }

    async fn access(&mut self) -> Result<(), OpError> {
        self.inner.access().await
    }

    async fn chmod(&mut self, mode: u32) -> Result<(), OpError> {
        self.inner.chmod(mode).await
    }

    async fn statfs(&mut self) -> Result<(), OpError> {
        self.inner.statfs().await
    }

    async fn pathconf(&mut self) -> Result<(), OpError> {
        self.inner.pathconf().await
    }

    async fn truncate(&mut self, handle: &Self::Handle, len: u64) -> Result<(), OpError> {
        let record = handle.record.as_ref();
        let begun = record.map(|record| (record, record.begin_truncate(len)));
        let done = self.inner.truncate(&handle.inner, len).await;
        if let Some((record, epoch)) = begun {
            record.end_truncate(epoch, len, done.is_ok());
        }
        done
    }

    async fn lock(&mut self, handle: &Self::Handle, offset: u64, len: u64) -> Result<(), OpError> {
        self.inner.lock(&handle.inner, offset, len).await
    }

    async fn write_stable(
        &mut self,
        handle: &Self::Handle,
        offset: Option<u64>,
        len: u64,
    ) -> Result<(), OpError> {
        match (&handle.record, offset) {
            (None, _) => self.inner.write_stable(&handle.inner, offset, len).await,
            (Some(record), Some(offset)) => {
                let range = (offset, len);
                self.write_stamped(&handle.inner, record, range, true).await
            }
            (Some(record), None) => self.append_stamped(&handle.inner, record, len, true).await,
        }
    }

    /// Writes the contents again where it read: what it read may be zeros behind a hole, which another
    /// worker has filled meanwhile.
    async fn modify(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        let Some(record) = &handle.record else {
            return self.inner.modify(&handle.inner, offset, len).await;
        };
        let range = (offset, len);
        let (_, read) = self.read_kept(&handle.inner, record, range).await?;
        self.write_stamped(&handle.inner, record, (offset, read), false)
            .await?;
        Ok(2 * read)
    }

    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        let (Some(source), Some(copy)) = (&from.record, &to.record) else {
            if let Some(copy) = &to.record {
                copy.set_unknown();
            }
            return self.inner.copy(&from.inner, &to.inner, offset, len).await;
        };
        copy.take_contents_of(source);
        let before = source.known();
        let (room, read) = self.read_kept(&from.inner, source, (offset, len)).await?;
        // Behind the first hole of the source the copy may have zeros too.
        let solid = source.known_since(before).solid;
        let begun = copy.begin_write(offset + read);
        let bytes = &self.found.bytes(&room)[..read as usize];
        self.inner.write_bytes(&to.inner, offset, bytes).await?;
        let end = (offset + read).min(solid).max(offset);
        self.acknowledge(copy, begun, offset, end);
        Ok(read)
    }

    async fn map_read(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError> {
        let Some(record) = &handle.record else {
            return self.inner.map_read(&handle.inner, offset, len).await;
        };
        let room = self.room(len)?;
        let begun = self.begin_read(record);
        let bytes = self.found.bytes(&room);
        self.inner
            .map_read_bytes(&handle.inner, offset, bytes)
            .await?;
        self.keep(room, len, &begun, (offset, len));
        Ok(())
    }

    async fn map_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        flush: bool,
    ) -> Result<(), OpError> {
        let Some(record) = &handle.record else {
            let inner = &mut self.inner;
            return inner.map_write(&handle.inner, offset, len, flush).await;
        };
        let stamp = self.ledger.stamp_of(record);
        let before = record.begin_write(offset + len);
        if self.composed.bytes(stamp, offset, len)?.len() as u64 != len {
            self.composed.prepare(stamp, offset, len)?;
        }
        let bytes = self.composed.bytes(stamp, offset, len)?;
        self.inner
            .map_write_bytes(&handle.inner, offset, bytes, flush)
            .await?;
        self.acknowledge(record, before, offset, offset + len);
        Ok(())
    }

    async fn lookup(&mut self) -> Result<(), OpError> {
        self.inner.lookup().await
    }

    async fn prepare_link(&mut self) -> Result<(), OpError> {
        self.inner.prepare_link().await
    }

    async fn read_link(&mut self) -> Result<(), OpError> {
        self.inner.read_link().await
    }

    async fn list_plus(&mut self) -> Result<ListTotals, OpError> {
        self.inner.list_plus().await
    }

    fn aio_compose_at(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError> {
        let Some(record) = &handle.record else {
            return self.inner.aio_compose(len);
        };
        let mut bytes = memory(len)?;
        let stamp = self.ledger.stamp_of(record);
        stamp.fill(offset, &mut bytes[..len as usize]);
        self.detached = Some(bytes);
        Ok(())
    }

    fn aio_write(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        let Some(record) = &handle.record else {
            return self.queue(tag, None, |inner, number| {
                inner.aio_write(&handle.inner, offset, len, number)
            });
        };
        if self.detached.is_none() {
            self.aio_compose_at(handle, offset, len)?;
        }
        let bytes = self.detached.take().expect("it was composed");
        let range = WrittenRange {
            record: record.clone(),
            before: record.begin_write(offset + len),
            begin: offset,
            end: offset + len,
        };
        self.queue(tag, Some(range), |inner, number| {
            inner.aio_write_bytes(&handle.inner, offset, bytes, len as usize, number)
        })
    }

    fn aio_pending(&self) -> usize {
        self.inner.aio_pending()
    }

    fn aio_under_way(&self) -> Vec<(u32, Nanos)> {
        let own = self.inner.aio_under_way().into_iter();
        own.filter_map(|(number, start)| {
            let queued = self.queued[number as usize].as_ref()?;
            Some((queued.tag, start))
        })
        .collect()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        let first = done.len();
        let taken = self.inner.aio_take(count, done).await;
        for done in &mut done[first..] {
            let queued = self.queued[done.tag as usize].take();
            let queued = queued.expect("a write that completed was queued");
            done.tag = queued.tag;
            if let (Some(range), Ok(_)) = (queued.range, done.result) {
                self.acknowledged.push(range);
            }
        }
        taken
    }

    fn aio_abandon(&mut self) {
        self.inner.aio_abandon();
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.inner.entries().await
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        self.inner.get().await
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        self.inner.put(bytes).await
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        let located = self.begin_remove();
        let removed = self.inner.remove(kind).await;
        if let (Some(located), Ok(()) | Err(OpError(Errno::NOENT))) = (located, removed) {
            located.name.set(Presence::Gone);
        }
        removed
    }
}

/// A flush that fails says that written data may be lost, which the target has thereby reported.
fn lost_if_failed(done: &Result<(), OpError>, record: Option<&FileRecord>) {
    if let (Err(_), Some(record)) = (done, record) {
        record.set_unknown();
    }
}
