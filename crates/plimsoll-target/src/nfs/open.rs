//! An open file on a server, whatever the version.

use super::backend::OpenFile;
use crate::error::OpError;
use crate::session_types::Attributes;
use rustix::io::Errno;
use std::cell::Cell;
use std::rc::Rc;

/// An open file: `F` is what the version knows it by, `S` how it says that writes are stable.
pub(crate) struct Open<F, S> {
    pub(crate) file: F,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Every write is to be stable.
    pub(crate) stable: S,
    /// As they came with the open.
    attributes: Option<Attributes>,
    /// Something was written that a COMMIT has to follow.
    pub(crate) dirty: Cell<bool>,
    /// What the server said with the writes since the last COMMIT.
    pub(crate) verifier: Cell<Option<[u8; 8]>>,
    /// The server has changed its verifier since: unstable data may be lost.
    pub(crate) lost: Cell<bool>,
}

impl<F, S> Open<F, S> {
    pub(crate) fn new(
        (file, attributes): (F, Option<Attributes>),
        reads: bool,
        writes: bool,
        stable: S,
    ) -> Rc<Self> {
        Rc::new(Self {
            file,
            reads,
            writes,
            stable,
            attributes,
            dirty: Cell::new(false),
            verifier: Cell::new(None),
            lost: Cell::new(false),
        })
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.get()
    }

    /// A COMMIT has its answer: the server's verifier.
    ///
    /// # Errors
    /// `EIO` if the server went and came again since the last one, and what it had not committed
    /// went with it.
    pub(crate) fn committed(&self, verifier: Result<[u8; 8], OpError>) -> Result<(), OpError> {
        // What was not committed has to be still.
        self.note_verifier(verifier.inspect_err(|_| self.dirty.set(true))?);
        self.verifier.set(None);
        match self.lost.replace(false) {
            true => Err(OpError(Errno::IO)),
            false => Ok(()),
        }
    }

    /// A server that was started anew has another verifier (RFC 1813, 3.3.7 and RFC 7530, 16.36.4).
    pub(crate) fn note_verifier(&self, verifier: [u8; 8]) {
        match self.verifier.replace(Some(verifier)) {
            Some(before) if before != verifier => self.lost.set(true),
            _ => {}
        }
    }
}

impl<F, S> OpenFile for Open<F, S> {
    fn may_read(&self) -> Result<(), OpError> {
        self.reads.then_some(()).ok_or(OpError(Errno::BADF))
    }

    fn may_write(&self) -> Result<(), OpError> {
        self.writes.then_some(()).ok_or(OpError(Errno::BADF))
    }

    fn attributes(&self) -> Option<Attributes> {
        self.attributes
    }
}
