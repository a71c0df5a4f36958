//! URLs of NFS targets: `nfs…://host[:port]/path?name=value&…`.

use super::cache::CacheModel;
use super::sizes::{DEFAULT_MAX_TRANSFER_BYTES, MESSAGE_OVERHEAD_BYTES, TransferSizes};
use crate::connect::TargetError;
use crate::url_parser::UrlParser;
use plimsoll_measure::{Nanos, NfsTransferSize};
use plimsoll_nfs::rpc::{ChannelSpec, Credentials};
use plimsoll_nfs::wan::{Link, MAX_RTT, Relay};
use plimsoll_plan::{parse_size, show_duration};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Default NFS port (RFC 1813, 2.1 and RFC 7530, 3.1).
pub(crate) const NFS_PORT: u16 = 2049;

/// Maximum number of connections of a lane.
const MAX_CONNECTIONS: u64 = 64;

/// Maximum size of a READ or WRITE, in bytes.
const MAX_TRANSFER_BYTES: u64 = 16 << 20;

/// Minimum of the reply size limit, in bytes: a server may return more of a directory than requested.
const MIN_MAX_REPLY_BYTES: usize = 2 << 20;

/// Minimum `timeo`: time without a reply after which a call is retransmitted.
const MIN_TIMEOUT: Duration = Duration::from_millis(100);

/// Maximum `timeo`.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum number of retransmissions of a call.
const MAX_RETRIES: u64 = 100;

/// Maximum time to find the reachable address of a server with several addresses.
const MAX_ADDRESS_PROBE: Duration = Duration::from_secs(3);

/// Lifetime of cached attributes without the option `actimeo`: the default of `acregmin` on Linux (nfs(5)).
const DEFAULT_ATTRIBUTE_LIFETIME: Duration = Duration::from_secs(3);

/// Options of both NFS versions.
pub(crate) const OPTIONS: [&str; 13] = [
    "actimeo",
    "added_rtt",
    "cache",
    "clients",
    "create",
    "gid",
    "nconnect",
    "retrans",
    "rsize",
    "sec",
    "timeo",
    "uid",
    "wsize",
];

/// Modes of creating files (RFC 1813, 3.3.8 and RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreateMode {
    /// Create mode with which a CREATE or OPEN of an existing file succeeds.
    Unchecked,
    /// CREATE or OPEN fails with `EEXIST` if the file exists.
    Guarded,
    /// Create mode with which a CREATE or OPEN of an existing file fails with `EEXIST`, unless an earlier transmission
    /// of the call created the file.
    Exclusive,
}

/// The parts of a URL that both NFS versions have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerUrl {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// The export or path, with the leading slash.
    pub(crate) path: String,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) connections: u32,
    /// Number of NFS clients per rank, each with a lane of its own; `None` for one client per processor.
    pub(crate) lanes: Option<usize>,
    pub(crate) read_size: Option<u32>,
    pub(crate) write_size: Option<u32>,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) create: CreateMode,
    /// Round-trip time added to the round-trip time of the network.
    pub(crate) added_rtt: Duration,
    pub(crate) cache: CacheModel,
    pub(crate) attribute_lifetime: Duration,
}

impl ServerUrl {
    /// Parses the URL of an NFS target. `path` names the part after the server in error messages. `other` takes the
    /// options `own` of one NFS version, and returns whether the version has the option.
    pub(crate) fn parse(
        text: &UrlParser<'_>,
        path: &str,
        own: &[&str],
        mut other: impl FnMut(&str, &str) -> Result<bool, TargetError>,
    ) -> Result<Self, TargetError> {
        let scheme = text.scheme;
        let form = format!("expected {scheme}://host[:port]/{path}?name=value&name=value");
        let (after_scheme, pairs) = text.parts();
        let Some(place) = after_scheme.strip_prefix("//") else {
            return Err(text.wrong(after_scheme, format!("there is no server: {form}")));
        };
        let Some(slash) = place.find('/') else {
            return Err(text.wrong(place, format!("there is no {path}: {form}")));
        };
        let (server, after) = place.split_at(slash);
        let (host, port) = host_and_port(text, server, path)?;
        let mut parsed = Self {
            host,
            port,
            path: after.into(),
            uid: None,
            gid: None,
            connections: 1,
            lanes: None,
            read_size: None,
            write_size: None,
            timeout: Duration::from_secs(10),
            retries: 2,
            create: CreateMode::Unchecked,
            added_rtt: Duration::ZERO,
            cache: CacheModel::None,
            attribute_lifetime: DEFAULT_ATTRIBUTE_LIFETIME,
        };
        let given = text.options(pairs)?;
        for (name, value) in &given {
            if !parsed.set(text, name, value)? && !other(name, value)? {
                let mut options = [&OPTIONS[..], own].concat();
                options.sort_unstable();
                return Err(text.unknown_option(name, &options));
            }
        }
        let has_lifetime = given.iter().any(|(name, _)| *name == "actimeo");
        if has_lifetime && parsed.cache == CacheModel::None {
            let reason = "actimeo is the lifetime of cached attributes: cache=attr caches them";
            return Err(text.wrong_option("actimeo", reason));
        }
        Ok(parsed)
    }

    /// Sets an option; returns `false` if the option is not in [`OPTIONS`].
    fn set(&mut self, text: &UrlParser<'_>, name: &str, value: &str) -> Result<bool, TargetError> {
        let any = 0..=u64::from(u32::MAX);
        match name {
            "uid" => self.uid = Some(text.number(name, value, any)?),
            "gid" => self.gid = Some(text.number(name, value, any)?),
            "clients" => self.lanes = text.lanes(name, value)?,
            "nconnect" => self.connections = text.number(name, value, 1..=MAX_CONNECTIONS)?,
            "rsize" => self.read_size = Some(transfer_size(text, name, value)?),
            "wsize" => self.write_size = Some(transfer_size(text, name, value)?),
            "retrans" => self.retries = text.number(name, value, 0..=MAX_RETRIES)?,
            "timeo" => {
                let range = (MIN_TIMEOUT..=MAX_TIMEOUT, "100ms to 10m");
                self.timeout = text.duration(name, value, range)?;
            }
            "added_rtt" => {
                let range = (Duration::ZERO..=MAX_RTT, "0ms to 10s");
                self.added_rtt = text.duration(name, value, range)?;
            }
            "actimeo" => {
                let range = (Duration::ZERO..=MAX_TIMEOUT, "at most 10m");
                self.attribute_lifetime = text.duration(name, value, range)?;
            }
            "cache" => {
                let models = [
                    ("none", CacheModel::None),
                    ("attr", CacheModel::Attributes),
                    ("open-to-close", CacheModel::OpenToClose),
                ];
                self.cache = text.word(name, value, &models)?;
            }
            "sec" => text.word(name, value, &[("sys", ())])?,
            "create" => {
                let modes = [
                    ("unchecked", CreateMode::Unchecked),
                    ("guarded", CreateMode::Guarded),
                    ("exclusive", CreateMode::Exclusive),
                ];
                self.create = text.word(name, value, &modes)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The address of the host. A host with several addresses, such as `localhost`, gets the first
    /// address at which a server listens on `port`, or the first address if no server listens.
    pub(crate) fn resolve(&self, scheme: &'static str, port: u16) -> Result<IpAddr, TargetError> {
        let found = (&*self.host, port).to_socket_addrs();
        let reason = match found.map(Iterator::collect::<Vec<_>>).as_deref() {
            Ok([]) => format!("host `{}` has no address", self.host),
            Ok([only]) => return Ok(only.ip()),
            Ok(all @ [first, ..]) => {
                let listens = |at: &&SocketAddr| {
                    TcpStream::connect_timeout(at, self.timeout.min(MAX_ADDRESS_PROBE)).is_ok()
                };
                return Ok(all.iter().find(listens).unwrap_or(first).ip());
            }
            Err(e) => format!("host `{}` cannot be found: {e}", self.host),
        };
        Err(TargetError::of(scheme, reason))
    }

    /// Starts a relay in this process if the URL adds a round-trip time.
    pub(crate) fn start_rtt_relay(
        &self,
        scheme: &'static str,
        to: SocketAddr,
    ) -> Result<Option<Relay>, TargetError> {
        if self.added_rtt.is_zero() {
            return Ok(None);
        }
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let relay = Relay::start(here, &[to], &Link::of_rtt(self.added_rtt));
        relay.map(Some).map_err(|e| {
            TargetError::of(scheme, format!("added_rtt: no relay can be started: {e}"))
        })
    }

    /// The cache model, and the lifetime of cached attributes in nanoseconds.
    pub(crate) fn cached(&self) -> (CacheModel, Nanos) {
        (self.cache, self.attribute_lifetime.as_nanos() as Nanos)
    }

    /// The connections of a lane to the server.
    pub(crate) fn channel(
        &self,
        address: SocketAddr,
        relay: Option<&Relay>,
        read_size: u32,
        may_retransmit_in_place: bool,
    ) -> ChannelSpec {
        ChannelSpec {
            address,
            relay: relay.map(Relay::address),
            credentials: self.credentials(),
            connections: self.connections,
            timeout: self.timeout.as_nanos() as u64,
            retries: self.retries,
            may_retransmit_in_place,
            max_reply_bytes: MIN_MAX_REPLY_BYTES.max((read_size + MESSAGE_OVERHEAD_BYTES) as usize),
            silence: None,
        }
    }

    /// The sizes of READ and WRITE that clients use, beside the sizes that the URL requests.
    pub(crate) fn used_sizes(&self, used: &TransferSizes) -> (NfsTransferSize, NfsTransferSize) {
        let beside = |bytes, requested: Option<u32>| NfsTransferSize {
            bytes,
            requested_bytes: requested.unwrap_or(DEFAULT_MAX_TRANSFER_BYTES),
        };
        (
            beside(used.read, self.read_size),
            beside(used.write, self.write_size),
        )
    }

    /// The last part of a target's description: transfers, connections, cache and added round-trip
    /// time.
    pub(crate) fn description(&self, sizes: &TransferSizes) -> String {
        let cache = match self.cache {
            CacheModel::None => None,
            CacheModel::Attributes => Some("attr"),
            CacheModel::OpenToClose => Some("open-to-close"),
        };
        let lifetime = self.attribute_lifetime;
        let cache = cache.map(|model| format!(", cache {model}, actimeo {lifetime:?}"));
        let rtt = (!self.added_rtt.is_zero()).then(|| {
            let rtt = show_duration(self.added_rtt);
            format!(", round trip +{rtt} (TCP relay: no slow start seen)")
        });
        format!(
            "rsize {}, wsize {}, nconnect {}{}{}",
            sizes.read,
            sizes.write,
            self.connections,
            cache.unwrap_or_default(),
            rtt.unwrap_or_default()
        )
    }

    /// The credentials of the calls: the user of this process, unless the URL names a user or
    /// group.
    pub(crate) fn credentials(&self) -> Credentials {
        let uname = rustix::system::uname();
        let own_uid = || rustix::process::geteuid().as_raw();
        let own_gid = || rustix::process::getegid().as_raw();
        Credentials::sys(
            &uname.nodename().to_string_lossy(),
            self.uid.unwrap_or_else(own_uid),
            self.gid.unwrap_or_else(own_gid),
        )
    }
}

/// Host and port; an IPv6 address is in brackets.
fn host_and_port(
    text: &UrlParser<'_>,
    server: &str,
    path: &str,
) -> Result<(String, Option<u16>), TargetError> {
    let (host, rest) = match server.strip_prefix('[') {
        Some(inner) => inner
            .split_once(']')
            .ok_or_else(|| text.wrong(server, "the bracket is not closed"))?,
        None => server.split_at(server.find(':').unwrap_or(server.len())),
    };
    if host.is_empty() {
        return Err(text.wrong(server, format!("there is no host before the {path}")));
    }
    let port = match rest.strip_prefix(':') {
        Some(port) => Some(text.port(port)?),
        None if rest.is_empty() => None,
        None => return Err(text.wrong(rest, "expected a colon and the port")),
    };
    Ok((host.into(), port))
}

/// Parses the option `rsize` or `wsize`: the maximum size of a READ or WRITE, 512 bytes to 16 MiB.
fn transfer_size(text: &UrlParser<'_>, name: &str, value: &str) -> Result<u32, TargetError> {
    let size = parse_size(value).map_err(|e| text.wrong(value, e))?;
    match u32::try_from(size) {
        Ok(n) if (512..=MAX_TRANSFER_BYTES).contains(&size) => Ok(n),
        _ => Err(text.wrong_value(name, value, "512 to 16m")),
    }
}
