//! The operations of a worker as system calls.

use super::handle::PosixHandle;
use super::mix_syscalls::write_all;
use super::session::PosixSession;
use crate::error::OpError;
use crate::session::{Session, modify_blocks};
use crate::session_types::{AioDone, Attributes, EntryKind, ListTotals, OpenHow};
use memmap2::MmapMut;
use nix::unistd::{PathconfVar, fpathconf};
use plimsoll_lane::Stopped;
use plimsoll_measure::Nanos;
use plimsoll_plan::Stream;
use rustix::fs::{Access, Advice, AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd};

fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

#[inline]
fn attributes(s: &rustix::fs::Stat) -> Attributes {
    Attributes {
        kind: kind_of(FileType::from_raw_mode(s.st_mode)),
        size: s.st_size as u64,
    }
}

impl Session for PosixSession {
    type Handle = PosixHandle;

    #[inline]
    fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.name.locate(push);
    }

    #[inline]
    fn locate_in(
        &mut self,
        dir: u64,
        push_dir: impl FnOnce(&mut Vec<u8>),
        push_name: impl FnOnce(&mut Vec<u8>),
    ) {
        self.name.locate_in(dir, push_dir, push_name);
    }

    #[inline]
    fn is_immediate(&self) -> bool {
        true
    }

    #[inline]
    fn reserve(&mut self, len: u64) -> Result<(), OpError> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        Ok(self.reserve_buffer(len)?)
    }

    #[inline(always)]
    fn compose(&mut self, len: u64) -> Result<(), OpError> {
        Ok(self.source.prepare(len)?)
    }

    fn begin_content(&mut self, stream: Stream) {
        self.source.restart(stream);
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
        self.write_with(len, |bytes, _| {
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

    async fn drop_cache(&mut self, handle: &PosixHandle) -> Result<(), OpError> {
        // Dirty pages are not dropped, so they are written first.
        rustix::fs::fdatasync(&handle.fd)?;
        // A page that another processor holds for a moment, in a batch that moves between two lists,
        // is not dropped: the second call finds it released.
        for _ in 0..2 {
            rustix::fs::fadvise(&handle.fd, 0, None::<NonZeroU64>, Advice::DontNeed)?;
        }
        Ok(())
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
            &self.root,
            self.name(),
            Mode::from_raw_mode(0o777),
        )?)
    }

    #[inline]
    async fn remove_dir(&mut self) -> Result<(), OpError> {
        Ok(rustix::fs::unlinkat(
            &self.root,
            self.name(),
            AtFlags::REMOVEDIR,
        )?)
    }

    async fn list(&mut self) -> Result<ListTotals, OpError> {
        let fd = self.open_beneath(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut listed = ListTotals::default();
        self.read_dir(fd.as_fd(), |_, _, record| {
            listed.entries += 1;
            listed.bytes += record as u64;
        })?;
        Ok(listed)
    }

    fn locate_second(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.second.locate(push);
    }

    async fn check_second_parent(&mut self) -> Result<(), OpError> {
        Ok(self
            .parents
            .check(&self.root, &self.lane, self.second.get())?)
    }

    async fn rename(&mut self) -> Result<(), OpError> {
        let (root, to) = (&self.root, self.second.get());
        Ok(rustix::fs::renameat(root, self.name(), root, to)?)
    }

    async fn access(&mut self) -> Result<(), OpError> {
        let how = Access::READ_OK | Access::WRITE_OK;
        // A link is checked itself.
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::accessat(&self.root, self.name(), how, flags)?)
    }

    async fn chmod(&mut self, mode: u32) -> Result<(), OpError> {
        self.set_mode(mode)
    }

    async fn statfs(&mut self) -> Result<(), OpError> {
        rustix::fs::fstatfs(&self.root)?;
        Ok(())
    }

    async fn pathconf(&mut self) -> Result<(), OpError> {
        fpathconf(&self.root, PathconfVar::NAME_MAX)?;
        Ok(())
    }

    async fn truncate(&mut self, handle: &PosixHandle, len: u64) -> Result<(), OpError> {
        Ok(rustix::fs::ftruncate(&handle.fd, len)?)
    }

    async fn lock(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<(), OpError> {
        handle.lock_and_unlock(offset, len)
    }

    async fn write_stable(
        &mut self,
        handle: &PosixHandle,
        offset: Option<u64>,
        len: u64,
    ) -> Result<(), OpError> {
        self.write_with(len, |bytes, done| {
            let at_end = ReadWriteFlags::DSYNC | ReadWriteFlags::APPEND;
            let (at, flags) = match offset {
                Some(offset) => (offset + done, ReadWriteFlags::DSYNC),
                None => (0, at_end),
            };
            rustix::io::pwritev2(&handle.fd, &[IoSlice::new(bytes)], at, flags)
        })
    }

    async fn modify(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        let read = self.copy_through_buffer(handle, handle, (offset, len), modify_blocks)?;
        Ok(2 * read)
    }

    async fn copy(
        &mut self,
        from: &PosixHandle,
        to: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        self.copy_through_buffer(from, to, (offset, len), |_| ())
    }

    async fn map_read(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError> {
        self.read_mapped(handle, offset, len)
    }

    async fn map_write(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        len: u64,
        flush: bool,
    ) -> Result<(), OpError> {
        self.write_mapped(handle, offset, len, flush)
    }

    async fn write_bytes_stable(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError> {
        write_all(bytes, |rest, done| {
            let rest = [IoSlice::new(rest)];
            rustix::io::pwritev2(&handle.fd, &rest, offset + done, ReadWriteFlags::DSYNC)
        })?;
        Ok(())
    }

    async fn map_read_bytes(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), OpError> {
        self.read_mapped_bytes(handle, offset, bytes)
    }

    async fn map_write_bytes(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        bytes: &[u8],
        flush: bool,
    ) -> Result<(), OpError> {
        self.write_mapped_bytes(handle, offset, bytes, flush)
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
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&handle.fd, &bytes[done..], offset + done as u64) {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn open_now(&mut self, how: OpenHow) -> Result<PosixHandle, OpError> {
        PosixHandle::open(&self.root, &self.name, how)
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
        let room = self.buffer_range(len as usize)?;
        loop {
            match rustix::io::pread(&handle.fd, &mut self.buffer[room.clone()], offset) {
                Err(Errno::INTR) => {}
                other => return Ok(other? as u64),
            }
        }
    }

    #[inline(always)]
    fn write_now(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<(), OpError> {
        self.write_with(len, |bytes, done| {
            rustix::io::pwrite(&handle.fd, bytes, offset + done)
        })
    }

    #[inline(always)]
    fn stat_now(&mut self) -> Result<Attributes, OpError> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(attributes(&rustix::fs::statat(
            &self.root,
            self.name(),
            flags,
        )?))
    }

    #[inline(always)]
    fn unlink_now(&mut self) -> Result<(), OpError> {
        Ok(rustix::fs::unlinkat(
            &self.root,
            self.name(),
            AtFlags::empty(),
        )?)
    }

    #[inline(always)]
    fn check_parent_now(&mut self) -> Result<(), OpError> {
        Ok(self
            .parents
            .check(&self.root, &self.lane, self.name.get())?)
    }

    #[inline]
    fn aio_compose(&mut self, len: u64) -> Result<(), OpError> {
        Ok(self.source.prepare_detached(len)?)
    }

    fn aio_write(
        &mut self,
        handle: &PosixHandle,
        offset: u64,
        len: u64,
        tag: u32,
    ) -> Result<(), OpError> {
        let file = handle.shared()?;
        let content = self.source.take_detached(len)?;
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
        let content = self.source.detached_bytes(bytes);
        self.queue.push(file, offset, len as u64, tag, content)
    }

    fn aio_pending(&self) -> usize {
        self.queue.pending()
    }

    fn aio_under_way(&self) -> Vec<(u32, Nanos)> {
        self.queue.under_way()
    }

    async fn aio_take(&mut self, count: usize, done: &mut Vec<AioDone>) -> Result<(), Stopped> {
        self.queue.take(&self.lane, count, done).await
    }

    fn aio_abandon(&mut self) {
        self.queue.abandon();
    }

    async fn entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
        let fd = self.open_beneath(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut all = Vec::new();
        self.read_dir(fd.as_fd(), |name, kind, _| {
            all.push((name.to_bytes().to_vec(), kind))
        })?;
        let mut out = Vec::with_capacity(all.len());
        for (name, kind) in all {
            // Some file systems do not return the kind of an entry.
            let kind = if kind == FileType::Unknown {
                let s = rustix::fs::statat(&fd, &name[..], AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(s.st_mode)
            } else {
                kind
            };
            out.push((name, kind_of(kind)));
        }
        Ok(out)
    }

    async fn get(&mut self) -> Result<Vec<u8>, OpError> {
        let fd = self.open_beneath(OFlags::RDONLY)?;
        let mut out = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            match rustix::io::pread(&fd, &mut piece[..], out.len() as u64)? {
                0 => return Ok(out),
                n => out.extend_from_slice(&piece[..n]),
            }
        }
    }

    async fn put(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        self.make_or_replace(bytes)
    }

    async fn remove(&mut self, kind: EntryKind) -> Result<(), OpError> {
        let (parent, name) = self.open_parent()?;
        let flags = if kind == EntryKind::Dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        Ok(rustix::fs::unlinkat(&parent, &*name, flags)?)
    }
}
