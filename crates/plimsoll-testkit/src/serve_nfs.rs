//! Plimsoll's own server in memory, as in `plimsoll systems nfs`.

use crate::TestServerError;
use crate::loopback::own_address;
use crate::table::NfsServer;
use plimsoll_nfs::server::{Server, ServerOptions, Tree};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// Maximum total size of the files in bytes.
const MEMORY: u64 = 256 << 20;

/// Plimsoll's own server in memory: NFSv3, with MOUNT and a port mapper at the same port.
pub struct ServeNfs {
    address: SocketAddr,
    server: Option<Server>,
}

impl ServeNfs {
    /// Starts a server with an empty export.
    pub fn start() -> Result<Self, TestServerError> {
        let mut this = Self {
            address: own_address(),
            server: None,
        };
        this.start_again()?;
        Ok(this)
    }
}

/// A kill closes the server's connections and removes its files.
impl NfsServer for ServeNfs {
    fn nfs_address(&self) -> SocketAddr {
        self.address
    }

    fn kill(&mut self) -> Result<(), TestServerError> {
        self.server = None;
        Ok(())
    }

    fn start_again(&mut self) -> Result<(), TestServerError> {
        let tree = Arc::new(Mutex::new(Tree::new(MEMORY)));
        let server = Server::start(self.address, tree, ServerOptions::default());
        let server = server.map_err(|e| TestServerError::failed("starting serve-nfs", e))?;
        self.address = server.address();
        self.server = Some(server);
        Ok(())
    }
}
