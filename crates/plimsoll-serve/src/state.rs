//! State that all requests of a server share: results root, guard and index.

use crate::abandoned::Finisher;
use crate::guard::Guard;
use crate::index::Index;
use crate::problem::Problem;
use plimsoll_results::{Entry, Kind, LiveDir, directories};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State that all requests of a server share: results root, guard and index.
pub(crate) struct App {
    /// Canonical path of the results root, which is a prefix of the canonical path of all results.
    pub(crate) root: PathBuf,
    pub(crate) guard: Arc<Guard>,
    index: Mutex<Index>,
    finisher: Finisher,
}

pub(crate) type Shared = Arc<App>;

impl App {
    pub(crate) fn new(root: PathBuf, index: Index, guard: Guard) -> Self {
        Self {
            root,
            guard: Arc::new(guard),
            index: Mutex::new(index),
            finisher: Finisher::default(),
        }
    }

    /// Recovers killed runs, refreshes the index from the directories, and returns the locked index.
    pub(crate) fn index(&self) -> Result<MutexGuard<'_, Index>, Problem> {
        // Killed runs are recovered before the index is locked, because reading hours of intervals takes a while.
        self.finisher.finish(std::slice::from_ref(&self.root));
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.refresh()?;
        Ok(index)
    }

    /// Finds the results with a name in the refreshed index.
    pub(crate) fn results(&self, name: &str) -> Result<Results, Problem> {
        let missing = || {
            let name = name.escape_debug();
            Problem::missing(format!("There are no results with the name `{name}`."))
        };
        let entry = self.index()?.entry(name).cloned();
        let entry = entry.ok_or_else(missing)?;
        let path = below(&self.root, name).ok_or_else(missing)?;
        Ok(Results { path, entry })
    }

    /// Finds the runs in progress below the results root and below the directories of series.
    pub(crate) fn live(&self) -> Result<Vec<LiveDir>, Problem> {
        let mut dirs = vec![self.root.clone()];
        for (path, kind) in self.index()?.growing() {
            // A profile has runs below directories of file systems and, for repeated runs, of configurations.
            let depth = match kind {
                Kind::Profile => 2,
                _ => 0,
            };
            let mut level = vec![path.clone()];
            for _ in 0..depth {
                let next = level
                    .iter()
                    .flat_map(|d| directories(d).unwrap_or_default());
                level = next.collect();
                dirs.extend(level.iter().cloned());
            }
            dirs.push(path);
        }
        self.finisher.finish(&dirs);
        Ok(LiveDir::find(&dirs))
    }
}

/// Results found in the index, with the path of their directory and their entry.
pub(crate) struct Results {
    pub(crate) path: PathBuf,
    pub(crate) entry: Entry,
}

/// Resolves names, separated by slashes, to a directory below `dir`. `None` if a name is not a plain name, or if a
/// directory is missing or is a symbolic link.
pub(crate) fn below(dir: &Path, names: &str) -> Option<PathBuf> {
    let mut path = dir.to_owned();
    for name in names.split('/') {
        let mut parts = Path::new(name).components();
        let first = parts.next();
        let only = matches!(first, Some(Component::Normal(n)) if n == name);
        path.push(name);
        if !only || !std::fs::symlink_metadata(&path).is_ok_and(|m| m.is_dir()) {
            return None;
        }
    }
    Some(path)
}

/// Runs blocking work on a separate thread, so that other requests are not delayed.
pub(crate) async fn run_blocking<T, F>(work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Problem> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::internal("The request failed; see the terminal."))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn what_killed_runs_left_is_finished_while_the_index_is_in_use() {
        let root = tempfile::tempdir().unwrap();
        let left = crate::abandoned::tests::left(root.path(), "aaaaaa");
        let index = Index::new(root.path());
        let guard = Guard::new(None, vec![], 1).unwrap();
        let app = App::new(root.path().to_owned(), index, guard);
        std::thread::scope(|scope| {
            let in_use = app.index.lock().unwrap();
            let other = scope.spawn(|| app.index().map(|_| ()).is_ok());
            let begun = Instant::now();
            while left.exists() && begun.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let is_finished = !left.exists();
            drop(in_use);
            assert!(is_finished && other.join().unwrap());
        });
    }

    #[test]
    fn no_name_leads_out_of_the_root() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("root");
        for dir in ["root", "root/a", "root/a/b", "beside"] {
            std::fs::create_dir(root.path().join(dir)).unwrap();
        }
        std::os::unix::fs::symlink(root.path().join("beside"), inside.join("link")).unwrap();
        std::fs::write(inside.join("file"), "").unwrap();
        assert_eq!(below(&inside, "a"), Some(inside.join("a")));
        assert_eq!(below(&inside, "a/b"), Some(inside.join("a/b")));
        for bad in [
            "",
            ".",
            "..",
            "../beside",
            "a//b",
            "a/../../beside",
            "link/x",
            "a/",
            "/etc",
            "link",
            "file",
            "./a",
            "a/../a",
            "a\0",
        ] {
            assert_eq!(below(&inside, bad), None, "{bad:?}");
        }
    }
}
