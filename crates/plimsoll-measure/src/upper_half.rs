//! Sums of 128 bits, to which one thread adds and which any thread may read.

use plimsoll_runtime::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Upper 64 bits of a sum. The lower 64 bits are a cell elsewhere, beside the cells that each operation writes.
///
/// The word is a sequence lock: twice the upper bits, plus one while the writer carries. Only an addition that wraps
/// the lower half writes to the word.
#[derive(Debug, Default)]
pub(crate) struct UpperHalf(AtomicU64);

impl UpperHalf {
    /// Adds to the sum; only for the thread that writes `lower`.
    #[inline(always)]
    pub(crate) fn add(&self, lower: &AtomicU64, by: u64) {
        let (sum, wraps) = lower.load(Relaxed).overflowing_add(by);
        if wraps {
            return self.carry(lower, sum);
        }
        lower.store(sum, Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn carry(&self, lower: &AtomicU64, sum: u64) {
        let before = self.0.load(Relaxed);
        self.0.store(before + 1, Relaxed);
        fence(Release);
        lower.store(sum, Relaxed);
        self.0.store(before + 2, Release);
    }

    pub(crate) fn sum(&self, lower: &AtomicU64) -> u128 {
        loop {
            let upper = self.0.load(Acquire);
            let lower = lower.load(Relaxed);
            fence(Acquire);
            if upper.is_multiple_of(2) && self.0.load(Relaxed) == upper {
                return u128::from(upper / 2) << u64::BITS | u128::from(lower);
            }
            plimsoll_runtime::sync::hint::spin_loop();
        }
    }

    /// Sets the sum to 0; only for the owner of both halves.
    pub(crate) fn clear(&self, lower: &AtomicU64) {
        self.0.store(0, Relaxed);
        lower.store(0, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_do_not_wrap(addends in prop::collection::vec(any::<u64>(), 0..40)) {
            let (upper, lower) = (UpperHalf::default(), AtomicU64::new(0));
            for n in &addends {
                upper.add(&lower, *n);
            }
            prop_assert_eq!(upper.sum(&lower), addends.iter().map(|n| u128::from(*n)).sum::<u128>());
            upper.clear(&lower);
            prop_assert_eq!(upper.sum(&lower), 0);
        }
    }
}
