//! Loopback addresses of servers that need no namespace.

use crate::with_options;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

/// A reserved port without a listener: connections are refused, and the system gives the port to no other program while
/// this value exists.
pub struct ClosedPort {
    address: SocketAddr,
    _socket: OwnedFd,
}

impl ClosedPort {
    /// Reserves a port of 127.0.0.1.
    ///
    /// # Panics
    /// If the system has no socket or no port left.
    #[must_use]
    pub fn reserve() -> Self {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("a free port");
        let address = getsockname(&socket).expect("the address of a socket that is bound");
        Self {
            address: address.try_into().expect("an address of IPv4"),
            _socket: socket,
        }
    }

    /// Address of the reserved port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A loopback address with port 0 that no other process uses, so that a port on it stays reserved for this process
/// while no server listens there.
pub(crate) fn own_address() -> SocketAddr {
    // Process ids have 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    SocketAddr::from((Ipv4Addr::new(127, 64 | high, middle, low), 0))
}

/// URL of a server that has MOUNT at the port of NFS and exports `/`.
pub(crate) fn nfs3_url(at: SocketAddr, options: &str) -> String {
    with_options(&format!("nfs3://{at}/?mountport={}", at.port()), options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_closed_port_refuses_and_stays_reserved() {
        let closed = ClosedPort::reserve();
        let connected = TcpStream::connect(closed.address());
        assert_eq!(connected.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let listening = TcpListener::bind(closed.address());
        assert_eq!(listening.unwrap_err().kind(), ErrorKind::AddrInUse);
    }

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
