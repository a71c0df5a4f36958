//! Removal of trees: Plimsoll's files are removed, foreign files stay, and remaining entries are named.
//!
//! Directories are removed one by one, through descriptors that are opened without following symbolic links, and
//! entries whose name or kind is not Plimsoll's stay. Entries that cannot be removed become notes, because cleaning
//! does not affect a verdict.

use super::marker::PatternNames;
use super::setup_pool::{BulkTask, SetupError, SetupPool};
use super::tree::is_named;
use crate::sync::lock;
use plimsoll_target::{EntryKind, OpError, SetupSession};
use rustix::io::Errno;
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Total time of a cleanup for retries of directories that should be empty. Servers that remove files behind a cache
/// report for a moment that a directory is not empty, or fail.
const EMPTY_DIR_RETRY_TIMEOUT: Duration = Duration::from_secs(8);

/// First pause before a retry; each further pause is twice as long.
const MIN_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// Maximum pause before a retry.
const MAX_RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of named entries among the entries that cannot be removed.
const MAX_NAMED: usize = 8;

/// The remains of removed trees and of the directories above them.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// Paths of entries that Plimsoll did not create.
    pub(crate) foreign: Vec<Vec<u8>>,
    /// Errors of the first entries that could not be removed.
    named: Vec<SetupError>,
    /// Number of entries that could not be removed, beyond the entries in `named`.
    more: u64,
    /// Whether the target no longer responds or the removal was stopped, so that the cleanup ends.
    pub(crate) is_gone: bool,
}

impl Leftovers {
    /// Adds an entry that could not be removed or changed.
    pub(crate) fn refused(&mut self, e: SetupError) {
        self.is_gone |= matches!(&e, SetupError::Stopped) || is_of_connection(&e);
        match self.named.len() < MAX_NAMED {
            true => self.named.push(e),
            false => self.more += 1,
        }
    }

    /// Adds the error of a failed removal or change.
    pub(crate) fn note(&mut self, done: Result<(), SetupError>) {
        if let Err(e) = done {
            self.refused(e);
        }
    }

    /// Whether no entry of Plimsoll's failed to be removed; foreign entries may be left.
    pub(crate) fn is_clean(&self) -> bool {
        self.named.is_empty()
    }

    /// The errors of the named entries that could not be removed, and the number of further entries.
    pub(crate) fn into_refused(self) -> (Vec<SetupError>, u64) {
        (self.named, self.more)
    }

    /// Paths of the named entries that could not be removed.
    fn refused_paths(&self) -> impl Iterator<Item = &[u8]> {
        self.named.iter().filter_map(|e| match e {
            SetupError::Failed { path, .. } => Some(path.as_bytes()),
            SetupError::Stopped => None,
        })
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.foreign.extend(other.foreign);
        self.is_gone |= other.is_gone;
        self.more += other.more;
        for e in other.named {
            self.refused(e);
        }
    }
}

/// Whether an error is a connection error: further operations would fail too, and may take long.
pub(crate) fn is_of_connection(e: &SetupError) -> bool {
    let SetupError::Failed { error, .. } = e else {
        return false;
    };
    matches!(
        error.0,
        Errno::TIMEDOUT
            | Errno::CANCELED
            | Errno::CONNREFUSED
            | Errno::CONNRESET
            | Errno::PIPE
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
    )
}

/// Whether the removal of an empty directory may succeed a moment later.
pub(crate) fn may_pass(error: OpError) -> bool {
    matches!(error.0, Errno::NOTEMPTY | Errno::EXIST | Errno::IO)
}

/// Time limit and pauses of retries.
#[derive(Debug)]
pub(crate) struct RetryWindow {
    /// End of the retries; set at the first retry.
    end: Option<Instant>,
    longest: Duration,
}

impl Default for RetryWindow {
    fn default() -> Self {
        Self {
            end: None,
            longest: EMPTY_DIR_RETRY_TIMEOUT,
        }
    }
}

impl RetryWindow {
    /// Waits before the next attempt; `false` if the time for retries is over.
    pub(crate) fn wait(&mut self, attempt: u32) -> bool {
        let end = *self
            .end
            .get_or_insert_with(|| plimsoll_runtime::now() + self.longest);
        let left = end.saturating_duration_since(plimsoll_runtime::now());
        let pause = (MIN_RETRY_PAUSE * (1 << attempt.min(8))).min(MAX_RETRY_PAUSE);
        if left.is_zero() {
            return false;
        }
        plimsoll_runtime::sleep(pause.min(left));
        true
    }
}

/// Removes the files in the directories of one level of a tree.
struct Remove<'a> {
    dirs: &'a [Vec<u8>],
    names: Option<&'a PatternNames>,
    depth: usize,
    below: Mutex<Vec<Vec<u8>>>,
    left: &'a Mutex<Leftovers>,
    /// Whether the removal is to stop and the remaining entries are to stay.
    stop: &'a AtomicBool,
}

impl Remove<'_> {
    /// Adds an entry that cannot be removed; returns an error if no further entry can be removed.
    fn refused(&self, e: SetupError) -> Result<(), SetupError> {
        if is_of_connection(&e) {
            return Err(e);
        }
        lock(self.left).refused(e);
        Ok(())
    }
}

impl BulkTask for Remove<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let dir = &self.dirs[index as usize];
        session.locate(|p| p.extend_from_slice(dir));
        let entries = match session.entries().await {
            Err(OpError(Errno::NOENT)) => return Ok(()),
            Err(e) => return self.refused(SetupError::failed("list", dir, e)),
            Ok(entries) => entries,
        };
        for (name, kind) in entries {
            // Checked for each entry, because a directory may have millions of entries.
            if self.stop.load(Relaxed) {
                return Err(SetupError::Stopped);
            }
            let ours = is_named(self.names, self.depth, &name, kind);
            let path = match dir.is_empty() {
                true => name,
                false => [dir, &b"/"[..], &name].concat(),
            };
            match kind {
                // Removes only the link itself, not the target of the link.
                EntryKind::File | EntryKind::Link if ours => {
                    session.locate(|p| p.extend_from_slice(&path));
                    match session.remove(EntryKind::File).await {
                        // A server with a write-behind cache may list removed entries.
                        Ok(()) | Err(OpError(Errno::NOENT)) => {}
                        Err(e) => self.refused(SetupError::failed("remove", &path, e))?,
                    }
                }
                EntryKind::Dir if ours => lock(&self.below).push(path),
                _ => lock(self.left).foreign.push(path),
            }
        }
        Ok(())
    }
}

/// Removes directories of one level whose entries have been removed.
struct RemoveDirs<'a> {
    dirs: &'a [Vec<u8>],
    refused: Mutex<Vec<(Vec<u8>, OpError)>>,
}

impl BulkTask for RemoveDirs<'_> {
    async fn item(&self, session: &mut dyn SetupSession, index: u64) -> Result<(), SetupError> {
        let dir = &self.dirs[index as usize];
        session.locate(|p| p.extend_from_slice(dir));
        match session.remove(EntryKind::Dir).await {
            Ok(()) | Err(OpError(Errno::NOENT)) => Ok(()),
            Err(e) => {
                let failed = SetupError::failed("remove directory", dir, e);
                if is_of_connection(&failed) {
                    return Err(failed);
                }
                lock(&self.refused).push((dir.clone(), e));
                Ok(())
            }
        }
    }
}

/// The directories above `paths`, up to and including the work directory.
fn holders<'a>(paths: impl Iterator<Item = &'a [u8]>) -> HashSet<Vec<u8>> {
    let mut all = HashSet::new();
    for path in paths {
        let mut at = path;
        while let Some(slash) = at.iter().rposition(|b| *b == b'/') {
            at = &at[..slash];
            if !all.insert(at.to_vec()) {
                break;
            }
        }
        all.insert(Vec::new());
    }
    all
}

/// Removes a tree: every entry with a name and kind of Plimsoll's files, or of a pattern's files if `names` is given.
pub(crate) fn remove(
    pool: &SetupPool,
    root: &str,
    names: Option<&PatternNames>,
    patience: &mut RetryWindow,
    mut tell: impl FnMut(),
) -> Leftovers {
    let left = Mutex::new(Leftovers::default());
    let mut levels = vec![vec![root.as_bytes().to_vec()]];
    while let Some(dirs) = levels.last().filter(|l| !l.is_empty()) {
        let level = Remove {
            dirs,
            names,
            depth: levels.len() - 1,
            below: Mutex::default(),
            left: &left,
            stop: &pool.stop,
        };
        if let Err(e) = pool.all(dirs.len() as u64, &level, &mut tell) {
            lock(&left).refused(e);
            break;
        }
        let below = std::mem::take(&mut *lock(&level.below));
        levels.push(below);
    }
    let mut left = std::mem::take(&mut *lock(&left));
    // `closed` contains the directories that could not be listed.
    let closed: HashSet<Vec<u8>> = left.refused_paths().map(<[u8]>::to_vec).collect();
    for (depth, mut dirs) in levels.into_iter().enumerate().rev() {
        if left.is_gone {
            break;
        }
        // The work directory is not part of a tree.
        dirs.retain(|dir| !dir.is_empty() && !closed.contains(dir));
        // Directories above entries that stay are not empty, and so stay too.
        let foreign = left.foreign.iter().map(Vec::as_slice);
        let holders = holders(foreign.chain(left.refused_paths()));
        let all_named = left.more == 0;
        let level = Level {
            setup_pool: pool,
            names,
            depth,
            is_empty: |dir: &[u8]| all_named && !holders.contains(dir),
        };
        let of_level = level.remove(dirs, patience, &mut tell);
        left.add(of_level);
    }
    left
}

/// Directories of one level of a tree, whose entries have been removed.
struct Level<'a, F> {
    setup_pool: &'a SetupPool,
    names: Option<&'a PatternNames>,
    depth: usize,
    /// Whether the directory with the given path must be empty, because no entry is known to stay in the directory.
    is_empty: F,
}

impl<F: Fn(&[u8]) -> bool> Level<'_, F> {
    /// Removes the directories. The removal of a directory that must be empty is retried for a while.
    fn remove(
        &self,
        mut dirs: Vec<Vec<u8>>,
        patience: &mut RetryWindow,
        tell: &mut impl FnMut(),
    ) -> Leftovers {
        let mut left = Leftovers::default();
        for attempt in 0.. {
            let job = RemoveDirs {
                dirs: &dirs,
                refused: Mutex::default(),
            };
            if let Err(e) = self.setup_pool.all(dirs.len() as u64, &job, &mut *tell) {
                left.refused(e);
                break;
            }
            let again = self.retryable(std::mem::take(&mut *lock(&job.refused)), &mut left);
            if again.is_empty() {
                break;
            }
            tell();
            if !patience.wait(attempt) {
                for (dir, e) in again {
                    left.refused(SetupError::failed("remove directory", &dir, e));
                }
                break;
            }
            dirs = again.into_iter().map(|(dir, _)| dir).collect();
            self.empty_again(&mut dirs, &mut left, tell);
        }
        left
    }

    /// The directories whose removal may succeed after a moment.
    fn retryable(
        &self,
        refused: Vec<(Vec<u8>, OpError)>,
        left: &mut Leftovers,
    ) -> Vec<(Vec<u8>, OpError)> {
        let mut again = Vec::new();
        for (dir, e) in refused {
            let is_empty = (self.is_empty)(&dir);
            match (may_pass(e), is_empty) {
                (true, true) => again.push((dir, e)),
                // The directory is not empty, which some servers report as an I/O error.
                (true, false) => {}
                (false, _) => left.refused(SetupError::failed("remove directory", &dir, e)),
            }
        }
        again
    }

    /// Empties directories that should be empty again: on a server with a cache, removed entries may reappear. Takes
    /// directories with foreign entries, or with entries that cannot be removed, off the list.
    fn empty_again(&self, dirs: &mut Vec<Vec<u8>>, left: &mut Leftovers, tell: &mut impl FnMut()) {
        let found = Mutex::new(Leftovers::default());
        let job = Remove {
            dirs,
            names: self.names,
            depth: self.depth,
            below: Mutex::default(),
            left: &found,
            stop: &self.setup_pool.stop,
        };
        let swept = self.setup_pool.all(dirs.len() as u64, &job, &mut *tell);
        let mut found = std::mem::take(&mut *lock(&found));
        found.note(swept);
        let foreign = found.foreign.iter().map(Vec::as_slice);
        let holders = holders(foreign.chain(found.refused_paths()));
        dirs.retain(|dir| !holders.contains(dir));
        if found.more > 0 {
            // Entries without names may be in any of the directories, and would fail again.
            dirs.clear();
        }
        left.add(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_above_what_stays_are_not_empty() {
        let paths = [&b"a/b/c"[..], b"a/d"];
        let holders = holders(paths.into_iter());
        for dir in [&b""[..], b"a", b"a/b"] {
            assert!(holders.contains(dir));
        }
        assert!(!holders.contains(&b"a/b/c"[..]) && !holders.contains(&b"a/d"[..]));
    }

    #[test]
    fn the_time_for_retries_ends() {
        let mut patience = RetryWindow {
            longest: Duration::from_millis(25),
            ..RetryWindow::default()
        };
        // The first pause is 10 ms, and the second pause is the rest of the time.
        assert_eq!([0, 1, 2].map(|n| patience.wait(n)), [true, true, false]);
        let may = [Errno::NOTEMPTY, Errno::EXIST, Errno::IO];
        assert!(may.iter().all(|e| may_pass(OpError(*e))));
        assert!(!may_pass(OpError(Errno::ACCESS)) && !may_pass(OpError(Errno::NOENT)));
    }

    #[test]
    fn connection_loss_is_distinguished_from_refusal() {
        let of = |error| is_of_connection(&SetupError::failed("remove", b"x", OpError(error)));
        assert!(of(Errno::TIMEDOUT) && of(Errno::CANCELED));
        assert!(!of(Errno::ACCESS) && !is_of_connection(&SetupError::Stopped));
    }

    #[test]
    fn the_first_of_many_are_named() {
        let mut left = Leftovers::default();
        for i in 0..20 {
            let path = format!("f{i}");
            left.refused(SetupError::failed(
                "remove",
                path.as_bytes(),
                OpError(Errno::ACCESS),
            ));
        }
        assert!(!left.is_clean() && !left.is_gone);
        left.refused(SetupError::failed("remove", b"x", OpError(Errno::TIMEDOUT)));
        assert!(left.is_gone);
        let (named, more) = left.into_refused();
        assert_eq!((named.len(), more), (MAX_NAMED, 13));
        assert!(matches!(&named[7], SetupError::Failed { path, .. } if path == "f7"));
    }
}
