//! The amount of memory that the rings of a target may register; registered memory is locked.
//!
//! The kernel counts locked memory per user over all processes (`ulimit -l`); some kernels also count the queues of
//! every ring. If buffers took the whole limit, the next ring could not be created.

use rustix::process::{Resource, getrlimit};
use rustix::thread::{CapabilitySet, capabilities};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Divisor of the memory limit: buffers may take one part; the other parts are for rings and for the user's other
/// processes.
const PARTS: u64 = 8;

/// A budget of memory that may be registered.
pub(super) struct LockableMemory {
    /// Remaining bytes; `None` without a limit.
    left: Option<AtomicU64>,
}

impl LockableMemory {
    /// The budget of this process.
    pub(super) fn of_process() -> Self {
        // With `CAP_IPC_LOCK` the kernel does not count locked memory.
        let is_exempt =
            capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::IPC_LOCK));
        let limit = getrlimit(Resource::Memlock).current;
        Self::of(limit.filter(|_| !is_exempt))
    }

    fn of(limit: Option<u64>) -> Self {
        Self {
            left: limit.map(|limit| AtomicU64::new(limit / PARTS)),
        }
    }

    /// Takes `len` bytes from the budget; returns `false` if too few bytes are left.
    pub(super) fn take(&self, len: usize) -> bool {
        let Some(left) = &self.left else {
            return true;
        };
        let take = |left: u64| left.checked_sub(len as u64);
        left.fetch_update(Relaxed, Relaxed, take).is_ok()
    }

    /// Returns `len` bytes to the budget.
    pub(super) fn give_back(&self, len: usize) {
        if let Some(left) = &self.left {
            left.fetch_add(len as u64, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_a_part_of_the_limit() {
        let memory = LockableMemory::of(Some(80_000));
        assert!(memory.take(6000) && memory.take(4000));
        assert!(!memory.take(1));
        memory.give_back(4000);
        assert!(!memory.take(4001) && memory.take(4000));
        assert!(!LockableMemory::of(Some(0)).take(4096));
        assert!(LockableMemory::of(None).take(usize::MAX));
    }
}
