//! Local ranks: copies that the program starts.

use crate::run::{Ended, start};
use crate::{AS_RANK, trial};
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::process::Command;
use std::time::{Duration, Instant};

/// Tests of local ranks.
pub fn trials() -> Vec<Trial> {
    let sizes = [1, 2, 4, 8];
    let mut trials: Vec<_> = sizes
        .into_iter()
        .map(|size| {
            trial(format!("local::collectives_{size}"), move || {
                run(size, "collectives").assert_ok();
                run(size, "barriers 1000").assert_ok();
            })
        })
        .collect();
    trials.extend([
        trial("local::failures", failures),
        trial("local::killed", killed),
        trial("local::ended", ended),
        trial("local::hung", hung),
        trial("local::polls", polls),
        trial("local::parent_killed", parent_killed),
        trial("local::copies", copies),
        trial("local::resources", resources),
        trial("local::refusals", refusals),
        trial("local::no_copy_by_accident", no_copy_by_accident),
        trial("local::roles", roles),
    ]);
    trials
}

fn command(processes: &str, scenario: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([AS_RANK, processes]);
    command.args(scenario.split_whitespace());
    command
}

fn run(size: u32, scenario: &str) -> Ended {
    start(command(&size.to_string(), scenario)).end()
}

fn failures() {
    for call in 0..5 {
        for who in [0, 1, 3] {
            let ended = run(4, &format!("fail {call} {who}"));
            ended.assert_all_told(4, &[], &format!("rank {who}: out of luck"));
            assert_eq!(ended.status.code(), Some(1));
        }
    }
    for call in [2, 3] {
        let ended = run(4, &format!("fail-inside {call} 0"));
        ended.assert_all_told(4, &[], "rank 0: out of luck");
    }
    let ended = run(4, "panic 2");
    ended.assert_all_told(4, &[2], "rank 2: the program panicked");
    let ended = run(4, "mix-up 3");
    let reason = "rank 3: it made call 0 (sum) when rank 0 made call 0 (max)";
    ended.assert_all_told(4, &[], reason);
}

fn killed() {
    for call in 0..5 {
        let ended = run(8, &format!("kill {call} 5"));
        ended.assert_all_told(8, &[5], "rank 5: died (signal 9)");
        assert_eq!(ended.status.code(), Some(1));
    }
}

fn ended() {
    let ended = run(4, "exit 2");
    ended.assert_all_told(4, &[2], "rank 2: ended with exit code 7 before the others");
    let ended = run(4, "leave 1");
    ended.assert_all_told(4, &[1], "rank 1: it ended before the others");
    assert_eq!(ended.status.code(), Some(1));
}

/// A rank that does not reply after a failure is killed after a time limit.
fn hung() {
    let ended = run(4, "hang 2");
    ended.assert_all_told(4, &[2], "rank 0: out of luck");
    assert_eq!(ended.status.code(), Some(1));
    let killed = "rank 2: killed, since it did not end within 20 s";
    assert!(ended.err.iter().any(|l| l == killed), "{ended:?}");
}

fn polls() {
    run(8, "stop 0").assert_ok();
    run(8, "stop 7").assert_ok();
    for who in [0, 6] {
        let ended = run(8, &format!("fail-while-working {who}"));
        ended.assert_all_told(8, &[], &format!("rank {who}: out of luck"));
    }
}

/// Copies end when their parent, rank 0, is killed.
fn parent_killed() {
    let mut running = start(command("8", "linger"));
    let parent = running.child.id();
    let children = wait_for(|| {
        let path = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(path).unwrap_or_default();
        let children: Vec<i32> = children.split(' ').flat_map(str::parse).collect();
        (children.len() == 7).then_some(children)
    });
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let ended = running.end();
    for child in children {
        let pid = Pid::from_raw(child).unwrap();
        // The process that adopted the orphan may not have reaped the orphan yet.
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
            (!stat.contains(") Z")).then_some(())
        };
        assert!(gone().is_none() || test_kill_process(pid).is_err());
    }
    let told = ended.told();
    let errors = told
        .iter()
        .filter(|t| !t.bytes().all(|b| b.is_ascii_digit()));
    for error in errors {
        assert!(
            error.ends_with(": rank 0: died, or ended before the others"),
            "{error}"
        );
    }
}

/// Polls `look` until `look` returns a value; fails after a minute.
fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn copies() {
    let ended = run(3, "describe");
    ended.assert_ok();
    assert_eq!(ended.out, ["this is rank 0", "ok"]);
    let all = "one of 3, stdin \"\", arguments as-rank 3 describe";
    ended.assert_all_told(3, &[], all);
}

fn resources() {
    run(8, "bounded").assert_ok();
    run(4, "idle").assert_ok();
}

fn refusals() {
    for processes in ["0", "1025", "4294967295"] {
        let ended = start(command(processes, "describe")).end();
        let expected = format!("--processes is {processes}: expected 1 to 1024, or 0 with --hosts");
        assert_eq!(ended.told(), [expected]);
        assert_eq!(ended.status.code(), Some(2));
    }
    let launched = |processes: &str, variables: &[(&str, &str)]| {
        let mut command = command(processes, "describe");
        command.envs(variables.iter().copied());
        start(command).end()
    };
    let ended = launched("2", &[("PMI_SIZE", "3"), ("PMI_RANK", "0")]);
    let expected = "--processes 2 cannot be used here: an MPI launcher (PMI) started 3 processes \
                    already";
    assert_eq!(ended.told(), [expected]);
    assert_eq!(ended.status.code(), Some(2));

    let step = [("SLURM_STEP_NUM_TASKS", "3"), ("SLURM_PROCID", "0")];
    let expected = "srun started 3 processes that cannot reach each other; start them with srun \
                    --mpi=pmix or --mpi=pmi2";
    assert_eq!(launched("-", &step).told(), [expected]);

    // A launcher that started one process is no reason to initialise MPI.
    launched("-", &[("PMI_SIZE", "1"), ("PMI_RANK", "0")]).assert_ok();
    launched("2", &[("OMPI_COMM_WORLD_SIZE", "1")]).assert_ok();

    let ended = launched("-", &[("OMPI_COMM_WORLD_SIZE", "4")]);
    let expected = "mpiexec of Open MPI started 4 processes, but this plimsoll was built without MPI; \
                    build with --features mpi";
    assert_eq!(ended.told(), [expected]);
    assert_eq!(ended.status.code(), Some(2));
    let other = [("PMI_SIZE", "4"), ("PMI_RANK", "3")];
    let ended = launched("-", &other);
    assert!(ended.told().is_empty(), "rank 0 says it");
    assert_eq!(ended.status.code(), Some(2));
}

/// A program that a copy starts inherits the variable, but is not a rank.
fn no_copy_by_accident() {
    let mut command = command("-", "describe");
    command.env("PLIMSOLL_LOCAL_RANK", "1/4");
    let ended = start(command).end();
    ended.assert_ok();
    assert_eq!(ended.out, ["this is rank 0", "ok"]);
    let this = Pid::from_raw(std::process::id() as i32).unwrap();
    assert!(kill_process(this, Signal::CONT).is_ok());
}

/// Role of a process before the process joins the other ranks.
fn roles() {
    let shown = |processes: &str, variables: &[(&str, &str)]| {
        let mut command = command(processes, "roles");
        command.envs(variables.iter().copied());
        let ended = start(command).end();
        let lines = ended.told().into_iter().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    let role = |reports: bool, launched: bool, forwarded: bool| {
        format!("reports {reports}, launched {launched}, forwarded {forwarded}, assigned false")
    };
    assert_eq!(shown("-", &[]), [role(true, false, false)]);
    let copies = [role(false, false, false), role(true, false, false)];
    assert_eq!(shown("2", &[]), copies);
    let alone = [("PMI_SIZE", "1"), ("PMI_RANK", "0")];
    assert_eq!(shown("-", &alone), [role(true, false, true)]);
    let other = shown("7", &[("PMI_SIZE", "4"), ("PMI_RANK", "3")]);
    assert_eq!(other, [role(false, true, true)], "rank 0 reports the error");
}
