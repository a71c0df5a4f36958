//! Contents that identify their file and position: each block begins with an identity and a checksum of the identity.

use plimsoll_plan::hash::split_mix64 as mix;

/// Size in bytes of a block that identifies its file and its position.
pub const STAMPED_BLOCK_BYTES: usize = 64;

/// The first bytes of every stamped block.
const MAGIC: u32 = 0x504c_494d;

/// The identity of a block: a file, and the position in the file. The identity determines the bytes
/// of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Distinguishes runs whose files have equal names.
    pub seed: u32,
    /// The rank of a pattern's object, or the generation of a fileset's file.
    pub owner: u32,
    /// The data set of a pattern's object, or the fileset of a file.
    pub set: u32,
    /// The number of the object or file.
    pub number: u64,
    /// Offset of the block in the file, in bytes.
    pub offset: u64,
}

impl Stamp {
    /// The stamp of the block at another offset of the same file.
    #[must_use]
    pub fn at(self, offset: u64) -> Self {
        Self { offset, ..self }
    }

    /// The block: the identity with a checksum, then bytes generated from the identity.
    #[must_use]
    pub fn block(self) -> [u8; STAMPED_BLOCK_BYTES] {
        let mut block = [0; STAMPED_BLOCK_BYTES];
        block[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        block[4..8].copy_from_slice(&self.seed.to_le_bytes());
        block[8..12].copy_from_slice(&self.owner.to_le_bytes());
        block[12..16].copy_from_slice(&self.set.to_le_bytes());
        block[16..24].copy_from_slice(&self.number.to_le_bytes());
        block[24..32].copy_from_slice(&self.offset.to_le_bytes());
        let mut state = self.hash();
        for word in block[32..].chunks_mut(8) {
            word.copy_from_slice(&state.to_le_bytes());
            state = mix(state);
        }
        block
    }

    /// A hash of the identity.
    #[must_use]
    pub fn hash(self) -> u64 {
        let mut h = mix(u64::from(self.seed) << 32 | u64::from(MAGIC));
        h = mix(h ^ (u64::from(self.owner) << 32 | u64::from(self.set)));
        h = mix(h ^ self.number);
        mix(h ^ self.offset)
    }

    /// The identity in a block; `None` without a valid checksum. A block that the end of the file
    /// truncates is recognised if it contains the whole identity and checksum.
    #[must_use]
    pub fn of(block: &[u8]) -> Option<Self> {
        let u32_at = |at: usize| Some(u32::from_le_bytes(block.get(at..at + 4)?.try_into().ok()?));
        let u64_at = |at: usize| Some(u64::from_le_bytes(block.get(at..at + 8)?.try_into().ok()?));
        let stamp = Self {
            seed: u32_at(4)?,
            owner: u32_at(8)?,
            set: u32_at(12)?,
            number: u64_at(16)?,
            offset: u64_at(24)?,
        };
        (u32_at(0)? == MAGIC && u64_at(32)? == stamp.hash()).then_some(stamp)
    }

    /// Generates the bytes of the file from `offset` on; ignores `self.offset`.
    pub fn fill(self, offset: u64, into: &mut [u8]) {
        self.for_each_block(offset, into.len(), |range, bytes| {
            into[range].copy_from_slice(bytes);
        });
    }

    /// Position in `found`, which was read from `offset` on, of the first wrong byte. From the file
    /// offset `trusted` on, zeros are right too: the file may have a hole.
    #[must_use]
    pub fn first_difference(self, offset: u64, found: &[u8], trusted: u64) -> Option<usize> {
        let mut wrong = None;
        self.for_each_block(offset, found.len(), |range, bytes| {
            if wrong.is_some() || found[range.clone()] == *bytes {
                return;
            }
            let begin = range.start;
            wrong = found[range]
                .iter()
                .zip(bytes)
                .enumerate()
                .find(|(i, (is, should))| {
                    let may_be_hole = offset + (begin + i) as u64 >= trusted;
                    is != should && !(may_be_hole && **is == 0)
                })
                .map(|(i, _)| begin + i);
        });
        wrong
    }

    /// Calls `visit` for each block's part of the `len` bytes from `offset` on, with the bytes of the part.
    #[inline]
    fn for_each_block(
        self,
        offset: u64,
        len: usize,
        mut visit: impl FnMut(std::ops::Range<usize>, &[u8]),
    ) {
        let size = STAMPED_BLOCK_BYTES as u64;
        let mut done = 0;
        while done < len {
            let at = offset + done as u64;
            let skip = (at % size) as usize;
            let part = (STAMPED_BLOCK_BYTES - skip).min(len - done);
            let block = self.at(at - at % size).block();
            visit(done..done + part, &block[skip..skip + part]);
            done += part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: Stamp = Stamp {
        seed: 7,
        owner: 1,
        set: 2,
        number: 3,
        offset: 0,
    };

    proptest! {
        #[test]
        fn any_part_of_a_file_has_the_bytes_of_the_whole(begin in 0usize..3000, len in 0usize..3000) {
            let mut whole = vec![0; 6000];
            FILE.fill(0, &mut whole);
            let mut part = vec![0xff; len];
            FILE.fill(begin as u64, &mut part);
            prop_assert_eq!(&part[..], &whole[begin..begin + len]);
            prop_assert_eq!(FILE.first_difference(begin as u64, &part, u64::MAX), None);
        }

        #[test]
        fn one_changed_byte_is_found_where_it_is(begin in 0u64..3000, at in 0usize..2000, by in 1u8..) {
            let mut part = vec![0; 2000];
            FILE.fill(begin, &mut part);
            part[at] = part[at].wrapping_add(by);
            prop_assert_eq!(FILE.first_difference(begin, &part, u64::MAX), Some(at));
        }
    }

    #[test]
    fn zeros_are_right_only_where_there_may_be_a_hole() {
        let zeros = [0; 300];
        let first = FILE
            .first_difference(100, &zeros, 250)
            .expect("zeros are not the content");
        assert!(first < 150, "{first}");
        assert_eq!(FILE.first_difference(250, &zeros, 250), None);
        // Beyond the trusted offset, bytes that are neither zero nor right are wrong too.
        assert_eq!(FILE.first_difference(250, &[9; 300], 250), Some(0));
    }

    #[test]
    fn files_generations_seeds_and_offsets_differ() {
        let others = [
            Stamp { seed: 8, ..FILE },
            Stamp { owner: 2, ..FILE },
            Stamp { set: 3, ..FILE },
            Stamp { number: 4, ..FILE },
            FILE.at(64),
        ];
        for other in others {
            assert_ne!(other.block(), FILE.block());
            assert_eq!(Stamp::of(&other.block()), Some(other));
        }
    }
}
