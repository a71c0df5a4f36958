//! Options of the URL that choose the system call interface: `posix:?io=uring&depth=64&pool=open+stat`.

use crate::connect::TargetError;
use crate::posix::SCHEME;
use crate::url_options::UrlOptions;

/// Maximum `depth`.
const MAX_DEPTH: u32 = 16_384;

/// Operations that io_uring has, but that the `pool` option can assign to the thread pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PoolOperation {
    Open,
    Stat,
    Delete,
    Rename,
    MakeDir,
    RemoveDir,
    Truncate,
    Fsync,
}

impl PoolOperation {
    pub(super) const ALL: [Self; 8] = [
        Self::Open,
        Self::Stat,
        Self::Delete,
        Self::Rename,
        Self::MakeDir,
        Self::RemoveDir,
        Self::Truncate,
        Self::Fsync,
    ];

    /// The name of the operation in the option and in the results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Stat => "stat",
            Self::Delete => "delete",
            Self::Rename => "rename",
            Self::MakeDir => "mkdir",
            Self::RemoveDir => "rmdir",
            Self::Truncate => "truncate",
            Self::Fsync => "fsync",
        }
    }
}

/// The parsed options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::posix) struct IoOptions {
    /// Whether operations use io_uring.
    pub(in crate::posix) uring: bool,
    /// Maximum operations of a lane in the kernel; `None` for the device's queue length.
    pub(super) depth: Option<u32>,
    /// Operations assigned to the thread pool.
    pub(super) pool: Vec<PoolOperation>,
}

impl IoOptions {
    /// Reads the options of a URL.
    pub(in crate::posix) fn parse(url: &str) -> Result<Self, TargetError> {
        let wrong = |reason: String| TargetError::of(SCHEME.name, reason);
        let mut options = UrlOptions::parse(SCHEME.name, url)?;
        let uring = match options.text("io").as_deref() {
            None | Some("sync") => false,
            Some("uring") => true,
            Some(other) => {
                return Err(wrong(format!(
                    "unknown io `{other}`: expected sync or uring"
                )));
            }
        };
        let depth = options.count("depth", MAX_DEPTH)?;
        let mut pool = Vec::new();
        // A plus sign is literal: the options are not percent-decoded.
        for name in options.text("pool").iter().flat_map(|list| list.split('+')) {
            let known = PoolOperation::ALL.into_iter().find(|o| o.name() == name);
            let operation = known.ok_or_else(|| {
                let names: Vec<&str> = PoolOperation::ALL.iter().map(|o| o.name()).collect();
                let names = names.join(", ");
                wrong(format!(
                    "unknown operation `{name}` in pool: expected a list such as open+stat of {names}"
                ))
            })?;
            pool.push(operation);
        }
        options.finish("io, depth or pool; the directory is given by --dir")?;
        if !uring && (depth.is_some() || !pool.is_empty()) {
            return Err(wrong("depth and pool are options of io=uring".into()));
        }
        Ok(Self { uring, depth, pool })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_checked() {
        let parse = IoOptions::parse;
        assert_eq!(parse("posix").unwrap(), IoOptions::default());
        assert_eq!(parse("posix:?io=sync").unwrap(), IoOptions::default());
        let all = parse("posix:?io=uring&depth=64&pool=open+fsync").unwrap();
        let pool = vec![PoolOperation::Open, PoolOperation::Fsync];
        assert!(all.uring && all.depth == Some(64) && all.pool == pool);
        let reason = |url: &str| parse(url).unwrap_err().to_string();
        assert!(reason("posix:?io=aio").ends_with("unknown io `aio`: expected sync or uring"));
        assert!(reason("posix:?io=uring&depth=0").contains("from 1 to 16384"));
        assert!(reason("posix:?depth=4").ends_with("are options of io=uring"));
        assert!(reason("posix:?io=uring&pool=opem").contains("unknown operation `opem`"));
        assert!(reason("posix:?latency=1ms").contains("unknown option `latency`"));
    }
}
