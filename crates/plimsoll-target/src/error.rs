//! Errors of operations, small enough to return from the hot path.

use plimsoll_nfs::v4::types::Status;
use rustix::io::Errno;
use std::fmt;

/// Why an operation failed: an error number of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpError(pub Errno);

impl From<Errno> for OpError {
    fn from(e: Errno) -> Self {
        Self(e)
    }
}

/// Names of the error numbers that file operations give.
const NAMES: &[(Errno, &str)] = &[
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::INTR, "EINTR"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NODEV, "ENODEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::ISDIR, "EISDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::NFILE, "ENFILE"),
    (Errno::MFILE, "EMFILE"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::MLINK, "EMLINK"),
    (Errno::NAMETOOLONG, "ENAMETOOLONG"),
    (Errno::DEADLK, "EDEADLK"),
    (Errno::NOLCK, "ENOLCK"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::NOTEMPTY, "ENOTEMPTY"),
    (Errno::LOOP, "ELOOP"),
    (Errno::OVERFLOW, "EOVERFLOW"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::STALE, "ESTALE"),
    (Errno::DQUOT, "EDQUOT"),
    (Errno::CANCELED, "ECANCELED"),
    (Errno::HOSTDOWN, "EHOSTDOWN"),
    (Errno::NODATA, "ENODATA"),
    (Errno::BADMSG, "EBADMSG"),
    (Errno::REMOTEIO, "EREMOTEIO"),
    (Errno::REMOTE, "EREMOTE"),
    (Errno::CONNRESET, "ECONNRESET"),
    (Errno::PIPE, "EPIPE"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH"),
    (Errno::NETUNREACH, "ENETUNREACH"),
    (Errno::PROTONOSUPPORT, "EPROTONOSUPPORT"),
];

/// Statuses of NFS (RFC 1813, 2.6) that have no error number of applications: the Linux kernel's
/// own numbers for them, their names and what they mean.
const OF_NFS: &[(i32, &str, &str)] = &[
    (
        521,
        "NFS3ERR_BADHANDLE",
        "The server takes the handle for none",
    ),
    (522, "NFS3ERR_NOT_SYNC", "The file was changed meanwhile"),
    (
        523,
        "NFS3ERR_BAD_COOKIE",
        "The server cannot go on with the listing",
    ),
    (
        525,
        "NFS3ERR_TOOSMALL",
        "The server says that the buffer is too small",
    ),
    (526, "NFS3ERR_SERVERFAULT", "The server failed"),
    (
        527,
        "NFS3ERR_BADTYPE",
        "The server has no objects of the type",
    ),
    (528, "NFS3ERR_JUKEBOX", "The server asks to be asked later"),
];

impl OpError {
    /// Symbol of the error, such as `ENOSPC`; `errno N` for one without a name here.
    #[must_use]
    pub fn name(self) -> String {
        if let Some((_, name, _)) = self.of_nfs() {
            return (*name).into();
        }
        if let Some(status) = Status::of_errno(self.0) {
            return status.name().into();
        }
        let known = NAMES
            .iter()
            .find(|(e, _)| *e == self.0)
            .map(|(_, name)| (*name).to_string());
        known.unwrap_or_else(|| format!("errno {}", self.0.raw_os_error()))
    }

    fn of_nfs(self) -> Option<&'static (i32, &'static str, &'static str)> {
        let number = self.0.raw_os_error();
        OF_NFS.iter().find(|(n, ..)| *n == number)
    }

    /// What the error means, in the system's words.
    #[must_use]
    pub fn text(self) -> String {
        if let Some((_, _, text)) = self.of_nfs() {
            return (*text).into();
        }
        if let Some(status) = Status::of_errno(self.0) {
            return status.says().into();
        }
        let text = std::io::Error::from(self.0).to_string();
        text.split(" (os error")
            .next()
            .unwrap_or_default()
            .to_string()
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_named() {
        assert_eq!(
            OpError(Errno::NOSPC).to_string(),
            "No space left on device (ENOSPC)"
        );
        assert_eq!(OpError(Errno::from_raw_os_error(133)).name(), "errno 133");
        assert_eq!(
            OpError(Status::Expired.errno()).to_string(),
            "The lease has expired (NFS4ERR_EXPIRED)"
        );
    }
}
