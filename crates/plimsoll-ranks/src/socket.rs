//! Frames over Unix stream sockets, each preceded by its length.

use crate::frame::MAX_FRAME;
use crate::link::{Heard, Link, Pace};
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
    /// Why a neighbour's socket was closed, if this process can know. Called once for each.
    why: Box<dyn Fn(usize) -> String>,
    /// What is left to do when all is said: whether the end was in order.
    at_end: Box<dyn Fn(bool)>,
}

struct Peer {
    socket: UnixStream,
    /// `false` once it was closed at the other end.
    open: bool,
    /// Bytes to be sent, and how many of them were.
    out: VecDeque<u8>,
    /// Bytes that have come: length, frame, length, frame.
    come: Vec<u8>,
    /// How many of them were handed out.
    used: usize,
}

/// Bytes of the length before a frame.
const LENGTH: usize = 4;
/// Room for what is read at a time, bytes.
const READ: usize = 64 << 10;
/// How often a wait looks without a reason. Everything that matters wakes it.
const LOOK_AGAIN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl SocketLink {
    /// Joins this process to its neighbours.
    ///
    /// `why` says why the socket of a neighbour was closed; `at_end` is called when the link is
    /// closed.
    ///
    /// # Errors
    /// The system's, when a socket cannot be made non-blocking.
    pub fn new(
        sockets: Vec<UnixStream>,
        why: Box<dyn Fn(usize) -> String>,
        at_end: Box<dyn Fn(bool)>,
    ) -> io::Result<Self> {
        let peers = sockets.into_iter().map(Peer::new);
        Ok(Self {
            peers: RefCell::new(peers.collect::<io::Result<_>>()?),
            why,
            at_end,
        })
    }
}

impl Link for SocketLink {
    const TELLS_ENDS: bool = true;
    const CLOSES_TOGETHER: bool = false;

    fn post(&self, to: usize, frame: Vec<u8>) {
        let peer = &mut self.peers.borrow_mut()[to];
        peer.push(&frame);
        peer.flush();
    }

    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut()) {
        self.post(to, frame);
        while !self.peers.borrow()[to].out.is_empty() {
            meanwhile();
            self.wait(Instant::now(), Pace::Brisk);
            self.peers.borrow_mut()[to].flush();
        }
    }

    fn receive(&self) -> Option<(usize, Heard)> {
        let mut closed = None;
        for (from, peer) in self.peers.borrow_mut().iter_mut().enumerate() {
            peer.flush();
            if let Some(frame) = peer.next_frame() {
                return Some((from, Heard::Frame(frame)));
            }
            if peer.open && !peer.fill() {
                closed = Some(from);
                break;
            }
            if let Some(frame) = peer.next_frame() {
                return Some((from, Heard::Frame(frame)));
            }
        }
        closed.map(|from| (from, Heard::Gone((self.why)(from))))
    }

    fn wait(&self, _since: Instant, _pace: Pace) {
        let peers = self.peers.borrow();
        let mut fds: Vec<_> = peers.iter().filter_map(Peer::interest).collect();
        // An interrupted wait is over: the caller looks what there is, and waits again.
        let _ = poll(&mut fds, Some(&LOOK_AGAIN));
    }

    fn flushed(&self) -> bool {
        self.peers.borrow().iter().all(|p| p.out.is_empty())
    }

    fn close(&self, in_order: bool) {
        (self.at_end)(in_order);
    }
}

impl Peer {
    fn new(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            open: true,
            out: VecDeque::new(),
            come: Vec::new(),
            used: 0,
        })
    }

    fn push(&mut self, frame: &[u8]) {
        if self.open {
            self.out.extend((frame.len() as u32).to_le_bytes());
            self.out.extend(frame);
        }
    }

    /// Sends what the socket takes. That the other end is closed is left for `fill` to find, after
    /// what was sent before.
    fn flush(&mut self) {
        while !self.out.is_empty() {
            match send(&self.socket, self.out.as_slices().0, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.out.drain(..sent)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.out.clear(),
            }
        }
    }

    /// Takes what has come, at most about a frame; `false` when the other end is closed.
    fn fill(&mut self) -> bool {
        while self.come.len() - self.used <= MAX_FRAME + LENGTH {
            self.come.reserve(READ);
            match recv(
                &self.socket,
                spare_capacity(&mut self.come),
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

    /// Notes that the other end is closed. Whole frames that came before count first.
    fn closed(&mut self) -> bool {
        if self.frame_len().is_some() {
            return true;
        }
        self.open = false;
        self.out.clear();
        false
    }

    /// The length of the next frame, if all of it has come.
    fn frame_len(&self) -> Option<usize> {
        let come = &self.come[self.used..];
        let len = u32::from_le_bytes(come.get(..LENGTH)?.try_into().ok()?) as usize;
        // A frame that is too long is handed out cut off, and found to be none.
        let len = len.min(MAX_FRAME + 1);
        (come.len() - LENGTH >= len).then_some(len)
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        let len = self.frame_len()?;
        let start = self.used + LENGTH;
        let frame = self.come[start..start + len].to_vec();
        self.used = start + len;
        if self.used == self.come.len() {
            self.come.clear();
            self.used = 0;
        } else if self.used > MAX_FRAME {
            self.come.drain(..self.used);
            self.used = 0;
        }
        Some(frame)
    }

    fn interest(&self) -> Option<PollFd<'_>> {
        let mut flags = PollFlags::IN;
        if !self.out.is_empty() {
            flags |= PollFlags::OUT;
        }
        self.open.then(|| PollFd::new(&self.socket, flags))
    }
}
