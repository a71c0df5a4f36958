//! Hashing of identities.

use plimsoll_plan::hash::{mix64, split_mix64};

/// Hash of the pair (`a`, `b`), in which the order of the numbers matters.
pub(crate) fn pair(a: u64, b: u64) -> u64 {
    mix64(a ^ split_mix64(b))
}
