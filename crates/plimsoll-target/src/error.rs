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

impl From<nix::errno::Errno> for OpError {
    fn from(e: nix::errno::Errno) -> Self {
        Self(Errno::from_raw_os_error(e as i32))
    }
}

impl From<std::io::Error> for OpError {
    fn from(e: std::io::Error) -> Self {
        Self(Errno::from_io_error(&e).unwrap_or(Errno::IO))
    }
}

/// NFS statuses (RFC 1813, 2.6) without an error number for applications: the numbers that the
/// Linux kernel uses for these statuses, their names and their meanings.
const OF_NFS: &[(i32, &str, &str)] = &[
    (521, "NFS3ERR_BADHANDLE", "The server rejects the handle"),
    (522, "NFS3ERR_NOT_SYNC", "The file was changed meanwhile"),
    (523, "NFS3ERR_BAD_COOKIE", "The listing cannot continue"),
    (525, "NFS3ERR_TOOSMALL", "The buffer is too small"),
    (526, "NFS3ERR_SERVERFAULT", "The server failed"),
    (
        527,
        "NFS3ERR_BADTYPE",
        "The server does not support objects of this type",
    ),
    (
        528,
        "NFS3ERR_JUKEBOX",
        "The server is busy and asks for a later retry",
    ),
];

impl OpError {
    /// The symbol of the error, such as `ENOSPC`; `errno N` for an error number without a known
    /// symbol.
    #[must_use]
    pub fn name(self) -> String {
        if let Some((name, _)) = self.of_nfs() {
            return name.into();
        }
        let number = self.0.raw_os_error();
        match nix::errno::Errno::from_raw(number) {
            nix::errno::Errno::UnknownErrno => format!("errno {number}"),
            known => format!("{known:?}"),
        }
    }

    /// Name and meaning of an NFS status without an error number for applications.
    fn of_nfs(self) -> Option<(&'static str, &'static str)> {
        let number = self.0.raw_os_error();
        let version_3 = OF_NFS.iter().find(|(n, ..)| *n == number);
        let version_3 = version_3.map(|(_, name, text)| (*name, *text));
        version_3.or_else(|| Status::of_errno(self.0).map(|s| (s.name(), s.says())))
    }

    /// The meaning of the error number, from the NFS statuses or from the operating system.
    #[must_use]
    pub fn text(self) -> String {
        if let Some((_, text)) = self.of_nfs() {
            return text.into();
        }
        let text = std::io::Error::from(self.0).to_string();
        let meaning = text.split_once(" (os error").map(|(meaning, _)| meaning);
        meaning.unwrap_or(&text).into()
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
        assert_eq!(OpError(Errno::from_raw_os_error(600)).name(), "errno 600");
        assert_eq!(
            OpError(Status::Expired.errno()).to_string(),
            "The lease has expired (NFS4ERR_EXPIRED)"
        );
    }
}
