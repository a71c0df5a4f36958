//! Load curves through the command line: points, data sets that grow, what is invalid, what is
//! resumed.

mod jobs;
mod resume;

use crate::common::series::{
    self, FILES_PER_USER, TO_THE_END, USERS, edit, loads, only, parsed, resume, run_of,
};
use crate::common::{Bench, CLAIM, Ended, MARKER, schema, tree};
use plimsoll_results::{LoadCurve, NextRun, Series, SeriesDir, SeriesRun, SeriesState, Verdict};
use plimsoll_testkit::write_executable;
use std::path::{Path, PathBuf};
use std::process::Command;

/// On nothing, where every operation takes as long, in virtual time.
fn virtually(latency: &str) -> [String; 2] {
    [
        format!("--target=null:?latency={latency}"),
        "--clock=virtual".into(),
    ]
}

fn curve(bench: &Bench, more: &[&str]) -> Command {
    series::command(bench, "curve", more)
}

/// The same in virtual time on nothing, 10 s a point.
fn virtual_curve(bench: &Bench, latency: &str, more: &[&str]) -> Ended {
    let mut command = curve(bench, &["--time=10s", "--warmup=1s"]);
    command.args(virtually(latency)).args(more);
    Ended::of(command)
}

/// A curve of short points on files of [`Bench::work`].
fn quick_curve(bench: &Bench, more: &[&str]) -> Command {
    let short = ["--time=300ms", "--warmup=100ms", "--interval=100ms"];
    let mut command = series::command_in_work(bench, "curve", &short, &TO_THE_END);
    command.args(more);
    command
}

/// The curve directory of this number, in the order of their starts.
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

fn verdicts(curve: &Series) -> Vec<Verdict> {
    curve.runs.iter().map(|p| p.verdict).collect()
}

/// Writes a monitor; `$1` is the workload, `$2` the load, `$3` the phase.
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
        // Two processes a user, 50 operations a second each, for 10 s; one may be under way.
        let load = p.load.unwrap() as f64;
        let asked = 100.0 * load;
        assert_eq!(p.offered_ops_per_s, Some(asked));
        assert!((p.achieved_ops_per_s - asked).abs() <= 0.2 * load, "{p:?}");
        assert_eq!(
            (p.mean_ms, p.service_mean_ms, p.max_ms),
            (Some(10.0), Some(10.0), Some(10.0))
        );
        assert_eq!((p.verdict, p.errors, p.window_s), (Verdict::Valid, 0, 10.0));
        assert!(
            p.criteria.len() >= 4 && p.criteria.iter().all(|c| c.met),
            "{:?}",
            p.criteria
        );
    }
    let figures = of(&curve);
    assert!((figures.ort_ms.unwrap() - 10.0).abs() < 1e-9);
    // A triangle from the origin, then a rectangle.
    let (first, last) = (
        curve.runs[0].achieved_ops_per_s,
        curve.runs[3].achieved_ops_per_s,
    );
    let area = 10.0 * first / 2.0 + 10.0 * (last - first);
    assert!((figures.ort_2008_ms.unwrap() - area / last).abs() < 1e-9);
    assert_eq!(
        (figures.load_line, figures.highest_valid_load, figures.knee),
        (Some(8), Some(8), None)
    );
    assert!(curve.is_comparable() && curve.stop_reason.is_none());
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
        let next = NextRun {
            configuration: 0,
            load: point.load,
            purpose: None,
            seed: curve.seed(),
            directory: point.directory.clone(),
        };
        assert_eq!(&SeriesRun::of(&run, &next, &point.directory), point);
        let histograms = dir.run(point).unwrap().read_histograms().unwrap();
        assert!(!histograms.is_empty());
        assert_eq!(Some(run.mix.unwrap().load), point.load);
        // All points are laid out alike.
        assert_eq!(run.plan.filesets, curve.first_plan().filesets);
    }
    let schema = serde_json::from_str(&plimsoll_results::schema::<Series>()).unwrap();
    let value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(schema::faults(&schema, &value), [""; 0]);

    // Once more: the same figures, in a directory of their own.
    let again = virtual_curve(&bench, "10ms", &["--load=1,2,4,8"]).expect_code(0);
    let figures = |mut curve: Series| {
        let runs = curve.runs.iter_mut();
        runs.for_each(|run| run.started_at.clear());
        (curve.runs, curve.kind)
    };
    assert_eq!(figures(parsed(&again)), figures(curve));
    assert_eq!(bench.results().len(), 2);
}

#[test]
fn the_report_of_a_curve() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll(["curve", "users.toml", "--points=4", "--max-load=8"]);
    command
        .args([
            "--time=10s",
            "--warmup=1s",
            "--scale=0.5",
            "--latency-limit=5ms",
        ])
        .args(virtually("10ms"))
        .env("COLUMNS", "100");
    let ended = Ended::of(command).expect_code(3);
    let stamp = regex::Regex::new(r"(users-curve-|started\s+)[-0-9T:.]+").unwrap();
    insta::assert_snapshot!(stamp.replace_all(&ended.stdout, "${1}TIME"));
}

#[test]
fn points_that_are_not_sustained_are_kept_with_their_reasons() {
    let bench = Bench::on_tmpfs();
    // A process that needs 30 ms an operation does 33 of the 50 a second it is asked for.
    let ended = virtual_curve(&bench, "30ms", &["--load=1..4"]).expect_code(3);
    let curve = parsed(&ended);
    assert_eq!(verdicts(&curve), [Verdict::Invalid; 2]);
    assert_eq!(curve.state, SeriesState::Stopped);
    assert_eq!(
        curve.stop_reason.as_ref().unwrap().code,
        "consecutive_invalid"
    );
    let figures = of(&curve);
    assert_eq!(
        (
            figures.load_line,
            figures.highest_valid_load,
            figures.ort_ms
        ),
        (None, None, None)
    );
    for p in &curve.runs {
        let codes: Vec<&str> = p.reasons.iter().map(|r| r.code.as_str()).collect();
        assert_eq!(codes, ["process_rate", "total_rate"]);
        let met: Vec<(&str, bool)> = p
            .criteria
            .iter()
            .map(|c| (c.code.as_str(), c.met))
            .collect();
        assert_eq!(
            met[..3],
            [
                ("process_rate", false),
                ("total_rate", false),
                ("errors", true)
            ]
        );
        assert!(
            (p.slowest_process_percent.unwrap() - 66.6).abs() < 1.0,
            "{p:?}"
        );
    }
    // To the end, if that is asked for.
    let all =
        virtual_curve(&bench, "30ms", &["--load=1..4", "--stop-after-invalid=0"]).expect_code(3);
    let all = parsed(&all);
    assert_eq!(
        (loads(&all), all.state),
        (vec![1, 2, 3, 4], SeriesState::Complete)
    );
    // And carried, if less is asked for.
    let lenient = [
        "--load=1..4",
        "--min-total-rate=0.6",
        "--min-process-rate=0.6",
    ];
    let lenient = parsed(&virtual_curve(&bench, "30ms", &lenient).expect_code(0));
    assert_eq!((of(&lenient).load_line, lenient.runs.len()), (Some(4), 4));
    let criteria = &lenient.metric().unwrap().criteria;
    assert_eq!(
        (criteria.total_percent, criteria.process_percent),
        (60.0, 60.0)
    );
    // A limit of the latency.
    let limited = ["--load=1,2", "--latency-limit=5ms"];
    let limited = parsed(&virtual_curve(&bench, "10ms", &limited).expect_code(3));
    let reasons = &limited.runs[0].reasons;
    assert_eq!((reasons.len(), reasons[0].code.as_str()), (1, "latency"));
}

#[test]
fn a_system_of_known_capacity_has_its_load_line_there() {
    let bench = Bench::on_tmpfs();
    // Four servers that take 10 ms an operation carry 400 a second; a user asks for 100.
    let ended = virtual_curve(&bench, "10ms&servers=4", &["--load=1,2,3,5,6,7"]).expect_code(0);
    let curve = parsed(&ended);
    let expected = [(1, 100.0), (2, 200.0), (3, 300.0), (5, 400.0), (6, 400.0)];
    assert_eq!(loads(&curve), expected.map(|(load, _)| load));
    for (point, (load, achieved)) in curve.runs.iter().zip(expected) {
        let off = (point.achieved_ops_per_s - achieved).abs();
        assert!(
            off <= 0.2 * load as f64 + 0.5,
            "{} at {load}",
            point.achieved_ops_per_s
        );
        assert!(load > 3 || point.mean_ms >= Some(10.0));
    }
    assert_eq!(
        verdicts(&curve),
        [
            [Verdict::Valid; 3].as_slice(),
            [Verdict::Invalid; 2].as_slice()
        ]
        .concat()
    );
    let figures = of(&curve);
    assert_eq!(
        (figures.load_line, figures.highest_valid_load),
        (Some(3), Some(3))
    );
    assert_eq!(
        curve.stop_reason.as_ref().unwrap().code,
        "consecutive_invalid"
    );
    // A queue that grows for 10 s, of which a fifth or a third of what was asked for is not done.
    let queued = curve.runs[3].mean_ms.unwrap();
    assert!(
        queued > 500.0 && queued > 20.0 * curve.runs[2].mean_ms.unwrap(),
        "{queued}"
    );
    // Of the shape, all points tell.
    assert_eq!(figures.knee, Some(3.0));
    let usl = figures.usl.as_ref().unwrap();
    assert_eq!(usl.residuals.len(), 5);
    assert!(usl.sigma > 0.0 || usl.kappa > 0.0);
}

#[test]
fn the_data_set_grows_from_point_to_point_and_goes_at_the_end() {
    let bench = Bench::on_tmpfs();
    let work = bench.work();
    let log = bench.path("log");
    let script = monitor(
        &bench,
        &format!(
            "echo $1 $2 $3 $(find {} -type f ! -name .plimsoll 2>/dev/null | wc -l) >> {}
             [ \"$2 $3\" != '4 END' ] || exit 9",
            work.display(),
            log.display()
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
    // A monitor that fails is a note.
    let notes: Vec<&str> = curve.notes.iter().map(|n| n.text.as_str()).collect();
    let [note] = notes[..] else {
        panic!("{notes:?}");
    };
    assert!(
        note.starts_with("load 4: the command `exec ")
            && note.contains("after load: it ended with exit status 9"),
        "{note}"
    );
    let known = ["results", "users.toml", "monitor.sh", "log"];
    assert_eq!(bench.left_but(&known), [""; 0]);
}

#[test]
fn a_point_that_is_invalid_does_not_end_the_curve() {
    let bench = Bench::on_tmpfs();
    let script = monitor(
        &bench,
        &format!(
            "[ \"$2 $3\" != '2 WARM' ] || rm -r {}/looker-data/*",
            bench.work().display()
        ),
    );
    let args = ["--load=2,3", "--warmup=500ms", "--time=2s", "--keep"];
    let mut command = curve(&bench, &args);
    command.args(TO_THE_END).args(monitored(&script, "500ms"));
    command.arg("--dir").arg(bench.work());
    let curve = parsed(&Ended::of(command));
    let first = &curve.runs[0];
    assert_eq!((first.verdict, curve.runs.len()), (Verdict::Invalid, 2));
    assert!(first.errors > 0);
    let failed = first.criteria.iter().find(|c| c.code == "errors").unwrap();
    assert!(
        !failed.met && failed.text.contains("operations failed"),
        "{failed:?}"
    );
    // What the first lost was made again for the second.
    assert_eq!(curve.runs[1].errors, 0);
    let (files, _) = tree(&bench.work());
    assert_eq!(files.len() as u64, 3 * FILES_PER_USER);
    assert!(files.values().all(|size| *size == 4096));
    // Another curve finds what this one kept; the greatest load is the same.
    let again = quick_curve(&bench, &["--load=1,3"]);
    let again = parsed(&Ended::of(again));
    let first = run_of(&directory_of(&bench, 1), &again.runs[0]);
    assert!(
        first.filesets.iter().all(|p| p.reused),
        "{:?}",
        first.filesets
    );
    assert!(!bench.work().exists());
}

#[test]
fn ranks_measure_every_point_together() {
    let bench = Bench::on_tmpfs();
    let command = quick_curve(&bench, &["--load=1,2,3", "--processes=2", "--per-rank"]);
    let curve = parsed(&Ended::of(command));
    assert_eq!((curve.ranks, loads(&curve)), (2, vec![1, 2, 3]));
    assert_eq!(
        curve.state,
        SeriesState::Complete,
        "{:?}",
        curve.stop_reason
    );
    let dir = only(&bench);
    for point in &curve.runs {
        let run = run_of(&dir, point);
        let ops = |rank: u32| {
            let path = dir
                .path()
                .join(&point.directory)
                .join(format!("ranks/rank-{rank}.json"));
            let text = std::fs::read_to_string(path).unwrap();
            let own: plimsoll_results::Run = serde_json::from_str(&text).unwrap();
            own.summary.ops
        };
        assert_eq!(ops(0) + ops(1), run.summary.ops);
        let load = point.load.unwrap();
        assert_eq!(run.workers, 2 * load);
        assert_eq!(run.filesets[0].files, FILES_PER_USER * load);
    }
    assert_eq!(bench.left_but(&["results", "users.toml"]), [""; 0]);
}

#[test]
fn the_directory_is_claimed_between_points_and_released_afterwards() {
    let bench = Bench::on_tmpfs();
    let work = bench.work();
    let run = format!(
        "{} run varmail --set nfiles=10 --ops 10 --results {} --dir {}",
        env!("CARGO_BIN_EXE_plimsoll"),
        bench.path("other").display(),
        work.display()
    );
    let log = bench.path("log");
    let script = monitor(
        &bench,
        &format!("[ \"$2 $3\" != '1 END' ] || {run} 2> {}", log.display()),
    );
    let mut command = quick_curve(&bench, &["--load=1,2", "--keep"]);
    command.args(monitored(&script, "100ms"));
    let curve = parsed(&Ended::of(command));
    assert_eq!(loads(&curve), [1, 2]);
    let refused = std::fs::read_to_string(log).unwrap();
    assert!(
        refused.contains("is in use by another run (process "),
        "{refused}"
    );
    assert!(work.join(MARKER).exists() && !work.join(CLAIM).exists());
    assert_eq!(tree(&work).0.len() as u64, 2 * FILES_PER_USER);
}

#[test]
fn what_cannot_be_a_curve_is_refused_and_leaves_nothing() {
    let bench = Bench::on_tmpfs();
    let refused = |args: &[&str]| {
        let text = Ended::of(curve(&bench, args)).refusal();
        assert_eq!(bench.left_but(&["users.toml"]), [""; 0], "{args:?}");
        text
    };
    assert!(refused(&[]).contains("which loads? Give --load 10,20,30"));
    assert!(refused(&["--load=10-20"]).contains("a range is written `10..20`"));
    assert!(refused(&["--load=-3"]).contains("expected a load"));
    assert!(refused(&["--points=5"]).contains("--max-load <LOAD>"));
    assert!(refused(&["--points=5", "--max-load=4"]).contains("no 5 different loads up to 4"));
    assert!(refused(&["--load=1", "--max-load=4"]).contains("cannot be used with"));
    assert!(refused(&["--load=1", "--min-total-rate=95"]).contains("a fraction from 0 to 1"));
    assert!(refused(&["--load=1", "--target=nulll"]).contains("did you mean `null`?"));
    assert!(refused(&["--load=1000000000000"]).contains("processes"));
    let many = refused(&["--load=1,100000", "--set=looker.files.size=1t"]);
    assert!(many.contains("free"), "{many}");
    let within = format!("--dir={}", bench.root().join("results").display());
    assert!(refused(&["--load=1", &within]).contains("inside"));
    let wml = Ended::of(bench.plimsoll(["curve", "varmail", "--load=1"])).refusal();
    assert!(wml.contains("`varmail` has no business metric"), "{wml}");
}
