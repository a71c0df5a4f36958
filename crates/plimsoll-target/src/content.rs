//! The content of writes: a pool of bytes that all workers share.

use memmap2::{Mmap, MmapMut};
use plimsoll_plan::{Content, DEDUPED_BLOCKS, Stream};
use rand::Rng;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// Size of the pool in bytes; a transfer longer than half of the pool takes several calls.
const POOL_BYTES: usize = 8 << 20;

/// Bytes by which transfers step through the pool.
const POOL_STEP_BYTES: usize = 4096;

/// Size of a group of bytes that is as compressible as the whole content. The size equals the smallest device block, so
/// small writes are as compressible as large writes.
const COMPRESSIBLE_UNIT: usize = 512;

/// Maximum prefetched bytes of a piece: the processor's own prefetcher loads the later bytes of
/// longer pieces.
const MAX_PREFETCH_BYTES: u64 = 4096;

/// Bytes of a processor's cache line.
const CACHE_LINE: usize = 64;

/// Maximum size of composed blocks: all duplicate blocks fit into half of the pool.
const MAX_COMPOSED_BLOCK_BYTES: usize = POOL_BYTES / 2 / DEDUPED_BLOCKS as usize;

/// The pool of random bytes from which all writes of a run take their contents; clones of a pool share the memory of
/// the bytes.
#[derive(Clone)]
pub struct ContentPool {
    bytes: Arc<Mmap>,
    file: Arc<OnceLock<OwnedFd>>,
    /// Block size, percentage of duplicate blocks and number of distinct duplicate blocks, if blocks are composed for
    /// each write.
    blocks: Option<(usize, f64, u64)>,
    /// Size in bytes of a group, whose first part is incompressible.
    unit: usize,
    /// Incompressible fraction of a group.
    incompressible: f64,
    /// The stream from which the streams of sessions and files are derived.
    stream: Stream,
}

impl ContentPool {
    /// Fills a new pool.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    pub fn new(content: Content, stream: Stream) -> io::Result<Self> {
        let mut bytes = MmapMut::map_anon(POOL_BYTES)?;
        // Writes use pages that were not used for a while, so each small page costs an address translation, two in a
        // virtual machine. Huge pages avoid the translations; a kernel without huge pages ignores the advice.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(memmap2::Advice::HugePage);
        let mut blocks = None;
        let mut unit = POOL_STEP_BYTES;
        let random = match content {
            Content::Blocks {
                compressible_percent,
                dedupable_percent,
                block,
                groups,
            } => {
                unit = (block as usize).clamp(512, MAX_COMPOSED_BLOCK_BYTES);
                let groups = u64::from(groups).clamp(1, DEDUPED_BLOCKS);
                blocks = Some((unit, dedupable_percent, groups));
                let zeros = (compressible_percent / 100.0).clamp(0.0, 1.0);
                unit - (unit as f64 * zeros) as usize
            }
            Content::Random => POOL_STEP_BYTES,
            Content::Zero => 0,
            Content::Compressible { ratio } => {
                unit = COMPRESSIBLE_UNIT;
                ((unit as f64 / ratio.max(1.0)) as usize).min(unit)
            }
        };
        let mut rng = stream.rng();
        // The halves are equal unless blocks are composed: a piece that crosses the middle
        // continues as if from the beginning.
        let different = match blocks {
            Some(_) => POOL_BYTES,
            None => POOL_BYTES / 2,
        };
        for block in bytes[..different].chunks_exact_mut(unit) {
            rng.fill_bytes(&mut block[..random]);
        }
        if different < POOL_BYTES {
            bytes.copy_within(..POOL_BYTES / 2, POOL_BYTES / 2);
        }
        Ok(Self {
            bytes: Arc::new(bytes.make_read_only()?),
            file: Arc::default(),
            blocks,
            unit,
            incompressible: random as f64 / unit as f64,
            stream,
        })
    }

    /// The stream of a session's content.
    pub(crate) fn stream_of_session(&self, number: u64) -> Stream {
        self.stream.named("session").branch(number)
    }

    /// The parent of the streams of a tree's files: branch *n* gives the initial content of file *n*, whichever session
    /// creates the file.
    #[must_use]
    pub fn stream_of_files(&self, root: &str) -> Stream {
        self.stream.named("file").named(root)
    }

    /// Whether the content is composed for each write.
    pub(crate) fn is_composed(&self) -> bool {
        self.blocks.is_some()
    }

    /// Size of a block in bytes.
    #[must_use]
    pub fn block(&self) -> usize {
        self.blocks.map_or(POOL_STEP_BYTES, |(block, ..)| block)
    }

    /// Percentage of the blocks that are duplicates.
    pub(crate) fn dedupable_percent(&self) -> f64 {
        self.blocks.map_or(0.0, |(_, percent, _)| percent)
    }

    /// Number of distinct duplicate blocks.
    pub(crate) fn groups(&self) -> u64 {
        self.blocks.map_or(1, |(.., groups)| groups)
    }

    /// Duplicate block number `which`, from the first half of the pool.
    pub(crate) fn common_block(&self, which: usize) -> &[u8] {
        let begin = which * self.block();
        &self.bytes[begin..begin + self.block()]
    }

    /// A block of the second half, from which unique blocks are made.
    pub(crate) fn own_block(&self, step: usize) -> &[u8] {
        let begin = POOL_BYTES / 2 + step % (POOL_BYTES / 2 / self.block()) * self.block();
        &self.bytes[begin..begin + self.block()]
    }

    /// The block that a random number selects, and whether the block is to be unique: the caller
    /// then changes the first bytes. The block is the same in every process with a pool of the same
    /// content and stream.
    #[must_use]
    pub fn block_of(&self, number: u64) -> (&[u8], bool) {
        // The fraction uses the high bits of `number`, the choice of the block the low bits.
        let fraction = (number >> 11) as f64 / (1_u64 << 53) as f64;
        let Some((_, percent, groups)) = self.blocks else {
            return (self.piece(number as usize, POOL_STEP_BYTES), true);
        };
        match fraction * 100.0 < percent {
            true => (self.common_block((number % groups) as usize), false),
            false => (self.own_block(number as usize), true),
        }
    }

    /// Copies the beginning of a block of [`ContentPool::block_of`]; the copy is as compressible as the whole block.
    pub fn copy_block(&self, block: &[u8], into: &mut [u8]) {
        for (into, unit) in into.chunks_mut(self.unit).zip(block.chunks(self.unit)) {
            let random = (into.len() as f64 * self.incompressible).ceil() as usize;
            let (random, zeros) = into.split_at_mut(random);
            random.copy_from_slice(&unit[..random.len()]);
            zeros.fill(0);
        }
    }

    /// Maximum number of bytes that one write call takes from the pool: half of the pool, so that a piece may begin
    /// anywhere in the first half.
    #[must_use]
    pub fn longest(&self) -> usize {
        POOL_BYTES / 2
    }

    /// Number of steps that a piece of `len` bytes covers, so that the next piece does not repeat
    /// the bytes.
    #[inline]
    #[must_use]
    pub fn steps(len: usize) -> usize {
        len.div_ceil(POOL_STEP_BYTES)
    }

    /// The first `len` bytes, at most [`ContentPool::longest`], at a step of the pool; consecutive
    /// steps overlap.
    #[inline]
    #[must_use]
    pub fn piece(&self, step: usize, len: usize) -> &[u8] {
        let begin = self.begin(step);
        &self.bytes[begin..begin + len.min(POOL_BYTES / 2)]
    }

    /// Prefetches the beginning of the pool's piece at `step` into the processor caches. An application writes data
    /// that is in the processor caches; the pool of contents is larger than the caches, and a fetch from memory must
    /// not count as the target's time.
    #[inline]
    pub(crate) fn fetch(&self, step: usize, len: u64) {
        let len = len.min(MAX_PREFETCH_BYTES) as usize;
        for line in self.piece(step, len).chunks(CACHE_LINE) {
            fetch_line(line);
        }
    }

    /// All bytes of the pool, of which every piece is a part.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The byte offset in the pool of the piece at `step`.
    #[inline]
    #[must_use]
    pub(crate) fn begin(&self, step: usize) -> usize {
        (step % (POOL_BYTES / 2 / POOL_STEP_BYTES)) * POOL_STEP_BYTES
    }

    /// The pool as a file in memory, from which the kernel can copy; created once for all workers.
    pub(crate) fn file(&self) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(file) = self.file.get() {
            return Ok(file.as_fd());
        }
        let file = rustix::fs::memfd_create("plimsoll-content", MemfdFlags::CLOEXEC)?;
        let mut done = 0;
        while done < self.bytes.len() {
            done += rustix::io::pwrite(&file, &self.bytes[done..], done as u64)?;
        }
        // If another worker has created the file first, that worker's file is used.
        Ok(self.file.get_or_init(|| file).as_fd())
    }
}

/// Prefetches the cache line that contains the first byte.
#[inline(always)]
fn fetch_line(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes nothing but caches, and does not fault at any address. The prefetch instruction
    // belongs to SSE, which every x86-64 processor has.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast());
    }
    // Other processors have no prefetch hint without assembly, so the first byte is read.
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(bytes.first().copied());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(content: Content) -> ContentPool {
        ContentPool::new(content, Stream::new(1)).unwrap()
    }

    #[test]
    fn contents_match_the_request() {
        assert!(pool(Content::Zero).piece(3, 10_000).iter().all(|b| *b == 0));
        let p = pool(Content::Compressible { ratio: 4.0 });
        let zeros = p.piece(1, 40_960).iter().filter(|b| **b == 0).count();
        assert!(
            (30_720..31_000).contains(&zeros),
            "{zeros} of 40960 are zero"
        );
        let p = pool(Content::Random);
        assert_ne!(p.piece(0, 4096), p.piece(1, 4096));
        let (last, first) = p.piece(1023, 8192).split_at(4096);
        assert_eq!((last, first), (p.piece(1023, 4096), p.piece(1024, 4096)));
        assert_eq!(p.piece(7, 4096), pool(Content::Random).piece(7, 4096));
    }
}
