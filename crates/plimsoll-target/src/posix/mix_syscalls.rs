//! System calls besides plain transfers: the operations of mixes, and replacing small files.

use super::calls::SystemCalls;
use super::handle::lock_and_unlock;
use super::names::BENEATH;
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation, missing, modify_blocks};
use crate::session_types::{Attributes, EntryKind, ListTotals, MAX_WHOLE_READ_BYTES};
use memmap2::{MmapOptions, MmapRaw};
use nix::unistd::{PathconfVar, fpathconf};
use rustix::fs::{Access, Advice, AtFlags, CWD, FileType, MemfdFlags, Mode, OFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::CString;
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The name of an open file, by which it is reached without a second lookup of its path.
fn name_of_descriptor(fd: &OwnedFd) -> Result<CString, OpError> {
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(CString::new(name).map_err(|_| Errno::INVAL)?)
}

impl SystemCalls {
    /// Executes an operation on the located name.
    pub(crate) fn on_name(&mut self, operation: NameOperation) -> Result<u64, OpError> {
        match operation {
            NameOperation::StatMissing => return missing(self.stat_located()),
            NameOperation::Access => self.access_located()?,
            NameOperation::Chmod(mode) => self.set_mode(mode)?,
            NameOperation::StatFs => drop(rustix::fs::fstatfs(&self.root)?),
            NameOperation::PathConf => drop(fpathconf(&self.root, PathconfVar::NAME_MAX)?),
            // LOOKUP, READLINK and READDIRPLUS are procedures of NFS; no system call corresponds to a single procedure.
            _ => return Err(OpError(Errno::OPNOTSUPP)),
        }
        Ok(0)
    }

    /// Executes an operation on an open file; returns the number of bytes.
    pub(crate) fn on_file(
        &mut self,
        file: &OwnedFd,
        operation: FileOperation<'_>,
    ) -> Result<u64, OpError> {
        let write_stable = |bytes: &[u8], offset: Option<u64>| {
            let (at, flags) = match offset {
                Some(offset) => (offset, ReadWriteFlags::DSYNC),
                None => (0, ReadWriteFlags::DSYNC | ReadWriteFlags::APPEND),
            };
            rustix::io::pwritev2(file, &[IoSlice::new(bytes)], at, flags)
        };
        let moved = match operation {
            FileOperation::DropCache => {
                // Dirty pages are not dropped, so they are written first.
                rustix::fs::fdatasync(file)?;
                // A page that another processor holds for a moment, in a batch that moves between two
                // lists, is not dropped: the second call finds the page released.
                for _ in 0..2 {
                    rustix::fs::fadvise(file, 0, None::<NonZeroU64>, Advice::DontNeed)?;
                }
                0
            }
            FileOperation::Truncate(len) => {
                rustix::fs::ftruncate(file, len)?;
                0
            }
            FileOperation::Lock { offset, len } => {
                lock_and_unlock(file, offset, len)?;
                0
            }
            FileOperation::WriteStable { offset, len } => {
                self.write_with(len, |bytes, done| {
                    write_stable(bytes, offset.map(|at| at + done))
                })?;
                len
            }
            FileOperation::WriteBytesStable { offset, bytes } => {
                write_all(bytes, |rest, done| write_stable(rest, Some(offset + done)))?;
                bytes.len() as u64
            }
            FileOperation::Modify { offset, len } => {
                2 * self.copy_through_buffer(file, file, (offset, len), modify_blocks)?
            }
            FileOperation::MapRead { offset, len } => {
                self.read_mapped(file, offset, len)?;
                len
            }
            FileOperation::MapReadBytes { offset, bytes } => {
                self.read_mapped_bytes(file, offset, bytes)?;
                bytes.len() as u64
            }
            FileOperation::MapWrite { offset, len, flush } => {
                self.write_mapped(file, offset, len, flush)?;
                len
            }
            FileOperation::MapWriteBytes {
                offset,
                bytes,
                flush,
            } => {
                self.write_mapped_bytes(file, offset, bytes, flush)?;
                bytes.len() as u64
            }
        };
        Ok(moved)
    }

    /// Creates or replaces a small file.
    pub(crate) fn make_or_replace(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        // Written beside and renamed, so that a crash leaves the old one or the new one whole.
        let (parent, name) = self.open_parent()?;
        let mut beside = name.to_bytes().to_vec();
        beside.extend_from_slice(b".new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let create = || rustix::fs::openat(&parent, &beside[..], flags, mode);
        let fd = match create() {
            // Left by a crash, or a hard link to a user's file: it is never written through.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(&parent, &beside[..], AtFlags::empty())?;
                create()?
            }
            other => other?,
        };
        let write = || {
            let mut done = 0;
            while done < bytes.len() {
                match rustix::io::write(&fd, &bytes[done..])? {
                    0 => return Err(Errno::IO),
                    n => done += n,
                }
            }
            // Without this the new name could survive a power failure, and the bytes not.
            rustix::fs::fdatasync(&fd)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let names = rustix::fs::openat(&parent, ".", flags, Mode::empty())?;
            let sync_names = || match rustix::fs::fsync(&names) {
                // The file system brings names to the device by itself.
                Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
                synced => synced,
            };
            // Removals must reach the device first: otherwise removed files that the new marker does not list could survive.
            sync_names()?;
            rustix::fs::renameat(&parent, &beside[..], &parent, &*name)?;
            // The marker's name must reach the device: otherwise files could survive without their marker.
            sync_names()
        };
        write().map_err(|e| {
            // No half of a file must stay behind.
            let _ = rustix::fs::unlinkat(&parent, &beside[..], AtFlags::empty());
            e.into()
        })
    }

    /// `chmod` follows a link at the end of its path, so the file is opened first, by a descriptor
    /// that is only a reference to it.
    fn set_mode(&self, mode: u32) -> Result<(), OpError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(&self.root, self.name(), flags, Mode::empty(), BENEATH)?;
        let mode = Mode::from_raw_mode(mode & 0o777);
        let name = name_of_descriptor(&file)?;
        Ok(rustix::fs::chmodat(CWD, &*name, mode, AtFlags::empty())?)
    }

    /// Opens the directory of the name, reads it to its end and closes it.
    pub(crate) fn list_located(&mut self) -> Result<ListTotals, OpError> {
        let fd = self.open_beneath(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut listed = ListTotals::default();
        self.read_dir(fd.as_fd(), |_, _, record| {
            listed.entries += 1;
            listed.bytes += record as u64;
        })?;
        Ok(listed)
    }

    /// Attributes of the name.
    #[inline(always)]
    pub(crate) fn stat_located(&self) -> Result<Attributes, OpError> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(&self.root, self.name(), flags)?;
        Ok(attributes(&found))
    }

    /// Checks that the name may be read and written.
    fn access_located(&self) -> Result<(), OpError> {
        let how = Access::READ_OK | Access::WRITE_OK;
        // A link is checked itself.
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::accessat(&self.root, self.name(), how, flags)?)
    }

    /// Names and kinds of the directory's entries.
    pub(crate) fn located_entries(&mut self) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError> {
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

    /// Contents of a small regular file. Whoever may write to the directory may have put something else
    /// there: a pipe would be waited for, and a large file would fill the memory.
    pub(crate) fn located_contents(&self) -> Result<Vec<u8>, OpError> {
        let fd = self.open_beneath(OFlags::RDONLY | OFlags::NONBLOCK)?;
        let stat = rustix::fs::fstat(&fd)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::INVAL.into()),
        }
        if u64::try_from(stat.st_size).unwrap_or(0) > MAX_WHOLE_READ_BYTES {
            return Err(Errno::FBIG.into());
        }
        let mut out = Vec::new();
        let mut piece = vec![0; 64 << 10];
        loop {
            match rustix::io::pread(&fd, &mut piece[..], out.len() as u64)? {
                0 => return Ok(out),
                n => out.extend_from_slice(&piece[..n]),
            }
            // It may grow meanwhile.
            if out.len() as u64 > MAX_WHOLE_READ_BYTES {
                return Err(Errno::FBIG.into());
            }
        }
    }

    /// Removes a file or an empty directory that is reached without a symbolic link.
    pub(crate) fn remove_located(&self, kind: EntryKind) -> Result<(), OpError> {
        let (parent, name) = self.open_parent()?;
        let flags = if kind == EntryKind::Dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        Ok(rustix::fs::unlinkat(&parent, &*name, flags)?)
    }

    /// Reads up to `len` bytes of one file, changes them, and writes them to the same place of
    /// another; returns the number of bytes.
    pub(crate) fn copy_through_buffer(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        (offset, len): (u64, u64),
        change: impl FnOnce(&mut [u8]),
    ) -> Result<u64, OpError> {
        let room = self.buffer_range(size(len)?)?;
        let bytes = &mut self.buffer[room];
        let read = fill(bytes, |rest, done| {
            rustix::io::pread(from, rest, offset + done)
        })?;
        change(&mut bytes[..read]);
        write_all(&bytes[..read], |rest, done| {
            rustix::io::pwrite(to, rest, offset + done)
        })?;
        Ok(read as u64)
    }

    /// Reads a mapping by having the kernel copy it to a file in memory: a missing page (the file was
    /// truncated meanwhile, or the storage failed) is then an error of this call, where touching it
    /// would end the process with `SIGBUS`. The page faults are those of any access.
    fn read_mapped(&mut self, file: &OwnedFd, offset: u64, len: u64) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, len)?;
        let map = window.options().map_raw_read_only(file)?;
        let sink = self.mapping_sink()?;
        window.for_each_piece(&map, |at, piece, _| {
            // SAFETY: `at` is the start of `piece` bytes of a mapping that lives until after the
            // call. The kernel reads them; no reference to them is made, so that it does not
            // matter who else writes the file.
            unsafe { libc::pwrite(sink.as_raw_fd(), at.cast(), piece, 0) }
        })
    }

    /// [`read_mapped`](Self::read_mapped) into these bytes.
    fn read_mapped_bytes(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, bytes.len() as u64)?;
        let map = window.options().map_raw_read_only(file)?;
        let sink = self.mapping_sink()?;
        window.for_each_piece(&map, |at, piece, done| {
            // SAFETY: as in `read_mapped`.
            let copied = unsafe { libc::pwrite(sink.as_raw_fd(), at.cast(), piece, 0) };
            let len = usize::try_from(copied).unwrap_or(0);
            match fill(&mut bytes[done..done + len], |rest, at| {
                rustix::io::pread(sink, rest, at)
            }) {
                Ok(n) if n == len => copied,
                _ => 0,
            }
        })
    }

    /// Writes these bytes to a mapping, as [`write_mapped`](Self::write_mapped) does.
    fn write_mapped_bytes(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        bytes: &[u8],
        flush: bool,
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, bytes.len() as u64)?;
        let map = window.options().map_raw(file)?;
        let source = rustix::fs::memfd_create("plimsoll", MemfdFlags::CLOEXEC)?;
        write_all(bytes, |rest, at| rustix::io::pwrite(&source, rest, at))?;
        window.for_each_piece(&map, |at, piece, done| {
            // SAFETY: as in `write_mapped`.
            unsafe { libc::pread(source.as_raw_fd(), at.cast(), piece, done as i64) }
        })?;
        if flush {
            map.flush_range(window.skip, window.len)?;
        }
        Ok(())
    }

    /// Writes a mapping by having the kernel copy to it, for the same reason as reading.
    fn write_mapped(
        &mut self,
        file: &OwnedFd,
        offset: u64,
        len: u64,
        flush: bool,
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, len)?;
        let map = window.options().map_raw(file)?;
        let composed = self.sink_of_composed(window.len)?;
        // All sessions share the file with the pool's bytes.
        let pool = self.source.pool().clone();
        let bytes = match &composed {
            Some(sink) => sink.as_fd(),
            None => pool.file()?,
        };
        let source = &mut self.source;
        window.for_each_piece(&map, |at, piece, done| {
            let from = match &composed {
                Some(_) => done,
                None => source.next_in_pool(piece),
            };
            // SAFETY: `at` is the start of `piece` bytes of a writable mapping that lives until
            // after the call. The kernel writes them; no reference to them is made, so that it
            // does not matter who else uses the file.
            unsafe { libc::pread(bytes.as_raw_fd(), at.cast(), piece, from as i64) }
        })?;
        if flush {
            map.flush_range(window.skip, window.len)?;
        }
        Ok(())
    }

    /// Bytes that were composed for this write, in a file in memory; `None` if the pool is written.
    fn sink_of_composed(&mut self, len: usize) -> Result<Option<OwnedFd>, OpError> {
        if !self.source.pool().is_composed() {
            return Ok(None);
        }
        let file = rustix::fs::memfd_create("plimsoll", MemfdFlags::CLOEXEC)?;
        let mut done = 0;
        while done < len {
            let bytes = self.source.next_chunk((len - done) as u64)?;
            write_all(bytes, |rest, at| {
                rustix::io::pwrite(&file, rest, done as u64 + at)
            })?;
            done += bytes.len();
        }
        Ok(Some(file))
    }

    /// A file in memory that takes what is read from mappings.
    fn mapping_sink(&mut self) -> Result<BorrowedFd<'_>, OpError> {
        let sink = match self.sink.take() {
            Some(sink) => sink,
            None => rustix::fs::memfd_create("plimsoll", MemfdFlags::CLOEXEC)?,
        };
        let sink: &OwnedFd = self.sink.insert(sink);
        Ok(sink.as_fd())
    }
}

pub(crate) fn kind_of(kind: FileType) -> EntryKind {
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

#[inline]
pub(crate) fn attributes(s: &rustix::fs::Stat) -> Attributes {
    Attributes {
        kind: kind_of(FileType::from_raw_mode(s.st_mode)),
        size: s.st_size as u64,
    }
}

fn size(len: u64) -> Result<usize, Errno> {
    usize::try_from(len).map_err(|_| Errno::NOMEM)
}

/// Fills a buffer from a file; returns the number of bytes.
fn fill(
    bytes: &mut [u8],
    mut read: impl FnMut(&mut [u8], u64) -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match read(&mut bytes[done..], done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

pub(crate) fn write_all(
    bytes: &[u8],
    mut write: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match write(&bytes[done..], done as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// A range of a file, and the whole pages around it that are mapped.
struct MappedRange {
    /// The beginning of the mapping in the file.
    begin: u64,
    /// Bytes of the mapping before the range.
    skip: usize,
    len: usize,
}

/// Bytes that one system call copies between a mapping and a file in memory.
const MAPPING_COPY_BYTES: usize = 1 << 20;

impl MappedRange {
    fn page_aligned(offset: u64, len: u64) -> Result<Self, OpError> {
        if len == 0 {
            return Err(OpError(Errno::INVAL));
        }
        let page = rustix::param::page_size() as u64;
        let skip = offset % page;
        Ok(Self {
            begin: offset - skip,
            skip: skip as usize,
            len: size(len)?,
        })
    }

    fn options(&self) -> MmapOptions {
        let mut options = MmapOptions::new();
        options.offset(self.begin).len(self.skip + self.len);
        options
    }

    /// Copies the range piece by piece: `copy` is given the address of a piece, its length and the
    /// number of bytes before it; it returns the result of the system call.
    fn for_each_piece(
        &self,
        map: &MmapRaw,
        mut copy: impl FnMut(*mut u8, usize, usize) -> isize,
    ) -> Result<(), OpError> {
        let mut done = 0;
        while done < self.len {
            let piece = (self.len - done).min(MAPPING_COPY_BYTES);
            let at = map.as_mut_ptr().wrapping_add(self.skip + done);
            match copy(at, piece, done) {
                0 => return Err(OpError(Errno::IO)),
                n if n > 0 => done += n as usize,
                _ => match Errno::from_io_error(&std::io::Error::last_os_error()) {
                    Some(Errno::INTR) => {}
                    e => return Err(OpError(e.unwrap_or(Errno::IO))),
                },
            }
        }
        Ok(())
    }
}
