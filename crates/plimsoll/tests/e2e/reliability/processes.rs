//! Signals, and ranks that stand still.

use super::{READS_AND_WRITES, written};
use crate::common::{Bench, Ended, MARKER, rank_of, signal, started, wait_until};
use plimsoll_results::Verdict;
use rustix::process::Signal;
use std::time::Duration;

/// Signals that announce the end of the terminal, of a job or of the processor time.
const NOTICES: [Signal; 5] = [
    Signal::HUP,
    Signal::USR1,
    Signal::USR2,
    Signal::ALARM,
    Signal::XCPU,
];

/// The command with default handling of [`NOTICES`]: the test process may ignore some of these signals, for example
/// under `nohup`.
fn heeding_notices(command: &std::process::Command) -> std::process::Command {
    let mut heeding = std::process::Command::new("env");
    heeding
        .arg("--default-signal=HUP,USR1,USR2,ALRM,XCPU")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => heeding.env(name, value),
            None => heeding.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        heeding.current_dir(dir);
    }
    heeding
}

/// One or two notices of the end end the run as one interrupt does.
#[test]
fn a_notice_of_the_end_ends_the_run_in_order() {
    for notice in NOTICES {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(READS_AND_WRITES);
        let command = heeding_notices(&bench.command_in_work(&workload, &[]));
        let run = started(command, "measuring");
        let pid = run.child.id() as i32;
        signal(pid, notice);
        std::thread::sleep(Duration::from_millis(50));
        signal(pid, notice);
        let run = run.end().result(130);
        assert_eq!(run.validity.verdict, Verdict::Interrupted, "{notice:?}");
        assert_eq!(written(&bench), run);
        assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0], "{notice:?}");
    }
}

/// Plimsoll ignores notices that were ignored when the program began: SIGHUP by `nohup`, the other signals by `trap`.
#[test]
fn a_notice_that_is_ignored_stays_ignored() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let plimsoll = bench.command_in_work(&workload, &["--time=1s"]);
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "trap '' HUP USR1 USR2 ALRM XCPU; exec \"$0\" \"$@\""])
        .arg(plimsoll.get_program())
        .args(plimsoll.get_args())
        .current_dir(bench.root());
    let run = started(command, "measuring");
    for notice in NOTICES {
        signal(run.child.id() as i32, notice);
    }
    let run = run.end().result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert!(run.window_s >= 1.0);
}

/// Each process has its own processor-time limit, and a scheduler may send a notice to any process, here to rank 1.
#[test]
fn a_rank_that_reaches_its_processor_time_ends_the_run_in_order() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let command = heeding_notices(&bench.command_in_work(&workload, &["--processes=2"]));
    let run = started(command, "measuring");
    signal(rank_of(run.child.id(), 1), Signal::XCPU);
    let run = run.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!(written(&bench), run);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

/// A process that is killed leaves its files and what it has measured; the next run takes the directory
/// over, and the results are made of the intervals.
#[test]
fn a_killed_run_leaves_what_it_measured() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let command = bench.command_in_work(&workload, &["--interval=50ms"]);
    let mut run = started(command, "measuring");
    let rows = || {
        let series = bench.results().first().map(|d| d.intervals_path());
        let text = series.map(|path| std::fs::read_to_string(path).unwrap_or_default());
        text.map_or(0, |text| text.lines().count())
    };
    wait_until("no interval ended", || rows() > 8);
    run.child.kill().unwrap();
    assert_eq!(run.end().code, None);
    assert!(bench.work().join(MARKER).exists());
    let hidden = bench.results()[0].path().to_owned();
    let mut recover = bench.plimsoll(["report", "--recover", "--format=json"]);
    recover.arg(&hidden);
    let recovered = Ended::of(recover).expect_code(0).parsed().unwrap();
    assert_eq!(recovered.validity.verdict, Verdict::Interrupted);
    assert!(recovered.summary.ops > 0);
    let next = bench.run_in_work(&workload, &["--ops=10"]).result(0);
    assert_eq!(next.validity.verdict, Verdict::Valid);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

/// A rank that stands still holds the end of the run up, since it may go on: an interrupt says so, and
/// whatever becomes of it, the others end.
#[test]
fn a_rank_that_is_stopped() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let more = ["--processes=2", "--time=1s"];
    let run = started(bench.command_in_work(&workload, &more), "measuring");
    let stopped = rank_of(run.child.id(), 1);
    signal(stopped, Signal::STOP);
    std::thread::sleep(Duration::from_secs(2));
    signal(stopped, Signal::CONT);
    let ended = run.end();
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

/// One that never goes on is ended by the user, and the run says which it was.
#[test]
fn a_rank_that_never_goes_on() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let more = ["--processes=2", "--time=500ms"];
    let run = started(bench.command_in_work(&workload, &more), "measuring");
    let stopped = rank_of(run.child.id(), 1);
    signal(stopped, Signal::STOP);
    std::thread::sleep(Duration::from_secs(1));
    signal(stopped, Signal::KILL);
    let run = run.end().result(1);
    let error = &run.failure.as_ref().unwrap().error;
    assert!(error.contains("rank 1: died (signal 9)"), "{error}");
    assert_eq!(written(&bench), run);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}
