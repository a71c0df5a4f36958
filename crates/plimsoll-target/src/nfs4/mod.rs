//! Files of a server, by NFS version 4 (4.0 and 4.1) and without a client of the kernel.
//!
//! Every operation goes to the server, unless `cache` has what it asks for: nothing else is kept but
//! the handles of directories, which a path leads through. What an operation of a workload becomes is
//! in `backend`. Each lane is a client of its own to the server.

mod backend;
mod data;
mod lane_client;
mod names;
mod probe;
mod url;

use crate::error::OpError;
use crate::long_replies::LongReplies;
use crate::nfs::cache::CacheModel;
use crate::nfs::deviation_report;
use crate::nfs::session::NfsSession;
use crate::nfs::url::CreateMode;
use crate::nfs::work_dir::{MESSAGE_OVERHEAD_BYTES, MIN_MAX_REPLY_BYTES, WorkDir};
use crate::registry::{Purpose, TargetError};
use crate::session::Target;
use crate::session_types::{SessionSpec, Space};
use lane_client::LaneClient;
pub(crate) use lane_client::row_names;
use plimsoll_lane::{Lane, LaneKind};
use plimsoll_measure::Nanos;
use plimsoll_nfs::rpc::{ChannelSpec, Deviations, RpcError};
use plimsoll_nfs::v4::attributes::{Bitmap, number};
use plimsoll_nfs::v4::operations::{Access, GetAttr, PutFh, Remove, access};
use plimsoll_nfs::v4::types::{Handle, Status, Text};
use plimsoll_nfs::v4::{ClientSpec, FifoMutex, NfsError};
use plimsoll_plan::{OpKind, WorkDirSpec};
use plimsoll_wan::Relay;
use probe::{ProbeConnector, Sizes};
use rustix::io::Errno;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use url::{Owners, SCHEME, Url};

/// Port of NFS (RFC 7530, 3.1).
const NFS_PORT: u16 = 2049;

/// What sessions of all lanes are made with.
pub(crate) struct Config {
    client: ClientSpec,
    /// The work directory; of one that is missing, the directory that would hold it.
    root: Handle,
    sizes: Sizes,
    create: CreateMode,
    /// What is kept, and how long attributes count, in nanoseconds.
    cache: (CacheModel, Nanos),
    owners: Owners,
    /// Numbers of the clients that there are now.
    numbers: Mutex<BTreeSet<u32>>,
    /// Turns of the owners that workers share, by process.
    turns: Mutex<HashMap<u64, FifoMutex>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Config {
    /// The lowest number that no client has: a client that follows another on the same lane is
    /// the same to the server, started anew.
    fn take_number(&self) -> u32 {
        let mut numbers = lock(&self.numbers);
        let free = (0..).find(|n| !numbers.contains(n)).unwrap_or(u32::MAX);
        numbers.insert(free);
        free
    }

    fn give_number(&self, number: u32) {
        lock(&self.numbers).remove(&number);
    }

    /// Which owner a worker of a process is, if it shares one, and its turns, which all lanes
    /// have in common.
    fn shared_owner(&self, process: u64) -> Option<(u64, FifoMutex)> {
        let key = match self.owners {
            Owners::Worker => return None,
            Owners::Process => process,
            Owners::One => 0,
        };
        Some((key, lock(&self.turns).entry(key).or_default().clone()))
    }
}

/// A work directory on a server.
pub(crate) struct Nfs4 {
    /// Passes on what is sent, later.
    _added_rtt_relay: Option<Relay>,
    config: Arc<Config>,
    description: String,
    /// Where the work directory is to be, for making and removing it.
    parent: Option<(Handle, Vec<u8>)>,
    exists: bool,
    created: bool,
    asker: ProbeConnector,
}

fn of_nfs(e: NfsError) -> OpError {
    OpError(e.errno())
}

/// What an error says; of a reply that cannot be decoded, which one and where.
fn error_text(e: NfsError, deviations: &Deviations) -> String {
    let malformed = match e {
        NfsError::Rpc(RpcError::BadResult(_)) => deviations.malformed().pop(),
        _ => None,
    };
    malformed.unwrap_or_else(|| e.to_string())
}

/// Why a server cannot be used.
fn cannot_use(url: &Url, at: SocketAddr, e: NfsError, deviations: &Deviations) -> TargetError {
    let minor = url.minor;
    let hint = match e {
        NfsError::Rpc(RpcError::Connection(Errno::CONNREFUSED)) => ": nothing listens there",
        NfsError::Rpc(RpcError::NoReply(_) | RpcError::BadResult(_)) => ": is this its port?",
        NfsError::Status(_, Status::MinorVersMismatch) => {
            ": it does not speak this minor version, minor= gives another"
        }
        _ => "",
    };
    TargetError::Option {
        target: SCHEME,
        reason: format!(
            "NFS version 4.{minor} at {at}: {}{hint}",
            error_text(e, deviations)
        ),
    }
}

impl Nfs4 {
    /// Finds the work directory, of which the last component is made if it is missing.
    pub(crate) fn connect(
        url: &str,
        place: &WorkDirSpec,
        purpose: Purpose,
    ) -> Result<Self, TargetError> {
        let url = Url::parse(url)?;
        let port = url.server.port.unwrap_or(NFS_PORT);
        let address = SocketAddr::new(url.server.resolve(SCHEME, port)?, port);
        let id = client_id();
        let deviations = Arc::new(Deviations::default());
        let asker = ProbeConnector {
            address,
            who: url.server.credentials(),
            minor: url.minor,
            patience: url.server.timeout,
            id: format!("{id} asks"),
            longest: Sizes::longest(&url),
            deviations: deviations.clone(),
        };
        let asking = asker.ask();
        let mut asking = asking.map_err(|e| cannot_use(&url, address, e, &deviations))?;
        let (root, sizes) = probe::root(&mut asking, &url, address, &deviations)?;
        let found = WorkDir::find(&mut asking, root, &place.dir, purpose);
        let found = found.map_err(|e| deviation_report::explain_work_dir_error(&deviations, e))?;
        asking.end();
        let far = url.server.start_rtt_relay(SCHEME, address)?;
        let client = ClientSpec {
            channel: ChannelSpec {
                address,
                relay: far.as_ref().map(Relay::address),
                credentials: asker.who.clone(),
                connections: url.server.connections,
                timeout: url.server.timeout.as_nanos() as u64,
                retries: url.server.retries,
                may_retransmit_in_place: false,
                max_reply_bytes: (sizes.read as usize + MESSAGE_OVERHEAD_BYTES as usize)
                    .max(MIN_MAX_REPLY_BYTES),
                silence: None,
            },
            minor: url.minor,
            id,
            slots: url.slots,
            max_message_bytes: asker.longest,
            lease: sizes.lease,
            delegations: url.delegations,
            deviations,
        };
        let said = description(&url, address, place, &sizes) + &url.server.rtt_description();
        let config = Config {
            client,
            root: found.dir,
            sizes,
            create: url.server.create,
            cache: url.server.cached(),
            owners: url.owners,
            numbers: Mutex::default(),
            turns: Mutex::default(),
        };
        Ok(Self {
            _added_rtt_relay: far,
            config: Arc::new(config),
            description: said,
            parent: found.parent,
            exists: found.exists,
            created: found.created,
            asker,
        })
    }
}

/// What no other client of the server is called.
fn client_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    let uname = rustix::system::uname();
    let host = uname.nodename().to_string_lossy().into_owned();
    let process = std::process::id();
    let more = RandomState::new().hash_one(process);
    format!("plimsoll {host} {process} {more:016x}")
}

fn description(url: &Url, address: SocketAddr, place: &WorkDirSpec, sizes: &Sizes) -> String {
    let owners = match url.owners {
        Owners::Worker => "owners worker",
        Owners::Process => "owners process",
        Owners::One => "one owner",
    };
    let slots = match url.minor {
        0 => String::new(),
        _ => format!(", slots {}", url.slots),
    };
    let deleg = if url.delegations { ", delegations" } else { "" };
    format!(
        "{SCHEME}, {address}, version 4.{}, path {}, work directory {}, {owners}{slots}{deleg}, rsize {}, \
         wsize {}, nconnect {}{}",
        url.minor,
        url.server.path,
        place.dir.display(),
        sizes.read,
        sizes.write,
        url.server.connections,
        url.server.cache_description()
    )
}

impl Target for Nfs4 {
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
        let removed = self.asker.ask_one(
            |c| {
                c.add::<PutFh>(dir).add::<Remove>(&Text(name));
            },
            |r| {
                r.skip::<PutFh>()?;
                r.skip::<Remove>()
            },
        );
        removed.map_err(of_nfs)
    }

    fn writable(&self) -> Result<(), OpError> {
        let wanted = access::MODIFY | access::EXTEND | access::LOOKUP;
        let granted = self.asker.ask_one(
            |c| {
                c.add::<PutFh>(&self.config.root).add::<Access>(&wanted);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.get::<Access>()
            },
        );
        match granted.map_err(of_nfs)?.granted & wanted == wanted {
            true => Ok(()),
            false => Err(OpError(Errno::ACCESS)),
        }
    }

    fn space(&self) -> Result<Option<Space>, OpError> {
        use number::{FILES_AVAILABLE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_TOTAL};
        let wanted = Bitmap::of(&[FILES_AVAILABLE, FILES_TOTAL, SPACE_AVAILABLE, SPACE_TOTAL]);
        let said = self.asker.ask_one(
            |c| {
                c.add::<PutFh>(&self.config.root).add::<GetAttr>(&wanted);
            },
            |r| {
                r.skip::<PutFh>()?;
                r.get::<GetAttr>()
            },
        );
        let said = said.map_err(of_nfs)?;
        // A server that does not know says 0 of everything, or nothing.
        let known = said.space_available.filter(|_| said.space_total != Some(0));
        Ok(known.map(|bytes| Space {
            bytes,
            inodes: said
                .files_available
                .filter(|_| said.files_total.is_some_and(|n| n > 0)),
            block: 4096,
        }))
    }

    fn unsupported_reason(&self, kind: OpKind) -> Option<&'static str> {
        match kind {
            OpKind::MmapRead | OpKind::MmapWrite => {
                Some("files are mapped by the kernel's client, which is not used")
            }
            _ => None,
        }
    }

    fn explain(&self, e: OpError) -> String {
        deviation_report::explain_io_error(&self.asker.deviations, e)
    }

    fn take_long_replies(&self) -> Vec<LongReplies> {
        deviation_report::drain_long_replies(&self.asker.deviations)
    }

    fn uncacheable_reason(&self) -> Option<&'static str> {
        Some(crate::nfs::NEVER_COLD)
    }

    fn session(&self, lane: &Lane, spec: &SessionSpec) -> Result<NfsSession<LaneClient>, OpError> {
        let number = Arc::as_ptr(&self.config) as usize;
        let local = lane.lane_shared(number, || LaneClient::new(lane, &self.config, spec));
        let owner = local.owner(spec.process);
        NfsSession::new(local, owner, spec)
    }
}
