//! Latency counters of an operation in an interval: the lane-side part of a histogram.

use crate::Nanos;
use crate::cells::{Cells, zeroed};
use crate::upper_half::UpperHalf;
use plimsoll_runtime::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Half the number of counters per power of two: three significant digits need 2048 counters.
const HALF_SUB_BUCKETS: usize = 1024;
const HALF_BITS: u32 = 10;

/// Largest latency with a bucket, in nanoseconds: every latency has a bucket, because pages of unused buckets take no
/// memory.
#[cfg(not(loom))]
const MAX_LATENCY_NS: Nanos = Nanos::MAX;

/// Models have few counters, because the model checker keeps all counters and their history.
#[cfg(loom)]
const MAX_LATENCY_NS: Nanos = 3;

/// Bucket index of a latency, as in an HdrHistogram with three significant digits and a lowest value of 1.
#[inline]
pub(crate) fn index_of(latency: Nanos) -> usize {
    #[cfg(loom)]
    let latency = latency.min(MAX_LATENCY_NS);
    let shift =
        (u64::BITS - (latency | (2 * HALF_SUB_BUCKETS as u64 - 1)).leading_zeros()) - HALF_BITS - 1;
    ((shift as usize) << HALF_BITS) + (latency >> shift) as usize
}

/// Smallest latency, in nanoseconds, that the bucket with the number `index` counts.
pub(crate) fn value_of(index: usize) -> Nanos {
    if index < 2 * HALF_SUB_BUCKETS {
        return index as u64;
    }
    let shift = index / HALF_SUB_BUCKETS - 1;
    ((index % HALF_SUB_BUCKETS + HALF_SUB_BUCKETS) as u64) << shift
}

fn buckets() -> usize {
    index_of(MAX_LATENCY_NS) + 1
}

/// Adds to a cell that only this thread writes, with a plain load and store.
#[inline]
pub(crate) fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

/// A histogram with exact sum, minimum and maximum, written by one thread and readable by any thread. The cells are
/// atomic to be readable while the writer hangs in a system call; writes are plain stores without locked instructions.
#[repr(C)]
pub(crate) struct Counts {
    /// Buckets in lazily allocated pages: a distribution touches few of the pages.
    buckets: Cells,
    pub(crate) count: AtomicU64,
    /// Lower 64 bits of the sum of latencies in nanoseconds; `sum_upper` has the upper bits.
    sum: AtomicU64,
    pub(crate) min: AtomicU64,
    pub(crate) max: AtomicU64,
    /// Upper half of the sum of latencies; the field is last, because operations rarely write the upper half.
    sum_upper: UpperHalf,
}

impl Counts {
    /// Address space of the buckets in bytes.
    pub(crate) fn address_space() -> u64 {
        (buckets() * size_of::<AtomicU64>()) as u64
    }

    pub(crate) fn new() -> Self {
        Self {
            buckets: zeroed(buckets()),
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            sum_upper: UpperHalf::default(),
        }
    }

    #[inline]
    pub(crate) fn record(&self, latency: Nanos) {
        bump(&self.buckets[index_of(latency)], 1);
        bump(&self.count, 1);
        self.sum_upper.add(&self.sum, latency);
        // Minimum and maximum are stored unconditionally, without a branch, because the cache line is private.
        self.min.store(self.min.load(Relaxed).min(latency), Relaxed);
        self.max.store(self.max.load(Relaxed).max(latency), Relaxed);
    }

    /// Sum of all recorded latencies in nanoseconds.
    pub(crate) fn sum(&self) -> u128 {
        self.sum_upper.sum(&self.sum)
    }

    /// Calls `visit` with the smallest value and the count of every bucket in use.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(Nanos, u64)) {
        for (i, cell) in self.used() {
            match cell.load(Relaxed) {
                0 => {}
                n => visit(value_of(i), n),
            }
        }
    }

    /// Sum of all buckets: the count, unless the writer is between two stores.
    pub(crate) fn bucket_sum(&self) -> u64 {
        self.used().map(|(_, cell)| cell.load(Relaxed)).sum()
    }

    /// Empties the histogram. Only the owner may call this method.
    pub(crate) fn clear(&self) {
        for (_, cell) in self.used() {
            cell.store(0, Relaxed);
        }
        self.count.store(0, Relaxed);
        self.sum_upper.clear(&self.sum);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    /// Buckets from the minimum's to the maximum's, with their indices. Empty for an empty histogram, or if the writer
    /// is between two stores and the bounds are inconsistent.
    fn used(&self) -> impl Iterator<Item = (usize, &AtomicU64)> {
        let lo = index_of(self.min.load(Relaxed));
        let hi = index_of(self.max.load(Relaxed));
        let used = self.buckets.get(lo..=hi).unwrap_or_default();
        used.iter().enumerate().map(move |(i, cell)| (lo + i, cell))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_are_those_of_hdrhistogram(
            v in prop_oneof![0u64..10_000_000_000, any::<u64>(), Just(u64::MAX)],
        ) {
            let h = Histogram::<u64>::new_with_bounds(1, u64::MAX, 3).unwrap();
            let i = index_of(v);
            prop_assert!(i < buckets());
            prop_assert_eq!(value_of(i), h.lowest_equivalent(v));
            prop_assert_eq!(index_of(h.highest_equivalent(v)), i);
        }
    }

    /// An interval of minutes on a target of nanoseconds has more operations in a bucket than 32 bits count.
    #[test]
    fn a_bucket_counts_past_32_bits() {
        let c = Counts::new();
        c.record(16);
        c.buckets[16].store(u64::from(u32::MAX), Relaxed);
        c.record(16);
        let mut seen = Vec::new();
        c.for_each(|v, n| seen.push((v, n)));
        assert_eq!(seen, [(16, 1 << 32)]);
    }

    #[test]
    fn what_is_recorded_is_visited_and_cleared() {
        let c = Counts::new();
        for v in [0, 1, 1, 5_000_000, u64::MAX] {
            c.record(v);
        }
        let mut seen = Vec::new();
        c.for_each(|v, n| seen.push((v, n)));
        assert_eq!(seen[..2], [(0, 1), (1, 2)]);
        assert_eq!(seen.iter().map(|(_, n)| n).sum::<u64>(), 5);
        assert_eq!(c.max.load(Relaxed), u64::MAX);
        assert_eq!(c.sum(), u128::from(u64::MAX) + 5_000_002);
        c.clear();
        c.for_each(|_, _| panic!("not empty"));
        assert!(c.buckets.iter().all(|b| b.load(Relaxed) == 0));
    }
}
