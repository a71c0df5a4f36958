//! Callbacks of a 4.0 server, for which the server connects to the client (RFC 7530, 9.1.1).

use super::delegations::CallbackReceiver;
use super::{Client, Inner};
use crate::rpc::{CallbackHandler, RecordReader};
use plimsoll_lane::Lane;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};

/// The maximum number of bytes of a callback.
const MAX_CALLBACK_BYTES: usize = 64 << 10;

/// The maximum number of bytes read at a time.
const READ_CHUNK_BYTES: usize = 4 << 10;

/// A listening socket for callbacks.
pub(super) struct Listener {
    socket: Rc<TcpListener>,
    network: &'static str,
    address: String,
}

/// The network and the universal address of a socket, for SETCLIENTID (RFC 5665, 5.2.3.3 and
/// 5.2.3.4).
fn universal(address: SocketAddr) -> (&'static str, String) {
    let (high, low) = (address.port() >> 8, address.port() & 0xff);
    let network = if address.is_ipv4() { "tcp" } else { "tcp6" };
    (network, format!("{}.{high}.{low}", address.ip()))
}

impl Listener {
    /// Listens at the local address that reaches the server.
    pub(super) fn new(server: SocketAddr) -> io::Result<Self> {
        let any = match server {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        // Connecting a UDP socket sends no packet, and selects the local address of the route to the server.
        let probe = UdpSocket::bind(any)?;
        probe.connect(server)?;
        let socket = TcpListener::bind((probe.local_addr()?.ip(), 0))?;
        socket.set_nonblocking(true)?;
        let (network, address) = universal(socket.local_addr()?);
        Ok(Self {
            socket: Rc::new(socket),
            network,
            address,
        })
    }

    /// The network and the universal address, for SETCLIENTID.
    pub(super) fn address(&self) -> (&str, &str) {
        (self.network, &self.address)
    }
}

impl Client {
    /// Starts the task that accepts connections for callbacks.
    pub(super) fn listen(&self) {
        let Ok(Some(listener)) = &self.0.listener else {
            return;
        };
        let (socket, lane) = (listener.socket.clone(), self.0.lane.clone());
        let inner = Rc::downgrade(&self.0);
        self.0.lane.spawn_background(Box::pin(async move {
            loop {
                match socket.accept() {
                    Ok((stream, _)) => {
                        let serving = serve(lane.clone(), stream, inner.clone());
                        lane.spawn_background(Box::pin(async move {
                            // After an error, the server connects again for its next callback.
                            let _ = serving.await;
                        }));
                    }
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {
                        if lane.readable(socket.as_fd()).await.is_err() {
                            return;
                        }
                    }
                    // Too many open files, or the connection was closed: the next attempt may
                    // succeed.
                    Err(_) => {
                        lane.uncancellable_sleep_until(lane.now() + 100_000_000)
                            .await
                    }
                }
                if inner.strong_count() == 0 {
                    return;
                }
            }
        }));
    }
}

/// Replies to the server's callbacks until the server or an error closes the connection.
async fn serve(lane: Lane, mut stream: TcpStream, inner: Weak<Inner>) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let receiver = CallbackReceiver(inner);
    let mut records = RecordReader::new(MAX_CALLBACK_BYTES);
    let mut bytes = vec![0; READ_CHUNK_BYTES];
    loop {
        let read = match stream.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                lane.readable(stream.as_fd()).await?;
                continue;
            }
            Err(e) => return Err(e),
        };
        let mut out = Vec::new();
        let split = records.push(&bytes[..read], |record| {
            out.extend(receiver.answer(&record).into_iter().flatten());
        });
        split.map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        let mut left = &out[..];
        while !left.is_empty() {
            match stream.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => left = &left[n..],
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    lane.writable(stream.as_fd()).await?;
                }
                Err(e) => return Err(e),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_in_the_form_of_the_rfc() {
        let v4 = universal("10.1.2.3:2050".parse().unwrap());
        assert_eq!(v4, ("tcp", "10.1.2.3.8.2".into()));
        let v6 = universal("[fe80::1]:1023".parse().unwrap());
        assert_eq!(v6, ("tcp6", "fe80::1.3.255".into()));
    }

    #[test]
    fn it_listens_where_the_server_is_reached() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = Listener::new(server.local_addr().unwrap()).unwrap();
        let port = listener.socket.local_addr().unwrap().port();
        let (high, low) = (port / 256, port % 256);
        let want = format!("127.0.0.1.{high}.{low}");
        assert_eq!(listener.address(), ("tcp", &*want));
    }
}
