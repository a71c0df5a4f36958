//! Random numbers for the simulated measurements of tests.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A normal random number of mean 0 and standard deviation 1 (Box and Muller 1958).
pub(crate) fn standard_normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (a, b): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// Random numbers of a series.
pub(crate) struct Noise {
    random: Xoshiro256PlusPlus,
    /// Latest autocorrelated number.
    pub(crate) latest: f64,
}

impl Noise {
    /// The numbers of the series with the number `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        let mut noise = Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            latest: 0.0,
        };
        noise.latest = noise.normal();
        noise
    }

    /// The next number, uniform between 0 and 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.random.random()
    }

    /// The next number of mean 0 and deviation 1, normally distributed.
    pub(crate) fn normal(&mut self) -> f64 {
        standard_normal(&mut self.random)
    }

    /// The next number of an autoregressive series of mean 0 and deviation 1 with a lag-1 correlation of `r`.
    pub(crate) fn correlated(&mut self, r: f64) -> f64 {
        self.latest = r * self.latest + (1.0 - r * r).sqrt() * self.normal();
        self.latest
    }
}
