//! Verifiers of exclusive creates.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

/// Generates a different verifier for each create, so that a server can tell a retransmitted create from another create
/// of the same name (RFC 1813, 3.3.8 and RFC 7530, 16.16.5).
pub(crate) struct CreateVerifiers(Cell<u64>);

impl Default for CreateVerifiers {
    fn default() -> Self {
        // The first verifier is random, so that the ranges of two lanes do not overlap.
        Self(Cell::new(RandomState::new().hash_one(0u8)))
    }
}

impl CreateVerifiers {
    /// The next verifier.
    pub(crate) fn next(&self) -> [u8; 8] {
        let next = self.0.get().wrapping_add(1);
        self.0.set(next);
        next.to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        let lanes: [CreateVerifiers; 3] = Default::default();
        let all: std::collections::HashSet<_> = lanes
            .iter()
            .flat_map(|l| std::iter::repeat_with(|| l.next()).take(1000))
            .collect();
        assert_eq!(all.len(), 3000);
    }
}
