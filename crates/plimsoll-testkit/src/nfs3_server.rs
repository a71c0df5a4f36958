//! Server in memory of the crate `nfs3_server`.

use crate::TestServerError;
use crate::loopback::own_address;
use crate::table::NfsServer;
use nfs3_server::memfs::{MemFs, MemFsConfig};
use nfs3_server::tcp::{NFSTcp, NFSTcpListener};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The server in memory of the crate `nfs3_server`: NFSv3, with MOUNT and a port mapper at the same port. The server
/// runs on a thread of this process and needs no rights of root.
pub struct Nfs3Server {
    address: SocketAddr,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Nfs3Server {
    /// Starts a server with an empty export.
    pub fn start() -> Result<Self, TestServerError> {
        let mut this = Self {
            address: own_address(),
            running: None,
        };
        this.start_again()?;
        Ok(this)
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            // The receiver no longer exists if the server has ended.
            let _ = running.stop.send(());
            let _ = running.thread.join();
        }
    }
}

/// A kill closes the server's connections and removes its files.
impl NfsServer for Nfs3Server {
    fn nfs_address(&self) -> SocketAddr {
        self.address
    }

    fn kill(&mut self) -> Result<(), TestServerError> {
        self.end();
        Ok(())
    }

    fn start_again(&mut self) -> Result<(), TestServerError> {
        let (stop, stopped) = oneshot::channel();
        let (started, starting) = mpsc::channel();
        let address = self.address;
        let thread = std::thread::Builder::new().name("nfs3_server".into());
        let serve = move || {
            if let Err(e) = serve(address, stopped, &started) {
                let _ = started.send(Err(e));
            }
        };
        let thread = thread.spawn(serve);
        let thread = thread.map_err(|e| TestServerError::failed("a thread", e))?;
        let address = starting.recv().unwrap_or_else(|e| Err(e.to_string()));
        self.address = address.map_err(|e| TestServerError::failed("starting nfs3_server", e))?;
        self.running = Some(Running { stop, thread });
        Ok(())
    }
}

impl Drop for Nfs3Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Serves NFSv3 from memory on this thread until `stopped` has a message or is dropped; sends the listening address, or
/// the error of the start, to `started`.
fn serve(
    address: SocketAddr,
    stopped: oneshot::Receiver<()>,
    started: &mpsc::Sender<Result<SocketAddr, String>>,
) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|e| e.to_string())?;
    // Connections are tasks of the runtime, and are closed with the runtime.
    runtime.block_on(async {
        let files = MemFs::new(MemFsConfig::default()).map_err(|e| format!("{e:?}"))?;
        let listener = NFSTcpListener::bind(&address.to_string(), files).await;
        let listener = listener.map_err(|e| e.to_string())?;
        let at = SocketAddr::new(listener.get_listen_ip(), listener.get_listen_port());
        let _ = started.send(Ok(at));
        tokio::select! {
            _ = listener.handle_forever() => {}
            _ = stopped => {}
        }
        Ok(())
    })
}
