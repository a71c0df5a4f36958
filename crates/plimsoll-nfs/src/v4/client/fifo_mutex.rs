//! A mutex that workers of any lane acquire in the order of arrival.

use crate::lock::lock;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// A mutex that workers of any lane acquire in the order of arrival (RFC 7530, 9.1.7).
#[derive(Debug, Clone, Default)]
pub struct FifoMutex(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    held: bool,
    /// The ticket of the next holder, until the waiter takes the mutex.
    granted: Option<u64>,
    waiting: VecDeque<(u64, Waker)>,
    next_ticket: u64,
}

impl FifoMutex {
    /// Returns a future that acquires the mutex; the mutex is held until the future's output is
    /// dropped.
    #[must_use]
    pub fn acquire(&self) -> LockWaiter {
        LockWaiter {
            mutex: self.clone(),
            ticket: None,
            done: false,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        lock(&self.0).held
    }

    fn release(&self) {
        let mut queue = lock(&self.0);
        debug_assert!(queue.held, "a mutex is released that is not held");
        match queue.waiting.pop_front() {
            Some((ticket, waker)) => {
                queue.granted = Some(ticket);
                drop(queue);
                waker.wake();
            }
            None => queue.held = false,
        }
    }
}

/// Holds a mutex until dropped.
#[derive(Debug)]
pub struct FifoGuard(FifoMutex);

impl Drop for FifoGuard {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A future that waits for a mutex.
#[derive(Debug)]
pub struct LockWaiter {
    mutex: FifoMutex,
    ticket: Option<u64>,
    done: bool,
}

impl Future for LockWaiter {
    type Output = FifoGuard;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<FifoGuard> {
        let mutex = self.mutex.clone();
        let mut queue = lock(&mutex.0);
        match self.ticket {
            None if !queue.held => queue.held = true,
            None => {
                let ticket = queue.next_ticket;
                queue.next_ticket += 1;
                queue.waiting.push_back((ticket, context.waker().clone()));
                self.ticket = Some(ticket);
                return Poll::Pending;
            }
            Some(ticket) if queue.granted == Some(ticket) => queue.granted = None,
            Some(ticket) => {
                if let Some((_, waker)) = queue.waiting.iter_mut().find(|(t, _)| *t == ticket) {
                    waker.clone_from(context.waker());
                }
                return Poll::Pending;
            }
        }
        self.done = true;
        drop(queue);
        Poll::Ready(FifoGuard(mutex))
    }
}

impl Drop for LockWaiter {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.filter(|_| !self.done) else {
            return;
        };
        let mut queue = lock(&self.mutex.0);
        if queue.granted == Some(ticket) {
            queue.granted = None;
            drop(queue);
            self.mutex.release();
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
            Poll::Ready(guard) => Some(guard),
            Poll::Pending => None,
        }
    }

    #[test]
    fn the_mutex_is_granted_in_order() {
        let mutex = FifoMutex::default();
        let (mut a, mut b) = (pin!(mutex.acquire()), pin!(mutex.acquire()));
        let first = poll(a.as_mut()).unwrap();
        assert!(poll(b.as_mut()).is_none());
        let mut c = pin!(mutex.acquire());
        assert!(poll(c.as_mut()).is_none());
        drop(first);
        assert!(poll(c.as_mut()).is_none(), "b was first");
        let second = poll(b.as_mut()).unwrap();
        drop(second);
        assert!(poll(c.as_mut()).is_some());
    }

    #[test]
    fn an_abandoned_waiter_blocks_no_other() {
        let mutex = FifoMutex::default();
        let held = poll(pin!(mutex.acquire())).unwrap();
        let mut last = Box::pin(mutex.acquire());
        {
            let (mut gone, mut given) = (pin!(mutex.acquire()), pin!(mutex.acquire()));
            assert!(poll(gone.as_mut()).is_none() && poll(given.as_mut()).is_none());
            assert!(poll(last.as_mut()).is_none());
            drop(held);
            // The mutex was granted to `gone`; `gone` and `given` are dropped without acquiring the mutex.
        }
        assert!(poll(last.as_mut()).is_some());
        assert!(!mutex.is_held());
    }
}
