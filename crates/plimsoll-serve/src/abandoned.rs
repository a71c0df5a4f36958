//! Recovery of the results of killed runs.

use crate::stamp::FileStamp;
use plimsoll_results::AbandonedRun;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Recovers the results of killed runs. A hidden directory that cannot be recovered, such as another user's, is tried
/// again only after a change of the directory.
#[derive(Default)]
pub(crate) struct Finisher {
    failed: Mutex<HashSet<FileStamp>>,
}

impl Finisher {
    /// Recovers the killed runs directly below `dirs`; returns the number of attempts, whether or not they succeeded.
    pub(crate) fn finish(&self, dirs: &[PathBuf]) -> usize {
        let mut tried = 0;
        for abandoned in AbandonedRun::find(dirs) {
            let path = abandoned.path().to_owned();
            if FileStamp::of(&path).is_some_and(|stamp| self.failed().contains(&stamp)) {
                continue;
            }
            tried += 1;
            if abandoned.finish().is_err() {
                // The stamp of a hidden directory is taken after the failed recovery, which may have changed the
                // directory.
                self.failed().extend(FileStamp::of(&path));
            }
        }
        tried
    }

    fn failed(&self) -> MutexGuard<'_, HashSet<FileStamp>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use plimsoll_plan::Plan;
    use plimsoll_results::{ClockKind, MeasuredRun, Outcome, Run, RunWriter, Target};
    use std::path::Path;
    use std::time::SystemTime;

    /// Creates the remains of a killed run, as a copy of a live run's directory: the writer's lock does not cover the
    /// copy.
    pub(crate) fn left(root: &Path, id: &str) -> PathBuf {
        let elsewhere = tempfile::tempdir().unwrap();
        let (plan, started) = (Plan::empty("w"), SystemTime::UNIX_EPOCH);
        let writer = RunWriter::create(elsewhere.path(), &plan, started, ClockKind::Real, None);
        let mut writer = writer.unwrap();
        let draft = Run::assemble(MeasuredRun {
            outcome: Outcome {
                interrupted: true,
                ..Outcome::default()
            },
            ..MeasuredRun::new(
                plan,
                Target {
                    url: "posix".into(),
                    description: String::new(),
                    system: None,
                },
                started,
            )
        });
        writer.draft(&draft).unwrap();
        let left = root.join(format!(".plimsoll-{id}"));
        std::fs::create_dir(&left).unwrap();
        for file in std::fs::read_dir(writer.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), left.join(file.file_name())).unwrap();
        }
        left
    }

    #[test]
    fn what_cannot_be_finished_is_tried_again_when_it_has_changed() {
        let root = tempfile::tempdir().unwrap();
        let dirs = [root.path().to_owned()];
        let finisher = Finisher::default();
        let (damaged, whole) = (left(root.path(), "aaaaaa"), left(root.path(), "bbbbbb"));
        let draft = damaged.join("draft.json");
        let text = std::fs::read(&draft).unwrap();
        std::fs::write(&draft, "{").unwrap();
        assert_eq!(finisher.finish(&dirs), 2);
        assert!(damaged.exists() && !whole.exists());
        assert_eq!(finisher.finish(&dirs), 0);
        left(root.path(), "cccccc");
        assert_eq!(finisher.finish(&dirs), 1);
        // The user repairs the damaged draft, so the run is tried again.
        std::fs::remove_file(&draft).unwrap();
        std::fs::write(&draft, text).unwrap();
        assert_eq!(finisher.finish(&dirs), 1);
        assert!(!damaged.exists());
    }
}
