//! An open file on a server, independent of the NFS version.

use crate::error::OpError;
use crate::session_types::{Attributes, EntryKind, OpenMode};
use plimsoll_nfs::v3::Stable;
use rustix::io::Errno;
use std::cell::Cell;
use std::rc::Rc;

/// A file, and its attributes if the open returned them.
pub(crate) type Opened<F> = (F, Option<Attributes>);

/// An open file; `F` is the version's own state of the file.
pub(crate) struct Open<F> {
    pub(crate) file: F,
    mode: OpenMode,
    /// Stability of every write that does not request another stability.
    pub(crate) stability: Stable,
    /// The attributes that the open returned.
    pub(crate) attributes: Option<Attributes>,
    /// Whether written data needs a COMMIT.
    dirty: Cell<bool>,
    /// The server's write verifier since the last COMMIT.
    verifier: Cell<Option<[u8; 8]>>,
    /// Whether the verifier has changed since the last COMMIT, so that unstable data may be lost.
    lost: Cell<bool>,
}

impl<F> Open<F> {
    pub(crate) fn new(
        (file, attributes): Opened<F>,
        mode: OpenMode,
        stability: Stable,
    ) -> Rc<Self> {
        Rc::new(Self {
            file,
            mode,
            stability,
            attributes,
            dirty: Cell::new(false),
            verifier: Cell::new(None),
            lost: Cell::new(false),
        })
    }

    pub(crate) fn check_readable(&self) -> Result<(), OpError> {
        self.mode.reads().then_some(()).ok_or(OpError(Errno::BADF))
    }

    pub(crate) fn check_writable(&self) -> Result<(), OpError> {
        self.mode.writes().then_some(()).ok_or(OpError(Errno::BADF))
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.get()
    }

    /// Notes that unstable data is being written, or was written.
    pub(crate) fn set_dirty(&self) {
        self.dirty.set(true);
    }

    /// Notes that a COMMIT is being sent; only a failed COMMIT must be repeated.
    pub(crate) fn begin_commit(&self) {
        self.dirty.set(false);
    }

    /// Takes the server's verifier from the reply to a COMMIT.
    ///
    /// # Errors
    /// `EIO` if the server has restarted since the last COMMIT and so lost uncommitted data.
    pub(crate) fn committed(&self, verifier: Result<[u8; 8], OpError>) -> Result<(), OpError> {
        // After a failed COMMIT the data is still uncommitted.
        self.note_verifier(verifier.inspect_err(|_| self.set_dirty())?);
        self.verifier.set(None);
        match self.lost.replace(false) {
            true => Err(OpError(Errno::IO)),
            false => Ok(()),
        }
    }

    /// Takes the verifier of a reply: a restarted server has a different verifier (RFC 1813, 3.3.7
    /// and RFC 7530, 16.36.4).
    pub(crate) fn note_verifier(&self, verifier: [u8; 8]) {
        match self.verifier.replace(Some(verifier)) {
            Some(before) if before != verifier => self.lost.set(true),
            _ => {}
        }
    }
}

/// Fails unless a directory entry is a regular file: `EISDIR` for a directory, `ELOOP` for a symbolic link, `EINVAL`
/// for another kind.
pub(crate) fn check_is_file(kind: EntryKind) -> Result<(), OpError> {
    match kind {
        EntryKind::File => Ok(()),
        EntryKind::Dir => Err(OpError(Errno::ISDIR)),
        EntryKind::Link => Err(OpError(Errno::LOOP)),
        EntryKind::Other => Err(OpError(Errno::INVAL)),
    }
}
