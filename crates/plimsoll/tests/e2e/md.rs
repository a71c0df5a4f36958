//! `plimsoll md` as people and scripts use it: what is printed, written, refused and left behind.

use crate::common::{Bench, Ended, started};
use crate::ranks::of_rank;
use plimsoll_plan::Plan;
use plimsoll_results::Verdict;
use regex::Regex;
use std::collections::BTreeSet;
use std::path::Path;

/// A small task: 2 sets of 20 objects a rank, 10 rounds.
const SMALL: [&str; 5] = ["-P=20", "-I=10", "-D=2", "-R=2", "-S=100"];

fn md(bench: &Bench, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["md", "--results"]);
    command.arg(bench.path("results")).args(more);
    Ended::of(command)
}

fn small(bench: &Bench, more: &[&str]) -> Ended {
    md(bench, &[&SMALL[..], more].concat())
}

/// Relative paths of the objects below a pattern's root directory.
fn objects(root: &Path) -> BTreeSet<String> {
    crate::common::tree(root).0.into_keys().collect()
}

#[test]
fn a_script_finds_what_it_looks_for() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["--processes=2", "--per-rank"]).expect_code(0);
    let out = &ended.stdout;
    // The head of MD-Workbench's report has the number of objects, 2 sets · (10 rounds · 2 iterations + 20 objects) · 2
    // processes, and the working set.
    let head = Regex::new(
        r"(?m)^MD-Workbench total objects: (\d+) workingset size: ([0-9.]+) MiB \(version: \S+\) time: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$",
    );
    let found = head.unwrap().captures(out).expect(out);
    assert_eq!((&found[1], &found[2]), ("160", "0.008"));
    for line in [
        "data-sets=2",
        "object-size=100",
        "run-cleanup",
        "root-dir=out",
    ] {
        let is_there = out.lines().any(|l| l.strip_prefix('\t') == Some(line));
        assert!(is_there, "{line}\n{out}");
    }
    let e = r"[0-9.]+e[-+]\d\d";
    let benchmark = r"objects:40 .* \(0 errs\) read\(.* stat\(.* create\(.* delete\(";
    let phases = [
        (
            "precreate",
            1,
            r"dsets: 4 objects:80 .* \(0 errs\) create\(",
        ),
        ("benchmark", 2, benchmark),
        ("cleanup", 1, r"objects:80 dsets: 4 .* \(0 errs\) delete\("),
    ];
    for (name, times, rest) in phases {
        let shape = format!(
            r"(?m)^{name} process max:[0-9.]+s min:[0-9.]+s mean: [0-9.]+s balance:[0-9.]+ stddev:[0-9.]+ rate:[0-9.]+ iops/s {rest}({e}s, ){{6}}{e}s\)$"
        );
        let found = Regex::new(&shape).unwrap().find_iter(out).count();
        assert_eq!(found, times, "{name}\n{out}");
    }
    let total = Regex::new(r"(?m)^Total runtime: \d+s time: \d{4}-").unwrap();
    assert!(total.is_match(out));
    assert!(out.contains("md-workbench: valid"), "our report follows");
    assert_eq!(bench.left_but(&["results"]), Vec::<String>::new());
    // Operations of each rank: creation and removal of 2 sets (4), of 40 objects (80), and 4 operations per set in each
    // of 20 rounds (160).
    let dir = bench.results().pop().unwrap();
    let ops = [0, 1].map(|rank| of_rank(&dir, rank).summary.ops);
    assert_eq!(ops, [4 + 80 + 160; 2]);
    assert_eq!(dir.read().unwrap().summary.ops, ops[0] + ops[1]);
}

#[test]
fn quiet_is_a_line_a_phase_and_nothing_else() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["-q"]).expect_code(0);
    let lines = ended.stdout.lines();
    let begins: Vec<&str> = lines.filter_map(|l| l.split(' ').next()).collect();
    assert_eq!(begins, ["precreate", "benchmark", "benchmark", "cleanup"]);
    assert_eq!(ended.stderr, "");
    assert!(!ended.stdout.contains("errs"));
}

#[test]
fn json_is_alone_on_standard_output() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["--format=json", "-T", "-R=1"]).expect_code(0);
    let run = ended.parsed().expect("run.json");
    assert_eq!(run.validity.verdict, Verdict::Valid);
    let names: Vec<&str> = run.stages.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!((names[0], names[9]), ("precreate", "cleanup"));
    assert!(names[1..9].iter().all(|n| *n == "benchmark"));
    let waits = Regex::new(r"waiting_factor:([0-9.]+)").unwrap();
    let waits = waits.captures_iter(&ended.stderr).map(|c| c[1].to_owned());
    let waits = waits.collect::<Vec<_>>().join(" ");
    assert_eq!(waits, "0.06 0.12 0.25 0.50 1.00 2.00 4.00");
}

#[test]
fn every_time_is_kept_where_it_is_asked_for() {
    let bench = Bench::on_tmpfs();
    let lines = |name: &str| {
        let text = std::fs::read_to_string(bench.path(name)).unwrap();
        assert!(text.starts_with("time,runtime\n"));
        let mut before = 0.0;
        for line in text.lines().skip(1) {
            let (time, runtime) = line.split_once(',').unwrap();
            let (time, runtime): (f64, f64) = (time.parse().unwrap(), runtime.parse().unwrap());
            assert!(runtime > 0.0 && time >= 0.0);
            if !name.contains("-all") {
                assert!(time >= before, "{name}: {time} comes after {before}");
            }
            before = time;
        }
        text.lines().count() - 1
    };
    small(&bench, &["-q", "-L=lat", "--processes=2"]).expect_code(0);
    assert_eq!(lines("lat-0.00-0-precreate.csv"), 40);
    assert_eq!(lines("lat-0.00-2-cleanup.csv"), 40);
    for op in ["read", "stat", "create", "delete"] {
        for iteration in 0..2 {
            assert_eq!(lines(&format!("lat-0.00-{iteration}-{op}.csv")), 20);
        }
    }
    let refused = small(&bench, &["-q", "-L=lat"]).refusal();
    let expected = "exists and is not overwritten";
    assert!(refused.contains(expected), "{refused}");
    small(&bench, &["-q", "-L=all", "--latency-all", "--processes=2"]).expect_code(0);
    assert_eq!(lines("all-0.00-0-precreate-all.csv"), 80);
    assert_eq!(lines("all-0.00-1-stat-all.csv"), 40);
    let inside = small(&bench, &["-L=out/lat"]).refusal();
    assert!(inside.contains("cannot write out/lat"), "{inside}");
    std::fs::create_dir(bench.path("out")).unwrap();
    let inside = small(&bench, &["-L=out/lat"]).refusal();
    assert!(inside.contains("-L chooses another place"), "{inside}");
}

#[test]
fn what_cannot_be_is_refused_in_one_line_and_nothing_is_made() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("notes"), "mine\n").unwrap();
    std::fs::create_dir(bench.path("full")).unwrap();
    std::fs::write(bench.path("full/mine"), "").unwrap();
    for row in [
        "-i=mongo => the interface `mongo` is not in Plimsoll",
        "-i=psix => did you mean `posix`?",
        "-2 => cannot read the position from mdtest.status",
        "-3 --run-info-file=notes => notes is not a run-info file",
        "-1 --run-info-file=notes => notes is not a run-info file",
        "-o full => full",
        "-o missing/too/out => missing",
        "-2 --start-item=5 => out",
        "--results=out/r => --results chooses another place",
        "-S=1t -P=1000000 => the objects take 1.91 EiB",
    ] {
        let (arguments, why) = row.split_once(" => ").unwrap();
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let refused = small(&bench, &arguments).refusal();
        assert!(refused.contains(why), "{row}: {refused}");
        assert_eq!(refused.trim_end().lines().count(), 1, "{row}: {refused}");
    }
    let refused = small(&bench, &["-P", "-1"]).refusal();
    assert!(refused.contains("expected a whole number"), "{refused}");
    let left = bench.left_but(&["notes", "full", "results"]);
    assert_eq!(left, [""; 0]);
    assert_eq!(std::fs::read_dir(bench.path("full")).unwrap().count(), 1);
    let notes = std::fs::read_to_string(bench.path("notes")).unwrap();
    assert_eq!(notes, "mine\n");
}

#[test]
fn nothing_at_all_takes_the_whole_task() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["-q", "-i=dummy", "--processes=2"]).expect_code(0);
    let lines = ended.stdout.matches(" objects:40 ").count();
    assert_eq!(lines, 2, "{}", ended.stdout);
    assert!(!bench.path("out").exists());
    for phase in ["-1", "-2", "-3"] {
        small(&bench, &["-q", "-i=dummy", phase]).expect_code(0);
    }
    let listed = md(&bench, &["--interface=list"]).expect_code(0).stdout;
    let names = "Available plugins: dummy posix device null sim nfs3 nfs4";
    assert!(
        listed.starts_with(names) && listed.lines().count() == 1,
        "{listed}"
    );
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["--dry-run", "--processes=3"]).expect_code(0);
    for part in [
        "3 ranks with 2 sets each",
        "benchmark 1 to 2: 10 rounds",
        "4 stages",
        "space     480 KiB for the objects",
        "inodes    126 for objects and sets",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
    let large = small(&bench, &["--dry-run", "-S=1t", "-P=1000000"]).expect_code(2);
    assert!(large.stderr.contains("refused: the objects take 1.91 EiB"));
    let ended = small(&bench, &["--dry-run", "--format=json"]).expect_code(0);
    let plan: Plan = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(plan.pattern().unwrap().stages.len(), 4);
    assert_eq!(bench.left_but(&[]), Vec::<String>::new());
}

#[test]
fn an_object_that_is_missing_is_counted_and_named() {
    let bench = Bench::on_tmpfs();
    small(&bench, &["-1"]).expect_code(0);
    std::fs::remove_file(bench.path("out/0_1/file-3")).unwrap();
    let ended = small(&bench, &["-2", "-v", "-R=1"]).expect_code(3);
    for part in [
        " objects:19 ",
        " (1 errs!!!) ",
        "\nbenchmark errors: stat ENOENT 1\n",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
    // Nothing was added to the set for the object that was missing.
    assert!(!objects(&bench.path("out")).contains("0_1/file-23"));
    assert!(objects(&bench.path("out")).contains("0_0/file-23"));
    let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
    assert_eq!(info, "pos: 10\n");
    let ended = small(&bench, &["-3", "-q"]).expect_code(3);
    // MD-Workbench's report shows errors with `!!!`, also with `-q`.
    assert!(ended.stdout.contains("(1 errs!!!)"), "{}", ended.stdout);
    assert!(
        ended.stderr.contains("md-workbench: invalid"),
        "{}",
        ended.stderr
    );
}

#[test]
fn an_interrupted_run_can_be_cleaned() {
    let bench = Bench::on_tmpfs();
    small(&bench, &["-1"]).expect_code(0);
    // Each operation is followed by a wait many times as long: the phase takes seconds.
    let mut command = bench.plimsoll(["md", "-2", "-t=20000", "--format=json", "--results"]);
    command.arg(bench.path("results")).args(SMALL);
    let run = started(command, "Args: ");
    run.interrupt();
    let ended = run.end().expect_code(130);
    let expected = "the run did not finish";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
    assert_eq!(info, "pos: 0\n");
    let foreign = bench.path("out/0_0/mine");
    std::fs::write(&foreign, "").unwrap();
    let cleaned = Ended::of(bench.plimsoll(["clean", "out"])).expect_code(0);
    assert!(cleaned.stdout.contains("0_0/mine"), "{}", cleaned.stdout);
    let left = objects(&bench.path("out"));
    assert_eq!(left, BTreeSet::from(["0_0/mine".to_owned()]));
}
