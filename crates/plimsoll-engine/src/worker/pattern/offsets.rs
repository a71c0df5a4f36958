//! Offsets of the transfers of a rank, and the rank whose object is transferred.

use crate::permutation::Permutation;
use plimsoll_plan::{RankOrder, Stream, TransferLoop, TransferOrder};

/// Rank whose object the rank `rank` transfers; in a shared object, rank whose part is transferred.
pub(crate) fn owner_of(work: &TransferLoop, rank: u32, ranks: u32) -> u32 {
    match work.reorder {
        None => work.owner.of(rank, 0, ranks),
        Some(RankOrder::Random { seed }) => {
            let least = work.owner.constant.rem_euclid(i64::from(ranks)) as u64;
            let drawn = Stream::new(seed).branch(rank.into()).fingerprint();
            let shift = least + drawn % (u64::from(ranks) - least);
            ((u64::from(rank) + shift) % u64::from(ranks)) as u32
        }
        Some(RankOrder::Shuffled { seed }) => {
            let shuffled = Permutation::new(ranks.into(), Stream::new(seed));
            shuffled.map(rank.into()) as u32
        }
    }
}

/// Offsets of the transfers of a rank, as a function of the transfer's number.
pub(super) struct Offsets {
    size: u64,
    /// Number of transfers in a block.
    block: u64,
    /// Number of ranks that share the object; 1 if each rank has its own.
    ranks: u64,
    /// Number of the rank whose part is transferred; 0 if each rank has its own object.
    part: u64,
    order: Order,
}

enum Order {
    Sequential,
    /// Permutation of the transfers of a segment.
    Shuffled(Permutation),
    Random {
        stream: Stream,
        /// Number of whole blocks in the object.
        blocks: u64,
        /// Whether the first block is the last of the object.
        begins_with_last: bool,
    },
}

impl Offsets {
    /// Offsets in an object of `extent` bytes that belongs to rank `owner` or is shared; `None` if random block numbers
    /// are needed, and the object has no whole block.
    pub(super) fn new(work: &TransferLoop, owner: u32, ranks: u32, extent: u64) -> Option<Self> {
        let (ranks, part) = match work.strided {
            true => (u64::from(ranks), u64::from(owner)),
            false => (1, 0),
        };
        let order = match work.order {
            TransferOrder::Sequential => Order::Sequential,
            TransferOrder::Shuffled { seed } => {
                let stream = Stream::new(seed);
                // All ranks of a shared object have the same permutation.
                let stream = match work.strided {
                    true => stream,
                    false => stream.branch(owner.into()),
                };
                Order::Shuffled(Permutation::new(work.block * ranks, stream))
            }
            TransferOrder::Random { seed } => Order::Random {
                stream: Stream::new(seed).branch(owner.into()),
                blocks: Some(extent / (work.block * work.size)).filter(|n| *n > 0)?,
                begins_with_last: work.write && part == 0,
            },
        };
        Some(Self {
            size: work.size,
            block: work.block,
            ranks,
            part,
            order,
        })
    }

    /// Offset of transfer number `k` of the rank, in bytes.
    #[inline]
    pub(super) fn of(&self, k: u64) -> u64 {
        let (segment, in_block) = (k / self.block, k % self.block);
        let of_segment = segment * self.ranks * self.block;
        let number = match &self.order {
            Order::Sequential => of_segment + self.part * self.block + in_block,
            Order::Shuffled(shuffled) => {
                of_segment + shuffled.map(in_block * self.ranks + self.part)
            }
            Order::Random {
                blocks,
                begins_with_last: true,
                ..
            } if segment == 0 => (blocks - 1) * self.block + in_block,
            Order::Random { stream, blocks, .. } => {
                stream.branch(segment).fingerprint() % blocks * self.block + in_block
            }
        };
        number * self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{OperationId, RankShift, Rounds};
    use std::collections::BTreeSet;

    const RANKS: u32 = 3;

    /// Transfers of 10 bytes in blocks of 4.
    fn work(strided: bool, order: TransferOrder) -> TransferLoop {
        TransferLoop {
            owner: RankShift::default(),
            write: false,
            size: 10,
            rounds: Rounds::Count(8),
            block: 4,
            strided,
            order,
            reorder: None,
            barriers: false,
            open: OperationId(0),
            transfer: OperationId(1),
            sync: None,
            close: OperationId(2),
        }
    }

    fn offsets(work: &TransferLoop, owner: u32, count: u64, extent: u64) -> Vec<u64> {
        let offsets = Offsets::new(work, owner, RANKS, extent).unwrap();
        (0..count).map(|k| offsets.of(k)).collect()
    }

    #[test]
    fn blocks_of_ranks_follow_each_other_in_each_segment() {
        let shared = work(true, TransferOrder::Sequential);
        assert_eq!(
            offsets(&shared, 1, 6, 0),
            [40, 50, 60, 70, 120 + 40, 120 + 50]
        );
        let own = work(false, TransferOrder::Sequential);
        assert_eq!(offsets(&own, 1, 6, 0), [0, 10, 20, 30, 40, 50]);
        let mut strided = shared;
        strided.block = 1;
        assert_eq!(offsets(&strided, 2, 3, 0), [20, 50, 80]);
    }

    #[test]
    fn shuffled_transfers_are_each_done_once() {
        let order = TransferOrder::Shuffled { seed: 7 };
        let own = work(false, order);
        let (first, second) = (offsets(&own, 0, 8, 0), offsets(&own, 1, 8, 0));
        assert_ne!(first, second);
        assert!(first[..4].iter().all(|o| *o < 40));
        let moved = first[..4].iter().map(|o| o + 40);
        assert!(moved.eq(first[4..].iter().copied()));
        let shared = work(true, order);
        let all: BTreeSet<u64> = (0..RANKS).flat_map(|r| offsets(&shared, r, 8, 0)).collect();
        assert!(all.into_iter().eq((0..24).map(|n| n * 10)));
    }

    #[test]
    fn random_blocks_are_aligned_and_within_the_object() {
        let order = TransferOrder::Random { seed: 7 };
        let mut read = work(false, order);
        read.block = 1;
        let found = offsets(&read, 0, 1000, 507);
        assert!(found.iter().all(|o| o % 10 == 0 && o + 10 <= 507));
        assert_eq!(BTreeSet::from_iter(&found).len(), 50);
        assert_eq!(found, offsets(&read, 0, 1000, 507));
        assert_ne!(found, offsets(&read, 1, 1000, 507));
        assert!(Offsets::new(&read, 0, RANKS, 9).is_none());
        // Transfers of a block follow each other, and a write begins with the last block.
        let write = TransferLoop {
            write: true,
            ..work(true, order)
        };
        assert_eq!(offsets(&write, 0, 4, 480), [440, 450, 460, 470]);
        let other = offsets(&write, 1, 8, 480);
        assert!(other.chunks(4).all(|b| b[0] % 40 == 0 && b[3] == b[0] + 30));
    }

    #[test]
    fn ranks_are_chosen_at_random_or_as_a_permutation() {
        let mut shifted = work(false, TransferOrder::Sequential);
        shifted.owner.constant = 2;
        assert_eq!(owner_of(&shifted, 1, 100), 3);
        shifted.reorder = Some(RankOrder::Random { seed: 3 });
        let shifts: BTreeSet<u32> = (0..100)
            .map(|rank| (owner_of(&shifted, rank, 100) + 100 - rank) % 100)
            .collect();
        assert!(shifts.len() > 40 && !shifts.contains(&0) && !shifts.contains(&1));
        shifted.reorder = Some(RankOrder::Shuffled { seed: 3 });
        let owners: BTreeSet<u32> = (0..100).map(|rank| owner_of(&shifted, rank, 100)).collect();
        assert_eq!(owners.len(), 100);
    }
}
