//! The state of a lane's client that its sessions share, whatever the version.

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

/// The work directory, and how sessions use it.
#[derive(Clone, Copy)]
pub(crate) struct WorkDirConfig<H> {
    /// The work directory; if it does not exist, its parent.
    pub(crate) root: H,
    pub(crate) sizes: TransferSizes,
    pub(crate) create: CreateMode,
    /// The cache, and the lifetime of its attributes in nanoseconds.
    pub(crate) cache: (CacheModel, Nanos),
}

/// The state of a lane's client that its sessions share.
pub(crate) struct ClientState<H> {
    pub(crate) lane: Lane,
    pub(crate) config: WorkDirConfig<H>,
    pub(crate) dirs: DirHandleCache<H>,
    pub(crate) cache: Cache,
    pub(crate) verifiers: CreateVerifiers,
    /// Symbolic links that are known to exist.
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

    /// Checks between two calls of one operation that the run has not ended.
    pub(crate) fn check_deadline(&self) -> Result<(), OpError> {
        match self.lane.now() >= self.lane.deadline() {
            true => Err(OpError(Errno::CANCELED)),
            false => Ok(()),
        }
    }
}
