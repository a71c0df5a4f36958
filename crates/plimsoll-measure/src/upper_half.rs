//! Sums of 128 bits, written by one thread and readable by any thread.

use plimsoll_runtime::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// Upper 64 bits of a sum. The lower 64 bits are a separate cell next to the cells that every operation writes.
///
/// The word is a sequence lock: twice the upper bits, plus one during a carry. Only an addition that wraps the lower
/// half writes the word.
#[derive(Debug, Default)]
pub(crate) struct UpperHalf(AtomicU64);

impl UpperHalf {
    /// Adds to the sum. Only the thread that writes `lower` may call this method.
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

    /// Sets the sum to 0. Only the owner of both halves may call this method.
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
