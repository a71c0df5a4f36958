//! Hashing of identities.

use plimsoll_plan::hash::{mix64, split_mix64};

/// Hash of a pair of numbers.
pub(crate) fn pair(a: u64, b: u64) -> u64 {
    mix64(a ^ split_mix64(b))
}
