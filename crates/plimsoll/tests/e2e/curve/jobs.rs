//! Points of a curve in virtual time that are measured at the same time.

use super::*;
use crate::common::series::measured_loads;
use crate::common::{children_of, signal, started, wait_until};
use plimsoll_results::SeriesKind;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

/// Fields of a document that tell of the machine, the time of day and the use of processors.
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

/// All files of a curve's directory by their paths in it, documents without circumstances.
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

/// Curves of the same arguments with `--jobs 1` and `--jobs 3`.
fn one_and_three(bench: &Bench, target: &str, more: &[&str]) -> [Series; 2] {
    with_jobs(bench, ["--jobs=1", "--jobs=3"], target, more)
}

/// Curves of the same arguments with these `--jobs`.
fn with_jobs<const N: usize>(
    bench: &Bench,
    jobs: [&str; N],
    target: &str,
    more: &[&str],
) -> [Series; N] {
    jobs.map(|jobs| {
        let mut command = curve(bench, &["--time=5s", "--warmup=1s", "--dir=/users", jobs]);
        command.arg(format!("--target={target}")).args(more);
        parsed(&Ended::of(command).expect_code(0))
    })
}

#[test]
fn points_measured_at_the_same_time_are_those_measured_one_by_one() {
    for (target, more, points) in [
        ("null:?latency=10ms&servers=3", vec!["--clock=virtual"], 5),
        ("sim:flash-2-replicas", vec!["--percentiles=50,99.9"], 7),
    ] {
        let bench = Bench::on_tmpfs();
        let more = [&more[..], &["--load=1..7"]].concat();
        let curves = one_and_three(&bench, target, &more);
        // Three servers carry three users: the fifth is the second invalid point, and those that were
        // begun beyond it are gone.
        assert_eq!(loads(&curves[0]), (1..=points).collect::<Vec<u64>>());
        assert_eq!(curves[0].state, curves[1].state);
        let [one, three] = [0, 1].map(|n| results(directory_of(&bench, n).path()));
        let names = |of: &[(String, String)]| -> Vec<String> {
            of.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&one), names(&three));
        assert_eq!(one.len(), 1 + 3 * points as usize);
        for ((name, one), (_, three)) in one.iter().zip(&three) {
            assert!(one.len() > 500, "{name}: {one}");
            assert!(one == three, "{target}: {name} differs\n{one}\n{three}");
        }
    }
}

#[test]
fn as_many_points_as_there_are_processors_are_measured_at_the_same_time() {
    let bench = Bench::on_tmpfs();
    let more = ["--clock=virtual", "--load=1..3"];
    let target = "null:?latency=1ms";
    let [one, all] = with_jobs(&bench, ["--jobs=1", "--jobs=0"], target, &more);
    let figures = |curve: &Series| -> Vec<f64> {
        let points = curve.runs.iter();
        points.map(|p| p.achieved_ops_per_s).collect()
    };
    assert_eq!((loads(&all), figures(&all)), (vec![1, 2, 3], figures(&one)));
}

#[test]
fn points_that_are_not_independent_are_not_measured_at_the_same_time() {
    let bench = Bench::on_tmpfs();
    let refusal = |more: &[&str]| {
        let mut command = curve(&bench, &["--load=1..4"]);
        command.args(more);
        Ended::of(command).refusal()
    };
    for jobs in ["--jobs 0", "--jobs 2"] {
        let real = refusal(&[&jobs.replace(' ', "="), "--target=null:?latency=1ms"]);
        assert!(real.contains(&format!("{jobs}: in real time")), "{real}");
        assert!(
            real.contains("expected --jobs 1, or virtual time (--clock virtual"),
            "{real}"
        );
    }
    for command in ["--event=before sh true", "--event=after load sh true"] {
        let virtually = virtually("1ms");
        let more = ["--jobs=2", &virtually[0], &virtually[1], command];
        let said = refusal(&more);
        assert!(said.contains("one point at a time"), "{said}");
    }
    // A target with files has no virtual time; nothing is created there.
    let work = bench.work();
    let work = format!("--dir={}", work.display());
    let files = refusal(&["--jobs=2", "--clock=virtual", &work]);
    assert!(files.contains("virtual time"), "{files}");
    assert!(!bench.work().exists());
    assert_eq!(bench.results().len(), 0);
}

#[test]
fn points_that_share_files_are_not_measured_at_the_same_time() {
    let bench = Bench::on_tmpfs();
    virtual_curve(&bench, "1ms", &["--load=1,2"]).expect_code(0);
    let dir = only(&bench);
    series::cut(&dir, 1);
    // No curve begins like this.
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
    command.args(virtually("1ms")).args(more);
    command
}

/// The processes that measure the points of a curve, in the order of their loads.
fn processes(curve: u32) -> Vec<i32> {
    let mut pids = children_of(curve as i32);
    pids.sort_by_key(|pid| {
        // Empty while the system still replaces the program.
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

/// Whether a process has ended, even if its parent does not care.
fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn a_process_that_dies_ends_the_curve_at_its_load() {
    let bench = Bench::on_tmpfs();
    let going = started(endless(&bench), "load 3 begun");
    let pids = processes(going.child.id());
    signal(pids[0], Signal::KILL);
    let ended = going.end().expect_code(1);
    let text = "load 1: the process that measures it died (signal 9)";
    assert!(
        ended.stderr.contains(&format!("error: {text}\n")),
        "{}",
        ended.stderr
    );
    let curve = parsed(&ended);
    assert_eq!((curve.state, loads(&curve)), (SeriesState::Failed, vec![]));
    assert_eq!(curve.stop_reason.as_ref().unwrap().text, text);
    // The others were ended, and of what they had measured nothing stays.
    assert!(pids.into_iter().all(has_ended));
    let left = entries(&only(&bench));
    let is_left = |name: &String| name == "series.json" || name.starts_with(".plimsoll-");
    assert!(left.iter().all(is_left), "{left:?}");
}

#[test]
fn an_interrupt_ends_all_processes() {
    let bench = Bench::on_tmpfs();
    let going = started(endless(&bench), "load 3 begun");
    let pids = processes(going.child.id());
    assert_eq!(pids.len(), 3);
    going.interrupt();
    let curve = parsed(&going.end().expect_code(130));
    assert_eq!(
        (curve.state, measured_loads(&curve)),
        (SeriesState::Interrupted, vec![])
    );
    assert!(pids.into_iter().all(has_ended));
}

/// Waits until processes handle signals, which end them before.
fn await_handlers(pids: &[i32]) {
    for pid in pids {
        wait_until("the process waits for its input", || {
            let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
            tasks.is_ok_and(|tasks| tasks.count() > 2)
        });
    }
}

#[test]
fn a_process_that_is_terminated_ends_the_curve_at_its_load() {
    // As by a program that frees memory.
    let bench = Bench::on_tmpfs();
    let going = started(endless(&bench), "load 3 begun");
    let pids = processes(going.child.id());
    await_handlers(&pids);
    signal(pids[0], Signal::TERM);
    let ended = going.end().expect_code(1);
    let text = "load 1: the process that measures it was terminated";
    let said = ended.stderr.contains(&format!("error: {text}\n"));
    assert!(said, "{}", ended.stderr);
    let curve = parsed(&ended);
    assert_eq!((curve.state, loads(&curve)), (SeriesState::Failed, vec![]));
    assert_eq!(curve.stop_reason.as_ref().unwrap().text, text);
    assert!(curve.state.can_resume());
    assert!(pids.into_iter().all(has_ended));
}

#[test]
fn a_termination_ends_all_processes_whoever_gets_it() {
    // `kill PID` sends it to one, a service manager to each of the group.
    for to_children in [0, 3] {
        let bench = Bench::on_tmpfs();
        let going = started(endless(&bench), "load 3 begun");
        let pids = processes(going.child.id());
        await_handlers(&pids);
        for pid in &pids[..to_children] {
            signal(*pid, Signal::TERM);
        }
        going.terminate();
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
fn what_was_measured_ahead_is_used_when_a_curve_is_resumed() {
    let bench = Bench::on_tmpfs();
    let more = ["--clock=virtual", "--load=1..4"];
    let [_, whole] = one_and_three(&bench, "null:?latency=1ms", &more);
    let dir = directory_of(&bench, 1);
    // As if its process had been killed while it measured the second point.
    edit(&dir, |curve| {
        curve.runs.truncate(1);
        curve.state = SeriesState::Unfinished;
    });
    std::fs::remove_dir_all(dir.path().join("point-02-load-2")).unwrap();
    let resumed = parsed(&resume(&bench, &dir, &["--jobs=2"]).expect_code(0));
    assert_eq!(loads(&resumed), [1, 2, 3, 4]);
    assert_eq!(resumed.runs[2..], whole.runs[2..]);
    assert_ne!(resumed.runs[1].started_at, whole.runs[1].started_at);
    let figures = |curve: &Series| curve.runs[1].achieved_ops_per_s;
    assert_eq!(figures(&resumed), figures(&whole));
    let names = entries(&dir);
    assert_eq!(names[..2], ["point-01-load-1", "point-02-load-2"]);
    assert_eq!(names.len(), 5);
}

#[test]
fn what_an_earlier_process_measured_beyond_the_end_of_the_curve_stays() {
    let bench = Bench::on_tmpfs();
    let mut command = curve(&bench, &["--time=5s", "--warmup=0s", "--load=1..7"]);
    command.args(["--target=null:?latency=10ms&servers=3", "--clock=virtual"]);
    command.args(TO_THE_END);
    let whole = parsed(&Ended::of(command).expect_code(0));
    assert_eq!(loads(&whole), [1, 2, 3, 4, 5, 6, 7]);
    let dir = only(&bench);
    // As if several processes had been at work when that of the curve, which ends with the second
    // invalid point, was killed.
    edit(&dir, |curve| {
        curve.runs.truncate(2);
        curve.state = SeriesState::Unfinished;
        let SeriesKind::Curve(figures) = &mut curve.kind else {
            panic!("{:?}", curve.kind);
        };
        figures.stop_rules.stop_after_invalid = Some(2);
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
