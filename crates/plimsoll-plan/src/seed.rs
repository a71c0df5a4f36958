//! Seeded random streams, the source of every random choice of a run.

use rand::SeedableRng;

/// The generator: xoshiro256++, small and fast, with the same output on every machine.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// A node in the tree of random streams below a Plan's seed.
///
/// Each kind of choice has its own branch, so that the draws of one kind do not affect another: the
/// sizes of a fileset do not depend on the number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream(u64);

impl Stream {
    /// The root of the tree for a Plan's seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The branch with this number.
    #[must_use]
    pub fn branch(self, number: u64) -> Self {
        Self(mix(self.0 ^ mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The branch with this name.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        name.bytes().fold(self.branch(name.len() as u64), |s, b| {
            s.branch(u64::from(b))
        })
    }

    /// A number that stands for this node.
    #[must_use]
    pub fn fingerprint(self) -> u64 {
        self.0
    }

    /// A generator that starts here.
    #[must_use]
    pub fn rng(self) -> Rng {
        Rng::seed_from_u64(self.0)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

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
