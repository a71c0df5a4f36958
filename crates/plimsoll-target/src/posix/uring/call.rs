//! Ring operations, together with all memory that the kernel reads and writes for an operation.
//!
//! A submission queue entry contains addresses. The entry of a [`RingCall`] points into memory that the call owns and
//! that stays in place when the call moves: names, buffers and contents are on the heap or mapped. Only the
//! constructors in this module make such entries. A ring keeps the memory of a call until the kernel has reported the
//! completion, even if no worker waits.

use super::file::{FileName, RingFile};
use crate::error::OpError;
use crate::posix::calls::SystemCalls;
use crate::posix::mix_syscalls::kind_of;
use crate::posix::names::{BENEATH, PARENT_FLAGS};
use crate::session_types::{Attributes, OpenHow};
use crate::write_data::DetachedData;
use io_uring::{opcode, squeue, types};
use rustix::fs::{AtFlags, FileType};
use rustix::io::{Errno, ReadWriteFlags};
use std::ffi::CString;
use std::ops::Range;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

/// The flag `RWF_APPEND` of pwritev2(2): the write goes to the end of the file, whatever its offset.
pub(super) const APPEND: i32 = ReadWriteFlags::APPEND.bits() as i32;

/// Maximum bytes of a transfer (the kernel's `MAX_RW_COUNT`); a longer transfer is shortened, as by `pread`.
const MAX_TRANSFER_BYTES: usize = 0x7fff_f000;

/// The state of a worker's ring operations.
pub(super) struct RingCalls {
    pub(super) calls: SystemCalls,
    /// The attributes that the last stat operation has read.
    attributes: Box<libc::statx>,
    how: Box<types::OpenHow>,
    /// The directory that is being checked.
    parent: CString,
    /// The registered buffer of reads.
    pub(super) buffer: Option<Registered>,
    pub(super) pool: Option<Registered>,
}

/// Memory registered with the ring under an index.
#[derive(Clone, Copy)]
pub(super) struct Registered {
    pub(super) index: u16,
    pub(super) begin: usize,
    pub(super) len: usize,
}

impl Registered {
    fn index_of(this: Option<Self>, begin: *const u8, len: usize) -> Option<u16> {
        let this = this?;
        let is_inside =
            begin as usize >= this.begin && begin as usize + len <= this.begin + this.len;
        is_inside.then_some(this.index)
    }
}

/// The effect of an operation on descriptors.
pub(super) enum Descriptor {
    Untouched,
    /// The result of the operation is a new descriptor.
    Opened,
    /// The operation closes the descriptor, unless the operation is cancelled before its execution.
    Closed(OwnedFd),
}

/// The memory and files that the kernel uses while an operation is in flight.
pub(super) enum Held {
    Nothing,
    /// The state of a worker, and the file of the operation.
    Calls {
        calls: Box<RingCalls>,
        _file: Option<Arc<RingFile>>,
        descriptor: Descriptor,
    },
    /// The bytes and the file of an asynchronous write.
    Data {
        data: Box<DetachedData>,
        _file: Arc<RingFile>,
    },
    /// A file that is being registered.
    Registration {
        file: Arc<RingFile>,
        _descriptor: Box<i32>,
        index: u32,
    },
}

impl Held {
    /// Notes that the kernel has reported the end of the operation.
    #[inline]
    pub(super) fn note_end(&mut self, result: i32) {
        let Self::Calls { descriptor, .. } = self else {
            return;
        };
        // A cancelled close has closed nothing. After any other close, the descriptor number may belong to another
        // file.
        if matches!(descriptor, Descriptor::Closed(_))
            && result != -libc::ECANCELED
            && let Descriptor::Closed(fd) = std::mem::replace(descriptor, Descriptor::Untouched)
        {
            let _ = fd.into_raw_fd();
        }
    }

    /// Discards a completed operation that no worker waits for; closes a descriptor that the
    /// operation opened.
    pub(super) fn discard(self, result: i32) {
        if let Self::Calls {
            descriptor: Descriptor::Opened,
            ..
        } = self
        {
            drop(opened(super::file::completed(result)));
        }
    }

    pub(super) fn into_calls(self) -> Box<RingCalls> {
        match self {
            Self::Calls { calls, .. } => calls,
            _ => unreachable!("an operation returns what it was given"),
        }
    }

    pub(super) fn into_data(self) -> Box<DetachedData> {
        match self {
            Self::Data { data, .. } => data,
            _ => unreachable!("an operation returns what it was given"),
        }
    }
}

/// A ring operation that is not submitted yet.
pub(super) struct RingCall {
    held: Held,
    entry: squeue::Entry,
}

/// The bytes of a write operation.
pub(super) enum Source {
    /// A range of the worker's buffer.
    Buffer(Range<usize>),
    /// The next bytes of the worker's content, at most the given number.
    Content(u64),
}

/// The position and the flags of a write.
#[derive(Clone, Copy)]
pub(super) struct WriteHow {
    pub(super) offset: u64,
    /// Flags of `pwritev2`.
    pub(super) flags: i32,
}

impl RingCalls {
    pub(super) fn new(calls: SystemCalls) -> Self {
        Self {
            calls,
            // SAFETY: all zeros is a valid value of this structure of integers.
            attributes: Box::new(unsafe { std::mem::zeroed() }),
            how: Box::new(types::OpenHow::new()),
            parent: CString::default(),
            buffer: None,
            pool: None,
        }
    }

    /// The attributes that the last stat operation has read.
    pub(super) fn attributes(&self) -> Attributes {
        let mode = u32::from(self.attributes.stx_mode);
        let changed = self.attributes.stx_ctime;
        Attributes {
            kind: kind_of(FileType::from_raw_mode(mode)),
            size: self.attributes.stx_size,
            changed_ns: Attributes::time(changed.tv_sec, changed.tv_nsec),
        }
    }

    fn root(&self) -> types::Fd {
        types::Fd(self.calls.root.as_raw_fd())
    }
}

/// Builds an entry for a file, which is named by descriptor or by registered index.
fn on(file: &RingFile, entry: impl FnOnce(types::Fd) -> squeue::Entry) -> squeue::Entry {
    match file.name() {
        FileName::Descriptor(fd) => entry(types::Fd(fd)),
        FileName::Registered(index) => {
            entry(types::Fd(index as i32)).flags(squeue::Flags::FIXED_FILE)
        }
    }
}

fn transfer_len(len: usize) -> u32 {
    len.min(MAX_TRANSFER_BYTES) as u32
}

/// The submission queue entry of a write from `bytes`; with `index`, from the registered buffer of this index.
fn write_entry(file: &RingFile, bytes: &[u8], index: Option<u16>, how: WriteHow) -> squeue::Entry {
    let len = transfer_len(bytes.len());
    on(file, |fd| match index {
        Some(index) => opcode::WriteFixed::new(fd, bytes.as_ptr(), len, index)
            .offset(how.offset)
            .rw_flags(how.flags)
            .build(),
        None => opcode::Write::new(fd, bytes.as_ptr(), len)
            .offset(how.offset)
            .rw_flags(how.flags)
            .build(),
    })
}

impl RingCall {
    pub(super) fn into_parts(self) -> (Held, squeue::Entry) {
        (self.held, self.entry)
    }

    fn of(calls: Box<RingCalls>, file: Option<&Arc<RingFile>>, entry: squeue::Entry) -> Self {
        Self {
            held: Held::Calls {
                calls,
                _file: file.cloned(),
                descriptor: Descriptor::Untouched,
            },
            entry,
        }
    }

    fn with(mut self, does: Descriptor) -> Self {
        if let Held::Calls { descriptor, .. } = &mut self.held {
            *descriptor = does;
        }
        self
    }

    /// Reads into a range of the worker's buffer.
    #[inline]
    pub(super) fn read(
        mut calls: Box<RingCalls>,
        file: &Arc<RingFile>,
        room: Range<usize>,
        offset: u64,
    ) -> Self {
        let registered = calls.buffer;
        let room = &mut calls.calls.buffer[room];
        let len = transfer_len(room.len());
        let begin = room.as_mut_ptr();
        let entry = on(file, |fd| {
            match Registered::index_of(registered, begin, len as usize) {
                Some(index) => opcode::ReadFixed::new(fd, begin, len, index)
                    .offset(offset)
                    .build(),
                None => opcode::Read::new(fd, begin, len).offset(offset).build(),
            }
        });
        Self::of(calls, Some(file), entry)
    }

    /// Writes bytes of the worker's buffer or content.
    ///
    /// # Errors
    /// `ENOMEM` if the content cannot be composed; returns the state that the call would have held.
    #[inline]
    pub(super) fn write(
        mut calls: Box<RingCalls>,
        file: &Arc<RingFile>,
        source: Source,
        how: WriteHow,
    ) -> Result<Self, (Errno, Box<RingCalls>)> {
        let (buffer, pool) = (calls.buffer, calls.pool);
        let (bytes, registered) = match source {
            Source::Buffer(part) => (&calls.calls.buffer[part], buffer),
            Source::Content(max) => match calls.calls.source.next_chunk(max) {
                Ok(bytes) => (bytes, pool),
                Err(e) => return Err((e, calls)),
            },
        };
        let index = Registered::index_of(registered, bytes.as_ptr(), bytes.len());
        let entry = write_entry(file, bytes, index, how);
        Ok(Self::of(calls, Some(file), entry))
    }

    /// Writes a piece of an asynchronous write of `len` bytes, from byte `done` on.
    pub(super) fn write_detached(
        data: Box<DetachedData>,
        file: &Arc<RingFile>,
        (done, len): (usize, usize),
        offset: u64,
    ) -> Self {
        let how = WriteHow { offset, flags: 0 };
        let entry = write_entry(file, data.piece(done, len), None, how);
        Self {
            held: Held::Data {
                data,
                _file: file.clone(),
            },
            entry,
        }
    }

    /// Flushes a file to stable storage, as fdatasync(2) does if `data_only` is set, and otherwise as fsync(2) does.
    pub(super) fn fsync(calls: Box<RingCalls>, file: &Arc<RingFile>, data_only: bool) -> Self {
        let flags = match data_only {
            true => types::FsyncFlags::DATASYNC,
            false => types::FsyncFlags::empty(),
        };
        let entry = on(file, |fd| opcode::Fsync::new(fd).flags(flags).build());
        Self::of(calls, Some(file), entry)
    }

    /// Gives advice for a whole file, such as `POSIX_FADV_RANDOM`.
    pub(super) fn advise(calls: Box<RingCalls>, file: &Arc<RingFile>, advice: i32) -> Self {
        let entry = on(file, |fd| opcode::Fadvise::new(fd, 0, advice).build());
        Self::of(calls, Some(file), entry)
    }

    pub(super) fn truncate(calls: Box<RingCalls>, file: &Arc<RingFile>, len: u64) -> Self {
        let entry = on(file, |fd| opcode::Ftruncate::new(fd, len).build());
        Self::of(calls, Some(file), entry)
    }

    /// Opens the located file.
    pub(super) fn open(mut calls: Box<RingCalls>, how: OpenHow) -> Self {
        let (flags, mode) = calls.calls.name.flags_and_mode(how);
        let resolve = calls.calls.name.resolve_flags();
        *calls.how = types::OpenHow::new()
            .flags(u64::from(flags.bits()))
            .mode(u64::from(mode.bits()))
            .resolve(resolve.bits());
        let name = calls.calls.name().as_ptr();
        let entry = opcode::OpenAt2::new(calls.root(), name, &raw const *calls.how);
        Self::of(calls, None, entry.build()).with(Descriptor::Opened)
    }

    /// Opens a directory only to check that the directory is in the work directory.
    pub(super) fn open_parent(mut calls: Box<RingCalls>, parent: CString) -> Self {
        calls.parent = parent;
        *calls.how = types::OpenHow::new()
            .flags(u64::from(PARENT_FLAGS.bits()))
            .resolve(BENEATH.bits());
        let parent = calls.parent.as_ptr();
        let entry = opcode::OpenAt2::new(calls.root(), parent, &raw const *calls.how);
        Self::of(calls, None, entry.build()).with(Descriptor::Opened)
    }

    /// Closes a descriptor, even if no worker waits for the completion.
    pub(super) fn close(calls: Box<RingCalls>, fd: OwnedFd) -> Self {
        let entry = opcode::Close::new(types::Fd(fd.as_raw_fd())).build();
        Self::of(calls, None, entry).with(Descriptor::Closed(fd))
    }

    /// Reads the attributes of the located name.
    pub(super) fn stat(mut calls: Box<RingCalls>) -> Self {
        let (root, into) = (calls.root(), (&raw mut *calls.attributes).cast());
        let entry = opcode::Statx::new(root, calls.calls.name().as_ptr(), into)
            .flags(AtFlags::SYMLINK_NOFOLLOW.bits() as i32)
            .mask(libc::STATX_BASIC_STATS)
            .build();
        Self::of(calls, None, entry)
    }

    /// Reads the attributes of an open file.
    pub(super) fn stat_file(mut calls: Box<RingCalls>, file: &Arc<RingFile>) -> Self {
        let into = (&raw mut *calls.attributes).cast();
        let fd = types::Fd(file.fd.as_raw_fd());
        let entry = opcode::Statx::new(fd, c"".as_ptr(), into)
            .flags(AtFlags::EMPTY_PATH.bits() as i32)
            .mask(libc::STATX_BASIC_STATS)
            .build();
        Self::of(calls, Some(file), entry)
    }

    /// Removes the located file or directory.
    pub(super) fn unlink(calls: Box<RingCalls>, flags: AtFlags) -> Self {
        let entry = opcode::UnlinkAt::new(calls.root(), calls.calls.name().as_ptr())
            .flags(flags.bits() as i32)
            .build();
        Self::of(calls, None, entry)
    }

    pub(super) fn make_dir(calls: Box<RingCalls>) -> Self {
        let entry = opcode::MkDirAt::new(calls.root(), calls.calls.name().as_ptr())
            .mode(0o777)
            .build();
        Self::of(calls, None, entry)
    }

    /// Renames the located name to the destination.
    pub(super) fn rename(calls: Box<RingCalls>) -> Self {
        let root = calls.root();
        let (from, to) = (
            calls.calls.name().as_ptr(),
            calls.calls.destination.get().as_ptr(),
        );
        let entry = opcode::RenameAt::new(root, from, root, to).build();
        Self::of(calls, None, entry)
    }
}

/// Takes ownership of the descriptor that an open returned.
pub(super) fn opened(result: Result<u32, Errno>) -> Result<OwnedFd, OpError> {
    use std::os::fd::FromRawFd;
    let fd = result?;
    // SAFETY: the kernel has just created the descriptor, so nothing else owns the number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
