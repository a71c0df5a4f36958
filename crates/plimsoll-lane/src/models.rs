//! Models, for `make models`, of lanes that other threads wake and stop. The lanes run their real loop; the lanes'
//! clock stands still.

use crate::{Deadline, Lane, LaneKind, Stopped, Task};
use plimsoll_measure::Clock;
use plimsoll_runtime::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Release};
use plimsoll_runtime::sync::model::{explore, spawn};
use plimsoll_runtime::sync::{Mutex, lock};
use std::sync::Arc;
use std::task::{Poll, Waker};

fn lane(kind: LaneKind, deadline: &Arc<Deadline>) -> Lane {
    Lane::new(kind, Clock::simulated(), deadline.clone())
}

/// An event for which a task waits, and which another thread reports.
#[derive(Default)]
struct Event {
    has_occurred: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Event {
    async fn wait(&self) {
        std::future::poll_fn(|context| {
            *lock(&self.waker) = Some(context.waker().clone());
            match self.has_occurred.load(Acquire) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    fn report(&self) {
        self.has_occurred.store(true, Release);
        let waker = lock(&self.waker).take();
        waker.into_iter().for_each(Waker::wake);
    }
}

#[test]
fn a_lane_that_falls_asleep_is_woken() {
    for kind in [LaneKind::Blocking, LaneKind::Reactor] {
        explore(4, move || {
            let event = Arc::new(Event::default());
            let sleeper = spawn({
                let event = event.clone();
                move || {
                    let lane = lane(kind, &Arc::default());
                    let task: Task<'_> = Box::pin(event.wait());
                    lane.run(vec![task]).unwrap();
                }
            });
            event.report();
            // After a lost wakeup the sleeper would sleep for ever, which the checker reports.
            sleeper.join().unwrap();
        });
    }
}

#[test]
fn each_of_two_threads_wakes_its_own_task() {
    explore(2, || {
        let events: [Arc<Event>; 2] = std::array::from_fn(|_| Arc::default());
        let sleeper = spawn({
            let events = events.clone();
            move || {
                let lane = lane(LaneKind::Reactor, &Arc::default());
                let wait = |event: &Arc<Event>| -> Task<'static> {
                    let event = event.clone();
                    Box::pin(async move { event.wait().await })
                };
                lane.run(events.iter().map(wait).collect()).unwrap();
            }
        });
        let [first, second] = events;
        let other = spawn(move || second.report());
        first.report();
        other.join().unwrap();
        sleeper.join().unwrap();
    });
}

#[test]
fn a_task_is_polled_after_the_last_of_its_wakeups() {
    explore(3, || {
        let count = Arc::new(AtomicU32::new(0));
        let waker = Arc::new(Mutex::new(None::<Waker>));
        let sleeper = spawn({
            let (count, waker) = (count.clone(), waker.clone());
            move || {
                let lane = lane(LaneKind::Reactor, &Arc::default());
                let task: Task<'_> = Box::pin(std::future::poll_fn(|context| {
                    lock(&waker).get_or_insert_with(|| context.waker().clone());
                    match count.load(Acquire) {
                        2 => Poll::Ready(()),
                        _ => Poll::Pending,
                    }
                }));
                lane.run(vec![task]).unwrap();
            }
        });
        for number in 1..=2 {
            count.store(number, Release);
            // The second wakeup uses the waker of the first wakeup, before or after the lane has seen the first wakeup.
            let waker = lock(&waker).clone();
            waker.iter().for_each(Waker::wake_by_ref);
        }
        sleeper.join().unwrap();
    });
}

#[test]
fn a_deadline_that_is_brought_forward_ends_the_waits_of_every_lane() {
    explore(3, || {
        let deadline = Arc::new(Deadline::default());
        let sleepers: [_; 2] = std::array::from_fn(|_| {
            let deadline = deadline.clone();
            spawn(move || {
                // The lane may be made before, while or after the deadline is brought forward.
                let lane = lane(LaneKind::Reactor, &deadline);
                let mut ended = None;
                let task: Task<'_> = Box::pin(async {
                    ended = Some(lane.sleep_until(u64::MAX).await);
                });
                lane.run(vec![task]).unwrap();
                assert_eq!(ended, Some(Err(Stopped)));
            })
        });
        deadline.bring_forward(0);
        for sleeper in sleepers {
            sleeper.join().unwrap();
        }
        assert!(
            deadline.has_no_lanes(),
            "lanes that have ended are notified"
        );
    });
}

#[test]
fn of_two_deadlines_the_earlier_holds() {
    explore(4, || {
        let deadline = Arc::new(Deadline::default());
        let other = spawn({
            let deadline = deadline.clone();
            move || deadline.bring_forward(20)
        });
        deadline.bring_forward(30);
        assert!([20, 30].contains(&deadline.at()));
        other.join().unwrap();
        assert_eq!(deadline.at(), 20);
    });
}
