//! Replies that are sent after a delay.

use crate::lock::lock;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// The maximum number of bytes of queued replies of a connection; senders wait while the queue is
/// full.
const MAX_QUEUED_REPLY_BYTES: usize = 64 << 20;

/// A thread that sends replies at their scheduled times. Once this value is dropped, the thread
/// ends after the last reply; it also ends when the client closes the connection.
pub(super) struct DelayedReplies {
    delay: Duration,
    shared: Arc<DelayQueueShared>,
}

#[derive(Default)]
struct DelayQueueShared {
    queue: Mutex<DelayQueue>,
    changed: Condvar,
}

#[derive(Default)]
struct DelayQueue {
    /// Replies with their scheduled times.
    replies: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// Whether the queue is complete.
    over: bool,
    /// Whether the client has closed the connection.
    closed: bool,
}

impl DelayQueueShared {
    fn wait<'a>(&self, queue: MutexGuard<'a, DelayQueue>) -> MutexGuard<'a, DelayQueue> {
        self.changed
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next reply; `None` after the last reply of a complete queue.
    fn next(&self) -> Option<(Instant, Vec<u8>)> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(reply) = queue.replies.pop_front() {
                queue.bytes -= reply.1.len();
                self.changed.notify_all();
                return Some(reply);
            }
            if queue.over {
                return None;
            }
            queue = self.wait(queue);
        }
    }

    fn send_loop(&self, mut stream: TcpStream) {
        while let Some((at, bytes)) = self.next() {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if stream.write_all(&bytes).is_err() {
                break;
            }
        }
        lock(&self.queue).closed = true;
        self.changed.notify_all();
        // Wakes the thread that reads calls.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl DelayedReplies {
    /// Starts a thread that sends replies to `stream` with a delay.
    pub(super) fn start(stream: TcpStream, delay: Duration) -> io::Result<Self> {
        let shared = Arc::new(DelayQueueShared::default());
        let of_thread = shared.clone();
        Builder::new()
            .name("nfs-delay".into())
            .spawn(move || of_thread.send_loop(stream))?;
        Ok(Self { delay, shared })
    }

    /// Queues a reply; waits while the queue is full.
    ///
    /// # Errors
    /// If the client has closed the connection.
    pub(super) fn send(&self, bytes: Vec<u8>) -> io::Result<()> {
        let at = Instant::now() + self.delay;
        let mut queue = lock(&self.shared.queue);
        while queue.bytes >= MAX_QUEUED_REPLY_BYTES && !queue.closed {
            queue = self.shared.wait(queue);
        }
        if queue.closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        queue.bytes += bytes.len();
        queue.replies.push_back((at, bytes));
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for DelayedReplies {
    fn drop(&mut self) {
        lock(&self.shared.queue).over = true;
        self.shared.changed.notify_all();
    }
}
