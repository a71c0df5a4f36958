//! The operations of a worker as blocking system calls.

use super::calls::write_pieces;
use super::handle::PosixHandle;
use super::mix_syscalls::attributes;
use super::session::PosixSession;
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation};
use crate::session::Session;
use crate::session_types::{AioDone, Attributes, EntryKind, ListTotals, OpenHow, WritePlace};
use memmap2::MmapMut;
use plimsoll_lane::Stopped;
use plimsoll_measure::Nanos;
use plimsoll_plan::Stream;
use rustix::fs::{AtFlags, Mode};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, IntoRawFd};

impl Session for PosixSession {
    type Handle = PosixHandle;

    const HAS_FAST_PATH: bool = true;

    #[inline]
    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.calls.name.locate(push);
    }

    #[inline]
    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        self.calls.name.locate_in(dir, push_dir, push_name);
    }

    #[inline]
    fn is_immediate(&self) -> bool {
        true
    }

    #[inline]
    fn reserve(&mut self, len: u64) -> Result<(), OpError> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        Ok(self.calls.reserve_buffer(len)?)
    }

    #[inline(always)]
    fn compose(&mut self, place: WritePlace<'_, PosixHandle>, len: u64) -> Result<(), OpError> {
        Ok(self.calls.source.prepare_at(place, len)?)
    }

    fn begin_content(&mut self, stream: Stream) {
        self.calls.source.restart(stream);
    }

    #[inline]
    async fn check_parent(&mut self) -> Result<(), OpError> {
        self.check_parent_now()
    }

    #[inline]
    async fn open(&mut self, how: OpenHow) -> Result<PosixHandle, OpError> {
        self.open_now(how)
    }

    #[inline]
    async fn close(&mut self, handle: PosixHandle) -> Result<(), OpError> {
        self.close_now(handle)
    }

    #[inline]
    async fn read(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        self.read_now(handle, offset, len)
    }

    #[inline]
    async fn write(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<(), OpError> {
        self.write_now(handle, offset, len)
    }

    #[inline]
    async fn read_bytes(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        self.read_bytes_now(handle, offset, bytes)
    }

    #[inline]
    async fn write_bytes(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        self.write_bytes_now(handle, offset, bytes)
    }

    #[inline]
    async fn append(&mut self, handle: &PosixHandle, len: u64) -> Result<(), OpError> {
        self.calls.write_with(len, |bytes, _| {
            rustix::io::pwritev2(
                &handle.fd,
                &[IoSlice::new(bytes)],
                0,
                ReadWriteFlags::APPEND,
            )
        })
    }

    async fn fsync(&mut self, handle: &PosixHandle) -> Result<(), OpError> {
        Ok(rustix::fs::fsync(&handle.fd)?)
    }

    async fn stat_handle(&mut self, handle: &PosixHandle) -> Result<Attributes, OpError> {
        Ok(attributes(&rustix::fs::fstat(&handle.fd)?))
    }

    #[inline]
    async fn stat(&mut self) -> Result<Attributes, OpError> {
        self.stat_now()
    }

    #[inline]
    async fn unlink(&mut self) -> Result<(), OpError> {
        self.unlink_now()
    }

    #[inline]
    async fn make_dir(&mut self) -> Result<(), OpError> {
        Ok(rustix::fs::mkdirat(
            &self.calls.root,
            self.calls.name(),
            Mode::from_raw_mode(0o777),
        )?)
    }

    #[inline]
    async fn remove_dir(&mut self) -> Result<(), OpError> {
        Ok(rustix::fs::unlinkat(
            &self.calls.root,
            self.calls.name(),
            AtFlags::REMOVEDIR,
        )?)
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.calls.list_located()
    }

    fn set_destination(&mut self) {
        self.calls.set_destination();
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        let (root, to) = (&self.calls.root, self.calls.destination.get());
        Ok(rustix::fs::renameat(root, self.calls.name(), root, to)?)
    }

    #[inline]
    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        self.calls.on_name(operation)
    }

    #[inline]
    async fn on_file(
        &mut self,
        handle: &PosixHandle,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        self.calls.on_file(&handle.fd, operation)
    }

    #[inline]
    async fn copy(
        &mut self,
        from: &PosixHandle,
        to: &PosixHandle,
        range: (u64, u64),
    ) -> Result<u64, OpError> {
        let calls = &mut self.calls;
        calls.copy_through_buffer(&from.fd, &to.fd, range, |_| ())
    }

    #[inline(always)]
    fn read_bytes_now(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        loop {
            match rustix::io::pread(&handle.fd, &mut *bytes, offset) {
                Err(Errno::INTR) => {}
                other => return Ok(other? as u64),
            }
        }
    }

    #[inline(always)]
    fn write_bytes_now(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        Ok(write_pieces(bytes.len() as u64, |done| {
            rustix::io::pwrite(&handle.fd, &bytes[done as usize..], offset + done)
        })?)
    }

    #[inline(always)]
    fn open_now(&mut self, how: OpenHow) -> Result<PosixHandle, OpError> {
        PosixHandle::open(&self.calls.root, &self.calls.name, how)
    }

    #[inline(always)]
    fn close_now(&mut self, handle: PosixHandle) -> Result<(), OpError> {
        if let Some(shared) = handle.shared.into_inner() {
            self.queue.drain(shared.as_raw_fd());
        }
        // SAFETY: the descriptor was owned, and nothing else uses it.
        Ok(unsafe { rustix::io::try_close(handle.fd.into_raw_fd()) }?)
    }

    #[inline(always)]
    fn read_now(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<u64, OpError> {
        let room = self.calls.buffer_range(len as usize)?;
        loop {
            match rustix::io::pread(&handle.fd, &mut self.calls.buffer[room.clone()], offset) {
                Err(Errno::INTR) => {}
                other => return Ok(other? as u64),
            }
        }
    }

    #[inline(always)]
    fn write_now(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<(), OpError> {
        self.calls.write_with(len, |bytes, done| {
            rustix::io::pwrite(&handle.fd, bytes, offset + done)
        })
    }

    #[inline(always)]
    fn stat_now(&mut self) -> Result<Attributes, OpError> {
        self.calls.stat_located()
    }

    #[inline(always)]
    fn unlink_now(&mut self) -> Result<(), OpError> {
        Ok(rustix::fs::unlinkat(
            &self.calls.root,
            self.calls.name(),
            AtFlags::empty(),
        )?)
    }

    #[inline(always)]
    fn check_parent_now(&mut self) -> Result<(), OpError> {
        Ok(self
            .parents
            .check(&self.calls.root, &self.lane, self.calls.name.get())?)
    }

    fn aio_write(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        let file = handle.shared()?;
        let content = self.calls.source.take_detached(len)?;
        self.queue.push(file, offset, len, tag, content)
    }

    fn aio_write_bytes(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: MmapMut,
        len: usize,
        tag: u32,
    ) -> Result<(), OpError> {
        let file = handle.shared()?;
        let content = self.calls.source.detached_bytes(bytes);
        self.queue.push(file, offset, len as u64, tag, content)
    }

    fn aio_pending(&self) -> usize {
        self.queue.pending()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.queue.take(&self.lane, count, done).await
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        self.queue.abandon()
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.calls.located_entries()
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        self.calls.located_contents()
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        self.calls.make_or_replace(bytes)
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        self.calls.remove_located(kind)
    }
}
