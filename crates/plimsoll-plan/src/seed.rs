//! Seeded random streams, from which all random choices of a run follow.

use crate::hash::{mix64, split_mix64};
use rand::SeedableRng;

/// The random generator xoshiro256++, which is small, fast, and gives the same output on every machine.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// A node in the tree of random streams below a Plan's seed.
///
/// Each kind of choice has its own branch, so draws of one kind do not affect draws of another kind. For example, the
/// sizes of a fileset do not depend on the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// Root of the tree of random streams for the seed `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix64(seed))
    }

    /// Child node in the tree of random streams with the number `number`, whose draws are independent of the draws of
    /// all other child nodes.
    #[must_use]
    pub fn branch(self, number: u64) -> Self {
        Self(mix64(self.0 ^ split_mix64(number)))
    }

    /// Child node in the tree of random streams with the name `name`, whose draws are independent of the draws of all
    /// other child nodes.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        name.bytes().fold(self.branch(name.len() as u64), |s, b| {
            s.branch(u64::from(b))
        })
    }

    /// Number that identifies this node of the tree of random streams.
    #[must_use]
    pub fn fingerprint(self) -> u64 {
        self.0
    }

    /// Random generator that is seeded with this node; the generators of two calls give the same draws.
    #[must_use]
    pub fn rng(self) -> Rng {
        Rng::seed_from_u64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    /// Results of two versions are comparable only if a seed determines the same choices in both.
    #[test]
    fn nodes_follow_from_the_seed_and_the_names_by_their_definition() {
        assert_eq!(Stream::new(0).fingerprint(), 0);
        let root = Stream::new(5);
        assert_eq!(root.fingerprint(), mix64(5));
        let branch = |node: u64, number: u64| mix64(node ^ split_mix64(number));
        assert_eq!(root.branch(9).fingerprint(), branch(mix64(5), 9));
        let (a, b) = (u64::from(b'a'), u64::from(b'b'));
        let expected = branch(branch(branch(mix64(5), 2), a), b);
        assert_eq!(root.named("ab").fingerprint(), expected);
        let first = Rng::seed_from_u64(expected).next_u64();
        assert_eq!(root.named("ab").rng().next_u64(), first);
    }

    #[test]
    fn branches_differ_and_repeat() {
        let s = Stream::new(1);
        let draw = |s: Stream| s.rng().next_u64();
        assert_eq!(draw(s.branch(1)), draw(Stream::new(1).branch(1)));
        assert_ne!(draw(s.branch(1)), draw(s.branch(2)));
        assert_ne!(draw(s.named("ab")), draw(s.named("ba")));
        assert_ne!(draw(Stream::new(1)), draw(Stream::new(2)));
    }
}
