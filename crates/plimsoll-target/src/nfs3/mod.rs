//! The target `nfs3`: files of a server by NFS version 3, without a kernel client.
//!
//! Every operation calls the server unless the option `cache` is given and the cache has the result. Without `cache`,
//! the client keeps only the handles of the directories on located paths. The module `backend` maps operations to
//! calls.

mod backend;
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
use crate::nfs::sizes::{TransferSizes, stated_max, transfer_size};
use crate::nfs::target::{NfsTarget, NfsVersion};
use crate::nfs::url::{NFS_PORT, ServerUrl};
use crate::nfs::work_dir::WorkDir;
use crate::scheme::{FileStorage, TargetScheme};
use crate::session_types::SessionSpec;
use lane_client::LaneClient;
use plimsoll_lane::Lane;
use plimsoll_nfs::mount;
use plimsoll_nfs::portmap;
use plimsoll_nfs::rpc::{BlockingTransport, ChannelSpec, Credentials, Deviations, RpcError};
use plimsoll_nfs::v3::{self, FsInfo, FsInfoDone, Handle, NfsError};
use plimsoll_plan::WorkDirSpec;
use probe::Probe;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

pub(crate) const SCHEME: TargetScheme = TargetScheme {
    name: "nfs3",
    form: "nfs3://host[:port]/export",
    storage: FileStorage::Server,
    takes_events: false,
    options: &[&crate::nfs::url::OPTIONS, &url::OWN_OPTIONS],
    row_names: lane_client::row_names,
};

pub(crate) fn check_url(url: &str) -> Result<(), TargetError> {
    Url::parse(url).map(drop)
}

/// The connection parameters of a server, for lanes and for requests outside the load.
pub(crate) struct Nfs3 {
    channel: ChannelSpec,
    timeout: Duration,
    work_dir: WorkDirConfig<Handle>,
    deviations: Arc<Deviations>,
    client_counts: Arc<ClientCounts>,
}

fn refused(reason: String) -> TargetError {
    TargetError::of(SCHEME.name, reason)
}

/// The error of a connection to a service that failed.
fn no_connection(what: &str, at: SocketAddr, e: RpcError, deviations: &Deviations) -> TargetError {
    let why = explain_no_connection(deviations, e);
    refused(format!("{what} at {at}: {why}"))
}

/// Mounts the export and finds the work directory. A missing last component is created if the
/// purpose is load.
pub(crate) fn connect(
    url: &str,
    place: &WorkDirSpec,
    purpose: Purpose,
) -> Result<NfsTarget<Nfs3>, TargetError> {
    let Url { server, mount_port } = Url::parse(url)?;
    let known_port = server.port.or(mount_port);
    let host = server.resolve(SCHEME.name, known_port.unwrap_or(portmap::PORT))?;
    let address = SocketAddr::new(host, nfs_port(&server, host));
    let mount_port = match mount_port {
        Some(port) => port,
        None => mapped_mount_port(host, server.timeout)?,
    };
    let mount_address = SocketAddr::new(host, mount_port);
    let who = server.credentials();
    let deviations = Arc::new(Deviations::default());
    let export = mounted(&server, &who, mount_address, &deviations)?;
    let failed = |e| no_connection("NFS version 3", address, e, &deviations);
    let mut probe =
        Probe::connect(address, &who, server.timeout, deviations.clone()).map_err(failed)?;
    let info = probe.call::<FsInfo, _>(&export, |i| i);
    let info = info.map_err(|e| match e {
        NfsError::Rpc(e) => failed(e),
        NfsError::Status(status) => refused(format!(
            "the export `{}` cannot be used: {status}",
            server.path
        )),
    })?;
    let work_dir = WorkDir::find(&mut probe, export, &place.dir, purpose)
        .map_err(|e| explain_work_dir_error(&deviations, e))?;
    let sizes = transfer_sizes(&server, &info);
    let relay = server.start_rtt_relay(SCHEME.name, address)?;
    let description = format!(
        "{}, {address}, export {}, work directory {}, {}",
        SCHEME.name,
        server.path,
        place.dir.display(),
        server.description(&sizes)
    );
    let version = Nfs3 {
        channel: server.channel(address, relay.as_ref(), sizes.read, true),
        timeout: server.timeout,
        work_dir: WorkDirConfig {
            root: work_dir.dir,
            sizes,
            create: server.create,
            cache: server.cached(),
        },
        deviations,
        client_counts: ClientCounts::new("3", server.used_sizes(&sizes), 0),
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

/// The NFS port: from the URL, else from the port mapper, else the default port.
fn nfs_port(server: &ServerUrl, host: IpAddr) -> u16 {
    server.port.unwrap_or_else(|| {
        let mapped = portmap::port_of(host, v3::PROGRAM, v3::VERSION, server.timeout);
        mapped.ok().flatten().unwrap_or(NFS_PORT)
    })
}

/// The MOUNT port that the port mapper reports.
fn mapped_mount_port(host: IpAddr, timeout: Duration) -> Result<u16, TargetError> {
    let reason = match portmap::port_of(host, mount::PROGRAM, mount::VERSION, timeout) {
        Ok(Some(port)) => return Ok(port),
        Ok(None) => "the server's port mapper has no entry for MOUNT version 3".to_owned(),
        Err(e) => {
            let at = SocketAddr::new(host, portmap::PORT);
            format!("the port mapper at {at}: {e}")
        }
    };
    Err(refused(format!(
        "{reason}; mountport= gives the port of MOUNT"
    )))
}

/// The handle of the export's root.
fn mounted(
    server: &ServerUrl,
    who: &Credentials,
    at: SocketAddr,
    deviations: &Deviations,
) -> Result<Handle, TargetError> {
    let failed = |e| no_connection("MOUNT version 3", at, e, deviations);
    let mut transport = BlockingTransport::connect(at, server.timeout).map_err(failed)?;
    let export = server.path.as_bytes();
    mount::mount(&mut transport, who, export, deviations).map_err(|e| match e {
        mount::MountError::Rpc(e) => failed(e),
        e => refused(format!("export `{}` of {}: {e}", server.path, server.host)),
    })
}

fn transfer_sizes(server: &ServerUrl, info: &FsInfoDone) -> TransferSizes {
    TransferSizes {
        read: transfer_size(server.read_size, Some(info.read_max.into())),
        write: transfer_size(server.write_size, Some(info.write_max.into())),
        list: stated_max(Some(info.dir_preferred.into())).clamp(4 << 10, 64 << 10),
    }
}

impl NfsVersion for Nfs3 {
    type Handle = Handle;
    type Probe = Probe;
    type Backend = LaneClient;

    const NO_LOCKS: Option<&'static str> =
        Some("NFSv3 locking uses a separate protocol, NLM, which is not supported");

    fn probe(&self) -> Result<Probe, OpError> {
        let ChannelSpec {
            address,
            credentials,
            ..
        } = &self.channel;
        let probe = Probe::connect(*address, credentials, self.timeout, self.deviations.clone());
        Ok(probe.map_err(NfsError::Rpc)?)
    }

    fn deviations(&self) -> &Deviations {
        &self.deviations
    }

    fn client_counts(&self) -> &ClientCounts {
        &self.client_counts
    }

    fn lane_client(self: &Arc<Self>, lane: &Lane, spec: &SessionSpec) -> Rc<LaneClient> {
        Rc::new(LaneClient::new(lane, self, spec))
    }

    fn opener(_: &LaneClient, _: u64) {}
}
