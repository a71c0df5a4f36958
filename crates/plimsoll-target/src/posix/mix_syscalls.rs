//! System calls besides plain transfers: what mixes are made of, and replacing small files.

use super::handle::{BENEATH, PosixHandle};
use super::session::PosixSession;
use crate::error::OpError;
use memmap2::{MmapOptions, MmapRaw};
use nix::fcntl::FcntlArg;
use nix::unistd::{PathconfVar, fpathconf};
use rustix::fs::{Access, AtFlags, CWD, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Of each so many bytes that are modified, the first eight are changed.
const MODIFY_STRIDE_BYTES: usize = 4096;

/// Locks a range for writing, waits for it if need be, and unlocks it.
///
/// The lock belongs to the open file (`F_OFD_SETLKW`): one of the process would keep no other
/// worker of it out, and closing any descriptor of the file would drop it.
pub(super) fn lock_and_unlock(file: &OwnedFd, offset: u64, len: u64) -> Result<(), OpError> {
    let signed = |n: u64| i64::try_from(n).map_err(|_| Errno::OVERFLOW);
    let range = |kind: libc::c_int| -> Result<libc::flock, OpError> {
        Ok(libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: signed(offset)?,
            l_len: signed(len)?,
            l_pid: 0,
        })
    };
    let apply = |range: libc::flock| loop {
        match nix::fcntl::fcntl(file, FcntlArg::F_OFD_SETLKW(&range)) {
            Ok(_) => return Ok(()),
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(from_nix(e)),
        }
    };
    apply(range(libc::F_WRLCK)?)?;
    apply(range(libc::F_UNLCK)?)
}

fn from_nix(e: nix::errno::Errno) -> OpError {
    OpError(Errno::from_raw_os_error(e as i32))
}

fn from_io(e: std::io::Error) -> OpError {
    OpError(Errno::from_io_error(&e).unwrap_or(Errno::IO))
}

/// The name of an open file, by which it can be reached without looking its path up again.
fn name_of_descriptor(fd: &OwnedFd) -> Result<CString, OpError> {
    let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
    Ok(CString::new(name).map_err(|_| Errno::INVAL)?)
}

impl PosixSession {
    pub(super) fn rename_to_second(&self) -> Result<(), OpError> {
        Ok(rustix::fs::renameat(
            &self.root,
            self.name(),
            &self.root,
            self.second.get(),
        )?)
    }

    /// Makes a small file of these bytes, or replaces the one that is there.
    pub(super) fn make_or_replace(&mut self, bytes: &[u8]) -> Result<(), OpError> {
        // Written beside and renamed, so that a crash leaves the old one or the new one whole.
        let (parent, name) = self.open_parent()?;
        let mut beside = name.to_bytes().to_vec();
        beside.extend_from_slice(b".new");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let create = || rustix::fs::openat(&parent, &beside[..], flags, mode);
        let fd = match create() {
            // Left by a crash, or another name of somebody's file: it is never written through.
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
            // Without this the new name could outlive a power cut, and the bytes not.
            rustix::fs::fdatasync(&fd)?;
            rustix::fs::renameat(&parent, &beside[..], &parent, &*name)
        };
        write().map_err(|e| {
            // What could not be written whole must not stay behind half.
            let _ = rustix::fs::unlinkat(&parent, &beside[..], AtFlags::empty());
            e.into()
        })
    }

    pub(super) fn may_read_and_write(&self) -> Result<(), OpError> {
        let how = Access::READ_OK | Access::WRITE_OK;
        // A link is asked for itself.
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::accessat(&self.root, self.name(), how, flags)?)
    }

    /// `chmod` follows a link at the end of its path, so the file is held first, by a descriptor
    /// that is only a reference to it.
    pub(super) fn set_mode(&self, mode: u32) -> Result<(), OpError> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let file = rustix::fs::openat2(&self.root, self.name(), flags, Mode::empty(), BENEATH)?;
        let mode = Mode::from_raw_mode(mode & 0o777);
        let name = name_of_descriptor(&file)?;
        Ok(rustix::fs::chmodat(CWD, &*name, mode, AtFlags::empty())?)
    }

    pub(super) fn ask_space(&self) -> Result<(), OpError> {
        rustix::fs::fstatfs(&self.root)?;
        Ok(())
    }

    pub(super) fn ask_longest_name(&self) -> Result<(), OpError> {
        match fpathconf(&self.root, PathconfVar::NAME_MAX) {
            Ok(_) => Ok(()),
            Err(e) => Err(from_nix(e)),
        }
    }

    pub(super) fn read_and_rewrite(
        &mut self,
        file: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        let room = self.buffer_range(size(len)?)?;
        let bytes = &mut self.buffer[room];
        let read = fill(bytes, |rest, done| {
            rustix::io::pread(&file.fd, rest, offset + done)
        })?;
        let bytes = &mut bytes[..read];
        for block in bytes.chunks_mut(MODIFY_STRIDE_BYTES) {
            for byte in block.iter_mut().take(8) {
                *byte = byte.wrapping_add(1);
            }
        }
        write_all(bytes, |rest, done| {
            rustix::io::pwrite(&file.fd, rest, offset + done)
        })?;
        Ok(2 * read as u64)
    }

    pub(super) fn copy_piece(
        &mut self,
        from: &PosixHandle,
        to: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<u64, OpError> {
        let room = self.buffer_range(size(len)?)?;
        let bytes = &mut self.buffer[room];
        let read = fill(bytes, |rest, done| {
            rustix::io::pread(&from.fd, rest, offset + done)
        })?;
        write_all(&bytes[..read], |rest, done| {
            rustix::io::pwrite(&to.fd, rest, offset + done)
        })?;
        Ok(read as u64)
    }

    /// Reads a mapping by having the kernel copy it, to a file in memory: a page that is not
    /// there (the file was cut short meanwhile, or the storage failed) is then an error of this
    /// call, where touching it would end the process with `SIGBUS`. The page faults are those of
    /// any access.
    pub(super) fn read_mapped(
        &mut self,
        file: &PosixHandle,
        offset: u64,
        len: u64,
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, len)?;
        let map = window.options().map_raw_read_only(&file.fd);
        let map = map.map_err(from_io)?;
        let sink = self.mapping_sink()?;
        window.for_each_piece(&map, |at, piece, _| {
            // SAFETY: `at` is the start of `piece` bytes of a mapping that lives until after the
            // call. The kernel reads them; no reference to them is made, so that it does not
            // matter who else writes the file.
            unsafe { libc::pwrite(sink.as_raw_fd(), at.cast(), piece, 0) }
        })
    }

    /// Writes a mapping by having the kernel copy to it, for the reason that reading is done so.
    pub(super) fn write_mapped(
        &mut self,
        file: &PosixHandle,
        offset: u64,
        len: u64,
        flush: bool,
    ) -> Result<(), OpError> {
        let window = MappedRange::page_aligned(offset, len)?;
        let map = window.options().map_raw(&file.fd).map_err(from_io)?;
        let composed = self.sink_of_composed(window.len)?;
        // Of the pool's bytes the file is that of all sessions.
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
        match flush {
            true => map.flush_range(window.skip, window.len).map_err(from_io),
            false => Ok(()),
        }
    }

    /// Bytes that were made for this write, in a file in memory; `None` if the pool is written.
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
        if self.sink.is_none() {
            self.sink = Some(rustix::fs::memfd_create("plimsoll", MemfdFlags::CLOEXEC)?);
        }
        self.sink
            .as_ref()
            .map(AsFd::as_fd)
            .ok_or(OpError(Errno::BADF))
    }
}

fn size(len: u64) -> Result<usize, Errno> {
    usize::try_from(len).map_err(|_| Errno::NOMEM)
}

/// Fills a buffer from a file; returns how much there was.
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
    /// Where the mapping begins in the file.
    begin: u64,
    /// Bytes of the mapping before the range.
    skip: usize,
    len: usize,
}

/// Bytes that the kernel copies at a time between a mapping and a file in memory.
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

    /// Has pieces of the range copied: `copy` is given where a piece begins, its length and how
    /// much of the range came before; it returns what the system call did.
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
