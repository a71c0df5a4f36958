//! Recovery of the results of killed runs.

use plimsoll_results::AbandonedRun;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Identity and change time of a directory: device, inode, and nanoseconds since 1970.
type Stamp = (u64, u64, i128);

/// Recovers the results of killed runs. A hidden directory that cannot be recovered, such as another user's, is tried
/// again only after a change.
#[derive(Default)]
pub(crate) struct Finisher {
    failed: Mutex<HashSet<Stamp>>,
}

impl Finisher {
    /// Recovers killed runs directly below these directories; returns the number of attempts.
    pub(crate) fn finish(&self, dirs: &[PathBuf]) -> usize {
        let mut tried = 0;
        for abandoned in AbandonedRun::find(dirs) {
            let path = abandoned.path().to_owned();
            if stamp(&path).is_some_and(|stamp| self.failed().contains(&stamp)) {
                continue;
            }
            tried += 1;
            if abandoned.finish().is_err() {
                // The stamp after the attempt, which may have changed the directory.
                self.failed().extend(stamp(&path));
            }
        }
        tried
    }

    fn failed(&self) -> MutexGuard<'_, HashSet<Stamp>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(dir: &Path) -> Option<Stamp> {
    let meta = std::fs::symlink_metadata(dir).ok()?;
    let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
    Some((meta.dev(), meta.ino(), changed))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use plimsoll_plan::Plan;
    use plimsoll_results::{ClockKind, MeasuredRun, Outcome, Run, RunWriter, Target};
    use std::time::SystemTime;

    /// Creates the remains of a killed run, as a copy of a live run's directory: the writer's lock does not cover the
    /// copy.
    pub(crate) fn left(root: &Path, id: &str) -> PathBuf {
        let elsewhere = tempfile::tempdir().unwrap();
        let (plan, started) = (Plan::empty("w"), SystemTime::UNIX_EPOCH);
        let writer = RunWriter::create(elsewhere.path(), &plan, started, ClockKind::Real);
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
        // The user removes the cause of the failure.
        std::fs::remove_file(&draft).unwrap();
        std::fs::write(&draft, text).unwrap();
        assert_eq!(finisher.finish(&dirs), 1);
        assert!(!damaged.exists());
    }
}
