//! The operations of NFS sessions on paths and open files: the calls of each version, and the
//! operations that both versions build from the calls.

use super::cache::DelegationId;
use super::client_state::ClientState;
use super::dir_handle_cache::{check_component, split};
use super::open::{Open, Opened};
use super::transfer::{self, TransferCalls};
use super::url::CreateMode;
use crate::error::OpError;
use crate::session_types::{
    Attributes, CallSigns, EntryKind, ListTotals, MAX_WHOLE_READ_BYTES, OpenHow, OpenMode,
};
use crate::write_data::WriteSource;
use plimsoll_nfs::v3::Stable;
use plimsoll_nfs::v4::types::Status;
use rustix::io::Errno;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// An asynchronous write in flight; returns the number of bytes.
pub(crate) type PendingWrite = Pin<Box<dyn Future<Output = Result<u64, OpError>>>>;

/// A name in a directory.
pub(crate) type EntryAt<'a, H> = (H, &'a [u8]);

/// The operations of one NFS version, which the sessions of a lane share. Paths are relative to the
/// work directory. Methods with bodies use only the other methods and are the same in all versions.
pub(crate) trait NfsBackend: TransferCalls + Sized + 'static {
    /// The server's identifier of a file.
    type Handle: Copy;
    /// The open owner of a session on NFSv4; `()` for NFSv3, which has no open state.
    type Opener;

    fn state(&self) -> &ClientState<Self::Handle>;

    /// The number of the delegation that the client holds for a name.
    fn delegation_of(&self, _: &[u8]) -> DelegationId;

    /// Counts an operation that the cache served because of a delegation.
    fn note_delegation_hit(&self);

    /// Looks up a directory in a parent directory.
    async fn sub_dir(&self, at: EntryAt<'_, Self::Handle>) -> Result<Self::Handle, OpError>;

    /// Opens an existing file.
    async fn open_existing(
        &self,
        opener: &Self::Opener,
        path: &[u8],
        mode: OpenMode,
        truncate: bool,
    ) -> Result<Opened<Self::File>, OpError>;

    /// Creates and opens a file by the create mode of `how`, truncated if the second field of `how` is true.
    ///
    /// Fails with `EEXIST` if the file exists and the create mode refuses an existing file.
    async fn create(
        &self,
        opener: &Self::Opener,
        path: &[u8],
        mode: OpenMode,
        how: (CreateMode, bool),
    ) -> Result<Opened<Self::File>, OpError>;

    /// Ends the open of a file at the server (CLOSE of NFSv4). Returns whether a call was sent.
    async fn close_file(&self, file: &Self::File) -> Result<bool, OpError>;

    /// Begins to write `len` bytes from a source.
    fn write_later(
        self: &Rc<Self>,
        open: &Rc<Open<Self::File>>,
        source: &mut impl WriteSource,
        offset: u64,
        len: u64,
    ) -> Result<PendingWrite, OpError>;

    /// Sends COMMIT for a whole file; returns the server's write verifier.
    async fn commit_file(&self, file: &Self::File) -> Result<[u8; 8], OpError>;

    async fn stat_open(&self, file: &Self::File) -> Result<Attributes, OpError>;

    async fn set_len(&self, file: &Self::File, len: u64) -> Result<(), OpError>;

    /// Locks a byte range of a file for writing, and unlocks the range.
    async fn lock(&self, file: &Self::File, offset: u64, len: u64) -> Result<(), OpError>;

    async fn stat(&self, path: &[u8]) -> Result<Attributes, OpError>;

    async fn lookup(&self, path: &[u8]) -> Result<(), OpError>;

    /// Checks whether a file may be read and written.
    async fn access_read_write(&self, path: &[u8]) -> Result<(), OpError>;

    async fn chmod(&self, path: &[u8], mode: u32) -> Result<(), OpError>;

    /// Removes a file or an empty directory.
    async fn remove_entry(
        &self,
        at: EntryAt<'_, Self::Handle>,
        is_dir: bool,
    ) -> Result<(), OpError>;

    async fn make_dir_entry(&self, at: EntryAt<'_, Self::Handle>) -> Result<(), OpError>;

    async fn make_link_entry(
        &self,
        at: EntryAt<'_, Self::Handle>,
        to: &[u8],
    ) -> Result<(), OpError>;

    async fn rename_entry(
        &self,
        from: EntryAt<'_, Self::Handle>,
        to: EntryAt<'_, Self::Handle>,
    ) -> Result<(), OpError>;

    /// Counts the entries of a directory; `plus` requests attributes as well.
    async fn list(&self, path: &[u8], plus: bool, signs: &CallSigns)
    -> Result<ListTotals, OpError>;

    /// Names and kinds of the entries of a directory.
    async fn entries(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError>;

    async fn read_link(&self, path: &[u8]) -> Result<(), OpError>;

    async fn statfs(&self) -> Result<(), OpError>;

    async fn pathconf(&self) -> Result<(), OpError>;

    /// The handle of a directory below the work directory. Fails if a component is not a directory;
    /// a symbolic link is not a directory.
    async fn walk(&self, path: &[u8]) -> Result<Self::Handle, OpError> {
        let state = self.state();
        let step = async |dir, name: &[u8]| {
            check_component(name)?;
            self.sub_dir((dir, name)).await
        };
        state.dirs.walk(state.config.root, path, step).await
    }

    /// Calls `work` with the parent directory and the last component of a path. A directory whose
    /// cached handle is stale is looked up once more.
    async fn with_entry<R>(
        &self,
        path: &[u8],
        work: impl AsyncFn(EntryAt<'_, Self::Handle>) -> Result<R, OpError>,
    ) -> Result<R, OpError> {
        let (dir, name) = split(path);
        check_component(name)?;
        let work = async || work((self.walk(dir).await?, name)).await;
        self.state().dirs.within(dir, is_stale, work).await
    }

    async fn open(
        &self,
        opener: &Self::Opener,
        path: &[u8],
        how: OpenHow,
    ) -> Result<Rc<Open<Self::File>>, OpError> {
        if path.is_empty() {
            return Err(OpError(Errno::ISDIR));
        }
        let stability = match how.dsync {
            true => Stable::DataSync,
            false => Stable::Unstable,
        };
        if how.create {
            let create = (self.state().config.create, how.truncate);
            match self.create(opener, path, how.mode, create).await {
                // The file exists, and the create mode refuses an existing file, so the file is opened without
                // creating.
                Err(OpError(Errno::EXIST)) => {}
                created => return Ok(Open::new(created?, how.mode, stability)),
            }
        }
        let opened = self.open_existing(opener, path, how.mode, how.truncate);
        Ok(Open::new(opened.await?, how.mode, stability))
    }

    /// Commits unstable data, as a kernel client does at close, so that other clients see the data; then closes the
    /// file. Returns whether a call was sent.
    async fn close(&self, open: &Open<Self::File>) -> Result<bool, OpError> {
        let is_dirty = open.is_dirty();
        let committed = match is_dirty {
            true => self.commit(open).await,
            false => Ok(()),
        };
        let closed = self.close_file(&open.file).await;
        committed?;
        Ok(closed? || is_dirty)
    }

    /// Commits written data to stable storage, and checks that the server has lost none of the
    /// data.
    async fn commit(&self, open: &Open<Self::File>) -> Result<(), OpError> {
        open.begin_commit();
        open.committed(self.commit_file(&open.file).await)
    }

    async fn remove(&self, path: &[u8], is_dir: bool) -> Result<(), OpError> {
        let removed = self.with_entry(path, async |at| self.remove_entry(at, is_dir).await);
        removed.await?;
        if is_dir {
            self.state().dirs.invalidate(path);
        }
        Ok(())
    }

    async fn make_dir(&self, path: &[u8]) -> Result<(), OpError> {
        if path.is_empty() {
            return Err(OpError(Errno::EXIST));
        }
        self.with_entry(path, async |at| self.make_dir_entry(at).await)
            .await
    }

    /// Creates a symbolic link unless the client knows that the link exists.
    async fn ensure_link(&self, path: &[u8], to: &[u8]) -> Result<(), OpError> {
        let links = &self.state().links;
        if links.borrow().contains(path) {
            return Ok(());
        }
        let made = self.with_entry(path, async |at| self.make_link_entry(at, to).await);
        match made.await {
            Ok(()) | Err(OpError(Errno::EXIST)) => {}
            Err(e) => return Err(e),
        }
        links.borrow_mut().insert(path.into());
        Ok(())
    }

    /// Calls RENAME, after a stale handle again with both directories looked up: the status does not tell which
    /// directory handle is stale.
    async fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), OpError> {
        let (from_dir, from_name) = split(from);
        let (to_dir, to_name) = split(to);
        let rename = async || {
            let from = (self.walk(from_dir).await?, from_name);
            let to = (self.walk(to_dir).await?, to_name);
            self.rename_entry(from, to).await
        };
        let dirs = &self.state().dirs;
        let done = match rename().await {
            Err(e) if is_stale(&e) => {
                dirs.invalidate_path(from_dir);
                dirs.invalidate_path(to_dir);
                rename().await
            }
            done => done,
        };
        // A renamed directory has a new path.
        dirs.invalidate(from);
        dirs.invalidate(to);
        done
    }

    /// Contents of a small file.
    async fn get(&self, opener: &Self::Opener, path: &[u8]) -> Result<Vec<u8>, OpError> {
        let how = OpenHow::plain(OpenMode::Read);
        let open = self.open(opener, path, how).await?;
        let read = read_whole(self, &open).await;
        let closed = self.close(&open).await;
        let read = read?;
        closed.map(|_| read)
    }

    /// Creates or replaces a small file: writes a temporary file and renames it to `path`, so that a crash leaves
    /// either the old or the new contents.
    async fn put(&self, opener: &Self::Opener, path: &[u8], bytes: &[u8]) -> Result<(), OpError> {
        let new = [path, b".new"].concat();
        let mode = OpenMode::Write;
        let how = (CreateMode::Guarded, false);
        let created = match self.create(opener, &new, mode, how).await {
            // A crash left the temporary file, or a user has made a hard link with the name of the temporary file: the
            // name is removed, and nothing is written to the file that has the name.
            Err(OpError(Errno::EXIST)) => {
                self.remove(&new, false).await?;
                self.create(opener, &new, mode, how).await?
            }
            other => other?,
        };
        let open = Open::new(created, mode, Stable::FileSync);
        let written = transfer::write_bytes(self, &open, 0, bytes, Stable::FileSync).await;
        let closed = self.close(&open).await;
        match written.and(closed) {
            Ok(_) => match self.replace(&new, path).await {
                // The server may have executed a call whose reply was lost, and then refused the retransmission.
                Err(OpError(Errno::NOENT))
                    if self.get(opener, path).await.is_ok_and(|now| now == bytes) =>
                {
                    Ok(())
                }
                done => done,
            },
            Err(e) => {
                // The contents of the temporary file are incomplete, so the temporary file is removed.
                let _ = self.remove(&new, false).await;
                Err(e)
            }
        }
    }

    /// Renames the file `from` to `to`, or removes `from` if renaming fails. A server may refuse to replace an open
    /// file (NFS4ERR_FILE_OPEN; RFC 8881, 18.26.3); `to` is then removed before a second RENAME.
    async fn replace(&self, from: &[u8], to: &[u8]) -> Result<(), OpError> {
        let Err(refused) = self.rename(from, to).await else {
            return Ok(());
        };
        let is_open = Status::of_errno(refused.0) == Some(Status::FileOpen);
        if is_open && self.remove(to, false).await.is_ok() {
            // If the second RENAME fails, `from` stays: the file has the only copy of the new contents.
            return self.rename(from, to).await;
        }
        let _ = self.remove(from, false).await;
        Err(refused)
    }
}

/// The contents of an open small file.
async fn read_whole<B: NfsBackend>(backend: &B, open: &Open<B::File>) -> Result<Vec<u8>, OpError> {
    let size = backend.stat_open(&open.file).await?.size;
    if size > MAX_WHOLE_READ_BYTES {
        return Err(OpError(Errno::FBIG));
    }
    let mut out = vec![0; size as usize];
    let put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    let read = transfer::read(backend, open, (0, size), put, || ()).await?;
    out.truncate(read as usize);
    Ok(out)
}

/// Whether the server no longer knows a handle.
fn is_stale(e: &OpError) -> bool {
    *e == OpError(Errno::STALE)
}
