//! The bytes of one session's writes.

use crate::block_composer::BlockComposer;
use crate::content::ContentPool;
use crate::session_types::WritePlace;
use memmap2::MmapMut;
use plimsoll_plan::Stream;
use rand::RngExt;
use rustix::io::Errno;

/// The sequence of bytes that a session writes. The bytes follow from the pool, the initial stream,
/// and the lengths of the earlier writes.
pub(crate) struct WriteData {
    pool: ContentPool,
    /// Composes the bytes; `None` if the bytes of the pool are written.
    composer: Option<BlockComposer>,
    /// The pool step of the next piece.
    step: usize,
    /// The prepared bytes of the next detached write.
    detached: Option<MmapMut>,
}

/// A sequence of bytes to write.
pub(crate) trait WriteSource {
    /// The next bytes: at most `max`, at least one unless `max` is 0.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    fn next_chunk(&mut self, max: u64) -> Result<&[u8], Errno>;
}

impl WriteSource for WriteData {
    fn next_chunk(&mut self, max: u64) -> Result<&[u8], Errno> {
        Self::next_chunk(self, max)
    }
}

/// The bytes of a slice that were not written yet.
pub(crate) struct RestOfBytes<'a>(pub(crate) &'a [u8]);

impl WriteSource for RestOfBytes<'_> {
    fn next_chunk(&mut self, max: u64) -> Result<&[u8], Errno> {
        let len = usize::try_from(max).map_or(self.0.len(), |max| max.min(self.0.len()));
        let (next, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(next)
    }
}

/// The bytes of a write that another thread or a background task executes later.
pub(crate) struct DetachedData {
    pool: ContentPool,
    step: usize,
    /// The bytes composed for this write; `None` if the bytes of the pool are written.
    composed: Option<MmapMut>,
}

impl DetachedData {
    /// The contiguous bytes from `done` on of a write of `len` bytes.
    pub(crate) fn piece(&self, done: usize, len: usize) -> &[u8] {
        let want = (len - done).min(self.pool.longest());
        match &self.composed {
            Some(bytes) => &bytes[done..][..want],
            None => {
                let step = self.step.wrapping_add(ContentPool::steps(done));
                self.pool.piece(step, want)
            }
        }
    }
}

impl WriteData {
    /// The bytes of session number `session`.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    pub(crate) fn new(pool: &ContentPool, session: u64) -> Result<Self, Errno> {
        let mut source = Self {
            pool: pool.clone(),
            composer: pool.is_composed().then(BlockComposer::new).transpose()?,
            step: 0,
            detached: None,
        };
        source.restart(pool.stream_of_session(session));
        Ok(source)
    }

    /// Continues with the bytes of `stream`, independently of earlier writes.
    pub(crate) fn restart(&mut self, stream: Stream) {
        match &mut self.composer {
            Some(composer) => composer.restart(stream),
            None => self.step = stream.rng().random::<u32>() as usize,
        }
    }

    pub(crate) fn pool(&self) -> &ContentPool {
        &self.pool
    }

    /// Composes or prefetches the bytes of the next write.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    #[inline]
    pub(crate) fn prepare(&mut self, len: u64) -> Result<(), Errno> {
        match self.composer {
            None => {
                self.pool.fetch(self.step, len);
                Ok(())
            }
            Some(_) => self.compose(len),
        }
    }

    #[cold]
    fn compose(&mut self, len: u64) -> Result<(), Errno> {
        if let Some(composer) = &mut self.composer {
            let len = len.min(self.pool.longest() as u64) as usize;
            composer.make(&self.pool, len)?;
        }
        Ok(())
    }

    /// The next bytes: at most `max`, and at most [`ContentPool::longest`].
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    #[inline]
    pub(crate) fn next_chunk(&mut self, max: u64) -> Result<&[u8], Errno> {
        let want = max.min(self.pool.longest() as u64) as usize;
        match &mut self.composer {
            None => {
                let step = self.step;
                self.step = step.wrapping_add(ContentPool::steps(want));
                Ok(self.pool.piece(step, want))
            }
            Some(composer) => composer.take(&self.pool, want),
        }
    }

    /// Takes the next `len` bytes of content, and returns their offset in the pool; only for contents that come
    /// unchanged from the pool.
    pub(crate) fn next_in_pool(&mut self, len: usize) -> usize {
        assert!(
            self.composer.is_none(),
            "composed bytes are not in the pool"
        );
        let step = self.step;
        self.step = step.wrapping_add(ContentPool::steps(len));
        self.pool.begin(step)
    }

    /// Composes or prefetches the bytes of the next detached write.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    fn prepare_detached(&mut self, len: u64) -> Result<(), Errno> {
        match self.composer {
            None => self.pool.fetch(self.step, len),
            Some(_) => self.detached = Some(self.copy_next(len)?),
        }
        Ok(())
    }

    /// Composes or prefetches the bytes of the next write, for a plain or a detached write.
    ///
    /// # Errors
    /// `ENOMEM` if the memory cannot be allocated.
    #[inline(always)]
    pub(crate) fn prepare_at<H>(
        &mut self,
        place: WritePlace<'_, H>,
        len: u64,
    ) -> Result<(), Errno> {
        match place {
            WritePlace::Queued(..) => self.prepare_detached(len),
            _ => self.prepare(len),
        }
    }

    /// Takes the bytes of a detached write, prepared or composed now.
    ///
    /// # Errors
    /// `ENOMEM` if the bytes were not prepared and the memory cannot be allocated.
    pub(crate) fn take_detached(&mut self, len: u64) -> Result<DetachedData, Errno> {
        let composed = match (self.detached.take(), self.composer.is_some()) {
            (_, false) => None,
            (Some(bytes), true) if bytes.len() as u64 == len.max(1) => Some(bytes),
            (_, true) => Some(self.copy_next(len)?),
        };
        let step = self.step;
        self.step = step.wrapping_add(ContentPool::steps(len as usize));
        Ok(DetachedData {
            pool: self.pool.clone(),
            step,
            composed,
        })
    }

    /// Makes `bytes` the bytes of a detached write; the session's own sequence does not advance.
    pub(crate) fn detached_bytes(&self, bytes: MmapMut) -> DetachedData {
        DetachedData {
            pool: self.pool.clone(),
            step: self.step,
            composed: Some(bytes),
        }
    }

    /// Copies the next `len` bytes to newly allocated memory.
    fn copy_next(&mut self, len: u64) -> Result<MmapMut, Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let mut bytes = MmapMut::map_anon(len.max(1)).map_err(|_| Errno::NOMEM)?;
        let mut rest = &mut bytes[..len];
        while !rest.is_empty() {
            let piece = self.next_chunk(rest.len() as u64)?;
            let (into, behind) = rest.split_at_mut(piece.len());
            into.copy_from_slice(piece);
            rest = behind;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::Content;

    fn source(content: &str, seed: u64, session: u64) -> WriteData {
        let content: Content = content.parse().unwrap();
        let pool = ContentPool::new(content, Stream::new(seed)).unwrap();
        WriteData::new(&pool, session).unwrap()
    }

    const CONTENTS: [&str; 3] = ["random", "compressible:2", "compressible:50%,duplicate:30%"];

    #[test]
    fn bytes_follow_from_seed_session_and_what_was_written() {
        for content in CONTENTS {
            let bytes = |seed, session| {
                let mut source = source(content, seed, session);
                let mut all = Vec::new();
                for len in [1, 4096, 100_000, 512, 5_000_000] {
                    source.prepare(len).unwrap();
                    all.extend_from_slice(source.next_chunk(len).unwrap());
                }
                all
            };
            assert_eq!(bytes(1, 7), bytes(1, 7), "{content}");
            assert_ne!(bytes(1, 7), bytes(1, 8), "{content}");
            assert_ne!(bytes(1, 7), bytes(2, 7), "{content}");
        }
    }

    #[test]
    fn a_stream_has_its_bytes_whoever_writes_them() {
        for content in CONTENTS {
            let (mut one, mut other) = (source(content, 1, 0), source(content, 1, 5));
            one.next_chunk(10_000).unwrap();
            let bytes = |source: &mut WriteData, file| {
                source.restart(Stream::new(9).branch(file));
                let mut all = source.next_chunk(700).unwrap().to_vec();
                all.extend_from_slice(source.next_chunk(9000).unwrap());
                all
            };
            let first = bytes(&mut one, 1);
            assert_ne!(first, bytes(&mut one, 2), "{content}");
            assert_eq!(first, bytes(&mut other, 1), "{content}");
        }
    }

    #[test]
    fn what_is_prepared_for_later_is_what_is_written_later() {
        for content in CONTENTS {
            let (mut prepared, mut not) = (source(content, 1, 0), source(content, 1, 0));
            for len in [0, 1, 4096, 6_000_000] {
                prepared.prepare_detached(len).unwrap();
                let a = prepared.take_detached(len).unwrap();
                let b = not.take_detached(len).unwrap();
                let mut done = 0;
                while done < len as usize {
                    let piece = a.piece(done, len as usize);
                    assert_eq!(piece, b.piece(done, len as usize), "{content}");
                    done += piece.len();
                }
            }
        }
    }
}
