//! What workers wait for each other with. The same code on every kind of lane: a wait is a
//! future that looks, leaves its waker, and is woken.

use plimsoll_lane::{Lane, Stopped};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Workers that wait for something to change. Waking costs a load when nobody waits.
#[derive(Default)]
pub(crate) struct WaitList {
    waiting: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
}

impl WaitList {
    /// Waits until `look` gives something; it is called again after every wake.
    pub(crate) async fn until<T>(
        &self,
        lane: &Lane,
        idle: &Idle,
        mut look: impl FnMut() -> Option<T>,
    ) -> Result<T, Stopped> {
        if let Some(found) = look() {
            return Ok(found);
        }
        let _idle = idle.enter();
        std::future::poll_fn(|context| {
            self.register(context);
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

    fn register(&self, context: &Context<'_>) {
        let mut wakers = lock(&self.wakers);
        if !wakers.iter().any(|w| w.will_wake(context.waker())) {
            wakers.push(context.waker().clone());
        }
        self.waiting.store(wakers.len(), Relaxed);
        drop(wakers);
        fence(SeqCst);
    }

    #[inline]
    pub(crate) fn wake_all(&self) {
        fence(SeqCst);
        if self.waiting.load(Relaxed) > 0 {
            self.wake_waiters();
        }
    }

    /// Wakes all likewise, where what waiters look at was changed by sequentially consistent
    /// read-modify-writes: they order the change before the look for waiters as the fence of
    /// [`WaitList::wake_all`] does, and a second barrier would cost every operation that chooses
    /// a file.
    #[inline]
    pub(crate) fn wake_all_after_seq_cst(&self) {
        if self.waiting.load(SeqCst) > 0 {
            self.wake_waiters();
        }
    }

    #[cold]
    fn wake_waiters(&self) {
        let mut wakers = lock(&self.wakers);
        self.waiting.store(0, Relaxed);
        let woken = std::mem::take(&mut *wakers);
        drop(wakers);
        woken.into_iter().for_each(Waker::wake);
    }
}

/// Counts workers that wait for other workers, to notice when all of them do.
#[derive(Default)]
pub(crate) struct Idle {
    waiting: AtomicUsize,
}

pub(crate) struct IdleGuard<'a>(&'a Idle);

impl Idle {
    pub(crate) fn enter(&self) -> IdleGuard<'_> {
        self.waiting.fetch_add(1, Relaxed);
        IdleGuard(self)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }
}

impl Drop for IdleGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

#[derive(Default)]
struct Pending {
    posted: u64,
    /// The worker waits for more than is posted, and this is how much it wants.
    wants: u64,
    /// The worker has ended and will never take again.
    retired: bool,
}

/// The semaphore of one worker's semblock.
#[derive(Default)]
pub(crate) struct Semaphore {
    state: Mutex<Pending>,
    high_water: AtomicU64,
    posted: WaitList,
    taken: WaitList,
}

impl Semaphore {
    /// Waits until `count` are posted, and takes them.
    pub(crate) async fn take(
        &self,
        lane: &Lane,
        idle: &Idle,
        count: u64,
        high_water: u64,
    ) -> Result<(), Stopped> {
        self.high_water.store(high_water, Relaxed);
        self.posted
            .until(lane, idle, || {
                let mut state = lock(&self.state);
                let enough = state.posted >= count;
                if enough {
                    state.posted -= count;
                }
                state.wants = if enough { 0 } else { count };
                drop(state);
                // Posters may go on in both cases: there is room again, or the taker needs more
                // than the high water allows.
                self.taken.wake_all();
                enough.then_some(())
            })
            .await
    }

    /// Posts `count`; with `blocking`, waits while more than the high water is pending and the
    /// taker is not itself waiting for more.
    pub(crate) async fn post(
        &self,
        lane: &Lane,
        idle: &Idle,
        count: u64,
        blocking: bool,
    ) -> Result<(), Stopped> {
        self.taken
            .until(lane, idle, || {
                let mut state = lock(&self.state);
                let full = state.posted > self.high_water.load(Relaxed);
                let hungry = state.posted < state.wants;
                let may = !blocking || !full || hungry || state.retired;
                if may {
                    state.posted = state.posted.saturating_add(count);
                }
                may.then_some(())
            })
            .await?;
        self.posted.wake_all();
        Ok(())
    }

    /// Sets the high water before the worker first waits.
    pub(crate) fn set_high_water(&self, high_water: u64) {
        self.high_water.store(high_water, Relaxed);
    }

    /// The worker has ended: posters wait no more.
    pub(crate) fn retire(&self) {
        lock(&self.state).retired = true;
        self.taken.wake_all();
    }
}

/// A block's wakeups. One that comes while the worker is not waiting is remembered, so that it
/// cannot be lost between a worker's decision to wait and its waiting.
#[derive(Default)]
pub(crate) struct Wakeups {
    count: AtomicU64,
    list: WaitList,
}

impl Wakeups {
    /// Waits for a wakeup after the `seen`-th; returns how many there were.
    pub(crate) async fn wait(&self, lane: &Lane, idle: &Idle, seen: u64) -> Result<u64, Stopped> {
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
pub(crate) struct Tickets {
    left: AtomicU64,
    workers: u64,
}

/// Tickets handed out at once at most: few enough that workers end together.
const BATCH: u64 = 64;

impl Tickets {
    pub(crate) fn new(total: u64, workers: u64) -> Arc<Self> {
        Arc::new(Self {
            left: AtomicU64::new(total),
            workers: workers.max(1),
        })
    }

    /// A few tickets; 0 when none are left.
    pub(crate) fn take(&self) -> u64 {
        let share = |left: u64| (left / (2 * self.workers)).clamp(1, BATCH).min(left);
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
    use std::cell::{Cell, RefCell};

    fn lane() -> (Lane, Arc<Deadline>) {
        let deadline = Arc::new(Deadline::default());
        (
            Lane::new(LaneKind::Virtual, Clock::simulated(), deadline.clone()),
            deadline,
        )
    }

    #[test]
    fn a_taker_gets_exactly_what_was_posted() {
        let (lane, _) = lane();
        let (idle, semaphore, takes) = (Idle::default(), Semaphore::default(), Cell::new(0));
        let taker: Task<'_> = Box::pin(async {
            for _ in 0..10 {
                semaphore.take(&lane, &idle, 30, 10).await.unwrap();
                takes.set(takes.get() + 1);
            }
        });
        // The taker needs 30 at a time although the high water is 10: posters must not starve it.
        let poster = || -> Task<'_> {
            Box::pin(async {
                for _ in 0..150 {
                    semaphore.post(&lane, &idle, 1, true).await.unwrap();
                }
            })
        };
        lane.run(vec![taker, poster(), poster()]).unwrap();
        assert_eq!((takes.get(), lock(&semaphore.state).posted), (10, 0));
    }

    #[test]
    fn blocking_posters_wait_above_the_high_water_until_the_taker_comes() {
        let (lane, _) = lane();
        let (idle, semaphore, log) = (
            Idle::default(),
            Semaphore::default(),
            RefCell::new(Vec::new()),
        );
        semaphore.set_high_water(5);
        let poster: Task<'_> = Box::pin(async {
            for i in 0..20 {
                semaphore.post(&lane, &idle, 1, true).await.unwrap();
                log.borrow_mut().push((i, lane.now()));
            }
        });
        let taker: Task<'_> = Box::pin(async {
            lane.timer(100).await;
            semaphore.take(&lane, &idle, 20, 5).await.unwrap();
        });
        lane.run(vec![poster, taker]).unwrap();
        let before: Vec<_> = log
            .borrow()
            .iter()
            .filter(|(_, at)| *at == 0)
            .copied()
            .collect();
        assert_eq!(before.len(), 6, "posts until more than 5 are pending");
        assert_eq!(log.borrow().len(), 20);
    }

    #[test]
    fn a_wait_ends_with_the_run() {
        let (lane, deadline) = lane();
        let (idle, wakeups) = (Idle::default(), Wakeups::default());
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
        let (idle, wakeups) = (Idle::default(), Wakeups::default());
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
    fn tickets_add_up() {
        for (total, workers) in [(0, 1), (1, 8), (1000, 3), (100_000, 300)] {
            let tickets = Tickets::new(total, workers);
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
