//! Sessions for work outside measured operations, such as populating a fileset, with one type for all targets.

use crate::error::OpError;
use crate::rare_operation::FileOperation;
use crate::session::Session;
use crate::session_types::{Attributes, EntryKind, OpenHow};
use plimsoll_plan::{FileId, FilesetId, Stream};
use rustix::io::Errno;
use std::future::Future;
use std::pin::Pin;

/// Boxed future of an operation of a [`SetupSession`], because a `dyn SetupSession` has no `async` methods.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, OpError>> + 'a>>;

/// A session for work outside measured operations, such as populating, checking and removing files, with at most one
/// open file. Operations have the names and the meaning of the operations of [`Session`]; operations on the open file
/// fail with `EBADF` if no file is open.
pub trait SetupSession {
    /// Locates the name of the next operation: a path relative to the work directory.
    fn locate_path(&mut self, path: &[u8]);

    /// Declares the next opened file as a file to populate; see [`Session::begin_populating`].
    fn begin_populating(&mut self, fileset: FilesetId, file: FileId);

    /// Selects the random stream of the written bytes; see [`Session::begin_content`].
    fn begin_content(&mut self, stream: Stream);

    /// Checks the bytes read since the previous call, and returns the number of wrong reads; see
    /// [`Session::check_reads`].
    fn check_reads(&mut self) -> u64;

    /// Makes the located name the destination of an operation on two names; see [`Session::set_destination`].
    fn set_destination(&mut self);

    /// Checks the parent directory of the located name; see [`Session::check_parent`].
    fn check_parent(&mut self) -> Pending<'_, ()>;

    /// Opens the located file as the session's open file; allowed only while the session has no open file.
    fn open(&mut self, how: OpenHow) -> Pending<'_, ()>;

    /// Closes the session's open file.
    fn close(&mut self) -> Pending<'_, ()>;

    /// Writes `len` bytes of content to the open file at `offset`.
    fn write(&mut self, offset: u64, len: u64) -> Pending<'_, ()>;

    /// Reads bytes of the open file from `offset` into `bytes`; returns the number of bytes read.
    fn read_bytes<'a>(&'a mut self, offset: u64, bytes: &'a mut [u8]) -> Pending<'a, u64>;

    /// Executes a rare operation on the open file; see [`Session::on_file`].
    fn on_file<'a>(&'a mut self, operation: FileOperation<'a>) -> Pending<'a, u64>;

    /// Attributes of the located name; see [`Session::stat`].
    fn stat(&mut self) -> Pending<'_, Attributes>;

    /// Creates the located directory; see [`Session::make_dir`].
    fn make_dir(&mut self) -> Pending<'_, ()>;

    /// Renames the located name to the destination; see [`Session::rename`].
    fn rename(&mut self) -> Pending<'_, ()>;

    /// Entries of the located directory; see [`Session::entries`].
    fn entries(&mut self) -> Pending<'_, Vec<(Vec<u8>, EntryKind)>>;

    /// Contents of the located small file; see [`Session::get`].
    fn get(&mut self) -> Pending<'_, Vec<u8>>;

    /// Creates or replaces the located small file; see [`Session::put`].
    fn put<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, ()>;

    /// Removes the located file or empty directory; see [`Session::remove`].
    fn remove(&mut self, kind: EntryKind) -> Pending<'_, ()>;
}

impl dyn SetupSession + '_ {
    /// Locates the name of the next operation: the path whose bytes `push` appends.
    pub fn locate(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        let mut path = Vec::new();
        push(&mut path);
        self.locate_path(&path);
    }
}

/// A setup session that executes its operations on a [`Session`] of a target, and keeps the handle of its open file.
pub struct OneFileSession<S: Session> {
    session: S,
    open: Option<S::Handle>,
}

impl<S: Session> OneFileSession<S> {
    /// Wraps a session of a target; the setup session begins without an open file.
    pub fn new(session: S) -> Self {
        Self {
            session,
            open: None,
        }
    }

    fn opened(&mut self) -> Result<(&mut S, &S::Handle), OpError> {
        let handle = self.open.as_ref().ok_or(OpError(Errno::BADF))?;
        Ok((&mut self.session, handle))
    }
}

impl<S: Session> SetupSession for OneFileSession<S> {
    fn locate_path(&mut self, path: &[u8]) {
        self.session.locate(|p| p.extend_from_slice(path));
    }

    fn begin_populating(&mut self, fileset: FilesetId, file: FileId) {
        self.session.begin_populating(fileset, file);
    }

    fn begin_content(&mut self, stream: Stream) {
        self.session.begin_content(stream);
    }

    fn check_reads(&mut self) -> u64 {
        self.session.check_reads()
    }

    fn set_destination(&mut self) {
        self.session.set_destination();
    }

    fn check_parent(&mut self) -> Pending<'_, ()> {
        Box::pin(self.session.check_parent())
    }

    fn open(&mut self, how: OpenHow) -> Pending<'_, ()> {
        debug_assert!(self.open.is_none(), "the open file is closed first");
        Box::pin(async move {
            self.open = Some(self.session.open(how).await?);
            Ok(())
        })
    }

    fn close(&mut self) -> Pending<'_, ()> {
        Box::pin(async move {
            let handle = self.open.take().ok_or(OpError(Errno::BADF))?;
            self.session.close(handle).await
        })
    }

    fn write(&mut self, offset: u64, len: u64) -> Pending<'_, ()> {
        Box::pin(async move {
            let (session, handle) = self.opened()?;
            session.write(handle, offset, len).await
        })
    }

    fn read_bytes<'a>(&'a mut self, offset: u64, bytes: &'a mut [u8]) -> Pending<'a, u64> {
        Box::pin(async move {
            let (session, handle) = self.opened()?;
            session.read_bytes(handle, offset, bytes).await
        })
    }

    fn on_file<'a>(&'a mut self, operation: FileOperation<'a>) -> Pending<'a, u64> {
        Box::pin(async move {
            let (session, handle) = self.opened()?;
            session.on_file(handle, operation).await
        })
    }

    fn stat(&mut self) -> Pending<'_, Attributes> {
        Box::pin(self.session.stat())
    }

    fn make_dir(&mut self) -> Pending<'_, ()> {
        Box::pin(self.session.make_dir())
    }

    fn rename(&mut self) -> Pending<'_, ()> {
        Box::pin(self.session.rename())
    }

    fn entries(&mut self) -> Pending<'_, Vec<(Vec<u8>, EntryKind)>> {
        Box::pin(self.session.entries())
    }

    fn get(&mut self) -> Pending<'_, Vec<u8>> {
        Box::pin(self.session.get())
    }

    fn put<'a>(&'a mut self, bytes: &'a [u8]) -> Pending<'a, ()> {
        Box::pin(self.session.put(bytes))
    }

    fn remove(&mut self, kind: EntryKind) -> Pending<'_, ()> {
        Box::pin(self.session.remove(kind))
    }
}
