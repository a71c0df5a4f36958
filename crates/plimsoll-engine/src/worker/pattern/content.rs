//! The contents of objects, and the description of wrong contents.

use memmap2::MmapMut;
use plimsoll_plan::{Content, Pattern};
use plimsoll_target::{ContentPool, STAMPED_BLOCK_BYTES, Stamp};
use std::ops::{Deref, DerefMut};

/// Page-aligned memory, as required by direct I/O.
pub(super) struct Buffer {
    memory: MmapMut,
    /// Bytes in use, which may be 0; a mapping must not be empty.
    len: usize,
}

impl Buffer {
    /// Memory filled with `byte`; `None` if the memory cannot be mapped.
    fn new(len: usize, byte: u8) -> Option<Self> {
        let mut memory = MmapMut::map_anon(len.max(1)).ok()?;
        memory.fill(byte);
        Some(Self { memory, len })
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[..self.len]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.len]
    }
}

/// A rank's buffers: the contents to write or to expect, and the contents read.
pub(super) struct Contents {
    /// The contents of the next object to create; after a read, the expected contents.
    pub(super) to_write: Buffer,
    /// The contents that the latest read returned.
    pub(super) found: Buffer,
    /// Folded seed of the run, which distinguishes runs whose objects have the same names.
    seed: u32,
    /// The source of blocks, if the pattern sets a content.
    pool: ContentPool,
}

impl Contents {
    /// Buffers for the pattern's objects; `None` if there is not enough memory.
    pub(super) fn new(pattern: &Pattern, rank: u32, seed: u64, pool: ContentPool) -> Option<Self> {
        let size = usize::try_from(pattern.object_size).ok()?;
        let read = pattern
            .read_size
            .map_or(Some(size), |n| usize::try_from(n).ok())?;
        Some(Self {
            to_write: Buffer::new(size, (rank % 256) as u8)?,
            found: Buffer::new(read, 0xa5)?,
            seed: (seed ^ (seed >> 32)) as u32,
            pool,
        })
    }

    /// Generates the contents of an object. Without verification and without a content setting, all objects of a rank
    /// have the same contents.
    #[inline]
    pub(super) fn fill(&mut self, pattern: &Pattern, owner: u32, set: u32, number: u64) {
        if let Some(content) = pattern.content {
            return self.compose(content, owner, set, number);
        }
        if !pattern.verify {
            return;
        }
        let object = of_object(self.seed, owner, set, number);
        object.fill(0, &mut self.to_write);
    }

    /// Generates the contents of an object from blocks of the pool, which the identity of the object determines. A
    /// unique block begins with its identity.
    fn compose(&mut self, content: Content, owner: u32, set: u32, number: u64) {
        if content == Content::Zero {
            return self.to_write.fill(0);
        }
        let size = self.pool.block();
        let object = of_object(self.seed, owner, set, number);
        for (i, into) in self.to_write.chunks_mut(size).enumerate() {
            let identity = object.at((i * size) as u64);
            let (block, is_own) = self.pool.block_of(identity.hash());
            self.pool.copy_block(block, into);
            if is_own {
                let stamp = identity.block();
                let len = into.len().min(STAMPED_BLOCK_BYTES);
                into[..len].copy_from_slice(&stamp[..len]);
            }
        }
    }

    /// A description of the difference between found and expected contents; `None` if the contents are equal.
    pub(super) fn difference(&self, pattern: &Pattern) -> Option<String> {
        let expected = &self.to_write[..self.found.len()];
        if *self.found == *expected {
            return None;
        }
        let blocks = || {
            self.found
                .chunks(STAMPED_BLOCK_BYTES)
                .zip(expected.chunks(STAMPED_BLOCK_BYTES))
        };
        let bad = blocks().filter(|(found, wanted)| found != wanted).count();
        let all = blocks().count();
        let (first, (found, wanted)) = blocks().enumerate().find(|(_, (f, w))| f != w)?;
        let byte = found.iter().zip(wanted).position(|(f, w)| f != w)?;
        let offset = first * STAMPED_BLOCK_BYTES + byte;
        let share = if bad == all {
            "all of it".into()
        } else {
            format!("torn: {bad} of {all} blocks of {STAMPED_BLOCK_BYTES} bytes")
        };
        let what = self.describe(pattern, found, wanted);
        Some(format!("from byte {offset} on, {share}; there is {what}"))
    }

    /// A description of a block that was found in place of the wanted block.
    fn describe(&self, pattern: &Pattern, found: &[u8], wanted: &[u8]) -> String {
        if found.iter().all(|b| *b == 0) {
            return "nothing but zeros".into();
        }
        let (Some(is), Some(should)) = (Stamp::of(found), Stamp::of(wanted)) else {
            // With a content setting, not every block has an identity.
            return match pattern.content {
                Some(_) => "other data".into(),
                None => "data that Plimsoll did not write".into(),
            };
        };
        let mut path = Vec::new();
        pattern.push_object(is.owner, is.set, is.number, &mut path);
        let (path, offset) = (String::from_utf8_lossy(&path), is.offset);
        if is.seed != should.seed {
            format!("stale data of a run with another seed, of byte {offset} of `{path}`")
        } else if is.at(0) != should.at(0) {
            format!("misdirected or stale data, of byte {offset} of `{path}`")
        } else if is.offset != should.offset {
            format!("data of byte {offset} of the same object")
        } else {
            "the right block with some of its bytes changed".into()
        }
    }
}

/// The stamp of the first byte of an object.
fn of_object(seed: u32, owner: u32, set: u32, number: u64) -> Stamp {
    Stamp {
        seed,
        owner,
        set,
        number,
        offset: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_plan::{NameTemplate, RelPath, Stream, pattern_names};
    use std::collections::{HashMap, HashSet};

    fn pattern(size: u64) -> Pattern {
        Pattern {
            set_name: NameTemplate::parse(pattern_names::MD_WORKBENCH_SET).unwrap(),
            object_name: NameTemplate::parse(pattern_names::MD_WORKBENCH_OBJECT).unwrap(),
            sets: 2,
            object_size: size,
            verify: true,
            ..Pattern::empty(RelPath::new("out").unwrap(), 4, vec![])
        }
    }

    fn pool(pattern: &Pattern) -> ContentPool {
        let content = pattern.content.unwrap_or_default();
        ContentPool::new(content, Stream::new(1)).unwrap()
    }

    /// The description of `found` in place of object (1, 0, 7) of seed 9.
    fn said(size: u64, found: impl FnOnce(&mut Contents, &Pattern)) -> Option<String> {
        let pattern = pattern(size);
        let mut contents = Contents::new(&pattern, 1, 9, pool(&pattern)).unwrap();
        found(&mut contents, &pattern);
        contents.fill(&pattern, 1, 0, 7);
        contents.difference(&pattern)
    }

    fn holds(seed: u64, owner: u32, set: u32, number: u64) -> impl Fn(&mut Contents, &Pattern) {
        move |c, p| {
            let mut other = Contents::new(p, 0, seed, pool(p)).unwrap();
            other.fill(p, owner, set, number);
            c.found.copy_from_slice(&other.to_write);
        }
    }

    #[test]
    fn buffers_begin_with_a_page() {
        for size in [0, 1, 512, 3901, 4096, 100_000] {
            let pattern = pattern(size);
            let contents = Contents::new(&pattern, 1, 9, pool(&pattern)).unwrap();
            for buffer in [&contents.to_write, &contents.found] {
                assert_eq!(buffer.len() as u64, size);
                assert_eq!(buffer.as_ptr() as usize % 4096, 0);
            }
        }
    }

    #[test]
    fn what_was_written_is_recognised_at_any_size() {
        for size in [0, 1, 31, 39, 64, 100, 3901] {
            assert_eq!(said(size, holds(9, 1, 0, 7)), None, "{size}");
        }
    }

    #[test]
    fn what_was_not_written_is_named() {
        let other = said(3901, holds(9, 1, 1, 6)).unwrap();
        assert!(other.contains("all of it"), "{other}");
        assert!(other.contains("byte 0 of `out/1_1/file-6`"), "{other}");
        let stale = said(3901, holds(8, 1, 0, 7)).unwrap();
        assert!(stale.contains("another seed"), "{stale}");
        let zeros = said(3901, |c, _| c.found.fill(0)).unwrap();
        assert!(zeros.contains("zeros"), "{zeros}");
        let alien = said(3901, |c, _| c.found.fill(7)).unwrap();
        assert!(alien.contains("did not write"), "{alien}");
        let torn = said(3901, |c, p| {
            holds(9, 1, 0, 7)(c, p);
            let good = c.found.to_vec();
            holds(9, 1, 0, 6)(c, p);
            c.found[..640].copy_from_slice(&good[..640]);
        })
        .unwrap();
        assert!(
            torn.starts_with("from byte 656 on, torn: 51 of 61 blocks"),
            "{torn}"
        );
        let shifted = said(3901, |c, p| {
            holds(9, 1, 0, 7)(c, p);
            c.found.copy_within(64..128, 0);
        })
        .unwrap();
        assert!(
            shifted.contains("data of byte 64 of the same object"),
            "{shifted}"
        );
        let flipped = said(3901, |c, p| {
            holds(9, 1, 0, 7)(c, p);
            c.found[120] ^= 1;
        })
        .unwrap();
        assert!(flipped.starts_with("from byte 120 on"), "{flipped}");
        assert!(flipped.contains("some of its bytes changed"), "{flipped}");
    }

    /// The contents of an object of a pattern with a content setting.
    fn object(contents: &mut Contents, pattern: &Pattern, number: u64) -> Vec<u8> {
        contents.fill(pattern, 1, 0, number);
        contents.to_write.to_vec()
    }

    #[test]
    fn contents_are_in_their_shares_and_the_same_in_every_process() {
        let content: Content = "compressible:50%,duplicate:30%,block:1k,groups:5"
            .parse()
            .unwrap();
        let pattern = Pattern {
            content: Some(content),
            ..pattern(64 << 10)
        };
        let new = || Contents::new(&pattern, 1, 9, pool(&pattern)).unwrap();
        let mut contents = new();
        let mut times: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut zeros = 0;
        for number in 0..100 {
            let bytes = object(&mut contents, &pattern, number);
            assert_eq!(bytes, object(&mut new(), &pattern, number));
            zeros += bytes.iter().filter(|b| **b == 0).count();
            for block in bytes.chunks(1024) {
                *times.entry(block.to_vec()).or_default() += 1;
            }
        }
        let again: Vec<u32> = times.into_values().filter(|n| *n > 1).collect();
        assert_eq!(again.len(), 5);
        // The tolerance is four standard deviations of a binomial of 6400.
        let share = f64::from(again.iter().sum::<u32>()) / 6400.0;
        assert!(
            (share - 0.3).abs() < 4.0 * (0.21_f64 / 6400.0).sqrt(),
            "{share}"
        );
        // Random bytes and the identities of blocks contain zeros too.
        let zeros = zeros as f64 / f64::from(100 << 16);
        assert!((0.5..0.53).contains(&zeros), "{zeros}");
    }

    #[test]
    fn objects_of_any_size_are_as_compressible_as_their_content_says() {
        for (text, size, share) in [
            ("compressible:2", 64 << 10, 0.5),
            ("compressible:4", 3072, 0.75),
            ("compressible:4", 300, 0.75),
            ("compressible:80%,duplicate:0", 1000, 0.8),
            ("random", 64 << 10, 0.0),
        ] {
            let pattern = Pattern {
                content: Some(text.parse().unwrap()),
                ..pattern(size)
            };
            let mut contents = Contents::new(&pattern, 1, 9, pool(&pattern)).unwrap();
            let (mut zeros, mut all) = (0, 0);
            for number in 0..50 {
                let bytes = object(&mut contents, &pattern, number);
                zeros += bytes.iter().filter(|b| **b == 0).count();
                all += bytes.len();
            }
            let found = zeros as f64 / all as f64;
            // About half of the bytes of a block's identity are zeros.
            let of_identity = 32.0 / size.min(4096) as f64;
            let off = found - share;
            assert!(
                (-0.03..0.03 + of_identity).contains(&off),
                "{found} of {text} at {size}"
            );
        }
    }

    #[test]
    fn random_objects_have_no_block_twice_and_zeros_are_zeros() {
        let of = |text: &str, size| Pattern {
            content: Some(text.parse().unwrap()),
            ..pattern(size)
        };
        let random = of("random", 3901);
        let mut contents = Contents::new(&random, 1, 9, pool(&random)).unwrap();
        let mut seen = HashSet::new();
        for number in 0..5000 {
            assert!(
                seen.insert(object(&mut contents, &random, number)),
                "{number}"
            );
        }
        let zero = of("zero", 3901);
        let mut contents = Contents::new(&zero, 1, 9, pool(&zero)).unwrap();
        assert!(object(&mut contents, &zero, 3).iter().all(|b| *b == 0));
    }

    #[test]
    fn contents_are_verified_and_those_of_another_object_are_named() {
        let mut pattern = pattern(8192);
        pattern.content = Some("compressible:2,duplicate:0".parse().unwrap());
        let mut contents = Contents::new(&pattern, 1, 9, pool(&pattern)).unwrap();
        let other = object(&mut contents, &pattern, 6);
        contents.fill(&pattern, 1, 0, 7);
        contents.found.copy_from_slice(&other);
        let said = contents.difference(&pattern).unwrap();
        assert!(
            said.contains("misdirected or stale data") && said.contains("file-6"),
            "{said}"
        );
        let own = contents.to_write.to_vec();
        contents.found.copy_from_slice(&own);
        assert_eq!(contents.difference(&pattern), None);
        contents.found[5000] ^= 1;
        let said = contents.difference(&pattern).unwrap();
        assert!(
            said.contains("from byte 5000 on") && said.contains("other data"),
            "{said}"
        );
    }
}
