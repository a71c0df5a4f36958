//! Addresses of servers that need no namespace.

use std::net::{Ipv4Addr, SocketAddr};

/// An address of this machine alone that no other process has, so that a port that was taken there
/// stays this process's while nothing listens at it. The port is for the system to choose.
pub(crate) fn own_address() -> SocketAddr {
    // Numbers of processes have 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(127, 64 | high, middle, low), 0))
}

/// URL of a server with MOUNT at the port of NFS, which exports `/`.
pub(crate) fn nfs3_url(at: SocketAddr, more: &str) -> String {
    let (port, mark) = (at.port(), if more.is_empty() { "" } else { "&" });
    format!("nfs3://{at}/?mountport={port}{mark}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn it_can_be_listened_at() {
        let address = own_address();
        assert!(address.ip().is_loopback() && address.ip() != Ipv4Addr::LOCALHOST);
        assert_ne!(
            TcpListener::bind(address).unwrap().local_addr().unwrap(),
            address
        );
    }
}
