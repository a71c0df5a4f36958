//! The client of a lane, and conversions of NFSv3 types.

use super::Nfs3;
use crate::error::OpError;
use crate::nfs::client_counts::CountedClient;
use crate::nfs::client_state::ClientState;
use crate::nfs::rpc_stats::{self, ProcedureStats};
use crate::session_types::{Attributes, SessionSpec};
use plimsoll_lane::Lane;
use plimsoll_measure::Nanos;
use plimsoll_nfs::rpc::Channel;
use plimsoll_nfs::v3::{self, Client, Entry, Handle, Name, NfsError, Proc, RpcObserver};
use std::rc::Rc;

/// The client that the sessions of a lane share.
pub(crate) struct LaneClient {
    pub(super) client: Client,
    pub(super) state: ClientState<Handle>,
}

impl LaneClient {
    pub(super) fn new(lane: &Lane, server: &Nfs3, spec: &SessionSpec) -> Self {
        let observer = ProcedureStats::of(spec, procedure_names());
        let observer = observer.map(|stats| -> Rc<dyn RpcObserver> { Rc::new(stats) });
        let counted = Rc::new(CountedClient::of(&server.client_counts));
        let mut channel = server.channel.clone();
        channel.silence = spec.silence.map(|s| s.as_nanos() as u64);
        let channel = Channel::new(lane, channel, rpc_stats::connection_stats(spec, &counted));
        Self {
            client: Client::new(channel, observer, &server.deviations),
            state: ClientState::new(lane, &server.work_dir, spec),
        }
    }
}

fn procedure_names() -> impl Iterator<Item = &'static str> {
    Proc::ALL.iter().map(|p| p.name())
}

/// Names of the rows in the results: the procedures of NFSv3, then cache hits, retransmissions and reconnects.
pub(super) fn row_names() -> Vec<&'static str> {
    rpc_stats::row_names(procedure_names())
}

impl RpcObserver for ProcedureStats {
    fn done(&self, procedure: Proc, start: Nanos, end: Nanos, outcome: Result<(), NfsError>) {
        let outcome = outcome.map_err(NfsError::name);
        self.record(procedure as usize, start, end, outcome);
    }
}

/// Converts a name in a directory to the type of the protocol.
pub(super) fn entry((dir, name): (Handle, &[u8])) -> Entry<'_> {
    Entry {
        dir,
        name: Name(name),
    }
}

impl From<NfsError> for OpError {
    fn from(e: NfsError) -> Self {
        Self(e.errno())
    }
}

impl From<v3::Attributes> for Attributes {
    fn from(a: v3::Attributes) -> Self {
        Self {
            kind: a.kind.into(),
            size: a.size,
            changed_ns: Self::time(a.changed.seconds.into(), a.changed.nanoseconds),
        }
    }
}
