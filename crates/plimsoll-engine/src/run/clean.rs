//! Cleaning up after runs that did not.

use super::crew::LONGEST_SILENCE;
use super::marker::{self, Found, GuardError, Marker, Others};
use super::store::Workplace;
use super::{EngineError, Settings, Stop, crew_for};
use crate::outcome::Cleanup;
use plimsoll_plan::{Plan, RelPath};
use plimsoll_target::{Purpose, Target, Visitor};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes what runs left in a directory that carries Plimsoll's marker: the trees that the
/// marker lists, the marker, and the directory itself if Plimsoll made it. Returns what was left;
/// while anything of a tree is, the marker stays. `stop` may
/// ask for the rest to be left. `force`: so too if the marker names a process of
/// another machine, which may be alive.
///
/// # Errors
/// [`EngineError::Refused`] if the directory carries no marker or a run is using it.
pub fn clean(
    dir: &Path,
    settings: &Settings,
    force: bool,
    stop: &Stop,
) -> Result<Cleanup, EngineError> {
    let others = match force {
        true => Others::Ended,
        false => Others::Respect,
    };
    end(dir, settings, (others, End::Clean), stop)
}

/// Gives up a directory that runs of this process held ([`Settings::holds`]); its files stay.
///
/// # Errors
/// As [`clean`], and if that cannot be noted in the marker.
pub fn leave(dir: &Path, settings: &Settings) -> Result<(), EngineError> {
    let how = (Others::Respect, End::Leave);
    let left = end(dir, settings, how, &Stop::default())?;
    match left.unremoved.into_iter().next() {
        None => Ok(()),
        Some(why) => Err(EngineError::Failed(why)),
    }
}

/// What becomes of the files of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Leave,
}

fn end(
    dir: &Path,
    settings: &Settings,
    (others, end): (Others, End),
    stop: &Stop,
) -> Result<Cleanup, EngineError> {
    let dir = plimsoll_target::absolute(&settings.target, dir).map_err(EngineError::refused)?;
    let target = plimsoll_target::impatient(&settings.target, LONGEST_SILENCE);
    let mut plan = Plan::empty("clean");
    plan.place.dir = dir;
    let look = Look {
        plan: &plan,
        others,
    };
    let marker = plimsoll_target::connect(&target, &plan.place, Purpose::Look, look)
        .map_err(EngineError::refused)??;
    let work_dir = work_dir(&plan.place.dir, &marker.guard)?;
    plan.place.dir = work_dir;
    plan.place.guards = vec![marker.guard];
    let ending = Ending {
        plan: &plan,
        settings,
        others,
        end,
        stop,
    };
    plimsoll_target::connect(&target, &plan.place, Purpose::Look, ending)
        .map_err(EngineError::refused)?
}

/// The work directory of the run that guarded `dir` as `guard` below it.
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

struct Look<'a> {
    plan: &'a Plan,
    others: Others,
}

impl Visitor for Look<'_> {
    type Output = Result<Marker, EngineError>;

    fn visit<T: Target>(self, target: T) -> Self::Output {
        let nothing = |why: &str| {
            let dir = self.plan.place.dir.display();
            Err(EngineError::Refused(format!("`{dir}` {why}")))
        };
        if !target.exists() {
            return nothing("does not exist: there is nothing to clean");
        }
        let crew = crew_for(Arc::new(target), self.plan)?;
        match marker::look(&crew, self.plan, &RelPath::default(), self.others) {
            Ok(Found::Ours(marker)) => Ok(marker),
            Ok(Found::Nothing | Found::Empty) => {
                nothing("carries no marker of Plimsoll: there is nothing to clean")
            }
            Err(GuardError::Foreign(_)) => nothing(
                "was not made by Plimsoll (there is no .plimsoll in it): name the directory that \
                 the first line of the run named",
            ),
            Err(e) => Err(EngineError::refused(e)),
        }
    }
}

struct Ending<'a> {
    plan: &'a Plan,
    settings: &'a Settings,
    others: Others,
    end: End,
    stop: &'a Stop,
}

impl Visitor for Ending<'_> {
    type Output = Result<Cleanup, EngineError>;

    fn visit<T: Target>(self, target: T) -> Self::Output {
        let mut crew = crew_for(Arc::new(target), self.plan)?;
        crew.silence = Some(LONGEST_SILENCE);
        crew.stop = self.stop.removal.clone();
        let mut place = Workplace::claim(&crew, self.plan, self.others)?;
        let left = match self.end {
            End::Clean => place.clean_listed(),
            End::Leave => place.release(true),
        };
        let settings = Some(self.settings).filter(|_| self.end == End::Clean);
        Ok(place.cleanup(left, settings))
    }
}
