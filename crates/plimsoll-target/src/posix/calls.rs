//! The system calls of one worker: names, buffers and written bytes.

use super::names::{BENEATH, LocatedPath};
use crate::error::OpError;
use crate::session_types::{CallSigns, SessionSpec};
use crate::write_data::WriteData;
use memmap2::MmapMut;
use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Buffer size of one getdents64 call, in bytes.
const DIR_BUFFER: usize = 32 << 10;

/// Alignment of reads in the buffer in bytes, for direct I/O.
const ALIGNMENT: usize = 4096;

/// The state with which a worker makes system calls: names, buffers and contents. A system call on the thread pool
/// takes the worker's state along to another thread.
pub(crate) struct SystemCalls {
    pub(crate) root: Arc<OwnedFd>,
    /// The name that operations work on.
    pub(crate) name: LocatedPath,
    /// The destination of operations that take two names.
    pub(crate) destination: LocatedPath,
    pub(crate) buffer: MmapMut,
    /// A memory file that receives the bytes read from mappings; created by the first mapped read.
    pub(super) sink: Option<OwnedFd>,
    /// The position of the next read in the buffer.
    at: usize,
    /// The bytes of writes.
    pub(crate) source: WriteData,
    dir_buffer: Vec<MaybeUninit<u8>>,
    signs: CallSigns,
}

impl SystemCalls {
    /// System calls on names below `root`; `name` is the path before the first path is located.
    pub(super) fn new(
        root: Arc<OwnedFd>,
        name: LocatedPath,
        spec: &SessionSpec,
    ) -> Result<Self, OpError> {
        let len = usize::try_from(spec.buffer.max(ALIGNMENT as u64)).map_err(|_| Errno::NOMEM)?;
        Ok(Self {
            root,
            name,
            destination: LocatedPath::default(),
            sink: None,
            buffer: MmapMut::map_anon(len).map_err(|_| Errno::NOMEM)?,
            at: 0,
            source: WriteData::new(&spec.content, spec.number)?,
            dir_buffer: Vec::new(),
            signs: CallSigns::of(spec),
        })
    }

    #[inline(always)]
    pub(crate) fn name(&self) -> &CStr {
        self.name.get()
    }

    pub(crate) fn set_destination(&mut self) {
        std::mem::swap(&mut self.name, &mut self.destination);
    }

    /// Allocates a part of the buffer for the next `len` bytes.
    #[inline(always)]
    pub(crate) fn buffer_range(&mut self, len: usize) -> Result<std::ops::Range<usize>, Errno> {
        self.reserve_buffer(len)?;
        if self.at + len > self.buffer.len() {
            self.at = 0;
        }
        let begin = self.at;
        self.at += len.next_multiple_of(ALIGNMENT);
        debug_assert!(
            begin + len <= self.buffer.len(),
            "a read exceeds the buffer"
        );
        Ok(begin..begin + len)
    }

    /// Enlarges the buffer to at least `len` bytes, which only the first transfer of a larger size
    /// needs.
    #[inline(always)]
    pub(crate) fn reserve_buffer(&mut self, len: usize) -> Result<(), Errno> {
        if len > self.buffer.len() {
            self.buffer = MmapMut::map_anon(len).map_err(|_| Errno::NOMEM)?;
            self.at = 0;
        }
        Ok(())
    }

    pub(super) fn open_beneath(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat2(&self.root, self.name(), flags, Mode::empty(), BENEATH)
    }

    /// The parent directory of the located name, and the last component of the path.
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

    /// Writes `len` bytes of the session's content by `call`, which takes bytes and the number of earlier bytes.
    #[inline(always)]
    pub(super) fn write_with(
        &mut self,
        len: u64,
        mut call: impl FnMut(&[u8], u64) -> Result<usize, Errno>,
    ) -> Result<(), OpError> {
        Ok(write_pieces(len, |done| {
            call(self.source.next_chunk(len - done)?, done)
        })?)
    }

    /// Reads a directory: calls `visit` with the name, kind and record length of each entry.
    pub(super) fn read_dir(
        &mut self,
        fd: BorrowedFd<'_>,
        mut visit: impl FnMut(&CStr, FileType, usize),
    ) -> Result<(), Errno> {
        self.dir_buffer.resize(DIR_BUFFER, MaybeUninit::uninit());
        let mut dir = RawDir::new(fd, &mut self.dir_buffer);
        let mut calls = 0;
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name();
            if name != c"." && name != c".." {
                // `linux_dirent64`: two 8-byte numbers, a 2-byte length, a 1-byte type and the name
                // with its final zero, padded to 8 bytes.
                let record = (19 + name.count_bytes() + 1).next_multiple_of(8);
                visit(name, entry.file_type(), record);
            }
            if dir.is_buffer_empty() {
                calls += 1;
                // The completion of the first getdents64(2) is not reported, because most directories fit into one
                // call, and the second call only finds the end of the directory.
                if calls > 1 {
                    self.signs.call_completed();
                }
            }
        }
        Ok(())
    }
}

/// Calls `write` with the number of bytes written so far until `len` bytes are written; a write of 0 bytes is `EIO`.
#[inline(always)]
pub(super) fn write_pieces(
    len: u64,
    mut write: impl FnMut(u64) -> Result<usize, Errno>,
) -> Result<(), Errno> {
    let mut done = 0;
    while done < len {
        match write(done) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => done += n as u64,
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
