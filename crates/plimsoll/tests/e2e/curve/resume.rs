//! Curves that end before their last point and are resumed.

use super::*;
use crate::common::series::measured_loads;
use crate::common::started;

/// Resumes a curve whose document has commands.
fn resume_with_commands(bench: &Bench, dir: &SeriesDir) -> Ended {
    resume(bench, dir, &["--allow-commands"])
}

#[test]
fn a_curve_that_was_killed_goes_on() {
    let bench = Bench::on_tmpfs();
    let mut command = quick_curve(&bench, &["--load=1,2,3"]);
    let script = monitor(&bench, "[ \"$2 $3\" != '2 RUN' ] || kill -KILL $PPID");
    command.args(monitored(&script, "100ms"));
    let ended = Ended::of(command);
    assert_eq!(ended.code, None, "{}", ended.stderr);
    let dir = only(&bench);
    let killed = dir.read().unwrap();
    assert_eq!(
        (killed.state, loads(&killed)),
        (SeriesState::Unfinished, vec![1])
    );
    assert!(bench.work().join(MARKER).exists());
    // The second point is measured anew, on the files that are there.
    write_executable(&script, "#!/bin/sh\n");
    let whole = parsed(&resume_with_commands(&bench, &dir));
    assert_eq!(loads(&whole), [1, 2, 3]);
    assert_eq!(whole.runs[0], killed.runs[0]);
    let second = run_of(&dir, &whole.runs[1]);
    assert!(
        second.filesets.iter().all(|p| p.reused),
        "{:?}",
        second.filesets
    );
    let names = [
        "point-01-load-1",
        "point-02-load-2",
        // What had been measured of it before.
        "point-02-load-2-interrupted",
        "point-03-load-3",
        "series.json",
    ];
    assert_eq!(entries(&dir), names);
    assert!(!bench.work().exists());
}

#[test]
fn a_curve_that_was_killed_while_files_were_made_goes_on() {
    let bench = Bench::on_tmpfs();
    let more = "--set=looker.files.count=20000";
    let going = started(quick_curve(&bench, &["--load=1", more]), "making");
    while tree(&bench.work()).0.len() < 100 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    crate::common::signal(going.child.id() as i32, rustix::process::Signal::KILL);
    assert_eq!(going.end().code, None);
    let there = tree(&bench.work()).0.len() as u64;
    assert!(there < 200 * FILES_PER_USER, "it had come to its end");
    let dir = only(&bench);
    assert_eq!(loads(&dir.read().unwrap()), [0; 0]);
    // What was left half made is there, and whole, at the first point.
    let whole = parsed(&resume_with_commands(&bench, &dir));
    assert_eq!(loads(&whole), [1]);
    let run = run_of(&dir, &whole.runs[0]);
    assert_eq!(
        (run.summary.errors, run.filesets[0].files),
        (0, 200 * FILES_PER_USER)
    );
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn a_point_that_is_refused_ends_the_curve_and_nothing_of_others_is_lost() {
    let bench = Bench::on_tmpfs();
    // Somebody takes the directory over between two points.
    let work = bench.work();
    let script = monitor(
        &bench,
        &format!(
            "[ \"$2 $3\" != '1 END' ] || {{ rm {0}/.plimsoll; echo mine > {0}/thesis.tex; }}",
            work.display()
        ),
    );
    let mut command = quick_curve(&bench, &["--load=1,2"]);
    command.args(monitored(&script, "100ms"));
    let ended = Ended::of(command).expect_code(1);
    let curve = parsed(&ended);
    assert_eq!((curve.state, loads(&curve)), (SeriesState::Failed, vec![1]));
    let stopped = curve.stop_reason.unwrap();
    assert_eq!(stopped.code, "refused");
    assert!(
        stopped.text.contains("was not created by Plimsoll"),
        "{stopped:?}"
    );
    let thesis = std::fs::read_to_string(work.join("thesis.tex")).unwrap();
    assert_eq!(thesis, "mine\n");
    assert_eq!(tree(&work).0.len() as u64, FILES_PER_USER + 1);
}

#[test]
fn an_interrupt_between_points_ends_the_curve_there() {
    let bench = Bench::on_tmpfs();
    let script = monitor(&bench, "[ \"$2 $3\" != '2 INIT' ] || kill -INT $PPID");
    // In a temporary directory, which is removed whatever happens.
    let args = ["--load=1,2,3", "--time=200ms", "--warmup=0s"];
    let mut command = curve(&bench, &args);
    command.args(TO_THE_END).args(monitored(&script, "0s"));
    let ended = Ended::of(command).expect_code(130);
    let curve = parsed(&ended);
    assert_eq!(
        (curve.state, measured_loads(&curve)),
        (SeriesState::Interrupted, vec![1])
    );
    assert_eq!(
        bench.left_but(&["results", "users.toml", "monitor.sh"]),
        [""; 0]
    );
    write_executable(&script, "#!/bin/sh\n");
    let whole = parsed(&resume_with_commands(&bench, &only(&bench)));
    assert_eq!(loads(&whole), [1, 2, 3]);
    assert_eq!(whole.runs[0], curve.runs[0]);
    assert_eq!(
        bench.left_but(&["results", "users.toml", "monitor.sh"]),
        [""; 0]
    );
}

#[test]
fn a_point_that_was_measured_but_not_listed_is_one_of_the_curve() {
    let bench = Bench::on_tmpfs();
    let runs = bench.path("runs");
    let note = format!(
        "--event=before sh echo $PLIMSOLL_LOAD $PLIMSOLL_RUN >> {}",
        runs.display()
    );
    let more = ["--load=1..4", &note];
    let whole = parsed(&virtual_curve(&bench, "10ms", &more).expect_code(0));
    let dir = only(&bench);
    // Killed before it listed the second point; the third and fourth were not begun.
    series::cut(&dir, 2);
    edit(&dir, |curve| curve.runs.truncate(1));
    std::fs::remove_file(&runs).unwrap();
    let more = ["--percentiles=12.5,99.95", "--allow-commands"];
    let ended = resume(&bench, &dir, &more).expect_code(0);
    let resumed = parsed(&ended);
    assert_eq!(loads(&resumed), [1, 2, 3, 4]);
    assert_eq!(resumed.runs[1].started_at, whole.runs[1].started_at);
    // Commands are told the number of the run among all.
    let told = std::fs::read_to_string(&runs).unwrap();
    assert_eq!(told, "3 3\n4 4\n");
    // What is printed counts it among those before.
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(
        lines[0].contains(": 2 load points left from 3 to 4 users"),
        "{lines:?}"
    );
    let before = |line: &&str| line.ends_with("(measured before)");
    let points = lines.iter().filter(|line| line.starts_with("load "));
    let before: Vec<bool> = points.map(before).collect();
    assert_eq!(before, [true, true, false, false], "{lines:?}");
    // And it has the requested percentiles, like the others.
    for point in &resumed.runs {
        for percentile in ["12.5", "99.95"] {
            let figure = point.percentile(percentile.parse().unwrap());
            assert!(figure.is_some(), "{percentile}: {point:?}");
        }
    }
}
