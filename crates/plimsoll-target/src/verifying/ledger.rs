//! What a run knows of its files: which exist, and what of them was acknowledged.

use super::record::{FileRecord, Known};
use super::stamp::{STAMPED_BLOCK_BYTES, Stamp};
use plimsoll_plan::hash::split_mix64 as mix;
use plimsoll_plan::{FileId, FilesetId, Layout, VerificationFailure};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts of the table of names, so that two workers rarely want the same lock.
const SHARDS: usize = 64;

/// Wrong reads that are described; the others are only counted.
const MAX_EXAMPLES: usize = 10;

/// Bytes of the word that a description of wrong contents shows.
const WORD_BYTES: u64 = 8;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A fileset of a verified run.
pub struct VerifiedFileset {
    /// Its tree.
    pub layout: Arc<Layout>,
    /// Files, from the first, that the run populates.
    pub files_used: u64,
    /// Whether other processes may change the lengths of its files.
    pub has_foreign_lengths: bool,
}

struct Tracked {
    fileset: VerifiedFileset,
    is_populated: AtomicBool,
}

/// Whether a name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    There,
    Gone,
    /// An operation on the name failed or did not return.
    Unknown,
}

/// A name of a fileset. Its lock is never waited for while an operation is timed: a name that is created,
/// removed or renamed belongs to one worker.
#[derive(Debug)]
pub(crate) struct Name {
    state: Mutex<NameState>,
}

#[derive(Debug)]
struct NameState {
    presence: Presence,
    /// The file of the name, or the one that it had.
    record: Arc<FileRecord>,
    /// Files that the name has had.
    generation: u32,
}

/// A name for the next operation of a session.
pub(crate) struct Located {
    pub(crate) name: Arc<Name>,
    pub(crate) presence: Presence,
    /// The file of the name; if it does not exist, the one that would be created.
    pub(crate) record: Arc<FileRecord>,
}

impl Name {
    fn new(presence: Presence, record: FileRecord) -> Self {
        Self {
            state: Mutex::new(NameState {
                presence,
                record: Arc::new(record),
                generation: 0,
            }),
        }
    }

    /// Notes whether the name exists.
    pub(crate) fn set(&self, presence: Presence) {
        lock(&self.state).presence = presence;
    }

    /// Gives the name a file.
    pub(crate) fn install(&self, record: Arc<FileRecord>) {
        let mut state = lock(&self.state);
        (state.presence, state.record) = (Presence::There, record);
    }
}

/// Names by fileset and number, 32 bits each.
type NamesByKey = HashMap<u64, Arc<Name>>;

/// The knowledge of a run about its files, by fileset and number.
///
/// A file that no operation touched is as it was populated and takes no memory.
pub struct Ledger {
    seed: u32,
    filesets: Vec<Tracked>,
    names: Box<[Mutex<NamesByKey>]>,
    reads: AtomicU64,
    wrong_reads: AtomicU64,
    examples: Mutex<Vec<VerificationFailure>>,
}

/// What must be at a name after a run.
pub(super) enum Expected {
    Absent,
    Unknown,
    File(Arc<FileRecord>),
}

impl Ledger {
    /// The knowledge before a run with this seed, whose filesets are not populated.
    #[must_use]
    pub fn new(seed: u64, filesets: Vec<VerifiedFileset>) -> Self {
        let tracked = filesets.into_iter().map(|fileset| Tracked {
            fileset,
            is_populated: AtomicBool::new(false),
        });
        Self {
            seed: (seed ^ (seed >> 32)) as u32,
            filesets: tracked.collect(),
            names: (0..SHARDS).map(|_| Mutex::default()).collect(),
            reads: AtomicU64::new(0),
            wrong_reads: AtomicU64::new(0),
            examples: Mutex::default(),
        }
    }

    /// Notes that the files of a fileset exist as they were laid out.
    pub fn note_populated(&self, fileset: FilesetId) {
        self.filesets[fileset.0 as usize]
            .is_populated
            .store(true, Relaxed);
    }

    /// Reads that were checked.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// Reads that returned wrong contents, or fewer bytes than the file has.
    #[must_use]
    pub fn wrong_reads(&self) -> u64 {
        self.wrong_reads.load(Relaxed)
    }

    /// Takes the descriptions of the first wrong reads; paths are relative to the work directory.
    #[must_use]
    pub fn take_examples(&self) -> Vec<VerificationFailure> {
        std::mem::take(&mut *lock(&self.examples))
    }

    pub(super) fn stamp_of(&self, record: &FileRecord) -> Stamp {
        record.stamp(self.seed)
    }

    /// The file that populating creates.
    fn planned(&self, fileset: FilesetId, file: FileId) -> (Presence, FileRecord) {
        let tracked = &self.filesets[fileset.0 as usize];
        let VerifiedFileset {
            layout,
            files_used,
            has_foreign_lengths,
        } = &tracked.fileset;
        let is_there = tracked.is_populated.load(Relaxed)
            && u64::from(file.0) < *files_used
            && layout.starts_with(file);
        if !is_there {
            return (Presence::Gone, FileRecord::new(fileset.0, file.0, 0, 0));
        }
        let size = layout.size(file);
        let record = match has_foreign_lengths {
            true => FileRecord::of_unknown_length(fileset.0, file.0, size),
            false => FileRecord::new(fileset.0, file.0, 0, size),
        };
        (Presence::There, record)
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, NamesByKey> {
        lock(&self.names[(mix(key) % SHARDS as u64) as usize])
    }

    fn key(fileset: FilesetId, file: FileId) -> u64 {
        u64::from(fileset.0) << 32 | u64::from(file.0)
    }

    /// A name for an operation. Called before the operation is timed.
    pub(super) fn locate(&self, fileset: FilesetId, file: FileId) -> Located {
        let key = Self::key(fileset, file);
        let name = self.shard(key).get(&key).cloned();
        let name = name.unwrap_or_else(|| {
            let (presence, record) = self.planned(fileset, file);
            let name = Arc::new(Name::new(presence, record));
            self.shard(key).entry(key).or_insert(name).clone()
        });
        let mut state = lock(&name.state);
        let presence = state.presence;
        let record = match presence {
            Presence::There => state.record.clone(),
            Presence::Gone | Presence::Unknown => {
                state.generation += 1;
                Arc::new(FileRecord::new(fileset.0, file.0, state.generation, 0))
            }
        };
        drop(state);
        Located {
            name,
            presence,
            record,
        }
    }

    /// A name that is being populated. It need not be remembered: its file will be as planned.
    pub(super) fn locate_to_populate(fileset: FilesetId, file: FileId) -> Located {
        let record = || FileRecord::new(fileset.0, file.0, 0, 0);
        Located {
            name: Arc::new(Name::new(Presence::Gone, record())),
            presence: Presence::Gone,
            record: Arc::new(record()),
        }
    }

    /// What must be at a name now.
    pub(super) fn expected(&self, fileset: FilesetId, file: FileId) -> Expected {
        let key = Self::key(fileset, file);
        let known = self.shard(key).get(&key).cloned();
        let (presence, record) = match known {
            Some(name) => {
                let state = lock(&name.state);
                (state.presence, state.record.clone())
            }
            None => {
                let (presence, record) = self.planned(fileset, file);
                (presence, Arc::new(record))
            }
        };
        match presence {
            Presence::There if record.is_unknown() => Expected::Unknown,
            Presence::There => Expected::File(record),
            Presence::Gone => Expected::Absent,
            Presence::Unknown => Expected::Unknown,
        }
    }

    /// Checks what a read of `wanted` bytes from `offset` on returned, with what was known while it was in
    /// progress. Returns whether it is right.
    pub(super) fn check_read(
        &self,
        stamp: Stamp,
        known: Known,
        (offset, wanted): (u64, u64),
        found: &[u8],
    ) -> bool {
        self.reads.fetch_add(1, Relaxed);
        let end = offset + found.len() as u64;
        let failure = match stamp.first_difference(offset, found, known.solid) {
            Some(at) => self.wrong_content(stamp, offset, found, at),
            None if (found.len() as u64) < wanted && end < known.length => VerificationFailure {
                path: self.path_of(stamp),
                offset: Some(end),
                problem: format!(
                    "a read ended at byte {end}, although {} bytes were acknowledged",
                    known.length
                ),
            },
            None => return true,
        };
        self.wrong_reads.fetch_add(1, Relaxed);
        let mut examples = lock(&self.examples);
        if examples.len() < MAX_EXAMPLES {
            examples.push(failure);
        }
        false
    }

    /// The path of the file of a stamp, relative to the work directory.
    pub(super) fn path_of(&self, stamp: Stamp) -> String {
        let mut path = Vec::new();
        let tracked = &self.filesets[stamp.set as usize];
        tracked
            .fileset
            .layout
            .push_file(FileId(stamp.number as u32), &mut path);
        String::from_utf8_lossy(&path).into_owned()
    }

    /// Describes wrong contents: `found` was read from `offset` on, and is wrong from `at` on.
    pub(super) fn wrong_content(
        &self,
        stamp: Stamp,
        offset: u64,
        found: &[u8],
        at: usize,
    ) -> VerificationFailure {
        let byte = offset + at as u64;
        // The word of the byte, as far as it was read.
        let word = byte - byte % WORD_BYTES;
        let begin = word.saturating_sub(offset) as usize;
        let end = ((word + WORD_BYTES - offset) as usize).min(found.len());
        let mut expected = vec![0; end - begin];
        stamp.fill(offset + begin as u64, &mut expected);
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        VerificationFailure {
            path: self.path_of(stamp),
            offset: Some(byte),
            problem: format!(
                "byte {byte} is wrong: expected {} and found {} at byte {}{}",
                hex(&expected),
                hex(&found[begin..end]),
                offset + begin as u64,
                self.origin_of(stamp, offset, found, byte)
            ),
        }
    }

    /// Where the bytes in place of the right ones come from, if that can be told.
    fn origin_of(&self, stamp: Stamp, offset: u64, found: &[u8], byte: u64) -> String {
        let block = byte - byte % STAMPED_BLOCK_BYTES as u64;
        let Some(bytes) = block
            .checked_sub(offset)
            .and_then(|at| found.get(at as usize..))
        else {
            return String::new();
        };
        let bytes = &bytes[..bytes.len().min(STAMPED_BLOCK_BYTES)];
        if bytes.iter().all(|b| *b == 0) {
            return ": zeros".into();
        }
        let Some(is) = Stamp::of(bytes) else {
            return String::new();
        };
        let is_known = self
            .filesets
            .get(is.set as usize)
            .is_some_and(|t| is.number < u64::from(t.fileset.layout.files()));
        if is.seed != stamp.seed || !is_known {
            format!(": data of another run, of byte {} of a file", is.offset)
        } else if (is.set, is.number) != (stamp.set, stamp.number) {
            format!(": data of byte {} of `{}`", is.offset, self.path_of(is))
        } else if is.owner != stamp.owner {
            ": data of an earlier file of this name".into()
        } else {
            format!(": data of byte {} of the same file", is.offset)
        }
    }
}

#[cfg(test)]
mod tests;
