//! Frames with heartbeats over a byte stream that may fall silent: the standard input and output of `ssh`.
//!
//! A thread on each side passes frames between the stream and a Unix socket of its process, which
//! [`SocketLink`](crate::socket::SocketLink) uses like the socket of a local process. The thread sends a heartbeat, an
//! empty frame, every [`HEARTBEAT_INTERVAL`], independently of all other threads, and removes the heartbeats of the
//! other side. A side that receives nothing for [`SILENCE_TIMEOUT`] concludes, without a common clock, that the
//! connection is cut or the machine is down.

use crate::socket::{LENGTH_PREFIX_BYTES, READ_CHUNK_BYTES};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Time between two heartbeats.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// Time without a byte from the other side after which the connection counts as lost.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(6);
/// Maximum time for passing on the last frames.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// A heartbeat: the length prefix of an empty frame.
const HEARTBEAT: [u8; LENGTH_PREFIX_BYTES] = [0; LENGTH_PREFIX_BYTES];

/// The two directions of a stream to another machine or process.
pub struct Wire {
    /// Data from the other side.
    pub input: OwnedFd,
    /// Data to the other side.
    pub output: OwnedFd,
}

/// Reason for the loss of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The other side has closed the stream, or its process has ended.
    Closed,
    /// No byte arrived for [`SILENCE_TIMEOUT`].
    Silent,
}

/// The thread of a stream.
pub struct Keepalive {
    socket: UnixStream,
    ended: Receiver<()>,
    loss: Arc<OnceLock<Loss>>,
}

impl Keepalive {
    /// Starts the thread. Also returns the socket with the frames of the other side. `on_loss` is called on the thread
    /// when the connection is lost, after all received frames have been passed on.
    ///
    /// # Errors
    /// The system cannot create a socket or thread, or the stream cannot be made non-blocking.
    pub fn start(
        wire: Wire,
        on_loss: impl FnOnce(Loss) + Send + 'static,
    ) -> io::Result<(Self, UnixStream)> {
        let (theirs, inner) = UnixStream::pair()?;
        inner.set_nonblocking(true)?;
        ioctl_fionbio(&wire.input, true)?;
        ioctl_fionbio(&wire.output, true)?;
        let socket = inner.try_clone()?;
        let (end, ended): (SyncSender<()>, _) = sync_channel(1);
        let loss = Arc::new(OnceLock::new());
        let reported = loss.clone();
        let work = move || {
            let lost = Exchange::new(&wire, &inner).run();
            if let Some(loss) = lost {
                let _ = reported.set(loss);
            }
            // Stop passing on frames in either direction.
            let _ = inner.shutdown(Shutdown::Both);
            drop(wire);
            let _ = end.send(());
            if let Some(loss) = lost {
                on_loss(loss);
            }
        };
        let builder = thread::Builder::new().name("keepalive".into());
        builder.spawn(work)?;
        Ok((
            Self {
                socket,
                ended,
                loss,
            },
            theirs,
        ))
    }

    /// Reason for the loss; `None` while the connection works.
    pub fn loss(&self) -> Option<Loss> {
        self.loss.get().copied()
    }

    /// Makes the exchanging thread send the frames that are left and then close the stream, without waiting.
    pub fn begin_end(&self) {
        let _ = self.socket.shutdown(Shutdown::Read);
    }

    /// Waits until the exchanging thread has ended after [`Self::begin_end`]; closes the socket if the thread is still
    /// running [`FLUSH_TIMEOUT`] after `begin`.
    pub fn finish(&self, begin: Instant) {
        let left = FLUSH_TIMEOUT.saturating_sub(begin.elapsed());
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(left) {
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

/// State of the thread that exchanges frames between a stream and the socket of the link.
struct Exchange<'a> {
    wire: &'a Wire,
    inner: &'a UnixStream,
    /// Frames from the other side, without heartbeats.
    received: Vec<u8>,
    received_frames: FrameScanner,
    /// Frames to the other side, and heartbeats.
    sent: Vec<u8>,
    sent_frames: FrameScanner,
    /// Latest time at which data arrived, or unread data may have been waiting.
    heard: Instant,
    next_heartbeat: Instant,
}

impl<'a> Exchange<'a> {
    fn new(wire: &'a Wire, inner: &'a UnixStream) -> Self {
        let now = Instant::now();
        Self {
            wire,
            inner,
            received: Vec::new(),
            received_frames: FrameScanner::default(),
            sent: Vec::new(),
            sent_frames: FrameScanner::default(),
            heard: now,
            next_heartbeat: now,
        }
    }

    /// Passes frames on until one side ends; `None` if this side has ended.
    fn run(mut self) -> Option<Loss> {
        let mut is_ending = false;
        let mut end = Instant::now();
        loop {
            if flush(self.inner, &mut self.received).is_err() {
                self.received.clear();
            }
            // A broken stream is detected by the next read.
            if flush(&self.wire.output, &mut self.sent).is_err() {
                self.sent.clear();
            }
            if is_ending && (self.sent.is_empty() || Instant::now() >= end) {
                return None;
            }
            self.add_heartbeat();
            let (wire_ready, inner_ready) = self.wait(is_ending);
            if wire_ready {
                match fill(
                    &self.wire.input,
                    &mut self.received,
                    &mut self.received_frames,
                ) {
                    Ok(true) => self.heard = Instant::now(),
                    Ok(false) => {}
                    Err(()) => {
                        self.pass_on_the_rest();
                        return Some(Loss::Closed);
                    }
                }
            } else if self.received.is_empty() {
                if self.heard.elapsed() >= SILENCE_TIMEOUT {
                    return Some(Loss::Silent);
                }
            } else {
                // The stream is not read while the rank has unread frames, so silence proves nothing.
                self.heard = Instant::now();
            }
            if inner_ready
                && !is_ending
                && fill(&self.inner, &mut self.sent, &mut self.sent_frames).is_err()
            {
                is_ending = true;
                end = Instant::now() + FLUSH_TIMEOUT;
            }
        }
    }

    fn add_heartbeat(&mut self) {
        let now = Instant::now();
        if self.sent.is_empty() && self.sent_frames.at_boundary() && now >= self.next_heartbeat {
            self.sent.extend(HEARTBEAT);
            self.next_heartbeat = now + HEARTBEAT_INTERVAL;
        }
    }

    /// Waits for an event; returns whether the stream and the socket are readable.
    fn wait(&self, is_ending: bool) -> (bool, bool) {
        let until_heartbeat = self
            .next_heartbeat
            .saturating_duration_since(Instant::now());
        let limit = until_heartbeat
            .max(Duration::from_millis(1))
            .min(HEARTBEAT_INTERVAL);
        let limit = Timespec::try_from(limit).expect("the limit is short");
        let when = |flag, condition| if condition { flag } else { PollFlags::empty() };
        let (is_read, can_send) = (self.received.is_empty(), self.sent.is_empty());
        let takes = can_send && !is_ending;
        let inner = when(PollFlags::IN, takes) | when(PollFlags::OUT, !is_read);
        let mut fds = Vec::with_capacity(3);
        // Without a flag, the socket would be ready forever once the rank has ended.
        if !inner.is_empty() {
            fds.push(PollFd::new(&self.inner, inner));
        }
        let inner_at = (takes && !inner.is_empty()).then_some(0);
        let mut wire_at = None;
        if is_read {
            wire_at = Some(fds.len());
            fds.push(PollFd::new(&self.wire.input, PollFlags::IN));
        }
        if !can_send {
            fds.push(PollFd::new(&self.wire.output, PollFlags::OUT));
        }
        // An interrupted poll reports nothing as ready.
        if poll(&mut fds, Some(&limit)).is_err() {
            return (false, false);
        }
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let ready = |at: usize| fds[at].revents().intersects(readable);
        (wire_at.is_some_and(ready), inner_at.is_some_and(ready))
    }

    /// Passes frames on that were received before the stream ended, for at most [`FLUSH_TIMEOUT`].
    fn pass_on_the_rest(&mut self) {
        let begin = Instant::now();
        while !self.received.is_empty()
            && begin.elapsed() < FLUSH_TIMEOUT
            && flush(self.inner, &mut self.received).is_ok()
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Reads available data, up to [`READ_CHUNK_BYTES`]; returns whether data was read, and an error at the end of the
/// stream or if the stream is broken.
fn fill(from: &impl AsFd, to: &mut Vec<u8>, frames: &mut FrameScanner) -> Result<bool, ()> {
    let mut bytes = Vec::with_capacity(READ_CHUNK_BYTES);
    match read(from, spare_capacity(&mut bytes)) {
        Ok(0) => Err(()),
        Ok(_) => {
            frames.strip(&bytes, to);
            Ok(true)
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(false),
        Err(_) => Err(()),
    }
}

/// Writes as much as the other end accepts.
fn flush(to: &impl AsFd, bytes: &mut Vec<u8>) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match write(to, bytes) {
            Ok(written) => drop(bytes.drain(..written)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Finds the boundaries of frames in a stream of bytes.
#[derive(Debug, Default)]
struct FrameScanner {
    /// Bytes of an incomplete length prefix.
    prefix: Vec<u8>,
    /// Bytes of the current frame that have not arrived yet.
    left: usize,
}

impl FrameScanner {
    /// Whether the stream is between two frames.
    fn at_boundary(&self) -> bool {
        self.prefix.is_empty() && self.left == 0
    }

    /// Appends the frames in `bytes` to `frames`, except empty frames.
    fn strip(&mut self, mut bytes: &[u8], frames: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (frame, rest) = bytes.split_at(self.left.min(bytes.len()));
                frames.extend(frame);
                self.left -= frame.len();
                bytes = rest;
                continue;
            }
            let missing = LENGTH_PREFIX_BYTES - self.prefix.len();
            let (prefix, rest) = bytes.split_at(missing.min(bytes.len()));
            self.prefix.extend(prefix);
            bytes = rest;
            if let Ok(prefix) = <[u8; LENGTH_PREFIX_BYTES]>::try_from(self.prefix.as_slice()) {
                self.prefix.clear();
                self.left = u32::from_le_bytes(prefix) as usize;
                if self.left > 0 {
                    frames.extend(prefix);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{Read, Write};

    fn encoded(frames: &[Vec<u8>]) -> Vec<u8> {
        let each = frames.iter().map(|f| {
            let mut bytes = (f.len() as u32).to_le_bytes().to_vec();
            bytes.extend(f);
            bytes
        });
        each.collect::<Vec<_>>().concat()
    }

    proptest! {
        #[test]
        fn heartbeats_are_taken_out_wherever_the_stream_is_cut(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..20),
            pieces in prop::collection::vec(1usize..9, 1..30),
        ) {
            let stream = encoded(&frames);
            let full: Vec<Vec<u8>> = frames.into_iter().filter(|f| !f.is_empty()).collect();
            let (mut scanner, mut stripped) = (FrameScanner::default(), Vec::new());
            let (mut rest, mut sizes) = (&stream[..], pieces.iter().cycle());
            while !rest.is_empty() {
                let size = (*sizes.next().unwrap()).min(rest.len());
                scanner.strip(&rest[..size], &mut stripped);
                rest = &rest[size..];
            }
            prop_assert!(scanner.at_boundary());
            prop_assert_eq!(stripped, encoded(&full));
        }
    }

    #[test]
    fn a_heartbeat_fits_only_between_frames() {
        let mut scanner = FrameScanner::default();
        assert!(scanner.at_boundary());
        let mut boundary = |byte: u8| {
            scanner.strip(&[byte], &mut Vec::new());
            scanner.at_boundary()
        };
        // A frame of two bytes, then an empty frame.
        let found = [2, 0, 0, 0, 7, 8, 0, 0, 0, 0].map(&mut boundary);
        let expected = [5, 9];
        for (at, is_boundary) in found.into_iter().enumerate() {
            assert_eq!(is_boundary, expected.contains(&at), "after byte {at}");
        }
    }

    fn wire(socket: &UnixStream) -> Wire {
        Wire {
            input: socket.try_clone().unwrap().into(),
            output: socket.try_clone().unwrap().into(),
        }
    }

    #[test]
    fn frames_pass_both_ways_until_one_side_ends() {
        let (a, b) = UnixStream::pair().unwrap();
        let (left, mut left_socket) = Keepalive::start(wire(&a), |_| ()).unwrap();
        let (right, mut right_socket) = Keepalive::start(wire(&b), |_| ()).unwrap();
        drop((a, b));
        let sent = encoded(&[vec![7; 300_000], vec![1]]);
        let copy = sent.clone();
        let writer = thread::spawn(move || {
            left_socket.write_all(&copy).unwrap();
            left_socket
        });
        let mut received = vec![0; sent.len()];
        right_socket.read_exact(&mut received).unwrap();
        assert_eq!(received, sent);
        right_socket.write_all(&encoded(&[vec![3]])).unwrap();
        right.begin_end();
        right.finish(Instant::now());
        assert_eq!(right.loss(), None);
        let mut left_socket = writer.join().unwrap();
        received.clear();
        left_socket.read_to_end(&mut received).unwrap();
        assert_eq!(received, encoded(&[vec![3]]));
        assert_eq!(left.loss(), Some(Loss::Closed));
    }

    /// The other side reads raw heartbeats, and replies with frames between its own heartbeats.
    #[test]
    fn heartbeats_are_sent_while_nothing_else_is() {
        let (a, mut b) = UnixStream::pair().unwrap();
        let (side, mut socket) = Keepalive::start(wire(&a), |_| ()).unwrap();
        drop(a);
        let patience = Some(SILENCE_TIMEOUT * 5);
        b.set_read_timeout(patience).unwrap();
        socket.set_read_timeout(patience).unwrap();
        let mut beats = [1; 3 * LENGTH_PREFIX_BYTES];
        b.read_exact(&mut beats).unwrap();
        assert_eq!(beats, [0; 3 * LENGTH_PREFIX_BYTES]);
        let frame = encoded(&[vec![5, 6]]);
        b.write_all(&[&HEARTBEAT[..], &frame, &HEARTBEAT].concat())
            .unwrap();
        let mut received = vec![0; frame.len()];
        socket.read_exact(&mut received).unwrap();
        assert_eq!((received, side.loss()), (frame, None));
    }

    #[test]
    fn what_was_sent_before_the_end_is_passed_on() {
        let (a, mut b) = UnixStream::pair().unwrap();
        let (lost, is_lost) = sync_channel(1);
        let on_loss = move |loss| lost.send(loss).unwrap();
        let (_side, mut socket) = Keepalive::start(wire(&a), on_loss).unwrap();
        drop(a);
        let frames = encoded(&[vec![1; 5000], vec![2]]);
        b.write_all(&frames).unwrap();
        drop(b);
        let patience = SILENCE_TIMEOUT * 5;
        socket.set_read_timeout(Some(patience)).unwrap();
        let mut received = Vec::new();
        socket.read_to_end(&mut received).unwrap();
        assert_eq!(received, frames);
        assert_eq!(is_lost.recv_timeout(patience), Ok(Loss::Closed));
    }

    #[test]
    fn a_side_that_says_nothing_is_lost() {
        let (a, b) = UnixStream::pair().unwrap();
        let (lost, is_lost) = sync_channel(1);
        let (left, _socket) =
            Keepalive::start(wire(&a), move |loss| lost.send(loss).unwrap()).unwrap();
        let loss = is_lost.recv_timeout(SILENCE_TIMEOUT * 5).unwrap();
        assert_eq!((loss, left.loss()), (Loss::Silent, Some(Loss::Silent)));
        drop(b);
    }
}
