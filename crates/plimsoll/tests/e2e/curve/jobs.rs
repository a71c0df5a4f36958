//! `curve --jobs`: load points in virtual time that processes measure at the same time.

use super::*;
use crate::common::series::measured_loads;
use crate::common::{children_of, signal, started, tree, wait_until};
use plimsoll_results::SeriesKind;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// Fields of `series.json` and `run.json` that differ between equal runs: machine, time of day, processes and their
/// processor time.
const CIRCUMSTANCES: [&str; 6] = [
    "started_at",
    "environment",
    "cpu_us_per_op",
    "seconds",
    "system",
    "pid",
];

fn without_circumstances(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !CIRCUMSTANCES.contains(&name.as_str()));
            fields.values_mut().for_each(without_circumstances);
        }
        Value::Array(values) => values.iter_mut().for_each(without_circumstances),
        _ => {}
    }
}

/// Relative path and text of each file in a curve's directory; JSON documents are without the fields of
/// [`CIRCUMSTANCES`].
fn results(dir: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = tree(dir)
        .0
        .into_keys()
        .map(|path| {
            let text = std::fs::read_to_string(dir.join(&path)).unwrap();
            if !path.ends_with(".json") {
                return (path, text);
            }
            let mut value: Value = serde_json::from_str(&text).unwrap();
            without_circumstances(&mut value);
            (path, value.to_string())
        })
        .collect();
    found.sort();
    found
}

/// Measures a curve twice: with one load point at a time, and with the option `jobs`.
fn one_and_more(bench: &Bench, jobs: &str, target: &str, more: &[&str]) -> [Series; 2] {
    ["--jobs=1", jobs].map(|jobs| {
        let mut command = curve(bench, &["--time=5s", "--warmup=1s", "--dir=/users", jobs]);
        command.arg(format!("--target={target}")).args(more);
        parsed(&Ended::of(command).expect_code(0))
    })
}

#[test]
fn points_measured_at_the_same_time_are_those_measured_one_by_one() {
    // `--jobs=0` starts as many processes as the machine has processors.
    for (jobs, target, points) in [
        ("--jobs=3", "null:?latency=10ms&servers=3&clock=virtual", 5),
        ("--jobs=0", "sim:flash-2-replicas", 7),
    ] {
        let bench = Bench::on_tmpfs();
        let curves = one_and_more(&bench, jobs, target, &["--load=1..7"]);
        // Three servers of the target `null` sustain three users: load 5 is the second invalid point, and the curve
        // removes the results of higher loads, which were measured at the same time.
        assert_eq!(loads(&curves[0]), (1..=points).collect::<Vec<u64>>());
        assert_eq!(curves[0].state, curves[1].state);
        let [one, all] = [0, 1].map(|n| results(directory_of(&bench, n).path()));
        assert_eq!(one.len(), 1 + 3 * points as usize);
        assert_eq!(one.len(), all.len());
        for ((name, one), (other, all)) in one.iter().zip(&all) {
            assert_eq!(name, other);
            assert!(one.len() > 500, "{name}: {one}");
            assert!(one == all, "{target}: {name} differs\n{one}\n{all}");
        }
    }
}

#[test]
fn points_that_are_not_independent_are_not_measured_at_the_same_time() {
    let bench = Bench::on_tmpfs();
    let (null, virtually) = ("--target=null:?latency=1ms", &*virtually("1ms"));
    let work = format!("--dir={}", bench.work().display());
    let one_at_a_time = "expected --jobs 1, or a target in virtual time";
    for (more, expected) in [
        (&["--jobs=0", null][..], "--jobs 0: in real time"),
        (&["--jobs=2", null], one_at_a_time),
        (
            &["--jobs=2", virtually, "--event=before sh true"],
            "one point at a time",
        ),
        (
            &["--jobs=2", virtually, "--event=after load sh true"],
            "one point at a time",
        ),
        (&["--jobs=2", &work], one_at_a_time),
    ] {
        let refused = curve(&bench, &[&["--load=1..4"], more].concat());
        let said = Ended::of(refused).refusal();
        assert!(said.contains(expected), "{more:?}: {said}");
    }
    assert_eq!(bench.left_but(&["users.toml"]), [""; 0]);
}

#[test]
fn points_that_share_files_are_not_measured_at_the_same_time() {
    let bench = Bench::on_tmpfs();
    virtual_curve(&bench, "1ms", &["--load=1,2"]).expect_code(0);
    let dir = only(&bench);
    series::cut(&dir, 1);
    // A new curve refuses `--jobs` on the target `posix`; `series.json` is edited to test the refusal by `resume`.
    let curve = edit(&dir, |curve| {
        curve.configurations[0].target.url = "posix".into();
    });
    let refused = resume(&bench, &dir, &["--jobs=2"]).refusal();
    assert!(
        refused.contains("points of this target share files"),
        "{refused}"
    );
    assert_eq!(dir.read().unwrap(), curve);
}

/// A curve whose points take longer than any test.
fn endless(bench: &Bench) -> Command {
    let times = ["--time=1000000s", "--warmup=0s", "--interval=1000s"];
    let mut command = curve(bench, &times);
    let more = ["--load=1..5", "--jobs=3"];
    command.arg(virtually("1ms")).args(more);
    command
}

/// The processes that measure the points of a curve, in the order of their loads.
fn processes(curve: u32) -> Vec<i32> {
    let mut pids = children_of(curve as i32);
    pids.sort_by_key(|pid| {
        // The file `/proc/PID/cmdline` of a child process is empty while execve replaces the program of the child.
        let mut line = vec![];
        wait_until("the process has its arguments", || {
            line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
            !line.is_empty()
        });
        String::from_utf8_lossy(&line)
            .trim_end_matches('\0')
            .chars()
            .next_back()
    });
    pids
}

/// Whether a process has ended: `/proc/PID/stat` is missing, or shows a zombie (state Z) that the parent has not waited
/// for.
fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn a_process_that_dies_ends_the_curve_at_its_load() {
    for (sent, how) in [
        (Signal::KILL, "died (signal 9)"),
        (Signal::TERM, "was terminated"),
    ] {
        let bench = Bench::on_tmpfs();
        let going = started(endless(&bench), "load 3 begun");
        let pids = processes(going.child.id());
        await_handlers(&pids);
        signal(pids[0], sent);
        let ended = going.end().expect_code(1);
        let text = format!("load 1: the process that measures it {how}");
        let said = ended.stderr.contains(&format!("error: {text}\n"));
        assert!(said, "{}", ended.stderr);
        let curve = parsed(&ended);
        assert_eq!((curve.state, loads(&curve)), (SeriesState::Failed, vec![]));
        assert_eq!(curve.stop_reason.as_ref().unwrap().text, text);
        assert!(curve.state.can_resume());
        // After the death of one process of `--jobs`, the other processes end. Only SIGTERM lets the dying process
        // write the results of its interrupted run.
        assert!(pids.into_iter().all(has_ended));
        let left = entries(&only(&bench));
        let is_left = |name: &String| {
            name == "series.json"
                || name.starts_with(".plimsoll-")
                || (sent == Signal::TERM && name.ends_with("-interrupted"))
        };
        assert!(left.iter().all(is_left), "{left:?}");
    }
}

/// Waits until processes of `--jobs` have their threads for signals and standard input; before, SIGTERM kills a
/// process.
fn await_handlers(pids: &[i32]) {
    for pid in pids {
        wait_until("the process waits for its input", || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
            tasks.is_ok_and(|tasks| tasks.count() > 2)
        });
    }
}

#[test]
fn an_interrupt_or_a_termination_ends_all_processes() {
    // `kill PID` sends SIGTERM to the process of the curve alone, a service manager also to the processes of `--jobs`.
    for (sent, to_children) in [(Signal::INT, 0), (Signal::TERM, 0), (Signal::TERM, 3)] {
        let bench = Bench::on_tmpfs();
        let going = started(endless(&bench), "load 3 begun");
        let pids = processes(going.child.id());
        assert_eq!(pids.len(), 3);
        await_handlers(&pids);
        for pid in &pids[..to_children] {
            signal(*pid, sent);
        }
        signal(going.child.id() as i32, sent);
        let ended = going.end().expect_code(130);
        assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
        let curve = parsed(&ended);
        assert_eq!(
            (curve.state, measured_loads(&curve)),
            (SeriesState::Interrupted, vec![])
        );
        assert!(pids.into_iter().all(has_ended));
        let left = entries(&only(&bench));
        let is_result = |name: &String| name == "series.json" || name.ends_with("-interrupted");
        assert!(left.iter().all(is_result), "{left:?}");
        assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
    }
}

#[test]
fn processes_end_with_the_one_that_started_them() {
    let bench = Bench::on_tmpfs();
    let going = started(endless(&bench), "load 3 begun");
    let pids = processes(going.child.id());
    assert_eq!(pids.len(), 3);
    signal(going.child.id() as i32, Signal::KILL);
    assert_eq!(going.end().code, None);
    for pid in pids {
        wait_until("the process ends", || has_ended(pid));
    }
}

#[test]
fn what_an_earlier_process_measured_beyond_the_end_of_the_curve_stays() {
    let bench = Bench::on_tmpfs();
    let mut command = curve(&bench, &["--time=5s", "--warmup=0s", "--load=1..7"]);
    command.args(["--target=null:?latency=10ms&servers=3&clock=virtual"]);
    command.args(TO_THE_END);
    let whole = parsed(&Ended::of(command).expect_code(0));
    assert_eq!(loads(&whole), [1, 2, 3, 4, 5, 6, 7]);
    let dir = only(&bench);
    // `series.json` lists two of seven measured points, as if the process of a curve with `--jobs` had been killed.
    // With the stop rule, the resumed curve ends at the second invalid point.
    edit(&dir, |curve| {
        curve.runs.truncate(2);
        curve.state = SeriesState::Unfinished;
        let SeriesKind::Curve(figures) = &mut curve.kind else {
            panic!("{:?}", curve.kind);
        };
        figures.stop_after_invalid = Some(2);
    });
    std::fs::remove_dir_all(dir.path().join("point-03-load-3")).unwrap();
    let before = entries(&dir);
    let resumed = resume(&bench, &dir, &[]).expect_code(0);
    let text = "warning: beyond the end of the series, point-06-load-6, point-07-load-7 were measured by \
                an earlier process and stay\n";
    assert!(resumed.stderr.contains(text), "{}", resumed.stderr);
    let curve = parsed(&resumed);
    assert_eq!(
        (curve.state, loads(&curve)),
        (SeriesState::Stopped, vec![1, 2, 3, 4, 5])
    );
    assert_eq!(curve.runs[3..], whole.runs[3..5]);
    let after: Vec<String> = entries(&dir);
    assert!(before.iter().all(|name| after.contains(name)), "{after:?}");
    assert_eq!(after.len(), before.len() + 1);
}
