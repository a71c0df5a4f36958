//! Open files.

use super::names::LocatedPath;
use crate::error::OpError;
use crate::session_types::{OpenHow, OpenMode};
use rustix::fs::{Advice, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// No component may be a symbolic link, and the path may not climb out of the work directory.
pub(super) const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

/// No component may be a symbolic link. A path that is relative and without `..` can then not climb
/// out either, and the kernel need not look whether it did: that costs an open 190 ns of 1.5 µs (it
/// takes the lock of all mounts).
const RESOLVE_NO_LINKS: ResolveFlags = ResolveFlags::NO_SYMLINKS;

/// An open file.
pub(crate) struct PosixHandle {
    pub(super) fd: OwnedFd,
    /// A second descriptor that asynchronous writes share and keep open; made by the first.
    pub(super) shared: OnceCell<Arc<OwnedFd>>,
}

impl PosixHandle {
    /// Opens the file of a name below a directory.
    #[inline(always)]
    pub(super) fn open(root: &OwnedFd, name: &LocatedPath, how: OpenHow) -> Result<Self, OpError> {
        let mut flags = OFlags::CLOEXEC | OFlags::NOFOLLOW;
        flags |= match how.mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write => OFlags::WRONLY,
            OpenMode::ReadWrite => OFlags::RDWR,
        };
        flags.set(OFlags::CREATE, how.create);
        flags.set(OFlags::TRUNC, how.truncate);
        flags.set(OFlags::DIRECT, how.direct);
        flags.set(OFlags::DSYNC, how.dsync);
        let mode = if how.create {
            Mode::from_raw_mode(0o666)
        } else {
            Mode::empty()
        };
        let resolve = match name.goes_down() {
            true => RESOLVE_NO_LINKS,
            false => BENEATH,
        };
        let fd = loop {
            match rustix::fs::openat2(root, name.get(), flags, mode, resolve) {
                // The kernel gives up when a rename elsewhere races with the lookup.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => break other?,
            }
        };
        if how.no_read_ahead {
            rustix::fs::fadvise(&fd, 0, None, Advice::Random)?;
        }
        Ok(Self {
            fd,
            shared: OnceCell::new(),
        })
    }

    /// A second descriptor, made by the first call.
    pub(super) fn shared(&self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(fd) = self.shared.get() {
            return Ok(fd.clone());
        }
        let fd = Arc::new(rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?);
        Ok(self.shared.get_or_init(|| fd).clone())
    }
}
