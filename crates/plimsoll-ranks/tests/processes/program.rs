//! Program of each rank, with the arguments `PROCESSES SCENARIO [NUMBER...]`; `PROCESSES` is `-` without `--processes`.

use plimsoll_ranks::{
    GroupStatus, RankError, Ranks, connect, is_assigned_rank, is_launched, is_output_forwarded,
    is_reporting_rank,
};
use std::io::Write;
use std::process::{ExitCode, exit};
use std::time::Duration;

/// Runs one rank. The exit code is 0 on success, after the line `ok`; 1 after a failure; 2 if the ranks cannot be
/// connected because of the arguments or the environment; 101 after a failed assertion.
pub fn run(arguments: &[String]) -> ExitCode {
    let [processes, scenario, numbers @ ..] = arguments else {
        panic!("PROCESSES SCENARIO [NUMBER...]");
    };
    let numbers: Vec<u32> = numbers.iter().map(|n| n.parse().unwrap()).collect();
    if scenario == "roles" {
        tell(&roles());
    }
    run_scenario(processes.parse().ok(), scenario, &numbers)
}

/// Role of this process before the process joins the other ranks.
fn roles() -> String {
    format!(
        "reports {}, launched {}, forwarded {}, assigned {}",
        is_reporting_rank(),
        is_launched(),
        is_output_forwarded(),
        is_assigned_rank()
    )
}

/// Position, size, host and kind of each rank, collected at rank 0.
pub fn places(ranks: &Ranks) -> Result<Vec<String>, RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let mine = format!(
        "{rank} of {size} on {:?}, {}",
        ranks.host(),
        ranks.root_works()
    );
    let mut all = Vec::new();
    let mut take = |_, bytes| all.push(String::from_utf8(bytes).unwrap());
    ranks.collect(mine.into_bytes(), &mut take)?;
    Ok(all)
}

pub fn run_scenario(processes: Option<u32>, scenario: &str, numbers: &[u32]) -> ExitCode {
    let ranks = match connect(processes, crate::JOIN_MPI) {
        Ok(ranks) => ranks,
        Err(error) => {
            if !error.is_reported_elsewhere() {
                tell(&format!("{error}"));
            }
            return ExitCode::from(if error.is_usage() { 2 } else { 1 });
        }
    };
    let rank = ranks.rank();
    assert!(!is_assigned_rank());
    let outcome = play(&ranks, scenario, numbers);
    if let Err(error) = &outcome {
        tell(&format!("{rank}: {error}"));
    }
    drop(ranks);
    if rank == 0 {
        assert_no_children();
    }
    match outcome {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::from(1),
    }
}

/// Writes a line to standard error in one call, so that lines of ranks do not mix.
pub fn tell(what: &str) {
    let line = format!("told: {what}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Executes the part of a rank in a scenario.
pub fn play(ranks: &Ranks, scenario: &str, numbers: &[u32]) -> Result<(), RankError> {
    let number = |i: usize| numbers[i];
    let me = |i: usize| numbers[i] == ranks.rank();
    match scenario {
        "collectives" => collectives(ranks),
        "barriers" => barriers(ranks, number(0)),
        "bounded" => bounded(ranks),
        "idle" => idle(ranks),
        "fail" => {
            // On other ranks, the failure may arrive before the barrier has ended.
            let _ = ranks.barrier();
            if me(1) {
                ranks.fail("out of luck");
            }
            every_call(ranks, number(0))
        }
        "fail-inside" => fail_inside(ranks, number(0), me(1)),
        "fail-while-working" => work(ranks, || {
            if me(0) {
                ranks.fail("out of luck");
            }
        }),
        "stop" => work(ranks, || {
            if me(0) {
                ranks.request_stop();
            }
        }),
        "kill" => {
            ranks.barrier()?;
            if me(1) {
                let this = rustix::process::getpid();
                rustix::process::kill_process(this, rustix::process::Signal::KILL).unwrap();
            }
            every_call(ranks, number(0))
        }
        "hang" => {
            if me(0) {
                let this = rustix::process::getpid();
                rustix::process::kill_process(this, rustix::process::Signal::STOP).unwrap();
            }
            if ranks.rank() == 0 {
                ranks.fail("out of luck");
            }
            ranks.barrier()
        }
        "freeze" => {
            ranks.barrier()?;
            if me(0) {
                let this = rustix::process::getpid();
                rustix::process::kill_process(this, rustix::process::Signal::STOP).unwrap();
            }
            ranks.barrier()
        }
        "panic" => {
            let _ = ranks.barrier();
            assert!(!me(0), "this panic is wanted");
            every_call(ranks, 0)
        }
        "leave" if me(0) => Ok(()),
        "leave" => ranks.barrier(),
        "exit" => {
            ranks.barrier()?;
            if me(0) {
                exit(7);
            }
            ranks.barrier()
        }
        "mix-up" if me(0) => ranks.sum(1).map(drop),
        "mix-up" => ranks.max(1).map(drop),
        "linger" => {
            tell(&format!("{}", std::process::id()));
            loop {
                std::thread::sleep(Duration::from_millis(1));
                if let GroupStatus::Failed(error) = ranks.poll() {
                    return Err(error);
                }
            }
        }
        "describe" => describe(ranks),
        "roles" => ranks.barrier(),
        "places" => places(ranks).map(drop),
        _ => panic!("no scenario {scenario}"),
    }
}

/// Bytes that are distinct for each rank and round.
fn bytes_of(rank: u32, round: usize, len: usize) -> Vec<u8> {
    let mut state = (u64::from(rank) << 32) + round as u64 + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Makes all collective calls with values of many sizes, and compares the results with values computed locally.
fn collectives(ranks: &Ranks) -> Result<(), RankError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let kib = 1024;
    let lengths = [
        0, 1, 7, 8, 255, 4095, 4096, 4097, 65_535, 65_536, 65_537, 300_000,
    ];
    let long = [kib * kib - 1, kib * kib, kib * kib + 1, 5 * kib * kib + 3];
    for (round, &len) in lengths.iter().chain(&long).enumerate() {
        // The arguments of ranks other than 0 to a broadcast are ignored.
        let own_len = if rank == 0 { len } else { 3 };
        let got = ranks.broadcast(bytes_of(rank, round, own_len))?;
        assert!(got == bytes_of(0, round, len), "broadcast of {len}");
    }
    for (round, &len) in lengths.iter().enumerate() {
        let expected = (0..size).fold(vec![0; len], |sum, r| add(sum, bytes_of(r, round, len)));
        let reduced = ranks.reduce(bytes_of(rank, round, len), &mut add)?;
        assert!(reduced == (rank == 0).then_some(expected), "sum of {len}");

        let len_of = |rank: u32| lengths[(round + rank as usize) % lengths.len()];
        let mine = bytes_of(rank, round, len_of(rank));
        let all: Vec<_> = (0..size).map(|r| bytes_of(r, round, len_of(r))).collect();
        let joined = ranks.reduce(mine.clone(), &mut |a, b| [a, b].concat())?;
        let expected = (rank == 0).then(|| all.concat());
        assert!(joined == expected, "reduce in rank order, round {round}");

        let mut taken = Vec::new();
        ranks.collect(mine, &mut |rank, bytes| taken.push((rank, bytes)))?;
        let all = if rank == 0 { all } else { Vec::new() };
        assert!(taken == (0..).zip(all).collect::<Vec<_>>(), "round {round}");
    }
    let number_of = |rank: u32| u64::from(rank).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 8;
    let numbers = || (0..size).map(number_of);
    let mine = number_of(rank);
    assert_eq!(Some(ranks.max(mine)?), numbers().max());
    assert_eq!(Some(ranks.min(mine)?), numbers().min());
    assert_eq!(ranks.sum(mine)?, numbers().sum());
    assert_eq!(
        ranks.sum(u64::MAX)?,
        u64::MAX,
        "sums end at the largest number"
    );
    Ok(())
}

/// Adds bytes element by element, modulo 256.
fn add(a: Vec<u8>, b: Vec<u8>) -> Vec<u8> {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(b)).collect()
}

fn barriers(ranks: &Ranks, count: u32) -> Result<(), RankError> {
    let begin = std::time::Instant::now();
    for _ in 0..count {
        ranks.barrier()?;
    }
    if ranks.rank() == 0 {
        let each = begin.elapsed() / count;
        println!("a barrier of {} took {each:?}", ranks.size());
    }
    assert_eq!(
        ranks.sum(u64::from(count))?,
        u64::from(count * ranks.size())
    );
    Ok(())
}

/// Makes the same call at every rank, then a barrier: a rank that only sends may have finished the call before a
/// failure arrives.
fn every_call(ranks: &Ranks, call: u32) -> Result<(), RankError> {
    let mine = vec![1; 3 << 20];
    match call {
        0 => ranks.barrier(),
        1 => ranks.broadcast(mine).map(drop),
        2 => ranks.reduce(mine, &mut |a, _| a).map(drop),
        3 => ranks.collect(mine, &mut |_, _| {}),
        _ => ranks.sum(1).map(drop),
    }?;
    ranks.barrier()
}

/// Fails at one rank during a reduction (call 2; the rank must have children) or, at rank 0, during a collection (any
/// other call).
fn fail_inside(ranks: &Ranks, call: u32, me: bool) -> Result<(), RankError> {
    let mine = vec![1; 3 << 20];
    if call == 2 {
        ranks.reduce(mine, &mut |a, _| {
            if me {
                ranks.fail("out of luck");
            }
            a
        })?;
    } else {
        ranks.collect(mine, &mut |rank, _| {
            if rank == 1 {
                ranks.fail("out of luck");
            }
        })?;
    }
    ranks.barrier()
}

/// Polls the group while a thread works, until all ranks are asked to stop; calls `event` once during the work.
fn work(ranks: &Ranks, event: impl Fn()) -> Result<(), RankError> {
    let working = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut work = 1u64;
            while working.load(std::sync::atomic::Ordering::Relaxed) {
                work = std::hint::black_box(work.wrapping_mul(3));
            }
        });
        let mut polls = 0;
        let outcome = loop {
            polls += 1;
            match ranks.poll() {
                GroupStatus::Nothing if polls == 20 => event(),
                GroupStatus::Nothing => std::thread::sleep(Duration::from_millis(2)),
                GroupStatus::Stop => break Ok(()),
                GroupStatus::Failed(error) => break Err(error),
            }
        };
        working.store(false, std::sync::atomic::Ordering::Relaxed);
        outcome
    })?;
    // A stop is not a failure: later calls succeed.
    assert_eq!(ranks.sum(1)?, u64::from(ranks.size()));
    assert_eq!(ranks.poll(), GroupStatus::Stop);
    Ok(())
}

/// A rank's memory does not grow with the number of ranks: a rank holds a few values, not one per rank.
fn bounded(ranks: &Ranks) -> Result<(), RankError> {
    const VALUE: usize = 24 << 20;
    let before = peak_bytes();
    ranks.reduce(vec![1; VALUE], &mut |a, _| a)?;
    ranks.barrier()?;
    ranks.collect(vec![1; VALUE], &mut |_, bytes| {
        assert_eq!(bytes.len(), VALUE);
    })?;
    // Three values; one of them grows while it is received and takes twice its size; and frames.
    let grown = peak_bytes() - before;
    assert!(grown < 6 * VALUE, "{} grew by {grown}", ranks.rank());
    ranks.barrier()
}

/// Peak resident memory of this process in bytes.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// Ranks that wait for a slow rank use no processor time.
fn idle(ranks: &Ranks) -> Result<(), RankError> {
    ranks.barrier()?;
    let waiting = Duration::from_millis(1500);
    let before = processor_time();
    if ranks.rank() == 0 {
        std::thread::sleep(waiting);
    }
    ranks.barrier()?;
    let used = processor_time() - before;
    assert!(used < waiting / 5, "rank {} used {used:?}", ranks.rank());
    ranks.barrier()
}

/// Processor time of this process's main thread so far.
fn processor_time() -> Duration {
    let usage = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    let ns = usage.split_whitespace().next().unwrap().parse().unwrap();
    Duration::from_nanos(ns)
}

/// Describes the rank's environment: group size, standard input and arguments.
fn describe(ranks: &Ranks) -> Result<(), RankError> {
    println!("this is rank {}", ranks.rank());
    let stdin = std::io::read_to_string(std::io::stdin()).unwrap();
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    tell(&format!(
        "{}: one of {}, stdin {stdin:?}, arguments {}",
        ranks.rank(),
        ranks.size(),
        arguments.join(" ")
    ));
    ranks.barrier()
}

/// Asserts that no process started by rank 0 is left, not even as a zombie.
fn assert_no_children() {
    let left = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
    assert_eq!(left.unwrap_err(), rustix::io::Errno::CHILD);
}
