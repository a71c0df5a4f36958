//! Addresses of servers that need no namespace.

use crate::with_options;
use std::net::{Ipv4Addr, SocketAddr};

/// A loopback address that no other process uses, so that a port of it stays this process's while
/// nothing listens there. The system chooses the port.
pub(crate) fn own_address() -> SocketAddr {
    // Process ids have 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(127, 64 | high, middle, low), 0))
}

/// URL of a server with MOUNT at the port of NFS, which exports `/`.
pub(crate) fn nfs3_url(at: SocketAddr, options: &str) -> String {
    with_options(&format!("nfs3://{at}/?mountport={}", at.port()), options)
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
