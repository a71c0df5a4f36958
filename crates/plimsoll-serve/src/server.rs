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

/// Maximum wait at shutdown for a request that changes files.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of a server.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Results root that the server shows.
    pub root: PathBuf,
    /// Token that requests must have; `None` to serve without a token on a loopback address.
    pub token: Option<String>,
    /// Names of this machine besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

/// Reason why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not a loopback address, and there is no token.
    #[error("{0} can be reached from other machines: set a token with --token or PLIMSOLL_TOKEN")]
    NeedsToken(SocketAddr),
    /// The token is too short, or contains characters that cannot be sent.
    #[error(
        "a token has at least {MIN_TOKEN_CHARS} characters, which are printable ASCII without \
         spaces"
    )]
    Token,
    /// The results root cannot be listed.
    #[error("cannot list {}: {source}; set the directory of the results with --results", path.display())]
    Root {
        /// Path of the results root.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The results cannot be read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Address of the failed socket.
        address: SocketAddr,
        /// Error of the operating system.
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
    pub fn bind(listen: SocketAddr, settings: Settings) -> Result<Self, ServeError> {
        if !listen.ip().is_loopback() && settings.token.is_none() {
            return Err(ServeError::NeedsToken(listen));
        }
        check_token(settings.token.as_deref())?;
        let (root, index) = open_results(&settings)?;
        let listener = TcpListener::bind(listen);
        let listener = listener.and_then(|l| l.set_nonblocking(true).map(|()| l));
        let listener = listener.map_err(|source| ServeError::Listen {
            address: listen,
            source,
        })?;
        let port = listener.local_addr().map_or(listen.port(), |a| a.port());
        let app = app(settings, port, root, index)?;
        Ok(Self { listener, app })
    }

    /// Bound address, with the port that the system chose for port 0.
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
/// As [`Server::bind`], except for the errors of listening.
pub fn routes(settings: Settings, port: u16) -> Result<axum::Router, ServeError> {
    check_token(settings.token.as_deref())?;
    let (root, index) = open_results(&settings)?;
    Ok(router(&app(settings, port, root, index)?))
}

fn check_token(token: Option<&str>) -> Result<(), ServeError> {
    let printable = |t: &str| t.bytes().all(|b| b.is_ascii_graphic());
    let strong = |t: &str| t.len() >= MIN_TOKEN_CHARS && printable(t);
    match token {
        Some(token) if !strong(token) => Err(ServeError::Token),
        _ => Ok(()),
    }
}

/// The canonical root, and its up-to-date index.
fn open_results(settings: &Settings) -> Result<(PathBuf, Index), ServeError> {
    let root = settings.root.canonicalize();
    let root = root.map_err(|source| ServeError::Root {
        path: settings.root.clone(),
        source,
    })?;
    let mut index = Index::new(&root);
    index.refresh()?;
    Ok((root, index))
}

fn app(settings: Settings, port: u16, root: PathBuf, index: Index) -> Result<Shared, ServeError> {
    let guard = Guard::new(settings.token, settings.hosts, port)
        .map_err(|e| ServeError::Start(e.to_string()))?;
    Ok(Arc::new(App::new(root, index, guard)))
}
