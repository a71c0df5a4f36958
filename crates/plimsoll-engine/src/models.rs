//! Models, for `make models`, of state that workers on several lanes share. The lanes run their real loop; the lanes'
//! clock stands still.

use crate::file_pool::bits::Bits;
use crate::file_pool::{BlockCursor, Choice, EntryPool, Existence, RankPart, Want};
use crate::stage_state::{RankStates, StageRun};
use crate::sync::{BlockedCount, Broadcast, OpBudget, Semaphore, Wakeups};
use plimsoll_lane::{Deadline, Lane, LaneKind, Stopped, Task};
use plimsoll_measure::Clock;
use plimsoll_runtime::sync::atomic::{
    AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use plimsoll_runtime::sync::model::{explore, spawn};
use std::sync::Arc;

/// Runs one worker on a lane of this thread.
fn work<T>(kind: LaneKind, deadline: &Arc<Deadline>, worker: impl AsyncFnOnce(&Lane) -> T) -> T {
    let lane = Lane::new(kind, Clock::simulated(), deadline.clone());
    let mut result = None;
    let task: Task<'_> = Box::pin(async { result = Some(worker(&lane).await) });
    lane.run(vec![task]).unwrap();
    result.expect("a lane runs its worker to the end")
}

/// Entries of a fileset, and the worker that has each entry.
struct Files {
    pool: EntryPool,
    is_held: Vec<AtomicBool>,
    idle: BlockedCount,
}

impl Files {
    fn new(len: u32, existing: u64) -> Arc<Self> {
        Arc::new(Self {
            pool: EntryPool::new(len, |_| existing, RankPart::ALL_ENTRIES),
            is_held: (0..len).map(|_| AtomicBool::new(false)).collect(),
            idle: BlockedCount::default(),
        })
    }

    /// Takes an entry of the kind as workers do; waits while all entries of the kind are busy.
    async fn choose(&self, lane: &Lane, kind: Existence) -> Result<Option<u32>, Stopped> {
        let look = || self.pool.choose(kind, &mut BlockCursor::default());
        let mut choice = look();
        if choice == Choice::AllBusy {
            let want = Want::Any(kind, None);
            choice = self.pool.wait(want, lane, &self.idle, look).await?;
        }
        let Choice::Taken(entry) = choice else {
            return Ok(None);
        };
        let held = self.is_held[entry as usize].swap(true, Relaxed);
        assert!(!held, "entry {entry} is given to two workers");
        Ok(Some(entry))
    }

    fn release(&self, entry: u32, now: Existence) {
        self.is_held[entry as usize].store(false, Relaxed);
        self.pool.release(entry, now);
    }

    /// Takes an existing entry and releases the entry unchanged.
    async fn touch(&self, lane: &Lane) {
        let entry = self.choose(lane, Existence::Existing).await;
        let entry = entry.expect("the run goes on").expect("one exists");
        self.release(entry, Existence::Existing);
    }
}

#[test]
fn two_threads_take_different_numbers_and_lose_none() {
    explore(3, || {
        // The set has two words in the lowest level, and one word in a summary.
        let bits = Arc::new(Bits::new(128, [1 << 3, 1 << 5].into_iter()));
        let take = |bits: &Bits| {
            let found = bits.next(0, 128).filter(|i| bits.take(*i));
            found.or_else(|| bits.take_near(69, 128))
        };
        let other = spawn({
            let bits = bits.clone();
            move || take(&bits)
        });
        let mine = take(&bits);
        let theirs = other.join().unwrap();
        assert!(mine.is_none() || mine != theirs, "{mine:?} is taken twice");
        for i in [3, 69] {
            let is_taken = [mine, theirs].contains(&Some(i));
            assert_eq!(bits.contains(i), !is_taken, "{i}");
            assert_eq!(bits.next(i, i + 1).is_some(), !is_taken, "{i}");
        }
    });
}

#[test]
fn a_number_that_is_given_back_is_found_through_the_summaries() {
    explore(3, || {
        // The set has three levels. A thread takes the last number of a word while other threads insert numbers.
        let len = 66 * 64;
        let last = 65 * 64;
        let words = (0..66).map(|at| u64::from(at == 65));
        let bits = Arc::new(Bits::new(len, words));
        let taker = spawn({
            let bits = bits.clone();
            move || assert!(bits.take(last))
        });
        let giver = spawn({
            let bits = bits.clone();
            move || bits.insert(last + 1)
        });
        bits.insert(last + 2);
        taker.join().unwrap();
        giver.join().unwrap();
        assert_eq!(bits.next(0, len), Some(last + 1));
        assert_eq!(bits.next(last + 2, len), Some(last + 2));
        assert!(bits.take(last + 1) && bits.take(last + 2));
        assert_eq!(bits.next(0, len), None);
    });
}

#[test]
fn while_an_entry_exists_or_is_busy_a_worker_is_not_told_that_there_is_none() {
    explore(3, || {
        let files = Files::new(2, 0b01);
        let other = spawn({
            let files = files.clone();
            move || {
                // Entry 1 is created before entry 0 is deleted, so that an entry exists or is busy at any time.
                let mut cursor = BlockCursor::default();
                let pool = &files.pool;
                let missing = pool.choose(Existence::Missing, &mut cursor);
                assert_eq!(missing, Choice::Taken(1));
                pool.set_existence(Existence::Existing);
                pool.release(1, Existence::Existing);
                if pool.claim(0) == Choice::Taken(0) {
                    pool.set_existence(Existence::Missing);
                    pool.release(0, Existence::Missing);
                }
            }
        });
        let mut cursor = BlockCursor::default();
        let choice = files.pool.choose(Existence::Existing, &mut cursor);
        assert_ne!(choice, Choice::None);
        other.join().unwrap();
    });
}

#[test]
fn an_entry_goes_from_worker_to_worker_and_none_sleeps_for_ever() {
    for (kind, preemptions) in [(LaneKind::Reactor, 2), (LaneKind::Blocking, 2)] {
        explore(preemptions, move || {
            let files = Files::new(1, 1);
            let run = |files: Arc<Files>| {
                move || work(kind, &Arc::default(), async |lane| files.touch(lane).await)
            };
            let others: [_; 2] = std::array::from_fn(|_| spawn(run(files.clone())));
            run(files.clone())();
            for other in others {
                other.join().unwrap();
            }
            assert!(files.pool.is_idle_existing(0));
            assert_eq!((files.pool.existing_count(), files.idle.waiting()), (1, 0));
        });
    }
}

#[test]
fn a_worker_that_waits_for_a_missing_entry_gets_the_one_that_is_deleted() {
    explore(3, || {
        let files = Files::new(1, 1);
        let other = spawn({
            let files = files.clone();
            move || {
                if files.pool.claim(0) == Choice::Taken(0) {
                    files.pool.set_existence(Existence::Missing);
                    files.release(0, Existence::Missing);
                }
            }
        });
        let got = work(LaneKind::Reactor, &Arc::default(), async |lane| {
            files.choose(lane, Existence::Missing).await
        });
        other.join().unwrap();
        match got.expect("the run goes on") {
            Some(entry) => files.release(entry, Existence::Missing),
            // The worker looked for an entry before the other thread claimed the entry.
            None => assert!(files.pool.existing_count() == 0),
        }
        assert!(files.pool.is_idle_missing(0));
    });
}

#[test]
fn an_entry_given_to_a_worker_that_stops_goes_back() {
    explore(2, || {
        let files = Files::new(1, 1);
        assert_eq!(files.pool.claim(0), Choice::Taken(0));
        let deadline = Arc::new(Deadline::default());
        let waiter = spawn({
            let (files, deadline) = (files.clone(), deadline.clone());
            move || {
                work(LaneKind::Reactor, &deadline, async |lane| {
                    let got = files.choose(lane, Existence::Existing).await;
                    if let Ok(Some(entry)) = got {
                        files.release(entry, Existence::Existing);
                    }
                });
            }
        });
        let stopper = spawn(move || deadline.bring_forward(0));
        files.pool.release(0, Existence::Existing);
        stopper.join().unwrap();
        waiter.join().unwrap();
        assert!(files.pool.is_idle_existing(0), "the entry is lost");
        assert_eq!(files.idle.waiting(), 0);
    });
}

#[test]
fn an_event_between_the_look_and_the_wait_wakes_all() {
    explore(2, || {
        let shared = Arc::new((Broadcast::default(), AtomicBool::new(false)));
        let waiters: [_; 2] = std::array::from_fn(|_| {
            let shared = shared.clone();
            spawn(move || {
                let (list, has_occurred) = &*shared;
                let idle = BlockedCount::default();
                work(LaneKind::Reactor, &Arc::default(), async |lane| {
                    let look = || has_occurred.load(Acquire).then_some(());
                    list.until(lane, &idle, look).await
                })
                .unwrap();
            })
        });
        let (list, has_occurred) = &*shared;
        has_occurred.store(true, Release);
        list.wake_all();
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

#[test]
fn every_wakeup_of_a_block_is_seen() {
    explore(2, || {
        let wakeups = Arc::new(Wakeups::default());
        let waiter = spawn({
            let wakeups = wakeups.clone();
            move || {
                let idle = BlockedCount::default();
                work(LaneKind::Reactor, &Arc::default(), async |lane| {
                    let mut seen = 0;
                    while seen < 2 {
                        let now = wakeups.wait(lane, &idle, seen).await.unwrap();
                        assert!(now > seen);
                        seen = now;
                    }
                });
            }
        });
        wakeups.wake();
        wakeups.wake();
        waiter.join().unwrap();
    });
}

#[test]
fn what_is_posted_is_taken_and_no_poster_waits_for_ever() {
    explore(2, || {
        let semaphore = Arc::new(Semaphore::new(0));
        let posters: [_; 2] = std::array::from_fn(|_| {
            let semaphore = semaphore.clone();
            spawn(move || {
                let idle = BlockedCount::default();
                work(LaneKind::Reactor, &Arc::default(), async |lane| {
                    semaphore.post(lane, &idle, 1, true).await.unwrap();
                });
            })
        });
        let idle = BlockedCount::default();
        work(LaneKind::Reactor, &Arc::default(), async |lane| {
            semaphore.take(lane, &idle, 2, 0).await.unwrap();
        });
        for poster in posters {
            poster.join().unwrap();
        }
        assert_eq!(semaphore.posted(), 0);
    });
}

#[test]
fn ranks_agree_on_the_most_rounds() {
    explore(2, || {
        let states = RankStates {
            position: vec![0; 2],
            made: vec![0; 2],
        };
        let run = Arc::new(StageRun::new(0, states, 2, false, Arc::default()));
        let rank = |run: Arc<StageRun>, rank: u32, rounds: u64| {
            move || {
                let idle = BlockedCount::default();
                let agreed = work(LaneKind::Reactor, &Arc::default(), async |lane| {
                    run.agreed(lane, &idle, rank, rounds).await
                });
                assert_eq!(agreed, Ok(5));
            }
        };
        let other = spawn(rank(run.clone(), 0, 5));
        rank(run, 1, 3)();
        other.join().unwrap();
    });
}

#[test]
fn operations_of_a_budget_are_granted_once() {
    explore(3, || {
        let budget = OpBudget::new(5, 2);
        let take = |budget: Arc<OpBudget>| {
            move || std::iter::from_fn(|| Some(budget.take()).filter(|n| *n > 0)).sum::<u64>()
        };
        let other = spawn(take(budget.clone()));
        let mine = take(budget.clone())();
        assert_eq!(mine + other.join().unwrap(), 5);
        assert_eq!(budget.take(), 0);
    });
}
