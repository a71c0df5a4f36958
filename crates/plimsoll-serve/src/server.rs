//! The server: its settings, its socket, and its end.

use crate::app::App;
use crate::guard::Guard;
use crate::index::{Index, IndexError};
use futures_util::future::{Either, select};
use std::future::IntoFuture;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Least characters of a token.
pub const MIN_TOKEN_CHARS: usize = 16;

/// Longest that the end waits for what a request is doing to files.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// What is served, where, and to whom.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Directory whose results are shown.
    pub root: PathBuf,
    /// File of the index; without one it is in memory.
    pub index: Option<PathBuf>,
    /// What has to be known to be served.
    pub token: Option<String>,
    /// Names that this machine is reached by, besides addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Whether all results are read again, whatever the index says.
    pub rebuild: bool,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody in the network could delete results.
    #[error(
        "{0} can be reached from other machines: --token (or PLIMSOLL_TOKEN) has to say what they \
         must know"
    )]
    NeedsToken(SocketAddr),
    /// The token could be guessed, or not be sent.
    #[error(
        "a token has at least {MIN_TOKEN_CHARS} characters, which are printable ASCII without \
         spaces"
    )]
    Token,
    /// There is nothing to show.
    #[error("cannot list {}: {source}; --root says where the results are", path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Somebody else's directory is no place for an index.
    #[error("{} lies below the results: an index is kept elsewhere", .0.display())]
    IndexAmongResults(PathBuf),
    /// The index cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The index cannot be filled.
    #[error("{0}")]
    Refresh(String),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The system gives no random numbers, or no thread.
    #[error("cannot start: {0}")]
    Start(String),
}

/// A server that listens and is not yet served by.
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

impl Server {
    /// Opens the index, reads what is new below the root, and listens.
    ///
    /// # Errors
    /// [`ServeError`] with the reason.
    pub fn bind(listen: SocketAddr, settings: Settings) -> Result<Self, ServeError> {
        if !listen.ip().is_loopback() && settings.token.is_none() {
            return Err(ServeError::NeedsToken(listen));
        }
        let printable = |t: &String| t.bytes().all(|b| b.is_ascii_graphic());
        let strong = |t: &String| t.len() >= MIN_TOKEN_CHARS && printable(t);
        if settings.token.as_ref().is_some_and(|t| !strong(t)) {
            return Err(ServeError::Token);
        }
        let root = settings.root.canonicalize();
        let root = root.map_err(|source| ServeError::Root {
            path: settings.root.clone(),
            source,
        })?;
        let mut index = index(&root, settings.index.as_deref())?;
        if settings.rebuild {
            let forgotten = index.forget();
            forgotten.map_err(|e| ServeError::Refresh(e.to_string()))?;
        }
        index.refresh().map_err(ServeError::Refresh)?;
        let listener = TcpListener::bind(listen);
        let listener = listener.and_then(|l| l.set_nonblocking(true).map(|()| l));
        let listener = listener.map_err(|source| ServeError::Listen {
            address: listen,
            source,
        })?;
        let port = listener.local_addr().map_or(listen.port(), |a| a.port());
        let guard = Guard::new(settings.token, settings.hosts, port)
            .map_err(|e| ServeError::Start(e.to_string()))?;
        Ok(Self {
            listener,
            app: Arc::new(App::new(root, index, guard)),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `wait`, which is called in a thread of its own, returns.
    ///
    /// # Errors
    /// [`ServeError::Start`] if the system gives no reactor.
    pub fn run(self, wait: impl FnOnce() + Send + 'static) -> Result<(), ServeError> {
        let start = |e: std::io::Error| ServeError::Start(e.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(start)?;
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            wait();
            // Nobody waits any more when the server has failed.
            let _ = stop.send(());
        });
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let serve = axum::serve(listener, self.app.router());
            // Whoever watches a run would never let a server end by itself.
            let serve = std::pin::pin!(serve.into_future());
            match select(stopped, serve).await {
                Either::Left(_) => Ok(()),
                Either::Right((served, _)) => served,
            }
        });
        runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        served.map_err(start)
    }
}

/// Opens the index; one in a file must not be among the results.
fn index(root: &Path, file: Option<&Path>) -> Result<Index, ServeError> {
    let Some(file) = file else {
        return Ok(Index::in_memory(root)?);
    };
    let parent = match file.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let below = parent.canonicalize().is_ok_and(|p| p.starts_with(root));
    if below {
        return Err(ServeError::IndexAmongResults(file.to_owned()));
    }
    Ok(Index::open(root, file)?)
}
