//! What workers wait for each other with. The same code on every kind of lane.
//!
//! Who waits for a thing that only one can have, an entry of a fileset or the posts of a
//! semaphore, waits in a [`Fifo`]: whoever gives the thing back hands it to the first that waits
//! and wakes only that one, so that a wakeup is always one that can go on, and what waiting costs
//! does not depend on how many wait. What lets all go on wakes all ([`Broadcast`]).

mod controller_wakeup;
mod fifo;
mod semaphore;

pub(crate) use controller_wakeup::ControllerWakeup;
pub(crate) use fifo::{Fifo, Woken};
pub(crate) use semaphore::Semaphore;

use plimsoll_lane::{Lane, Stopped};
use std::pin::Pin;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where waiters wait until each is given what it waits for.
pub(crate) trait WaitQueue {
    /// A waiter's place.
    type Position: Copy + Unpin;
    /// What it is given.
    type Grant;

    /// What the waiter was given, which thereby leaves; else `waker` is woken when it is.
    fn take(&self, place: Self::Position, waker: &Waker) -> Option<Self::Grant>;

    /// The waiter leaves with nothing; what it was given already goes to who comes next.
    fn leave(&self, place: Self::Position);
}

/// A waiter's stay in a queue. A waiter that is dropped, or stopped by the end of the run, leaves
/// it, so that what it was given is not lost.
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
        // Workers do not pass the last files on among themselves once the run is over.
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

/// Workers that wait for a change that lets all of them go on.
#[derive(Default)]
pub(crate) struct Broadcast {
    waiting: AtomicUsize,
    round: Mutex<Round>,
}

/// Those who wait for the next change.
#[derive(Default)]
struct Round {
    number: u64,
    wakers: Vec<Waker>,
}

impl Broadcast {
    /// Waits until `look` gives something; it is called again after every change.
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
            // Looked at again after registering: a change in between would wake nobody.
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

    /// Leaves a waker, unless there is one in this round already.
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

/// Counts workers that wait for other workers, to notice when all of them do.
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
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

/// A block's wakeups. One that comes while the worker is not waiting is remembered, so that it
/// cannot be lost between a worker's decision to wait and its waiting.
#[derive(Default)]
pub(crate) struct Wakeups {
    count: AtomicU64,
    list: Broadcast,
}

impl Wakeups {
    /// Waits for a wakeup after the `seen`-th; returns how many there were.
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

/// Events at a fixed rate: the n-th is due n/rate after the start, whether or not anybody asks.
pub(crate) struct EventSource {
    rate: f64,
    taken: AtomicU64,
}

impl EventSource {
    pub(crate) fn new(rate: f64) -> Self {
        Self {
            rate,
            taken: AtomicU64::new(0),
        }
    }

    /// Takes `count` events; returns when the last of them is due, in nanoseconds after the
    /// start.
    pub(crate) fn take(&self, count: u64) -> u64 {
        let last = self.taken.fetch_add(count, Relaxed) + count;
        (last as f64 / self.rate * 1e9) as u64
    }
}

/// Operations that a run may still begin.
pub(crate) struct OpBudget {
    left: AtomicU64,
    workers: u64,
}

/// Tickets handed out at once at most: few enough that workers end together.
const OPS_PER_GRANT: u64 = 64;

impl OpBudget {
    pub(crate) fn new(total: u64, workers: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(total),
            workers: workers.max(1),
        })
    }

    /// A few tickets; 0 when none are left.
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
    fn events_are_due_at_their_rate() {
        let events = EventSource::new(1000.0);
        assert_eq!(events.take(1), 1_000_000);
        assert_eq!(events.take(9), 10_000_000);
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
