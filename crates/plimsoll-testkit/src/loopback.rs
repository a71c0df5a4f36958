//! Loopback addresses of servers that need no namespace.

use crate::with_options;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

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

    /// Address 127.0.0.1 with the reserved port, at which connections are refused.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Loopback address that only this process uses, with a port that only one server of this process uses: a killed server
/// can start at the same port again.
pub(crate) fn own_address() -> SocketAddr {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(10_000);
    // Process ids have 22 bits.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 64 | high, middle, low);
    SocketAddr::from((address, NEXT_PORT.fetch_add(1, Relaxed)))
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
    fn each_server_has_an_address_of_its_own() {
        let (first, second) = (own_address(), own_address());
        assert!(first.ip().is_loopback() && first.ip() != Ipv4Addr::LOCALHOST);
        let servers = [first, second].map(|address| TcpListener::bind(address).unwrap());
        let ports = servers.map(|server| server.local_addr().unwrap());
        assert_eq!(ports, [first, second]);
    }
}
