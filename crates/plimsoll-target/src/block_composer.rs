//! Bytes composed for each write: a mix of duplicate and unique blocks.

use crate::content::ContentPool;
use memmap2::MmapMut;
use plimsoll_plan::Stream;
use rand::RngExt;
use rustix::io::Errno;

pub(crate) struct BlockComposer {
    /// Composed bytes; the mapping begins at a page boundary, for direct I/O.
    bytes: MmapMut,
    /// Number of composed bytes.
    ready: usize,
    /// Number of composed bytes that writes have taken.
    taken: usize,
    rng: plimsoll_plan::Rng,
    /// Random bytes at the beginning of every block of the stream, by which its blocks differ from the blocks of other
    /// streams.
    mark: [u8; 16],
    blocks: u64,
    /// The pool step of the next unique block.
    step: usize,
}

const PAGE: usize = 4096;

/// Smallest block size of a device, in bytes.
const SECTOR: usize = 512;

/// Number of bytes at the beginning of a block that make the block unique.
const BLOCK_STAMP_BYTES: usize = 24;

impl BlockComposer {
    /// Creates a composer; [`BlockComposer::restart`] sets the stream.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self {
            bytes: MmapMut::map_anon(PAGE).map_err(|_| Errno::NOMEM)?,
            ready: 0,
            taken: 0,
            rng: Stream::new(0).rng(),
            mark: [0; 16],
            blocks: 0,
            step: 0,
        })
    }

    /// Discards the composed bytes and continues with the bytes of `stream`.
    pub(crate) fn restart(&mut self, stream: Stream) {
        (self.ready, self.taken, self.blocks) = (0, 0, 0);
        self.rng = stream.rng();
        self.mark = self.rng.random();
        self.step = self.rng.random::<u32>() as usize;
    }

    /// Ensures that `len` composed bytes are ready at an offset that suits a direct write of `len` bytes. Discards
    /// ready bytes that are fewer than `len` or at another offset, and composes whole blocks.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, if no memory for `len` bytes is available.
    pub(crate) fn make(&mut self, pool: &ContentPool, len: usize) -> Result<(), Errno> {
        // Direct writes consist of whole device blocks and must begin at a block boundary.
        let alignment = match len.is_multiple_of(SECTOR) {
            true => 1 << len.trailing_zeros().min(PAGE.trailing_zeros()),
            false => 1,
        };
        let is_aligned = self.taken.is_multiple_of(alignment);
        if self.ready - self.taken >= len && is_aligned {
            return Ok(());
        }
        let block = pool.block();
        let whole = len.next_multiple_of(block);
        if whole > self.bytes.len() {
            self.bytes = MmapMut::map_anon(whole).map_err(|_| Errno::NOMEM)?;
        }
        for at in (0..whole).step_by(block) {
            self.make_block(pool, at, block);
        }
        // Several writes take bytes of one block that is longer than a write, because only the beginning of a block is
        // incompressible.
        (self.ready, self.taken) = (whole, 0);
        Ok(())
    }

    fn make_block(&mut self, pool: &ContentPool, at: usize, block: usize) {
        let into = &mut self.bytes[at..at + block];
        if self.rng.random::<f64>() * 100.0 < pool.dedupable_percent() {
            let which = self.rng.random_range(0..pool.groups()) as usize;
            into.copy_from_slice(pool.common_block(which));
            return;
        }
        into.copy_from_slice(pool.own_block(self.step));
        self.step = self.step.wrapping_add(1);
        let mut stamp = [0; BLOCK_STAMP_BYTES];
        stamp[..16].copy_from_slice(&self.mark);
        stamp[16..].copy_from_slice(&self.blocks.to_le_bytes());
        self.blocks += 1;
        into[..BLOCK_STAMP_BYTES].copy_from_slice(&stamp);
    }

    /// Takes the next `len` composed bytes of the stream; composes more blocks if fewer than `len` bytes are ready.
    pub(crate) fn take(&mut self, pool: &ContentPool, len: usize) -> Result<&[u8], Errno> {
        self.make(pool, len)?;
        let begin = self.taken;
        self.taken += len;
        debug_assert!(
            self.taken <= self.ready,
            "bytes are taken that were not composed"
        );
        Ok(&self.bytes[begin..begin + len])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Content;
    use std::collections::HashMap;

    fn pool(compressible_percent: f64, dedupable_percent: f64, block: u64) -> ContentPool {
        let content = Content::Blocks {
            compressible_percent,
            dedupable_percent,
            block,
            groups: 40,
        };
        ContentPool::new(content, Stream::new(1)).unwrap()
    }

    fn composer(stream: Stream) -> BlockComposer {
        let mut composer = BlockComposer::new().unwrap();
        composer.restart(stream);
        composer
    }

    /// Counts each block in the content of several sessions and files.
    fn blocks(pool: &ContentPool, block: usize, sessions: u64) -> HashMap<Vec<u8>, u32> {
        let mut seen = HashMap::new();
        for number in 0..sessions {
            let of_file = pool.stream_of_files("tree").branch(number);
            for stream in [pool.stream_of_session(number), of_file] {
                let mut composer = composer(stream);
                for _ in 0..20 {
                    let bytes = composer.take(pool, 64 << 10).unwrap();
                    for b in bytes.chunks(block) {
                        *seen.entry(b.to_vec()).or_default() += 1;
                    }
                }
            }
        }
        seen
    }

    #[test]
    fn blocks_repeat_at_the_requested_rate() {
        for (dedupable, block) in [(0.0, 4096), (30.0, 4096), (80.0, 512), (100.0, 8192)] {
            let pool = pool(0.0, dedupable, block);
            let seen = blocks(&pool, block as usize, 8);
            let all: u32 = seen.values().sum();
            let again: u32 = seen.values().filter(|n| **n > 1).sum();
            let share = 100.0 * f64::from(again) / f64::from(all);
            assert!((share - dedupable).abs() < 2.0, "{share} of {dedupable}");
            let kinds = seen.values().filter(|n| **n > 1).count() as u64;
            assert!(kinds <= 40, "{kinds}");
        }
    }

    #[test]
    fn small_writes_are_as_compressible_as_large_ones() {
        for len in [512, 1000, 2048, 3000, 6000] {
            let pool = pool(50.0, 0.0, 4096);
            let mut composer = composer(pool.stream_of_session(3));
            let (mut zeros, mut all) = (0, 0);
            while all < 1 << 20 {
                let bytes = composer.take(&pool, len).unwrap();
                zeros += bytes.iter().filter(|b| **b == 0).count();
                all += bytes.len();
            }
            let share = 100.0 * zeros as f64 / all as f64;
            // Composed bytes that are fewer than the next write needs are discarded.
            assert!((30.0..60.0).contains(&share), "{share} of writes of {len}");
            let exact = 4096 % len == 0;
            assert!(!exact || (share - 50.0).abs() < 1.5, "{share} of {len}");
        }
    }

    #[test]
    fn blocks_have_the_requested_compressibility() {
        for (compressible, dedupable) in [(0.0, 0.0), (50.0, 0.0), (80.0, 50.0), (100.0, 0.0)] {
            let pool = pool(compressible, dedupable, 4096);
            let mut composer = composer(pool.stream_of_session(3));
            let bytes = composer.take(&pool, 1 << 20).unwrap();
            let zeros = bytes.iter().filter(|b| **b == 0).count() as f64;
            // One of 256 random bytes is zero, and the counter of a stamp has a few zeros: together less than one
            // percent.
            let share = 100.0 * zeros / bytes.len() as f64;
            assert!(
                (share - compressible).abs() < 1.0,
                "{share} of {compressible}"
            );
        }
    }

    #[test]
    fn prepared_data_is_consumed_in_pieces() {
        let pool = pool(0.0, 0.0, 4096);
        let mut composer = composer(pool.stream_of_session(0));
        composer.make(&pool, 10_000).unwrap();
        let first = composer.take(&pool, 6000).unwrap().to_vec();
        let second = composer.take(&pool, 4000).unwrap().to_vec();
        assert_eq!((first.len(), second.len()), (6000, 4000));
        assert_eq!(composer.blocks, 3, "nothing more was composed");
        // The composed bytes include the rest of the last block.
        composer.take(&pool, 3 * 4096 - 10_000).unwrap();
        assert_eq!(composer.blocks, 3);
        composer.take(&pool, 1).unwrap();
        assert_eq!(composer.blocks, 4);
        // The rest does not begin at a page boundary.
        composer.make(&pool, 10_000).unwrap();
        composer.take(&pool, 100).unwrap();
        let page = composer.take(&pool, 4096).unwrap();
        assert_eq!(page.as_ptr() as usize % PAGE, 0);
    }
}
