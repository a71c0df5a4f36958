//! The collectives over sockets between threads, for trees of any shape.

use super::*;
use crate::StartSpread;
use crate::socket::SocketLink;
use proptest::prelude::*;
use std::collections::HashMap;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Runs `body` at every rank of a group, with a thread per rank; returns the results in rank order.
fn run<T: Send>(size: u32, fan_out: u32, body: impl Fn(&Ranks) -> T + Sync) -> Vec<T> {
    let given = run_and_catch(size, fan_out, body);
    given.into_iter().map(Option::unwrap).collect()
}

/// Calls `body` on a thread for every rank, connected by sockets; the result is `None` for a rank that panics.
fn run_and_catch<T: Send>(
    size: u32,
    fan_out: u32,
    body: impl Fn(&Ranks) -> T + Sync,
) -> Vec<Option<T>> {
    run_over(|link| link, size, fan_out, body)
}

/// Calls `body` on a thread for every rank, connected by links that `link` makes from sockets; the result is `None` for
/// a rank that panics.
fn run_over<L: Link + 'static, T: Send>(
    link: impl Fn(SocketLink) -> L + Sync,
    size: u32,
    fan_out: u32,
    body: impl Fn(&Ranks) -> T + Sync,
) -> Vec<Option<T>> {
    let mut sockets: HashMap<(u32, u32), UnixStream> = HashMap::new();
    for child in 1..size {
        let parent = TreePosition::new(child, size, fan_out).parent.unwrap();
        let (up, down) = UnixStream::pair().unwrap();
        sockets.insert((child, parent), up);
        sockets.insert((parent, child), down);
    }
    let sockets = Mutex::new(sockets);
    std::thread::scope(|scope| {
        let start = |rank| {
            let (sockets, link, body) = (&sockets, &link, &body);
            scope.spawn(move || {
                let place = TreePosition::new(rank, size, fan_out);
                let take = |n: &u32| sockets.lock().unwrap().remove(&(rank, *n)).unwrap();
                let sockets = place.neighbours().iter().map(take).collect();
                let sockets = SocketLink::new(
                    sockets,
                    Box::new(|_| Incoming::Gone("gone".into())),
                    Box::new(|_| {}),
                );
                body(&Ranks::new(place, link(sockets.unwrap())))
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        threads.into_iter().map(|t| t.join().ok()).collect()
    })
}

/// Distinct bytes for each rank.
fn bytes_of(rank: u32, len: usize) -> Vec<u8> {
    let byte = |i: usize| (i as u32).wrapping_mul(2_654_435_761).wrapping_add(rank) >> 7;
    (0..len).map(|i| byte(i) as u8).collect()
}

fn error(rank: u32, reason: &str) -> RankError {
    RankError::new(rank, reason)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn collectives_agree_with_a_plain_computation(
        size in 1u32..20,
        fan_out in 1u32..20,
        numbers in prop::collection::vec(any::<u64>(), 20),
        lengths in prop::collection::vec(0usize..3000, 20),
    ) {
        let all: Vec<_> = (0..size).map(|r| bytes_of(r, lengths[r as usize])).collect();
        let numbers = &numbers[..size as usize];
        let seen = run(size, fan_out, |ranks| {
            let rank = ranks.rank() as usize;
            let mine = all[rank].clone();
            let mut taken = Vec::new();
            let sent = if rank == 0 { mine.clone() } else { Vec::new() };
            let broadcast = ranks.broadcast(sent).unwrap();
            let reduced = ranks.reduce(mine.clone(), &mut |a, b| [a, b].concat()).unwrap();
            let numbers = [
                ranks.max(numbers[rank]).unwrap(),
                ranks.min(numbers[rank]).unwrap(),
                ranks.sum(numbers[rank]).unwrap(),
            ];
            ranks.collect(mine, &mut |rank, bytes| taken.push((rank, bytes))).unwrap();
            (broadcast, reduced, numbers, taken)
        });
        let sum = numbers.iter().map(|&n| u128::from(n)).sum::<u128>();
        let expected = [
            *numbers.iter().max().unwrap(),
            *numbers.iter().min().unwrap(),
            u64::try_from(sum).unwrap_or(u64::MAX),
        ];
        for (rank, (broadcast, reduced, numbers, taken)) in seen.into_iter().enumerate() {
            prop_assert_eq!(&broadcast, &all[0]);
            prop_assert_eq!(numbers, expected);
            if rank == 0 {
                prop_assert_eq!(reduced, Some(all.concat()));
                let ranks: Vec<_> = (0..size).zip(all.clone()).collect();
                prop_assert_eq!(taken, ranks);
            } else {
                prop_assert_eq!((reduced, taken), (None, vec![]));
            }
        }
    }

    #[test]
    fn a_failure_ends_every_call_at_every_rank(
        size in 2u32..12,
        fan_out in 1u32..12,
        who in any::<prop::sample::Index>(),
        call in 0usize..5,
    ) {
        let who = who.index(size as usize) as u32;
        let seen = run(size, fan_out, |ranks| {
            // The failure may arrive before this barrier has completed on other ranks.
            let _ = ranks.barrier();
            if ranks.rank() == who {
                ranks.fail("out of luck");
            }
            let mine = vec![1; 100];
            let outcome = match call {
                0 => ranks.barrier(),
                1 => ranks.broadcast(mine).map(drop),
                2 => ranks.reduce(mine, &mut |a, _| a).map(drop),
                3 => ranks.collect(mine, &mut |_, _| {}),
                _ => ranks.sum(1).map(drop),
            };
            // A rank that only sends may have finished before the failure arrives; then the next call fails.
            (outcome.and_then(|()| ranks.barrier()), ranks.poll())
        });
        let expected = error(who, "out of luck");
        for outcome in seen {
            prop_assert_eq!(outcome, (Err(expected.clone()), GroupStatus::Failed(expected.clone())));
        }
    }
}

#[test]
fn long_values_arrive() {
    let long = bytes_of(0, 5 * MAX_PAYLOAD + 17);
    let seen = run(5, 2, |ranks| {
        let got = ranks.broadcast(long.clone()).unwrap();
        let mut taken = 0;
        let mine = bytes_of(ranks.rank(), MAX_PAYLOAD * ranks.rank() as usize);
        ranks
            .collect(mine, &mut |rank, bytes| {
                assert!(bytes == bytes_of(rank, MAX_PAYLOAD * rank as usize));
                taken += bytes.len();
            })
            .unwrap();
        (got == long, taken)
    });
    assert_eq!(seen[0], (true, 10 * MAX_PAYLOAD));
    assert!(seen[1..].iter().all(|s| *s == (true, 0)));
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_arrived() {
    for fan_out in [1, 2, 7] {
        let come = AtomicU32::new(0);
        run(8, fan_out, |ranks| {
            for round in 1..=50 {
                come.fetch_add(1, Ordering::SeqCst);
                ranks.barrier().unwrap();
                assert!(come.load(Ordering::SeqCst) >= 8 * round);
            }
        });
    }
}

#[test]
fn a_rank_that_leaves_early_has_failed() {
    let seen = run(6, 2, |ranks| {
        if ranks.rank() == 4 {
            return Ok(());
        }
        ranks.barrier()
    });
    for (rank, outcome) in seen.into_iter().enumerate() {
        let expected = Err(error(4, "it ended before the others"));
        assert_eq!(outcome, if rank == 4 { Ok(()) } else { expected });
    }
}

#[test]
fn ranks_that_make_different_calls_are_found_out() {
    let seen = run(3, 2, |ranks| {
        ranks.barrier()?;
        match ranks.rank() {
            2 => ranks.sum(1).map(drop),
            _ => ranks.max(1).map(drop),
        }
    });
    let reason = "it made call 1 (sum) when rank 0 made call 1 (max)";
    assert_eq!(seen, vec![Err(error(2, reason)); 3]);
}

#[test]
fn a_panic_is_a_failure_of_that_rank() {
    let seen = run_and_catch(4, 2, |ranks| {
        assert!(ranks.rank() != 3, "this panic is wanted");
        ranks.barrier()
    });
    let failed = Err(error(3, "the program panicked"));
    let others = vec![Some(failed); 3];
    assert_eq!(seen, [others, vec![None]].concat());
}

#[test]
fn a_rank_that_panics_on_another_machine_is_reported_with_its_host() {
    let (up, down) = UnixStream::pair().unwrap();
    let group = |rank, socket: UnixStream| {
        let gone = Box::new(|_| Incoming::Gone("gone".into()));
        let link = SocketLink::new(vec![socket], gone, Box::new(|_| {})).unwrap();
        Ranks::new(TreePosition::new(rank, 2, 1), link)
    };
    let panicked = std::thread::spawn(move || {
        let _ranks = group(1, up).on_hosts(true, Some("b".into()));
        panic!("as intended");
    });
    assert_eq!(
        group(0, down).barrier(),
        Err(error(1, "host b: the program panicked"))
    );
    assert!(panicked.join().is_err());
}

#[test]
fn a_stop_reaches_all_and_calls_go_on() {
    let seen = run(9, 2, |ranks| {
        ranks.barrier().unwrap();
        if ranks.rank() == 5 {
            ranks.request_stop();
        }
        while ranks.poll() == GroupStatus::Nothing {
            std::thread::yield_now();
        }
        (ranks.poll(), ranks.sum(1))
    });
    assert_eq!(seen, vec![(GroupStatus::Stop, Ok(9)); 9]);
}

#[test]
fn the_first_of_two_failures_stands_at_each_rank() {
    let seen = run(8, 2, |ranks| {
        let _ = ranks.barrier();
        if ranks.rank() >= 6 {
            ranks.fail(&format!("reason {}", ranks.rank()));
        }
        let first = ranks.barrier();
        ranks.fail("later");
        (first, ranks.barrier())
    });
    for (first, then) in seen {
        let known = [error(6, "reason 6"), error(7, "reason 7")];
        assert!(known.contains(first.as_ref().unwrap_err()), "{first:?}");
        assert_eq!(first, then);
    }
}

#[test]
fn after_a_failure_rank_0_waits_for_all_that_are_below_it() {
    for (size, fan_out) in [(2, 1), (5, 1), (9, 2)] {
        let ended = AtomicU32::new(0);
        let known = run(size, fan_out, |ranks| {
            let last = size - 1;
            if ranks.rank() == last {
                ranks.fail("out of luck");
                // The failed rank is still busy when the other ranks learn of the failure.
                std::thread::sleep(Duration::from_millis(50));
            }
            ranks.barrier().unwrap_err();
            if ranks.rank() > 0 {
                ended.fetch_add(1, Ordering::SeqCst);
                return None;
            }
            let are_known = ranks.wait_for_ends(Duration::from_secs(60));
            Some((are_known, ended.load(Ordering::SeqCst)))
        });
        assert_eq!(known[0], Some((true, size - 1)), "{size} ranks");
    }
}

/// A link that counts as closed collectively, as with MPI, and records how many ranks had reached their end when the
/// link was closed.
struct Together {
    sockets: SocketLink,
    come: Arc<AtomicU32>,
    seen: Arc<Mutex<Vec<u32>>>,
}

impl Link for Together {
    fn is_closed_collectively(&self) -> bool {
        true
    }

    fn post(&self, to: usize, frame: Vec<u8>) {
        self.sockets.post(to, frame);
    }

    fn send(&self, to: usize, frame: Vec<u8>, meanwhile: &mut dyn FnMut()) {
        self.sockets.send(to, frame, meanwhile);
    }

    fn receive(&self) -> Option<(usize, Incoming)> {
        self.sockets.receive()
    }

    fn wait(&self, since: Instant, pace: PollRate) {
        self.sockets.wait(since, pace);
    }

    fn flushed(&self) -> bool {
        self.sockets.flushed()
    }

    fn close(&self, in_order: bool) {
        assert!(in_order);
        self.seen
            .lock()
            .unwrap()
            .push(self.come.load(Ordering::SeqCst));
    }
}

#[test]
fn links_are_closed_when_all_ranks_have_come_to_their_end() {
    for (size, fan_out) in [(1, 1), (2, 1), (7, 1), (9, 2), (9, 8)] {
        for who_fails in [None, Some(0), Some(size - 1)] {
            let (come, seen) = (Arc::new(AtomicU32::new(0)), Arc::<Mutex<_>>::default());
            let link = |sockets| Together {
                sockets,
                come: come.clone(),
                seen: seen.clone(),
            };
            let given = run_over(link, size, fan_out, |ranks| {
                if who_fails == Some(ranks.rank()) {
                    ranks.fail("out of luck");
                }
                let outcome = ranks.barrier();
                // One rank cleans up for longer than the others.
                if ranks.rank() == size / 2 {
                    std::thread::sleep(Duration::from_millis(30));
                }
                come.fetch_add(1, Ordering::SeqCst);
                outcome.is_ok()
            });
            assert_eq!(given, vec![Some(who_fails.is_none()); size as usize]);
            assert_eq!(*seen.lock().unwrap(), vec![size; size as usize]);
        }
    }
}

#[test]
fn one_rank_is_all_ranks() {
    let solo = Ranks::alone();
    assert_eq!((solo.rank(), solo.size()), (0, 1));
    assert_eq!(solo.barrier(), Ok(()));
    assert_eq!(solo.broadcast(vec![1]), Ok(vec![1]));
    let reduced = solo.reduce(vec![2], &mut |_, _| unreachable!());
    assert_eq!(reduced, Ok(Some(vec![2])));
    let mut taken = Vec::new();
    solo.collect(vec![3], &mut |rank, bytes| taken.push((rank, bytes)))
        .unwrap();
    assert_eq!(taken, [(0, vec![3])]);
    assert_eq!(
        (solo.max(4), solo.min(4), solo.sum(4)),
        (Ok(4), Ok(4), Ok(4))
    );
}

#[test]
fn one_rank_starts_when_it_wants_and_waits_for_no_other() {
    let solo = Ranks::alone();
    let before = Instant::now();
    let start = solo.agree_on_start().unwrap();
    assert!(before <= start && start <= Instant::now());
    let (spread, round_trip) = (Duration::ZERO, Duration::ZERO);
    let expected = StartSpread { spread, round_trip };
    assert_eq!(solo.report_start(start), Ok(Some(expected)));
    assert!(solo.root_works() && !solo.others_wait());
    assert_eq!(solo.host(), None);
    solo.fail("no space left");
    let error = RankError::new(0, "no space left");
    assert_eq!(solo.agree_on_start(), Err(error.clone()));
    assert_eq!(solo.report_start(start), Err(error.clone()));
    assert_eq!(solo.broadcast(vec![1]), Err(error.clone()));
    assert_eq!(solo.sum(1), Err(error));
    let limit = Duration::ZERO;
    let left = solo.reduce_survivors(vec![1], &mut |_, _| unreachable!(), limit);
    assert_eq!(left, Some(vec![1]));
    assert!(solo.wait_for_ends(limit), "all others have ended");
}

#[test]
fn status_and_failures_stay() {
    let solo = Ranks::alone();
    assert_eq!(solo.poll(), GroupStatus::Nothing);
    solo.request_stop();
    assert_eq!(solo.poll(), GroupStatus::Stop);
    solo.fail("no space left");
    solo.fail("cannot clean up");
    let error = RankError::new(0, "no space left");
    assert_eq!(solo.poll(), GroupStatus::Failed(error.clone()));
    assert_eq!(solo.barrier(), Err(error.clone()));
    assert_eq!(solo.collect(vec![], &mut |_, _| {}), Err(error));
}
