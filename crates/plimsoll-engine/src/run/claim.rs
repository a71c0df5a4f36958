//! Claims of guarded directories: of all runs that want a directory at once, at most one gets it, and one does.
//!
//! A guarded directory that a run uses contains the directory `.plimsoll.claim`, and in it an empty directory with the
//! run's [`ClaimId`] for a name, the *holder*. There is nothing else to a claim: each change of it is one operation on
//! names, which the file system or the server executes as a whole, and of which one caller succeeds.
//!
//! - **A free directory** is claimed by a rename. The run prepares `.plimsoll.claim.ID` with the holder `ID` in it, and
//!   renames it to `.plimsoll.claim`. A rename onto a directory with entries fails (POSIX, RFC 1813 and RFC 8881), so one
//!   rename succeeds, and the claim has its holder from the first instant on. (An exclusive create would not do: a run
//!   that is killed before it has written its name into the new file has a claim that nobody can attribute.)
//! - **A claim whose owner has ended** is taken over by renaming its holder, from the old to the new [`ClaimId`]. A name can
//!   be renamed away once, so one rename succeeds. As no two claims have an id in common, a run that was slow since it
//!   looked renames the holder that it saw or none: never the holder of a run that was faster.
//! - **A claim is released** by removing its holder, and then `.plimsoll.claim`, which fails unless it is empty.
//!
//! No run believes what an operation returned: a run has the directory when it has listed `.plimsoll.claim`, found its own
//! holder, and no other of a process that may be running. A reply that was lost, after which a repeated request fails,
//! makes nobody a loser therefore, and a false success nobody a winner. A repetition that the server executes late finds
//! the name gone that it renames or removes: every such name has an id in it, but for that of `.plimsoll.claim`, which
//! is only removed when it is empty.
//!
//! **Why two runs never have a directory.** Assume that A and B have both found their own holder and not the other's. A
//! holder is made before its run lists the claim, and removed after its use. If A's holder was made before B's listing
//! began, B has listed A's holder. Otherwise B's listing began first; B's holder is older than that listing, hence older
//! than A's holder and A's listing, so that A has listed B's holder. Either contradicts the assumption. Nothing here needs
//! an exclusive rename, so that it also holds on servers whose rename joins two directories; there two runs at the same
//! instant may both be refused.
//!
//! **Why one of them gets it.** A run is refused only if it has seen the holder of another that may be running. Where
//! renames are exclusive, `.plimsoll.claim` has one holder at a time, and whoever made it finds itself alone. An attempt
//! that fails for another reason than an error of the target fails because another run's succeeded meanwhile.
//!
//! `models` executes this code in every order of its operations, with processes that end at any of them, replies that are
//! lost, and requests that are repeated.
//!
//! **Who has made the directory** is not known to the run that gets it if another, which is refused, has made it. The
//! refused run leaves a *note*, the directory `.plimsoll.madeLEVEL+ID` beside the claim: level 0 is the guarded directory,
//! 1 the one above. It does so before it looks for the last time whether it is refused, and the other run lists the
//! guarded directory after it has released its claim, so that one of the two knows of the note and of the other. A run
//! that cannot remove the directory, because another has come, leaves a note as well and looks again: a run that is there
//! finds the note at its end. One that has prepared a claim withdraws it before it looks for the last time.

#[cfg(test)]
mod models;
mod owner;

pub(crate) use owner::{ClaimId, OwnerProcess, OwnerState};

use plimsoll_plan::RelPath;
use plimsoll_target::{EntryKind, OpError, Session, Target};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Name of the directory that a claim is.
pub(crate) const CLAIM: &str = ".plimsoll.claim";

/// Beginning of the names of claims that are prepared; the id follows.
const PREPARED: &str = ".plimsoll.claim.";

/// Beginning of the names of notes; the level and the id of the run that left it follow.
const NOTE: &str = ".plimsoll.made";

/// Attempts to claim a directory. Each but the last fails because another run's succeeds.
const MAX_ATTEMPTS: u32 = 64;

/// Directories that Plimsoll made, by their level: 0 is the guarded directory, 1 the one above.
pub(crate) type Levels = BTreeSet<u32>;

/// How to treat a directory that a run of another machine claims to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteOwner {
    /// Refuse it: the run may be in progress.
    Refuse,
    /// Take it over: the user knows that the run has ended.
    TakeOver,
}

/// The operations on directories that claims consist of. Paths are relative to the guarded directory, which is `""`.
pub(crate) trait ClaimDir {
    /// The names in a directory; `None` if it is missing.
    async fn list(&mut self, dir: &str) -> Result<Option<Vec<String>>, OpError>;

    /// Makes a directory.
    async fn make(&mut self, dir: &str) -> Result<(), OpError>;

    /// Renames a directory. A directory with entries is not replaced.
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), OpError>;

    /// Removes a directory if it is empty, also the guarded one.
    async fn remove(&mut self, dir: &str) -> Result<(), OpError>;

    /// What is known of an owner.
    async fn state(&mut self, owner: &OwnerProcess) -> OwnerState;
}

/// A guarded directory on a target.
pub(crate) struct SessionDir<'a, T: Target> {
    pub(crate) target: &'a T,
    pub(crate) session: &'a mut T::Session,
    pub(crate) guard: &'a RelPath,
}

impl<T: Target> SessionDir<'_, T> {
    fn path(&self, name: &str) -> String {
        match (self.guard.as_str(), name) {
            ("", name) => name.into(),
            (guard, "") => guard.into(),
            (guard, name) => format!("{guard}/{name}"),
        }
    }

    fn locate(&mut self, name: &str) -> &mut T::Session {
        let path = self.path(name);
        self.session
            .locate(|p| p.extend_from_slice(path.as_bytes()));
        self.session
    }
}

impl<T: Target> ClaimDir for SessionDir<'_, T> {
    async fn list(&mut self, dir: &str) -> Result<Option<Vec<String>>, OpError> {
        let text = |(name, _): (Vec<u8>, EntryKind)| String::from_utf8_lossy(&name).into_owned();
        match self.locate(dir).entries().await {
            Err(OpError(Errno::NOENT | Errno::STALE)) => Ok(None),
            entries => Ok(Some(entries?.into_iter().map(text).collect())),
        }
    }

    async fn make(&mut self, dir: &str) -> Result<(), OpError> {
        let session = self.locate(dir);
        session.check_parent().await?;
        session.make_dir().await
    }

    async fn rename(&mut self, from: &str, to: &str) -> Result<(), OpError> {
        let second = self.path(to);
        let session = self.locate(from);
        session.locate_second(|p| p.extend_from_slice(second.as_bytes()));
        session.check_parent().await?;
        session.check_second_parent().await?;
        session.rename().await
    }

    async fn remove(&mut self, dir: &str) -> Result<(), OpError> {
        match self.path(dir).is_empty() {
            true => self.target.remove_work_dir(),
            false => self.locate(dir).remove(EntryKind::Dir).await,
        }
    }

    async fn state(&mut self, owner: &OwnerProcess) -> OwnerState {
        owner.state()
    }
}

/// Whether a name in a guarded directory is that of a claim, of one that is prepared, or of a note.
pub(crate) fn is_claim_name(name: &[u8]) -> bool {
    let is_known = |name| prepared(name).is_some() || level_of_note(name).is_some();
    name == CLAIM.as_bytes() || std::str::from_utf8(name).is_ok_and(is_known)
}

/// The claim that is prepared under a name.
fn prepared(name: &str) -> Option<ClaimId> {
    name.strip_prefix(PREPARED).and_then(ClaimId::parse)
}

/// The level of a note.
fn level_of_note(name: &str) -> Option<u32> {
    let (level, id) = name.strip_prefix(NOTE)?.split_once('+')?;
    ClaimId::parse(id)?;
    level.parse().ok()
}

/// A claim as it was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Whether there is a claim; it may be empty.
    is_there: bool,
    /// Its holders, in the order of their names: one, or none.
    holders: Vec<(ClaimId, OwnerState)>,
    /// A name that no run gives.
    stray: Option<String>,
}

impl Found {
    /// Lists the claim of a guarded directory.
    pub(crate) async fn look(dir: &mut impl ClaimDir) -> Result<Self, OpError> {
        let Some(mut names) = dir.list(CLAIM).await? else {
            return Ok(Self::default());
        };
        names.sort_unstable();
        let mut found = Self {
            is_there: true,
            ..Self::default()
        };
        for name in names {
            match ClaimId::parse(&name) {
                Some(id) => {
                    let state = dir.state(&id.owner).await;
                    found.holders.push((id, state));
                }
                None => found.stray = Some(name),
            }
        }
        Ok(found)
    }

    /// A holder that is not this process, and may be running.
    pub(crate) fn rival(&self) -> Option<(&ClaimId, OwnerState)> {
        let mut holders = self.holders.iter();
        holders.find(|(_, s)| may_run(*s)).map(|(id, s)| (id, *s))
    }

    /// Whether a process is a holder.
    pub(crate) fn has_holder(&self, owner: &OwnerProcess) -> bool {
        self.holders.iter().any(|(id, _)| id.owner == *owner)
    }

    /// A name that no run gives, so that nothing is known of the claim.
    pub(crate) fn stray(&self) -> Option<&str> {
        self.stray.as_deref()
    }
}

/// The path of a name in a claim.
fn in_claim(name: impl std::fmt::Display) -> String {
    format!("{CLAIM}/{name}")
}

/// Why a directory is not claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotClaimed {
    /// Another process has it.
    Held(OwnerProcess, OwnerState),
    /// The guarded directory is gone: its run has removed it.
    Vanished,
    /// The claim has a name in it that no run gives.
    Stray(String),
    /// An operation failed.
    Failed(OpError),
}

impl From<OpError> for NotClaimed {
    fn from(e: OpError) -> Self {
        Self::Failed(e)
    }
}

/// Claims a guarded directory. Returns the claim: of a process that has one already, that one.
pub(crate) async fn take(
    dir: &mut impl ClaimDir,
    id: &ClaimId,
    others: RemoteOwner,
) -> Result<ClaimId, NotClaimed> {
    let mut contender = Contender {
        id,
        others,
        forced: Vec::new(),
        is_prepared: false,
    };
    let taken = contender.contend(dir).await;
    contender.withdraw(dir).await;
    taken
}

/// A run that wants a directory.
struct Contender<'a> {
    id: &'a ClaimId,
    others: RemoteOwner,
    /// Claims of other machines that the user said have ended: those that were there at first.
    forced: Vec<ClaimId>,
    is_prepared: bool,
}

impl Contender<'_> {
    async fn contend(&mut self, dir: &mut impl ClaimDir) -> Result<ClaimId, NotClaimed> {
        let mut last = Ok(());
        for attempt in 0..MAX_ATTEMPTS {
            let mut found = Found::look(dir).await?;
            if let Some(name) = found.stray {
                return Err(NotClaimed::Stray(name));
            }
            if attempt == 0 && self.others == RemoteOwner::TakeOver {
                let elsewhere = |(_, s): &&(ClaimId, _)| *s == OwnerState::Elsewhere;
                let ids = found.holders.iter().filter(elsewhere);
                self.forced = ids.map(|(id, _)| id.clone()).collect();
            }
            for (id, state) in &mut found.holders {
                if self.forced.contains(id) {
                    *state = OwnerState::Ended;
                }
            }
            let own = found.holders.iter().find(|(_, s)| *s == OwnerState::This);
            let own = own.map(|(id, _)| id.clone());
            if let Some((rival, state)) = found.rival() {
                if let Some(own) = own {
                    dir.remove(&in_claim(own)).await?;
                }
                if self.withdraw(dir).await {
                    // A run that has seen the prepared claim may have left the directory to it.
                    continue;
                }
                return Err(NotClaimed::Held(rival.owner.clone(), state));
            }
            if let Some(id) = own {
                for (other, _) in found.holders.iter().filter(|(other, _)| *other != id) {
                    // A repeated request has made it again.
                    let _ = dir.remove(&in_claim(other)).await;
                }
                return Ok(id);
            }
            match last {
                Err(e) if !is_contention(e) => return Err(e.into()),
                _ => last = self.attempt(dir, &found).await?,
            }
        }
        Err(last.err().unwrap_or(OpError(Errno::BUSY)).into())
    }

    /// Removes the prepared claim; returns whether there was one.
    async fn withdraw(&mut self, dir: &mut impl ClaimDir) -> bool {
        if !std::mem::take(&mut self.is_prepared) {
            return false;
        }
        let prepared = format!("{PREPARED}{}", self.id);
        // What cannot be removed is removed by the next run.
        let _ = dir.remove(&format!("{prepared}/{}", self.id)).await;
        let _ = dir.remove(&prepared).await;
        true
    }

    /// Makes one attempt. The inner result is that of its last operation: whether it succeeded shows the next look.
    async fn attempt(
        &mut self,
        dir: &mut impl ClaimDir,
        found: &Found,
    ) -> Result<Result<(), OpError>, NotClaimed> {
        let own = in_claim(self.id);
        if let Some((ended, _)) = found.holders.first() {
            return Ok(dir.rename(&in_claim(ended), &own).await);
        }
        let prepared = format!("{PREPARED}{}", self.id);
        self.is_prepared = true;
        match dir.make(&prepared).await {
            Ok(()) | Err(OpError(Errno::EXIST)) => {}
            Err(OpError(Errno::NOENT | Errno::STALE)) => return Err(NotClaimed::Vanished),
            Err(e) => return Ok(Err(e)),
        }
        match dir.make(&format!("{prepared}/{}", self.id)).await {
            Ok(()) | Err(OpError(Errno::EXIST)) => {}
            Err(e) => return Ok(Err(e)),
        }
        let renamed = dir.rename(&prepared, CLAIM).await;
        self.is_prepared = renamed.is_err();
        if renamed.is_err() && found.is_there {
            // Servers may refuse to replace a directory, even an empty one.
            let _ = dir.remove(CLAIM).await;
        }
        Ok(renamed)
    }
}

/// Whether an operation fails so if another run was faster.
fn is_contention(e: OpError) -> bool {
    matches!(
        e.0,
        Errno::NOENT | Errno::EXIST | Errno::NOTEMPTY | Errno::STALE
    )
}

/// Releases a claim.
pub(crate) async fn release(dir: &mut impl ClaimDir, id: &ClaimId) -> Result<(), OpError> {
    absent_or(dir.remove(&in_claim(id)).await)?;
    let mut last = Ok(());
    for _ in 0..MAX_ATTEMPTS {
        last = absent_or(dir.remove(CLAIM).await);
        if last.is_ok() {
            break;
        }
        // Servers have several errors for a directory that is not empty: another run has claimed it.
        match dir.list(CLAIM).await? {
            Some(names) if names.is_empty() => {}
            _ => return Ok(()),
        }
    }
    last
}

/// Leaves notes of directories that Plimsoll made. Returns whether another run has the claim, and will find them, or the
/// guarded directory is gone. Otherwise it may be free.
pub(crate) async fn tell(
    dir: &mut impl ClaimDir,
    id: &ClaimId,
    levels: &Levels,
) -> Result<bool, OpError> {
    leave_notes(dir, id, levels).await?;
    Ok(Found::look(dir).await?.rival().is_some())
}

async fn leave_notes(
    dir: &mut impl ClaimDir,
    id: &ClaimId,
    levels: &Levels,
) -> Result<(), OpError> {
    for level in levels {
        match dir.make(&format!("{NOTE}{level}+{id}")).await {
            // The guarded directory may be gone.
            Ok(()) | Err(OpError(Errno::EXIST | Errno::NOENT | Errno::STALE)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// What became of a guarded directory that a run leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Plimsoll did not make it, it is removed, or its contents or another run keep it.
    Done,
    /// There is a marker in it without a claim.
    Marked,
}

/// Removes a guarded directory whose claim this run has released, if Plimsoll made it. `levels`: the directories of which
/// the run knows that; those of other runs' notes are added. `is_marker`: whether a name is that of the marker. If another
/// run has come, the directory may be found not to be empty; the next attempt takes account of that run.
pub(crate) async fn depart(
    dir: &mut impl ClaimDir,
    id: &ClaimId,
    levels: &mut Levels,
    others: RemoteOwner,
    is_marker: impl Fn(&str) -> bool,
) -> Result<Departure, OpError> {
    let Some(mut names) = dir.list("").await? else {
        return Ok(Departure::Done);
    };
    levels.extend(names.iter().filter_map(|name| level_of_note(name)));
    sweep(dir, &names, others).await?;
    if levels.is_empty() {
        return Ok(Departure::Done);
    }
    if has_others(dir, &names).await {
        leave_notes(dir, id, levels).await?;
        names = match dir.list("").await? {
            None => return Ok(Departure::Done),
            Some(names) => names,
        };
        if has_others(dir, &names).await {
            return Ok(Departure::Done);
        }
    }
    if names.iter().any(|name| is_marker(name)) {
        return Ok(Departure::Marked);
    }
    for note in names.iter().filter(|name| level_of_note(name).is_some()) {
        absent_or(dir.remove(note).await)?;
    }
    if !levels.contains(&0) || !names.iter().all(|name| is_claim_name(name.as_bytes())) {
        return Ok(Departure::Done);
    }
    match dir.remove("").await {
        // Its name may be that of another directory now (ESTALE), which stays.
        Ok(()) | Err(OpError(Errno::NOENT)) => Ok(Departure::Done),
        Err(e) => Err(e),
    }
}

/// Whether a guarded directory with these names in it has a claim, or one that is prepared by a process that may be
/// running.
async fn has_others(dir: &mut impl ClaimDir, names: &[String]) -> bool {
    for name in names {
        if name == CLAIM {
            return true;
        }
        if let Some(id) = prepared(name)
            && may_run(dir.state(&id.owner).await)
        {
            return true;
        }
    }
    false
}

/// Removes claims that were prepared and not made, by this process or those that have ended, if they are among the names
/// in the directory.
async fn sweep(
    dir: &mut impl ClaimDir,
    names: &[String],
    others: RemoteOwner,
) -> Result<(), OpError> {
    for name in names {
        let Some(id) = prepared(name) else {
            continue;
        };
        // That of a process that may be running may become a claim at any time: nobody else touches what is in it.
        let is_left = match dir.state(&id.owner).await {
            OwnerState::Ended | OwnerState::This => true,
            OwnerState::Elsewhere => others == RemoteOwner::TakeOver,
            OwnerState::Running => false,
        };
        if is_left {
            absent_or(dir.remove(&format!("{name}/{id}")).await)?;
            absent_or(dir.remove(name).await)?;
        }
    }
    Ok(())
}

/// The result of a removal that may be done already: by a repeated request, or by the removal of the directory above.
fn absent_or(removed: Result<(), OpError>) -> Result<(), OpError> {
    match removed {
        Err(OpError(Errno::NOENT | Errno::STALE)) => Ok(()),
        other => other,
    }
}

/// Whether an owner that is not this process may be running.
fn may_run(state: OwnerState) -> bool {
    matches!(state, OwnerState::Running | OwnerState::Elsewhere)
}
