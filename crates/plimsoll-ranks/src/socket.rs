//! Frames over Unix stream sockets, each preceded by the frame length.

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
    /// Returns the reason why a neighbour's socket was closed. Called once per neighbour.
    close_reason: Box<dyn Fn(usize) -> Incoming>,
    /// Called when the link is closed; the argument is true for an orderly end.
    on_end: Box<dyn Fn(bool)>,
}

struct Peer {
    socket: UnixStream,
    /// `false` once the other end has been closed.
    open: bool,
    /// Bytes to send, at most [`MAX_QUEUED_BYTES`].
    send_buffer: VecDeque<u8>,
    /// Received bytes: length, frame, length, frame.
    receive_buffer: Vec<u8>,
    /// Number of received bytes that have been passed on.
    consumed: usize,
}

/// Size of a frame's length prefix in bytes.
pub const LENGTH_PREFIX_BYTES: usize = 4;
/// Maximum number of bytes queued for a neighbour: the frame being sent, and posted frames.
const MAX_QUEUED_BYTES: usize =
    LENGTH_PREFIX_BYTES + MAX_FRAME + MAX_POSTS * (LENGTH_PREFIX_BYTES + MAX_SHORT_FRAME);
/// Minimum size of a read in bytes.
pub const READ_CHUNK_BYTES: usize = 64 << 10;
/// Maximum time of a wait. Relevant events end the wait earlier.
const MAX_POLL_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

impl SocketLink {
    /// Connects this process to its neighbours. `close_reason` returns the reason why a neighbour's socket was closed:
    /// [`Incoming::Gone`] or [`Incoming::Lost`]. `on_end` is called when the link is closed, with true for an orderly
    /// end.
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
        // After an interruption the caller checks its condition and waits again.
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

    /// Queues a frame and sends as much as the socket accepts.
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

    /// Sends as much as the socket accepts. A closed other end is detected by `fill`, after all data sent before has
    /// been read.
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

    /// Reads at most about a frame; returns `false` when the other end is closed.
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

    /// Records that the other end is closed, unless complete frames remain to be passed on.
    fn closed(&mut self) -> bool {
        if self.frame_len().is_some() {
            return true;
        }
        self.open = false;
        self.send_buffer.clear();
        false
    }

    /// Length of the next frame; `None` until the frame is complete.
    fn frame_len(&self) -> Option<usize> {
        let (prefix, rest) = self.receive_buffer[self.consumed..].split_first_chunk()?;
        // An overlong frame is truncated, and then rejected by `Frame::decode`.
        let len = (u32::from_le_bytes(*prefix) as usize).min(MAX_FRAME + 1);
        (rest.len() >= len).then_some(len)
    }

    /// Takes the next complete frame.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::rc::Rc;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    /// A link to a neighbour, and the neighbour's end of the socket.
    fn link() -> (SocketLink, UnixStream) {
        let (mine, theirs) = UnixStream::pair().unwrap();
        let gone = Box::new(|from| Incoming::Gone(format!("{from} is gone")));
        let link = SocketLink::new(vec![mine], gone, Box::new(|_| ())).unwrap();
        (link, theirs)
    }

    fn encoded(frame: &[u8]) -> Vec<u8> {
        [&(frame.len() as u32).to_le_bytes(), frame].concat()
    }

    /// The next message, in comparable form.
    fn next(link: &SocketLink) -> Option<Result<Vec<u8>, String>> {
        let (from, incoming) = link.receive()?;
        assert_eq!(from, 0);
        Some(match incoming {
            Incoming::Frame(frame) => Ok(frame),
            Incoming::Gone(reason) => Err(reason),
            Incoming::Lost(reason) => panic!("{reason}"),
        })
    }

    /// Polls the link until a message has arrived; the error is the reason why the neighbour is gone.
    fn wait_for_next(link: &SocketLink) -> Result<Vec<u8>, String> {
        loop {
            if let Some(found) = next(link) {
                return found;
            }
            link.wait(Instant::now(), PollRate::Fast);
        }
    }

    #[test]
    fn a_frame_is_received_when_all_of_it_has_come() {
        let (link, mut theirs) = link();
        assert_eq!(next(&link), None);
        for piece in [&[3, 0][..], &[0, 0], &[7], &[8]] {
            theirs.write_all(piece).unwrap();
            assert_eq!(next(&link), None);
        }
        theirs.write_all(&[9, 0, 0, 0, 0, 1, 0, 0, 0, 5]).unwrap();
        assert_eq!(next(&link), Some(Ok(vec![7, 8, 9])));
        assert_eq!(next(&link), Some(Ok(vec![])));
        assert_eq!(next(&link), Some(Ok(vec![5])));
        assert_eq!(next(&link), None);
    }

    #[test]
    fn what_a_neighbour_sent_is_received_before_its_end() {
        let (link, mut theirs) = link();
        theirs.write_all(&encoded(b"last")).unwrap();
        theirs.write_all(&[4, 0, 0, 0, 1]).unwrap();
        drop(theirs);
        assert_eq!(next(&link), Some(Ok(b"last".to_vec())));
        // The second frame is incomplete.
        assert_eq!(next(&link), Some(Err("0 is gone".into())));
        assert_eq!(next(&link), None, "it is gone once");
        link.post(0, vec![1]);
        assert!(link.flushed(), "frames to it are dropped");
    }

    #[test]
    fn a_frame_that_is_too_long_is_cut() {
        let (link, mut theirs) = link();
        let writer = thread::spawn(move || {
            theirs.write_all(&u32::MAX.to_le_bytes()).unwrap();
            theirs.write_all(&vec![1; MAX_FRAME + 1]).unwrap();
        });
        let frame = wait_for_next(&link).unwrap();
        assert!(frame == vec![1; MAX_FRAME + 1], "{} bytes", frame.len());
        writer.join().unwrap();
    }

    #[test]
    fn long_frames_are_received_one_after_the_other() {
        let (link, mut theirs) = link();
        let lengths = [400_000, MAX_FRAME, 1, 700_000, 0, MAX_FRAME - 1, 300_000, 2];
        let frame =
            move |n: usize| -> Vec<u8> { (0..lengths[n]).map(|i| (i % 251 + n) as u8).collect() };
        let writer = thread::spawn(move || {
            let all: Vec<Vec<u8>> = (0..8).map(|n| encoded(&frame(n))).collect();
            theirs.write_all(&all.concat()).unwrap();
        });
        for n in 0..8 {
            let found = wait_for_next(&link).unwrap();
            assert!(found == frame(n), "frame {n} of {} bytes", found.len());
        }
        assert_eq!(wait_for_next(&link), Err("0 is gone".into()));
        writer.join().unwrap();
    }

    #[test]
    fn a_rank_receives_while_it_sends() {
        let (link, mut theirs) = link();
        let frame: Vec<u8> = (0..MAX_FRAME).map(|i| (i % 253) as u8).collect();
        let expected = encoded(&frame);
        let (begin, may_begin) = channel();
        let reader = thread::spawn(move || {
            // The peer reads nothing until the rank has processed incoming messages.
            may_begin.recv().unwrap();
            let mut found = vec![0; expected.len() + 5];
            theirs.read_exact(&mut found).unwrap();
            assert!(found[..expected.len()] == expected);
            found.split_off(expected.len())
        });
        link.send(0, frame, &mut || {
            let _ = begin.send(());
            assert_eq!(next(&link), None);
        });
        assert!(link.flushed());
        link.post(0, vec![6]);
        assert_eq!(reader.join().unwrap(), [1, 0, 0, 0, 6]);
    }

    #[test]
    fn posted_frames_that_are_not_taken_yet_are_kept() {
        let (link, mut theirs) = link();
        // Fill the socket buffer.
        let mut before = Vec::new();
        let mut mine = link.peers.borrow()[0].socket.try_clone().unwrap();
        while let Ok(written) = mine.write(&[9; 4096]) {
            before.extend(vec![9; written]);
        }
        let full = vec![1; MAX_FRAME];
        link.peers.borrow_mut()[0].push(&full);
        assert!(!link.flushed());
        for n in 0..MAX_POSTS as u8 {
            link.post(0, vec![n; MAX_SHORT_FRAME]);
        }
        assert!(!link.flushed());
        let reader = thread::spawn(move || {
            let posted = (0..MAX_POSTS as u8).map(|n| encoded(&vec![n; MAX_SHORT_FRAME]));
            let posted: Vec<Vec<u8>> = posted.collect();
            let expected = [before, encoded(&full), posted.concat()].concat();
            let mut found = vec![0; expected.len()];
            theirs.read_exact(&mut found).unwrap();
            assert!(found == expected);
            theirs
        });
        while !link.flushed() {
            assert_eq!(next(&link), None);
            link.wait(Instant::now(), PollRate::Slow);
        }
        reader.join().unwrap();
    }

    #[test]
    fn the_end_of_a_link_is_in_order_or_not() {
        let ends = Rc::new(RefCell::new(Vec::new()));
        let noted = ends.clone();
        let on_end = Box::new(move |in_order| noted.borrow_mut().push(in_order));
        let gone = Box::new(|_| Incoming::Gone(String::new()));
        let link = SocketLink::new(vec![], gone, on_end).unwrap();
        link.close(true);
        link.close(false);
        assert_eq!(*ends.borrow(), [true, false]);
        assert!(link.flushed() && link.receive().is_none());
    }

    #[test]
    #[should_panic(expected = "only short frames are posted")]
    fn long_frames_are_not_posted() {
        link().0.post(0, vec![0; MAX_SHORT_FRAME + 1]);
    }

    #[test]
    #[should_panic(expected = "a frame of 1048584 bytes is too long")]
    fn frames_have_a_maximum_length() {
        link().0.send(0, vec![0; MAX_FRAME + 1], &mut || ());
    }

    #[test]
    fn a_wait_ends_when_something_comes() {
        let (link, mut theirs) = link();
        let (begin, may_begin) = channel();
        let writer = thread::spawn(move || {
            may_begin.recv().unwrap();
            thread::sleep(Duration::from_millis(5));
            theirs.write_all(&encoded(b"x")).unwrap();
            theirs
        });
        begin.send(()).unwrap();
        assert_eq!(wait_for_next(&link), Ok(b"x".to_vec()));
        drop(writer.join().unwrap());
        assert_eq!(wait_for_next(&link), Err("0 is gone".into()));
        // Returns after the maximum wait, because no event can arrive.
        link.wait(Instant::now(), PollRate::Fast);
    }
}
