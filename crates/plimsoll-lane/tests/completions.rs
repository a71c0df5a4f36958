//! Lanes with a completion source: waits for completions, timers and wakeups of other threads.

mod support;

use plimsoll_lane::{CompletionSource, Lane, LaneKind, Task};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use support::lane;

const US: u64 = 1_000;
const HOUR: Duration = Duration::from_secs(3600);

/// Time before a timer at which the lane ends its sleep, to spin for the remaining time.
const EARLIER: Duration = Duration::from_micros(50);

/// A source whose operation has completed whenever the source takes a turn.
#[derive(Default)]
struct Source {
    is_due: Cell<bool>,
    waiting: Cell<Option<u32>>,
    /// Timeouts that the lane passed to `turn`, in order; `None` is a wait without limit.
    turns: RefCell<Vec<Option<Duration>>>,
}

impl CompletionSource for Source {
    fn is_due(&self) -> bool {
        self.is_due.get()
    }

    fn turn(&self, timeout: Option<Duration>, ready: &mut Vec<u32>) {
        self.turns.borrow_mut().push(timeout);
        self.is_due.set(false);
        ready.extend(self.waiting.take());
    }
}

impl Source {
    fn attached(lane: &Lane) -> Rc<Self> {
        let source = Rc::default();
        lane.attach_completions(&source);
        source
    }

    /// Queues an operation for the current task, and waits for the completion.
    async fn operation(&self, lane: &Lane) {
        self.waiting.set(Some(lane.current_task()));
        poll_fn(|_| match self.waiting.get() {
            None => Poll::Ready(()),
            Some(_) => Poll::Pending,
        })
        .await;
    }
}

#[test]
fn an_idle_lane_waits_for_completions_until_its_next_timer_or_deadline() {
    for (timer, deadline) in [
        (None, None),
        (Some(HOUR), None),
        (None, Some(HOUR)),
        (Some(HOUR), Some(2 * HOUR)),
        (Some(2 * HOUR), Some(HOUR)),
    ] {
        let (lane, end) = lane(LaneKind::Reactor);
        let source = Source::attached(&lane);
        let begun = lane.now();
        if let Some(after) = deadline {
            end.bring_forward(begun + after.as_nanos() as u64);
        }
        let worker: Task<'_> = Box::pin(async {
            let mut sleep = timer.map(|after| {
                Box::pin(lane.uncancellable_sleep_until(begun + after.as_nanos() as u64))
            });
            let mut operation = pin!(source.operation(&lane));
            poll_fn(|context| {
                if let Some(sleep) = &mut sleep {
                    assert!(sleep.as_mut().poll(context).is_pending());
                }
                operation.as_mut().poll(context)
            })
            .await;
        });
        lane.run(vec![worker]).unwrap();
        let turns = source.turns.borrow();
        match (timer, deadline) {
            (None, None) => assert_eq!(*turns, [None]),
            _ => {
                let [Some(timeout)] = turns[..] else {
                    panic!("{turns:?}")
                };
                assert!(
                    (HOUR / 2..=HOUR - EARLIER).contains(&timeout),
                    "{timeout:?}"
                );
            }
        }
    }
}

#[test]
fn a_lane_does_not_sleep_for_the_time_by_which_the_kernel_is_late() {
    let (lane, _) = lane(LaneKind::Reactor);
    let source = Source::attached(&lane);
    let worker: Task<'_> = Box::pin(async {
        for _ in 0..20 {
            lane.uncancellable_sleep_until(lane.now() + 30 * US).await;
        }
    });
    lane.run(vec![worker]).unwrap();
    assert_eq!(*source.turns.borrow(), [], "nothing was due");
}

#[test]
fn completions_are_taken_while_workers_are_busy_when_they_are_due() {
    let (lane, _) = lane(LaneKind::Reactor);
    let source = Source::attached(&lane);
    let yields = || async {
        for _ in 0..10 * 128 {
            lane.yield_if_exhausted().await;
        }
    };
    let busy: Task<'_> = Box::pin(async {
        yields().await;
        assert_eq!(*source.turns.borrow(), []);
        source.is_due.set(true);
        yields().await;
        assert_eq!(*source.turns.borrow(), [Some(Duration::ZERO)]);
        assert_eq!(source.waiting.get(), None);
    });
    let waiting: Task<'_> = Box::pin(source.operation(&lane));
    lane.run(vec![busy, waiting]).unwrap();
    assert_eq!(source.turns.borrow().len(), 1);
}

/// A completion source that waits in the kernel, as an io_uring does.
struct Sleeper {
    counter: Arc<OwnedFd>,
    /// The waker of the task that another thread wakes.
    waker: Arc<Mutex<Option<Waker>>>,
}

impl CompletionSource for Sleeper {
    fn is_due(&self) -> bool {
        false
    }

    fn turn(&self, _: Option<Duration>, _: &mut Vec<u32>) {
        let waker = self.waker.lock().unwrap().take();
        let thread = std::thread::spawn(move || waker.expect("a task waits").wake());
        let patience = Timespec {
            tv_sec: 60,
            tv_nsec: 0,
        };
        let found = poll(
            &mut [PollFd::new(&self.counter, PollFlags::IN)],
            Some(&patience),
        );
        assert_eq!(found, Ok(1), "the lane was not woken");
        rustix::io::read(&self.counter, &mut [0; 8]).unwrap();
        thread.join().unwrap();
    }
}

#[test]
fn another_thread_wakes_a_lane_that_waits_for_completions() {
    let (lane, _) = lane(LaneKind::Reactor);
    let waker = Arc::new(Mutex::new(None));
    let source = Rc::new(Sleeper {
        counter: lane.wakeup_counter().unwrap(),
        waker: waker.clone(),
    });
    lane.attach_completions(&source);
    let mut polls = 0;
    let worker = poll_fn(|context| {
        polls += 1;
        *waker.lock().unwrap() = Some(context.waker().clone());
        match polls {
            4 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    });
    lane.run(vec![Box::pin(worker)]).unwrap();
    assert_eq!(polls, 4);
}

#[test]
fn a_source_that_is_gone_makes_room_for_another() {
    let (lane, _) = lane(LaneKind::Reactor);
    drop(Source::attached(&lane));
    let source = Source::attached(&lane);
    lane.run(vec![Box::pin(source.operation(&lane))]).unwrap();
    assert_eq!(*source.turns.borrow(), [None]);
}
