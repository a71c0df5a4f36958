//! Curves that come to an end before their last point, and go on.

use super::*;

#[test]
fn a_curve_that_was_killed_goes_on() {
    let bench = Bench::on_tmpfs();
    let mut command = quick_curve(&bench, &["--load=1,2,3"]);
    let script = monitor(&bench, "[ \"$2 $3\" != '2 RUN' ] || kill -KILL $PPID");
    command
        .arg("--allow-commands")
        .arg("--monitor")
        .arg(&script);
    let ended = Ended::of(command);
    assert_eq!(ended.code, None, "{}", ended.stderr);
    let dir = directory(&bench);
    let killed = dir.read().unwrap();
    assert_eq!(
        (killed.state, loads(&killed)),
        (CurveState::Unfinished, vec![1])
    );
    assert!(bench.work().join(MARKER).exists());
    // The second point is measured anew, on the files that are there.
    write_executable(&script, "#!/bin/sh\n");
    let whole = parsed(&resume(&bench, &dir));
    assert_eq!(loads(&whole), [1, 2, 3]);
    assert_eq!(whole.points[0], killed.points[0]);
    let second = dir.run(&whole.points[1]).read().unwrap();
    assert!(
        second.filesets.iter().all(|p| p.reused),
        "{:?}",
        second.filesets
    );
    let names = [
        "curve.json",
        "point-01-load-1",
        "point-02-load-2",
        // What had been measured of it before.
        "point-02-load-2-interrupted",
        "point-03-load-3",
    ];
    assert_eq!(entries(&dir), names);
    assert!(!bench.work().exists());
    // It is complete.
    let refused = resume(&bench, &dir).refusal();
    assert!(refused.contains("is complete"), "{refused}");
    assert_eq!(dir.read().unwrap(), whole);
}

#[test]
fn a_curve_goes_on_from_another_directory() {
    let bench = Bench::on_tmpfs();
    let args = [
        "--dir=work",
        "--time=200ms",
        "--warmup=0s",
        "--load=1,2",
        "--allow-commands",
    ];
    let script = monitor(&bench, "[ \"$2 $3\" != '2 INIT' ] || kill -INT $PPID");
    let mut command = curve(&bench, &args);
    command.args(TO_THE_END).arg("--monitor=monitor.sh");
    Ended::of(command).expect_code(130);
    write_executable(&script, "#!/bin/sh\n");
    assert!(bench.work().join(MARKER).exists());
    let elsewhere = bench.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut command = bench.plimsoll(["curve", "--format=json", "--allow-commands", "--resume"]);
    command
        .arg(directory(&bench).path())
        .current_dir(&elsewhere);
    assert_eq!(loads(&parsed(&Ended::of(command))), [1, 2]);
    assert_eq!(std::fs::read_dir(elsewhere).unwrap().count(), 0);
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
    let dir = directory(&bench);
    assert_eq!(loads(&dir.read().unwrap()), [0; 0]);
    // What was left half made is there, and whole, at the first point.
    let whole = parsed(&resume(&bench, &dir));
    assert_eq!(loads(&whole), [1]);
    let run = dir.run(&whole.points[0]).read().unwrap();
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
    let mut command = quick_curve(&bench, &["--load=1,2", "--allow-commands", "--monitor"]);
    command.arg(&script);
    let ended = Ended::of(command).expect_code(1);
    let curve = parsed(&ended);
    assert_eq!((curve.state, loads(&curve)), (CurveState::Failed, vec![1]));
    let stopped = curve.results.stop_reason.unwrap();
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
fn an_interrupted_curve_goes_on() {
    let bench = Bench::on_tmpfs();
    let command = {
        let mut command = curve(&bench, &["--time=1h", "--warmup=0s", "--load=1,2"]);
        command.arg("--dir").arg(bench.work());
        command
    };
    let going = started(command, "measuring");
    going.interrupt();
    let ended = going.end().expect_code(130);
    let interrupted = parsed(&ended);
    assert_eq!(
        (interrupted.state, loads(&interrupted)),
        (CurveState::Interrupted, vec![])
    );
    let dir = directory(&bench);
    assert_eq!(dir.read().unwrap(), interrupted);
    assert_eq!(entries(&dir), ["curve.json", "point-01-load-1-interrupted"]);
    let run = plimsoll_results::RunDir::at(&dir.path().join("point-01-load-1-interrupted"));
    assert_eq!(run.read().unwrap().validity.verdict, Verdict::Interrupted);
    // Its files wait for it to go on.
    assert_eq!(tree(&bench.work()).0.len() as u64, FILES_PER_USER);
    let mut command = bench.plimsoll(["curve", "--resume"]);
    command.arg(dir.path());
    let again = started(command, "measuring");
    again.interrupt();
    again.end().expect_code(130);
    assert_eq!(entries(&dir).len(), 3);
    Ended::of(bench.plimsoll([std::ffi::OsStr::new("clean"), bench.work().as_os_str()]))
        .expect_code(0);
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn a_curve_that_is_refused_when_it_is_resumed_stays_with_its_runs() {
    let bench = Bench::on_tmpfs();
    let mut command = curve(&bench, &["--time=1h", "--warmup=0s", "--load=1,2"]);
    command.arg("--dir").arg(bench.work());
    let going = started(command, "measuring");
    going.interrupt();
    going.end().expect_code(130);
    let dir = directory(&bench);
    let names = ["curve.json", "point-01-load-1-interrupted"];
    assert_eq!(entries(&dir), names);
    // Another user has taken the directory over.
    std::fs::remove_file(bench.work().join(MARKER)).unwrap();
    std::fs::write(bench.work().join("thesis.tex"), "mine\n").unwrap();
    let ended = resume(&bench, &dir).expect_code(1);
    let curve = parsed(&ended);
    assert_eq!((curve.state, loads(&curve)), (CurveState::Failed, vec![]));
    assert_eq!(curve.stop_reason.as_ref().unwrap().code, "refused");
    assert_eq!(dir.read().unwrap(), curve);
    assert_eq!(entries(&dir), names);
    // So does one whose monitor is gone.
    let mut gone = curve.clone();
    gone.settings.monitor = Some(bench.path("gone.sh"));
    gone.state = CurveState::Unfinished;
    let text = serde_json::to_string(&gone).unwrap();
    std::fs::write(dir.path().join("curve.json"), text).unwrap();
    let refused = resume(&bench, &dir).refusal();
    assert!(refused.contains("gone.sh"), "{refused}");
    assert_eq!(dir.read().unwrap(), gone);
    assert_eq!(entries(&dir), names);
}

#[test]
fn an_interrupt_between_points_ends_the_curve_there() {
    let bench = Bench::on_tmpfs();
    let script = monitor(&bench, "[ \"$2 $3\" != '2 INIT' ] || kill -INT $PPID");
    // In a temporary directory, which is removed whatever happens.
    let args = [
        "--load=1,2,3",
        "--time=200ms",
        "--warmup=0s",
        "--allow-commands",
    ];
    let mut command = curve(&bench, &args);
    command.args(TO_THE_END).arg("--monitor").arg(&script);
    let ended = Ended::of(command).expect_code(130);
    let curve = parsed(&ended);
    assert_eq!(
        (curve.state, loads(&curve)),
        (CurveState::Interrupted, vec![1])
    );
    assert_eq!(
        bench.left_but(&["results", "users.toml", "monitor.sh"]),
        [""; 0]
    );
    write_executable(&script, "#!/bin/sh\n");
    let whole = parsed(&resume(&bench, &directory(&bench)));
    assert_eq!(loads(&whole), [1, 2, 3]);
    assert_eq!(whole.points[0], curve.points[0]);
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
        "--before=echo $PLIMSOLL_LOAD $PLIMSOLL_RUN >> {}",
        runs.display()
    );
    let more = ["--load=1..4", "--allow-commands", &note];
    let whole = parsed(&virtual_curve(&bench, "10ms", &more).expect_code(0));
    let dir = directory(&bench);
    // Killed before it listed the second point; the third and fourth were not begun.
    let mut cut = whole.clone();
    cut.points.truncate(1);
    cut.state = CurveState::Unfinished;
    std::fs::write(dir.path().join("curve.json"), cut.to_json()).unwrap();
    for point in &whole.points[2..] {
        std::fs::remove_dir_all(dir.run(point).path()).unwrap();
    }
    std::fs::remove_file(&runs).unwrap();
    let mut command = bench.plimsoll(["curve", "--format=json", "--percentiles=12.5,99.95"]);
    command
        .args(["--allow-commands", "--resume"])
        .arg(dir.path());
    let ended = Ended::of(command).expect_code(0);
    let resumed = parsed(&ended);
    assert_eq!(loads(&resumed), [1, 2, 3, 4]);
    assert_eq!(resumed.points[1].started_at, whole.points[1].started_at);
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
    for point in &resumed.points {
        for percentile in ["12.5", "99.95"] {
            let figure = point.percentile(percentile.parse().unwrap());
            assert!(figure.is_some(), "{percentile}: {point:?}");
        }
    }
}
