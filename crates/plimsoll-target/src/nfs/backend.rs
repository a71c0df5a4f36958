//! What the sessions of NFS targets are made of: operations on paths and open files, as one version
//! of the protocol does them.

use super::cache::{Cache, DelegationId};
use crate::error::OpError;
use crate::session_types::{Attributes, EntryKind, ListTotals, OpenHow};
use crate::write_data::WriteData;
use plimsoll_lane::Lane;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// How stable written data has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stability {
    /// As the file was opened for.
    AsOpened,
    /// Data and attributes are on stable storage.
    Stable,
}

/// A write that nobody waits for yet.
pub(crate) type PendingWrite = Pin<Box<dyn Future<Output = Result<u64, OpError>>>>;

/// An open file.
pub(crate) trait OpenFile {
    /// Whether it was opened for reading.
    fn may_read(&self) -> Result<(), OpError>;

    /// Whether it was opened for writing.
    fn may_write(&self) -> Result<(), OpError>;

    /// Its attributes, if they came with the open.
    fn attributes(&self) -> Option<Attributes>;
}

/// The operations of one version, which the sessions of a lane share. Paths are relative to the
/// work directory.
pub(crate) trait NfsBackend: 'static {
    /// An open file.
    type Open: OpenFile;
    /// Who opens files: one for each session.
    type Opener;

    /// The lane.
    fn lane(&self) -> &Lane;

    /// What is kept of what the server said.
    fn cache(&self) -> &Cache;

    /// What the server promises of a name now.
    fn delegation_of(&self, _path: &[u8]) -> DelegationId {
        None
    }

    /// What was kept because of a promise has served an operation.
    fn note_delegation_hit(&self) {}

    /// Goes to a directory, through no symbolic link.
    async fn change_dir(&self, dir: &[u8]) -> Result<(), OpError>;

    async fn open(
        &self,
        who: &Self::Opener,
        path: &[u8],
        how: OpenHow,
    ) -> Result<Rc<Self::Open>, OpError>;

    async fn close(&self, open: &Rc<Self::Open>) -> Result<(), OpError>;

    /// Reads up to `len` bytes, which `sink` is given with their place in the range; returns how
    /// many there were.
    async fn read(
        &self,
        open: &Self::Open,
        offset: u64,
        len: u64,
        sink: impl FnMut(usize, &[u8]),
    ) -> Result<u64, OpError>;

    /// Writes `len` bytes from a source.
    async fn write(
        &self,
        open: &Self::Open,
        source: &mut WriteData,
        offset: u64,
        len: u64,
        stable: Stability,
    ) -> Result<(), OpError>;

    /// Writes these bytes.
    async fn write_bytes(
        &self,
        open: &Self::Open,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), OpError>;

    /// Begins to write `len` bytes from a source.
    fn write_later(
        self: &Rc<Self>,
        open: &Rc<Self::Open>,
        source: &mut WriteData,
        offset: u64,
        len: u64,
    ) -> Result<PendingWrite, OpError>;

    /// Puts what was written on stable storage, and makes sure that it was all there still.
    async fn commit(&self, open: &Self::Open) -> Result<(), OpError>;

    async fn stat_open(&self, open: &Self::Open) -> Result<Attributes, OpError>;

    async fn set_len(&self, open: &Self::Open, len: u64) -> Result<(), OpError>;

    /// Locks a range and unlocks it.
    async fn lock(&self, open: &Self::Open, offset: u64, len: u64) -> Result<(), OpError>;

    async fn stat(&self, path: &[u8]) -> Result<Attributes, OpError>;

    async fn lookup(&self, path: &[u8]) -> Result<(), OpError>;

    /// Asks whether a file may be read and written.
    async fn access_read_write(&self, path: &[u8]) -> Result<(), OpError>;

    async fn chmod(&self, path: &[u8], mode: u32) -> Result<(), OpError>;

    async fn remove(&self, path: &[u8]) -> Result<(), OpError>;

    async fn make_dir(&self, path: &[u8]) -> Result<(), OpError>;

    async fn remove_dir(&self, path: &[u8]) -> Result<(), OpError>;

    async fn rename(&self, from: &[u8], to: &[u8]) -> Result<(), OpError>;

    /// How many entries a directory has, with or without their attributes.
    async fn list(&self, path: &[u8], plus: bool) -> Result<ListTotals, OpError>;

    async fn entries(&self, path: &[u8]) -> Result<Vec<(Vec<u8>, EntryKind)>, OpError>;

    /// Makes a symbolic link, unless it is known to be there.
    async fn ensure_link(&self, path: &[u8], to: &[u8]) -> Result<(), OpError>;

    async fn read_link(&self, path: &[u8]) -> Result<(), OpError>;

    async fn statfs(&self) -> Result<(), OpError>;

    async fn pathconf(&self) -> Result<(), OpError>;

    /// Contents of a small file.
    async fn get(&self, who: &Self::Opener, path: &[u8]) -> Result<Vec<u8>, OpError>;

    /// Makes or replaces a small file.
    async fn put(&self, who: &Self::Opener, path: &[u8], bytes: &[u8]) -> Result<(), OpError>;
}
