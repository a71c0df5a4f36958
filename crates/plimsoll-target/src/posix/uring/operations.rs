//! The operations of a worker on a ring, or in the thread pool for operations that io_uring lacks.

use super::aio::AioWrite;
use super::call::{APPEND, RingCall, WriteHow, opened};
use super::file::{RingFile, check_offset};
use super::options::PoolOperation;
use super::session::UringSession;
use crate::error::OpError;
use crate::posix::handle::PosixHandle;
use crate::posix::mix_syscalls::{attributes, size};
use crate::rare_operation::{FileOperation, NameOperation, missing, modify_blocks};
use crate::session::Session;
use crate::session_types::{
    AccessAdvice, AioDone, Attributes, EntryKind, ListTotals, OpenHow, WritePlace,
};
use memmap2::MmapMut;
use plimsoll_lane::Stopped;
use plimsoll_measure::Nanos;
use plimsoll_plan::Stream;
use rustix::fs::{AtFlags, Mode};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::CString;
use std::sync::Arc;

/// Flags of a write that completes when the data is on stable storage.
const DSYNC: i32 = ReadWriteFlags::DSYNC.bits() as i32;

impl UringSession {
    /// Reads up to the requested number of bytes into the buffer; returns their range in the
    /// buffer.
    async fn fill_buffer(
        &mut self,
        file: &Arc<RingFile>,
        offset: u64,
        len: usize,
    ) -> Result<std::ops::Range<usize>, OpError> {
        check_offset(offset)?;
        self.reserve_buffer(len)?;
        let room = self.calls().calls.buffer_range(len)?;
        self.count_transfer(file);
        let mut done = 0;
        while done < len {
            let (rest, at) = (room.start + done..room.end, offset + done as u64);
            match self
                .operate(|calls| RingCall::read(calls, file, rest, at))
                .await
            {
                Ok(0) => break,
                Ok(n) => done += n as usize,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(room.start..room.start + done)
    }

    /// Copies bytes into the worker's buffer and writes the buffer.
    async fn write_copied(
        &mut self,
        file: &Arc<RingFile>,
        how: WriteHow,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        self.reserve_buffer(bytes.len())?;
        let room = self.calls().calls.buffer_range(bytes.len())?;
        self.calls().calls.buffer[room.clone()].copy_from_slice(bytes);
        self.write_buffer(file, how, room).await
    }

    async fn unlink_with(&mut self, how: PoolOperation, flags: AtFlags) -> Result<(), OpError> {
        if self.pooled.has(how) {
            return self
                .in_pool(move |c| Ok(rustix::fs::unlinkat(&c.root, c.name(), flags)?))
                .await;
        }
        self.operate(|calls| RingCall::unlink(calls, flags)).await?;
        Ok(())
    }

    /// Reads up to `len` bytes of one file into the buffer, passes the bytes to `change`, and
    /// writes the result at the same offset of another file; returns the number of bytes.
    async fn copy_through_buffer(
        &mut self,
        from: &Arc<RingFile>,
        to: &Arc<RingFile>,
        (offset, len): (u64, u64),
        change: impl FnOnce(&mut [u8]),
    ) -> Result<u64, OpError> {
        let read = self.fill_buffer(from, offset, size(len)?).await?;
        change(&mut self.calls().calls.buffer[read.clone()]);
        let bytes = read.len() as u64;
        let how = WriteHow { offset, flags: 0 };
        self.write_buffer(to, how, read).await?;
        Ok(bytes)
    }
}

impl Session for UringSession {
    type Handle = Arc<RingFile>;

    #[inline]
    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.calls().calls.name.locate(push);
    }

    #[inline]
    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        self.calls().calls.name.locate_in(dir, push_dir, push_name);
    }

    fn reserve(&mut self, len: u64) -> Result<(), OpError> {
        Ok(self.reserve_buffer(size(len)?)?)
    }

    #[inline]
    fn compose(&mut self, place: WritePlace<'_, Arc<RingFile>>, len: u64) -> Result<(), OpError> {
        if !matches!(place, WritePlace::Queued(..)) {
            self.register_content();
        }
        Ok(self.calls().calls.source.prepare_at(place, len)?)
    }

    fn begin_content(&mut self, stream: Stream) {
        self.calls().calls.source.restart(stream);
    }

    async fn check_parent(&mut self) -> Result<(), OpError> {
        let now = self.lane.now();
        let name = self.located().name();
        let Some(parent) = self.parents.unchecked(name, now) else {
            return Ok(());
        };
        let parent = CString::new(parent).map_err(|_| Errno::INVAL)?;
        let path = parent.clone();
        let found = self
            .operate(|calls| RingCall::open_parent(calls, path))
            .await;
        // Closing an `O_PATH` descriptor does not block.
        drop(opened(found)?);
        self.parents.note(parent.as_bytes(), now);
        Ok(())
    }

    async fn open(&mut self, how: OpenHow) -> Result<Arc<RingFile>, OpError> {
        if self.pooled.has(PoolOperation::Open) {
            let opened = self.in_pool(move |c| PosixHandle::open(&c.root, &c.name, how));
            return Ok(Arc::new(RingFile::new(opened.await?.fd)));
        }
        let fd = loop {
            match self.operate(|calls| RingCall::open(calls, how)).await {
                // openat2 fails with `EAGAIN` when a concurrent rename disturbs the lookup.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => break opened(other)?,
            }
        };
        let file = Arc::new(RingFile::new(fd));
        if let Some(advice) = how.advice {
            let advice = match advice {
                AccessAdvice::Random => libc::POSIX_FADV_RANDOM,
                AccessAdvice::Sequential => libc::POSIX_FADV_SEQUENTIAL,
            };
            self.operate(|calls| RingCall::advise(calls, &file, advice))
                .await?;
        }
        Ok(file)
    }

    async fn close(&mut self, handle: Arc<RingFile>) -> Result<(), OpError> {
        self.aio.drain(&handle).await;
        self.ring.unregister_file(&handle);
        // An abandoned operation may still share the file; the file is then closed when the
        // operation completes.
        if let Ok(file) = Arc::try_unwrap(handle) {
            self.operate(|calls| RingCall::close(calls, file.fd))
                .await?;
        }
        Ok(())
    }

    async fn read(
        &mut self,
        handle: &Arc<RingFile>,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        let read = self.read_into_buffer(handle, offset, size(len)?).await?;
        Ok(read.len() as u64)
    }

    async fn write(
        &mut self,
        handle: &Arc<RingFile>,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError> {
        let how = WriteHow { offset, flags: 0 };
        self.write_content(handle, how, len).await
    }

    async fn read_bytes(
        &mut self,
        handle: &Arc<RingFile>,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64, OpError> {
        // The kernel reads into the worker's buffer rather than into `bytes`, because the caller's memory may be freed
        // while an abandoned read is still in flight.
        let read = self.read_into_buffer(handle, offset, bytes.len()).await?;
        let len = read.len();
        bytes[..len].copy_from_slice(&self.calls().calls.buffer[read]);
        Ok(len as u64)
    }

    async fn write_bytes(
        &mut self,
        handle: &Arc<RingFile>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        let how = WriteHow { offset, flags: 0 };
        self.write_copied(handle, how, bytes).await
    }

    async fn append(&mut self, handle: &Arc<RingFile>, len: u64) -> Result<(), OpError> {
        let how = WriteHow {
            offset: 0,
            flags: APPEND,
        };
        self.write_content(handle, how, len).await
    }

    async fn fsync(&mut self, handle: &Arc<RingFile>) -> Result<(), OpError> {
        if self.pooled.has(PoolOperation::Fsync) {
            return self
                .in_pool_on(handle, |_, file| Ok(rustix::fs::fsync(file)?))
                .await;
        }
        self.operate(|calls| RingCall::fsync(calls, handle, false))
            .await?;
        Ok(())
    }

    async fn stat_handle(&mut self, handle: &Arc<RingFile>) -> Result<Attributes, OpError> {
        if self.pooled.has(PoolOperation::Stat) {
            return self
                .in_pool_on(handle, |_, file| Ok(attributes(&rustix::fs::fstat(file)?)))
                .await;
        }
        self.operate(|calls| RingCall::stat_file(calls, handle))
            .await?;
        Ok(self.calls().attributes())
    }

    async fn stat(&mut self) -> Result<Attributes, OpError> {
        if self.pooled.has(PoolOperation::Stat) {
            return self.in_pool(|c| c.stat_located()).await;
        }
        self.operate(RingCall::stat).await?;
        Ok(self.calls().attributes())
    }

    async fn unlink(&mut self) -> Result<(), OpError> {
        self.unlink_with(PoolOperation::Delete, AtFlags::empty())
            .await
    }

    async fn make_dir(&mut self) -> Result<(), OpError> {
        if self.pooled.has(PoolOperation::MakeDir) {
            let mode = Mode::from_raw_mode(0o777);
            return self
                .in_pool(move |c| Ok(rustix::fs::mkdirat(&c.root, c.name(), mode)?))
                .await;
        }
        self.operate(RingCall::make_dir).await?;
        Ok(())
    }

    async fn remove_dir(&mut self) -> Result<(), OpError> {
        self.unlink_with(PoolOperation::RemoveDir, AtFlags::REMOVEDIR)
            .await
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        self.in_pool(|c| c.list_located()).await
    }

    fn set_destination(&mut self) {
        self.calls().calls.set_destination();
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        if self.pooled.has(PoolOperation::Rename) {
            return self
                .in_pool(|c| {
                    let (root, to) = (&c.root, c.destination.get());
                    Ok(rustix::fs::renameat(root, c.name(), root, to)?)
                })
                .await;
        }
        self.operate(RingCall::rename).await?;
        Ok(())
    }

    async fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        match operation {
            NameOperation::StatMissing => missing(self.stat().await),
            operation => self.in_pool(move |c| c.on_name(operation)).await,
        }
    }

    async fn on_file(
        &mut self,
        file: &Arc<RingFile>,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        // The pool executes operations that io_uring lacks. A pooled call borrows nothing from the worker, because an
        // abandoned call may outlive the worker.
        let pooled = match operation {
            FileOperation::DropCache => {
                // The page cache is dropped by one fdatasync(2) and two posix_fadvise(2) with POSIX_FADV_DONTNEED, as
                // in `SystemCalls::on_file`.
                self.operate(|calls| RingCall::fsync(calls, file, true))
                    .await?;
                for _ in 0..2 {
                    let unneeded = libc::POSIX_FADV_DONTNEED;
                    self.operate(|calls| RingCall::advise(calls, file, unneeded))
                        .await?;
                }
                return Ok(0);
            }
            FileOperation::AdviseUnneeded => {
                let unneeded = libc::POSIX_FADV_DONTNEED;
                self.operate(|calls| RingCall::advise(calls, file, unneeded))
                    .await?;
                return Ok(0);
            }
            FileOperation::FlushData => {
                self.operate(|calls| RingCall::fsync(calls, file, true))
                    .await?;
                return Ok(0);
            }
            FileOperation::Truncate(len) if !self.pooled.has(PoolOperation::Truncate) => {
                self.operate(|calls| RingCall::truncate(calls, file, len))
                    .await?;
                return Ok(0);
            }
            FileOperation::WriteStable { offset, len } => {
                let how = WriteHow {
                    offset: offset.unwrap_or(0),
                    flags: match offset {
                        Some(_) => DSYNC,
                        None => DSYNC | APPEND,
                    },
                };
                self.write_content(file, how, len).await?;
                return Ok(len);
            }
            FileOperation::WriteBytesStable { offset, bytes } => {
                let flags = DSYNC;
                self.write_copied(file, WriteHow { offset, flags }, bytes)
                    .await?;
                return Ok(bytes.len() as u64);
            }
            FileOperation::Modify { offset, len } => {
                let range = (offset, len);
                let modified = self.copy_through_buffer(file, file, range, modify_blocks);
                return Ok(2 * modified.await?);
            }
            FileOperation::MapReadBytes { offset, bytes } => {
                let len = bytes.len();
                let read = self.in_pool_on(file, move |c, file| {
                    let mut bytes = vec![0; len];
                    let into = &mut bytes[..];
                    c.on_file(
                        file,
                        FileOperation::MapReadBytes {
                            offset,
                            bytes: into,
                        },
                    )?;
                    Ok(bytes)
                });
                bytes.copy_from_slice(&read.await?);
                return Ok(len as u64);
            }
            FileOperation::MapWriteBytes {
                offset,
                bytes,
                flush,
            } => {
                let bytes = bytes.to_vec();
                let written = self.in_pool_on(file, move |c, file| {
                    let bytes = &bytes[..];
                    let map_write = FileOperation::MapWriteBytes {
                        offset,
                        bytes,
                        flush,
                    };
                    c.on_file(file, map_write)
                });
                return written.await;
            }
            FileOperation::Allocate(len) => FileOperation::Allocate(len),
            FileOperation::Truncate(len) => FileOperation::Truncate(len),
            FileOperation::Lock { offset, len } => FileOperation::Lock { offset, len },
            FileOperation::MapRead { offset, len } => FileOperation::MapRead { offset, len },
            FileOperation::MapWrite { offset, len, flush } => {
                FileOperation::MapWrite { offset, len, flush }
            }
        };
        self.in_pool_on(file, move |c, file| c.on_file(file, pooled))
            .await
    }

    async fn copy(
        &mut self,
        from: &Arc<RingFile>,
        to: &Arc<RingFile>,
        range: (u64, u64),
    ) -> Result<u64, OpError> {
        self.copy_through_buffer(from, to, range, |_| ()).await
    }

    fn aio_write(
        &mut self,
        handle: &Arc<RingFile>,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        let write = AioWrite {
            file: handle.clone(),
            offset,
            len: size(len)?,
            tag,
            data: self.calls().calls.source.take_detached(len)?,
        };
        self.aio.push(write);
        Ok(())
    }

    fn aio_write_bytes(
        &mut self,
        handle: &Arc<RingFile>,
        offset: u64,
        bytes: MmapMut,
        len: usize,
        tag: u32,
    ) -> Result<(), OpError> {
        let write = AioWrite {
            file: handle.clone(),
            offset,
            len,
            tag,
            data: self.calls().calls.source.detached_bytes(bytes),
        };
        self.aio.push(write);
        Ok(())
    }

    fn aio_pending(&self) -> usize {
        self.aio.pending()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.aio.take(count, done).await
    }

    fn aio_abandon(&mut self) -> Vec<(u32, Nanos)> {
        self.aio.abandon()
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        self.in_pool(|c| c.located_entries()).await
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        self.in_pool(|c| c.located_contents()).await
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        let bytes = bytes.to_vec();
        self.in_pool(move |c| c.make_or_replace(&bytes)).await
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        self.in_pool(move |c| c.remove_located(kind)).await
    }
}
