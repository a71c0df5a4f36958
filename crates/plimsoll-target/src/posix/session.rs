//! One worker's system calls.

use super::aio::{AioThreadPool, SessionAioQueue};
use super::handle::{BENEATH, PosixHandle};
use super::names::{CheckedParents, LocatedPath};
use crate::error::OpError;
use crate::session::Session;
use crate::session_types::{AioDone, Attributes, EntryKind, ListTotals, OpenHow, SessionSpec};
use crate::write_data::WriteData;
use memmap2::MmapMut;
use plimsoll_lane::{Lane, Stopped};
use plimsoll_measure::Nanos;
use plimsoll_plan::Stream;
use rustix::fs::{Advice, AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::{CStr, CString};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

/// Bytes a directory is read by.
const DIR_BUFFER: usize = 32 << 10;

/// Reads step through the buffer by this, so that direct reads stay aligned.
const ALIGNMENT: usize = 4096;

pub(crate) struct PosixSession {
    pub(super) root: Arc<OwnedFd>,
    lane: Lane,
    /// What operations on names work on.
    pub(super) name: LocatedPath,
    /// The second name of operations that take two.
    pub(super) second: LocatedPath,
    pub(super) buffer: MmapMut,
    /// Takes what is read from mappings; made by the first.
    pub(super) sink: Option<OwnedFd>,
    /// Where the next read goes in the buffer.
    at: usize,
    /// Where the bytes of writes come from.
    pub(super) source: WriteData,
    dir_buffer: Vec<MaybeUninit<u8>>,
    parents: Box<CheckedParents>,
    queue: SessionAioQueue,
}

impl PosixSession {
    pub(super) fn new(
        root: Arc<OwnedFd>,
        pool: Arc<AioThreadPool>,
        lane: &Lane,
        spec: &SessionSpec,
    ) -> Result<Self, OpError> {
        let len = usize::try_from(spec.buffer.max(ALIGNMENT as u64)).map_err(|_| Errno::NOMEM)?;
        Ok(Self {
            root,
            lane: lane.clone(),
            name: LocatedPath::default(),
            second: LocatedPath::default(),
            sink: None,
            buffer: MmapMut::map_anon(len).map_err(|_| Errno::NOMEM)?,
            at: 0,
            source: WriteData::new(&spec.content, spec.number)?,
            dir_buffer: Vec::new(),
            parents: Box::default(),
            queue: SessionAioQueue::new(pool, spec.clock.clone()),
        })
    }

    #[inline(always)]
    pub(super) fn name(&self) -> &CStr {
        self.name.get()
    }

    /// The place in the buffer for the next `len` bytes.
    #[inline(always)]
    pub(super) fn buffer_range(&mut self, len: usize) -> Result<std::ops::Range<usize>, Errno> {
        if len > self.buffer.len() {
            // Only the first transfer of its size comes here.
            self.buffer = MmapMut::map_anon(len).map_err(|_| Errno::NOMEM)?;
            self.at = 0;
        }
        if self.at + len > self.buffer.len() {
            self.at = 0;
        }
        let begin = self.at;
        self.at += len.next_multiple_of(ALIGNMENT);
        Ok(begin..begin + len)
    }

    fn open_beneath(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat2(&self.root, self.name(), flags, Mode::empty(), BENEATH)
    }

    /// The located directory's parent, and the last component of the path.
    pub(super) fn open_parent(&self) -> Result<(OwnedFd, CString), Errno> {
        let path = self.name().to_bytes();
        let (parent, name) = match path.iter().rposition(|b| *b == b'/') {
            Some(i) => (&path[..i], &path[i + 1..]),
            None => (&b"."[..], path),
        };
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::openat2(&self.root, parent, flags, Mode::empty(), BENEATH)?;
        Ok((parent, name))
    }

    #[inline(always)]
    fn write_with(
        &mut self,
        len: u64,
        mut call: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
    ) -> Result<(), OpError> {
        let mut done = 0;
        while done < len {
            let bytes = self.source.next_chunk(len - done)?;
            match call(bytes, done) {
                Ok(0) => return Err(Errno::IO.into()),
                Ok(n) => done += n as u64,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn read_dir(
        &mut self,
        fd: BorrowedFd<'_>,
        mut visit: impl FnMut(&CStr, FileType, usize),
    ) -> Result<(), Errno> {
        self.dir_buffer.resize(DIR_BUFFER, MaybeUninit::uninit());
        let mut dir = RawDir::new(fd, &mut self.dir_buffer);
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                // A record holds two numbers, a length, a type and the name, padded to eight.
                let record = (19 + name.count_bytes() + 1).next_multiple_of(8);
                visit(name, entry.file_type(), record);
            }
        }
        Ok(())
    }
}

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
        if len > self.buffer.len() as u64 {
            let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
            self.buffer = MmapMut::map_anon(len).map_err(|_| Errno::NOMEM)?;
            self.at = 0;
        }
        Ok(())
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
        // A page that another processor holds for a moment, in a batch of pages on its way between
        // two lists, stays: the second call finds it released.
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
        self.rename_to_second()
    }

    async fn access(&mut self) -> Result<(), OpError> {
        self.may_read_and_write()
    }

    async fn chmod(&mut self, mode: u32) -> Result<(), OpError> {
        self.set_mode(mode)
    }

    async fn statfs(&mut self) -> Result<(), OpError> {
        self.ask_space()
    }

    async fn pathconf(&mut self) -> Result<(), OpError> {
        self.ask_longest_name()
    }

    async fn truncate(&mut self, handle: &PosixHandle, len: u64) -> Result<(), OpError> {
        Ok(rustix::fs::ftruncate(&handle.fd, len)?)
    }

    async fn lock(&mut self, handle: &PosixHandle, offset: u64, len: u64) -> Result<(), OpError> {
        super::mix_syscalls::lock_and_unlock(&handle.fd, offset, len)
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
        self.read_and_rewrite(handle, offset, len)
    }

    async fn copy(
        &mut self,
        from: &PosixHandle,
        to: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        self.copy_piece(from, to, offset, len)
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
            // Some file systems do not say what an entry is.
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
