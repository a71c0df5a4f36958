//! Options of a `posix` URL that choose between system calls and io_uring:
//! `posix:?io=uring&lanes=2&depth=64&pool=open+stat`.

use crate::connect::TargetError;
use crate::posix::SCHEME;
use crate::url_parser::UrlParser;

/// Maximum `depth`.
const MAX_DEPTH: u64 = 16_384;

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

/// Operations that may run on the thread pool instead of the ring, with their names in the URL option and in the
/// results.
const POOL_OPERATIONS: [(&str, PoolOperation); 8] = [
    ("open", PoolOperation::Open),
    ("stat", PoolOperation::Stat),
    ("delete", PoolOperation::Delete),
    ("rename", PoolOperation::Rename),
    ("mkdir", PoolOperation::MakeDir),
    ("rmdir", PoolOperation::RemoveDir),
    ("truncate", PoolOperation::Truncate),
    ("fsync", PoolOperation::Fsync),
];

/// The set of operations that the thread pool executes: bit *n* is operation number *n* of [`PoolOperation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PoolOperations(u16);

impl PoolOperations {
    pub(super) fn insert(&mut self, operation: PoolOperation) {
        self.0 |= 1 << operation as u16;
    }

    #[inline]
    pub(super) fn has(self, operation: PoolOperation) -> bool {
        self.0 & 1 << operation as u16 != 0
    }

    pub(super) fn names(self) -> impl Iterator<Item = &'static str> {
        let all = POOL_OPERATIONS.iter();
        all.filter(move |(_, o)| self.has(*o))
            .map(|(name, _)| *name)
    }
}

/// How the operations of a `posix` target are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoMethod {
    /// File operations by system calls, with one thread for each worker (option `io=sync`, the default).
    #[default]
    Sync,
    /// File operations by io_uring, with many workers on each thread (option `io=uring`).
    Uring,
    /// File operations by io_uring for many workers with direct I/O on a block device, otherwise by system calls
    /// (option `io=auto`).
    Auto,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::posix) struct IoOptions {
    pub(in crate::posix) method: IoMethod,
    /// Number of lanes per rank; `None` for one lane per processor.
    pub(super) lanes: Option<usize>,
    /// Maximum operations of a lane in the kernel; `None` for the device's queue length.
    pub(super) depth: Option<u32>,
    /// Operations assigned to the thread pool.
    pub(super) pool: PoolOperations,
}

/// Names of the options of a `posix` target's URL.
pub(in crate::posix) const OPTIONS: [&str; 4] = ["depth", "io", "lanes", "pool"];

impl IoOptions {
    pub(in crate::posix) fn parse(url: &str) -> Result<Self, TargetError> {
        let text = UrlParser {
            scheme: SCHEME.name,
            url,
        };
        Self::of(&text, &text.only_options()?, &OPTIONS)
    }

    /// Parses options of a URL; `known` has the names of all options of the URL's scheme, for messages.
    pub(in crate::posix) fn of(
        text: &UrlParser<'_>,
        given: &[(&str, &str)],
        known: &[&str],
    ) -> Result<Self, TargetError> {
        let mut parsed = Self::default();
        for (name, value) in given {
            match *name {
                "io" => {
                    let methods = [
                        ("sync", IoMethod::Sync),
                        ("uring", IoMethod::Uring),
                        ("auto", IoMethod::Auto),
                    ];
                    parsed.method = text.word(name, value, &methods)?;
                }
                "lanes" => parsed.lanes = text.lanes(name, value)?,
                "depth" => parsed.depth = Some(text.number(name, value, 1..=MAX_DEPTH)?),
                "pool" => {
                    for operation in value.split('+') {
                        let operation = text.word(name, operation, &POOL_OPERATIONS)?;
                        parsed.pool.insert(operation);
                    }
                }
                _ => return Err(text.unknown_option(name, known)),
            }
        }
        match given.iter().find(|(name, _)| *name != "io") {
            Some((name, _)) if parsed.method == IoMethod::Sync => {
                Err(text.wrong(name, "depth, lanes and pool are options of io=uring"))
            }
            _ => Ok(parsed),
        }
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
        let all = parse("posix:?io=uring&lanes=2&depth=64&pool=open+fsync").unwrap();
        assert_eq!((all.method, all.lanes), (IoMethod::Uring, Some(2)));
        assert_eq!(all.depth, Some(64));
        assert_eq!(all.pool.names().collect::<Vec<_>>(), ["open", "fsync"]);
        let reason = |url: &str| parse(url).unwrap_err().to_string();
        assert!(reason("posix:?io=aio").contains("io `aio`: expected sync, uring or auto\n"));
        assert!(reason("posix:?io=uring&depth=0").contains("expected 1 to 16384"));
        assert_eq!(parse("posix:?io=auto&lanes=3").unwrap().lanes, Some(3));
        for other in ["depth=4", "io=sync&lanes=2", "lanes=2"] {
            let text = reason(&format!("posix:?{other}"));
            assert!(text.contains("are options of io=uring"), "{text}");
        }
        assert!(reason("posix:?io=uring&lanes=0").contains("lanes `0`: expected 1 to 65536"));
        assert!(reason("posix:?io=uring&pool=opem").contains("pool `opem`: expected open, stat"));
        assert!(reason("posix:?latency=1ms").contains("unknown option `latency`"));
    }
}
