//! Counting semaphores on which `semblock` operations wait and to which `sempost` operations post.

use super::{BlockedCount, Fifo, Wait, WaitQueue, Woken, lock};
use plimsoll_lane::{Lane, Stopped};
use plimsoll_runtime::sync::Mutex;
use std::task::Waker;

/// The semaphore of one worker's semblock.
///
/// Each change also executes the waiting takes and posts that have become possible, in the order of arrival, and wakes
/// their workers.
pub(crate) struct Semaphore {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    posted: u64,
    /// Number of posts above which blocking posters wait.
    high_water: u64,
    /// Whether the taker's worker has ended and will not take again.
    retired: bool,
    /// Takers and their counts; at most one taker, because a semblock has one worker.
    takers: Fifo<u64, ()>,
    /// Blocking posters and their counts.
    posters: Fifo<u64, ()>,
}

impl State {
    /// Whether a blocking poster need not wait: posts are not above the high water, or the taker waits for more than is
    /// posted, or the taker has ended.
    fn takes_posts(&self) -> bool {
        let wanted = self.takers.first().copied().unwrap_or(0);
        self.posted <= self.high_water || self.posted < wanted || self.retired
    }

    /// Removes `count` posts.
    fn withdraw(&mut self, count: u64) {
        debug_assert!(self.posted >= count, "more is taken than was posted");
        self.posted -= count;
    }

    /// Executes the waiting takes and posts that are possible.
    fn advance(&mut self) -> Woken {
        let mut woken = Woken::default();
        loop {
            match (self.takers.first(), self.posters.first()) {
                (Some(&count), _) if self.posted >= count => {
                    self.withdraw(count);
                    woken.add(self.takers.grant(()));
                }
                (_, Some(&count)) if self.takes_posts() => {
                    self.posted = self.posted.saturating_add(count);
                    woken.add(self.posters.grant(()));
                }
                _ => return woken,
            }
        }
    }
}

/// A position in the queue of takers or in the queue of posters.
#[derive(Clone, Copy)]
pub(crate) enum QueueKind {
    Taker { at: u32, count: u64 },
    Poster { at: u32 },
}

impl WaitQueue for Semaphore {
    type Position = QueueKind;
    type Grant = ();

    fn take(&self, place: QueueKind, waker: &Waker) -> Option<()> {
        let mut state = lock(&self.state);
        match place {
            QueueKind::Taker { at, .. } => state.takers.take(at, waker),
            QueueKind::Poster { at } => state.posters.take(at, waker),
        }
    }

    fn leave(&self, place: QueueKind) {
        let mut state = lock(&self.state);
        match place {
            QueueKind::Taker { at, count } => {
                if state.takers.leave(at).is_some() {
                    state.posted = state.posted.saturating_add(count);
                }
            }
            // The posts of a poster that leaves after its grant stay.
            QueueKind::Poster { at } => drop(state.posters.leave(at)),
        }
        let woken = state.advance();
        drop(state);
        woken.wake();
    }
}

impl Semaphore {
    pub(crate) fn new(high_water: u64) -> Self {
        Self {
            state: Mutex::new(State {
                high_water,
                ..State::default()
            }),
        }
    }

    /// Waits until `count` posts are pending, and takes the posts.
    pub(crate) async fn take(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        count: u64,
        high_water: u64,
    ) -> Result<(), Stopped> {
        let (woken, place) = {
            let mut state = lock(&self.state);
            state.high_water = high_water;
            let place = match state.posted >= count {
                true => {
                    state.withdraw(count);
                    None
                }
                false => Some(QueueKind::Taker {
                    at: state.takers.join(count),
                    count,
                }),
            };
            // Posters may continue, whether the taker takes or waits: after a take the semaphore has room again, and a
            // waiting taker may need more than the high water allows.
            (state.advance(), place)
        };
        woken.wake();
        match place {
            Some(place) => Wait::at(self, place, lane, idle).await,
            None => Ok(()),
        }
    }

    /// Posts `count`. If `blocking`, waits while more than the high water is pending, unless the taker waits for more
    /// than is pending.
    pub(crate) async fn post(
        &self,
        lane: &Lane,
        idle: &BlockedCount,
        count: u64,
        blocking: bool,
    ) -> Result<(), Stopped> {
        let (woken, place) = {
            let mut state = lock(&self.state);
            // While other posters wait, the semaphore has no room.
            if blocking && !state.takes_posts() {
                let at = state.posters.join(count);
                (Woken::default(), Some(QueueKind::Poster { at }))
            } else {
                state.posted = state.posted.saturating_add(count);
                (state.advance(), None)
            }
        };
        woken.wake();
        match place {
            Some(place) => Wait::at(self, place, lane, idle).await,
            None => Ok(()),
        }
    }

    /// Posts that no waiter has taken.
    #[cfg(all(test, loom))]
    pub(crate) fn posted(&self) -> u64 {
        lock(&self.state).posted
    }

    /// Releases all posters, because the taker's worker has ended.
    pub(crate) fn release_posters(&self) {
        let mut state = lock(&self.state);
        state.retired = true;
        let woken = state.advance();
        drop(state);
        woken.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_lane::{Deadline, LaneKind, Task};
    use plimsoll_measure::Clock;
    use std::cell::{Cell, RefCell};
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
    use std::task::{Context, Poll, Wake};

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
        let (idle, semaphore, takes) = (BlockedCount::default(), Semaphore::new(0), Cell::new(0));
        let taker: Task<'_> = Box::pin(async {
            for _ in 0..10 {
                semaphore.take(&lane, &idle, 30, 10).await.unwrap();
                takes.set(takes.get() + 1);
            }
        });
        // The taker needs 30 at a time although the high water is 10: posters must not block the taker.
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
            BlockedCount::default(),
            Semaphore::new(5),
            RefCell::new(Vec::new()),
        );
        let poster: Task<'_> = Box::pin(async {
            for i in 0..20 {
                semaphore.post(&lane, &idle, 1, true).await.unwrap();
                log.borrow_mut().push((i, lane.now()));
            }
        });
        let taker: Task<'_> = Box::pin(async {
            lane.uncancellable_sleep_until(100).await;
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

    #[derive(Default)]
    struct Count(AtomicU64);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn what_is_taken_lets_as_many_post_as_there_is_room_for_in_order() {
        let (lane, _) = lane();
        let (idle, semaphore) = (BlockedCount::default(), Semaphore::new(3));
        let counts: Vec<Arc<Count>> = (0..1000).map(|_| Arc::default()).collect();
        let mut posters: Vec<_> = (0..1000)
            .map(|_| Box::pin(semaphore.post(&lane, &idle, 1, true)))
            .collect();
        let mut poll = |i: usize| {
            let waker = Waker::from(counts[i].clone());
            posters[i].as_mut().poll(&mut Context::from_waker(&waker))
        };
        let done: Vec<usize> = (0..1000).filter(|i| poll(*i).is_ready()).collect();
        assert_eq!(
            done,
            [0, 1, 2, 3],
            "until more than the high water are pending"
        );
        for round in 0..10 {
            let mut taker = Box::pin(semaphore.take(&lane, &idle, 3, 3));
            let taken = taker.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(taken, Poll::Ready(Ok(())));
            let next = 4 + 3 * round..4 + 3 * (round + 1);
            for i in next.clone() {
                assert_eq!(poll(i), Poll::Ready(Ok(())));
            }
            let woken = |i: &usize| counts[*i].0.load(SeqCst);
            assert_eq!(
                (0..1000).map(|i| woken(&i)).sum::<u64>(),
                next.end as u64 - 4
            );
            assert!(next.clone().all(|i| woken(&i) == 1), "{next:?}");
        }
    }

    #[test]
    fn a_taker_is_woken_when_there_is_enough_and_not_before() {
        let (lane, _) = lane();
        let (idle, semaphore) = (BlockedCount::default(), Semaphore::new(0));
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut taker = Box::pin(semaphore.take(&lane, &idle, 100, 10));
        let mut poll = || taker.as_mut().poll(&mut Context::from_waker(&waker));
        assert_eq!(poll(), Poll::Pending);
        for posted in 1..=100u64 {
            assert_eq!(count.0.load(SeqCst), 0, "{posted}");
            let mut post: Pin<Box<dyn Future<Output = _>>> =
                Box::pin(semaphore.post(&lane, &idle, 1, true));
            let posted = post.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert_eq!(posted, Poll::Ready(Ok(())));
        }
        assert_eq!((count.0.load(SeqCst), poll()), (1, Poll::Ready(Ok(()))));
        assert_eq!(lock(&semaphore.state).posted, 0);
    }

    #[test]
    fn who_leaves_gives_back_what_it_was_given() {
        let (lane, _) = lane();
        let (idle, semaphore) = (BlockedCount::default(), Semaphore::new(0));
        let mut taker = Box::pin(semaphore.take(&lane, &idle, 2, 0));
        let noop = &mut Context::from_waker(Waker::noop());
        assert_eq!(taker.as_mut().poll(noop), Poll::Pending);
        let post = std::pin::pin!(semaphore.post(&lane, &idle, 2, false));
        assert_eq!(post.poll(noop), Poll::Ready(Ok(())));
        assert_eq!(lock(&semaphore.state).posted, 0, "the taker has them");
        drop(taker);
        assert_eq!(lock(&semaphore.state).posted, 2);
        assert_eq!(idle.waiting(), 0);
    }
}
