//! The simulated files, and the outcome of each call.

use super::faults::{FileFaults, MILLION};
use crate::session_types::{Attributes, EntryKind};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of session calls by which faults and the checks of a simulation distinguish calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallKind {
    /// Call that opens a file, and creates a missing file if requested.
    Open,
    /// Call that closes an open file.
    Close,
    /// Call that reads bytes of an open file.
    Read,
    /// Call that writes bytes of an open file.
    Write,
    /// Call that flushes a file to stable storage.
    Sync,
    /// Call that requests attributes of a name or an open file.
    Stat,
    /// Call that removes a file.
    Unlink,
    /// Call that creates a directory.
    MakeDir,
    /// Call that removes an empty directory.
    RemoveDir,
    /// Call that no other variant names, such as a rename or a directory listing.
    Other,
}

impl CallKind {
    fn changes(self) -> bool {
        matches!(
            self,
            Self::Write | Self::Unlink | Self::MakeDir | Self::RemoveDir
        )
    }
}

/// A call that has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// What the call did, such as opening a file or reading bytes.
    pub kind: CallKind,
    /// Time of the simulation, in nanoseconds, at which the call returned.
    pub at_ns: u64,
    /// Id of the process that made the call.
    pub process: u32,
    /// Whether the call opened, wrote or removed a file other than a work directory's marker or claim.
    pub changes_file: bool,
    /// The number of the session that made the call, in the order in which the sessions of all ranks began. Each worker
    /// of the load has a session of its own.
    pub session: u64,
    /// Whether a session of the load made the call, rather than a session that creates or removes
    /// files.
    pub of_load: bool,
    /// The error that the call returned; `None` for a successful call.
    pub error: Option<Errno>,
    /// Whether the call transferred wrong data or lost data, because of an injected fault.
    pub is_falsified: bool,
}

/// The planned outcome of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fate {
    pub(super) delay_ns: u64,
    pub(super) error: Option<Errno>,
    pub(super) never_returns: bool,
    pub(super) is_short: bool,
    pub(super) is_wrong: bool,
    pub(super) is_lost: bool,
}

/// Files and directories by absolute path.
pub(super) struct Store {
    pub(super) faults: FileFaults,
    rng: Xoshiro256PlusPlus,
    pub(super) dirs: BTreeSet<Vec<u8>>,
    pub(super) files: BTreeMap<Vec<u8>, u64>,
    contents: BTreeMap<u64, Vec<u8>>,
    next_inode: u64,
    used: u64,
    sessions: u64,
    pub(super) calls: Vec<Call>,
    /// Paths outside the work directory that sessions used.
    pub(super) strays: Vec<String>,
}

type Done<T> = Result<T, Errno>;

impl Store {
    pub(super) fn new(faults: FileFaults, seed: u64) -> Self {
        Self {
            faults,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            dirs: BTreeSet::from([b"/".to_vec()]),
            files: BTreeMap::new(),
            contents: BTreeMap::new(),
            next_inode: 1,
            used: 0,
            sessions: 0,
            calls: vec![],
            strays: vec![],
        }
    }

    pub(super) fn next_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions - 1
    }

    fn happens(&mut self, millionths: u32) -> bool {
        millionths > 0 && self.rng.random_range(0..MILLION) < millionths
    }

    /// Decides the outcome of a call that begins now; `of_load` is whether a session of the load
    /// makes the call.
    pub(super) fn begin(&mut self, kind: CallKind, of_load: bool, now: u64) -> Fate {
        let faults = self.faults.clone();
        let mut fate = Fate {
            delay_ns: faults.latency_ns,
            ..Fate::default()
        };
        if faults.silent_from_ns.is_some_and(|from| now >= from) {
            fate.never_returns = true;
            return fate;
        }
        if let Some(outage) = faults.outage_ns.filter(|outage| outage.contains(&now)) {
            fate.delay_ns += outage.end - now;
        }
        if kind.changes() && faults.read_only_from_ns.is_some_and(|from| now >= from) {
            fate.error = Some(Errno::ROFS);
            return fate;
        }
        // A close never fails, because a close reports no error of an earlier call.
        let is_spared = faults.of_load_only && !of_load;
        if now < faults.from_ns || kind == CallKind::Close || is_spared {
            return fate;
        }
        if let Some((probability, factor)) = faults.slow
            && self.happens(probability)
        {
            // The factor does not extend an outage.
            fate.delay_ns += faults.latency_ns * (factor - 1);
        }
        for (error, probability) in faults.errors {
            if self.happens(probability) {
                fate.error = Some(error);
                return fate;
            }
        }
        fate.is_short = kind == CallKind::Read && self.happens(faults.short_reads);
        fate.is_wrong = kind == CallKind::Read && self.happens(faults.wrong_reads);
        fate.is_lost = kind == CallKind::Write && self.happens(faults.lost_writes);
        fate
    }

    pub(super) fn size(&self, inode: u64) -> u64 {
        self.contents
            .get(&inode)
            .map_or(0, |bytes| bytes.len() as u64)
    }

    pub(super) fn attributes(&self, path: &[u8]) -> Done<Attributes> {
        if let Some(inode) = self.files.get(path) {
            return Ok(Attributes {
                kind: EntryKind::File,
                size: self.size(*inode),
                changed_ns: None,
            });
        }
        match self.dirs.contains(path) {
            true => Ok(Attributes {
                kind: EntryKind::Dir,
                size: 0,
                changed_ns: None,
            }),
            false => Err(Errno::NOENT),
        }
    }

    pub(super) fn check_parent(&self, path: &[u8]) -> Done<()> {
        match self.dirs.contains(parent_of(path)) {
            true => Ok(()),
            false => Err(Errno::NOENT),
        }
    }

    pub(super) fn open(&mut self, path: &[u8], create: bool, truncate: bool) -> Done<u64> {
        if self.dirs.contains(path) {
            return Err(Errno::ISDIR);
        }
        self.check_parent(path)?;
        let inode = match self.files.get(path) {
            Some(inode) => *inode,
            None if create => {
                let inode = self.next_inode;
                self.next_inode += 1;
                self.files.insert(path.to_vec(), inode);
                self.contents.insert(inode, vec![]);
                inode
            }
            None => return Err(Errno::NOENT),
        };
        if truncate {
            self.set_len(inode, 0)?;
        }
        Ok(inode)
    }

    pub(super) fn set_len(&mut self, inode: u64, len: u64) -> Done<()> {
        let before = self.size(inode);
        if len > before
            && self
                .faults
                .capacity
                .is_some_and(|all| self.used + len - before > all)
        {
            return Err(Errno::NOSPC);
        }
        let len = usize::try_from(len).map_err(|_| Errno::FBIG)?;
        self.contents.entry(inode).or_default().resize(len, 0);
        self.used = (self.used + len as u64).saturating_sub(before);
        Ok(())
    }

    pub(super) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> Done<()> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(Errno::FBIG)?;
        self.set_len(inode, end.max(self.size(inode)))?;
        let contents = self.contents.entry(inode).or_default();
        contents[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// The bytes of a range of a file, up to the end of the file.
    pub(super) fn read(&self, inode: u64, offset: u64, len: u64) -> Vec<u8> {
        let contents = self.contents.get(&inode).map_or(&[][..], Vec::as_slice);
        let begin = contents.len().min(offset as usize);
        let end = contents.len().min(begin.saturating_add(len as usize));
        contents[begin..end].to_vec()
    }

    pub(super) fn unlink(&mut self, path: &[u8]) -> Done<()> {
        match self.files.remove(path) {
            // Open handles still read the bytes, but the bytes no longer use capacity.
            Some(inode) => {
                self.used = self.used.saturating_sub(self.size(inode));
                Ok(())
            }
            None if self.dirs.contains(path) => Err(Errno::ISDIR),
            None => Err(Errno::NOENT),
        }
    }

    pub(super) fn make_dir(&mut self, path: &[u8]) -> Done<()> {
        self.check_parent(path)?;
        if self.files.contains_key(path) || !self.dirs.insert(path.to_vec()) {
            return Err(Errno::EXIST);
        }
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &[u8]) -> Done<()> {
        if !self.dirs.contains(path) {
            return Err(if self.files.contains_key(path) {
                Errno::NOTDIR
            } else {
                Errno::NOENT
            });
        }
        if !self.children(path).is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.dirs.remove(path);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Done<()> {
        self.check_parent(to)?;
        if self.dirs.contains(from) {
            return self.rename_dir(from, to);
        }
        if self.dirs.contains(to) {
            return Err(Errno::ISDIR);
        }
        let inode = self.files.remove(from).ok_or(Errno::NOENT)?;
        if let Some(replaced) = self.files.insert(to.to_vec(), inode) {
            self.used = self.used.saturating_sub(self.size(replaced));
        }
        Ok(())
    }

    /// Renames a directory; the new name must not exist or must be an empty directory.
    fn rename_dir(&mut self, from: &[u8], to: &[u8]) -> Done<()> {
        let is_below = |path: &[u8]| path.strip_prefix(from).is_some_and(|p| p.starts_with(b"/"));
        if self.files.contains_key(to) {
            return Err(Errno::NOTDIR);
        }
        if is_below(to) {
            return Err(Errno::INVAL);
        }
        if from != to && !self.children(to).is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        let moved = |path: &[u8]| [to, &path[from.len()..]].concat();
        let dirs = std::mem::take(&mut self.dirs).into_iter();
        let dirs = dirs.map(|dir| match dir == from || is_below(&dir) {
            true => moved(&dir),
            false => dir,
        });
        self.dirs = dirs.collect();
        let files = std::mem::take(&mut self.files).into_iter();
        let files = files.map(|(path, inode)| match is_below(&path) {
            true => (moved(&path), inode),
            false => (path, inode),
        });
        self.files = files.collect();
        Ok(())
    }

    /// Names and kinds of the entries of a directory.
    pub(super) fn children(&self, dir: &[u8]) -> Vec<(Vec<u8>, EntryKind)> {
        let files = self.files.keys().map(|path| (path, EntryKind::File));
        let dirs = self.dirs.iter().map(|path| (path, EntryKind::Dir));
        let inside = files
            .chain(dirs)
            .filter(|(path, _)| path.len() > 1 && parent_of(path) == dir);
        let name = |path: &[u8]| {
            path[path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1)..].to_vec()
        };
        inside.map(|(path, kind)| (name(path), kind)).collect()
    }

    pub(super) fn get(&self, path: &[u8]) -> Done<Vec<u8>> {
        let inode = self.files.get(path).ok_or(Errno::NOENT)?;
        Ok(self.contents[inode].clone())
    }

    pub(super) fn put(&mut self, path: &[u8], bytes: &[u8]) -> Done<()> {
        let inode = self.open(path, true, true)?;
        self.write(inode, 0, bytes)
    }
}

/// The path of an entry's parent directory.
fn parent_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|b| *b == b'/') {
        Some(0) | None => b"/",
        Some(at) => &path[..at],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_where_they_were_put_and_room_is_counted() {
        let mut store = Store::new(FileFaults::none(0), 1);
        store.faults.capacity = Some(10);
        store.make_dir(b"/a").unwrap();
        assert_eq!(store.make_dir(b"/a"), Err(Errno::EXIST));
        assert_eq!(store.make_dir(b"/b/c"), Err(Errno::NOENT));
        let inode = store.open(b"/a/f", true, false).unwrap();
        assert_eq!(store.write(inode, 2, b"1234"), Ok(()));
        assert_eq!(store.read(inode, 0, 100), b"\0\x001234");
        assert_eq!(store.read(inode, 4, 1), b"3");
        assert_eq!(store.write(inode, 8, b"123"), Err(Errno::NOSPC));
        assert_eq!(store.remove_dir(b"/a"), Err(Errno::NOTEMPTY));
        store.rename(b"/a/f", b"/g").unwrap();
        assert_eq!(
            store.children(b"/"),
            [
                (b"g".to_vec(), EntryKind::File),
                (b"a".to_vec(), EntryKind::Dir)
            ]
        );
        store.unlink(b"/g").unwrap();
        store.make_dir(b"/a/b").unwrap();
        store.make_dir(b"/ab").unwrap();
        store.open(b"/a/b/f", true, false).unwrap();
        assert_eq!(store.rename(b"/ab", b"/a"), Err(Errno::NOTEMPTY));
        assert_eq!(store.rename(b"/a", b"/a/b/c"), Err(Errno::INVAL));
        assert_eq!(store.rename(b"/ab", b"/a/b/f"), Err(Errno::NOTDIR));
        store.rename(b"/a", b"/ab").unwrap();
        assert_eq!(store.get(b"/ab/b/f"), Ok(vec![]));
        assert_eq!(store.rename(b"/a", b"/c"), Err(Errno::NOENT));
        store.unlink(b"/ab/b/f").unwrap();
        store.rename(b"/ab/b", b"/b").unwrap();
        store.remove_dir(b"/b").unwrap();
        store.rename(b"/ab", b"/a").unwrap();
        let other = store.open(b"/a/h", true, false).unwrap();
        assert_eq!(store.write(other, 0, &[1; 10]), Ok(()));
        assert_eq!(store.get(b"/a/h").map(|b| b.len()), Ok(10));
        store.unlink(b"/a/h").unwrap();
        store.remove_dir(b"/a").unwrap();
        assert_eq!(store.attributes(b"/a"), Err(Errno::NOENT));
    }

    #[test]
    fn faults_have_their_times_and_their_probabilities() {
        let faults = FileFaults {
            from_ns: 100,
            errors: vec![(Errno::IO, MILLION / 4)],
            read_only_from_ns: Some(1000),
            outage_ns: Some(500..700),
            silent_from_ns: Some(5000),
            ..FileFaults::none(10)
        };
        let mut store = Store::new(faults, 7);
        assert!((0..100).all(|at| store.begin(CallKind::Read, true, at).error.is_none()));
        let failed = (0..4000).filter(|_| store.begin(CallKind::Read, true, 200).error.is_some());
        let failed = failed.count();
        assert!((850..1150).contains(&failed), "{failed}");
        store.faults.of_load_only = true;
        let mut others = (0..4000).map(|_| store.begin(CallKind::Read, false, 200));
        assert!(others.all(|fate| fate.error.is_none()));
        assert_eq!(store.begin(CallKind::Stat, true, 600).delay_ns, 110);
        assert_eq!(
            store.begin(CallKind::Write, true, 1000).error,
            Some(Errno::ROFS)
        );
        assert!(store.begin(CallKind::Stat, true, 5000).never_returns);
        assert!(!store.begin(CallKind::Stat, true, 4999).never_returns);
    }
}
