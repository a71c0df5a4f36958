//! The URL of an NFSv3 target: `nfs3://host[:port]/export?name=value&…`.

use crate::registry::TargetError;
use plimsoll_plan::{parse_duration, parse_size};
use std::ops::Range;
use std::time::Duration;

/// Name of the scheme.
pub(super) const SCHEME: &str = "nfs3";

/// Most connections of a lane.
const MOST_CONNECTIONS: u64 = 64;

/// Most bytes of a READ or WRITE that may be asked for.
const MOST_TRANSFER: u64 = 16 << 20;

/// Longest time without an answer before a call is sent again.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);

/// Most times that a call is sent again.
const MOST_RETRIES: u64 = 100;

/// Options there are.
const OPTIONS: [&str; 10] = [
    "create",
    "gid",
    "mountport",
    "nconnect",
    "retrans",
    "rsize",
    "sec",
    "timeo",
    "uid",
    "wsize",
];

/// How files are made (RFC 1813, 3.3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CreateMode {
    /// One that is there is opened.
    Unchecked,
    /// One that is there is found by failing first.
    Guarded,
    /// The same, so that a request that is sent twice makes one file.
    Exclusive,
}

/// What a URL says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) host: String,
    pub(super) port: Option<u16>,
    pub(super) export: String,
    pub(super) mount_port: Option<u16>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) connections: u32,
    pub(super) read_size: Option<u32>,
    pub(super) write_size: Option<u32>,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
    pub(super) create: CreateMode,
}

/// A URL that is being read.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// What is wrong with a part of the URL, with a picture of the place.
    fn wrong(&self, part: &str, reason: impl Into<String>) -> TargetError {
        TargetError::Url {
            target: SCHEME,
            reason: reason.into(),
            url: self.0.into(),
            at: self.place(part),
        }
    }

    /// Where a part of the URL, which is a slice of it, is.
    fn place(&self, part: &str) -> Range<usize> {
        let begin = (part.as_ptr() as usize).wrapping_sub(self.0.as_ptr() as usize);
        let begin = begin.min(self.0.len());
        begin..(begin + part.len()).min(self.0.len())
    }

    fn port(&self, text: &str) -> Result<u16, TargetError> {
        let port = text.parse().ok().filter(|p| *p != 0);
        port.ok_or_else(|| self.wrong(text, format!("`{text}` is no port: expected 1 to 65535")))
    }

    fn number(&self, name: &str, text: &str, range: Range<u64>) -> Result<u64, TargetError> {
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
            Ok(n) if (512..=MOST_TRANSFER).contains(&size) => Ok(n),
            _ => Err(self.wrong(text, format!("{name} `{text}`: expected 512 to 16m"))),
        }
    }
}

impl Url {
    /// Reads a URL.
    pub(super) fn parse(url: &str) -> Result<Self, TargetError> {
        let text = Text(url);
        let form = "expected nfs3://host[:port]/export?name=value&name=value";
        let after_scheme = url.split_once(':').map_or("", |(_, rest)| rest);
        let Some(rest) = after_scheme.strip_prefix("//") else {
            return Err(text.wrong(after_scheme, format!("there is no server: {form}")));
        };
        let (place, options) = match rest.split_once('?') {
            Some((place, options)) => (place, options),
            None => (rest, &rest[rest.len()..]),
        };
        let (server, export) = match place.find('/') {
            Some(at) => place.split_at(at),
            None => return Err(text.wrong(place, format!("there is no export: {form}"))),
        };
        let (host, port) = Self::server(&text, server)?;
        let mut parsed = Self {
            host,
            port,
            export: export.into(),
            mount_port: None,
            uid: None,
            gid: None,
            connections: 1,
            read_size: None,
            write_size: None,
            timeout: Duration::from_secs(10),
            retries: 2,
            create: CreateMode::Unchecked,
        };
        let mut seen = Vec::new();
        for pair in options.split('&').filter(|p| !p.is_empty()) {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(text.wrong(pair, format!("`{pair}` is not name=value")));
            };
            if seen.contains(&name) {
                return Err(text.wrong(name, format!("option `{name}` is given twice")));
            }
            seen.push(name);
            parsed.set(&text, name, value)?;
        }
        Ok(parsed)
    }

    /// Host and port; an address of IP version 6 is in brackets.
    fn server(text: &Text<'_>, server: &str) -> Result<(String, Option<u16>), TargetError> {
        let none = || text.wrong(server, "there is no host before the export");
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

    fn set(&mut self, text: &Text<'_>, name: &str, value: &str) -> Result<(), TargetError> {
        let any = 0..u64::from(u32::MAX) + 1;
        match name {
            "mountport" => self.mount_port = Some(text.port(value)?),
            "uid" => self.uid = Some(text.number(name, value, any)? as u32),
            "gid" => self.gid = Some(text.number(name, value, any)? as u32),
            "nconnect" => {
                self.connections = text.number(name, value, 1..MOST_CONNECTIONS + 1)? as u32;
            }
            "rsize" => self.read_size = Some(text.transfer(name, value)?),
            "wsize" => self.write_size = Some(text.transfer(name, value)?),
            "retrans" => self.retries = text.number(name, value, 0..MOST_RETRIES + 1)? as u32,
            "timeo" => {
                self.timeout = parse_duration(value).map_err(|e| text.wrong(value, e))?;
                if !(Duration::from_millis(100)..=LONGEST_TIMEOUT).contains(&self.timeout) {
                    let reason = format!("timeo `{value}`: expected 100ms to 10m");
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
            _ => return Err(unknown(text, name)),
        }
        Ok(())
    }
}

fn unknown(text: &Text<'_>, name: &str) -> TargetError {
    let near = |o: &&str| strsim::damerau_levenshtein(o, &name.to_ascii_lowercase()) <= 2;
    let hint = match OPTIONS.into_iter().find(near) {
        Some(option) => format!(", did you mean `{option}`?"),
        None => String::new(),
    };
    let known = OPTIONS.join(", ");
    text.wrong(
        name,
        format!("unknown option `{name}`: expected one of {known}{hint}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn everything_can_be_said() {
        let url = Url::parse(
            "nfs3://h.example:12049/a/b?mountport=12050&sec=sys&uid=7&gid=8&nconnect=4&rsize=64k\
             &wsize=32k&timeo=2s&retrans=5&create=exclusive",
        );
        let want = Url {
            host: "h.example".into(),
            port: Some(12049),
            export: "/a/b".into(),
            mount_port: Some(12050),
            uid: Some(7),
            gid: Some(8),
            connections: 4,
            read_size: Some(64 << 10),
            write_size: Some(32 << 10),
            timeout: Duration::from_secs(2),
            retries: 5,
            create: CreateMode::Exclusive,
        };
        assert_eq!(url, Ok(want));
        let v6 = Url::parse("nfs3://[::1]:2049/").unwrap();
        assert_eq!((&*v6.host, v6.port, &*v6.export), ("::1", Some(2049), "/"));
    }

    #[test]
    fn what_is_wrong_is_shown_in_its_place() {
        let says = |url: &str| Url::parse(url).unwrap_err().to_string();
        insta::assert_snapshot!(says("nfs3://h/x?nconect=4"), @r"
        target `nfs3`: unknown option `nconect`: expected one of create, gid, mountport, nconnect, retrans, rsize, sec, timeo, uid, wsize, did you mean `nconnect`?
          nfs3://h/x?nconect=4
                     ^^^^^^^
        ");
        insta::assert_snapshot!(says("nfs3://h:0/x"), @r"
        target `nfs3`: `0` is no port: expected 1 to 65535
          nfs3://h:0/x
                   ^
        ");
        insta::assert_snapshot!(says("nfs3:"), @r"
        target `nfs3`: there is no server: expected nfs3://host[:port]/export?name=value&name=value
          nfs3:
               ^
        ");
        assert!(says("nfs3://host").contains("there is no export"));
        assert!(says("nfs3:///x").contains("there is no host"));
        assert!(says("nfs3://[::1/x").contains("the bracket is not closed"));
        assert!(says("nfs3://[::1]2/x").contains("expected a colon and the port"));
        assert!(says("nfs3://h/x?sec=krb5").contains("sec `krb5` is not spoken: expected sys"));
        assert!(says("nfs3://h/x?rsize=1").contains("expected 512 to 16m"));
        assert!(says("nfs3://h/x?rsize=1x").contains("is not a size"));
        assert!(says("nfs3://h/x?uid=1&uid=2").contains("given twice"));
        assert!(says("nfs3://h/x?uid").contains("is not name=value"));
        assert!(says("nfs3://h/x?uid=4294967296").contains("expected 0 to 4294967295"));
        assert!(says("nfs3://h/x?timeo=1ms").contains("expected 100ms to 10m"));
        assert!(says("nfs3://h/x?create=x").contains("expected unchecked, guarded or exclusive"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(rest in "\\PC{0,60}") {
            for url in [format!("nfs3:{rest}"), format!("nfs3://h/x?{rest}")] {
                if let Err(e) = Url::parse(&url) {
                    prop_assert!(e.to_string().contains("nfs3"));
                }
            }
        }
    }
}
