//! Faults of simulated files.

use rustix::io::Errno;
use std::ops::Range;

/// Denominator of all probabilities of faults: a probability of 1,000,000 is certain.
pub(super) const MILLION: u32 = 1_000_000;

/// The faults of simulated files and their times, in nanoseconds of the simulation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFaults {
    /// Duration of an operation.
    pub latency_ns: u64,
    /// Time from which faults happen, except for the capacity and for faults with their own time.
    pub from_ns: u64,
    /// Whether only calls of the load fail, are slow or short, or have their bytes changed or lost. The capacity, the
    /// read-only state, the outage and the silence apply to all calls.
    pub of_load_only: bool,
    /// Error numbers with which operations fail, each with its probability in millionths.
    pub errors: Vec<(Errno, u32)>,
    /// Probability in millionths that an operation is slow, and the factor by which its latency
    /// grows.
    pub slow: Option<(u32, u64)>,
    /// Probability in millionths that a read of two or more bytes returns fewer bytes than exist.
    pub short_reads: u32,
    /// Probability in millionths that a read returns a wrong byte.
    pub wrong_reads: u32,
    /// Probability in millionths that a write is acknowledged and lost.
    pub lost_writes: u32,
    /// Capacity of the file system in bytes; `None` for no limit.
    pub capacity: Option<u64>,
    /// Time from which the file system is read-only.
    pub read_only_from_ns: Option<u64>,
    /// Time range of an outage: a call that begins in the range waits until the end of the range.
    pub outage_ns: Option<Range<u64>>,
    /// Time from which no call returns.
    pub silent_from_ns: Option<u64>,
}

impl FileFaults {
    /// No faults; each operation takes `latency_ns` nanoseconds.
    #[must_use]
    pub fn none(latency_ns: u64) -> Self {
        Self {
            latency_ns,
            ..Self::default()
        }
    }
}
