//! Lanes drive real threads, descriptors and virtual time.

mod support;

use plimsoll_lane::{Deadlock, Lane, LaneKind, Stopped, Task, TimedEvents};
use std::cell::{Cell, RefCell};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use support::lane;

const MS: u64 = 1_000_000;

#[test]
fn virtual_time_jumps_in_the_order_of_the_timers() {
    let (lane, _) = lane(LaneKind::Virtual);
    let log = RefCell::new(Vec::new());
    let worker = |name: char, step: u64| -> Task<'_> {
        let (lane, log) = (lane.clone(), &log);
        Box::pin(async move {
            for i in 1..=3 {
                lane.uncancellable_sleep_until(i * step).await;
                log.borrow_mut().push((name, lane.now()));
            }
        })
    };
    lane.run(vec![
        worker('a', 3_600_000 * MS),
        worker('b', 3_000_000 * MS),
    ])
    .unwrap();
    let hours: Vec<_> = log
        .borrow()
        .iter()
        .map(|(n, t)| (*n, t / (600_000 * MS)))
        .collect();
    assert_eq!(
        hours,
        [
            ('b', 5),
            ('a', 6),
            ('b', 10),
            ('a', 12),
            ('b', 15),
            ('a', 18)
        ]
    );
}

#[test]
fn a_background_task_of_the_last_worker_is_dropped_with_it() {
    let (lane, _) = lane(LaneKind::Virtual);
    let held = Rc::new(());
    let seen = Rc::downgrade(&held);
    let worker: Task<'_> = Box::pin(async {
        let (handle, held) = (lane.clone(), held);
        lane.spawn_background(Box::pin(async move {
            handle.uncancellable_sleep_until(u64::MAX).await;
            drop(held);
        }));
    });
    lane.run(vec![worker]).unwrap();
    assert_eq!(
        seen.strong_count(),
        0,
        "the lane and its task own each other"
    );
}

/// A worker that never waits executes a limited number of operations before other workers get their turn.
#[test]
fn turns_have_a_budget_unless_there_is_one_worker() {
    for (kind, workers, rest) in [
        (LaneKind::Reactor, 1, true),
        (LaneKind::Reactor, 2, false),
        (LaneKind::Virtual, 1, false),
    ] {
        let (lane, _) = lane(kind);
        let worker = || -> Task<'_> {
            Box::pin(async {
                for _ in 0..128 {
                    assert!(lane.consume_poll_budget(), "{kind:?}");
                }
                assert_eq!(lane.consume_poll_budget(), rest, "{kind:?}");
                assert_eq!(lane.consume_poll_budget(), rest, "{kind:?}");
            })
        };
        lane.run((0..workers).map(|_| worker()).collect()).unwrap();
    }
}

#[test]
fn a_task_knows_whether_others_have_their_turn_after_it() {
    let (lane, _) = lane(LaneKind::Reactor);
    let seen = RefCell::new(Vec::new());
    let worker =
        || -> Task<'_> { Box::pin(async { seen.borrow_mut().push(lane.has_ready_tasks()) }) };
    lane.run((0..3).map(|_| worker()).collect()).unwrap();
    assert_eq!(*seen.borrow(), [true, true, false]);
}

#[test]
fn processor_time_is_that_of_a_thread_with_one_worker() {
    for kind in [LaneKind::Reactor, LaneKind::Virtual] {
        assert_eq!(lane(kind).0.thread_cpu(), None);
    }
    let (lane, _) = lane(LaneKind::Blocking);
    let of_the_system = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap().as_nanos()
    };
    for _ in 0..3 {
        let before = of_the_system();
        let time = lane.thread_cpu().unwrap();
        assert!((before..=of_the_system()).contains(&u128::from(time)));
    }
}

/// A value that workers of a lane share lives as long as any worker uses the value.
#[test]
fn a_shared_value_is_made_once_and_dropped_with_its_users() {
    let (lane, _) = lane(LaneKind::Reactor);
    let made = Cell::new(0);
    let value = |key: usize| {
        let make = || {
            made.set(made.get() + 1);
            Ok::<_, ()>(Rc::new(made.get()))
        };
        lane.try_lane_shared(key, make).unwrap()
    };
    let (one, same, other) = (value(1), value(1), value(2));
    assert_eq!((*one, *same, *other), (1, 1, 2));
    drop((one, same));
    assert_eq!((*value(1), *value(2)), (3, 2));
}

/// Background tasks end before the worker: one task after another, and two tasks at once.
#[test]
fn a_background_task_that_ends_is_no_worker() {
    let (lane, _) = lane(LaneKind::Virtual);
    let log = Rc::new(RefCell::new(Vec::new()));
    let ended = log.clone();
    let background = |n: u32, due: u64| -> Task<'static> {
        let (handle, log) = (lane.clone(), log.clone());
        Box::pin(async move {
            handle.uncancellable_sleep_until(due).await;
            log.borrow_mut().push((n, handle.now()));
        })
    };
    let worker: Task<'_> = Box::pin(async {
        lane.spawn_background(background(1, 5));
        lane.uncancellable_sleep_until(10).await;
        lane.spawn_background(background(2, 30));
        lane.spawn_background(background(3, 20));
        lane.uncancellable_sleep_until(40).await;
        ended.borrow_mut().push((0, lane.now()));
    });
    lane.run(vec![worker]).unwrap();
    assert_eq!(*log.borrow(), [(1, 5), (3, 20), (2, 30), (0, 40)]);
}

#[test]
fn workers_that_wait_for_nothing_are_a_deadlock_in_virtual_time() {
    let (lane, _) = lane(LaneKind::Virtual);
    let stuck: Task<'_> = Box::pin(std::future::pending());
    assert_eq!(lane.run(vec![stuck]), Err(Deadlock { waiting: 1 }));
}

#[test]
fn a_sleep_is_cut_short_at_the_deadline_and_a_timer_is_not() {
    let (lane, deadline) = lane(LaneKind::Virtual);
    deadline.bring_forward(10);
    let seen = Cell::new((0, 0));
    let task: Task<'_> = Box::pin(async {
        assert_eq!(lane.sleep_until(100).await, Err(Stopped));
        let cut = lane.now();
        lane.uncancellable_sleep_until(50).await;
        seen.set((cut, lane.now()));
    });
    lane.run(vec![task]).unwrap();
    assert_eq!(seen.get(), (10, 50));
}

#[test]
fn a_deadline_brought_forward_from_outside_ends_a_blocking_sleep() {
    let (lane, deadline) = lane(LaneKind::Blocking);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        deadline.bring_forward(0);
    });
    let begun = Instant::now();
    let task: Task<'_> = Box::pin(async {
        assert_eq!(
            lane.sleep_until(lane.now() + 60_000 * MS).await,
            Err(Stopped)
        );
    });
    lane.run(vec![task]).unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "it would have slept a minute"
    );
}

#[test]
fn workers_take_turns() {
    let (lane, _) = lane(LaneKind::Reactor);
    let turns = RefCell::new(Vec::new());
    let worker = |n: usize| -> Task<'_> {
        let (lane, turns) = (lane.clone(), &turns);
        Box::pin(async move {
            for _ in 0..1000 {
                turns.borrow_mut().push(n);
                lane.yield_if_exhausted().await;
            }
        })
    };
    lane.run((0..3).map(worker).collect()).unwrap();
    let turns = turns.borrow();
    let first_of_last = turns.iter().position(|n| *n == 2).unwrap();
    let last_of_first = turns.iter().rposition(|n| *n == 0).unwrap();
    assert!(
        first_of_last < last_of_first,
        "the last worker waited for the first to end"
    );
}

#[test]
fn many_workers_on_one_thread_wait_for_descriptors() {
    let (lane, _) = lane(LaneKind::Reactor);
    let pairs: Vec<_> = (0..200).map(|_| UnixStream::pair().unwrap()).collect();
    let (ours, mut theirs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let echo = std::thread::spawn(move || {
        for _ in 0..20 {
            for (i, s) in theirs.iter_mut().enumerate() {
                s.write_all(&[i as u8]).unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let read = Cell::new(0);
    let worker = |i: usize| -> Task<'_> {
        let (lane, read, mut stream) = (lane.clone(), &read, &ours[i]);
        Box::pin(async move {
            for _ in 0..20 {
                lane.readable(stream.as_fd()).await.unwrap();
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                assert_eq!(usize::from(byte[0]), i);
                read.set(read.get() + 1);
            }
        })
    };
    lane.run((0..200).map(worker).collect()).unwrap();
    echo.join().unwrap();
    assert_eq!(read.get(), 4000);
}

/// Lets other workers have a turn a few times.
async fn let_others_work(lane: &Lane) {
    for _ in 0..5 * 128 {
        lane.yield_if_exhausted().await;
    }
}

#[test]
fn a_descriptor_is_waited_for_until_it_is_ready() {
    let (lane, _) = lane(LaneKind::Reactor);
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let log = RefCell::new(Vec::new());
    let reader: Task<'_> = Box::pin(async {
        lane.readable(ours.as_fd()).await.unwrap();
        log.borrow_mut().push("read");
        while (&ours).read(&mut [0; 4096]).is_ok() {}
    });
    let writer: Task<'_> = Box::pin(async {
        let_others_work(&lane).await;
        log.borrow_mut().push("written");
        while (&theirs).write(&[0; 4096]).is_ok() {}
        lane.writable(theirs.as_fd()).await.unwrap();
        log.borrow_mut().push("writable");
    });
    lane.run(vec![reader, writer]).unwrap();
    assert_eq!(*log.borrow(), ["written", "read", "writable"]);
}

#[test]
fn a_task_that_watches_a_descriptor_is_woken_by_each_change() {
    let (lane, deadline) = lane(LaneKind::Reactor);
    // The deadline is far away, because a lane polls all tasks at the deadline, even tasks that were not woken.
    deadline.bring_forward(lane.now() + 30_000 * MS);
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let read = Cell::new(0);
    let reader: Task<'_> = Box::pin(async {
        let mut watch = lane.watch(&ours);
        watch.begin().unwrap();
        std::future::poll_fn(|_| {
            let mut stream: &UnixStream = watch.get();
            while matches!(stream.read(&mut [0]), Ok(1)) {
                read.set(read.get() + 1);
            }
            match read.get() {
                3 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
    });
    let writer: Task<'_> = Box::pin(async {
        for written in 1..=3 {
            (&theirs).write_all(&[0]).unwrap();
            while read.get() < written {
                lane.yield_if_exhausted().await;
                assert!(lane.now() < lane.deadline(), "the reader was not woken");
            }
        }
    });
    lane.run(vec![reader, writer]).unwrap();
}

/// The test measures the processor time of a waiting lane, because elapsed time depends on the load of the machine.
#[test]
fn a_lane_that_waits_leaves_the_processor_alone() {
    let (lane, _) = lane(LaneKind::Blocking);
    let worker: Task<'_> = Box::pin(async {
        let before = lane.thread_cpu().unwrap();
        lane.uncancellable_sleep_until(lane.now() + 100 * MS).await;
        let used = lane.thread_cpu().unwrap() - before;
        assert!(used < 50 * MS, "{used} ns");
    });
    lane.run(vec![worker]).unwrap();
}

#[test]
fn virtual_busy_takes_a_nanosecond_a_store() {
    let (lane, _) = lane(LaneKind::Virtual);
    let task: Task<'_> = Box::pin(async { lane.spin_stores(12_345).await });
    lane.run(vec![task]).unwrap();
    assert_eq!(lane.now(), 12_345);
}

/// A source of an event every millisecond; every tenth event lets task 0 proceed.
struct EveryMillisecond {
    handled: Cell<u64>,
    has_completed: Cell<bool>,
}

impl TimedEvents for EveryMillisecond {
    fn proceed(&self, limit: u64) -> Option<u64> {
        while (self.handled.get() + 1) * MS <= limit {
            let number = self.handled.get() + 1;
            self.handled.set(number);
            if number.is_multiple_of(10) {
                self.has_completed.set(true);
                return Some(number * MS);
            }
        }
        None
    }

    fn advance(&self, now: u64, ready: &mut Vec<u32>) {
        assert!(self.handled.get() * MS <= now, "an event came too early");
        if self.has_completed.take() {
            ready.push(0);
        }
    }
}

#[test]
fn events_in_virtual_time_come_between_timers() {
    let (lane, _) = lane(LaneKind::Virtual);
    let events = Rc::new(EveryMillisecond {
        handled: Cell::new(0),
        has_completed: Cell::new(false),
    });
    lane.attach(events.clone());
    let log = RefCell::new(Vec::new());
    let (waiting, sleeping) = (lane.clone(), lane.clone());
    let mut waits = 0;
    let waiter = std::future::poll_fn(|_| {
        log.borrow_mut().push(('e', waiting.now() / MS));
        waits += 1;
        match waits {
            4 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    });
    let sleeper = async {
        for due in [5, 10, 25] {
            sleeping.uncancellable_sleep_until(due * MS).await;
            // All events before the current time were handled, and no later event.
            assert!((due - 1..=due).contains(&events.handled.get()));
            log.borrow_mut().push(('t', due));
        }
    };
    lane.run(vec![Box::pin(waiter), Box::pin(sleeper)]).unwrap();
    // Timers come before events of the same instant.
    let expected = [
        ('e', 0),
        ('t', 5),
        ('t', 10),
        ('e', 10),
        ('e', 20),
        ('t', 25),
        ('e', 30),
    ];
    assert_eq!(*log.borrow(), expected);
}
