//! Open files.

use super::names::LocatedPath;
use crate::error::OpError;
use crate::session_types::{AccessAdvice, OpenHow, OpenMode};
use nix::fcntl::FcntlArg;
use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;
use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An open file.
pub(crate) struct PosixHandle {
    pub(super) fd: OwnedFd,
    /// A second descriptor that asynchronous writes share and keep open; opened by the first
    /// asynchronous write.
    pub(super) shared: OnceCell<Arc<OwnedFd>>,
}

impl PosixHandle {
    /// Opens the file with a name below a directory.
    #[inline(always)]
    pub(super) fn open(root: &OwnedFd, name: &LocatedPath, how: OpenHow) -> Result<Self, OpError> {
        let (flags, mode) = name.flags_and_mode(how);
        let fd = loop {
            match rustix::fs::openat2(root, name.get(), flags, mode, name.resolve_flags()) {
                // openat2 fails with `EAGAIN` when a concurrent rename disturbs the lookup.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => break other?,
            }
        };
        if let Some(advice) = how.advice {
            let advice = match advice {
                AccessAdvice::Random => Advice::Random,
                AccessAdvice::Sequential => Advice::Sequential,
            };
            rustix::fs::fadvise(&fd, 0, None, advice)?;
        }
        Ok(Self {
            fd,
            shared: OnceCell::new(),
        })
    }

    /// A second descriptor of the open file, which asynchronous writes share; the first call of `shared` duplicates the
    /// descriptor.
    pub(super) fn shared(&self) -> Result<Arc<OwnedFd>, Errno> {
        if let Some(fd) = self.shared.get() {
            return Ok(fd.clone());
        }
        let fd = Arc::new(rustix::io::fcntl_dupfd_cloexec(&self.fd, 0)?);
        Ok(self.shared.get_or_init(|| fd).clone())
    }
}

/// The flags of openat2, and the permissions of a file that the open creates.
#[inline(always)]
pub(super) fn flags_and_mode(how: OpenHow) -> (OFlags, Mode) {
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
    (flags, mode)
}

/// Locks a range of an open file for writing and unlocks the range; waits while another open file has a lock on a part
/// of the range.
///
/// The lock belongs to the open file (`F_OFD_SETLKW` of fcntl(2)): a lock of the process would not exclude other
/// workers, and would be released when any descriptor of the file is closed.
pub(super) fn lock_and_unlock(file: &OwnedFd, offset: u64, len: u64) -> Result<(), OpError> {
    let signed = |n: u64| i64::try_from(n).map_err(|_| Errno::OVERFLOW);
    let (l_start, l_len) = (signed(offset)?, signed(len)?);
    for kind in [libc::F_WRLCK, libc::F_UNLCK] {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start,
            l_len,
            l_pid: 0,
        };
        loop {
            match nix::fcntl::fcntl(file, FcntlArg::F_OFD_SETLKW(&range)) {
                Ok(_) => break,
                Err(nix::errno::Errno::EINTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
    Ok(())
}
