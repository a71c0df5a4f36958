//! Open counts of the files of a fileset.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Files per chunk: the counts of a chunk fill 16 KiB, four pages of 4 KiB.
const CHUNK: usize = 4096;

type Chunk = Box<[AtomicU32; CHUNK]>;

/// Open counts of files. A chunk takes memory once a file of the chunk is opened.
pub(super) struct OpenCounts(Box<[OnceLock<Chunk>]>);

impl OpenCounts {
    pub(super) fn new(files: u32) -> Self {
        let chunks = (files as usize).div_ceil(CHUNK);
        Self((0..chunks).map(|_| OnceLock::new()).collect())
    }

    #[inline]
    pub(super) fn increment(&self, file: u32) {
        let chunk = self.0[file as usize / CHUNK].get_or_init(new_chunk);
        let before = chunk[file as usize % CHUNK].fetch_add(1, AcqRel);
        debug_assert!(before < u32::MAX, "an open count wraps");
    }

    #[inline]
    pub(super) fn decrement(&self, file: u32) {
        let chunk = self.0[file as usize / CHUNK].get();
        let chunk = chunk.expect("a file that is closed was opened");
        let before = chunk[file as usize % CHUNK].fetch_sub(1, AcqRel);
        debug_assert!(before > 0, "a file is closed that is not open");
    }

    #[inline]
    pub(super) fn get(&self, file: u32) -> u32 {
        let chunk = self.0[file as usize / CHUNK].get();
        chunk.map_or(0, |chunk| chunk[file as usize % CHUNK].load(Acquire))
    }
}

#[cold]
fn new_chunk() -> Chunk {
    Box::new([const { AtomicU32::new(0) }; CHUNK])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More workers than 16 bits can count may have the same file open, and a delete has to see all of them.
    #[test]
    fn a_file_may_be_open_more_often_than_16_bits_count() {
        let open = OpenCounts::new(1);
        for _ in 0..1 << 16 {
            open.increment(0);
        }
        assert_eq!(open.get(0), 1 << 16);
        for _ in 0..1 << 16 {
            open.decrement(0);
        }
        assert_eq!(open.get(0), 0);
    }

    #[test]
    fn every_file_has_a_count_of_its_own() {
        let files = 3 * CHUNK as u32 - 1;
        let open = OpenCounts::new(files);
        let edges = [0, 1, CHUNK as u32 - 1, CHUNK as u32, files - 1];
        for (times, file) in (1..).zip(edges) {
            (0..times).for_each(|_| open.increment(file));
        }
        for file in 0..files {
            let expected = edges.iter().position(|e| *e == file).map_or(0, |at| at + 1);
            assert_eq!(open.get(file), expected as u32, "file {file}");
        }
    }

    #[test]
    fn threads_that_open_files_of_a_new_chunk_lose_no_count() {
        let open = OpenCounts::new(CHUNK as u32);
        std::thread::scope(|s| {
            for _ in 0..8 {
                s.spawn(|| (0..CHUNK as u32).for_each(|file| open.increment(file)));
            }
        });
        assert!((0..CHUNK as u32).all(|file| open.get(file) == 8));
    }
}
