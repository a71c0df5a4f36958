//! The end of a run: its outcome, and the removal of its files.

use super::setup_pool::SetupPool;
use super::stalls;
use super::team::RankTeam;
use super::verdict::verdict;
use super::work_dir::ClaimedWorkDir;
use super::{EngineError, Event, Observer, Settings, Stop};
use plimsoll_measure::{Cleanup, Outcome};
use plimsoll_plan::{Failure, Plan};

/// The outcome of a run before the run's files are removed. Measurements are kept, whatever failed later, and the first
/// failure is reported. If a run failed or was interrupted before a measurement, only rank 0 has an outcome; a run that
/// was refused has no outcome.
pub(super) fn outcome_or_refusal(
    ran: Result<(), EngineError>,
    plan: &Plan,
    mut outcome: Outcome,
    team: &RankTeam<'_>,
) -> Result<Outcome, EngineError> {
    let measured = !outcome.windows.is_empty() || outcome.failure.is_some();
    let ran = match ran {
        // A refusal after the measurement does not affect the measurements.
        Err(EngineError::Refused(error)) if measured => Err(EngineError::Failed(error)),
        ran => ran,
    };
    match ran {
        Ok(()) => {}
        Err(EngineError::Failed(error)) if measured || team.is_root() => match &outcome.failure {
            Some(_) => outcome.notes.push(error),
            None => outcome.failure = Some(Failure::of("run", error)),
        },
        Err(EngineError::Interrupted) if measured || team.is_root() => outcome.interrupted = true,
        Err(e) => return Err(e),
    }
    if measured || ran_to_its_end(&outcome) {
        outcome.reasons.extend(verdict(plan, &outcome));
        let notes = stalls::notes(plan, &outcome);
        outcome.notes.extend(notes);
    }
    Ok(outcome)
}

/// Whether the run has no failure and was not interrupted.
fn ran_to_its_end(outcome: &Outcome) -> bool {
    outcome.failure.is_none() && !outcome.interrupted
}

/// Adds notes on replies that violate the protocol, in place of the earlier notes `said`. Returns the added notes.
pub(super) fn note_long_replies(outcome: &mut Outcome, said: &[String]) -> Vec<String> {
    let texts = outcome.long_replies.iter().map(ToString::to_string);
    let texts: Vec<String> = texts.collect();
    outcome.notes.retain(|n| !said.contains(n));
    outcome.notes.extend(texts.iter().cloned());
    texts
}

/// Whether the files of a run are to stay, by an option of the user or because the pattern leaves its objects.
pub(super) fn keeps_files(plan: &Plan) -> bool {
    plan.options.keep || plan.pattern().is_some_and(|p| p.leaves_objects)
}

/// The last step of a run, after all measurements.
pub(super) struct CleanupStep<'a, 'b> {
    pub(super) cleaner: &'a SetupPool,
    pub(super) plan: &'b Plan,
    pub(super) settings: &'b Settings,
    pub(super) stop: &'b Stop,
    /// Whether no other rank works any more.
    pub(super) is_quiet: bool,
    /// Whether workers of the run hang in system calls, and so may still change files.
    pub(super) is_stuck: bool,
    /// Whether the run keeps its files.
    pub(super) keeps: bool,
}

impl<'a> CleanupStep<'a, '_> {
    /// Removes the files of the run, unless `keep_reason` gives a reason to keep the files; returns the remaining
    /// files, and notes for the results. Both results are empty if another process claimed the work directory, if the
    /// target keeps no files, or if a run that keeps its files also keeps the claim (`Settings::holds`).
    pub(super) fn finish(
        self,
        mut place: ClaimedWorkDir<'a>,
        observer: &mut dyn Observer,
    ) -> (Cleanup, Vec<String>) {
        if !place.is_ours() || !self.cleaner.target.keeps_files() {
            return Default::default();
        }
        place.work_with(self.cleaner);
        if let Some(why) = self.keep_reason() {
            let mut unremoved = vec![why.to_owned()];
            if !self.is_stuck || !self.is_quiet {
                unremoved.extend(place.cleanup_hint(self.settings));
            }
            let notes = unremoved.clone();
            let foreign = vec![];
            return (Cleanup { foreign, unremoved }, notes);
        }
        if !self.keeps {
            observer.event(Event::Cleaning);
        }
        if self.keeps && self.settings.holds {
            return Default::default();
        }
        let left = place.release(self.keeps);
        let cleanup = place.cleanup(left, Some(self.settings).filter(|_| !self.keeps));
        let mut notes = Vec::new();
        for path in &cleanup.foreign {
            let path = self.plan.work_dir.dir.join(path);
            notes.push(format!(
                "`{}` was not removed: it, or something in it, was not created by Plimsoll",
                path.display()
            ));
        }
        notes.extend(cleanup.unremoved.iter().cloned());
        (cleanup, notes)
    }

    /// The reason why files stay that should be removed.
    fn keep_reason(&self) -> Option<&'static str> {
        match (self.is_quiet, self.is_stuck) {
            (false, _) => {
                Some("files were left in place because other ranks may still work on them")
            }
            (true, true) => Some(
                "files were left in place because workers hang in a system call; the next run \
                 in the same directory removes them",
            ),
            (true, false) if self.stop.skips_removal() && !self.keeps => {
                Some("the files were left in place, because an interrupt skipped their removal")
            }
            (true, false) => None,
        }
    }
}
