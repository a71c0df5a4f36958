//! Which of several like stations or nodes an operation goes to.

use crate::flow::Operation;
use crate::hash::pair;
use crate::system::Choice;
use plimsoll_plan::Rng;
use plimsoll_plan::hash::mix64;
use rand::RngExt as _;

/// Blocks by which [`Choice::Block`] spreads a file.
const CHOICE_BLOCK_BYTES: u64 = 1 << 20;

/// Distinguishes the hash of a directory from that of a file of the same number.
const DIRECTORY_SALT: u64 = 0x5851_f42d_4c95_7f2d;

/// Something to choose from.
pub(crate) struct Candidates {
    pub(crate) count: u32,
    /// Distinguishes choices from each other: the station of a node should not follow from the node if
    /// both are chosen by the file.
    pub(crate) salt: u64,
    /// Choices that a client's number has been used for already: that of the node.
    pub(crate) client_divisor: u32,
}

/// How busy a station or node is for [`Choice::LeastBusy`]: the operations that are there, and more than
/// any other has if it is down.
#[inline]
pub(crate) fn load(is_down: bool, present: u32) -> u32 {
    if is_down { u32::MAX } else { present }
}

/// A number below the count for an operation. `load` tells how busy each is, `turn` is the last number of
/// round robin.
#[inline]
pub(crate) fn choose(
    choice: Choice,
    among: &Candidates,
    operation: &Operation,
    turn: &mut u32,
    rng: &mut Rng,
    load: impl Fn(u32) -> u32,
) -> u32 {
    let (count, salt) = (among.count, among.salt);
    if count == 1 {
        return 0;
    }
    let hashed = match choice {
        Choice::Client => return operation.client / among.client_divisor % count,
        Choice::RoundRobin => {
            *turn = (*turn + 1) % count;
            return *turn;
        }
        Choice::LeastBusy => {
            let least = (0..count).min_by_key(|&i| load(i));
            return least.expect("there is at least one to choose");
        }
        Choice::Random => rng.random::<u64>(),
        Choice::File => mix64(operation.file ^ salt),
        Choice::Directory => mix64(operation.directory ^ DIRECTORY_SALT ^ salt),
        Choice::Block => pair(operation.file ^ salt, operation.offset / CHOICE_BLOCK_BYTES),
    };
    // The upper half of hash times count: as even as the hash, without a division.
    ((u128::from(hashed) * u128::from(count)) >> 64) as u32
}
