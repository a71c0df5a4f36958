//! The sessions of a verified run.
//!
//! Names, records and contents are prepared before an operation is timed, and checks and acknowledgements follow after
//! the operation ([`Session::check_reads`]). The timed part consists of loads and stores of a few words and, where
//! names or lengths change, an uncontended lock.

use super::buffers::{MAX_COMPOSED_BYTES, memory};
use super::ledger::{Ledger, Presence};
use super::record::FileRecord;
use super::session_state::{VerifyingHandle, VerifyingSession, WrittenRange};
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session::Session;
use crate::session_types::{
    AioDone, Attributes, EntryKind, FilesetEntry, ListTotals, OpenHow, WritePlace,
};
use plimsoll_lane::Stopped;
use plimsoll_measure::Nanos;
use plimsoll_plan::{FileId, FilesetId, Layout, Stream};
use rustix::io::Errno;

impl Session for VerifyingSession {
    type Handle = VerifyingHandle;

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

    fn reserve(&mut self, len: u64) -> Result<(), OpError> {
        self.found.reserve(len)
    }

    fn compose(&mut self, place: WritePlace<'_, Self::Handle>, len: u64) -> Result<(), OpError> {
        self.append_at = None;
        let (record, offset) = match place {
            WritePlace::At(handle, offset) | WritePlace::Queued(handle, offset) => {
                (handle.record.as_ref(), offset)
            }
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
        let Some(record) = record else {
            let place = place.of_inner(|handle| &handle.inner);
            return self.inner.compose(place, len);
        };
        let stamp = self.ledger.stamp_of(record);
        if let WritePlace::Queued(..) = place {
            let mut bytes = memory(len)?;
            stamp.fill(offset, &mut bytes[..len as usize]);
            self.detached = Some(bytes);
            return Ok(());
        }
        let len = len.min(MAX_COMPOSED_BYTES);
        self.composed.prepare(stamp, offset, len)
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
            record: Self::end_open(located, how),
        })
    }

    async fn close(&mut self, handle: Self::Handle) -> Result<(), OpError> {
        let done = self.inner.close(handle.inner).await;
        lost_if_failed(&done, handle.record.as_deref());
        done
    }

    fn was_close_local(&self) -> bool {
        self.inner.was_close_local()
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

    /// Writes at the end of the file that the ledger knows, instead of appending, because the stamped contents depend
    /// on the offset.
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

    fn set_destination(&mut self) {
        self.destination = self.located.take();
        self.inner.set_destination();
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        let names = self.located.take().zip(self.destination.take());
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

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        self.inner.on_name(operation).await
    }

    async fn on_file(
        &mut self,
        handle: &Self::Handle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let file = &handle.inner;
        match &handle.record {
            Some(record) => self.on_verified_file(file, record, operation).await,
            None => self.inner.on_file(file, operation).await,
        }
    }

    async fn copy(
        &mut self,
        from: &Self::Handle,
        to: &Self::Handle,
        range: (u64, u64),
    ) -> Result<u64, OpError> {
        match (&from.record, &to.record) {
            (Some(source), Some(copy)) => {
                let (from, to) = ((&from.inner, source), (&to.inner, copy));
                self.copy_stamped(from, to, range).await
            }
            (_, copy) => {
                if let Some(copy) = copy {
                    copy.set_unknown();
                }
                self.inner.copy(&from.inner, &to.inner, range).await
            }
        }
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
            self.compose(WritePlace::Queued(handle, offset), len)?;
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

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        let own = self.inner.aio_abandon().into_iter();
        own.filter_map(|(number, start)| {
            let queued = self.queued[number as usize].as_ref()?;
            Some((queued.tag, start))
        })
        .collect()
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

/// A failed flush means that written data may be lost; the target has reported the loss by the
/// error.
fn lost_if_failed(done: &Result<(), OpError>, record: Option<&FileRecord>) {
    if let (Err(_), Some(record)) = (done, record) {
        record.set_unknown();
    }
}
