//! Whether a file system supports direct I/O.

use crate::session_types::DirectIo;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Probes direct I/O with an unnamed temporary file (`O_TMPFILE`).
pub(super) fn probe_direct_io(dir: &OwnedFd) -> DirectIo {
    let open = |more: OFlags| {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | more;
        rustix::fs::openat(dir, ".", flags, Mode::from_raw_mode(0o600))
    };
    match open(OFlags::DIRECT) {
        Ok(file) => alignment(&file),
        // The file system may lack unnamed temporary files instead.
        Err(Errno::INVAL) if open(OFlags::empty()).is_ok() => DirectIo::Refused,
        Err(_) => DirectIo::Unknown,
    }
}

/// The alignment of direct I/O on an open file or block device.
pub(super) fn alignment(file: &OwnedFd) -> DirectIo {
    match rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(s) if s.stx_mask & StatxFlags::DIOALIGN.bits() == 0 => DirectIo::Unknown,
        Ok(s) if s.stx_dio_offset_align == 0 => DirectIo::Refused,
        Ok(s) => DirectIo::Aligned {
            to: u64::from(s.stx_dio_offset_align),
        },
        Err(_) => DirectIo::Unknown,
    }
}
