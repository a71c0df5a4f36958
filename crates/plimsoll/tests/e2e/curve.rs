//! `curve`: load points, the data set that grows from point to point, invalid points, and interrupted curves.

mod jobs;
mod resume;

use crate::common::series::{
    self, FILES_PER_USER, TO_THE_END, edit, loads, only, parsed, resume, run_of,
};
use crate::common::{Bench, Ended, schema};
use plimsoll_results::{LoadCurve, Series, SeriesDir, SeriesState, Verdict};
use plimsoll_testkit::write_executable;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options for a run in virtual time on the target `null`, where every operation takes `latency`.
fn virtually(latency: &str) -> String {
    format!("--target=null:?latency={latency}&clock=virtual")
}

fn curve(bench: &Bench, more: &[&str]) -> Command {
    series::command(bench, "curve", more)
}

/// Measures a curve in virtual time on the target `null`, with a window of 10 s at each load point.
fn virtual_curve(bench: &Bench, latency: &str, more: &[&str]) -> Ended {
    let mut command = curve(bench, &["--time=10s", "--warmup=1s"]);
    command.arg(virtually(latency)).args(more);
    Ended::of(command)
}

/// A curve of short points on files of [`Bench::work`].
fn quick_curve(bench: &Bench, more: &[&str]) -> Command {
    let short = ["--time=300ms", "--warmup=100ms", "--interval=100ms"];
    let mut command = series::command_in_work(bench, "curve", &short, &TO_THE_END);
    command.args(more);
    command
}

/// Directory of the curve with index `number` among the bench's results, in the order of their start times.
fn directory_of(bench: &Bench, number: usize) -> SeriesDir {
    SeriesDir::at(bench.results()[number].path())
}

fn entries(dir: &SeriesDir) -> Vec<String> {
    series::entries(dir.path())
}

/// The figures of a curve.
fn of(series: &Series) -> &LoadCurve {
    series.as_curve().unwrap().figures
}

/// Writes an executable shell script that [`monitored`] calls; `$1` is the workload, `$2` the load, `$3` the phase.
fn monitor(bench: &Bench, script: &str) -> PathBuf {
    let path = bench.path("monitor.sh");
    write_executable(&path, format!("#!/bin/sh\n{script}\n"));
    path
}

/// Events that call a script with workload, load and INIT before the files are created, WARM when the load begins, RUN
/// after a warm-up, and END after the load.
fn monitored(script: &Path, warmup: &str) -> [String; 4] {
    [
        ("before populate", "INIT"),
        ("0s", "WARM"),
        (warmup, "RUN"),
        ("after load", "END"),
    ]
    .map(|(when, phase)| {
        let script = script.display();
        format!("--event={when} sh exec {script} $PLIMSOLL_WORKLOAD $PLIMSOLL_LOAD {phase}")
    })
}

#[test]
fn a_curve_on_nothing_is_what_arithmetic_says() {
    let bench = Bench::on_tmpfs();
    let ended = virtual_curve(&bench, "10ms", &["--load=1,2..4/2,8"]).expect_code(0);
    let curve = parsed(&ended);
    assert_eq!(
        (curve.state, loads(&curve)),
        (SeriesState::Complete, vec![1, 2, 4, 8])
    );
    for p in &curve.runs {
        // Each user has two processes with 50 operations per second each, for 10 s; at the end of the window, each
        // process may have one operation in flight.
        let load = p.load.unwrap() as f64;
        let asked = 100.0 * load;
        assert_eq!(p.offered_ops_per_s, Some(asked));
        assert!((p.achieved_ops_per_s - asked).abs() <= 0.2 * load, "{p:?}");
        assert_eq!((p.mean_ms, p.max_ms), (Some(10.0), Some(10.0)));
        assert_eq!((p.verdict, p.errors, p.window_s), (Verdict::Valid, 0, 10.0));
    }
    let figures = of(&curve);
    assert!((figures.ort_ms.unwrap() - 10.0).abs() < 1e-9);
    assert_eq!((figures.load_line, figures.knee), (Some(8), None));
    assert_eq!(curve.times_s(), (1.0, 10.0));

    let dir = only(&bench);
    assert_eq!(dir.read().unwrap(), curve);
    let names: Vec<String> = [(1, 1), (2, 2), (3, 4), (4, 8)]
        .map(|(n, load)| format!("point-0{n}-load-{load}"))
        .into();
    assert_eq!(
        entries(&dir),
        [names, vec!["series.json".to_owned()]].concat()
    );
    for point in &curve.runs {
        let run = run_of(&dir, point);
        assert_eq!(Some(run.mix.unwrap().load), point.load);
        // The layout of every load point is the layout of the highest load.
        assert_eq!(run.plan.filesets, curve.first_plan().filesets);
    }
    let schema = serde_json::from_str(&plimsoll_results::schema::<Series>()).unwrap();
    let value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(schema::faults(&schema, &value), [""; 0]);
}

#[test]
fn points_that_are_not_sustained_are_kept_with_their_reasons() {
    let bench = Bench::on_tmpfs();
    // A process whose operations take 30 ms completes 33 of its 50 scheduled operations per second.
    let slow = |more: &[&str], code| {
        parsed(&virtual_curve(&bench, "30ms", &[&["--load=1..4"], more].concat()).expect_code(code))
    };
    let curve = slow(&[], 3);
    assert_eq!(
        (curve.state, loads(&curve)),
        (SeriesState::Stopped, vec![1, 2])
    );
    assert_eq!(
        curve.stop_reason.as_ref().unwrap().code,
        "consecutive_invalid"
    );
    assert_eq!((of(&curve).load_line, of(&curve).ort_ms), (None, None));
    for p in &curve.runs {
        assert_eq!(p.verdict, Verdict::Invalid);
        let codes: Vec<&str> = p.reasons.iter().map(|r| r.code.as_str()).collect();
        assert_eq!(codes, ["process_rate", "total_rate", "queue_growth"]);
        let slowest = p.slowest_process_percent.unwrap();
        assert!((slowest - 66.6).abs() < 1.0, "{p:?}");
    }
    let all = slow(&["--stop-after-invalid=0"], 3);
    assert_eq!(
        (loads(&all), all.state),
        (vec![1, 2, 3, 4], SeriesState::Complete)
    );
    let lenient = slow(&["--min-total-rate=0.6", "--min-process-rate=0.6"], 0);
    assert_eq!((of(&lenient).load_line, lenient.runs.len()), (Some(4), 4));
    let limited = parsed(&virtual_curve(
        &bench,
        "10ms",
        &["--load=1", "--latency-limit=5ms"],
    ));
    let reasons = &limited.runs[0].reasons;
    assert_eq!((reasons.len(), reasons[0].code.as_str()), (1, "latency"));
}

/// The work directory stays claimed between the load points, and commands before and after each point count the files
/// of the growing data set.
#[test]
fn the_data_set_grows_from_point_to_point_and_goes_at_the_end() {
    let bench = Bench::on_tmpfs();
    let (work, log, refusal) = (bench.work(), bench.path("log"), bench.path("refusal"));
    let script = monitor(
        &bench,
        &format!(
            "echo $1 $2 $3 $(find {work} -type f ! -name .plimsoll 2>/dev/null | wc -l) >> {log}
             [ \"$2 $3\" != '1 END' ] || {plimsoll} run varmail --dir {work} 2> {refusal}
             [ \"$2 $3\" != '4 END' ] || exit 9",
            work = work.display(),
            log = log.display(),
            plimsoll = env!("CARGO_BIN_EXE_plimsoll"),
            refusal = refusal.display(),
        ),
    );
    let mut command = quick_curve(&bench, &["--load=1,2,4"]);
    command.args(monitored(&script, "100ms"));
    let curve = parsed(&Ended::of(command));
    assert_eq!(
        curve.state,
        SeriesState::Complete,
        "{:?}",
        curve.stop_reason
    );
    let mut expected = Vec::new();
    let mut before = 0;
    for load in [1, 2, 4] {
        for (phase, load_of) in [
            ("INIT", before),
            ("WARM", load),
            ("RUN", load),
            ("END", load),
        ] {
            expected.push(format!("users {load} {phase} {}", load_of * FILES_PER_USER));
        }
        before = load;
    }
    let said = std::fs::read_to_string(log).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), expected);
    let refused = std::fs::read_to_string(refusal).unwrap();
    assert!(
        refused.contains("is in use by another run (process "),
        "{refused}"
    );
    // A failed command after a phase is a note of the curve.
    let notes: Vec<&str> = curve.notes.iter().map(|n| n.text.as_str()).collect();
    let [note] = notes[..] else {
        panic!("{notes:?}");
    };
    assert!(
        note.starts_with("load 4: the command `exec ")
            && note.contains("after load: it ended with exit status 9"),
        "{note}"
    );
    let known = ["results", "users.toml", "monitor.sh", "log", "refusal"];
    assert_eq!(bench.left_but(&known), [""; 0]);
}

#[test]
fn ranks_measure_every_point_together() {
    let bench = Bench::on_tmpfs();
    let command = quick_curve(&bench, &["--load=1,2", "--processes=2"]);
    let curve = parsed(&Ended::of(command));
    assert_eq!((curve.ranks, loads(&curve)), (2, vec![1, 2]));
    assert_eq!(
        curve.state,
        SeriesState::Complete,
        "{:?}",
        curve.stop_reason
    );
    for (run, load) in series::runs_of(&only(&bench)).iter().zip([1, 2]) {
        let files = run.filesets[0].files;
        assert_eq!((run.workers, files), (2 * load, FILES_PER_USER * load));
    }
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn what_cannot_be_a_curve_is_refused_and_leaves_nothing() {
    let bench = Bench::on_tmpfs();
    let within = format!("--dir={}", bench.path("results").display());
    for (args, expected) in [
        (&[][..], "--load <LOADS>"),
        (&["--load=10-20"], "a range is written `10..20`"),
        (
            &["--load=1", "--min-total-rate=95"],
            "a fraction from 0 to 1",
        ),
        (&["--load=1000000000000"], "processes"),
        (&["--load=1,100000", "--set=looker.files.size=1t"], "free"),
        (&["--load=1", &within], "inside"),
    ] {
        let said = Ended::of(curve(&bench, args)).refusal();
        assert!(said.contains(expected), "{args:?}: {said}");
        assert_eq!(bench.left_but(&["users.toml"]), [""; 0], "{args:?}");
    }
    let wml = Ended::of(bench.plimsoll(["curve", "varmail", "--load=1"])).refusal();
    assert!(wml.contains("`varmail` has no business metric"), "{wml}");
}
