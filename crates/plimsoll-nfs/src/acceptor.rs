//! A thread that accepts TCP connections, for the in-memory NFS server and for the relay.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Pause after a failed `accept`, so that a lack of descriptors does not keep the thread busy.
const RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A thread that accepts the TCP connections of a listening socket. Dropping the value ends the thread and frees the
/// port.
pub(crate) struct Acceptor {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Acceptor {
    /// Starts a thread named `name`, which passes each connection to `accepted` with its number, from 0.
    ///
    /// # Errors
    /// The operating system's error if the socket has no local address or the thread cannot be started.
    pub(crate) fn start(
        listener: TcpListener,
        name: &str,
        accepted: impl Fn(u64, TcpStream) + Send + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let thread = Builder::new().name(name.into()).spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming()) {
                if is_stopped.load(Relaxed) {
                    return;
                }
                match stream {
                    Ok(stream) => accepted(number, stream),
                    // The likely cause is a lack of descriptors; connections that end free descriptors.
                    Err(_) => std::thread::sleep(RETRY_PAUSE),
                }
            }
        })?;
        Ok(Self {
            address,
            stop,
            thread: Some(thread),
        })
    }

    /// The local address of the listening socket, with the port that the operating system selected for port 0.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the accepting thread and frees the port; returns when the thread has ended.
    pub(crate) fn stop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.stop.store(true, Relaxed);
        // The thread is blocked in `accept`, so a connection wakes the thread. A listener at the unspecified address is
        // reached at the loopback address.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own.is_ipv4() {
                true => Ipv4Addr::LOCALHOST.into(),
                false => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&own, Duration::from_secs(1));
        // A panic of the accepting thread needs no report here, because the panic hook has printed the message.
        let _ = thread.join();
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop();
    }
}
