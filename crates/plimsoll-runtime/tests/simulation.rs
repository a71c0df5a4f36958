//! Simulated processes: order, time, ends, disks.

use plimsoll_runtime::{
    DiskCall, DiskFault, Monitor, SimulatedDisk, Simulation, SimulationEnd, disk_call, now, park,
    run_on_threads, simulated_clock, sleep, spawn,
};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const BUSY: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Texts that simulated threads passed to `note`, in the order of the calls.
type Notes = Arc<Mutex<Vec<String>>>;

fn note(notes: &Notes, text: impl Into<String>) {
    notes.lock().unwrap().push(text.into());
}

#[test]
fn sleepers_wake_in_order_of_time_and_an_hour_takes_none() {
    let (simulation, notes) = (Simulation::new(1), Notes::default());
    for delay in [3000u64, 1000, 2000] {
        let notes = notes.clone();
        simulation.handle().spawn_process("p", move || {
            let begun = now();
            sleep(Duration::from_secs(delay));
            let slept = (now() - begun).as_secs_f64();
            assert!((slept - delay as f64).abs() < 1e-3, "{slept}");
            note(&notes, delay.to_string());
        });
    }
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    assert_eq!(*notes.lock().unwrap(), ["1000", "2000", "3000"]);
}

fn order(seed: u64) -> Vec<String> {
    let (simulation, notes) = (Simulation::new(seed), Notes::default());
    for process in 0..3 {
        let notes = notes.clone();
        simulation.handle().spawn_process("p", move || {
            run_on_threads(
                3,
                |thread| {
                    for turn in 0..3 {
                        note(&notes, format!("{process} {thread} {turn}"));
                        sleep(Duration::ZERO);
                    }
                },
                ms(100),
                || {},
            )
            .expect("threads start");
        });
    }
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    let notes = notes.lock().unwrap().clone();
    assert_eq!(notes.len(), 27);
    notes
}

#[test]
fn a_seed_is_an_order() {
    assert_eq!(order(7), order(7));
    assert!((8..20).any(|seed| order(seed) != order(7)));
}

#[test]
fn a_monitor_is_waited_for_and_times_out() {
    let (simulation, notes) = (Simulation::new(2), Notes::default());
    let both = notes.clone();
    simulation.handle().spawn_process("p", move || {
        let monitor = Arc::new(Monitor::new(0));
        let other = monitor.clone();
        spawn("setter".into(), move || {
            sleep(ms(50));
            other.update(|v| *v = 5);
        })
        .unwrap();
        let begun = now();
        drop(monitor.wait_timeout_while(ms(20), |v| *v == 0));
        assert!((20..21).contains(&(now() - begun).as_millis()));
        assert_eq!(*monitor.wait_while(|v| *v == 0), 5);
        assert!((50..51).contains(&(now() - begun).as_millis()));
        note(&both, "done");
    });
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    assert_eq!(notes.lock().unwrap().len(), 1);
}

#[test]
fn a_killed_process_does_nothing_more() {
    let (simulation, notes) = (Simulation::new(3), Notes::default());
    let handle = simulation.handle();
    let mine = notes.clone();
    let victim = handle.spawn_process("victim", move || {
        loop {
            note(&mine, "alive");
            sleep(ms(10));
        }
    });
    let killer = simulation.handle();
    handle.spawn_process("killer", move || {
        sleep(ms(95));
        killer.kill(victim);
        assert!(!killer.is_alive(victim));
        sleep(ms(500));
    });
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    assert_eq!(notes.lock().unwrap().len(), 10);
}

#[test]
fn a_stopped_process_continues_later() {
    let (simulation, notes) = (Simulation::new(4), Notes::default());
    let mine = notes.clone();
    let handle = simulation.handle();
    let stopped = handle.spawn_process("stopped", move || {
        let begun = now();
        sleep(ms(10));
        note(&mine, (now() - begun).as_millis().to_string());
    });
    let other = simulation.handle();
    handle.spawn_process("other", move || {
        sleep(ms(1));
        other.set_stopped(stopped, true);
        sleep(ms(299));
        other.set_stopped(stopped, false);
    });
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    assert_eq!(*notes.lock().unwrap(), ["300"]);
}

#[test]
fn what_never_ends_is_named() {
    let simulation = Simulation::new(5);
    simulation.handle().spawn_process("waits", || park(None));
    let end = simulation.run(HOUR, BUSY);
    assert!(
        matches!(&end, SimulationEnd::Deadlock(left) if left[0].starts_with("waits")),
        "{end:?}"
    );

    let simulation = Simulation::new(5);
    simulation.handle().spawn_process("sleeps", || {
        loop {
            sleep(Duration::from_secs(1));
        }
    });
    let end = simulation.run(HOUR, BUSY);
    assert!(
        matches!(&end, SimulationEnd::TimeLimit(left) if left[0].starts_with("sleeps")),
        "{end:?}"
    );

    let simulation = Simulation::new(5);
    static IS_SEEN: AtomicBool = AtomicBool::new(false);
    simulation.handle().spawn_process("spins", || {
        while !IS_SEEN.load(Relaxed) {
            std::hint::spin_loop();
        }
    });
    let end = simulation.run(HOUR, ms(100));
    IS_SEEN.store(true, Relaxed);
    assert_eq!(end, SimulationEnd::Livelock("spins".into()));

    let simulation = Simulation::new(6);
    simulation.handle().spawn_process("waits outside", || {
        loop {
            std::thread::park();
        }
    });
    let end = simulation.run(HOUR, ms(100));
    assert_eq!(end, SimulationEnd::Livelock("waits outside".into()));
}

#[test]
fn panics_are_noted_with_their_simulation() {
    let simulation = Simulation::new(6);
    let handle = simulation.handle();
    handle.spawn_process("p", || panic!("a test of panics"));
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    assert!(handle.panics()[0].contains("a test of panics"));
}

/// The error numbers of a process's calls: writes, and a sync every third time.
fn calls(disk: SimulatedDisk) -> Vec<Option<i32>> {
    let (simulation, errors) = (Simulation::new(5), Arc::new(Mutex::new(vec![])));
    let handle = simulation.handle();
    let (found, begun) = (errors.clone(), handle.now());
    let process = handle.spawn_process("p", move || {
        for n in 1..=6 {
            let call = match n % 3 {
                0 => DiskCall::Sync,
                _ => DiskCall::Write,
            };
            let error = disk_call(call).err().and_then(|e| e.raw_os_error());
            found.lock().unwrap().push(error);
        }
    });
    let other = handle.spawn_process("other", || disk_call(DiskCall::Write).unwrap());
    handle.set_disk(process, disk);
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    let errors = std::mem::take(&mut *errors.lock().unwrap());
    assert_eq!(
        (handle.disk_errors(process), handle.disk_errors(other)),
        (errors.iter().flatten().count() as u64, 0)
    );
    let took = Duration::from_nanos(handle.now() - begun);
    assert!(
        took >= 6 * disk.latency && took < 6 * disk.latency + ms(1),
        "{took:?}"
    );
    errors
}

#[test]
fn a_disk_fails_at_the_calls_that_were_chosen() {
    let errors = |fault| {
        calls(SimulatedDisk {
            latency: ms(20),
            fault,
        })
    };
    let (full, broken) = (Some(28), Some(5));
    assert_eq!(errors(None), [None; 6]);
    let full_from = [None, None, None, full, full, None];
    assert_eq!(errors(Some(DiskFault::FullFrom(2))), full_from);
    let broken_at = [None, None, broken, None, None, None];
    assert_eq!(errors(Some(DiskFault::BrokenAt(2))), broken_at);
    let broken_from = [None, None, None, None, broken, broken];
    assert_eq!(errors(Some(DiskFault::BrokenFrom(4))), broken_from);
    assert_eq!(calls(SimulatedDisk::default()), [None; 6]);
}

#[test]
fn the_disk_of_the_system_is_not_simulated() {
    disk_call(DiskCall::Write).unwrap();
    disk_call(DiskCall::Sync).unwrap();
}

#[test]
fn clocks_drift_apart_and_waits_follow_them() {
    let (simulation, notes) = (Simulation::new(6), Notes::default());
    let handle = simulation.handle();
    for ppm in [-500, 0, 500i64] {
        let (notes, truth) = (notes.clone(), handle.clone());
        let process = handle.spawn_process("p", move || {
            let clock = simulated_clock().unwrap();
            let (begun, read) = (now(), clock.read());
            sleep(Duration::from_secs(1000));
            // Both clocks of the drifting process show 1000 s for a sleep of 1000 s, whatever the drift.
            let slept = now() - begun;
            let passed = Duration::from_nanos(clock.read() - read);
            for time in [slept, passed] {
                assert!(
                    time >= Duration::from_secs(1000) && time < Duration::from_secs(1000) + ms(1)
                );
            }
            let took_ms = (truth.now() as f64 / 1e6).round();
            note(&notes, format!("{ppm}: {took_ms}"));
        });
        handle.set_clock_drift(process, ppm);
    }
    assert_eq!(simulation.run(HOUR, BUSY), SimulationEnd::Finished);
    // A clock that runs 500 millionths fast shows 1000 s after 999.5 s of simulated time.
    let expected = ["500: 999500", "0: 1000000", "-500: 1000500"];
    assert_eq!(*notes.lock().unwrap(), expected);
}
