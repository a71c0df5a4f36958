//! The server in memory of the crate `nfs3_server`.

use crate::BedError;
use crate::loopback::own_address;
use crate::table::NfsServer;
use nfs3_server::memfs::{MemFs, MemFsConfig};
use nfs3_server::tcp::{NFSTcp, NFSTcpListener};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// The server in memory of the crate `nfs3_server`: NFSv3, with MOUNT and a port mapper at the same
/// port. It runs on a thread of this process and needs no rights of root.
pub struct Nfs3Server {
    address: SocketAddr,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Nfs3Server {
    /// Starts one with an empty export.
    ///
    /// # Errors
    /// What it said of the failure.
    pub fn start() -> Result<Self, BedError> {
        let mut this = Self {
            address: own_address(),
            running: None,
        };
        this.start_again()?;
        Ok(this)
    }

    fn end(&mut self) {
        if let Some(running) = self.running.take() {
            // One that has ended does not listen.
            let _ = running.stop.send(());
            let _ = running.thread.join();
        }
    }
}

/// A kill takes its connections and its files.
impl NfsServer for Nfs3Server {
    fn nfs_address(&self) -> SocketAddr {
        self.address
    }

    fn kill(&mut self) -> Result<(), BedError> {
        self.end();
        Ok(())
    }

    fn start_again(&mut self) -> Result<(), BedError> {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let address = self.address;
        let thread = std::thread::Builder::new().name("nfs3_server".into());
        let thread = thread
            .spawn(move || serve(address, stopped, &tell))
            .map_err(|e| BedError::failed("a thread", e))?;
        let told = told.recv().unwrap_or_else(|e| Err(e.to_string()));
        self.address = told.map_err(|e| BedError::failed("starting nfs3_server", e))?;
        self.running = Some(Running { stop, thread });
        Ok(())
    }
}

impl Drop for Nfs3Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Serves until it is stopped; tells first where it listens, or why it does not.
fn serve(
    address: SocketAddr,
    stopped: oneshot::Receiver<()>,
    tell: &mpsc::Sender<Result<SocketAddr, String>>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => {
            let _ = tell.send(Err(e.to_string()));
            return;
        }
    };
    // The connections are tasks of the runtime, and are closed with it.
    runtime.block_on(async {
        let files = match MemFs::new(MemFsConfig::default()) {
            Ok(files) => files,
            Err(e) => {
                let _ = tell.send(Err(format!("{e:?}")));
                return;
            }
        };
        let listener = match NFSTcpListener::bind(&address.to_string(), files).await {
            Ok(listener) => listener,
            Err(e) => {
                let _ = tell.send(Err(e.to_string()));
                return;
            }
        };
        let at = SocketAddr::new(listener.get_listen_ip(), listener.get_listen_port());
        let _ = tell.send(Ok(at));
        tokio::select! {
            _ = listener.handle_forever() => {}
            _ = stopped => {}
        }
    });
}
