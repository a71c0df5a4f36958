//! Division by numbers that are constant during a run, such as the width of a tree.

/// A divisor with its reciprocal, which makes a division a multiplication. Every operation computes names, and each
/// name takes several quotients.
///
/// The reciprocal is ⌈2⁶⁴ / d⌉, with which quotients of all 32-bit numbers are exact (Lemire, Kaser,
/// Kurz 2019, "Faster remainder by direct computation").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Divisor {
    by: u32,
    /// Reciprocal ⌈2⁶⁴ / `by`⌉ of the divisor; 0 for the divisor 1, whose reciprocal has 65 bits.
    reciprocal: u64,
}

impl Divisor {
    pub(super) fn new(by: u32) -> Self {
        assert!(by > 0, "division by 0");
        let reciprocal = match by {
            1 => 0,
            by => u64::MAX / u64::from(by) + 1,
        };
        Self { by, reciprocal }
    }

    pub(super) fn get(self) -> u32 {
        self.by
    }

    /// Quotient and remainder of a division of `n` by the divisor, with a multiplication instead of a division.
    #[inline]
    pub(super) fn divide(self, n: u32) -> (u32, u32) {
        let quotient = match self.by {
            1 => n,
            _ => ((u128::from(self.reciprocal) * u128::from(n)) >> 64) as u32,
        };
        debug_assert_eq!(quotient, n / self.by, "{n} / {}", self.by);
        (quotient, n - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quotients_are_exact(n: u32, by in 1u32.., near in 0u32..3) {
            // An inexact reciprocal would be wrong first at multiples of the divisor and their neighbours.
            let product = (n / by * by).saturating_add(near).saturating_sub(1);
            for n in [n, product, u32::MAX - near] {
                prop_assert_eq!(Divisor::new(by).divide(n), (n / by, n % by));
            }
        }
    }

    #[test]
    fn quotients_by_small_numbers_and_powers_are_exact() {
        let powers = (0..32).map(|p| 1u32 << p);
        for by in (1..1000).chain(powers).chain([u32::MAX, u32::MAX - 1]) {
            for n in [0, 1, by - 1, by, u32::MAX / by * by, u32::MAX - 1, u32::MAX] {
                assert_eq!(Divisor::new(by).divide(n), (n / by, n % by));
            }
        }
    }
}
