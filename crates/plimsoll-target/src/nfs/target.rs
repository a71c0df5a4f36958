//! A work directory on an NFS server, independent of the NFS version.

use super::backend::NfsBackend;
use super::client_counts::ClientCounts;
use super::deviation_report;
use super::session::NfsSession;
use super::work_dir::{ServerProbe, WorkDir};
use crate::error::OpError;
use crate::session::Target;
use crate::session_types::{Descriptors, SessionSpec, Space};
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_measure::{LongReplies, NfsClients};
use plimsoll_nfs::rpc::Deviations;
use plimsoll_nfs::wan::Relay;
use plimsoll_plan::OpKind;
use rustix::io::Errno;
use std::rc::Rc;
use std::sync::Arc;

/// Connects to a server with one version of the protocol.
pub(crate) trait NfsVersion: Send + Sync + 'static {
    type Handle: Copy + Send + Sync;
    type Probe: ServerProbe<Handle = Self::Handle>;
    type Backend: NfsBackend;

    /// The reason why locks are not supported; `None` if locks are supported.
    const NO_LOCKS: Option<&'static str>;

    /// Opens a connection for requests outside the load.
    fn probe(&self) -> Result<Self::Probe, OpError>;

    /// The deviations of the server's replies from the protocol.
    fn deviations(&self) -> &Deviations;

    /// Counts of what the clients of the load have established.
    fn client_counts(&self) -> &ClientCounts;

    /// Creates the NFS client of a lane, which all sessions of the lane share, and which has its own TCP connections.
    fn lane_client(self: &Arc<Self>, lane: &Lane, spec: &SessionSpec) -> Rc<Self::Backend>;

    /// The identity that opens the files of a worker of `process`.
    fn opener(client: &Self::Backend, process: u64) -> <Self::Backend as NfsBackend>::Opener;
}

/// A work directory on a server.
pub(crate) struct NfsTarget<V: NfsVersion> {
    pub(crate) version: Arc<V>,
    pub(crate) work_dir: WorkDir<V::Handle>,
    pub(crate) description: String,
    /// Number of TCP connections that each lane opens to the server (option `nconnect`).
    pub(crate) connections: u32,
    /// Number of lanes per rank; `None` for one lane per processor.
    pub(crate) lanes: Option<usize>,
    /// The relay of all connections; dropping the relay ends the connections.
    pub(crate) added_rtt_relay: Option<Relay>,
}

/// Maximum repetitions of a removal without a reply.
const MAX_REPETITIONS: u32 = 3;

impl<V: NfsVersion> NfsTarget<V> {
    /// Asks over a new connection: the server may have restarted since the last question.
    fn ask<R>(
        &self,
        question: impl FnOnce(&mut V::Probe) -> Result<R, OpError>,
    ) -> Result<R, OpError> {
        let mut probe = self.version.probe()?;
        let answer = question(&mut probe);
        probe.end();
        answer
    }
}

impl<V: NfsVersion> Target for NfsTarget<V> {
    type Session = NfsSession<V::Backend>;

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Reactor
    }

    fn requested_lanes(&self) -> Option<usize> {
        self.lanes
    }

    fn descriptors(&self) -> Descriptors {
        // The relay runs in this process, so the process holds both sides of each relayed
        // connection.
        let per_connection = 1 + 2 * u64::from(self.added_rtt_relay.is_some());
        Descriptors {
            per_open_file: 0,
            // Polling takes three descriptors: an epoll descriptor, an eventfd and a timerfd.
            per_lane: 3 + u64::from(self.connections) * per_connection,
        }
    }

    fn exists(&self) -> bool {
        self.work_dir.exists
    }

    fn created_work_dir(&self) -> bool {
        self.work_dir.created
    }

    fn remove_work_dir(&self) -> Result<(), OpError> {
        let Some((dir, name)) = &self.work_dir.parent else {
            return Err(OpError(Errno::BUSY));
        };
        let remove = || self.ask(|probe| probe.remove_dir(*dir, name));
        let mut removed = remove();
        for _ in 0..MAX_REPETITIONS {
            let Err(OpError(Errno::TIMEDOUT | Errno::CONNRESET | Errno::CONNABORTED | Errno::PIPE)) =
                removed
            else {
                break;
            };
            // The server may have executed a call whose reply was lost.
            removed = match remove() {
                Err(OpError(Errno::NOENT)) => Ok(()),
                again => again,
            };
        }
        removed
    }

    fn writable(&self) -> Result<(), OpError> {
        match self.ask(|probe| probe.is_writable(self.work_dir.dir))? {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        self.ask(|probe| probe.space(self.work_dir.dir))
    }

    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        match kind {
            OpKind::Lock => V::NO_LOCKS,
            OpKind::MmapRead | OpKind::MmapWrite => {
                Some("files are mapped by the kernel's client, which is not used")
            }
            _ => None,
        }
    }

    fn explain(&self, e: OpError) -> String {
        deviation_report::explain_io_error(self.version.deviations(), e)
    }

    fn take_long_replies(&self) -> Vec<LongReplies> {
        deviation_report::drain_long_replies(self.version.deviations())
    }

    fn take_nfs_clients(&self) -> Option<NfsClients> {
        self.version.client_counts().take()
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some("this client keeps no pages of files, and the server's cache is out of reach")
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<Self::Session, OpError> {
        let key = Arc::as_ptr(&self.version) as usize;
        let client = lane.lane_shared(key, || self.version.lane_client(lane, spec));
        let opener = V::opener(&client, spec.process);
        NfsSession::new(client, opener, spec)
    }
}
