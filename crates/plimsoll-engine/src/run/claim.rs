//! Claims of guarded directories: exactly one of the runs that want a directory at the same time gets the directory.
//!
//! A guarded directory in use contains the directory `.plimsoll.claim`, and in the claim an empty directory, the
//! *holder*, whose name is the run's [`ClaimId`]. A claim has no other contents: each change of a claim is one
//! operation on names, which the file system or the server executes as a whole, and of which one caller succeeds.
//!
//! - **A free directory** is claimed by a rename. The run prepares `.plimsoll.claim.ID` with the holder `ID` inside,
//!   and renames `.plimsoll.claim.ID` to `.plimsoll.claim`. A rename onto a directory with entries fails (POSIX, RFC
//!   1813 and RFC 8881), so one rename succeeds, and the claim has its holder from the first instant. (An exclusive
//!   create does not suffice: a run that is killed before writing its name into the new file leaves a claim that nobody
//!   can attribute.)
//! - **A claim whose owner has ended** is taken over by renaming its holder from the old [`ClaimId`] to the new one. A
//!   name can be renamed away once, so one rename succeeds. No two claims have the same id, so a run whose listing is
//!   outdated renames either the holder in the listing or nothing, and never the holder of a faster run.
//! - **A claim is released** by removing its holder and then `.plimsoll.claim`; the second removal fails unless the
//!   claim is empty.
//!
//! No run relies on the result of an operation: a run has the directory when the run has listed `.plimsoll.claim` and
//! found its own holder and no other holder of a process that may be running. A lost reply, after which a repeated
//! request fails, therefore makes no run a loser, and a false success makes no run a winner. A repeated request that
//! the server executes late does not find the name to rename or remove: every such name contains an id, except
//! `.plimsoll.claim`, which is removed only when empty.
//!
//! **Why two runs never have a directory.** Assume that two runs, A and B, have both found their own holder and not the
//! other run's holder. A holder is made before its run lists the claim, and removed after the run has used the
//! directory. If A's holder was made before B's listing began, B has listed A's holder. Otherwise B's listing began
//! first; B's holder is older than B's listing, hence older than A's holder and A's listing, so that A has listed B's
//! holder. Either case contradicts the assumption. The argument needs no exclusive rename, so the argument also holds
//! on servers whose rename joins two directories; on a server of this kind, two runs at the same instant may both be
//! refused.
//!
//! **Why one run gets the directory.** A run is refused only after seeing the holder of another process that may be
//! running. Where renames are exclusive, `.plimsoll.claim` has one holder at a time, and the run of this holder finds
//! no other holder. An attempt that fails without an error of the target fails because an attempt of another run has
//! succeeded.
//!
//! `models` executes this code in every order of its operations, with processes that end at any operation, lost
//! replies, and repeated requests.
//!
//! **Who has made the directory** is unknown to the run that gets the directory if a refused run has made it. The
//! refused run leaves a *note*, the directory `.plimsoll.madeLEVEL+ID` beside the claim: level 0 is the guarded
//! directory, level 1 the directory above. The refused run leaves the note before its last look at the claim, and the
//! other run lists the guarded directory after releasing its claim, so that at least one of the two runs sees both the
//! note and the other run. A run that cannot remove the directory, because another run has come, also leaves a note and
//! looks again: the other run finds the note at its end. A run that has prepared a claim withdraws the prepared claim
//! before its last look.

#[cfg(test)]
mod models;
mod owner;

pub(crate) use owner::{ClaimId, OwnerProcess, OwnerState};

use plimsoll_plan::RelPath;
use plimsoll_target::{EntryKind, OpError, SetupSession, Target};
use rustix::io::Errno;
use std::collections::BTreeSet;

/// Name of a claim, which is a directory.
pub(crate) const CLAIM: &str = ".plimsoll.claim";

/// Prefix of the name of a prepared claim; the claim's id follows.
const PREPARED: &str = ".plimsoll.claim.";

/// Prefix of the name of a note; the level and the id of the note's run follow.
const NOTE: &str = ".plimsoll.made";

/// Maximum number of attempts to claim a directory or to release a claim; each attempt but the last fails because an
/// attempt of another run succeeds.
const MAX_ATTEMPTS: u32 = 64;

/// Levels of directories that Plimsoll made: 0 is the guarded directory, 1 the directory above.
pub(crate) type Levels = BTreeSet<u32>;

/// Treatment of a directory that a run of another machine has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteOwner {
    /// Refuse the directory, because the run may be in progress.
    Refuse,
    /// Take over the directory, because the user states that the run has ended.
    TakeOver,
}

/// Operations on directories that read and change claims. Paths are relative to the guarded directory, whose own path
/// is `""`.
pub(crate) trait ClaimDir {
    /// Names in a directory; `None` if the directory is missing.
    async fn list(&mut self, dir: &str) -> Result<Option<Vec<String>>, OpError>;

    async fn make(&mut self, dir: &str) -> Result<(), OpError>;

    /// Renames a directory, without replacing a directory that has entries.
    async fn rename(&mut self, from: &str, to: &str) -> Result<(), OpError>;

    /// Removes an empty directory, which may be the guarded directory.
    async fn remove(&mut self, dir: &str) -> Result<(), OpError>;

    /// State of an owner, as far as this process knows.
    async fn state(&mut self, owner: &OwnerProcess) -> OwnerState;
}

/// A guarded directory on a target, on which a session executes the requests of a claim.
pub(crate) struct SessionDir<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) session: &'a mut dyn SetupSession,
    pub(crate) guard: &'a RelPath,
}

impl SessionDir<'_> {
    fn path(&self, name: &str) -> String {
        match (self.guard.as_str(), name) {
            ("", name) => name.into(),
            (guard, "") => guard.into(),
            (guard, name) => format!("{guard}/{name}"),
        }
    }

    fn locate(&mut self, name: &str) -> &mut dyn SetupSession {
        let path = self.path(name);
        self.session
            .locate(|p| p.extend_from_slice(path.as_bytes()));
        self.session
    }
}

impl ClaimDir for SessionDir<'_> {
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
        let session = self.locate(to);
        session.check_parent().await?;
        session.set_destination();
        let session = self.locate(from);
        session.check_parent().await?;
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

/// Whether a name in a guarded directory is the name of a claim, a prepared claim or a note.
pub(crate) fn is_claim_name(name: &[u8]) -> bool {
    let is_known = |name| prepared(name).is_some() || level_of_note(name).is_some();
    name == CLAIM.as_bytes() || std::str::from_utf8(name).is_ok_and(is_known)
}

/// Id of the prepared claim of this name; `None` for any other name.
fn prepared(name: &str) -> Option<ClaimId> {
    name.strip_prefix(PREPARED).and_then(ClaimId::parse)
}

/// Level of the note of this name; `None` for any other name.
fn level_of_note(name: &str) -> Option<u32> {
    let (level, id) = name.strip_prefix(NOTE)?.split_once('+')?;
    ClaimId::parse(id)?;
    level.parse().ok()
}

/// Contents of a claim at the time of a listing.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Whether `.plimsoll.claim` exists, perhaps without a holder.
    is_there: bool,
    /// Holders in the order of their names: usually at most one.
    holders: Vec<(ClaimId, OwnerState)>,
    /// A name in the claim that is no run's holder; `None` if all names are holders.
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

    /// A holder that is another process and may be running.
    pub(crate) fn rival(&self) -> Option<(&ClaimId, OwnerState)> {
        let mut holders = self.holders.iter();
        holders.find(|(_, s)| may_run(*s)).map(|(id, s)| (id, *s))
    }

    /// Whether a process is a holder.
    pub(crate) fn has_holder(&self, owner: &OwnerProcess) -> bool {
        self.holders.iter().any(|(id, _)| id.owner == *owner)
    }

    /// An entry that Plimsoll did not make, so that the state of the claim is unknown.
    pub(crate) fn stray(&self) -> Option<&str> {
        self.stray.as_deref()
    }
}

/// The path of a name in a claim.
fn in_claim(name: impl std::fmt::Display) -> String {
    format!("{CLAIM}/{name}")
}

/// Reason why a directory is not claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotClaimed {
    /// Another process holds the claim.
    Held(OwnerProcess, OwnerState),
    /// The guarded directory is missing, because another run has removed it.
    Vanished,
    /// The claim has an entry that Plimsoll did not make.
    Stray(String),
    /// An operation on the guarded directory or on the directory's claim failed with the contained error.
    Failed(OpError),
}

impl From<OpError> for NotClaimed {
    fn from(e: OpError) -> Self {
        Self::Failed(e)
    }
}

/// Claims a guarded directory. Returns the claim; if this process already holds a claim of the directory, returns the
/// existing claim.
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

/// A run that wants a directory, and whether the run has prepared a claim.
struct Contender<'a> {
    id: &'a ClaimId,
    others: RemoteOwner,
    /// Holders of other machines at the first look, whose runs have ended, as the user states.
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
                    // Another run may have seen the prepared claim and left the directory to this run.
                    continue;
                }
                return Err(NotClaimed::Held(rival.owner.clone(), state));
            }
            if let Some(id) = own {
                for (other, _) in found.holders.iter().filter(|(other, _)| *other != id) {
                    // A request that the server executed twice has made a holder again, beside this run's holder.
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

    /// Removes the prepared claim; returns `false` if this run has prepared no claim.
    async fn withdraw(&mut self, dir: &mut impl ClaimDir) -> bool {
        if !std::mem::take(&mut self.is_prepared) {
            return false;
        }
        let prepared = format!("{PREPARED}{}", self.id);
        // The next run removes a prepared claim that this run cannot remove.
        let _ = dir.remove(&format!("{prepared}/{}", self.id)).await;
        let _ = dir.remove(&prepared).await;
        true
    }

    /// Makes one attempt to claim the directory. The inner result is the result of the last operation; only the next
    /// look shows whether the attempt succeeded.
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
            // Servers may refuse to replace even an empty directory.
            let _ = dir.remove(CLAIM).await;
        }
        Ok(renamed)
    }
}

/// Whether an operation fails with this error if another run was faster.
fn is_contention(e: OpError) -> bool {
    matches!(
        e.0,
        Errno::NOENT | Errno::EXIST | Errno::NOTEMPTY | Errno::STALE
    )
}

/// Releases a claim, which may be released already.
pub(crate) async fn release(dir: &mut impl ClaimDir, id: &ClaimId) -> Result<(), OpError> {
    absent_or(dir.remove(&in_claim(id)).await)?;
    let mut last = Ok(());
    for _ in 0..MAX_ATTEMPTS {
        last = absent_or(dir.remove(CLAIM).await);
        if last.is_ok() {
            break;
        }
        // Servers report a directory with entries by several errors. A claim with entries is a claim of another run.
        match dir.list(CLAIM).await? {
            Some(names) if names.is_empty() => {}
            _ => return Ok(()),
        }
    }
    last
}

/// Leaves notes of directories that Plimsoll made. Returns `true` if another run holds the claim, and so will find the
/// notes. On `false` the claim may be free, or the guarded directory missing.
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
            // The guarded directory may be missing.
            Ok(()) | Err(OpError(Errno::EXIST | Errno::NOENT | Errno::STALE)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Result of leaving a guarded directory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The directory is removed, or stays: because Plimsoll did not make it, because of its contents, or for another
    /// run.
    Done,
    /// The directory has a marker and no claim.
    Marked,
}

/// Removes a guarded directory that Plimsoll made and whose claim this run has released. `levels` are the directories
/// that Plimsoll made as far as this run knows; the levels of other runs' notes are added. `is_marker` tells whether a
/// name is the marker's. A run that comes at the same time may make the removal fail with ENOTEMPTY; the next attempt
/// takes that run into account.
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
        // ESTALE stays an error: another directory may have the name now.
        Ok(()) | Err(OpError(Errno::NOENT)) => Ok(Departure::Done),
        Err(e) => Err(e),
    }
}

/// Whether a guarded directory with these entries has a claim, or a prepared claim of a process that may be running.
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

/// Removes prepared claims from a guarded directory: the claims of this process, of ended processes, and with
/// `RemoteOwner::TakeOver` also of processes of other machines.
async fn sweep(
    dir: &mut impl ClaimDir,
    names: &[String],
    others: RemoteOwner,
) -> Result<(), OpError> {
    for name in names {
        let Some(id) = prepared(name) else {
            continue;
        };
        // The prepared claim of a running process may become a claim at any time, so no other process changes its
        // contents.
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

/// Counts a missing directory as removed: a repeated request, or the removal of the directory above, may have removed
/// the directory.
fn absent_or(removed: Result<(), OpError>) -> Result<(), OpError> {
    match removed {
        Err(OpError(Errno::NOENT | Errno::STALE)) => Ok(()),
        other => other,
    }
}

/// Whether the owner is another process that may be running.
fn may_run(state: OwnerState) -> bool {
    matches!(state, OwnerState::Running | OwnerState::Elsewhere)
}
