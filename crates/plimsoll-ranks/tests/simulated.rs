//! Ranks of a simulation: calls in simulated time, agreed starts, killed processes, cut connections, and survivors. All
//! times are the same in every repetition.

use plimsoll_ranks::{GroupStatus, RankError, Ranks, SimulatedNetwork, StartSpread};
use plimsoll_runtime::{ProcessId, Simulation, SimulationEnd, SimulationHandle};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Transfer time of a frame.
const DELAY: Duration = Duration::from_millis(5);
/// Allowance for clock readings, thread switches and process starts; far less than [`DELAY`].
const SLACK: Duration = Duration::from_millis(1);

/// A simulation in which each rank is a process.
#[derive(Clone)]
struct World {
    handle: SimulationHandle,
    network: SimulatedNetwork,
    processes: Arc<Mutex<Vec<ProcessId>>>,
    size: u32,
    fan_out: u32,
}

impl World {
    fn kill(&self, rank: u32) {
        let process = self.processes.lock().unwrap()[rank as usize];
        self.handle.kill(process);
    }

    /// Simulated time since the beginning.
    fn time(&self) -> Duration {
        Duration::from_nanos(self.handle.now())
    }
}

/// Runs `body` at every rank, and `environment` at the same time. Returns the results in rank order; `None` for a
/// killed rank.
fn run_beside<T: Send + 'static>(
    (size, fan_out): (u32, u32),
    jitter: Duration,
    environment: impl FnOnce(&World) + Send + 'static,
    body: impl Fn(&World, &Ranks) -> T + Send + Sync + 'static,
) -> Vec<Option<T>> {
    let simulation = Simulation::new(7);
    let handle = simulation.handle();
    let world = World {
        network: SimulatedNetwork::new(handle.clone(), DELAY, jitter),
        handle: handle.clone(),
        processes: Arc::default(),
        size,
        fan_out,
    };
    let body = Arc::new(body);
    let given: Arc<Mutex<Vec<Option<T>>>> = Arc::new(Mutex::new((0..size).map(|_| None).collect()));
    for rank in 0..size {
        let (world, body, given) = (world.clone(), body.clone(), given.clone());
        let network = world.network.clone();
        let processes = world.processes.clone();
        let process = handle.spawn_process(&format!("rank {rank}"), move || {
            let ranks = world.network.join(rank, world.size, world.fan_out);
            let value = body(&world, &ranks);
            given.lock().unwrap()[rank as usize] = Some(value);
        });
        network.set_process(rank, process);
        processes.lock().unwrap().push(process);
    }
    handle.spawn_process("environment", move || environment(&world));
    let end = simulation.run(Duration::from_secs(600), Duration::from_secs(60));
    assert_eq!(end, SimulationEnd::Finished, "{:?}", handle.panics());
    assert_eq!(handle.panics(), [] as [String; 0]);
    std::mem::take(&mut *given.lock().unwrap())
}

/// Runs `body` at every rank, without an environment and without jitter.
fn run<T: Send + 'static>(
    shape: (u32, u32),
    body: impl Fn(&World, &Ranks) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let given = run_beside(shape, Duration::ZERO, |_| (), body);
    given.into_iter().flatten().collect()
}

fn error(rank: u32, reason: &str) -> RankError {
    RankError::new(rank, reason)
}

fn join(a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    [a, b].concat()
}

/// Whether a duration equals `expected`, or exceeds `expected` by less than [`SLACK`].
fn is_about(found: Duration, expected: Duration) -> bool {
    found >= expected && found < expected + SLACK
}

#[test]
fn calls_agree_with_a_plain_computation() {
    for shape in [(1, 1), (2, 1), (7, 2), (9, 8), (6, 1)] {
        let size = shape.0;
        let seen = run(shape, |_, ranks| {
            let (rank, size) = (ranks.rank(), ranks.size());
            let mine = vec![rank as u8; rank as usize];
            let broadcast = ranks.broadcast(vec![rank as u8 + 1; 3]).unwrap();
            let reduced = ranks.reduce(mine.clone(), &mut join).unwrap();
            let mut taken = Vec::new();
            let mut take = |rank, bytes| taken.push((rank, bytes));
            ranks.collect(mine, &mut take).unwrap();
            let n = u64::from(rank) + 5;
            let numbers = [ranks.max(n), ranks.min(n), ranks.sum(n)];
            assert_eq!((ranks.host(), ranks.root_works()), (None, true));
            (rank, size, broadcast, reduced, taken, numbers)
        });
        let each = |rank: u32| vec![rank as u8; rank as usize];
        let all: Vec<(u32, Vec<u8>)> = (0..size).map(|r| (r, each(r))).collect();
        let joined: Vec<u8> = (0..size).flat_map(each).collect();
        let n = u64::from(size);
        let numbers = [n + 4, 5, 5 * n + n * (n - 1) / 2].map(Ok);
        for (at, (rank, of, broadcast, reduced, taken, found)) in (0..).zip(seen) {
            assert_eq!((rank, of, broadcast), (at, size, vec![1; 3]));
            assert_eq!(found, numbers);
            let is_root = rank == 0;
            assert_eq!(reduced, is_root.then(|| joined.clone()));
            assert_eq!(taken, if is_root { all.clone() } else { vec![] });
        }
    }
}

#[test]
fn frames_take_their_delay() {
    // A barrier sends a frame up and a frame down each level of the tree.
    for (shape, ways) in [((2, 1), 2), ((9, 8), 2), ((3, 1), 4), ((7, 2), 4)] {
        let seen = run(shape, |world, ranks| {
            ranks.barrier().unwrap();
            let begin = world.time();
            ranks.barrier().unwrap();
            world.time() - begin
        });
        // Rank 0 begins the second barrier first.
        assert!(is_about(seen[0], ways * DELAY), "{shape:?}: {seen:?}");
    }
}

#[test]
fn jitter_is_added_to_the_delay() {
    let jitter = Duration::from_millis(20);
    let body = |world: &World, ranks: &Ranks| {
        let mut times = Vec::new();
        for _ in 0..200 {
            let begin = world.time();
            ranks.barrier().unwrap();
            times.push(world.time() - begin);
        }
        times
    };
    let seen = run_beside((2, 1), jitter, |_| (), body);
    let times = seen[0].as_ref().unwrap();
    let (min, max) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    // Two transfers, each of 5 to 25 ms.
    assert!(*min >= 2 * DELAY && *max < 2 * (DELAY + jitter) + SLACK);
    let mean = times.iter().sum::<Duration>() / 200;
    let expected = 2 * DELAY + jitter;
    assert!(mean.abs_diff(expected) < expected / 10, "{mean:?}");
    assert!(*max - *min > jitter, "{min:?} to {max:?}");
}

#[test]
fn ranks_start_at_the_agreed_instant() {
    // Number of tree levels: each level takes a transfer and the allowance for sending to all children.
    for (shape, levels) in [
        ((1, 1), 0),
        ((2, 1), 1),
        ((9, 8), 1),
        ((7, 2), 2),
        ((4, 1), 3),
    ] {
        let seen = run(shape, |_, ranks| {
            let start = ranks.agree_on_start().unwrap();
            let left = start.saturating_duration_since(plimsoll_runtime::now());
            plimsoll_runtime::sleep(left);
            let late = plimsoll_runtime::elapsed(start);
            (start, left, late, ranks.report_start(start).unwrap())
        });
        let first: Instant = seen.iter().map(|s| s.0).min().unwrap();
        for (start, _, late, _) in &seen {
            let apart = start.duration_since(first);
            assert!(apart < SLACK && *late < SLACK, "{shape:?}: {apart:?}");
        }
        let way = DELAY + Duration::from_millis(2);
        let ahead = seen[0].1;
        assert!(ahead <= levels * (way + SLACK), "{shape:?}: {ahead:?}");
        assert!(ahead + SLACK >= levels * way, "{shape:?}: {ahead:?}");
        let report = seen[0].3.unwrap();
        assert!(report.spread < SLACK, "{shape:?}: {report:?}");
        let trip = report.round_trip;
        assert!(is_about(trip, 2 * levels * DELAY), "{shape:?}: {report:?}");
        assert!(seen[1..].iter().all(|s| s.3.is_none()));
    }
}

#[test]
fn a_rank_that_starts_late_or_early_is_in_the_spread() {
    let spread = |late: u32, early: u32| -> StartSpread {
        let seen = run((7, 2), move |_, ranks| {
            let agreed = ranks.agree_on_start().unwrap();
            let start = match ranks.rank() {
                rank if rank == late => agreed + Duration::from_millis(300),
                rank if rank == early => agreed - Duration::from_millis(3),
                _ => agreed,
            };
            // A rank must keep polling to record when the starts of other ranks arrive.
            while plimsoll_runtime::now() < start {
                let left = start.saturating_duration_since(plimsoll_runtime::now());
                plimsoll_runtime::sleep(left.min(SLACK / 2));
                assert_eq!(ranks.poll(), GroupStatus::Nothing);
            }
            ranks.report_start(start).unwrap()
        });
        seen[0].unwrap()
    };
    let ms = Duration::from_millis;
    // Late ranks: the root, a rank with children, and a leaf. Rank 99 does not exist.
    for late in [0, 4, 6] {
        let found = spread(late, 99).spread;
        assert!(found.abs_diff(ms(300)) < SLACK, "{late}: {found:?}");
    }
    let found = spread(3, 5).spread;
    assert!(found.abs_diff(ms(303)) < SLACK, "{found:?}");
}

#[test]
fn a_rank_whose_process_has_ended_has_failed() {
    for who in [0, 2, 6] {
        let kill = move |world: &World| {
            plimsoll_runtime::sleep(Duration::from_secs(1));
            world.kill(who);
        };
        let seen = run_beside((7, 2), Duration::ZERO, kill, move |world, ranks| {
            if ranks.rank() == who {
                plimsoll_runtime::sleep(Duration::from_secs(100));
            }
            let outcome = ranks.barrier();
            (outcome, world.time(), ranks.poll())
        });
        for (rank, seen) in (0..).zip(seen) {
            let Some((outcome, time, status)) = seen else {
                assert_eq!(rank, who);
                continue;
            };
            let failed = error(who, "its process has ended");
            assert_eq!(outcome, Err(failed.clone()));
            assert_eq!(status, GroupStatus::Failed(failed));
            // The death is noticed at once, and the failure passes at most three other ranks.
            let after = time - Duration::from_secs(1);
            assert!(after < 4 * DELAY + SLACK, "rank {rank} after {after:?}");
        }
    }
}

#[test]
fn a_cut_connection_is_noticed_after_five_seconds_of_silence() {
    let cut = |world: &World| {
        plimsoll_runtime::sleep(Duration::from_secs(1));
        world.network.cut_from_parent(4, world.size, world.fan_out);
        world.network.cut_from_parent(0, world.size, world.fan_out);
    };
    let seen = run_beside((7, 2), Duration::ZERO, cut, |world, ranks| {
        if ranks.rank() == 2 {
            plimsoll_runtime::sleep(Duration::from_secs(50));
        }
        let outcome = ranks.barrier();
        (outcome, world.time())
    });
    for (rank, seen) in (0..).zip(seen) {
        let (outcome, time) = seen.unwrap();
        // Ranks 4 to 6 are on the other side of the cut.
        let other = if rank < 4 { 4 } else { 0 };
        assert_eq!(
            outcome,
            Err(error(other, "the connection is lost")),
            "{rank}"
        );
        let after = time - Duration::from_secs(6);
        // A rank checks its connections at least every 100 ms.
        let limit = Duration::from_millis(100) + 2 * DELAY + SLACK;
        assert!(rank == 2 || after < limit, "{rank} after {after:?}");
    }
}

/// Ranks whose values arrive at rank 0 after a failure, and whether the ends of all other ranks are known.
fn survivors(disturb: impl FnOnce(&World) + Send + 'static) -> (Vec<u8>, bool) {
    let disturb = |world: &World| {
        plimsoll_runtime::sleep(Duration::from_secs(1));
        disturb(world);
    };
    let seen = run_beside((7, 2), Duration::ZERO, disturb, |_, ranks| {
        let mine = vec![ranks.rank() as u8];
        let limit = Duration::from_secs(40);
        assert_eq!(ranks.reduce_survivors(mine.clone(), &mut join, limit), None);
        let wait = || loop {
            match ranks.poll() {
                GroupStatus::Failed(_) => break,
                _ => plimsoll_runtime::sleep(Duration::from_millis(1)),
            }
        };
        wait();
        let value = ranks.reduce_survivors(mine, &mut join, limit);
        let are_known = (ranks.rank() == 0).then(|| ranks.wait_for_ends(Duration::from_secs(60)));
        (value, are_known)
    });
    let mut others = seen[1..].iter().flatten();
    assert!(others.all(|s| *s == (None, None)));
    let (value, are_known) = seen[0].clone().unwrap();
    (value.unwrap(), are_known.unwrap())
}

#[test]
fn survivors_are_combined_in_rank_order() {
    // Ranks 1 and 4 have two children each.
    assert_eq!(survivors(|w| w.kill(6)), (vec![0, 1, 2, 3, 4, 5], true));
    assert_eq!(survivors(|w| w.kill(4)), (vec![0, 1, 2, 3], false));
    let cut = |rank| move |w: &World| w.network.cut_from_parent(rank, w.size, w.fan_out);
    assert_eq!(survivors(cut(1)), (vec![0, 4, 5, 6], false));
    assert_eq!(survivors(cut(5)), (vec![0, 1, 2, 3, 4, 6], false));
}

#[test]
fn a_survivor_without_a_value_is_waited_for_until_the_limit() {
    // Each rank has one child; the last rank never sends its value.
    for (size, limit_ms) in [(2u32, 8000u64), (3, 4000)] {
        let seen = run((size, 1), move |world, ranks| {
            if ranks.rank() + 1 == size {
                ranks.fail("out of luck");
                plimsoll_runtime::sleep(Duration::from_secs(30));
                return None;
            }
            ranks.barrier().unwrap_err();
            let begin = world.time();
            let mine = vec![ranks.rank() as u8];
            let value = ranks.reduce_survivors(mine, &mut join, Duration::from_secs(8));
            Some((value, world.time() - begin))
        });
        let (value, time) = seen[0].clone().unwrap();
        let all: Vec<u8> = (0..size as u8 - 1).collect();
        assert_eq!(value, Some(all), "{size} ranks");
        // A rank other than rank 0 waits for half of the limit.
        let limit = Duration::from_millis(limit_ms);
        let slack = Duration::from_millis(100) + 4 * DELAY;
        assert!(
            time + 4 * DELAY >= limit && time < limit + slack,
            "{time:?}"
        );
    }
}

#[test]
fn long_values_of_survivors_arrive_whole() {
    const LENGTH: usize = (5 << 20) / 2;
    let value_of = |rank: u32| vec![rank as u8 + 1; LENGTH + rank as usize];
    let seen = run((4, 2), move |_, ranks| {
        let _ = ranks.sum(1);
        if ranks.rank() == 3 {
            ranks.fail("out of luck");
        }
        let _ = ranks.barrier();
        let _ = ranks.barrier();
        let limit = Duration::from_secs(10);
        ranks.reduce_survivors(value_of(ranks.rank()), &mut join, limit)
    });
    let all: Vec<u8> = (0..4).flat_map(value_of).collect();
    assert!(seen[0].as_ref().is_some_and(|found| *found == all));
    assert!(seen[1..].iter().all(Option::is_none));
}

#[test]
fn the_ends_of_ranks_that_take_too_long_are_not_known() {
    for (sleep_s, expected) in [(3, true), (15, false)] {
        let seen = run((3, 1), move |world, ranks| {
            if ranks.rank() == 2 {
                ranks.fail("out of luck");
                plimsoll_runtime::sleep(Duration::from_secs(sleep_s));
                return None;
            }
            ranks.barrier().unwrap_err();
            let begin = world.time();
            let are_known = ranks.rank() == 0 && ranks.wait_for_ends(Duration::from_secs(10));
            (ranks.rank() == 0).then(|| (are_known, world.time() - begin))
        });
        let (are_known, time) = seen[0].unwrap();
        assert_eq!(are_known, expected, "after {sleep_s} s");
        assert!(time < Duration::from_millis(10_200), "{time:?}");
    }
}

#[test]
fn a_stop_request_is_passed_on_while_a_rank_waits() {
    for who in [0, 3] {
        let requested = Arc::new(AtomicBool::new(false));
        let request = requested.clone();
        let environment = move |_: &World| {
            plimsoll_runtime::sleep(Duration::from_secs(1));
            request.store(true, SeqCst);
        };
        let seen = run_beside((4, 2), Duration::ZERO, environment, move |_, ranks| {
            if ranks.rank() == who {
                let requested = requested.clone();
                ranks.pass_on_stop_request(Box::new(move || requested.load(SeqCst)));
            }
            let late = (who + 1) % 4;
            let before = ranks.poll();
            if ranks.rank() == late {
                plimsoll_runtime::sleep(Duration::from_secs(2));
            }
            ranks.barrier().unwrap();
            (before, ranks.poll(), ranks.sum(1))
        });
        for seen in seen {
            let expected = (GroupStatus::Nothing, GroupStatus::Stop, Ok(4));
            assert_eq!(seen, Some(expected));
        }
    }
}

#[test]
fn rank_0_sees_when_all_others_wait() {
    let seen = run((4, 2), |_, ranks| {
        let rank = ranks.rank();
        let mut seen = Vec::new();
        if rank > 0 {
            // Rank 3 is a child of rank 2, or arrives last.
            plimsoll_runtime::sleep(Duration::from_secs(u64::from(rank)));
            seen.push(ranks.others_wait());
        }
        while rank == 0 && seen.len() < 5 {
            plimsoll_runtime::sleep(Duration::from_millis(900));
            assert_eq!(ranks.poll(), GroupStatus::Nothing);
            seen.push(ranks.others_wait());
        }
        ranks.barrier().unwrap();
        seen
    });
    assert_eq!(seen[0], [false, false, false, true, true]);
    assert_eq!(seen[1..], [[false], [false], [false]]);
}

#[test]
fn a_rank_that_does_not_reply_to_a_failure_is_waited_for_20_seconds() {
    let stop = |world: &World| {
        plimsoll_runtime::sleep(Duration::from_secs(1));
        let process = world.processes.lock().unwrap()[1];
        world.handle.set_stopped(process, true);
        plimsoll_runtime::sleep(Duration::from_secs(60));
        world.handle.set_stopped(process, false);
    };
    let seen = run_beside((2, 1), Duration::ZERO, stop, |world, ranks| {
        if ranks.rank() == 0 {
            plimsoll_runtime::sleep(Duration::from_secs(2));
            let begin = world.time();
            ranks.fail("out of luck");
            return (world.time() - begin, ranks.poll());
        }
        let _ = ranks.barrier();
        (world.time(), ranks.poll())
    });
    let status = GroupStatus::Failed(error(0, "out of luck"));
    let (waited, at_0) = seen[0].clone().unwrap();
    let limit = Duration::from_secs(20);
    let slack = Duration::from_millis(100) + SLACK;
    assert!(waited >= limit && waited < limit + slack, "{waited:?}");
    let (time, at_1) = seen[1].clone().unwrap();
    // The stopped rank learns of the failure when it continues.
    assert!(time > Duration::from_secs(60), "{time:?}");
    assert_eq!((at_0, at_1), (status.clone(), status));
}

/// A rank listens until all of its neighbours have sent their end, and does not wait for other ranks.
#[test]
fn a_rank_that_has_ended_stays_until_its_neighbours_end() {
    let seen = run((7, 2), |world, ranks| {
        ranks.barrier().unwrap();
        if ranks.rank() != 4 {
            return vec![];
        }
        plimsoll_runtime::sleep(Duration::from_secs(3));
        let processes = world.processes.lock().unwrap().clone();
        let are_alive = processes.iter().map(|p| world.handle.is_alive(*p));
        are_alive.collect::<Vec<bool>>()
    });
    // Rank 4 is between rank 0 and ranks 5 and 6.
    let alive = [true, false, false, false, true, true, true];
    assert_eq!(seen[4], alive);
}
