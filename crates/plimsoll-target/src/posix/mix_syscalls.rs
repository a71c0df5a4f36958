//! System calls beyond plain transfers: the operations of mixes, and replacing small files.

use super::calls::{SystemCalls, write_pieces};
use super::handle::lock_and_unlock;
use super::names::BENEATH;
use crate::error::OpError;
use crate::rare_operation::{FileOperation, NameOperation, missing, modify_blocks};
use crate::session_types::{Attributes, EntryKind, ListTotals, MAX_WHOLE_READ_BYTES};
use memmap2::{MmapOptions, MmapRaw};
use nix::unistd::{PathconfVar, fpathconf};
use rustix::fs::{
    Access, Advice, AtFlags, CWD, FallocateFlags, FileType, MemfdFlags, Mode, OFlags,
};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::CString;
use std::io::IoSlice;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The `/proc` name of an open file, which reaches the file without a second path lookup.
pub(super) fn name_of_descriptor(fd: &OwnedFd) -> Result<CString, OpError> {
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
                // POSIX_FADV_DONTNEED does not drop dirty pages, so fdatasync(2) writes the pages first.
                rustix::fs::fdatasync(file)?;
                // The kernel skips a page that another processor holds in a batch between two LRU lists; the second
                // call finds the page released.
                for _ in 0..2 {
                    rustix::fs::fadvise(file, 0, None::<NonZeroU64>, Advice::DontNeed)?;
                }
                0
            }
            FileOperation::FlushData => {
                rustix::fs::fdatasync(file)?;
                0
            }
            FileOperation::Allocate(len) => {
                rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len)?;
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
                self.read_mapped(file, (offset, len), None)?;
                len
            }
            FileOperation::MapReadBytes { offset, bytes } => {
                let len = bytes.len() as u64;
                self.read_mapped(file, (offset, len), Some(bytes))?;
                len
            }
            FileOperation::MapWrite { offset, len, flush } => {
                self.write_mapped(file, (offset, len), None, flush)?;
                len
            }
            FileOperation::MapWriteBytes {
                offset,
                bytes,
                flush,
            } => {
                let len = bytes.len() as u64;
                self.write_mapped(file, (offset, len), Some(bytes), flush)?;
                len
            }
        };
        Ok(moved)
    }

    /// Creates or replaces a small file.
    pub(crate) fn make_or_replace(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        // The bytes are written to a temporary file, which then replaces the old file by rename(2), so that a crash
        // leaves either the old or the new contents.
        let (parent, name) = self.open_parent()?;
        let mut beside = name.to_bytes().to_vec();
        beside.extend_from_slice(b".new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let create = || rustix::fs::openat(&parent, &beside[..], flags, mode);
        let fd = match create() {
            // A crash left the temporary file, or a user has made a hard link with the name of the temporary file: the
            // name is removed, and nothing is written to the file that has the name.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(&parent, &beside[..], AtFlags::empty())?;
                create()?
            }
            other => other?,
        };
        let write = || {
            write_all(bytes, |rest, at| rustix::io::pwrite(&fd, rest, at))?;
            // The bytes must reach the device before the name: otherwise a power failure could leave an empty file.
            rustix::fs::fdatasync(&fd)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let names = rustix::fs::openat(&parent, ".", flags, Mode::empty())?;
            let sync_names = || match rustix::fs::fsync(&names) {
                // Some file systems refuse fsync(2) of a directory; directories of such file systems need no fsync(2).
                Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
                synced => synced,
            };
            // The removal of files must reach the device before the new marker: otherwise, after a crash, files could
            // exist that the marker does not list.
            sync_names()?;
            rustix::fs::renameat(&parent, &beside[..], &parent, &*name)?;
            // The marker's name must reach the device: otherwise files could survive without their marker.
            sync_names()
        };
        write().map_err(|e| {
            // The contents of the temporary file are incomplete, so the temporary file is removed.
            let _ = rustix::fs::unlinkat(&parent, &beside[..], AtFlags::empty());
            e.into()
        })
    }

    /// `chmod` follows a symbolic link at the end of its path, so the file is opened first with
    /// `O_PATH`, which does not open the contents.
    fn set_mode(&self, mode: u32) -> Result<(), OpError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(&self.root, self.name(), flags, Mode::empty(), BENEATH)?;
        let mode = Mode::from_raw_mode(mode & 0o777);
        let name = name_of_descriptor(&file)?;
        Ok(rustix::fs::chmodat(CWD, &*name, mode, AtFlags::empty())?)
    }

    /// Opens, reads and closes the directory at the located name.
    pub(crate) fn list_located(&mut self) -> Result<ListTotals, OpError> {
        let fd = self.open_beneath(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut listed = ListTotals::default();
        self.read_dir(fd.as_fd(), |_, _, record| {
            listed.entries += 1;
            listed.bytes += record as u64;
        })?;
        Ok(listed)
    }

    /// Attributes of the located name; a symbolic link is not followed.
    #[inline(always)]
    pub(crate) fn stat_located(&self) -> Result<Attributes, OpError> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statat(&self.root, self.name(), flags)?;
        Ok(attributes(&found))
    }

    /// Checks that the located name may be read and written.
    fn access_located(&self) -> Result<(), OpError> {
        let how = Access::READ_OK | Access::WRITE_OK;
        // A symbolic link is not followed.
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::accessat(&self.root, self.name(), how, flags)?)
    }

    /// Names and kinds of the entries of the directory at the located name.
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

    /// Contents of a small regular file. Other users with write access to the directory may have put another object
    /// there: reading a pipe would block, and a large file would fill the memory.
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
            // The file may have grown since fstat.
            if out.len() as u64 > MAX_WHOLE_READ_BYTES {
                return Err(Errno::FBIG.into());
            }
        }
    }

    /// Removes a file or an empty directory; no component of the parent's path may be a symbolic
    /// link.
    pub(crate) fn remove_located(&self, kind: EntryKind) -> Result<(), OpError> {
        let (parent, name) = self.open_parent()?;
        let flags = if kind == EntryKind::Dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        Ok(rustix::fs::unlinkat(&parent, &*name, flags)?)
    }

    /// Reads up to `len` bytes of one file, passes the bytes to `change`, and writes the result at
    /// the same offset of another file; returns the number of bytes.
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

    /// Reads a mapped range by a system call that copies the pages to a memory file. If a page is missing, after a
    /// truncation or a storage failure, the system call fails, where an access by this process would raise `SIGBUS`;
    /// the page faults are the page faults of an access by this process. With `into`, the mapped bytes are also copied
    /// to `into`.
    fn read_mapped(
        &mut self,
        file: &OwnedFd,
        (offset, len): (u64, u64),
        mut into: Option<&mut [u8]>,
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, len)?;
        let map = window.options().map_raw_read_only(file)?;
        let sink = self.mapping_sink()?;
        window.for_each_piece(&map, |at, piece, done| {
            // SAFETY: `at` points to `piece` bytes of the mapping, which lives until after the call. Only the kernel
            // reads the mapped bytes, and no Rust reference points to the mapped bytes, so other writers of the file
            // may change the bytes.
            let copied = unsafe { libc::pwrite(sink.as_raw_fd(), at.cast(), piece, 0) };
            let (Some(bytes), Ok(len)) = (&mut into, usize::try_from(copied)) else {
                return copied;
            };
            let bytes = &mut bytes[done..done + len];
            match fill(bytes, |rest, at| rustix::io::pread(sink, rest, at)) {
                Ok(n) if n == len => copied,
                _ => 0,
            }
        })
    }

    /// Writes a mapped range by a system call that copies bytes to the pages, so that a missing page is an error rather
    /// than `SIGBUS`. The written bytes are `given`, or else content of the session.
    fn write_mapped(
        &mut self,
        file: &OwnedFd,
        (offset, len): (u64, u64),
        given: Option<&[u8]>,
        flush: bool,
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, len)?;
        let map = window.options().map_raw(file)?;
        let own = match given {
            Some(bytes) => Some(memory_file(bytes)?),
            None => self.sink_of_composed(window.len)?,
        };
        // All sessions share the memory file with the pool's bytes.
        let pool = self.source.pool().clone();
        let bytes = match &own {
            Some(file) => file.as_fd(),
            None => pool.file()?,
        };
        let source = &mut self.source;
        window.for_each_piece(&map, |at, piece, done| {
            let from = match &own {
                Some(_) => done,
                None => source.next_in_pool(piece),
            };
            // SAFETY: `at` points to `piece` bytes of the writable mapping, which lives until after the call. Only the
            // kernel writes the mapped bytes, and no Rust reference points to the mapped bytes, so other users of the
            // file may access the bytes.
            unsafe { libc::pread(bytes.as_raw_fd(), at.cast(), piece, from as i64) }
        })?;
        if flush {
            map.flush_range(window.skip, window.len)?;
        }
        Ok(())
    }

    /// A memory file with `len` newly composed bytes; `None` if the session's contents come unchanged from the pool.
    fn sink_of_composed(&mut self, len: usize) -> Result<Option<OwnedFd>, OpError> {
        if !self.source.pool().is_composed() {
            return Ok(None);
        }
        let file = memory_file(&[])?;
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

    /// The memory file that receives the bytes read from mappings.
    fn mapping_sink(&mut self) -> Result<BorrowedFd<'_>, OpError> {
        let sink = match self.sink.take() {
            Some(sink) => sink,
            None => memory_file(&[])?,
        };
        let sink: &OwnedFd = self.sink.insert(sink);
        Ok(sink.as_fd())
    }
}

/// Creates an anonymous file in memory (memfd_create(2)) with the contents `bytes`.
fn memory_file(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create("plimsoll", MemfdFlags::CLOEXEC)?;
    write_all(bytes, |rest, at| rustix::io::pwrite(&file, rest, at))?;
    Ok(file)
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
        changed_ns: Attributes::time(s.st_ctime, s.st_ctime_nsec as u32),
    }
}

pub(super) fn size(len: u64) -> Result<usize, Errno> {
    usize::try_from(len).map_err(|_| Errno::NOMEM)
}

/// Fills a buffer from a file; returns the number of bytes read.
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

fn write_all(
    bytes: &[u8],
    mut write: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    write_pieces(bytes.len() as u64, |done| {
        write(&bytes[done as usize..], done)
    })
}

/// A range of a file, and the mapping of all pages that contain the range.
struct MappedRange {
    /// Offset of the mapping in the file.
    begin: u64,
    /// Number of mapped bytes before the range.
    skip: usize,
    len: usize,
}

/// Maximum bytes that one system call copies between a mapping and a memory file.
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

    /// Copies the range piece by piece: `copy` takes the address of a piece, its length and the
    /// number of earlier bytes, and returns the result of the system call.
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
