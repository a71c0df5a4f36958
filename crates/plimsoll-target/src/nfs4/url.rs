//! The URL of an NFSv4 target: `nfs4://host[:port]/path?name=value&…`.

use super::SCHEME;
use crate::connect::TargetError;
use crate::nfs::url::ServerUrl;
use crate::url_parser::UrlParser;

/// Maximum number of slots of an NFSv4.1 session.
const MAX_SESSION_SLOTS: u64 = 1024;

/// Default number of slots that the client requests.
const DEFAULT_SESSION_SLOTS: u32 = 64;

/// The scope of an open owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owners {
    /// One open owner for each worker: the opens of different workers are concurrent on 4.0.
    Worker,
    /// One open owner for the workers of each process of the workload.
    Process,
    /// One open owner for all workers: on 4.0, one OPEN or CLOSE is in flight at a time.
    One,
}

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) server: ServerUrl,
    pub(super) minor: u32,
    pub(super) owners: Owners,
    pub(super) slots: u32,
    pub(super) delegations: bool,
}

/// The options of NFSv4 only.
pub(super) const OWN_OPTIONS: [&str; 4] = ["delegations", "minorversion", "open_owner", "slots"];

impl Url {
    pub(super) fn parse(url: &str) -> Result<Self, TargetError> {
        let text = UrlParser {
            scheme: SCHEME.name,
            url,
        };
        let mut minor = 1;
        let mut owners = Owners::Worker;
        let mut slots = None;
        let mut delegations = false;
        let server = ServerUrl::parse(&text, "path", &OWN_OPTIONS, |name, value| {
            match (name, value) {
                ("minorversion", _) => minor = text.word(name, value, &[("0", 0), ("1", 1)])?,
                ("open_owner", _) => {
                    let known = [
                        ("worker", Owners::Worker),
                        ("process", Owners::Process),
                        ("shared", Owners::One),
                    ];
                    owners = text.word(name, value, &known)?;
                }
                ("delegations", _) => {
                    delegations = text.word(name, value, &[("on", true), ("off", false)])?;
                }
                ("slots", _) => slots = Some(text.number(name, value, 1..=MAX_SESSION_SLOTS)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if minor == 0 && slots.is_some() {
            let reason = "NFSv4.0 has no slots, only minorversion=1 has them";
            return Err(text.wrong_option("slots", reason));
        }
        Ok(Self {
            server,
            minor,
            owners,
            slots: slots.unwrap_or(DEFAULT_SESSION_SLOTS),
            delegations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_option_is_parsed() {
        let url = Url::parse(
            "nfs4://h:12049/a/b?minorversion=0&open_owner=process&uid=7&nconnect=2&rsize=64k",
        );
        let url = url.unwrap();
        assert_eq!((url.minor, url.owners, url.slots), (0, Owners::Process, 64));
        let server = url.server;
        assert_eq!((&*server.host, server.port), ("h", Some(12049)));
        assert_eq!((&*server.path, server.uid), ("/a/b", Some(7)));
        assert_eq!((server.connections, server.read_size), (2, Some(64 << 10)));
        let plain = Url::parse("nfs4://h/").unwrap();
        assert_eq!(
            (plain.minor, plain.owners, plain.slots),
            (1, Owners::Worker, 64)
        );
        let more = Url::parse("nfs4://h/?minorversion=1&open_owner=shared&slots=3&delegations=on")
            .unwrap();
        assert!(more.delegations && !plain.delegations);
        assert_eq!((more.minor, more.owners, more.slots), (1, Owners::One, 3));
    }

    #[test]
    fn what_is_wrong_is_shown_in_its_place() {
        let says = |url: &str| Url::parse(url).unwrap_err().to_string();
        insta::assert_snapshot!(says("nfs4://h/x?openowner=one"), @r"
        target `nfs4`: unknown option `openowner`: expected one of actimeo, added_rtt, cache, clients, create, delegations, gid, minorversion, nconnect, open_owner, retrans, rsize, sec, slots, timeo, uid, wsize, did you mean `open_owner`?
          nfs4://h/x?openowner=one
                     ^^^^^^^^^
        ");
        insta::assert_snapshot!(says("nfs4://h/x?minorversion=2"), @r"
        target `nfs4`: minorversion `2`: expected 0 or 1
          nfs4://h/x?minorversion=2
                                  ^
        ");
        insta::assert_snapshot!(says("nfs4://h/x?slots=8&minorversion=0"), @r"
        target `nfs4`: NFSv4.0 has no slots, only minorversion=1 has them
          nfs4://h/x?slots=8&minorversion=0
                     ^^^^^
        ");
        assert!(says("nfs4://h/x?open_owner=all").contains("expected worker, process or shared"));
        assert!(says("nfs4://h/x?slots=0").contains("expected 1 to 1024"));
        assert!(says("nfs4://h/x?delegations=yes").contains("expected on or off"));
        assert!(says("nfs4://h").contains("there is no path"));
        assert!(says("nfs4://h/x?mountport=1").contains("unknown option `mountport`"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(rest in "\\PC{0,60}") {
            for url in [format!("nfs4:{rest}"), format!("nfs4://h/x?{rest}")] {
                if let Err(e) = Url::parse(&url) {
                    prop_assert!(e.to_string().contains("nfs4"));
                }
            }
        }
    }
}
