//! The client of a lane, and conversions of NFSv4 types.

use super::Nfs4;
use super::compounds::{on, result};
use crate::error::OpError;
use crate::nfs::client_counts::CountedClient;
use crate::nfs::client_state::ClientState;
use crate::nfs::rpc_stats::{self, ProcedureStats};
use crate::session_types::{self, EntryKind, SessionSpec};
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use plimsoll_nfs::v4::attributes::{Attributes, Bitmap, number};
use plimsoll_nfs::v4::operations::{GetAttr, GetFh, Lookup, PutFh};
use plimsoll_nfs::v4::types::{FileType, Handle, Text};
use plimsoll_nfs::v4::{
    Call, Client, ClientSpec, Event, FifoMutex, NfsError, OpenOwner, RpcObserver, StatePart,
};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Attributes that stat requests, as a kernel client does.
pub(super) const STAT_ATTRIBUTES: Bitmap = {
    use number::{
        ACCESSED, CHANGE, CHANGED, FILE_ID, FSID, KIND, LINKS, MODE, MODIFIED, SIZE, SPACE_USED,
    };
    Bitmap::of(&[
        KIND, CHANGE, SIZE, FSID, FILE_ID, MODE, LINKS, SPACE_USED, ACCESSED, CHANGED, MODIFIED,
    ])
};

/// The client that the sessions of a lane share.
pub(crate) struct LaneClient {
    pub(super) client: Client,
    pub(super) state: ClientState<Handle>,
    /// Open owners that workers of the lane share, by process; one owner for all processes has key
    /// 0.
    owners: RefCell<HashMap<u64, Rc<OpenOwner>>>,
    server: Arc<Nfs4>,
    number: u32,
}

impl Drop for LaneClient {
    fn drop(&mut self) {
        self.server.release_client_number(self.number);
    }
}

impl LaneClient {
    pub(super) fn new(lane: &Lane, server: &Arc<Nfs4>, spec: &SessionSpec) -> Self {
        let observer = ProcedureStats::of(spec, procedure_names());
        let counted = Rc::new(CountedClient::of(&server.client_counts));
        let observer = observer.map(|calls| -> Rc<dyn RpcObserver> {
            Rc::new(LoadObserver {
                calls,
                client: counted.clone(),
            })
        });
        let number = server.take_client_number();
        let mut client = ClientSpec {
            id: format!("{} {number}", server.client.id),
            ..server.client.clone()
        };
        client.channel.silence = spec.silence.map(|s| s.as_nanos() as u64);
        Self {
            client: Client::new(
                lane,
                client,
                observer,
                rpc_stats::connection_stats(spec, &counted),
            ),
            state: ClientState::new(lane, &server.work_dir, spec),
            owners: RefCell::default(),
            server: server.clone(),
            number,
        }
    }

    /// The open owner for the files of a worker of `process`.
    pub(super) fn owner(&self, process: u64) -> Rc<OpenOwner> {
        match self.server.shared_owner(process) {
            None => self.client.owner(FifoMutex::default()),
            Some((key, lock)) => {
                let mut owners = self.owners.borrow_mut();
                let owner = owners.entry(key);
                owner.or_insert_with(|| self.client.owner(lock)).clone()
            }
        }
    }

    pub(super) async fn attributes(
        &self,
        handle: &Handle,
        which: &Bitmap,
    ) -> Result<Attributes, OpError> {
        let build = on::<GetAttr>(handle, which);
        let got = self.client.call(Call::GetAttr, build, result::<GetAttr>);
        Ok(got.await?)
    }

    /// The handle and the attributes of a name.
    pub(super) async fn look_up(
        &self,
        (dir, name): (Handle, &[u8]),
    ) -> Result<(Handle, Attributes), OpError> {
        let found = self.client.call(
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
        Ok(found.await?)
    }
}

/// Names of all calls, followed by the names of all events.
fn procedure_names() -> impl Iterator<Item = &'static str> {
    let calls = Call::ALL.iter().map(|c| c.name());
    calls.chain(Event::ALL.iter().map(|e| e.name()))
}

/// Names of the rows in the results: calls and events of NFSv4, then cache hits, retransmissions and reconnects.
pub(super) fn row_names() -> Vec<&'static str> {
    rpc_stats::row_names(procedure_names())
}

/// Records calls and events, and counts what the client establishes.
struct LoadObserver {
    calls: ProcedureStats,
    client: Rc<CountedClient>,
}

impl RpcObserver for LoadObserver {
    fn done(&self, call: Call, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        let outcome = outcome.map_err(NfsError::name);
        self.calls.record(call as usize, start, end, outcome);
    }

    fn event(&self, event: Event, start: Nanos, end: Nanos) {
        let row = Call::ALL.len() + event as usize;
        self.calls.record(row, start, end, Ok(()));
    }

    fn established(&self, part: StatePart) {
        self.client.established(part);
    }
}

impl From<NfsError> for OpError {
    fn from(e: NfsError) -> Self {
        Self(e.errno())
    }
}

impl From<FileType> for EntryKind {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::Regular => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Link => Self::Link,
            _ => Self::Other,
        }
    }
}

/// Fails unless the server has returned type and size.
impl TryFrom<Attributes> for session_types::Attributes {
    type Error = OpError;

    fn try_from(a: Attributes) -> Result<Self, OpError> {
        match (a.kind, a.size) {
            (Some(kind), Some(size)) => Ok(Self {
                kind: kind.into(),
                size,
                changed_ns: a
                    .changed
                    .and_then(|time| Self::time(time.seconds as i64, time.nanoseconds)),
            }),
            _ => Err(OpError(Errno::BADMSG)),
        }
    }
}
