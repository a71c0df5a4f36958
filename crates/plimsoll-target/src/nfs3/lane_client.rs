//! What the sessions of a lane share: connections and handles of directories.

use super::Config;
use crate::error::OpError;
use crate::nfs::cache::{CACHED_ATTRIBUTES, CACHED_DATA, Cache};
use crate::nfs::create_verifiers::CreateVerifiers;
use crate::nfs::dir_handle_cache::{self, DirHandleCache, split};
use crate::nfs::rpc_stats::{ConnectionStats, ProcedureStats, RECONNECTS_ROW, RETRANSMISSIONS_ROW};
use crate::session_types::{RpcRows, SessionSpec};
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use plimsoll_nfs::rpc::{self, Channel};
use plimsoll_nfs::v3::{
    Client, Entry, FileType, GetAttr, Handle, Lookup, Name, NfsError, Proc, RpcObserver, Status,
};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// What the sessions of a lane share.
pub(crate) struct LaneClient {
    pub(super) lane: Lane,
    pub(super) client: Client,
    pub(super) config: Arc<Config>,
    pub(super) dirs: DirHandleCache<Handle>,
    pub(super) cache: Cache,
    pub(super) verifiers: CreateVerifiers,
    /// Symbolic links that are known to be there.
    pub(super) links: RefCell<HashSet<Box<[u8]>>>,
}

impl LaneClient {
    pub(super) fn new(lane: &Lane, config: &Arc<Config>, spec: &SessionSpec) -> Rc<Self> {
        let rows = spec.rpc.clone().map(|rows| Rc::new(RpcRecorder::of(&rows)));
        let tally = spec
            .rpc
            .clone()
            .map(|rows| -> Rc<dyn rpc::ChannelObserver> { Rc::new(ConnectionStats::of(&rows)) });
        let observe = rows.map(|r| -> Rc<dyn RpcObserver> { r });
        let mut channel = config.channel.clone();
        channel.silence = spec.silence.map(|s| s.as_nanos() as u64);
        let channel = Channel::new(lane, channel, tally);
        Rc::new(Self {
            lane: lane.clone(),
            client: Client::new(channel, observe, &config.deviations),
            config: config.clone(),
            dirs: DirHandleCache::default(),
            cache: Cache::new(config.cache.0, config.cache.1, spec.rpc.clone()),
            verifiers: CreateVerifiers::default(),
            links: RefCell::default(),
        })
    }

    /// The handle of a directory of the work directory. A component that is no directory, a
    /// symbolic link also, is none.
    pub(super) async fn walk(&self, path: &[u8]) -> Result<Handle, NfsError> {
        let root = self.config.root;
        let step = async |dir, name: &[u8]| self.step(dir, name).await;
        self.dirs.walk(root, path, step).await
    }

    async fn step(&self, dir: Handle, name: &[u8]) -> Result<Handle, NfsError> {
        check_plain_component(name)?;
        let entry = Entry {
            dir,
            name: Name(name),
        };
        let found = self.client.call::<Lookup, _>(&entry, |f| f).await?;
        let kind = match found.attributes {
            Some(attributes) => attributes.kind,
            None => {
                let object = &found.object;
                self.client.call::<GetAttr, _>(object, |a| a.kind).await?
            }
        };
        match kind {
            FileType::Directory => Ok(found.object),
            _ => Err(NfsError::Status(Status::NotDir)),
        }
    }

    /// Does something to a name in a directory. A directory whose handle was kept and has become
    /// stale is looked for once more.
    pub(super) async fn with_entry<R>(
        &self,
        path: &[u8],
        work: impl AsyncFn(Entry<'_>) -> Result<R, NfsError>,
    ) -> Result<R, OpError> {
        let (dir, name) = split(path);
        check_plain_component(name).map_err(super::of_nfs)?;
        let name = Name(name);
        let is_stale = |e: &NfsError| *e == NfsError::Status(Status::Stale);
        let work = async || {
            let dir = self.walk(dir).await?;
            work(Entry { dir, name }).await
        };
        let done = self.dirs.within(dir, is_stale, work).await;
        done.map_err(super::of_nfs)
    }

    /// The handle of what a path names, itself if that is a symbolic link.
    pub(super) async fn object(&self, path: &[u8]) -> Result<Handle, OpError> {
        if path.is_empty() {
            return Ok(self.config.root);
        }
        self.with_entry(path, async |entry| {
            self.client.call::<Lookup, _>(&entry, |f| f.object).await
        })
        .await
    }
}

/// Checks that a name does not lead to the directory above.
fn check_plain_component(name: &[u8]) -> Result<(), NfsError> {
    match dir_handle_cache::is_plain_component(name) {
        true => Ok(()),
        false => Err(NfsError::Status(Status::Inval)),
    }
}

/// Writes down what calls did, in the rows of the results.
struct RpcRecorder(ProcedureStats);

impl RpcRecorder {
    fn of(rows: &RpcRows) -> Self {
        Self(ProcedureStats::of(rows, Proc::ALL.iter().map(|p| p.name())))
    }
}

/// Names of all rows.
pub(crate) fn row_names() -> Vec<&'static str> {
    let procedures = Proc::ALL.iter().map(|p| p.name());
    procedures
        .chain([CACHED_ATTRIBUTES, CACHED_DATA])
        .chain([RETRANSMISSIONS_ROW, RECONNECTS_ROW])
        .collect()
}

impl RpcObserver for RpcRecorder {
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        let outcome = outcome.map_err(NfsError::name);
        self.0.done(procedure as usize, start, end, outcome);
    }
}
