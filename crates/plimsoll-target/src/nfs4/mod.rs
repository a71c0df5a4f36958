//! The target `nfs4`: files of a server by NFS versions 4.0 and 4.1, without a kernel client.
//!
//! Every operation calls the server unless the option `cache` is given and the cache has the result. Without `cache`,
//! the client keeps only the handles of the directories on located paths. The module `backend` maps operations to
//! calls. Each lane is an NFS client with its own client id.

mod backend;
mod compounds;
mod lane_client;
mod listing;
mod probe;
mod transfer_calls;
mod url;

use crate::connect::{Purpose, TargetError};
use crate::error::OpError;
use crate::nfs::client_counts::ClientCounts;
use crate::nfs::client_state::WorkDirConfig;
use crate::nfs::deviation_report::{explain_no_connection, explain_work_dir_error};
use crate::nfs::sizes::{DEFAULT_MAX_TRANSFER_BYTES, MESSAGE_OVERHEAD_BYTES};
use crate::nfs::target::{NfsTarget, NfsVersion};
use crate::nfs::url::{NFS_PORT, ServerUrl};
use crate::nfs::work_dir::{ServerProbe, WorkDir};
use crate::scheme::{FileStorage, TargetScheme};
use crate::session_types::SessionSpec;
use lane_client::LaneClient;
use plimsoll_lane::Lane;
use plimsoll_nfs::rpc::Deviations;
use plimsoll_nfs::v4::types::{Handle, Status};
use plimsoll_nfs::v4::{ClientSpec, FifoMutex, NfsError, OpenOwner};
use plimsoll_plan::WorkDirSpec;
use plimsoll_runtime::sync::lock;
use probe::{MAX_LIST_BYTES, Probe, ProbeSpec};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use url::{Owners, Url};

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "nfs4",
    form: "nfs4://host[:port]/path",
    storage: FileStorage::Server,
    takes_events: false,
    options: &[&crate::nfs::url::OPTIONS, &url::OWN_OPTIONS],
    row_names: lane_client::row_names,
};

pub(crate) fn check_url(url: &str) -> Result<(), TargetError> {
    Url::parse(url).map(drop)
}

/// The connection parameters of a server, for lanes and for requests outside the load.
pub(crate) struct Nfs4 {
    client: ClientSpec,
    probe: ProbeSpec,
    work_dir: WorkDirConfig<Handle>,
    owners: Owners,
    /// Numbers of the existing clients.
    client_numbers: Mutex<BTreeSet<u32>>,
    /// Mutexes of shared open owners, by process; one owner for all processes has key 0.
    owner_locks: Mutex<HashMap<u64, FifoMutex>>,
    client_counts: Arc<ClientCounts>,
}

impl Nfs4 {
    /// Takes the lowest free client number: the server regards a later client with the same number
    /// as the same client, restarted.
    fn take_client_number(&self) -> u32 {
        let mut numbers = lock(&self.client_numbers);
        let free = (0..).find(|n| !numbers.contains(n));
        let free = free.expect("there are fewer lanes than numbers");
        numbers.insert(free);
        free
    }

    fn release_client_number(&self, number: u32) {
        let was_taken = lock(&self.client_numbers).remove(&number);
        assert!(was_taken, "client number {number} is released twice");
    }

    /// The key and the mutex of the open owner that a worker of `process` shares with other
    /// workers, possibly on other lanes; `None` if each worker has its own owner.
    fn shared_owner(&self, process: u64) -> Option<(u64, FifoMutex)> {
        let key = match self.owners {
            Owners::Worker => return None,
            Owners::Process => process,
            Owners::One => 0,
        };
        Some((key, lock(&self.owner_locks).entry(key).or_default().clone()))
    }
}

fn refused(reason: String) -> TargetError {
    TargetError::of(SCHEME.name, reason)
}

/// The error of a server that cannot be used.
fn cannot_use(minor: u32, at: SocketAddr, e: NfsError, deviations: &Deviations) -> TargetError {
    let why = match e {
        NfsError::Rpc(e) => explain_no_connection(deviations, e),
        NfsError::Status(_, Status::MinorVersMismatch) => {
            format!("{e}: it does not support this minor version, minorversion= chooses another")
        }
        e => e.to_string(),
    };
    refused(format!("NFS version 4.{minor} at {at}: {why}"))
}

/// Finds the work directory. A missing last component is created if the purpose is load.
pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
) -> Result<NfsTarget<Nfs4>, TargetError> {
    let url = Url::parse(url)?;
    let server = &url.server;
    let port = server.port.unwrap_or(NFS_PORT);
    let address = SocketAddr::new(server.resolve(SCHEME.name, port)?, port);
    let deviations = Arc::new(Deviations::default());
    let id = client_id();
    let probe_spec = ProbeSpec {
        address,
        who: server.credentials(),
        minor: url.minor,
        timeout: server.timeout,
        id: format!("{id} asks"),
        max_message_bytes: max_message_bytes(server),
        deviations: deviations.clone(),
    };
    let failed = |e| cannot_use(url.minor, address, e, &deviations);
    let mut probe = Probe::connect(&probe_spec).map_err(failed)?;
    let root = probe.root().map_err(failed)?;
    let (export, limits) = probe.export(root, server, &deviations)?;
    let work_dir = WorkDir::find(&mut probe, export, &place.dir, purpose)
        .map_err(|e| explain_work_dir_error(&deviations, e))?;
    probe.end();
    let relay = server.start_rtt_relay(SCHEME.name, address)?;
    let sizes = limits.sizes;
    let description = format!(
        "{}, {address}, version 4.{}, path {}, work directory {}, {}, {}",
        SCHEME.name,
        url.minor,
        server.path,
        place.dir.display(),
        state_description(&url),
        server.description(&sizes)
    );
    let client = ClientSpec {
        channel: server.channel(address, relay.as_ref(), sizes.read, false),
        minor: url.minor,
        id,
        slots: url.slots,
        max_message_bytes: probe_spec.max_message_bytes,
        lease: limits.lease,
        delegations: url.delegations,
        deviations,
    };
    let version_name = match url.minor {
        0 => "4.0",
        _ => "4.1",
    };
    let version = Nfs4 {
        client,
        probe: probe_spec,
        work_dir: WorkDirConfig {
            root: work_dir.dir,
            sizes,
            create: server.create,
            cache: server.cached(),
        },
        owners: url.owners,
        client_numbers: Mutex::default(),
        owner_locks: Mutex::default(),
        client_counts: ClientCounts::new(version_name, server.used_sizes(&sizes), url.slots),
    };
    Ok(NfsTarget {
        version: Arc::new(version),
        work_dir,
        description,
        connections: server.connections,
        lanes: server.lanes,
        added_rtt_relay: relay,
    })
}

/// The name of this client, different from the names of all other clients of the server.
fn client_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy().into_owned();
    let process = std::process::id();
    let random = RandomState::new().hash_one(process);
    format!("plimsoll {host} {process} {random:016x}")
}

/// Maximum message size in bytes.
fn max_message_bytes(server: &ServerUrl) -> u32 {
    let sizes = [server.read_size, server.write_size];
    let [read, write] = sizes.map(|size| size.unwrap_or(DEFAULT_MAX_TRANSFER_BYTES));
    read.max(write).max(MAX_LIST_BYTES) + MESSAGE_OVERHEAD_BYTES
}

/// Describes the server state of the clients: owners, slots and delegations.
fn state_description(url: &Url) -> String {
    let owners = match url.owners {
        Owners::Worker => "owners worker",
        Owners::Process => "owners process",
        Owners::One => "one owner",
    };
    let slots = match url.minor {
        0 => String::new(),
        _ => format!(", slots {}", url.slots),
    };
    let delegations = if url.delegations { ", delegations" } else { "" };
    format!("{owners}{slots}{delegations}")
}

impl NfsVersion for Nfs4 {
    type Handle = Handle;
    type Probe = Probe;
    type Backend = LaneClient;

    const NO_LOCKS: Option<&'static str> = None;

    fn probe(&self) -> Result<Probe, OpError> {
        Ok(Probe::connect(&self.probe)?)
    }

    fn deviations(&self) -> &Deviations {
        &self.client.deviations
    }

    fn client_counts(&self) -> &ClientCounts {
        &self.client_counts
    }

    fn lane_client(self: &Arc<Self>, lane: &Lane, spec: &SessionSpec) -> Rc<LaneClient> {
        Rc::new(LaneClient::new(lane, self, spec))
    }

    fn opener(client: &LaneClient, process: u64) -> Rc<OpenOwner> {
        client.owner(process)
    }
}
