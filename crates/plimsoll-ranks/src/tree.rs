//! The tree along which ranks exchange messages.
//!
//! A rank's subtree is a range of consecutive ranks that begins with the rank. Values combined up the tree are
//! therefore in rank order, and neighbours in the tree are mostly neighbours on the machine, since launchers place
//! consecutive ranks together.

use std::ops::Range;

/// The position of a rank in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreePosition {
    /// Number of the rank that has the position, from 0.
    pub rank: u32,
    /// Number of ranks of the group.
    pub size: u32,
    /// Parent rank; `None` for rank 0.
    pub parent: Option<u32>,
    /// The children's subtrees, contiguous and in rank order; the first rank of each subtree is the child.
    pub children: Vec<Range<u32>>,
}

impl TreePosition {
    /// Position of `rank` in a tree of `size` ranks with at most `fan_out` children per rank.
    ///
    /// # Panics
    /// If `rank` is not below `size`, or `fan_out` is 0.
    pub fn new(rank: u32, size: u32, fan_out: u32) -> Self {
        assert!(rank < size, "rank {rank} of {size} ranks");
        assert!(fan_out > 0, "a rank must be able to have children");
        let mut parent = None;
        let mut subtree = 0..size;
        loop {
            let children = split(subtree.start + 1..subtree.end, fan_out);
            if subtree.start == rank {
                return Self {
                    rank,
                    size,
                    parent,
                    children,
                };
            }
            parent = Some(subtree.start);
            subtree = children
                .into_iter()
                .find(|c| c.contains(&rank))
                .expect("the parts make up the whole");
        }
    }

    /// Position of the first rank of `subtree`, a child of `parent`, in a group of `size` ranks with at most `fan_out`
    /// children per rank.
    ///
    /// # Panics
    /// If the subtree is empty, contains or precedes `parent`, or exceeds `size`; or if `fan_out` is 0.
    pub fn of_subtree(subtree: Range<u32>, size: u32, parent: u32, fan_out: u32) -> Self {
        assert!(
            parent < subtree.start && subtree.start < subtree.end && subtree.end <= size,
            "subtree {subtree:?} of {size} ranks below rank {parent}"
        );
        Self {
            rank: subtree.start,
            size,
            parent: Some(parent),
            children: split(subtree.start + 1..subtree.end, fan_out),
        }
    }

    /// Position of rank 0 in a group on several hosts. The first `own` ranks run on the machine of rank 0, where rank 0
    /// has at most `fan_out` children. `others` has the number of ranks per host; the first rank of each host is a
    /// child of rank 0.
    ///
    /// # Panics
    /// If any of the numbers is 0.
    pub fn of_root(own: u32, others: &[u32], fan_out: u32) -> Self {
        assert!(own > 0 && others.iter().all(|n| *n > 0), "a host has ranks");
        let mut children = split(1..own, fan_out);
        let mut size = own;
        for ranks in others {
            children.push(size..size + ranks);
            size += ranks;
        }
        Self {
            rank: 0,
            size,
            parent: None,
            children,
        }
    }

    /// Number of ranks in the subtree of this rank, including this rank.
    pub fn subtree_len(&self) -> u32 {
        self.children.last().map_or(1, |last| last.end - self.rank)
    }

    /// Neighbours: the parent, then the children.
    pub fn neighbours(&self) -> Vec<u32> {
        let children = self.children.iter().map(|c| c.start);
        self.parent.into_iter().chain(children).collect()
    }
}

/// Splits a range into at most `parts` non-empty parts whose lengths differ by at most one.
fn split(whole: Range<u32>, parts: u32) -> Vec<Range<u32>> {
    let len = whole.end - whole.start;
    let parts = parts.min(len);
    let bound = |i: u32| whole.start + (u64::from(len) * u64::from(i) / u64::from(parts)) as u32;
    (0..parts).map(|i| bound(i)..bound(i + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_agree(size in 1u32..300, fan_out in 1u32..300) {
            for rank in 0..size {
                let place = TreePosition::new(rank, size, fan_out);
                prop_assert!(place.children.len() <= fan_out as usize);
                prop_assert_eq!(place.parent.is_none(), rank == 0);
                let mut next = rank + 1;
                for child in &place.children {
                    prop_assert_eq!(child.start, next);
                    let theirs = TreePosition::new(child.start, size, fan_out);
                    prop_assert_eq!(theirs.parent, Some(rank));
                    prop_assert_eq!(theirs.subtree_len(), child.end - child.start);
                    next = child.end;
                }
                prop_assert_eq!(place.subtree_len(), next - rank);
                if rank == 0 {
                    prop_assert_eq!(next, size);
                }
            }
        }

        #[test]
        fn a_binary_tree_is_flat(size in 1u32..100_000, pick in any::<prop::sample::Index>()) {
            let mut rank = pick.index(size as usize) as u32;
            let mut depth = 0;
            while let Some(parent) = TreePosition::new(rank, size, 2).parent {
                rank = parent;
                depth += 1;
            }
            prop_assert!(depth <= size.ilog2());
        }
    }

    #[test]
    fn every_rank_of_hosts_has_one_place() {
        let root = TreePosition::of_root(3, &[1, 40, 2], 16);
        assert_eq!((root.size, root.subtree_len()), (46, 46));
        assert_eq!(root.neighbours(), [1, 2, 3, 4, 44]);
        let mut places = vec![root];
        let mut ranks = Vec::new();
        while let Some(place) = places.pop() {
            ranks.push(place.rank);
            assert!(place.parent.is_none() || place.children.len() <= 16);
            let below = |subtree: &Range<u32>| {
                TreePosition::of_subtree(subtree.clone(), 46, place.rank, 16)
            };
            places.extend(place.children.iter().map(below));
        }
        ranks.sort_unstable();
        assert!(ranks.into_iter().eq(0..46));
        // The other 39 ranks of the host are on two levels.
        let host = TreePosition::of_subtree(4..44, 46, 0, 16);
        assert_eq!(host.children.len(), 16);
        assert!(host.children.iter().any(|c| c.len() > 1));
    }

    #[test]
    fn parts_of_a_range_differ_by_at_most_one() {
        assert_eq!(split(3..10, 3), [3..5, 5..7, 7..10]);
        assert_eq!(split(3..5, 3), [3..4, 4..5]);
        assert!(split(3..3, 3).is_empty());
        assert_eq!(split(0..9, 1), std::slice::from_ref(&(0..9)));
        let large = split(1..u32::MAX, 2);
        assert_eq!(large, [1..1 << 31, 1 << 31..u32::MAX]);
    }

    #[test]
    fn a_subtree_without_others_has_no_children() {
        let leaf = TreePosition::of_subtree(4..5, 5, 3, 16);
        assert_eq!((leaf.parent, leaf.subtree_len()), (Some(3), 1));
        assert_eq!(leaf.neighbours(), [3]);
        let alone = TreePosition::of_root(1, &[], 16);
        assert_eq!((alone.size, alone.neighbours()), (1, vec![]));
    }

    #[test]
    fn impossible_places_are_refused() {
        let refused = |place: fn() -> TreePosition| std::panic::catch_unwind(place).is_err();
        assert!(refused(|| TreePosition::new(5, 5, 2)));
        assert!(refused(|| TreePosition::new(0, 5, 0)));
        // Refused are subtrees that begin at or before their parent, are empty, or extend beyond the last rank.
        assert!(refused(|| TreePosition::of_subtree(4..6, 9, 4, 2)));
        assert!(refused(|| TreePosition::of_subtree(4..4, 9, 3, 2)));
        assert!(refused(|| TreePosition::of_subtree(4..10, 9, 3, 2)));
        assert!(refused(|| TreePosition::of_root(0, &[1], 2)));
        assert!(refused(|| TreePosition::of_root(1, &[1, 0], 2)));
        assert!(!refused(|| TreePosition::of_subtree(4..9, 9, 3, 2)));
    }

    #[test]
    fn a_star_has_one_level() {
        let leader = TreePosition::new(0, 5, 4);
        assert_eq!(leader.neighbours(), [1, 2, 3, 4]);
        assert_eq!(TreePosition::new(3, 5, 4).neighbours(), [0]);
    }
}
