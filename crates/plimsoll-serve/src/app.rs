//! What all requests share, and which address leads where.

use crate::abandoned::Finisher;
use crate::guard::{self, Guard};
use crate::index::Index;
use crate::problem::Problem;
use crate::{api, assets, live, metrics, pages};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use plimsoll_results::{Entry, Kind, LiveDir, directories};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes that a form may have.
const MAX_FORM_BYTES: usize = 1 << 16;

/// What all requests share.
pub(crate) struct App {
    /// Without links, so that places below it can be told by their beginning.
    pub(crate) root: PathBuf,
    pub(crate) guard: Guard,
    index: Mutex<Index>,
    finisher: Finisher,
}

/// Shared by the requests.
pub(crate) type Shared = Arc<App>;

impl App {
    pub(crate) fn new(root: PathBuf, index: Index, guard: Guard) -> Self {
        Self {
            root,
            guard,
            index: Mutex::new(index),
            finisher: Finisher::default(),
        }
    }

    /// Every address there is.
    pub(crate) fn router(self: &Arc<Self>) -> Router {
        let results = "/results/{name}";
        Router::new()
            .route("/", get(pages::list::show))
            .route(results, get(pages::result::show))
            .route("/results/{name}/runs/{*run}", get(pages::result::show_run))
            .route(
                "/results/{name}/annotations",
                axum::routing::post(pages::result::annotate),
            )
            .route(
                "/results/{name}/delete",
                get(pages::delete::confirm_page).post(pages::delete::carry_out),
            )
            .route("/compare", get(pages::compare::show))
            .route("/live", get(pages::live::list))
            .route("/live/{id}", get(pages::live::show))
            .route("/live/{id}/events", get(live::events))
            .route(
                guard::LOGIN,
                get(pages::login::ask).post(pages::login::check),
            )
            .route("/metrics", get(metrics::show))
            .nest("/api/v1", api::router())
            .route(assets::STYLE_PATH, get(assets::style))
            .route(assets::CHARTS_PATH, get(assets::charts))
            .route(assets::BROWSER_PATH, get(assets::browser))
            .fallback(async || Problem::missing("There is no such page."))
            .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
            .layer(from_fn_with_state(self.clone(), guard::check))
            .with_state(self.clone())
    }

    /// The index, which says what the directories say now.
    pub(crate) fn index(&self) -> Result<MutexGuard<'_, Index>, Problem> {
        // Before the lock: what was written for hours takes its time to be read.
        self.finisher.finish(std::slice::from_ref(&self.root));
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.refresh().map_err(Problem::internal)?;
        Ok(index)
    }

    /// Results by their name.
    pub(crate) fn results(&self, name: &str) -> Result<Results, Problem> {
        let missing = || {
            let name = name.escape_debug();
            Problem::missing(format!("There are no results with the name `{name}`."))
        };
        let entry = self.index()?.entry(name)?.ok_or_else(missing)?;
        let path = below(&self.root, name).ok_or_else(missing)?;
        Ok(Results { path, entry })
    }

    /// Runs in progress.
    pub(crate) fn live(&self) -> Result<Vec<LiveDir>, Problem> {
        let mut dirs = vec![self.root.clone()];
        for (path, kind) in self.index()?.growing()? {
            if kind == Kind::Profile {
                // Its runs lie below directories of file systems, and may be repeated.
                let systems = directories(&path).unwrap_or_default();
                let cases = systems.iter().flat_map(|s| directories(s));
                dirs.extend(cases.flatten());
                dirs.extend(systems);
            }
            dirs.push(path);
        }
        self.finisher.finish(&dirs);
        Ok(LiveDir::find(&dirs))
    }
}

/// Results that the index has.
pub(crate) struct Results {
    pub(crate) path: PathBuf,
    pub(crate) entry: Entry,
}

/// A directory in another one by its name, or by names with slashes between them: if each is a
/// name, and nothing on the way is a link.
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

/// Does something that takes its time without keeping other requests waiting.
pub(crate) async fn run_blocking<T, F>(work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, Problem> + Send + 'static,
{
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::internal("The request could not be worked on; see the terminal."))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn what_killed_runs_left_is_finished_while_the_index_is_in_use() {
        let root = tempfile::tempdir().unwrap();
        let left = crate::abandoned::tests::left(root.path(), "aaaaaa");
        let index = Index::in_memory(root.path()).unwrap();
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
