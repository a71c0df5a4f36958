//! The current sizes of the files of a mix.

use plimsoll_plan::{FileId, Layout, Mix, WorkingSet};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

/// Files per chunk. The first resize of a file of a chunk allocates 1 KiB. The table of chunks takes 16 bytes per
/// chunk, an eighth of a byte per file of the working set.
const CHUNK: u64 = 128;

type Chunk = Box<[AtomicU64; CHUNK as usize]>;

/// The current sizes of the files in the working set of a mix. A file has its planned size until a resize. A chunk of
/// sizes takes memory once a file of the chunk is resized.
pub(crate) struct MixFileSizes {
    layout: Arc<Layout>,
    working_set: WorkingSet,
    members: u64,
    chunks: Box<[OnceLock<Chunk>]>,
}

impl MixFileSizes {
    /// The planned sizes of the data files of a mix; `layout` is the tree of the data files.
    pub(crate) fn new(mix: &Mix, layout: Arc<Layout>) -> Self {
        let working_set = mix.working_set;
        let members = working_set.size(u64::from(layout.files()));
        let chunks = (0..members.div_ceil(CHUNK)).map(|_| OnceLock::new());
        Self {
            chunks: chunks.collect(),
            layout,
            working_set,
            members,
        }
    }

    fn planned(&self, member: u64) -> u64 {
        let file = self.working_set.file(member);
        self.layout.size(FileId(file as u32))
    }

    /// The current size of the `member`-th file of the working set in bytes.
    pub(crate) fn get(&self, member: u64) -> u64 {
        debug_assert!(member < self.members, "{member} of {}", self.members);
        match self.chunks[(member / CHUNK) as usize].get() {
            Some(chunk) => chunk[(member % CHUNK) as usize].load(Relaxed),
            None => self.planned(member),
        }
    }

    pub(crate) fn set(&self, member: u64, size: u64) {
        self.resized(member).store(size, Relaxed);
    }

    /// Records that file `member` has at least `size` bytes, after a write or append.
    pub(crate) fn grow(&self, member: u64, size: u64) {
        // Most writes end within the file and allocate no chunk.
        if self.get(member) < size {
            self.resized(member).fetch_max(size, Relaxed);
        }
    }

    fn resized(&self, member: u64) -> &AtomicU64 {
        debug_assert!(member < self.members, "{member} of {}", self.members);
        let first = member / CHUNK * CHUNK;
        let chunk = self.chunks[(member / CHUNK) as usize].get_or_init(|| {
            let size = |n: usize| match first + n as u64 {
                member if member < self.members => self.planned(member),
                _ => 0,
            };
            Box::new(std::array::from_fn(|n| AtomicU64::new(size(n))))
        });
        &chunk[(member % CHUNK) as usize]
    }

    /// Number of chunks that take memory.
    #[cfg(test)]
    fn allocated(&self) -> usize {
        let filled = self.chunks.iter().filter(|chunk| chunk.get().is_some());
        filled.count()
    }
}

#[cfg(test)]
mod tests;
