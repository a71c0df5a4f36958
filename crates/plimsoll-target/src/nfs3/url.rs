//! The URL of an NFSv3 target: `nfs3://host[:port]/export?name=value&…`.

use super::SCHEME;
use crate::connect::TargetError;
use crate::nfs::url::ServerUrl;
use crate::url_parser::UrlParser;

/// A parsed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    /// The server; the URL's path is the export.
    pub(super) server: ServerUrl,
    pub(super) mount_port: Option<u16>,
}

/// The options of NFSv3 only.
pub(super) const OWN_OPTIONS: [&str; 1] = ["mountport"];

impl Url {
    pub(super) fn parse(url: &str) -> Result<Self, TargetError> {
        let text = UrlParser {
            scheme: SCHEME.name,
            url,
        };
        let mut mount_port = None;
        let server = ServerUrl::parse(&text, "export", &OWN_OPTIONS, |name, value| {
            if name == "mountport" {
                mount_port = Some(text.port(value)?);
            }
            Ok(name == "mountport")
        })?;
        Ok(Self { server, mount_port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs::cache::CacheModel;
    use crate::nfs::url::CreateMode;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn every_option_is_parsed() {
        let url = Url::parse(
            "nfs3://h.example:12049/a/b?mountport=12050&sec=sys&uid=7&gid=8&nconnect=4&clients=3&rsize=64k\
             &wsize=32k&timeo=2s&retrans=5&create=exclusive&cache=attr&actimeo=9s",
        );
        let server = ServerUrl {
            host: "h.example".into(),
            port: Some(12049),
            path: "/a/b".into(),
            uid: Some(7),
            gid: Some(8),
            connections: 4,
            lanes: Some(3),
            read_size: Some(64 << 10),
            write_size: Some(32 << 10),
            timeout: Duration::from_secs(2),
            retries: 5,
            create: CreateMode::Exclusive,
            added_rtt: Duration::ZERO,
            cache: CacheModel::Attributes,
            attribute_lifetime: Duration::from_secs(9),
        };
        let want = Url {
            server,
            mount_port: Some(12050),
        };
        assert_eq!(url, Ok(want));
        let v6 = Url::parse("nfs3://[::1]:2049/").unwrap().server;
        assert_eq!((&*v6.host, v6.port, &*v6.path), ("::1", Some(2049), "/"));
    }

    #[test]
    fn what_is_wrong_is_shown_in_its_place() {
        let says = |url: &str| Url::parse(url).unwrap_err().to_string();
        insta::assert_snapshot!(says("nfs3://h/x?nconect=4"), @r"
        target `nfs3`: unknown option `nconect`: expected one of actimeo, added_rtt, cache, clients, create, gid, mountport, nconnect, retrans, rsize, sec, timeo, uid, wsize, did you mean `nconnect`?
          nfs3://h/x?nconect=4
                     ^^^^^^^
        ");
        insta::assert_snapshot!(says("nfs3://h:0/x"), @r"
        target `nfs3`: `0` is not a port: expected 1 to 65535
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
        assert!(says("nfs3://h/x?sec=krb5").contains("sec `krb5`: expected sys"));
        assert!(says("nfs3://h/x?rsize=1").contains("expected 512 to 16m"));
        assert!(says("nfs3://h/x?rsize=1x").contains("is not a size"));
        assert!(says("nfs3://h/x?uid=1&uid=2").contains("given twice"));
        assert!(says("nfs3://h/x?uid").contains("is not name=value"));
        assert!(says("nfs3://h/x?uid=4294967296").contains("expected 0 to 4294967295"));
        assert!(says("nfs3://h/x?timeo=1ms").contains("expected 100ms to 10m"));
        assert!(says("nfs3://h/x?cache=all").contains("expected none, attr or open-to-close"));
        assert!(says("nfs3://h/x?cache=attr&actimeo=1h").contains("expected at most 10m"));
        assert!(says("nfs3://h/x?actimeo=1s").contains("cache=attr caches them"));
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
