//! Choice of one of several equal stations or nodes for an operation.

use crate::flow::Operation;
use crate::hash::pair;
use crate::system::Choice;
use plimsoll_plan::Rng;
use plimsoll_plan::hash::mix64;
use rand::RngExt as _;

/// Block size in bytes by which [`Choice::Block`] distributes a file.
const CHOICE_BLOCK_BYTES: u64 = 1 << 20;

/// Makes the hash of a directory differ from the hash of a file with the same number.
const DIRECTORY_SALT: u64 = 0x5851_f42d_4c95_7f2d;

/// Equal nodes, stations or links among which an operation chooses.
pub(crate) struct Candidates {
    pub(crate) count: u32,
    /// Number mixed into the hash of a choice, so that choices are independent: if a node and one of its stations are
    /// both chosen by the file, the node must not determine the station.
    pub(crate) salt: u64,
    /// Divisor of the client's number in [`Choice::Client`]: the number of nodes among which the client's number may
    /// already have chosen, or 1 for the choice of a node.
    pub(crate) client_divisor: u32,
}

/// Load of a station or node for [`Choice::LeastBusy`]: the number of operations present; [`u32::MAX`] for a station or
/// node that is down.
#[inline]
pub(crate) fn load(is_down: bool, present: u32) -> u32 {
    if is_down { u32::MAX } else { present }
}

/// Chooses a candidate below the count for an operation. `load` returns the load of a candidate, `turn` is the last
/// candidate of round robin.
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
    // The upper half of hash × count is as uniform as the hash, without a division.
    ((u128::from(hashed) * u128::from(count)) >> 64) as u32
}
