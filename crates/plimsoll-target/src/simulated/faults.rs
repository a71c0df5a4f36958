//! Faults of simulated files.

use rustix::io::Errno;
use std::ops::Range;

/// Parts of a million in which a probability is given.
pub(super) const MILLION: u32 = 1_000_000;

/// What goes wrong with simulated files, and when. Times are nanoseconds of the simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFaults {
    /// Time of an operation.
    pub latency_ns: u64,
    /// The faults happen from this time on, but for those that have a time of their own.
    pub from_ns: u64,
    /// Whether only calls of the load have errors, are slow or short, or have their bytes changed or lost.
    pub of_load_only: bool,
    /// Error numbers with which operations fail, each with its probability in millionths.
    pub errors: Vec<(Errno, u32)>,
    /// Probability that an operation takes this multiple of its time, in millionths.
    pub slow: Option<(u32, u64)>,
    /// Probability that a read of more than a byte returns fewer bytes than there are, in millionths.
    pub short_reads: u32,
    /// Probability that a read returns a wrong byte, in millionths.
    pub wrong_reads: u32,
    /// Probability that a write is acknowledged and lost, in millionths.
    pub lost_writes: u32,
    /// Bytes of all files together, after which the file system is full.
    pub capacity: Option<u64>,
    /// Time from which nothing can be changed.
    pub read_only_from_ns: Option<u64>,
    /// Time in which nothing is answered, until its end.
    pub outage_ns: Option<Range<u64>>,
    /// Time from which nothing is answered any more.
    pub silent_from_ns: Option<u64>,
}

impl FileFaults {
    /// Nothing goes wrong, and an operation takes this time.
    #[must_use]
    pub fn none(latency_ns: u64) -> Self {
        Self {
            latency_ns,
            from_ns: 0,
            of_load_only: false,
            errors: vec![],
            slow: None,
            short_reads: 0,
            wrong_reads: 0,
            lost_writes: 0,
            capacity: None,
            read_only_from_ns: None,
            outage_ns: None,
            silent_from_ns: None,
        }
    }
}
