//! The client state that the sessions of a lane share in every NFS version.

use super::cache::{Cache, CacheModel};
use super::create_verifiers::CreateVerifiers;
use super::dir_handle_cache::DirHandleCache;
use super::sizes::TransferSizes;
use super::url::CreateMode;
use crate::error::OpError;
use crate::session_types::SessionSpec;
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashSet;

/// The work directory and its transfer, create and cache settings.
#[derive(Clone, Copy)]
pub(crate) struct WorkDirConfig<H> {
    /// The handle of the work directory; of its parent if the work directory does not exist.
    pub(crate) root: H,
    pub(crate) sizes: TransferSizes,
    pub(crate) create: CreateMode,
    /// The cache model, and the lifetime of cached attributes in nanoseconds.
    pub(crate) cache: (CacheModel, Nanos),
}

/// The client state that the sessions of a lane share.
pub(crate) struct ClientState<H> {
    pub(crate) lane: Lane,
    pub(crate) config: WorkDirConfig<H>,
    pub(crate) dirs: DirHandleCache<H>,
    pub(crate) cache: Cache,
    pub(crate) verifiers: CreateVerifiers,
    /// Symbolic links that the client knows to exist.
    pub(crate) links: RefCell<HashSet<Box<[u8]>>>,
}

impl<H: Copy> ClientState<H> {
    pub(crate) fn new(lane: &Lane, config: &WorkDirConfig<H>, spec: &SessionSpec) -> Self {
        let (model, lifetime) = config.cache;
        Self {
            lane: lane.clone(),
            config: *config,
            dirs: DirHandleCache::default(),
            cache: Cache::new(model, lifetime, spec.rpc.clone()),
            verifiers: CreateVerifiers::default(),
            links: RefCell::default(),
        }
    }

    /// Fails with `ECANCELED` if the run has ended; called between two calls of one operation.
    pub(crate) fn check_deadline(&self) -> Result<(), OpError> {
        match self.lane.now() >= self.lane.deadline() {
            true => Err(OpError(Errno::CANCELED)),
            false => Ok(()),
        }
    }
}
