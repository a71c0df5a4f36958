//! Waits of workers for each other, with common code for all kinds of lanes.
//!
//! A worker waits in a [`Fifo`] for something that only one worker can have, such as an entry of a fileset or the posts
//! of a semaphore. The worker that releases an entry or a post hands the entry or post to the first waiter and wakes
//! only the first waiter, so that every wakeup makes progress, at a cost that does not depend on the number of waiters.
//! Waits that one event ends for all waiters together have a [`Broadcast`].

mod controller_wakeup;
mod fifo;
mod semaphore;

pub(crate) use controller_wakeup::ControllerWakeup;
pub(crate) use fifo::{Fifo, Woken};
pub(crate) use plimsoll_runtime::sync::lock;
pub(crate) use semaphore::Semaphore;

use plimsoll_lane::{Lane, Stopped};
use plimsoll_runtime::sync::Mutex;
use plimsoll_runtime::sync::atomic::Ordering::{Relaxed, SeqCst};
use plimsoll_runtime::sync::atomic::{AtomicU64, AtomicUsize, fence};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// A queue in which each waiter waits for a grant.
pub(crate) trait WaitQueue {
    /// Position of a waiter in the queue.
    type Position: Copy + Unpin;
    /// Value that a waiter receives at the end of its wait, such as a taken entry.
    type Grant;

    /// Takes the waiter's grant, and removes the grant from the queue; without a grant, `waker` is woken once the
    /// waiter has a grant.
    fn take(&self, place: Self::Position, waker: &Waker) -> Option<Self::Grant>;

    /// Removes the waiter; a grant that the waiter has not taken goes to the next waiter.
    fn leave(&self, place: Self::Position);
}

/// The wait of a worker in a queue. If the worker is dropped, or stopped by the end of the run, the wait leaves the
/// queue, so that the worker's grant is not lost.
pub(crate) struct Wait<'a, Q: WaitQueue> {
    queue: &'a Q,
    place: Option<Q::Position>,
    lane: &'a Lane,
    _idle: BlockedGuard<'a>,
}

impl<'a, Q: WaitQueue> Wait<'a, Q> {
    pub(crate) fn at(
        queue: &'a Q,
        place: Q::Position,
        lane: &'a Lane,
        idle: &'a BlockedCount,
    ) -> Self {
        Self {
            queue,
            place: Some(place),
            lane,
            _idle: idle.enter(),
        }
    }
}

impl<Q: WaitQueue> Future for Wait<'_, Q> {
    type Output = Result<Q::Grant, Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // A waiter takes no grant once the run is over.
        let over = self.lane.now() >= self.lane.deadline();
        let (Some(place), false) = (self.place, over) else {
            return Poll::Ready(Err(Stopped));
        };
        match self.queue.take(place, context.waker()) {
            Some(given) => {
                self.place = None;
                Poll::Ready(Ok(given))
            }
            None => Poll::Pending,
        }
    }
}

impl<Q: WaitQueue> Drop for Wait<'_, Q> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.queue.leave(place);
        }
    }
}

/// Workers that wait for an event that releases all of them.
#[derive(Default)]
pub(crate) struct Broadcast {
    waiting: AtomicUsize,
    round: Mutex<Round>,
}

/// Workers that wait for the next event of a broadcast.
#[derive(Default)]
struct Round {
    number: u64,
    wakers: Vec<Waker>,
}

impl Broadcast {
    /// Waits until `look` returns `Some`; calls `look` again after every event.
    pub(crate) async fn until<T>(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Stopped> {
        if let Some(found) = look() {
            return Ok(found);
        }
        let _idle = idle.enter();
        let mut round = None;
        std::future::poll_fn(|context| {
            self.register(&mut round, context);
            // Looks again after registering: an event between the first look and the registration would wake no worker.
            if let Some(found) = look() {
                return Poll::Ready(Ok(found));
            }
            if lane.now() >= lane.deadline() {
                return Poll::Ready(Err(Stopped));
            }
            Poll::Pending
        })
        .await
    }

    /// Registers a waker, unless the waker is registered in this round already.
    fn register(&self, left_in: &mut Option<u64>, context: &Context<'_>) {
        let mut round = lock(&self.round);
        if left_in.replace(round.number) != Some(round.number) {
            round.wakers.push(context.waker().clone());
            self.waiting.store(round.wakers.len(), Relaxed);
        }
        drop(round);
        fence(SeqCst);
    }

    pub(crate) fn wake_all(&self) {
        fence(SeqCst);
        if self.waiting.load(Relaxed) > 0 {
            let mut round = lock(&self.round);
            round.number += 1;
            self.waiting.store(0, Relaxed);
            let woken = std::mem::take(&mut round.wakers);
            drop(round);
            woken.into_iter().for_each(Waker::wake);
        }
    }
}

/// Number of workers that wait for other workers, to detect a deadlock.
#[derive(Default)]
pub(crate) struct BlockedCount {
    waiting: AtomicUsize,
}

pub(crate) struct BlockedGuard<'a>(&'a BlockedCount);

impl BlockedCount {
    pub(crate) fn enter(&self) -> BlockedGuard<'_> {
        self.waiting.fetch_add(1, Relaxed);
        BlockedGuard(self)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

impl Drop for BlockedGuard<'_> {
    fn drop(&mut self) {
        let before = self.0.waiting.fetch_sub(1, Relaxed);
        debug_assert!(before > 0, "more waits end than began");
    }
}

/// Wakeups of a block. Wakeups are counted, so that no wakeup between a worker's decision to wait and the wait is lost.
#[derive(Default)]
pub(crate) struct Wakeups {
    count: AtomicU64,
    list: Broadcast,
}

impl Wakeups {
    /// Waits for a wakeup after the first `seen` wakeups; returns the number of wakeups so far.
    pub(crate) async fn wait(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        seen: u64,
    ) -> Result<u64, Stopped> {
        self.list
            .until(lane, idle, || {
                Some(self.count.load(SeqCst)).filter(|count| *count > seen)
            })
            .await
    }

    pub(crate) fn wake(&self) {
        self.count.fetch_add(1, SeqCst);
        self.list.wake_all();
    }
}

/// Number of operations that the workers of this process may still begin, if the workload limits the operations.
pub(crate) struct OpBudget {
    left: AtomicU64,
    workers: u64,
}

/// Maximum number of operations granted at once: few enough that workers end together.
const OPS_PER_GRANT: u64 = 64;

impl OpBudget {
    pub(crate) fn new(total: u64, workers: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(total),
            workers: workers.max(1),
        })
    }

    /// Grants at most `OPS_PER_GRANT` operations; returns their number, 0 if none are left.
    pub(crate) fn take(&self) -> u64 {
        let share = |left: u64| {
            (left / (2 * self.workers))
                .clamp(1, OPS_PER_GRANT)
                .min(left)
        };
        let before = self
            .left
            .fetch_update(SeqCst, SeqCst, |left| Some(left - share(left)));
        before.map_or(0, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lane::{Deadline, LaneKind, Task};
    use plimsoll_measure::Clock;

    fn lane() -> (Lane, Arc<Deadline>) {
        let deadline = Arc::new(Deadline::default());
        (
            Lane::new(LaneKind::Virtual, Clock::simulated(), deadline.clone()),
            deadline,
        )
    }

    #[test]
    fn a_wait_ends_with_the_run() {
        let (lane, deadline) = lane();
        let (idle, wakeups) = (BlockedCount::default(), Wakeups::default());
        deadline.bring_forward(1000);
        let task: Task<'_> = Box::pin(async {
            assert_eq!(wakeups.wait(&lane, &idle, 0).await, Err(Stopped));
            assert_eq!(idle.waiting(), 0);
        });
        lane.run(vec![task]).unwrap();
        assert_eq!(lane.now(), 1000);
    }

    #[test]
    fn a_wakeup_that_comes_early_is_not_lost() {
        let (lane, _) = lane();
        let (idle, wakeups) = (BlockedCount::default(), Wakeups::default());
        wakeups.wake();
        let task: Task<'_> = Box::pin(async {
            assert_eq!(wakeups.wait(&lane, &idle, 0).await, Ok(1));
        });
        lane.run(vec![task]).unwrap();
    }

    #[test]
    fn budgets_add_up() {
        for (total, workers) in [(0, 1), (1, 8), (1000, 3), (100_000, 300)] {
            let tickets = OpBudget::new(total, workers);
            let mut sum = 0;
            loop {
                match tickets.take() {
                    0 => break,
                    n => sum += n,
                }
            }
            assert_eq!(sum, total);
        }
    }
}
