//! What the sessions of a lane share: the client that it is to the server, and handles of
//! directories.

use super::Config;
use crate::error::OpError;
use crate::nfs::cache::{CACHED_ATTRIBUTES, CACHED_DATA, Cache};
use crate::nfs::create_verifiers::CreateVerifiers;
use crate::nfs::dir_handle_cache::{self, DirHandleCache, split};
use crate::nfs::rpc_stats::{ConnectionStats, ProcedureStats, RECONNECTS_ROW, RETRANSMISSIONS_ROW};
use crate::session_types::{RpcRows, SessionSpec};
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use plimsoll_nfs::rpc;
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{GetAttr, GetFh, Lookup, PutFh};
use plimsoll_nfs::v4::types::{FileType, Handle, Status, Text};
use plimsoll_nfs::v4::{
    Call, Client, ClientSpec, Event, FifoMutex, NfsError, OpenOwner, RpcObserver,
};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Attributes that a stat asks for, as a kernel's client would.
pub(super) const STAT_ATTRIBUTES: Bitmap = {
    use number::{
        ACCESSED, CHANGE, CHANGED, FILE_ID, FSID, KIND, LINKS, MODE, MODIFIED, SIZE, SPACE_USED,
    };
    Bitmap::of(&[
        KIND, CHANGE, SIZE, FSID, FILE_ID, MODE, LINKS, SPACE_USED, ACCESSED, CHANGED, MODIFIED,
    ])
};

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
    /// Owners that workers of the lane share.
    owners: RefCell<HashMap<u64, Rc<OpenOwner>>>,
    number: u32,
}

impl Drop for LaneClient {
    fn drop(&mut self) {
        self.config.give_number(self.number);
    }
}

impl LaneClient {
    pub(super) fn new(lane: &Lane, config: &Arc<Config>, spec: &SessionSpec) -> Rc<Self> {
        let rows = spec.rpc.clone().map(|rows| Rc::new(RpcRecorder::of(&rows)));
        let tally = spec
            .rpc
            .clone()
            .map(|rows| -> Rc<dyn rpc::ChannelObserver> { Rc::new(ConnectionStats::of(&rows)) });
        let observe = rows.map(|r| -> Rc<dyn RpcObserver> { r });
        let number = config.take_number();
        let mut client = ClientSpec {
            id: format!("{} {number}", config.client.id),
            ..config.client.clone()
        };
        client.channel.silence = spec.silence.map(|s| s.as_nanos() as u64);
        Rc::new(Self {
            lane: lane.clone(),
            client: Client::new(lane, client, observe, tally),
            config: config.clone(),
            dirs: DirHandleCache::default(),
            cache: Cache::new(config.cache.0, config.cache.1, spec.rpc.clone()),
            verifiers: CreateVerifiers::default(),
            links: RefCell::default(),
            owners: RefCell::default(),
            number,
        })
    }

    /// Who opens the files of a worker of a process.
    pub(super) fn owner(&self, process: u64) -> Rc<OpenOwner> {
        match self.config.shared_owner(process) {
            None => self.client.owner(FifoMutex::default()),
            Some((key, turns)) => {
                let mut owners = self.owners.borrow_mut();
                let owner = owners.entry(key);
                owner.or_insert_with(|| self.client.owner(turns)).clone()
            }
        }
    }

    /// The handle of a directory of the work directory. A component that is no directory, a
    /// symbolic link also, is none.
    pub(super) async fn walk(&self, path: &[u8]) -> Result<Handle, NfsError> {
        let step = async |dir, name: &[u8]| {
            check_plain_component(name)?;
            let (found, attributes) = self.look_up(dir, name).await?;
            match attributes.kind {
                Some(FileType::Directory) => Ok(found),
                _ => Err(NfsError::Status(None, Status::NotDir)),
            }
        };
        self.dirs.walk(self.config.root, path, step).await
    }

    /// Handle and attributes of a name.
    pub(super) async fn look_up(
        &self,
        dir: Handle,
        name: &[u8],
    ) -> Result<(Handle, Attributes), NfsError> {
        let looked = self.client.call(
            Call::LookupGetAttr,
            |c| {
                c.add::<PutFh>(&dir).add::<Lookup>(&Text(name));
                c.add::<GetFh>(&()).add::<GetAttr>(&STAT_ATTRIBUTES);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.skip::<Lookup>()?;
                Ok((r.get::<GetFh>()?, r.get::<GetAttr>()?))
            },
        );
        looked.await
    }

    /// Does something to a name in a directory. A directory whose handle was kept and has become
    /// stale is looked for once more.
    pub(super) async fn with_entry<R>(
        &self,
        path: &[u8],
        work: impl AsyncFn(Handle, &[u8]) -> Result<R, NfsError>,
    ) -> Result<R, OpError> {
        let (dir, name) = split(path);
        check_plain_component(name).map_err(super::of_nfs)?;
        let work = async || work(self.walk(dir).await?, name).await;
        let done = self.dirs.within(dir, |e| is_stale(*e), work).await;
        done.map_err(super::of_nfs)
    }
}

/// Checks that a name does not lead to the directory above.
fn check_plain_component(name: &[u8]) -> Result<(), NfsError> {
    match dir_handle_cache::is_plain_component(name) {
        true => Ok(()),
        false => Err(NfsError::Status(None, Status::Inval)),
    }
}

/// Whether a handle stands for nothing any more.
pub(super) fn is_stale(e: NfsError) -> bool {
    matches!(e.status(), Some(Status::Stale | Status::FhExpired))
}

/// Writes down what calls did, in the rows of the results.
struct RpcRecorder {
    calls: ProcedureStats,
    events: ProcedureStats,
}

impl RpcRecorder {
    fn of(rows: &RpcRows) -> Self {
        Self {
            calls: ProcedureStats::of(rows, Call::ALL.iter().map(|c| c.name())),
            events: ProcedureStats::of(rows, Event::ALL.iter().map(|e| e.name())),
        }
    }
}

/// Names of all rows.
pub(crate) fn row_names() -> Vec<&'static str> {
    let calls = Call::ALL.iter().map(|c| c.name());
    let events = Event::ALL.iter().map(|e| e.name());
    calls
        .chain(events)
        .chain([CACHED_ATTRIBUTES, CACHED_DATA])
        .chain([RETRANSMISSIONS_ROW, RECONNECTS_ROW])
        .collect()
}

impl RpcObserver for RpcRecorder {
    fn done(&self, call: Call, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        let outcome = outcome.map_err(NfsError::name);
        self.calls.done(call as usize, start, end, outcome);
    }

    fn event(&self, event: Event, start: Nanos, end: Nanos) {
        self.events.done(event as usize, start, end, Ok(()));
    }
}
