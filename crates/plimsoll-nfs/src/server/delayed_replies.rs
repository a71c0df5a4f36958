//! Answers that are sent later.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Most bytes of one connection that wait; who has more to send waits too.
const MAX_QUEUED_REPLY_BYTES: usize = 64 << 20;

/// A thread that sends answers when they are due. It ends when this is dropped, with the last of them,
/// and when the client is gone.
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
    answers: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// Nothing more comes.
    over: bool,
    /// The client takes nothing more.
    gone: bool,
}

impl DelayQueueShared {
    fn lock(&self) -> MutexGuard<'_, DelayQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, queue: MutexGuard<'a, DelayQueue>) -> MutexGuard<'a, DelayQueue> {
        self.changed
            .wait(queue)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The next answer; none after the last.
    fn next(&self) -> Option<(Instant, Vec<u8>)> {
        let mut queue = self.lock();
        loop {
            if let Some(answer) = queue.answers.pop_front() {
                queue.bytes -= answer.1.len();
                self.changed.notify_all();
                return Some(answer);
            }
            if queue.over {
                return None;
            }
            queue = self.wait(queue);
        }
    }

    fn send_loop(&self, mut stream: TcpStream) {
        while let Some((due, bytes)) = self.next() {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if stream.write_all(&bytes).is_err() {
                break;
            }
        }
        self.lock().gone = true;
        self.changed.notify_all();
        // Wakes who reads.
        let _ = stream.shutdown(Shutdown::Both);
    }
}

impl DelayedReplies {
    /// Sends to this stream, `delay` later.
    pub(super) fn start(stream: TcpStream, delay: Duration) -> io::Result<Self> {
        let shared = Arc::new(DelayQueueShared::default());
        let of_thread = shared.clone();
        Builder::new()
            .name("nfs-delay".into())
            .spawn(move || of_thread.send_loop(stream))?;
        Ok(Self { delay, shared })
    }

    /// Waits while too much waits already.
    ///
    /// # Errors
    /// If the client is gone.
    pub(super) fn send(&self, bytes: Vec<u8>) -> io::Result<()> {
        let due = Instant::now() + self.delay;
        let mut queue = self.shared.lock();
        while queue.bytes >= MAX_QUEUED_REPLY_BYTES && !queue.gone {
            queue = self.shared.wait(queue);
        }
        if queue.gone {
            return Err(ErrorKind::BrokenPipe.into());
        }
        queue.bytes += bytes.len();
        queue.answers.push_back((due, bytes));
        self.shared.changed.notify_all();
        Ok(())
    }
}

impl Drop for DelayedReplies {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
    }
}
