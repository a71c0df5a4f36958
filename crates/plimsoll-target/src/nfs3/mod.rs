//! Files of a server, by NFS version 3 and without a client of the kernel.
//!
//! Every operation goes to the server, unless `cache` has what it asks for: nothing else is kept but
//! the handles of directories, which a path leads through. What an operation of a workload becomes is
//! in `backend`.

mod backend;
mod data;
mod lane_client;
mod names;
mod url;

use crate::error::OpError;
use crate::long_replies::LongReplies;
use crate::nfs::cache::CacheModel;
use crate::nfs::deviation_report;
use crate::nfs::session::NfsSession;
use crate::nfs::url::CreateMode;
use crate::nfs::work_dir::{
    DEFAULT_MAX_TRANSFER_BYTES, DIR_MODE, DirProbe, MESSAGE_OVERHEAD_BYTES, MIN_MAX_REPLY_BYTES,
    WorkDir,
};
use crate::registry::{Purpose, TargetError};
use crate::session::Target;
use crate::session_types::{SessionSpec, Space};
use lane_client::LaneClient;
pub(crate) use lane_client::row_names;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_measure::Nanos;
use plimsoll_nfs::mount;
use plimsoll_nfs::portmap;
use plimsoll_nfs::rpc::{BlockingTransport, ChannelSpec, Credentials, Deviations, RpcError};
use plimsoll_nfs::v3::{
    self, Access, AccessArgs, Entry, FileType, FsInfo, FsInfoDone, FsStat, Handle, Lookup, MkDir,
    MkDirArgs, Name, NfsError, RmDir, Setting, access, call_blocking,
};
use plimsoll_plan::{OpKind, WorkDirSpec};
use plimsoll_wan::Relay;
use rustix::io::Errno;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use url::{SCHEME, Url};

/// Port of NFS where no port mapper says another (RFC 1813, 2.1).
const NFS_PORT: u16 = 2049;

/// What sessions of all lanes are made with.
pub(crate) struct Config {
    channel: ChannelSpec,
    /// The work directory; of one that is missing, the directory that would hold it.
    root: Handle,
    read_size: u32,
    write_size: u32,
    list_size: u32,
    create: CreateMode,
    /// What is kept, and how long attributes count, in nanoseconds.
    cache: (CacheModel, Nanos),
    /// How the server's replies deviate from the protocol.
    deviations: Arc<Deviations>,
}

/// A work directory below an export.
pub(crate) struct Nfs3 {
    /// Passes on what is sent, later.
    _added_rtt_relay: Option<Relay>,
    config: Arc<Config>,
    description: String,
    /// Where the work directory is to be, for making and removing it.
    parent: Option<(Handle, Vec<u8>)>,
    exists: bool,
    created: bool,
    caller: Mutex<ProbeClient>,
}

/// A connection for questions besides the load.
struct ProbeClient {
    address: SocketAddr,
    who: Credentials,
    patience: Duration,
    connection: Option<BlockingTransport>,
    deviations: Arc<Deviations>,
}

impl ProbeClient {
    fn call<P: v3::Procedure, R>(
        &mut self,
        args: &P::Args<'_>,
        take: impl FnOnce(P::ResOk<'_>) -> R,
    ) -> Result<R, NfsError> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => BlockingTransport::connect(self.address, self.patience)?,
        };
        let done = call_blocking::<P, R>(&mut connection, &self.who, args, &self.deviations, take);
        // A connection that broke is made anew for the next call.
        if !matches!(done, Err(NfsError::Rpc(_))) {
            self.connection = Some(connection);
        }
        done
    }
}

fn of_nfs(e: NfsError) -> OpError {
    OpError(e.errno())
}

/// Why there is no connection to a server.
fn no_connection(what: &str, at: SocketAddr, e: &RpcError, deviations: &Deviations) -> TargetError {
    let hint = match e {
        RpcError::Connection(Errno::CONNREFUSED) => ": nothing listens there",
        RpcError::NoReply(_) | RpcError::BadResult(_) => ": is this its port?",
        _ => "",
    };
    let why = match e {
        RpcError::BadResult(_) => deviations.malformed().pop(),
        _ => None,
    };
    let why = why.unwrap_or_else(|| e.to_string());
    TargetError::Option {
        target: SCHEME,
        reason: format!("{what} at {at}: {why}{hint}"),
    }
}

impl Nfs3 {
    /// Mounts the export and finds the work directory, of which the last component is made if
    /// it is missing.
    pub(crate) fn connect(
        url: &str,
        place: &WorkDirSpec,
        purpose: Purpose,
    ) -> Result<Self, TargetError> {
        let url = Url::parse(url)?;
        let known = url.server.port.or(url.mount_port);
        let host = url.server.resolve(SCHEME, known.unwrap_or(portmap::PORT))?;
        let who = url.server.credentials();
        let (nfs, mount_at) = ports(&url, host)?;
        let deviations = Arc::new(Deviations::default());
        let export = mounted(&url, &who, mount_at, &deviations)?;
        let mut caller = ProbeClient {
            address: nfs,
            who: who.clone(),
            patience: url.server.timeout,
            connection: None,
            deviations: deviations.clone(),
        };
        let info = caller.call::<FsInfo, _>(&export, |i| i);
        let info = info.map_err(|e| match e {
            NfsError::Rpc(e) => no_connection("NFS version 3", nfs, &e, &deviations),
            NfsError::Status(status) => TargetError::Option {
                target: SCHEME,
                reason: format!("the export `{}` cannot be used: {status}", url.server.path),
            },
        })?;
        let found = WorkDir::find(&mut caller, export, &place.dir, purpose);
        let found = found.map_err(|e| deviation_report::explain_work_dir_error(&deviations, e))?;
        let sizes = Sizes::of(&url, &info);
        let far = url.server.start_rtt_relay(SCHEME, nfs)?;
        let config = Config {
            channel: ChannelSpec {
                address: nfs,
                relay: far.as_ref().map(Relay::address),
                credentials: who,
                connections: url.server.connections,
                timeout: url.server.timeout.as_nanos() as u64,
                retries: url.server.retries,
                may_retransmit_in_place: true,
                max_reply_bytes: (sizes.read as usize + MESSAGE_OVERHEAD_BYTES as usize)
                    .max(MIN_MAX_REPLY_BYTES),
                silence: None,
            },
            root: found.dir,
            read_size: sizes.read,
            write_size: sizes.write,
            list_size: sizes.list,
            create: url.server.create,
            cache: url.server.cached(),
            deviations,
        };
        let said = format!(
            "{SCHEME}, {nfs}, export {}, work directory {}, rsize {}, wsize {}, nconnect {}{}",
            url.server.path,
            place.dir.display(),
            sizes.read,
            sizes.write,
            url.server.connections,
            url.server.cache_description()
        ) + &url.server.rtt_description();
        Ok(Self {
            _added_rtt_relay: far,
            config: Arc::new(config),
            description: said,
            parent: found.parent,
            exists: found.exists,
            created: found.created,
            caller: Mutex::new(caller),
        })
    }

    fn caller(&self) -> MutexGuard<'_, ProbeClient> {
        self.caller.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where NFS and MOUNT listen: as the URL says, or else as the port mapper does.
fn ports(url: &Url, host: IpAddr) -> Result<(SocketAddr, SocketAddr), TargetError> {
    let ask = |program, version| portmap::port_of(host, program, version, url.server.timeout);
    let nfs = match url.server.port {
        Some(port) => port,
        // A server of which nothing can be asked listens where all do.
        None => ask(v3::PROGRAM, v3::VERSION)
            .ok()
            .flatten()
            .unwrap_or(NFS_PORT),
    };
    let mount_port = match url.mount_port {
        Some(port) => port,
        None => {
            let reason = match ask(mount::PROGRAM, mount::VERSION) {
                Ok(Some(port)) => return Ok((at(host, nfs), at(host, port))),
                Ok(None) => "the server's port mapper knows no MOUNT version 3".to_owned(),
                Err(e) => format!("the port mapper at {}: {e}", at(host, portmap::PORT)),
            };
            return Err(TargetError::Option {
                target: SCHEME,
                reason: format!("{reason}; mountport= gives the port of MOUNT"),
            });
        }
    };
    Ok((at(host, nfs), at(host, mount_port)))
}

fn at(host: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(host, port)
}

/// The root of the export.
fn mounted(
    url: &Url,
    who: &Credentials,
    to: SocketAddr,
    deviations: &Deviations,
) -> Result<Handle, TargetError> {
    let failed = |e: &RpcError| no_connection("MOUNT version 3", to, e, deviations);
    let mut caller = BlockingTransport::connect(to, url.server.timeout).map_err(|e| failed(&e))?;
    let export = url.server.path.as_bytes();
    mount::mount(&mut caller, who, export, deviations).map_err(|e| match e {
        mount::MountError::Rpc(e) => failed(&e),
        e => TargetError::Option {
            target: SCHEME,
            reason: format!("export `{}` of {}: {e}", url.server.path, url.server.host),
        },
    })
}

/// Bytes of transfers: the smaller of what both sides want.
struct Sizes {
    read: u32,
    write: u32,
    list: u32,
}

impl Sizes {
    fn of(url: &Url, info: &FsInfoDone) -> Self {
        // A server that says nothing takes what every one does.
        let most = |said: u32| if said == 0 { 8192 } else { said };
        Self {
            read: url
                .server
                .read_size
                .unwrap_or(DEFAULT_MAX_TRANSFER_BYTES)
                .min(most(info.read_max)),
            write: url
                .server
                .write_size
                .unwrap_or(DEFAULT_MAX_TRANSFER_BYTES)
                .min(most(info.write_max)),
            list: most(info.dir_preferred).clamp(4 << 10, 64 << 10),
        }
    }
}

impl DirProbe for ProbeClient {
    type Handle = Handle;

    fn look_up(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let entry = Entry {
            dir,
            name: Name(name),
        };
        let found = self.call::<Lookup, _>(&entry, |f| (f.object, f.attributes));
        let (object, attributes) = found.map_err(of_nfs)?;
        let kind = match attributes {
            Some(attributes) => attributes.kind,
            None => {
                let asked = self.call::<v3::GetAttr, _>(&object, |a| a.kind);
                asked.map_err(of_nfs)?
            }
        };
        Ok((object, kind == FileType::Directory))
    }

    fn make_dir(&mut self, dir: Handle, name: &[u8]) -> Result<(Handle, bool), OpError> {
        let set = Setting {
            mode: Some(DIR_MODE),
            ..Setting::NOTHING
        };
        let at = Entry {
            dir,
            name: Name(name),
        };
        let made = self.call::<MkDir, _>(&MkDirArgs { at, set }, |m| m.object);
        match made.map_err(of_nfs)? {
            Some(object) => Ok((object, true)),
            // A server need not say what it has made.
            None => self.look_up(dir, name),
        }
    }
}

impl Target for Nfs3 {
    type Session = NfsSession<LaneClient>;

    fn describe(&self) -> String {
        self.description.clone()
    }

    fn lane_kind(&self) -> LaneKind {
        LaneKind::Reactor
    }

    fn exists(&self) -> bool {
        self.exists
    }

    fn created_work_dir(&self) -> bool {
        self.created
    }

    fn remove_work_dir(&self) -> Result<(), OpError> {
        let Some((dir, name)) = &self.parent else {
            return Err(OpError(Errno::BUSY));
        };
        let entry = Entry {
            dir: *dir,
            name: Name(name),
        };
        let mut caller = self.caller();
        // A whole run lies between: the server may have been started anew meanwhile.
        caller.connection = None;
        caller.call::<RmDir, _>(&entry, |_| ()).map_err(of_nfs)
    }

    fn writable(&self) -> Result<(), OpError> {
        let wanted = access::MODIFY | access::EXTEND | access::LOOKUP;
        let args = AccessArgs {
            object: self.config.root,
            wanted,
        };
        let granted = self.caller().call::<Access, _>(&args, |a| a.granted);
        match granted.map_err(of_nfs)? & wanted == wanted {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        let root = self.config.root;
        let said = self
            .caller()
            .call::<FsStat, _>(&root, |s| s)
            .map_err(of_nfs)?;
        // A server that does not know says 0 of everything.
        Ok((said.total_bytes > 0).then_some(Space {
            bytes: said.available_bytes,
            inodes: (said.total_files > 0).then_some(said.available_files),
            block: 4096,
        }))
    }

    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        match kind {
            OpKind::Lock => Some("NFSv3 locks by another protocol, NLM, which is not spoken"),
            OpKind::MmapRead | OpKind::MmapWrite => {
                Some("files are mapped by the kernel's client, which is not used")
            }
            _ => None,
        }
    }

    fn explain(&self, e: OpError) -> String {
        deviation_report::explain_io_error(&self.config.deviations, e)
    }

    fn take_long_replies(&self) -> Vec<LongReplies> {
        deviation_report::drain_long_replies(&self.config.deviations)
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some(crate::nfs::NEVER_COLD)
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<NfsSession<LaneClient>, OpError> {
        let number = Arc::as_ptr(&self.config) as usize;
        let local = lane.lane_shared(number, || LaneClient::new(lane, &self.config, spec));
        NfsSession::new(local, (), spec)
    }
}
