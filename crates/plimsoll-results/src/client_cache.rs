//! The hit ratio of the client's own cache.

use crate::Environment;
use crate::read_source::ReadSource;
use plimsoll_measure::OpTotals;
use plimsoll_measure::system::SystemUse;
use plimsoll_plan::{Bytes, CACHED_DATA, OpKind, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reads of a window: bytes that the workload read, and the part of the bytes that the client's own cache served.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientCache {
    /// Number of successful operations of the kinds that read data from the target.
    pub reads: u64,
    /// Bytes that the operations in `reads` read; of a copied file, half of the bytes moved.
    pub read_bytes: u128,
    /// Bytes that came from storage, or from the server, during the window; null if the files are in memory. Read-ahead
    /// is included, so the number can exceed `read_bytes`.
    pub storage_bytes: Option<u128>,
    /// Hit ratio: the fraction of `read_bytes` that did not come from storage, 1 − storage_bytes / read_bytes, limited
    /// to 0 to 1; null if the files are in memory.
    pub hit_ratio: Option<f64>,
    /// Kernel's or client's counter from which `storage_bytes` was computed.
    pub source: ReadSource,
}

impl ClientCache {
    /// Computes the cache figures of a window; `None` if the operations read nothing, or if no counter tells the bytes
    /// from storage.
    pub(crate) fn of(
        plan: &Plan,
        rows: &[OpTotals],
        system: &SystemUse,
        environment: &Environment,
    ) -> Option<Self> {
        let source = environment.read_source?;
        let rows = || plan.operations.iter().zip(rows);
        let (mut reads, mut read_bytes) = (0, 0u128);
        for (op, t) in rows().filter(|(op, _)| op.kind.reads()) {
            reads += t.ops;
            read_bytes += bytes_moved(op.kind, t.bytes);
        }
        let storage = match source {
            ReadSource::Memory => None,
            ReadSource::ProcessIo => Some(system.process.as_ref()?.storage_read_bytes?.into()),
            ReadSource::NfsMount => Some(of_mount(system, environment)?.into()),
            ReadSource::NfsClient => {
                let cached =
                    rows().filter(|(op, _)| op.kind == OpKind::Rpc && op.name == CACHED_DATA);
                Some(read_bytes.saturating_sub(cached.map(|(_, t)| t.bytes).sum()))
            }
        };
        (read_bytes > 0).then(|| Self::new(reads, read_bytes, storage, source))
    }

    fn new(reads: u64, read_bytes: u128, storage_bytes: Option<u128>, source: ReadSource) -> Self {
        let share = |storage: u128| (1.0 - storage as f64 / read_bytes as f64).clamp(0.0, 1.0);
        Self {
            reads,
            read_bytes,
            storage_bytes,
            hit_ratio: storage_bytes.map(share),
            source,
        }
    }

    /// Adds up the cache figures of several windows; `None` without windows.
    pub(crate) fn sum(windows: impl IntoIterator<Item = Self>) -> Option<Self> {
        let add = |a: Self, b: Self| {
            let storage = a.storage_bytes.zip(b.storage_bytes);
            Self::new(
                a.reads + b.reads,
                a.read_bytes + b.read_bytes,
                storage.map(|(a, b)| a + b),
                a.source,
            )
        };
        windows.into_iter().reduce(add)
    }
}

/// Bytes that an operation of the kind moved in one direction: of a copy, half of the bytes read and written.
pub(crate) fn bytes_moved(kind: OpKind, bytes: u128) -> u128 {
    match kind {
        OpKind::CopyFile => bytes / 2,
        _ => bytes,
    }
}

/// A fraction as whole percent, rounded down, so that only a fraction of 1 is 100 %.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", (share * 100.0).floor())
}

/// Bytes that the kernel read from the server for the mount of the work directory.
fn of_mount(system: &SystemUse, environment: &Environment) -> Option<u64> {
    let point = environment.work_dir.as_ref()?.mount_point.as_ref()?;
    // A mount without counters read nothing.
    let used = system.nfs_mounts.as_ref()?.get(point.to_str()?);
    Some(used.map_or(0, |u| u.read_bytes))
}

impl std::fmt::Display for ClientCache {
    /// Writes bytes read, hit ratio and bytes from storage, such as `10.2 GiB, 97 % from the client's page cache (312
    /// MiB from the storage)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, ", Bytes(self.read_bytes))?;
        let (Some(share), Some(storage)) = (self.hit_ratio, self.storage_bytes) else {
            return f.write_str("from files that are in this machine's memory");
        };
        let (cache, storage_is) = match self.source {
            ReadSource::NfsClient => ("cache", "server"),
            ReadSource::NfsMount => ("page cache", "server"),
            ReadSource::ProcessIo | ReadSource::Memory => ("page cache", "storage"),
        };
        let (percent, storage) = (percent(share), Bytes(storage));
        write!(
            f,
            "{percent} from the client's {cache} ({storage} from the {storage_is})"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up() {
        let of = |reads, read_bytes, storage| {
            ClientCache::new(reads, read_bytes, storage, ReadSource::ProcessIo)
        };
        let sum = ClientCache::sum([of(2, 100, Some(30)), of(3, 300, Some(70))]);
        let expected = of(5, 400, Some(100));
        assert_eq!((sum, expected.hit_ratio), (Some(expected), Some(0.75)));
        let unknown = ClientCache::sum([of(2, 100, Some(30)), of(3, 300, None)]).unwrap();
        assert_eq!(
            (unknown.reads, unknown.storage_bytes, unknown.hit_ratio),
            (5, None, None)
        );
        assert_eq!(ClientCache::sum([]), None);
    }
}
