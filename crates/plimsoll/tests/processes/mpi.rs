//! Processes of `mpiexec`, of the library this test is built with.

use crate::AS_RANK;
use crate::mpiexec::Library;
use crate::run::{Ended, start};
use libtest_mimic::Trial;

/// The tests.
pub fn trials() -> Vec<Trial> {
    let sizes = [1, 2, 4, 8];
    let mut trials: Vec<_> = sizes
        .into_iter()
        .map(|size| {
            trial(format!("mpi::collectives_{size}"), move || {
                run(size, "collectives").assert_ok();
                let barriers = run(size, "barriers 1000");
                barriers.assert_ok();
                println!("{}", barriers.out[0]);
            })
        })
        .collect();
    trials.extend([
        trial("mpi::failures", failures),
        trial("mpi::fails_in_the_middle", fails_in_the_middle),
        trial("mpi::killed", killed),
        trial("mpi::ended", ended),
        trial("mpi::hung", hung),
        trial("mpi::polls", polls),
        trial("mpi::resources", resources),
        trial("mpi::refusals", refusals),
    ]);
    trials
}

/// A test that fails by panicking.
fn trial(name: impl Into<String>, test: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

fn start_with(library: Library, size: u32, processes: &str, scenario: &str) -> Ended {
    let mut command = library.mpiexec(size);
    command.arg(std::env::current_exe().unwrap());
    command.args([AS_RANK, processes]);
    command.args(scenario.split_whitespace());
    start(command).end()
}

fn run(size: u32, scenario: &str) -> Ended {
    start_with(Library::built_with(), size, "-", scenario)
}

fn failures() {
    for call in 0..5 {
        let ended = run(4, &format!("fail {call} 3"));
        ended.assert_all_told(4, &[], "rank 3: out of luck");
        assert_eq!(ended.status.code(), Some(1));
    }
    // More ranks than the leader has children.
    let ended = run(12, "fail 0 11");
    let told = ended.told();
    assert!(told.iter().all(|t| t.ends_with(": rank 11: out of luck")));
    assert_eq!(told.len(), 12, "{ended:?}");
    let ended = run(4, "mix-up 3");
    let reason = "rank 3: it made call 0 (sum) when rank 0 made call 0 (max)";
    ended.assert_all_told(4, &[], reason);
}

fn fails_in_the_middle() {
    for call in [2, 3] {
        let ended = run(4, &format!("fail-inside {call} 0"));
        ended.assert_all_told(4, &[], "rank 0: out of luck");
        assert_eq!(ended.status.code(), Some(1));
    }
    let ended = run(4, "panic 2");
    ended.assert_all_told(4, &[2], "rank 2: the program panicked");
    assert!(!ended.status.success());
}

/// The launcher ends all ranks when one dies, and says so.
fn killed() {
    for call in [0, 1, 2, 3] {
        let ended = run(8, &format!("kill {call} 5"));
        assert!(!ended.status.success(), "{ended:?}");
        assert!(!ended.out.iter().any(|l| l == "ok"), "{ended:?}");
    }
}

fn ended() {
    let ended = run(4, "leave 1");
    ended.assert_all_told(4, &[1], "rank 1: it ended before the others");
    assert_eq!(ended.status.code(), Some(1));
    let ended = run(4, "exit 2");
    assert!(!ended.status.success(), "{ended:?}");
}

/// A rank that does not answer after a failure is not waited for without end.
fn hung() {
    let mut ended = run(4, "hang 2");
    // Open MPI lets it go on for a moment before it kills it.
    ended.err.retain(|l| !l.starts_with("told: 2:"));
    ended.assert_all_told(4, &[2], "rank 0: out of luck");
    assert!(!ended.status.success(), "{ended:?}");
    let said = "another rank has not ended within 20 s of a failure; all ranks are aborted";
    assert!(ended.err.iter().any(|l| l.contains(said)), "{ended:?}");
}

fn polls() {
    run(8, "stop 0").assert_ok();
    run(12, "stop 11").assert_ok();
    let ended = run(8, "fail-while-working 6");
    ended.assert_all_told(8, &[], "rank 6: out of luck");
}

fn resources() {
    run(8, "bounded").assert_ok();
    run(4, "idle").assert_ok();
}

fn refusals() {
    let this = Library::built_with();
    let ended = start_with(this, 2, "2", "describe");
    let told = ended.told();
    assert_eq!(told.len(), 1, "one of the processes says it: {ended:?}");
    assert!(told[0].starts_with("--processes 2 cannot be used here: "));
    assert!(!ended.status.success());

    // The launcher of one library, a program of the other: each process would be alone.
    let other = match this {
        Library::OpenMpi => Library::Mpich,
        Library::Mpich => Library::OpenMpi,
    };
    let ended = start_with(other, 3, "-", "describe");
    let told = ended.told();
    assert_eq!(told.len(), 1, "one of the processes says it: {ended:?}");
    assert!(told[0].contains("started 3 processes, but the MPI library of this plimsoll ("));
    assert!(told[0].contains(") sees 1; build plimsoll with the MPI library of the launcher"));
    assert!(!ended.status.success());
}
