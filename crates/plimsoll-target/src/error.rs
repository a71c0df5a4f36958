//! Errors of operations, small enough to return from the hot path.

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
];

impl OpError {
    /// Symbol of the error, such as `ENOSPC`; `errno N` for one without a name here.
    #[must_use]
    pub fn name(self) -> String {
        let known = NAMES
            .iter()
            .find(|(e, _)| *e == self.0)
            .map(|(_, name)| (*name).to_string());
        known.unwrap_or_else(|| format!("errno {}", self.0.raw_os_error()))
    }

    /// What the error means, in the system's words.
    #[must_use]
    pub fn text(self) -> String {
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
    }
}
