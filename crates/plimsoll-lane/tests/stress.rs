//! Lanes under load: no wake is lost, no timer starves, and the deadline ends every wait.

mod support;

use plimsoll_lane::{Deadline, Deadlock, Lane, LaneKind, Stopped, Task};
use plimsoll_measure::{Clock, Nanos};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};
use support::lane;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Maximum duration of a test: a longer test hangs because a wakeup was lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `test` on a separate thread, and fails if `test` does not end in time.
fn in_time(test: impl FnOnce() + Send + 'static) {
    let (ended, end) = channel();
    let thread = std::thread::spawn(move || {
        test();
        let _ = ended.send(());
    });
    let hangs = end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
    assert!(!hangs, "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Numbers that look random enough to shift two threads against each other.
fn scatter(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Letters from another thread to a worker, and the number of letters that the worker has read.
#[derive(Default)]
struct Mailbox {
    sent: Mutex<(u64, Option<Waker>)>,
    read: AtomicU64,
}

impl Mailbox {
    fn send(&self) {
        let mut sent = self.sent.lock().unwrap();
        sent.0 += 1;
        let waker = sent.1.take();
        drop(sent);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits until the worker has read all but `behind` letters.
    fn wait(&self, behind: u64) {
        let sent = self.sent.lock().unwrap().0;
        let mut looks = 0;
        while self.read.load(Acquire) + behind < sent {
            looks += 1;
            // The answer comes soon, unless the answering thread needs this processor.
            if looks % 1000 == 0 {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }

    /// Waits for more than `seen` letters; returns the number of letters.
    async fn receive(&self, seen: u64) -> u64 {
        poll_fn(|context| {
            let mut sent = self.sent.lock().unwrap();
            if sent.0 > seen {
                return Poll::Ready(sent.0);
            }
            sent.1 = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// A worker that reads `count` letters.
    async fn read_all(&self, count: u64) {
        let mut seen = 0;
        while seen < count {
            seen = self.receive(seen).await;
            self.read.store(seen, Release);
        }
        assert_eq!(seen, count, "more was read than was sent");
    }
}

/// Eight threads send `count` letters each, to worker `thread % workers` of a lane. With `behind` zero each letter
/// waits until the previous letter was read, so that every wakeup counts.
fn letters(kind: LaneKind, workers: usize, count: u64, behind: u64, polls: bool) {
    let boxes: Vec<_> = (0..8).map(|_| Mailbox::default()).collect();
    let left = AtomicU64::new(8);
    std::thread::scope(|scope| {
        for mailbox in &boxes {
            scope.spawn(|| {
                for _ in 0..count {
                    mailbox.send();
                    mailbox.wait(behind);
                }
                mailbox.wait(0);
                left.fetch_sub(1, Relaxed);
            });
        }
        let (lane, _) = lane(kind);
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let ended = Cell::new(0);
        let worker = |n: usize| -> Task<'_> {
            let (lane, boxes, ended, ours) = (lane.clone(), &boxes, &ended, &ours);
            Box::pin(async move {
                if polls {
                    // From now on the lane sleeps in its poller.
                    assert!(poll_once(lane.readable(ours.as_fd())).await.is_none());
                }
                let mine: Vec<_> = boxes.iter().skip(n).step_by(workers).collect();
                if let [one] = mine[..] {
                    one.read_all(count).await;
                } else {
                    any(&mine, count).await;
                }
                ended.set(ended.get() + 1);
            })
        };
        lane.run((0..workers).map(worker).collect()).unwrap();
        assert_eq!(ended.get(), workers);
    });
    assert_eq!(left.load(Relaxed), 0);
}

/// Polls a future once, and drops the future.
async fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = std::pin::pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// One worker that reads `count` letters from each of many boxes, whichever comes first.
async fn any(boxes: &[&Mailbox], count: u64) {
    let mut seen = vec![0; boxes.len()];
    while seen.iter().any(|s| *s < count) {
        poll_fn(|context| {
            let mut news = false;
            for (mailbox, seen) in boxes.iter().zip(&mut seen) {
                let mut sent = mailbox.sent.lock().unwrap();
                news |= sent.0 > *seen;
                *seen = sent.0;
                mailbox.read.store(*seen, Release);
                sent.1 = Some(context.waker().clone());
            }
            if news { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

#[test]
fn a_blocking_lane_loses_no_wake() {
    in_time(|| letters(LaneKind::Blocking, 1, 12_500, 0, false));
}

#[test]
fn a_reactor_lane_loses_no_wake() {
    in_time(|| letters(LaneKind::Reactor, 8, 12_500, 0, false));
}

#[test]
fn a_reactor_lane_that_polls_descriptors_loses_no_wake() {
    in_time(|| letters(LaneKind::Reactor, 8, 6_250, 0, true));
}

#[test]
fn letters_in_bursts_are_all_read() {
    in_time(|| {
        letters(LaneKind::Blocking, 1, 25_000, 100, false);
        letters(LaneKind::Reactor, 4, 25_000, 1000, false);
    });
}

#[test]
fn one_thread_and_a_lane_that_falls_asleep_each_time() {
    in_time(|| {
        for polls in [false, true] {
            let mailbox = Mailbox::default();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for i in 0..20_000 {
                        // The letter arrives while the lane is about to fall asleep, or has just fallen asleep.
                        for _ in 0..scatter(i) % 300 {
                            std::hint::spin_loop();
                        }
                        mailbox.send();
                        mailbox.wait(0);
                    }
                });
                let (lane, _) = lane(LaneKind::Reactor);
                let (ours, _theirs) = UnixStream::pair().unwrap();
                let task: Task<'_> = Box::pin(async {
                    if polls {
                        assert!(poll_once(lane.readable(ours.as_fd())).await.is_none());
                    }
                    mailbox.read_all(20_000).await;
                });
                lane.run(vec![task]).unwrap();
            });
        }
    });
}

/// Starts a thread that brings the deadline forward at a random moment after each `go`.
fn racer(deadline: Arc<Deadline>, rounds: u64, go: Arc<AtomicU64>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for round in 1..=rounds {
            while go.load(Acquire) < round {
                std::thread::yield_now();
            }
            for _ in 0..scatter(round) % 3_000 {
                std::hint::spin_loop();
            }
            deadline.bring_forward(0);
        }
    })
}

/// Races the deadline with sleeps: each sleep ends at its time or at the deadline, whichever is first. Returns the
/// number of sleeps that the deadline ended.
fn race(kind: LaneKind, rounds: u64, sleep: impl Fn(u64) -> Nanos) -> u64 {
    let (lane, deadline) = lane(kind);
    let go = Arc::new(AtomicU64::new(0));
    let racer = racer(deadline.clone(), rounds, go.clone());
    let stopped = Cell::new(0);
    for round in 1..=rounds {
        deadline.clear();
        let task: Task<'_> = Box::pin(async {
            go.store(round, Release);
            let due = lane.now().saturating_add(sleep(round));
            match lane.sleep_until(due).await {
                Ok(()) => assert!(lane.now() >= due, "woken early"),
                Err(Stopped) => {
                    assert_eq!(lane.deadline(), 0, "stopped and no deadline was set");
                    stopped.set(stopped.get() + 1);
                }
            }
        });
        lane.run(vec![task]).unwrap();
        // The racer must have had its turn before the deadline is cleared again.
        while lane.deadline() > 0 {
            std::thread::yield_now();
        }
    }
    racer.join().unwrap();
    stopped.get()
}

#[test]
fn the_deadline_ends_a_sleep_however_they_meet() {
    in_time(|| assert_eq!(race(LaneKind::Blocking, 10_000, |_| Nanos::MAX), 10_000));
}

#[test]
fn the_deadline_ends_a_sleep_on_a_reactor() {
    in_time(|| assert_eq!(race(LaneKind::Reactor, 10_000, |_| Nanos::MAX), 10_000));
}

#[test]
fn a_short_sleep_ends_by_itself_or_by_the_deadline() {
    in_time(|| {
        let stopped = race(LaneKind::Blocking, 2_000, |round| scatter(!round) % MS);
        assert!(
            stopped > 0,
            "the deadline never came first: nothing was raced"
        );
        assert!(
            stopped < 2_000,
            "the sleep never ended first: nothing was raced"
        );
    });
}

#[test]
fn the_deadline_ends_all_waits_of_all_lanes() {
    in_time(|| {
        for _ in 0..20 {
            let deadline = Arc::new(Deadline::default());
            let clock = Clock::real();
            let waiting = AtomicU64::new(0);
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for kind in [LaneKind::Blocking, LaneKind::Reactor, LaneKind::Reactor] {
                    let (deadline, clock, waiting) = (deadline.clone(), clock.clone(), &waiting);
                    scope.spawn(move || {
                        let lane = Lane::new(kind, clock, deadline);
                        let count = if kind == LaneKind::Blocking { 1 } else { 200 };
                        let worker = |_| -> Task<'_> {
                            let lane = lane.clone();
                            Box::pin(async move {
                                waiting.fetch_add(1, Relaxed);
                                assert_eq!(lane.sleep_until(Nanos::MAX).await, Err(Stopped));
                                waiting.fetch_sub(1, Relaxed);
                            })
                        };
                        lane.run((0..count).map(worker).collect()).unwrap();
                    });
                }
                while waiting.load(Relaxed) < 401 {
                    std::thread::yield_now();
                }
                deadline.bring_forward(clock.now() + MS);
            });
            assert_eq!(waiting.load(Relaxed), 0);
            assert!(
                begun.elapsed() >= Duration::from_millis(1),
                "stopped before its time"
            );
        }
    });
}

#[test]
fn a_deadline_that_moves_while_lanes_come_and_go() {
    in_time(|| {
        let deadline = Arc::new(Deadline::default());
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    // The deadline stays unchanged, and every lane is woken for nothing.
                    deadline.bring_forward(Nanos::MAX);
                }
            });
            let lanes: Vec<_> = (0..4)
                .map(|_| {
                    let deadline = deadline.clone();
                    scope.spawn(move || {
                        for _ in 0..200 {
                            let clock = Clock::real();
                            let lane = Lane::new(LaneKind::Blocking, clock, deadline.clone());
                            let due = lane.now() + 10 * US;
                            let task: Task<'_> = Box::pin(async {
                                lane.uncancellable_sleep_until(due).await;
                                assert!(lane.now() >= due, "woken early");
                            });
                            lane.run(vec![task]).unwrap();
                        }
                    })
                })
                .collect();
            for lane in lanes {
                lane.join().unwrap();
            }
            ended.store(true, Relaxed);
        });
    });
}

#[test]
fn a_worker_that_only_yields_starves_no_timer() {
    in_time(|| {
        let (lane, _) = lane(LaneKind::Reactor);
        let fired = Cell::new(false);
        let timer: Task<'_> = Box::pin(async {
            lane.uncancellable_sleep_until(lane.now() + MS).await;
            fired.set(true);
        });
        let busy: Task<'_> = Box::pin(async {
            let begun = Instant::now();
            while !fired.get() {
                lane.yield_if_exhausted().await;
                assert!(
                    begun.elapsed() < Duration::from_secs(2),
                    "the timer starves"
                );
            }
        });
        lane.run(vec![busy, timer]).unwrap();
    });
}

#[test]
fn a_worker_that_only_yields_starves_no_descriptor() {
    in_time(|| {
        let (lane, _) = lane(LaneKind::Reactor);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            theirs.write_all(b"x").unwrap();
            theirs
        });
        let seen = Cell::new(false);
        let reader: Task<'_> = Box::pin(async {
            lane.readable(ours.as_fd()).await.unwrap();
            (&ours).read_exact(&mut [0]).unwrap();
            seen.set(true);
        });
        let busy: Task<'_> = Box::pin(async {
            let begun = Instant::now();
            while !seen.get() {
                lane.yield_if_exhausted().await;
                assert!(
                    begun.elapsed() < Duration::from_secs(2),
                    "the descriptor starves"
                );
            }
        });
        lane.run(vec![busy, reader]).unwrap();
        sender.join().unwrap();
    });
}

#[test]
fn two_workers_that_wake_each_other_starve_no_deadline() {
    in_time(|| {
        let (lane, deadline) = lane(LaneKind::Reactor);
        let (ping, pong) = (Mailbox::default(), Mailbox::default());
        let stopped = Cell::new(false);
        let player = |mine: &'static str| -> Task<'_> {
            let (ping, pong, stopped) = (&ping, &pong, &stopped);
            Box::pin(async move {
                let begun = Instant::now();
                let (from, to) = if mine == "ping" {
                    (ping, pong)
                } else {
                    (pong, ping)
                };
                let mut seen = 0;
                while !stopped.get() {
                    to.send();
                    seen = from.receive(seen).await;
                    assert!(
                        begun.elapsed() < Duration::from_secs(2),
                        "the deadline starves"
                    );
                }
                to.send();
            })
        };
        let sleeper: Task<'_> = Box::pin(async {
            deadline.bring_forward(lane.now() + MS);
            assert_eq!(lane.sleep_until(Nanos::MAX).await, Err(Stopped));
            stopped.set(true);
        });
        lane.run(vec![player("ping"), player("pong"), sleeper])
            .unwrap();
    });
}

#[test]
fn two_thousand_workers_are_never_woken_early() {
    in_time(|| {
        let (lane, _) = lane(LaneKind::Reactor);
        let fired = Cell::new(0);
        let begin = lane.now() + 5 * MS;
        let worker = |n: u64| -> Task<'_> {
            let (lane, fired) = (lane.clone(), &fired);
            Box::pin(async move {
                for round in 0..5 {
                    let due = begin + round * 10 * MS + scatter(n * 5 + round) % (10 * MS);
                    lane.uncancellable_sleep_until(due).await;
                    assert!(lane.now() >= due, "early");
                    fired.set(fired.get() + 1);
                }
            })
        };
        lane.run((0..2000).map(worker).collect()).unwrap();
        assert_eq!(fired.get(), 10_000);
    });
}

#[test]
fn a_wake_from_outside_does_not_move_virtual_time() {
    in_time(|| {
        let (lane, deadline) = lane(LaneKind::Virtual);
        let wakes = Arc::new(AtomicU64::new(0));
        let waker = {
            let wakes = wakes.clone();
            std::thread::spawn(move || {
                while wakes.fetch_add(1, Relaxed) < 5_000_000 {
                    deadline.bring_forward(Nanos::MAX);
                }
            })
        };
        while wakes.load(Relaxed) < 5_000_000 {
            let stuck: Task<'_> = Box::pin(std::future::pending());
            assert_eq!(lane.run(vec![stuck]), Err(Deadlock { waiting: 1 }));
            assert_eq!(lane.now(), 0, "time jumped although nothing was due");
        }
        waker.join().unwrap();
    });
}

#[test]
fn a_waker_that_outlives_its_worker_wakes_nobody() {
    in_time(|| {
        let (lane, _) = lane(LaneKind::Reactor);
        let kept = RefCell::new(Vec::new());
        let keeper = |_| -> Task<'_> {
            let kept = &kept;
            Box::pin(poll_fn(move |context| {
                kept.borrow_mut().push(context.waker().clone());
                Poll::Ready(())
            }))
        };
        lane.run((0..5).map(keeper).collect()).unwrap();
        assert_eq!(kept.borrow().len(), 5);
        // The lane has fewer workers than before, so the old numbers belong to no worker.
        let ended = Cell::new(false);
        let task: Task<'_> = Box::pin(async {
            for waker in kept.borrow_mut().drain(..) {
                waker.wake();
            }
            lane.uncancellable_sleep_until(lane.now() + MS).await;
            ended.set(true);
        });
        lane.run(vec![task]).unwrap();
        assert!(ended.get());
    });
}

#[test]
fn no_workers_is_an_end_at_once() {
    for kind in [LaneKind::Blocking, LaneKind::Reactor, LaneKind::Virtual] {
        let (lane, _) = lane(kind);
        assert_eq!(lane.run(Vec::new()), Ok(()));
    }
}

#[test]
fn timers_of_an_earlier_run_are_forgotten() {
    let (lane, _) = lane(LaneKind::Virtual);
    let left: Task<'_> = Box::pin(async {
        assert!(
            poll_once(lane.uncancellable_sleep_until(3_600_000 * MS))
                .await
                .is_none()
        );
    });
    lane.run(vec![left]).unwrap();
    let stuck: Task<'_> = Box::pin(std::future::pending());
    assert_eq!(lane.run(vec![stuck]), Err(Deadlock { waiting: 1 }));
    assert_eq!(
        lane.now(),
        0,
        "time went on to a timer that nobody waits for"
    );
}
