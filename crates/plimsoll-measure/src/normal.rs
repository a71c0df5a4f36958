//! Normally distributed random numbers for the simulated measurements of tests.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A normal random number of mean 0 and standard deviation 1 (Box and Muller 1958).
pub(crate) fn standard_normal(random: &mut Xoshiro256PlusPlus) -> f64 {
    let (a, b): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}
