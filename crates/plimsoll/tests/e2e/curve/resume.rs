//! Curves that end before their last point and are resumed.

use super::*;
use crate::common::MARKER;

/// Resumes a curve whose `series.json` contains commands of `--event`, which `--allow-commands` permits.
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
    // The resumed curve measures the interrupted second load point again, on the existing files.
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
        // Recovered results of the second load point, during which the process was killed.
        "point-02-load-2-interrupted",
        "point-03-load-3",
        "series.json",
    ];
    assert_eq!(entries(&dir), names);
    assert!(!bench.work().exists());
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
    // The results of two load points exist, but `series.json` lists only the first, as after a kill between the two
    // writes.
    series::cut(&dir, 2);
    edit(&dir, |curve| curve.runs.truncate(1));
    std::fs::remove_file(&runs).unwrap();
    let ended = resume_with_commands(&bench, &dir).expect_code(0);
    let resumed = parsed(&ended);
    assert_eq!(loads(&resumed), [1, 2, 3, 4]);
    assert_eq!(resumed.runs[1].started_at, whole.runs[1].started_at);
    // Commands of `--event` receive the number of the run among all runs of the curve, earlier runs included.
    let told = std::fs::read_to_string(&runs).unwrap();
    assert_eq!(told, "3 3\n4 4\n");
    // The resumed curve prints the line of the unlisted second point with the remark `(measured before)`.
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert!(
        lines[0].contains(": 2 load points left from 3 to 4 users"),
        "{lines:?}"
    );
    let before = |line: &&str| line.ends_with("(measured before)");
    let points = lines.iter().filter(|line| line.starts_with("load "));
    let before: Vec<bool> = points.map(before).collect();
    assert_eq!(before, [true, true, false, false], "{lines:?}");
}
