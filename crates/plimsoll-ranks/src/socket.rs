//! Frames over Unix stream sockets, each preceded by its length.

use crate::frame::{MAX_FRAME, MAX_SHORT_FRAME};
use crate::link::{Incoming, Link, MAX_POSTS, PollRate};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::Instant;

/// A socket to each neighbour.
pub struct SocketLink {
    peers: RefCell<Vec<Peer>>,
    /// Returns what became of a neighbour whose socket was closed. Called once for each.
    close_reason: Box<dyn Fn(usize) -> Incoming>,
    /// Called when the link is closed, with whether that is in order.
    on_end: Box<dyn Fn(bool)>,
}

struct Peer {
    socket: UnixStream,
    /// `false` once it was closed at the other end.
    open: bool,
    /// Bytes to send, at most [`MAX_QUEUED_BYTES`].
    send_buffer: VecDeque<u8>,
    /// Received bytes: length, frame, length, frame.
    receive_buffer: Vec<u8>,
    /// The number of these that were passed on.
    consumed: usize,
}

/// Bytes of the length before a frame.
pub const LENGTH_PREFIX_BYTES: usize = 4;
/// Maximum number of bytes queued for a neighbour: the part that is being sent, and what was posted.
const MAX_QUEUED_BYTES: usize =
    LENGTH_PREFIX_BYTES + MAX_FRAME + MAX_POSTS * (LENGTH_PREFIX_BYTES + MAX_SHORT_FRAME);
/// Minimum size of a read in bytes.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Maximum time of a wait. Everything that matters wakes it earlier.
const MAX_POLL_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl SocketLink {
    /// Joins this process to its neighbours. `close_reason` returns what became of a neighbour whose
    /// socket was closed: [`Incoming::Gone`] or [`Incoming::Lost`]; `on_end` is called when the link is closed, with whether that is in order.
    ///
    /// # Errors
    /// A socket cannot be made non-blocking.
    pub fn new(
        sockets: Vec<UnixStream>,
        close_reason: Box<dyn Fn(usize) -> Incoming>,
        on_end: Box<dyn Fn(bool)>,
    ) -> io::Result<Self> {
        let peers = sockets.into_iter().map(Peer::new);
        Ok(Self {
            peers: RefCell::new(peers.collect::<io::Result<_>>()?),
            close_reason,
            on_end,
        })
    }
}

impl Link for SocketLink {
    const REPORTS_PEER_EXIT: bool = true;
    const CLOSE_IS_COLLECTIVE: bool = false;

    fn post(&self, to: usize, frame: Vec<u8>) {
        assert!(
            frame.len() <= MAX_SHORT_FRAME,
            "only short frames are posted"
        );
        self.peers.borrow_mut()[to].push(&frame);
    }

    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut()) {
        self.peers.borrow_mut()[to].push(&frame);
        while !self.peers.borrow()[to].send_buffer.is_empty() {
            meanwhile();
            self.wait(Instant::now(), PollRate::Fast);
            self.peers.borrow_mut()[to].flush();
        }
    }

    fn receive(&self) -> Option<(usize, Incoming)> {
        let mut closed = None;
        for (from, peer) in self.peers.borrow_mut().iter_mut().enumerate() {
            peer.flush();
            if let Some(frame) = peer.next_frame() {
                return Some((from, Incoming::Frame(frame)));
            }
            if peer.open && !peer.fill() {
                closed = Some(from);
                break;
            }
            if let Some(frame) = peer.next_frame() {
                return Some((from, Incoming::Frame(frame)));
            }
        }
        closed.map(|from| (from, (self.close_reason)(from)))
    }

    fn wait(&self, _since: Instant, _pace: PollRate) {
        let peers = self.peers.borrow();
        let mut fds: Vec<_> = peers.iter().filter_map(Peer::interest).collect();
        // After an interruption the caller checks and waits again.
        let _ = poll(&mut fds, Some(&MAX_POLL_WAIT));
    }

    fn flushed(&self) -> bool {
        self.peers.borrow().iter().all(|p| p.send_buffer.is_empty())
    }

    fn close(&self, in_order: bool) {
        (self.on_end)(in_order);
    }
}

impl Peer {
    fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            open: true,
            send_buffer: VecDeque::new(),
            receive_buffer: Vec::new(),
            consumed: 0,
        })
    }

    /// Queues a frame and sends what the socket takes.
    fn push(&mut self, frame: &[u8]) {
        assert!(
            frame.len() <= MAX_FRAME,
            "a frame of {} bytes is too long",
            frame.len()
        );
        if self.open {
            self.send_buffer.extend((frame.len() as u32).to_le_bytes());
            self.send_buffer.extend(frame);
            let queued = self.send_buffer.len();
            assert!(
                queued <= MAX_QUEUED_BYTES,
                "{queued} bytes are queued for a neighbour"
            );
        }
        self.flush();
    }

    /// Sends what the socket takes. A closed other end is left for `fill` to detect, after everything
    /// that was sent before.
    fn flush(&mut self) {
        while !self.send_buffer.is_empty() {
            match send(
                &self.socket,
                self.send_buffer.as_slices().0,
                SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => drop(self.send_buffer.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.send_buffer.clear(),
            }
        }
    }

    /// Reads about a frame at most; returns `false` when the other end is closed.
    fn fill(&mut self) -> bool {
        while self.receive_buffer.len() - self.consumed <= MAX_FRAME + LENGTH_PREFIX_BYTES {
            self.receive_buffer.reserve(READ_CHUNK_BYTES);
            match recv(
                &self.socket,
                spare_capacity(&mut self.receive_buffer),
                RecvFlags::empty(),
            ) {
                Ok((0, _)) => return self.closed(),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return self.closed(),
            }
        }
        true
    }

    /// Notes that the other end is closed, unless whole frames are still to be passed on.
    fn closed(&mut self) -> bool {
        if self.frame_len().is_some() {
            return true;
        }
        self.open = false;
        self.send_buffer.clear();
        false
    }

    /// The length of the next frame, if all of it has been received.
    fn frame_len(&self) -> Option<usize> {
        let (prefix, rest) = self.receive_buffer[self.consumed..].split_first_chunk()?;
        // A frame that is too long is cut off, and then rejected by `Frame::decode`.
        let len = (u32::from_le_bytes(*prefix) as usize).min(MAX_FRAME + 1);
        (rest.len() >= len).then_some(len)
    }

    /// Takes the next frame, if all of it has been received.
    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let len = self.frame_len()?;
        let start = self.consumed + LENGTH_PREFIX_BYTES;
        let frame = self.receive_buffer[start..start + len].to_vec();
        self.consumed = start + len;
        if self.consumed == self.receive_buffer.len() {
            self.receive_buffer.clear();
            self.consumed = 0;
        } else if self.consumed > MAX_FRAME {
            self.receive_buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        Some(frame)
    }

    fn interest(&self) -> Option<PollFd<'_>> {
        let mut flags = PollFlags::IN;
        if !self.send_buffer.is_empty() {
            flags |= PollFlags::OUT;
        }
        self.open.then(|| PollFd::new(&self.socket, flags))
    }
}
