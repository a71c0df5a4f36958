//! One after the other: what waits for its turn on something that one at a time may use.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Something that one at a time may use, by workers of any lane (RFC 7530, 9.1.7); in the order in
/// which they asked.
#[derive(Debug, Clone, Default)]
pub struct FifoMutex(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    held: bool,
    /// Who is next, although it does not know yet.
    given: Option<u64>,
    waiting: VecDeque<(u64, Waker)>,
    next: u64,
}

impl FifoMutex {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn, which lasts until the result is dropped.
    #[must_use]
    pub fn acquire(&self) -> LockWaiter {
        LockWaiter {
            turns: self.clone(),
            ticket: None,
            done: false,
        }
    }

    fn end(&self) {
        let mut queue = self.lock();
        match queue.waiting.pop_front() {
            Some((ticket, waker)) => {
                queue.given = Some(ticket);
                drop(queue);
                waker.wake();
            }
            None => queue.held = false,
        }
    }
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct FifoGuard(FifoMutex);

impl Drop for FifoGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Somebody who waits for a turn.
#[derive(Debug)]
pub struct LockWaiter {
    turns: FifoMutex,
    ticket: Option<u64>,
    done: bool,
}

impl Future for LockWaiter {
    type Output = FifoGuard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FifoGuard> {
        let turns = self.turns.clone();
        let mut queue = turns.lock();
        let has = match self.ticket {
            None if !queue.held => {
                queue.held = true;
                true
            }
            None => {
                let ticket = queue.next;
                queue.next += 1;
                queue.waiting.push_back((ticket, context.waker().clone()));
                self.ticket = Some(ticket);
                false
            }
            Some(ticket) if queue.given == Some(ticket) => {
                queue.given = None;
                true
            }
            Some(ticket) => {
                if let Some((_, waker)) = queue.waiting.iter_mut().find(|(t, _)| *t == ticket) {
                    waker.clone_from(context.waker());
                }
                false
            }
        };
        match has {
            true => {
                self.done = true;
                drop(queue);
                Poll::Ready(FifoGuard(turns))
            }
            false => Poll::Pending,
        }
    }
}

impl Drop for LockWaiter {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.filter(|_| !self.done) else {
            return;
        };
        let mut queue = self.turns.lock();
        if queue.given == Some(ticket) {
            // Its turn had come, and it will not take it.
            queue.given = None;
            drop(queue);
            self.turns.end();
        } else {
            queue.waiting.retain(|(t, _)| *t != ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn poll(waiting: Pin<&mut LockWaiter>) -> Option<FifoGuard> {
        match waiting.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_mutex_is_granted_in_order() {
        let turns = FifoMutex::default();
        let (mut a, mut b) = (pin!(turns.acquire()), pin!(turns.acquire()));
        let first = poll(a.as_mut()).unwrap();
        assert!(poll(b.as_mut()).is_none());
        let mut c = pin!(turns.acquire());
        assert!(poll(c.as_mut()).is_none());
        drop(first);
        assert!(poll(c.as_mut()).is_none(), "b was first");
        let second = poll(b.as_mut()).unwrap();
        drop(second);
        assert!(poll(c.as_mut()).is_some());
    }

    #[test]
    fn an_abandoned_waiter_blocks_no_other() {
        let turns = FifoMutex::default();
        let held = poll(pin!(turns.acquire())).unwrap();
        let mut last = Box::pin(turns.acquire());
        {
            let (mut gone, mut given) = (pin!(turns.acquire()), pin!(turns.acquire()));
            assert!(poll(gone.as_mut()).is_none() && poll(given.as_mut()).is_none());
            assert!(poll(last.as_mut()).is_none());
            drop(held);
            // `gone` was given the turn; both leave without taking one.
        }
        assert!(poll(last.as_mut()).is_some());
        assert!(!turns.lock().held);
    }
}
