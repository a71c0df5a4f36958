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

/// How busy a station or node is for [`Choice::LeastBusy`]: the operations that are there, and more than
/// any other has if it is down.
#[inline]
pub(crate) fn load(is_down: bool, present: u32) -> u32 {
    if is_down { u32::MAX } else { present }
}

/// A number below `count` for an operation. `load` tells how busy each is, `turn` is the last number of
/// round robin.
#[inline]
pub(crate) fn choose(
    choice: Choice,
    count: u32,
    operation: &Operation,
    turn: &mut u32,
    rng: &mut Rng,
    load: impl Fn(u32) -> u32,
) -> u32 {
    if count == 1 {
        return 0;
    }
    let hashed = match choice {
        Choice::Client => return operation.client % count,
        Choice::RoundRobin => {
            *turn = (*turn + 1) % count;
            return *turn;
        }
        Choice::LeastBusy => {
            let least = (0..count).min_by_key(|&i| load(i));
            return least.expect("there is at least one to choose");
        }
        Choice::Random => rng.random::<u64>(),
        Choice::File => mix64(operation.file),
        Choice::Directory => mix64(operation.directory ^ DIRECTORY_SALT),
        Choice::Block => pair(operation.file, operation.offset / CHOICE_BLOCK_BYTES),
    };
    // The upper half of hash times count: as even as the hash, without a division.
    ((u128::from(hashed) * u128::from(count)) >> 64) as u32
}
