//! Leaving the guarded directories of a run.

use super::claiming::{Contended, MAX_ROUNDS};
use super::{ClaimedWorkDir, GuardedDir};
use crate::run::claim::{self, ClaimId, Departure, RemoteOwner, SessionDir};
use crate::run::marker::{self, GuardError, GuardState, Marker};
use crate::run::removal::{self, Leftovers, RetryWindow};
use crate::run::setup_pool::SetupError;
use plimsoll_plan::RelPath;
use plimsoll_target::OpError;
use rustix::io::Errno;

impl ClaimedWorkDir<'_> {
    /// Releases a guarded directory; if the marker lists no tree, also removes the marker and a guarded directory that
    /// Plimsoll made, and adds foreign contents of the guarded directory to `left`.
    pub(super) fn leave(
        &mut self,
        guarded: GuardedDir,
        patience: &mut RetryWindow,
        left: &mut Leftovers,
    ) -> Result<(), SetupError> {
        let GuardedDir {
            guard,
            marker,
            mut claim,
        } = guarded;
        if !marker.trees.is_empty() {
            // The marker records whether Plimsoll made the directory.
            self.made.remove(guard.as_str());
            return self.release_patiently(&guard, &claim, patience);
        }
        if marker.made_dir {
            self.made.insert(guard.as_str().into());
        }
        let names = self.names(guard.as_str())?;
        left.foreign.extend(foreign_paths(&guard, &names));
        for round in 0..MAX_ROUNDS {
            self.unmark(&guard, &marker, &claim, patience)?;
            let Some(again) = self.depart(&guard, &marker, patience)? else {
                return Ok(());
            };
            claim = again;
            match marker::look(self.setup_pool, self.plan, &guard, RemoteOwner::Refuse) {
                Ok(GuardState::Marked(other)) if !other.trees.is_empty() => {
                    // The marker of another run that keeps its files has to record that Plimsoll made the directory.
                    let made_dir = self.made.remove(guard.as_str()) || other.made_dir;
                    let marker = Marker { made_dir, ..other };
                    let noted = marker::write(self.setup_pool, &guard, &marker);
                    return noted.and(self.release_patiently(&guard, &claim, patience));
                }
                Ok(_) => {}
                // The server lists a marker that does not exist.
                Err(GuardError::Changing(_)) if patience.wait(round) => {}
                // The directory has foreign files, or cannot be examined.
                Err(_) => return self.release_patiently(&guard, &claim, patience),
            }
        }
        let path = guard.as_str().as_bytes();
        let stays = OpError(Errno::NOTEMPTY);
        Err(SetupError::failed("remove directory", path, stays))
    }

    /// Removes the marker and the claim of a guarded directory. A failure leaves the marker or the claim, so that the
    /// directory can still be cleaned.
    fn unmark(
        &mut self,
        guard: &RelPath,
        marker: &Marker,
        claim: &ClaimId,
        patience: &mut RetryWindow,
    ) -> Result<(), SetupError> {
        for path in marker::paths(guard) {
            self.remove_file(&path)?;
        }
        self.marked.retain(|marked| marked != guard);
        let released = self.release_patiently(guard, claim, patience);
        match &released {
            Ok(()) => {}
            // A directory with a claim and no marker can be cleaned too.
            Err(e) if removal::is_of_connection(e) => self.marked.push(guard.clone()),
            Err(_) => self.mark_again(guard, marker),
        }
        released
    }

    /// Releases a claim, in several attempts if necessary.
    pub(super) fn release_patiently(
        &self,
        guard: &RelPath,
        claim: &ClaimId,
        patience: &mut RetryWindow,
    ) -> Result<(), SetupError> {
        for attempt in 0.. {
            match self.release_claim(guard, claim) {
                Err(SetupError::Failed { error, .. })
                    if removal::may_pass(error) && patience.wait(attempt) => {}
                done => return done,
            }
        }
        unreachable!("the attempts end with their time")
    }

    /// Removes a released guarded directory that Plimsoll made. Returns a new claim if the directory has a marker
    /// again: the marker of another run that keeps its files, or the old marker on a server with a write-behind cache.
    fn depart(
        &mut self,
        guard: &RelPath,
        marker: &Marker,
        patience: &mut RetryWindow,
    ) -> Result<Option<ClaimId>, SetupError> {
        let (mut levels, others) = (self.levels(guard), self.others);
        let id = ClaimId::choose();
        let is_marker = |name: &str| marker::is_marker_name(name.as_bytes());
        for attempt in 0.. {
            let depart = async |dir: &mut SessionDir<'_>| {
                claim::depart(dir, &id, &mut levels, others, is_marker).await
            };
            let departed = self.on_claim(guard, depart);
            self.learn(guard, &levels);
            let refused = match departed {
                Ok(Departure::Done) => {
                    self.made.remove(guard.as_str());
                    return Ok(None);
                }
                Ok(Departure::Marked) => {
                    let again = self.contend(guard, RemoteOwner::Refuse);
                    return match again.map_err(|e| e.of_leaving(guard))? {
                        Contended::Claimed(claim) => Ok(Some(claim)),
                        // The run that holds the claim knows that Plimsoll made the directory.
                        Contended::Held(_) | Contended::Vanished => Ok(None),
                    };
                }
                Err(e) if removal::may_pass(e) && patience.wait(attempt) => continue,
                Err(e) => e,
            };
            let path = guard.as_str().as_bytes();
            let refused = SetupError::failed("remove directory", path, refused);
            if !removal::is_of_connection(&refused)
                && let Ok(Contended::Claimed(claim)) = self.contend(guard, RemoteOwner::Refuse)
            {
                self.mark_again(guard, marker);
                let _ = self.release_claim(guard, &claim);
            }
            self.made.remove(guard.as_str());
            return Err(refused);
        }
        unreachable!("the attempts end with their time")
    }

    /// Writes the marker again, because the marker is the proof that a directory may be removed.
    fn mark_again(&mut self, guard: &RelPath, marker: &Marker) {
        let marker = Marker {
            made_dir: self.made.contains(guard.as_str()),
            ..marker.clone()
        };
        self.marked.push(guard.clone());
        // The caller reports the earlier error.
        let _ = marker::write(self.setup_pool, guard, &marker);
    }

    /// Names in a directory; none if the directory is missing.
    fn names(&self, dir: &str) -> Result<Vec<Vec<u8>>, SetupError> {
        let entries = match self.setup_pool.at(dir, async |s| s.entries().await) {
            Err(OpError(Errno::NOENT)) => vec![],
            other => other.map_err(|e| SetupError::failed("list", dir.as_bytes(), e))?,
        };
        Ok(entries.into_iter().map(|(name, _)| name).collect())
    }

    /// Removes a directory that Plimsoll made, if the directory is empty; `""` is the work directory.
    pub(super) fn remove_if_empty(
        &self,
        dir: &str,
        patience: &mut RetryWindow,
    ) -> Result<(), SetupError> {
        for attempt in 0.. {
            let removed = match dir {
                "" => self.setup_pool.target.remove_work_dir(),
                dir => self.remove_dir(dir),
            };
            let refused = match removed {
                Ok(()) | Err(OpError(Errno::NOENT)) => return Ok(()),
                Err(e) => e,
            };
            if removal::may_pass(refused) {
                if !self.names(dir)?.is_empty() {
                    return Ok(());
                }
                if patience.wait(attempt) {
                    continue;
                }
            }
            let path = dir.as_bytes();
            return Err(SetupError::failed("remove directory", path, refused));
        }
        unreachable!("the attempts end with their time")
    }
}

/// Paths of foreign entries of a guarded directory, without the file system's own directory.
fn foreign_paths(guard: &RelPath, names: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let is_foreign =
        |name: &&Vec<u8>| !marker::is_own_name(name) && *name != marker::IGNORED_ENTRIES;
    let path = |name: &Vec<u8>| match guard.as_str() {
        "" => name.clone(),
        guard => [guard.as_bytes(), b"/", name].concat(),
    };
    names.iter().filter(is_foreign).map(path).collect()
}
