//! What URLs of NFS targets have in common: `nfs…://host[:port]/path?name=value&…`.

use crate::nfs::cache::CacheModel;
use crate::registry::TargetError;
use plimsoll_nfs::rpc::Credentials;
use plimsoll_plan::{parse_duration, parse_size, show_duration};
use plimsoll_wan::{Link, MAX_RTT, Relay};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::time::Duration;

/// Most connections of a lane.
const MAX_CONNECTIONS: u64 = 64;

/// Most bytes of a READ or WRITE that may be asked for.
const MAX_TRANSFER_BYTES: u64 = 16 << 20;

/// Longest time without an answer before a call is sent again.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Most times that a call is sent again.
const MAX_RETRIES: u64 = 100;

/// Longest look whether one of several addresses is the server's.
const MAX_ADDRESS_PROBE: Duration = Duration::from_secs(3);

/// How long attributes that are kept count, unless the URL says.
const DEFAULT_ATTRIBUTE_LIFETIME: Duration = Duration::from_secs(3);

/// Options that every URL may have.
pub(crate) const OPTIONS: [&str; 12] = [
    "actimeo",
    "added_rtt",
    "cache",
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

/// Former names of options, which are read as the present ones.
const FORMER_NAMES: [(&str, &str); 4] = [
    ("deleg", "delegations"),
    ("minor", "minorversion"),
    ("owners", "open_owner"),
    ("rtt", "added_rtt"),
];

/// The present name of an option of the targets `nfs3` and `nfs4`, whatever version of Plimsoll a URL was written for.
#[must_use]
pub fn present_option_name(name: &str) -> &str {
    let former = FORMER_NAMES.iter().find(|(former, _)| *former == name);
    former.map_or(name, |(_, present)| present)
}

/// How files are made (RFC 1813, 3.3.8 and RFC 7530, 16.16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CreateMode {
    /// One that is there is opened.
    Unchecked,
    /// One that is there is found by failing first.
    Guarded,
    /// The same, so that a request that is sent twice makes one file.
    Exclusive,
}

/// What every URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    /// What follows the server, with its slash.
    pub(crate) path: String,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) connections: u32,
    pub(crate) read_size: Option<u32>,
    pub(crate) write_size: Option<u32>,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) create: CreateMode,
    /// Time of a round trip in addition to the network's own; none if zero.
    pub(crate) rtt: Duration,
    pub(crate) cache: CacheModel,
    /// How long attributes count that are kept.
    pub(crate) attributes_for: Duration,
}

/// A URL that is being read.
pub(crate) struct UrlParser<'a> {
    pub(crate) scheme: &'static str,
    pub(crate) url: &'a str,
}

impl<'a> UrlParser<'a> {
    /// What is wrong with a part of the URL, with a picture of the place.
    pub(crate) fn wrong(&self, part: &str, reason: impl Into<String>) -> TargetError {
        TargetError::Url {
            target: self.scheme,
            reason: reason.into(),
            url: self.url.into(),
            at: self.place(part),
        }
    }

    /// Where a part of the URL, which is a slice of it, is.
    fn place(&self, part: &str) -> Range<usize> {
        let begin = (part.as_ptr() as usize).wrapping_sub(self.url.as_ptr() as usize);
        let begin = begin.min(self.url.len());
        begin..(begin + part.len()).min(self.url.len())
    }

    pub(crate) fn port(&self, text: &str) -> Result<u16, TargetError> {
        let port = text.parse().ok().filter(|p| *p != 0);
        port.ok_or_else(|| self.wrong(text, format!("`{text}` is no port: expected 1 to 65535")))
    }

    pub(crate) fn number(
        &self,
        name: &str,
        text: &str,
        range: Range<u64>,
    ) -> Result<u64, TargetError> {
        let n = text.parse().ok().filter(|n| range.contains(n));
        n.ok_or_else(|| {
            let (from, to) = (range.start, range.end - 1);
            self.wrong(text, format!("{name} `{text}`: expected {from} to {to}"))
        })
    }

    /// Bytes of a transfer.
    fn transfer(&self, name: &str, text: &str) -> Result<u32, TargetError> {
        let size = parse_size(text).map_err(|e| self.wrong(text, e))?;
        match u32::try_from(size) {
            Ok(n) if (512..=MAX_TRANSFER_BYTES).contains(&size) => Ok(n),
            _ => Err(self.wrong(text, format!("{name} `{text}`: expected 512 to 16m"))),
        }
    }
}

impl Server {
    /// Reads a URL; options that not every URL may have are given to `other`, which says whether
    /// it has them. `path` is what follows the server.
    pub(crate) fn parse(
        text: &UrlParser<'_>,
        path: &str,
        mut other: impl FnMut(&str, &str) -> Result<bool, TargetError>,
        options: &[&str],
    ) -> Result<Self, TargetError> {
        let scheme = text.scheme;
        let form = format!("expected {scheme}://host[:port]/{path}?name=value&name=value");
        let after_scheme = text.url.split_once(':').map_or("", |(_, rest)| rest);
        let Some(rest) = after_scheme.strip_prefix("//") else {
            return Err(text.wrong(after_scheme, format!("there is no server: {form}")));
        };
        let (place, pairs) = match rest.split_once('?') {
            Some((place, pairs)) => (place, pairs),
            None => (rest, &rest[rest.len()..]),
        };
        let (server, after) = match place.find('/') {
            Some(at) => place.split_at(at),
            None => return Err(text.wrong(place, format!("there is no {path}: {form}"))),
        };
        let (host, port) = Self::server(text, server, path)?;
        let mut parsed = Self {
            host,
            port,
            path: after.into(),
            uid: None,
            gid: None,
            connections: 1,
            read_size: None,
            write_size: None,
            timeout: Duration::from_secs(10),
            retries: 2,
            create: CreateMode::Unchecked,
            rtt: Duration::ZERO,
            cache: CacheModel::None,
            attributes_for: DEFAULT_ATTRIBUTE_LIFETIME,
        };
        let mut seen = Vec::new();
        for pair in pairs.split('&').filter(|p| !p.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(text.wrong(pair, format!("`{pair}` is not name=value")));
            };
            let present = present_option_name(name);
            if seen.contains(&present) {
                return Err(text.wrong(name, format!("option `{present}` is given twice")));
            }
            seen.push(present);
            if !parsed.set(text, present, value)? && !other(present, value)? {
                return Err(unknown(text, name, options));
            }
        }
        if seen.contains(&"actimeo") && parsed.cache == CacheModel::None {
            let at = text.url.find("actimeo=").unwrap_or_default();
            let reason = "actimeo is for attributes that are kept: cache=attr keeps them";
            return Err(text.wrong(&text.url[at..at + 7], reason));
        }
        Ok(parsed)
    }

    /// Host and port; an address of IP version 6 is in brackets.
    fn server(
        text: &UrlParser<'_>,
        server: &str,
        path: &str,
    ) -> Result<(String, Option<u16>), TargetError> {
        let none = || text.wrong(server, format!("there is no host before the {path}"));
        let (host, rest) = match server.strip_prefix('[') {
            Some(inner) => inner
                .split_once(']')
                .ok_or_else(|| text.wrong(server, "the bracket is not closed"))?,
            None => match server.find(':') {
                Some(at) => server.split_at(at),
                None => (server, ""),
            },
        };
        if host.is_empty() {
            return Err(none());
        }
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(text.port(port)?),
            None if rest.is_empty() => None,
            None => return Err(text.wrong(rest, "expected a colon and the port")),
        };
        Ok((host.into(), port))
    }

    /// Takes an option; `false` if it is none of these.
    fn set(&mut self, text: &UrlParser<'_>, name: &str, value: &str) -> Result<bool, TargetError> {
        let any = 0..u64::from(u32::MAX) + 1;
        match name {
            "uid" => self.uid = Some(text.number(name, value, any)? as u32),
            "gid" => self.gid = Some(text.number(name, value, any)? as u32),
            "nconnect" => {
                self.connections = text.number(name, value, 1..MAX_CONNECTIONS + 1)? as u32;
            }
            "rsize" => self.read_size = Some(text.transfer(name, value)?),
            "wsize" => self.write_size = Some(text.transfer(name, value)?),
            "retrans" => self.retries = text.number(name, value, 0..MAX_RETRIES + 1)? as u32,
            "timeo" => {
                self.timeout = parse_duration(value).map_err(|e| text.wrong(value, e))?;
                if !(Duration::from_millis(100)..=MAX_TIMEOUT).contains(&self.timeout) {
                    let reason = format!("timeo `{value}`: expected 100ms to 10m");
                    return Err(text.wrong(value, reason));
                }
            }
            "added_rtt" => {
                self.rtt = parse_duration(value).map_err(|e| text.wrong(value, e))?;
                if self.rtt > MAX_RTT {
                    let reason = format!("{name} `{value}`: expected 0ms to 10s");
                    return Err(text.wrong(value, reason));
                }
            }
            "cache" => {
                self.cache = match value {
                    "none" => CacheModel::None,
                    "attr" => CacheModel::Attributes,
                    "open-to-close" => CacheModel::OpenToClose,
                    _ => {
                        let reason =
                            format!("cache `{value}`: expected none, attr or open-to-close");
                        return Err(text.wrong(value, reason));
                    }
                }
            }
            "actimeo" => {
                self.attributes_for = parse_duration(value).map_err(|e| text.wrong(value, e))?;
                if self.attributes_for > MAX_TIMEOUT {
                    let reason = format!("actimeo `{value}`: expected at most 10m");
                    return Err(text.wrong(value, reason));
                }
            }
            "sec" if value == "sys" => {}
            "sec" => {
                let reason = format!("sec `{value}` is not spoken: expected sys");
                return Err(text.wrong(value, reason));
            }
            "create" => {
                self.create = match value {
                    "unchecked" => CreateMode::Unchecked,
                    "guarded" => CreateMode::Guarded,
                    "exclusive" => CreateMode::Exclusive,
                    _ => {
                        let reason =
                            format!("create `{value}`: expected unchecked, guarded or exclusive");
                        return Err(text.wrong(value, reason));
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn unknown(text: &UrlParser<'_>, name: &str, options: &[&str]) -> TargetError {
    let near = |o: &&&str| strsim::damerau_levenshtein(o, &name.to_ascii_lowercase()) <= 2;
    let hint = match options.iter().find(near) {
        Some(option) => format!(", did you mean `{option}`?"),
        None => String::new(),
    };
    let known = options.join(", ");
    text.wrong(
        name,
        format!("unknown option `{name}`: expected one of {known}{hint}"),
    )
}

impl Server {
    /// The address of the host. Of several, as `localhost` may have, the first at which something
    /// listens at `port`; the first if none does.
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
        Err(TargetError::Option {
            target: scheme,
            reason,
        })
    }

    /// A relay in this process that makes the way to the server longer, if it is to be.
    pub(crate) fn start_rtt_relay(
        &self,
        scheme: &'static str,
        to: SocketAddr,
    ) -> Result<Option<Relay>, TargetError> {
        if self.rtt.is_zero() {
            return Ok(None);
        }
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let relay = Relay::start(here, &[to], &Link::of_rtt(self.rtt));
        relay.map(Some).map_err(|e| TargetError::Option {
            target: scheme,
            reason: format!("added_rtt: no relay can be started: {e}"),
        })
    }

    /// What the description of a target says of the way to the server.
    pub(crate) fn rtt_description(&self) -> String {
        match self.rtt.is_zero() {
            true => String::new(),
            false => format!(
                ", round trip +{} (TCP relay: no slow start seen)",
                show_duration(self.rtt)
            ),
        }
    }

    /// What is kept, and how many nanoseconds attributes count.
    pub(crate) fn cached(&self) -> (CacheModel, u64) {
        (self.cache, self.attributes_for.as_nanos() as u64)
    }

    /// The same for people; nothing if nothing is kept.
    pub(crate) fn cache_description(&self) -> String {
        let model = match self.cache {
            CacheModel::None => return String::new(),
            CacheModel::Attributes => "attr",
            CacheModel::OpenToClose => "open-to-close",
        };
        format!(", cache {model}, actimeo {:?}", self.attributes_for)
    }

    /// Who calls: the user of this process, unless the URL says another.
    pub(crate) fn credentials(&self) -> Credentials {
        let uname = rustix::system::uname();
        let uid = self
            .uid
            .unwrap_or_else(|| rustix::process::geteuid().as_raw());
        let gid = self
            .gid
            .unwrap_or_else(|| rustix::process::getegid().as_raw());
        Credentials::sys(&uname.nodename().to_string_lossy(), uid, gid)
    }
}
