//! Claiming the guarded directories of a run.

use super::{ClaimedWorkDir, GuardedDir};
use crate::run::claim::{self, ClaimId, Levels, NotClaimed, RemoteOwner, SessionDir};
use crate::run::marker::{self, GuardError, GuardState, Marker, Tree};
use crate::run::setup_pool::{SetupError, SetupPool};
use crate::run::{EngineError, path_in};
use plimsoll_plan::{Plan, RelPath};
use plimsoll_target::{OpError, SetupSession};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Maximum number of attempts to claim or to leave a directory; another run thwarts each attempt but the last.
pub(super) const MAX_ROUNDS: u32 = 64;

/// Reason why a work directory is not claimed.
#[derive(Debug)]
pub(crate) enum ClaimError {
    /// Another run has removed the work directory since this run opened it.
    Vanished,
    /// The file system or the quota has no space for a claim.
    NoRoom(EngineError),
    /// The directory must not be used, or an operation on the directory failed; the error gives the reason.
    Refused(EngineError),
}

/// Result of an attempt to claim an existing guarded directory.
pub(super) enum Contended {
    Claimed(ClaimId),
    /// Another run holds the claim, and notes tell that run which directories Plimsoll made.
    Held(GuardError),
    Vanished,
}

/// Reason why a guarded directory is not claimed.
pub(super) enum GuardNotClaimed {
    Vanished,
    Guard(GuardError),
    Setup(SetupError),
    Refused(String),
}

impl GuardNotClaimed {
    /// The error to report if a run that leaves a directory cannot claim the directory again for the removal.
    pub(super) fn of_leaving(self, guard: &RelPath) -> SetupError {
        match self {
            Self::Setup(e) => e,
            _ => SetupError::failed("clean", guard.as_str().as_bytes(), OpError(Errno::BUSY)),
        }
    }
}

impl From<SetupError> for GuardNotClaimed {
    fn from(e: SetupError) -> Self {
        Self::Setup(e)
    }
}

impl From<GuardError> for GuardNotClaimed {
    fn from(e: GuardError) -> Self {
        Self::Guard(e)
    }
}

impl<'a> ClaimedWorkDir<'a> {
    /// Claims the guarded directories and writes their markers. Of several processes that claim a directory at the same
    /// time, one succeeds (see [`claim`]).
    pub(crate) fn claim(
        pool: &'a SetupPool,
        plan: &'a Plan,
        others: RemoteOwner,
    ) -> Result<Self, ClaimError> {
        let mut place = Self {
            others,
            ..Self::new(pool, plan, false)
        };
        if !pool.target.keeps_files() {
            return Ok(place);
        }
        if pool.target.created_work_dir() {
            place.made.insert(String::new());
        }
        // All guarded directories are checked before the first is changed.
        let mut claimed = Ok(());
        for guard in &plan.work_dir.guards {
            claimed = claimed.and_then(|()| match place.check(guard) {
                // The claim below is refused too, and leaves notes of the directories that Plimsoll made.
                Err(GuardNotClaimed::Guard(e)) if e.is_held() => Ok(()),
                checked => checked.map(drop),
            });
        }
        // All runs claim in the same order, so that two runs with several common directories do not refuse each other.
        let guards: BTreeSet<_> = plan.work_dir.guards.iter().map(RelPath::as_str).collect();
        for guard in guards {
            let guard = RelPath::new(guard).expect("the Plan has relative paths");
            claimed = claimed.and_then(|()| place.claim_guard(&guard));
        }
        let Err(why) = claimed else {
            return Ok(place);
        };
        // Removes the directories that this run has created so far.
        place.clean();
        Err(match why {
            GuardNotClaimed::Vanished => ClaimError::Vanished,
            GuardNotClaimed::Guard(e) => ClaimError::Refused(EngineError::refused(e)),
            GuardNotClaimed::Setup(e) if e.is_lack_of_room() => ClaimError::NoRoom(place.failed(e)),
            GuardNotClaimed::Setup(e) => ClaimError::Refused(place.failed(e)),
            GuardNotClaimed::Refused(why) => ClaimError::Refused(EngineError::Refused(why)),
        })
    }

    /// Checks that a guarded directory may be used, as long as no other run changes the directory.
    fn check(&self, guard: &RelPath) -> Result<GuardState, GuardNotClaimed> {
        let found = marker::look(self.setup_pool, self.plan, guard, self.others)?;
        match marker::pattern_refusal(self.plan, &found) {
            Some(why) => Err(GuardNotClaimed::Refused(why)),
            None => Ok(found),
        }
    }

    fn claim_guard(&mut self, guard: &RelPath) -> Result<(), GuardNotClaimed> {
        let claim = self.make_and_contend(guard)?;
        // No other run changes the directory from here on.
        let checked = self.check(guard);
        match checked.and_then(|found| Ok(self.mark(guard, found)?)) {
            Ok(marker) => {
                self.guarded.push(GuardedDir {
                    guard: guard.clone(),
                    marker,
                    claim,
                });
                Ok(())
            }
            Err(e) => {
                let _ = self.release_claim(guard, &claim);
                Err(e)
            }
        }
    }

    /// Writes the marker of a claimed guarded directory.
    fn mark(&mut self, guard: &RelPath, found: GuardState) -> Result<Marker, SetupError> {
        let mut marker = Marker {
            plimsoll: 1,
            workload: self.plan.name.clone(),
            seed: self.plan.seed,
            guard: guard.clone(),
            made_dir: self.made.contains(guard.as_str()),
            trees: vec![],
        };
        if let GuardState::Marked(old) = found {
            marker.made_dir |= old.made_dir;
            marker.trees = old.trees;
        }
        if let Some(pattern) = self.plan.pattern() {
            marker.trees = vec![Tree::of_pattern(pattern)];
        }
        self.marked.push(guard.clone());
        marker::write(self.setup_pool, guard, &marker)?;
        Ok(marker)
    }

    /// Makes a guarded directory if missing, and claims the directory.
    fn make_and_contend(&mut self, guard: &RelPath) -> Result<ClaimId, GuardNotClaimed> {
        for _ in 0..MAX_ROUNDS {
            if !guard.as_str().is_empty() {
                self.make_guard(guard)?;
            }
            match self.contend(guard, self.others)? {
                Contended::Claimed(claim) => return Ok(claim),
                Contended::Held(e) => return Err(e.into()),
                // Only a new connection creates the work directory again.
                Contended::Vanished if guard.as_str().is_empty() => {
                    return Err(GuardNotClaimed::Vanished);
                }
                Contended::Vanished => {}
            }
        }
        Err(GuardError::Changing(path_in(self.plan, guard.as_str())).into())
    }

    /// Makes a guarded directory and the directories above it, where missing.
    fn make_guard(&mut self, guard: &RelPath) -> Result<(), GuardNotClaimed> {
        let made = self.make_dirs_above(guard).and_then(|above| {
            self.made.extend(above);
            if self.make_dir(guard.as_str())? {
                self.made.insert(guard.as_str().into());
            }
            Ok(())
        });
        made.map_err(|e| match e {
            SetupError::Failed {
                error: OpError(Errno::NOENT | Errno::STALE),
                ..
            } => GuardNotClaimed::Vanished,
            e => e.into(),
        })
    }

    /// Claims an existing guarded directory. If another run holds the claim, leaves notes of the directories that
    /// Plimsoll made.
    pub(super) fn contend(
        &mut self,
        guard: &RelPath,
        others: RemoteOwner,
    ) -> Result<Contended, GuardNotClaimed> {
        let id = ClaimId::choose();
        for _ in 0..MAX_ROUNDS {
            let take = async |dir: &mut SessionDir<'_>| Ok(claim::take(dir, &id, others).await);
            let failed = |e| SetupError::failed("claim", guard.as_str().as_bytes(), e);
            match self.on_claim(guard, take).map_err(failed)? {
                Ok(claim) => return Ok(Contended::Claimed(claim)),
                Err(NotClaimed::Vanished) => return Ok(Contended::Vanished),
                Err(NotClaimed::Stray(name)) => {
                    return Err(GuardError::stray(path_in(self.plan, guard.as_str()), &name).into());
                }
                Err(NotClaimed::Failed(e)) => return Err(failed(e).into()),
                Err(NotClaimed::Held(by, state)) => {
                    let levels = self.levels(guard);
                    let tell =
                        async |dir: &mut SessionDir<'_>| claim::tell(dir, &id, &levels).await;
                    // The refusal matters more than an error of the notes.
                    if levels.is_empty() || self.on_claim(guard, tell).unwrap_or(true) {
                        let held = GuardError::held(path_in(self.plan, guard.as_str()), &by, state);
                        return Ok(Contended::Held(held));
                    }
                }
            }
        }
        Err(GuardError::Changing(path_in(self.plan, guard.as_str())).into())
    }

    /// Executes `work` on a guarded directory, in a session of its own.
    pub(crate) fn on_claim<R>(
        &self,
        guard: &RelPath,
        work: impl AsyncFnOnce(&mut SessionDir<'_>) -> Result<R, OpError>,
    ) -> Result<R, OpError> {
        let target = &*self.setup_pool.target;
        let on_dir = async |session: &mut dyn SetupSession| {
            let mut dir = SessionDir {
                target,
                session,
                guard,
            };
            work(&mut dir).await
        };
        self.setup_pool.one(on_dir)?
    }

    /// Levels of directories that Plimsoll made and that no marker records: a guarded directory, and directories above
    /// it.
    pub(super) fn levels(&self, guard: &RelPath) -> Levels {
        let levels = (0..).zip(dirs_from(guard.as_str()));
        let made = levels.filter(|(_, dir)| self.made.contains(*dir));
        made.map(|(level, _)| level).collect()
    }

    /// Adds the directories at the levels `levels`, counted upwards from the guarded directory, to the directories that
    /// Plimsoll made.
    pub(super) fn learn(&mut self, guard: &RelPath, levels: &Levels) {
        let dirs = (0..).zip(dirs_from(guard.as_str()));
        let told = dirs.filter(|(level, _)| levels.contains(level));
        self.made.extend(told.map(|(_, dir)| dir.to_owned()));
    }

    pub(super) fn release_claim(&self, guard: &RelPath, id: &ClaimId) -> Result<(), SetupError> {
        self.on_claim(guard, async |dir| claim::release(dir, id).await)
            .map_err(|e| SetupError::failed("release", guard.as_str().as_bytes(), e))
    }
}

/// A directory and the directories above it, up to the work directory.
fn dirs_from(dir: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(dir), |dir| match *dir {
        "" => None,
        dir => Some(dir.rsplit_once('/').map_or("", |(above, _)| above)),
    })
}
