//! What is written: a pool of bytes that all workers share.

use memmap2::{Mmap, MmapMut};
use plimsoll_plan::{Content, Stream};
use rand::Rng;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

/// Bytes in the pool; a longer transfer takes several calls.
const POOL: usize = 8 << 20;

/// Unit in which contents are made compressible, and by which transfers step through the pool.
const BLOCK: usize = 4096;

/// Bytes to write. Cheap to clone.
#[derive(Clone)]
pub struct ContentPool {
    bytes: Arc<Mmap>,
    file: Arc<OnceLock<OwnedFd>>,
}

impl ContentPool {
    /// Fills a pool.
    ///
    /// # Errors
    /// When the memory cannot be had.
    pub fn new(content: Content, stream: Stream) -> io::Result<Self> {
        let mut bytes = MmapMut::map_anon(POOL)?;
        let random = match content {
            Content::Random => BLOCK,
            Content::Zero => 0,
            Content::Compressible { ratio } => {
                ((BLOCK as f64 / ratio.max(1.0)) as usize).min(BLOCK)
            }
        };
        let mut rng = stream.rng();
        for block in bytes.chunks_exact_mut(BLOCK) {
            rng.fill_bytes(&mut block[..random]);
        }
        Ok(Self {
            bytes: Arc::new(bytes.make_read_only()?),
            file: Arc::default(),
        })
    }

    /// Longest piece the pool gives.
    #[must_use]
    pub fn longest(&self) -> usize {
        POOL / 2
    }

    /// Steps to go on by after a piece of `len` bytes, so that the next one does not repeat it.
    #[inline]
    #[must_use]
    pub fn steps(len: usize) -> usize {
        len.div_ceil(BLOCK)
    }

    /// A piece of `len` bytes, at most [`ContentPool::longest`]; the next step gives another.
    #[inline]
    #[must_use]
    pub fn piece(&self, step: usize, len: usize) -> &[u8] {
        let begin = self.begin(step);
        &self.bytes[begin..begin + len.min(POOL / 2)]
    }

    /// Where the piece of a step begins in the pool.
    #[inline]
    #[must_use]
    pub(crate) fn begin(&self, step: usize) -> usize {
        (step % (POOL / 2 / BLOCK)) * BLOCK
    }

    /// The pool as a file in memory, which the kernel can copy from; made once for all workers.
    pub(crate) fn file(&self) -> Result<BorrowedFd<'_>, Errno> {
        if let Some(file) = self.file.get() {
            return Ok(file.as_fd());
        }
        let file = rustix::fs::memfd_create("plimsoll-content", MemfdFlags::CLOEXEC)?;
        let mut done = 0;
        while done < self.bytes.len() {
            done += rustix::io::pwrite(&file, &self.bytes[done..], done as u64)?;
        }
        // Another worker may have been faster; its file is as good.
        Ok(self.file.get_or_init(|| file).as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(content: Content) -> ContentPool {
        ContentPool::new(content, Stream::new(1)).unwrap()
    }

    #[test]
    fn contents_are_what_was_asked() {
        assert!(pool(Content::Zero).piece(3, 10_000).iter().all(|b| *b == 0));
        let p = pool(Content::Compressible { ratio: 4.0 });
        let zeros = p.piece(1, 40_960).iter().filter(|b| **b == 0).count();
        assert!(
            (30_720..31_000).contains(&zeros),
            "{zeros} of 40960 are zero"
        );
        let p = pool(Content::Random);
        assert_ne!(p.piece(0, 4096), p.piece(1, 4096));
        assert_eq!(p.piece(7, 4096), pool(Content::Random).piece(7, 4096));
    }
}
