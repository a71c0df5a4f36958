//! HTTP server: settings, socket and shutdown.

use crate::app::router;
use crate::guard::Guard;
use crate::index::Index;
use crate::state::{App, Shared};
use futures_util::future::{Either, select};
use plimsoll_results::ResultsError;
use std::future::IntoFuture;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Minimum length of a token in characters.
pub const MIN_TOKEN_CHARS: usize = 16;

/// Maximum wait at shutdown for requests that block a thread, such as requests that change files.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of a results browser: what the server shows, and to whom.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Results root whose results the server shows.
    pub root: PathBuf,
    /// Token that requests must have; `None` to serve without a token on a loopback address.
    pub token: Option<String>,
    /// Names of this machine that requests may use as the host, besides IP addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// Reason why the results browser cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address to listen on is not a loopback address, and no token is set.
    #[error("{0} can be reached from other machines: set a token with --token or PLIMSOLL_TOKEN")]
    NeedsToken(SocketAddr),
    /// The token is too short, or contains characters that cannot be sent.
    #[error(
        "a token has at least {MIN_TOKEN_CHARS} characters, which are printable ASCII without \
         spaces"
    )]
    Token,
    /// The path of the results root cannot be resolved, for instance because the directory is missing.
    #[error("cannot list {}: {source}; set the directory of the results with --results", path.display())]
    Root {
        /// Path of the results root as given in the settings.
        path: PathBuf,
        /// Error with which the operating system refused to resolve the path.
        source: std::io::Error,
    },
    /// The entries of the results root cannot be listed, for instance because the results root is a file.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The socket cannot be bound to the address, for instance because the port is in use.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address that the socket could not be bound to.
        address: SocketAddr,
        /// Error with which the operating system refused to listen on the address.
        source: std::io::Error,
    },
    /// The system provides no random numbers or no reactor.
    #[error("cannot start: {0}")]
    Start(String),
}

/// A server that is bound to its address, but does not serve yet.
pub struct Server {
    listener: TcpListener,
    app: Shared,
}

impl Server {
    /// Reads the results below the root, and listens on the address.
    ///
    /// # Errors
    /// Every [`ServeError`]; nothing is listening then.
    pub fn bind(listen: SocketAddr, settings: Settings) -> Result<Self, ServeError> {
        if !listen.ip().is_loopback() && settings.token.is_none() {
            return Err(ServeError::NeedsToken(listen));
        }
        // No client connects before all settings are checked.
        let results = open_results(&settings)?;
        let listener = TcpListener::bind(listen);
        let listener = listener.and_then(|l| l.set_nonblocking(true).map(|()| l));
        let listener = listener.map_err(|source| ServeError::Listen {
            address: listen,
            source,
        })?;
        let port = listener.local_addr().map_or(listen.port(), |a| a.port());
        let app = app(settings, port, results)?;
        Ok(Self { listener, app })
    }

    /// Address that the server listens on, with the port that the system chose for port 0.
    ///
    /// # Errors
    /// The system's error if the address of the socket cannot be read.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `wait` returns, which is called in a separate thread.
    ///
    /// # Errors
    /// [`ServeError::Start`] if the system provides no reactor.
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
            // The receiver is gone if the server has failed.
            let _ = stop.send(());
        });
        let served = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            let serve = axum::serve(listener, router(&self.app));
            // A graceful shutdown would wait for browsers that follow a run.
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

/// Routes of a server without a socket. `port` is the port for which cookies are named.
///
/// # Errors
/// As [`Server::bind`], except [`ServeError::NeedsToken`] and [`ServeError::Listen`].
pub fn routes(settings: Settings, port: u16) -> Result<axum::Router, ServeError> {
    let results = open_results(&settings)?;
    Ok(router(&app(settings, port, results)?))
}

/// Checks the token; opens the results root, and returns the canonical root with an up-to-date index.
fn open_results(settings: &Settings) -> Result<(PathBuf, Index), ServeError> {
    let printable = |t: &str| t.bytes().all(|b| b.is_ascii_graphic());
    let strong = |t: &String| t.len() >= MIN_TOKEN_CHARS && printable(t);
    if !settings.token.as_ref().is_none_or(strong) {
        return Err(ServeError::Token);
    }
    let root = settings.root.canonicalize();
    let root = root.map_err(|source| ServeError::Root {
        path: settings.root.clone(),
        source,
    })?;
    let mut index = Index::new(&root);
    index.refresh()?;
    Ok((root, index))
}

fn app(
    settings: Settings,
    port: u16,
    (root, index): (PathBuf, Index),
) -> Result<Shared, ServeError> {
    let guard = Guard::new(settings.token, settings.hosts, port)
        .map_err(|e| ServeError::Start(e.to_string()))?;
    Ok(Arc::new(App::new(root, index, guard)))
}
