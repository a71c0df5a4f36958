use super::*;
use crate::file_pool::entries::BlockCursor;
use plimsoll_lane::{Deadline, LaneKind, Task};
use plimsoll_measure::Clock;
use proptest::prelude::*;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll, Wake};

#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn entries(len: u32, present: u64) -> EntryPool {
    EntryPool::new(len, |_| present, RankPart::ALL_ENTRIES)
}

fn lane() -> Lane {
    let deadline = Arc::new(Deadline::default());
    Lane::new(LaneKind::Virtual, Clock::simulated(), deadline)
}

type Waiter<'a> = Pin<Box<dyn Future<Output = Result<Choice, Stopped>> + 'a>>;

/// Waits for an entry like a worker that found no idle entry.
fn waiter<'a>(
    entries: &'a EntryPool,
    want: Want,
    lane: &'a Lane,
    idle: &'a BlockedCount,
) -> Waiter<'a> {
    let look = move || match want {
        Want::Any(kind, number) => entries.choose_at(kind, number.unwrap_or(0)),
        Want::This(i) => entries.claim(i),
    };
    Box::pin(entries.wait(want, lane, idle, look))
}

const PRESENT: Want = Want::Any(Existence::Existing, None);
const ABSENT: Want = Want::Any(Existence::Missing, None);

#[test]
fn a_release_wakes_the_first_and_no_other_however_many_wait() {
    let (set, lane, idle) = (entries(1, 1), lane(), BlockedCount::default());
    assert_eq!(set.claim(0), Choice::Taken(0));
    let woken = Arc::new(Count::default());
    let waker = Waker::from(woken.clone());
    let context = &mut Context::from_waker(&waker);
    let mut waiters: Vec<_> = (0..10_000)
        .map(|_| waiter(&set, PRESENT, &lane, &idle))
        .collect();
    assert!(
        waiters
            .iter_mut()
            .all(|w| w.as_mut().poll(context).is_pending())
    );
    for (released, waiter) in (1..).zip(&mut waiters) {
        set.release(0, Existence::Existing);
        assert_eq!(woken.0.load(SeqCst), released, "one wakeup a release");
        // The entry already belongs to the first waiter: no later worker can take the entry before the waiter does.
        assert_eq!(
            set.choose(Existence::Existing, &mut BlockCursor::default()),
            Choice::AllBusy
        );
        let got = waiter.as_mut().poll(context);
        assert_eq!(
            got,
            Poll::Ready(Ok(Choice::Taken(0))),
            "in order of arrival"
        );
    }
    set.release(0, Existence::Existing);
    assert_eq!((woken.0.load(SeqCst), idle.waiting()), (10_000, 0));
    assert!(set.is_idle_existing(0) && !set.has_waiters());
}

#[test]
fn waiters_for_the_other_kind_are_released_when_no_worker_is_left() {
    let (set, lane, idle) = (entries(2, 0b11), lane(), BlockedCount::default());
    let woken = Arc::new(Count::default());
    let waker = Waker::from(woken.clone());
    let context = &mut Context::from_waker(&waker);
    assert_eq!(
        (set.claim(0), set.claim(1)),
        (Choice::Taken(0), Choice::Taken(1))
    );
    let mut absent: Vec<_> = (0..3).map(|_| waiter(&set, ABSENT, &lane, &idle)).collect();
    assert!(
        absent
            .iter_mut()
            .all(|w| w.as_mut().poll(context).is_pending())
    );
    set.release(0, Existence::Existing);
    assert_eq!(
        woken.0.load(SeqCst),
        0,
        "the other may become a missing one"
    );
    set.release(1, Existence::Existing);
    assert_eq!(woken.0.load(SeqCst), 3);
    for w in &mut absent {
        assert_eq!(w.as_mut().poll(context), Poll::Ready(Ok(Choice::None)));
    }
    // An entry that is deleted goes to the first waiter for missing entries.
    assert_eq!(set.claim(0), Choice::Taken(0));
    let mut absent = waiter(&set, ABSENT, &lane, &idle);
    assert!(absent.as_mut().poll(context).is_pending());
    set.set_existence(Existence::Missing);
    set.release(0, Existence::Missing);
    assert_eq!(
        absent.as_mut().poll(context),
        Poll::Ready(Ok(Choice::Taken(0)))
    );
}

#[test]
fn who_waits_for_one_entry_and_who_waits_for_any_take_turns_by_arrival() {
    let (set, lane, idle) = (entries(2, 0b11), lane(), BlockedCount::default());
    let context = &mut Context::from_waker(Waker::noop());
    assert_eq!(
        (set.claim(0), set.claim(1)),
        (Choice::Taken(0), Choice::Taken(1))
    );
    let wants = [
        Want::This(0),
        PRESENT,
        Want::This(0),
        Want::This(1),
        PRESENT,
    ];
    let mut waiters: Vec<_> = wants
        .iter()
        .map(|w| waiter(&set, *w, &lane, &idle))
        .collect();
    let mut poll = |i: usize| waiters[i].as_mut().poll(context);
    assert!((0..5).all(|i| poll(i).is_pending()));
    for next in [0, 1, 2, 4] {
        set.release(0, Existence::Existing);
        assert_eq!(poll(next), Poll::Ready(Ok(Choice::Taken(0))), "{next}");
    }
    set.set_existence(Existence::Missing);
    set.release(1, Existence::Missing);
    assert_eq!(
        poll(3),
        Poll::Ready(Ok(Choice::None)),
        "it does not exist any more"
    );
    assert!(lock(&set.queues).claims.is_empty());
}

#[test]
fn who_is_dropped_or_stopped_passes_on_what_it_was_given() {
    let (set, idle) = (entries(1, 1), BlockedCount::default());
    let deadline = Arc::new(Deadline::default());
    let lane = Lane::new(LaneKind::Virtual, Clock::simulated(), deadline.clone());
    let context = &mut Context::from_waker(Waker::noop());
    assert_eq!(set.claim(0), Choice::Taken(0));
    let mut waiters: Vec<_> = (0..4)
        .map(|_| waiter(&set, PRESENT, &lane, &idle))
        .collect();
    assert!(
        waiters
            .iter_mut()
            .all(|w| w.as_mut().poll(context).is_pending())
    );
    drop(waiters.remove(1));
    set.release(0, Existence::Existing);
    // The first waiter has the entry and leaves; the third waiter is next.
    drop(waiters.remove(0));
    assert_eq!(
        waiters[0].as_mut().poll(context),
        Poll::Ready(Ok(Choice::Taken(0)))
    );
    set.release(0, Existence::Existing);
    deadline.bring_forward(0);
    assert_eq!(waiters[1].as_mut().poll(context), Poll::Ready(Err(Stopped)));
    waiters.clear();
    assert!(set.is_idle_existing(0) && !set.has_waiters());
    assert_eq!(idle.waiting(), 0);
}

/// A blocking lane, which drives a single worker.
fn lane_of_one() -> Lane {
    let deadline = Arc::new(Deadline::default());
    Lane::new(LaneKind::Blocking, Clock::real(), deadline)
}

#[test]
fn a_worker_with_a_thread_of_its_own_tries_and_is_handed_one_in_the_end() {
    let (set, lane, idle) = (entries(1, 1), lane_of_one(), BlockedCount::default());
    let counts: [Arc<Count>; 2] = Default::default();
    let wakers = counts.clone().map(Waker::from);
    let woken = || [0, 1].map(|i: usize| counts[i].0.load(SeqCst));
    assert_eq!(set.claim(0), Choice::Taken(0));
    let mut waiters: Vec<_> = (0..2)
        .map(|_| waiter(&set, PRESENT, &lane, &idle))
        .collect();
    let mut poll = |i: usize| {
        let context = &mut Context::from_waker(&wakers[i]);
        waiters[i].as_mut().poll(context)
    };
    assert!(poll(0).is_pending() && poll(1).is_pending());
    for tried in 1..=u64::from(MAX_RETRIES_BEFORE_GRANT) {
        // The worker that has the entry keeps working before the first waiter is awake.
        for _ in 0..5 {
            set.release(0, Existence::Existing);
            assert_eq!(woken(), [tried, 0], "one, and once until it has tried");
            assert_eq!(set.claim(0), Choice::Taken(0));
        }
        assert!(poll(0).is_pending());
    }
    set.release(0, Existence::Existing);
    assert_eq!(set.claim(0), Choice::AllBusy, "it is kept for the first");
    assert_eq!(poll(0), Poll::Ready(Ok(Choice::Taken(0))));
    // The second waiter begins to retry.
    set.release(0, Existence::Existing);
    assert_eq!(woken(), [u64::from(MAX_RETRIES_BEFORE_GRANT) + 1, 1]);
    assert_eq!(poll(1), Poll::Ready(Ok(Choice::Taken(0))));
    set.release(0, Existence::Existing);
    assert!(set.is_idle_existing(0) && !set.has_waiters());
}

#[test]
fn who_got_one_wakes_the_next_if_there_is_another() {
    let (set, lane, idle) = (entries(3, 0b111), lane_of_one(), BlockedCount::default());
    let counts: [Arc<Count>; 4] = Default::default();
    let wakers = counts.clone().map(Waker::from);
    let woken = || [0, 1, 2, 3].map(|i: usize| counts[i].0.load(SeqCst));
    (0..3).for_each(|i| assert_eq!(set.claim(i), Choice::Taken(i)));
    let wait = |_| Some(waiter(&set, PRESENT, &lane, &idle));
    let mut waiters: Vec<Option<Waiter<'_>>> = (0..4).map(wait).collect();
    let poll = |waiters: &mut Vec<Option<Waiter<'_>>>, i: usize| {
        let context = &mut Context::from_waker(&wakers[i]);
        waiters[i].as_mut().unwrap().as_mut().poll(context)
    };
    assert!((0..4).all(|i| poll(&mut waiters, i).is_pending()));
    (0..3).for_each(|i| set.release(i, Existence::Existing));
    assert_eq!(woken(), [1, 0, 0, 0]);
    assert!(matches!(
        poll(&mut waiters, 0),
        Poll::Ready(Ok(Choice::Taken(_)))
    ));
    assert_eq!(woken(), [1, 1, 0, 0]);
    // A waiter that leaves passes its retry to the next waiter.
    waiters[1] = None;
    assert_eq!(woken(), [1, 1, 1, 0]);
    assert!(matches!(
        poll(&mut waiters, 2),
        Poll::Ready(Ok(Choice::Taken(_)))
    ));
    assert!(matches!(
        poll(&mut waiters, 3),
        Poll::Ready(Ok(Choice::Taken(_)))
    ));
    assert_eq!(woken(), [1, 1, 1, 1]);
}

#[test]
fn workers_on_blocking_lanes_learn_that_none_is_left() {
    let (set, lane, idle) = (entries(2, 0b11), lane_of_one(), BlockedCount::default());
    let context = &mut Context::from_waker(Waker::noop());
    (0..2).for_each(|i| assert_eq!(set.claim(i), Choice::Taken(i)));
    let mut waiters: Vec<_> = (0..3)
        .map(|_| waiter(&set, PRESENT, &lane, &idle))
        .collect();
    assert!(
        waiters
            .iter_mut()
            .all(|w| w.as_mut().poll(context).is_pending())
    );
    for i in 0..2 {
        assert!(
            waiters
                .iter_mut()
                .all(|w| w.as_mut().poll(context).is_pending())
        );
        set.set_existence(Existence::Missing);
        set.release(i, Existence::Missing);
    }
    for w in &mut waiters {
        assert_eq!(w.as_mut().poll(context), Poll::Ready(Ok(Choice::None)));
    }
    assert!(!set.has_waiters());
}

#[derive(Debug, Clone)]
enum Step {
    /// A new worker takes an entry that fits the request, or waits for an entry.
    Want(Want),
    /// A holder, by its index among the present holders, releases its entry, changed or not.
    Release(usize, bool),
    /// A waiter, by its index among the present waiters, is dropped.
    Drop(usize),
}

const ENTRIES: u32 = 3;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![Just(Existence::Existing), Just(Existence::Missing)];
    let want = prop_oneof![
        3 => (kind, prop::option::of(0..9u64)).prop_map(|(kind, n)| Want::Any(kind, n)),
        1 => (0..ENTRIES).prop_map(Want::This),
    ];
    let step = prop_oneof![
        4 => want.prop_map(Step::Want),
        3 => (0..9usize, any::<bool>()).prop_map(|(i, changed)| Step::Release(i, changed)),
        1 => (0..9usize).prop_map(Step::Drop),
    ];
    prop::collection::vec(step, 0..200)
}

proptest! {
    /// No worker waits while an entry is idle for it, no waiter is passed over, and a release wakes at most one worker,
    /// unless the release informs several workers that no entry is left.
    #[test]
    fn nothing_is_lost_and_nobody_is_passed_over(steps in steps(), present in 0..8u64) {
        let (set, lane, idle) = (entries(ENTRIES, present), lane(), BlockedCount::default());
        let mut waiting: Vec<(Want, Arc<Count>, Waiter<'_>)> = Vec::new();
        let mut held: Vec<(u32, Existence)> = Vec::new();
        let kind_of = |want: Want| match want {
            Want::Any(kind, _) => kind,
            Want::This(_) => Existence::Existing,
        };
        for step in steps {
            match step {
                Step::Want(want) => {
                    let mut new = waiter(&set, want, &lane, &idle);
                    let count = Arc::new(Count::default());
                    let waker = Waker::from(count.clone());
                    match new.as_mut().poll(&mut Context::from_waker(&waker)) {
                        Poll::Ready(Ok(Choice::Taken(i))) => held.push((i, kind_of(want))),
                        Poll::Ready(_) => {}
                        Poll::Pending => waiting.push((want, count, new)),
                    }
                }
                Step::Release(n, changed) if !held.is_empty() => {
                    let (i, was) = held.remove(n % held.len());
                    let now = if changed { was.other() } else { was };
                    if changed {
                        set.set_existence(now);
                    }
                    set.release(i, now);
                }
                Step::Drop(n) if !waiting.is_empty() => drop(waiting.remove(n % waiting.len())),
                Step::Release(..) | Step::Drop(_) => {}
            }
            // Woken workers get entries, in the order of arrival.
            let mut taken = 0;
            let mut still: Vec<(Want, Arc<Count>, Waiter<'_>)> = Vec::new();
            for (want, count, mut future) in std::mem::take(&mut waiting) {
                let waker = Waker::from(count.clone());
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                prop_assert_eq!(u64::from(polled.is_ready()), count.0.load(SeqCst));
                match polled {
                    Poll::Ready(Ok(Choice::Taken(i))) => {
                        let earlier = still.iter().any(|(w, ..)| match (*w, want) {
                            (Want::Any(a, _), _) => a == kind_of(want),
                            (Want::This(a), _) => a == i,
                        });
                        prop_assert!(!earlier, "{:?} came before", want);
                        held.push((i, kind_of(want)));
                        taken += 1;
                    }
                    Poll::Ready(choice) => prop_assert_eq!(choice, Ok(Choice::None)),
                    Poll::Pending => still.push((want, count, future)),
                }
            }
            waiting = still;
            prop_assert!(taken <= 1);
            // Each entry is either idle or held, and held by one worker.
            for i in 0..ENTRIES {
                let holders = held.iter().filter(|(h, _)| *h == i).count() as u32;
                let idle = u32::from(set.is_idle_existing(i)) + u32::from(set.is_idle_missing(i));
                prop_assert_eq!(holders + idle, 1, "entry {}", i);
            }
            for (want, ..) in &waiting {
                let may_go_on = match *want {
                    Want::Any(Existence::Existing, _) => (0..ENTRIES).any(|i| set.is_idle_existing(i)),
                    Want::Any(Existence::Missing, _) => (0..ENTRIES).any(|i| set.is_idle_missing(i)),
                    Want::This(i) => set.is_idle_existing(i) || set.is_idle_missing(i),
                };
                prop_assert!(!may_go_on && !held.is_empty(), "{:?} waits for nothing", want);
            }
        }
    }
}

/// Workers of several lanes use few entries: no entry is held by two workers at a time, no entry is lost, and every
/// worker ends: once at the end of its work, and once stopped in the middle.
#[test]
fn entries_go_from_lane_to_lane() {
    let kinds = [(LaneKind::Reactor, 50), (LaneKind::Blocking, 1)];
    for ((kind, tasks), stopped) in kinds.into_iter().flat_map(|k| [(k, false), (k, true)]) {
        let (set, idle) = (entries(3, 0b111), BlockedCount::default());
        let holders: [AtomicU64; 3] = Default::default();
        let (done, deadline) = (AtomicU64::new(0), Arc::new(Deadline::default()));
        let clock = Clock::real();
        std::thread::scope(|scope| {
            let lanes = if tasks == 1 { 16 } else { 4 };
            for t in 0..lanes {
                let (clock, deadline) = (clock.clone(), deadline.clone());
                let (set, idle, holders, done) = (&set, &idle, &holders, &done);
                scope.spawn(move || {
                    let lane = Lane::new(kind, clock, deadline.clone());
                    let (lane, deadline) = (&lane, &deadline);
                    let work = |n: u64| -> Task<'_> {
                        Box::pin(async move {
                            for round in 0..200u64 {
                                let want = match (n + round) % 3 {
                                    0 => Want::This((round % 3) as u32),
                                    _ => PRESENT,
                                };
                                let look = || match want {
                                    Want::Any(kind, _) => set.choose_at(kind, n),
                                    Want::This(i) => set.claim(i),
                                };
                                let choice = match look() {
                                    Choice::AllBusy => set.wait(want, lane, idle, look).await,
                                    choice => Ok(choice),
                                };
                                let Ok(Choice::Taken(i)) = choice else {
                                    assert_eq!(choice, Err(Stopped));
                                    return;
                                };
                                let before = holders[i as usize].fetch_add(1, SeqCst);
                                assert_eq!(before, 0, "entry {i} is had twice");
                                if round % 7 == 0 {
                                    lane.uncancellable_sleep_until(lane.now() + 1000).await;
                                }
                                holders[i as usize].fetch_sub(1, SeqCst);
                                set.release(i, Existence::Existing);
                                let all = done.fetch_add(1, Relaxed);
                                if stopped && all == 500 {
                                    deadline.bring_forward(lane.now());
                                }
                            }
                        })
                    };
                    lane.run((0..tasks).map(|n| work(t * tasks + n)).collect())
                        .unwrap();
                });
            }
        });
        if !stopped {
            let workers = if tasks == 1 { 16 } else { 4 * tasks };
            assert_eq!(done.load(Relaxed), workers * 200);
        }
        assert!((0..3).all(|i| set.is_idle_existing(i)), "none is lost");
        assert!(!set.has_waiters() && idle.waiting() == 0);
    }
}

/// In virtual time, the workers of a lane take turns.
#[test]
fn workers_that_wait_take_turns() {
    let (set, lane, idle) = (entries(1, 1), lane(), BlockedCount::default());
    let order = RefCell::new(Vec::new());
    let work = |n: u32| -> Task<'_> {
        let (set, lane, idle, order) = (&set, &lane, &idle, &order);
        Box::pin(async move {
            for _ in 0..10 {
                let mut choice = set.choose_at(Existence::Existing, 0);
                if choice == Choice::AllBusy {
                    let look = || set.choose_at(Existence::Existing, 0);
                    choice = set.wait(PRESENT, lane, idle, look).await.unwrap();
                }
                assert_eq!(choice, Choice::Taken(0));
                order.borrow_mut().push(n);
                lane.uncancellable_sleep_until(lane.now() + 1000).await;
                set.release(0, Existence::Existing);
            }
        })
    };
    lane.run((0..100).map(work).collect()).unwrap();
    let round: Vec<u32> = (0..100).collect();
    assert_eq!(order.into_inner(), round.repeat(10));
}
