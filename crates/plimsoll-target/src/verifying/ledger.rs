//! The knowledge of a run about its files: which files exist, and which writes were acknowledged.

use super::record::{FileRecord, Known};
use super::stamp::{STAMPED_BLOCK_BYTES, Stamp};
use plimsoll_plan::hash::split_mix64 as mix;
use plimsoll_plan::{FileId, FilesetId, Layout, VerificationFailure};
use plimsoll_runtime::sync::lock;
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};

/// Number of parts of the name table; more parts mean less contention between workers.
const SHARDS: usize = 64;

/// Maximum number of described wrong reads; further wrong reads are only counted.
const MAX_EXAMPLES: usize = 10;

/// Size of the word that a description of wrong contents shows, in bytes.
const WORD_BYTES: u64 = 8;

/// A fileset of a verified run.
pub struct VerifiedFileset {
    /// The computed tree of the fileset: directories, names and planned sizes.
    pub layout: Arc<Layout>,
    /// Number of files, from the first file on, that the run populates.
    pub files_used: u64,
    /// Whether other processes may change the lengths of the fileset's files, so that lengths cannot be checked.
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
    /// Unknown because an operation on the name failed or did not return.
    Unknown,
}

/// A name of a fileset. Timed operations never wait for the lock: a name that is being created, removed or renamed
/// belongs to one worker.
#[derive(Debug)]
pub(crate) struct Name {
    state: Mutex<NameState>,
}

#[derive(Debug)]
struct NameState {
    presence: Presence,
    /// The current or last file of the name.
    record: Arc<FileRecord>,
    /// Number of files that the name has had.
    generation: u32,
}

/// The located name of a session's next operation.
pub(crate) struct Located {
    pub(crate) name: Arc<Name>,
    pub(crate) presence: Presence,
    /// The file of the name; for a missing name, the record of the file that an open would create.
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

    pub(crate) fn set(&self, presence: Presence) {
        lock(&self.state).presence = presence;
    }

    /// Notes that the name exists and names the file of `record`.
    pub(crate) fn install(&self, record: Arc<FileRecord>) {
        let mut state = lock(&self.state);
        (state.presence, state.record) = (Presence::There, record);
    }
}

/// Names by key: fileset number and file number, 32 bits each.
type NamesByKey = HashMap<u64, Arc<Name>>;

/// The knowledge of a run about its files.
///
/// A file that no operation has touched is in its populated state and takes no memory.
pub struct Ledger {
    seed: u32,
    filesets: Vec<Tracked>,
    names: Box<[Mutex<NamesByKey>]>,
    reads: AtomicU64,
    wrong_reads: AtomicU64,
    examples: Mutex<Vec<VerificationFailure>>,
}

/// The expected state of a name after a run.
pub(super) enum Expected {
    Absent,
    Unknown,
    File(Arc<FileRecord>),
}

impl Ledger {
    /// Creates the ledger of a run with the given seed, before any fileset is populated.
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

    /// Notes that a fileset has been populated: its files exist as laid out.
    pub fn note_populated(&self, fileset: FilesetId) {
        self.filesets[fileset.0 as usize]
            .is_populated
            .store(true, Relaxed);
    }

    /// Number of reads whose contents have been compared with the acknowledged writes.
    #[must_use]
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }

    /// Number of reads that returned wrong contents, or fewer bytes than the file has.
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

    /// The presence and the record of a file after populating.
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

    /// Locates a name for an operation; called before the operation is timed.
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

    /// Locates a name that is being populated. The name needs no entry in the table, because its
    /// file is in the planned state afterwards.
    pub(super) fn locate_to_populate(fileset: FilesetId, file: FileId) -> Located {
        let record = || FileRecord::new(fileset.0, file.0, 0, 0);
        Located {
            name: Arc::new(Name::new(Presence::Gone, record())),
            presence: Presence::Gone,
            record: Arc::new(record()),
        }
    }

    /// The expected state of a name now.
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

    /// Checks the bytes `found` by a read of `wanted` bytes from `offset` on; `known` held throughout the read. Returns
    /// whether the bytes are right.
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

    /// Describes wrong contents: `found` was read from `offset` on, and its byte `at` is wrong.
    pub(super) fn wrong_content(
        &self,
        stamp: Stamp,
        offset: u64,
        found: &[u8],
        at: usize,
    ) -> VerificationFailure {
        let byte = offset + at as u64;
        // The read part of the word that contains the wrong byte.
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

    /// Phrase about the origin of wrong bytes, for the message about wrong contents: zeros, or the file and offset that
    /// the bytes name; empty if the bytes name no file.
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
