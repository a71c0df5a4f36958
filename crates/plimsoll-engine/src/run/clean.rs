//! Cleanup after runs that could not clean up themselves.

use super::claim::RemoteOwner;
use super::marker::{self, GuardError, GuardState};
use super::removal::{self, RetryWindow};
use super::run_target::{self, RunTarget};
use super::setup_pool::{MAX_SERVER_SILENCE, SetupPool};
use super::tree::is_named;
use super::work_dir::{ClaimError, ClaimedWorkDir};
use super::{EngineError, Settings, Stop, setup_pool};
use plimsoll_measure::Cleanup;
use plimsoll_plan::{Plan, RelPath};
use plimsoll_target::{EntryKind, Purpose};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes the remains of runs in a directory: the trees that Plimsoll's marker lists, the marker, claims of ended
/// runs, and the directory if Plimsoll created the directory. Returns the remaining files; if a part of a tree is left,
/// the marker stays too. `stop` can end the removal. With `force`, cleans the directory even if its claim names a
/// process of another machine, which may be running.
///
/// # Errors
/// [`EngineError::Refused`] if the target cannot be reached, if the directory has neither a marker nor remains of a
/// claim, if the directory was moved since, or if a run may be using the directory.
pub fn clean(
    dir: &Path,
    settings: &Settings,
    force: bool,
    stop: &Stop,
) -> Result<Cleanup, EngineError> {
    let others = match force {
        true => RemoteOwner::TakeOver,
        false => RemoteOwner::Refuse,
    };
    end(dir, settings, others, false, stop)?.map_err(EngineError::Refused)
}

/// Ends the use of a directory that runs of this process have claimed ([`Settings::holds`]). Removes the files unless
/// `keeps`, and lets other processes use the directory. Returns the files that could not be removed, and no files if no
/// run has claimed the directory.
///
/// # Errors
/// [`EngineError::Refused`] if the target cannot be reached, if the directory was moved since, or if another run is
/// using the directory.
pub fn end_claim(
    dir: &Path,
    settings: &Settings,
    keeps: bool,
    stop: &Stop,
) -> Result<Cleanup, EngineError> {
    let ended = end(dir, settings, RemoteOwner::Refuse, keeps, stop)?;
    Ok(ended.unwrap_or_default())
}

/// Releases a directory, and removes its files unless `keeps`. The inner error is the reason why the directory has
/// nothing to release, as a sentence.
fn end(
    dir: &Path,
    settings: &Settings,
    others: RemoteOwner,
    keeps: bool,
    stop: &Stop,
) -> Result<Result<Cleanup, String>, EngineError> {
    let dir = plimsoll_target::absolute(&settings.target, dir).map_err(EngineError::refused)?;
    let target = plimsoll_target::with_silence_limit(&settings.target, MAX_SERVER_SILENCE);
    let mut plan = Plan::empty("clean");
    plan.work_dir.dir = dir;
    let connect = |plan: &Plan| {
        run_target::connect(&target, &plan.work_dir, Purpose::Inspect, None)
            .map_err(EngineError::refused)
    };
    let guard = match guard_to_clean(connect(&plan)?, &plan, others)? {
        Ok(guard) => guard,
        Err(nothing) => return Ok(Err(nothing)),
    };
    plan.work_dir.dir = work_dir(&plan.work_dir.dir, &guard)?;
    plan.work_dir.guards = vec![guard];
    let mut pool = setup_pool(connect(&plan)?, &plan)?;
    pool.silence = Some(MAX_SERVER_SILENCE);
    pool.stop = stop.removal.clone();
    let mut place = claim_with_room(&pool, &plan, others)?;
    let left = match keeps {
        false => place.clean_listed(),
        true => place.release(true),
    };
    Ok(Ok(place.cleanup(left, Some(settings).filter(|_| !keeps))))
}

/// The work directory of the run in which `dir` was the guarded directory `guard`.
fn work_dir(dir: &Path, guard: &RelPath) -> Result<PathBuf, EngineError> {
    let mut at = dir;
    for name in guard.as_str().rsplit('/').filter(|n| !n.is_empty()) {
        match at.parent() {
            Some(above) if at.file_name().is_some_and(|n| n == name) => at = above,
            _ => {
                return Err(EngineError::Refused(format!(
                    "`{}` was `{guard}` in its work directory and was moved since; move it back",
                    dir.display()
                )));
            }
        }
    }
    Ok(at.to_owned())
}

/// The path of the guarded directory in the run that marked the directory. The inner error says that there is nothing
/// to clean.
fn guard_to_clean(
    target: Arc<dyn RunTarget>,
    plan: &Plan,
    others: RemoteOwner,
) -> Result<Result<RelPath, String>, EngineError> {
    let text = |why: &str| format!("`{}` {why}", plan.work_dir.dir.display());
    if !target.exists() {
        return Ok(Err(text("does not exist: nothing to clean")));
    }
    let pool = setup_pool(target, plan)?;
    match marker::look(&pool, plan, &RelPath::default(), others) {
        Ok(GuardState::Marked(marker)) => Ok(Ok(marker.guard)),
        Ok(GuardState::Empty { has_remains: true }) => Ok(Ok(RelPath::default())),
        Ok(GuardState::Nothing | GuardState::Empty { has_remains: false }) => {
            Ok(Err(text("has no Plimsoll marker: nothing to clean")))
        }
        Err(GuardError::Foreign(_)) => Err(EngineError::Refused(text(
            "was not created by Plimsoll (it has no .plimsoll): give the directory shown in \
             the first line of the run's output",
        ))),
        Err(e) => Err(EngineError::refused(e)),
    }
}

/// Claims a directory that is to be cleaned. On a full file system, first removes files to make room for the claim.
fn claim_with_room<'a>(
    pool: &'a SetupPool,
    plan: &'a Plan,
    others: RemoteOwner,
) -> Result<ClaimedWorkDir<'a>, EngineError> {
    let (mut patience, mut is_removed) = (RetryWindow::default(), false);
    for attempt in 0.. {
        let refused = match ClaimedWorkDir::claim(pool, plan, others) {
            Ok(place) => return Ok(place),
            Err(ClaimError::NoRoom(e)) => e,
            Err(ClaimError::Refused(e)) => return Err(e),
            Err(ClaimError::Vanished) => {
                let dir = plan.work_dir.dir.display();
                let gone = format!("`{dir}` was removed meanwhile: nothing to clean");
                return Err(EngineError::Refused(gone));
            }
        };
        let removes = make_room(pool, plan, others);
        is_removed |= removes;
        // A server may free the space of a removed file only after a while, so the claim is attempted again.
        let may_help = removes || is_removed && patience.wait(attempt);
        if !may_help {
            return Err(refused);
        }
    }
    unreachable!("the attempts end with their time")
}

/// Removes one directory of a fileset's tree, or the whole tree of a pattern, that the marker lists, so that a full
/// file system has room for a claim. Returns whether a directory with entries was removed without an error.
///
/// No run uses the files: a run has a claim, and `look` finds no claim. A run that claims the directory in the short
/// time until the end of the removal finds its files incomplete, and fails.
fn make_room(pool: &SetupPool, plan: &Plan, others: RemoteOwner) -> bool {
    let guard = &plan.work_dir.guards[0];
    let Ok(GuardState::Marked(marker)) = marker::look(pool, plan, guard, others) else {
        return false;
    };
    let mut trees = marker.trees.iter();
    trees.any(|tree| {
        let names = tree.names.as_ref();
        let mut dir = tree.root.as_str().to_owned();
        let is_filled = loop {
            let Ok(entries) = pool.at(&dir, async |s| s.entries().await) else {
                break false;
            };
            // A pattern's entries are recognised by their depth below the root, so a removal begins at the root.
            let mut below = entries.iter().filter(|(name, kind)| {
                names.is_none() && *kind == EntryKind::Dir && is_named(None, 0, name, *kind)
            });
            match below.next().map(|(name, _)| String::from_utf8_lossy(name)) {
                Some(name) => dir = format!("{dir}/{name}"),
                None => break !entries.is_empty(),
            }
        };
        is_filled
            && removal::remove(pool, &dir, names, &mut RetryWindow::default(), || ()).is_clean()
    })
}
