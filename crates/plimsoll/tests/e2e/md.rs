//! `plimsoll md` as people and scripts use it: what is printed, written, refused and left behind.

use crate::common::{Bench, Ended, MARKER, started};
use plimsoll_plan::Plan;
use plimsoll_results::{Run, Verdict};
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

/// The latest run of a pattern.
fn last_run(bench: &Bench, pattern: &str) -> Run {
    let runs = bench.results().into_iter().map(|dir| dir.read().unwrap());
    runs.rev().find(|r| r.workload == pattern).unwrap()
}

/// Objects below the root.
fn objects(root: &Path) -> BTreeSet<String> {
    crate::common::tree(root).0.into_keys().collect()
}

#[test]
fn a_script_finds_what_it_looks_for() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["--processes=2"]).expect_code(0);
    let out = &ended.stdout;
    // 2 sets · (10 rounds · 2 iterations + 20 objects) · 2 processes, and their working set.
    let head = Regex::new(
        r"(?m)^MD-Workbench total objects: (\d+) workingset size: ([0-9.]+) MiB \(version: \S+\) time: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$",
    );
    let found = head.unwrap().captures(out).expect(out);
    assert_eq!((&found[1], &found[2]), ("160", "0.008"));
    for line in [
        "\tdata-sets=2",
        "\tobject-size=100",
        "\trun-cleanup",
        "\troot-dir=out",
    ] {
        assert!(out.lines().any(|l| l == line), "{line}\n{out}");
    }
    let e = r"[0-9.]+e[-+]\d\d";
    let phases = [
        (
            "precreate",
            1,
            r"dsets: 4 objects:80 .* \(0 errs\) create\(",
        ),
        (
            "benchmark",
            2,
            r"objects:40 .* \(0 errs\) read\(.* stat\(.* create\(.* delete\(",
        ),
        ("cleanup", 1, r"objects:80 dsets: 4 .* \(0 errs\) delete\("),
    ];
    for (name, times, rest) in phases {
        let shape = format!(
            r"(?m)^{name} process max:[0-9.]+s min:[0-9.]+s mean: [0-9.]+s balance:[0-9.]+ stddev:[0-9.]+ rate:[0-9.]+ iops/s {rest}({e}s, ){{6}}{e}s\)$"
        );
        assert_eq!(
            Regex::new(&shape).unwrap().find_iter(out).count(),
            times,
            "{name}\n{out}"
        );
    }
    let total = Regex::new(r"(?m)^Total runtime: \d+s time: \d{4}-").unwrap();
    assert!(total.is_match(out));
    assert!(out.contains("md-workbench: valid"), "our report follows");
    assert!(!bench.path("out").exists());
    assert_eq!(bench.left_but(&["results"]), Vec::<String>::new());
}

#[test]
fn quiet_is_a_line_a_phase_and_nothing_else() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["-q"]).expect_code(0);
    let begins: Vec<&str> = ended
        .stdout
        .lines()
        .filter_map(|l| l.split(' ').next())
        .collect();
    assert_eq!(begins, ["precreate", "benchmark", "benchmark", "cleanup"]);
    assert_eq!(ended.stderr, "");
    assert!(!ended.stdout.contains("errs"));
}

#[test]
fn each_rank_has_its_line_and_its_file() {
    let bench = Bench::on_tmpfs();
    let ended = small(
        &bench,
        &["-q", "--processes=3", "--process-reports", "--per-rank"],
    );
    let ended = ended.expect_code(0);
    for rank in 0..3 {
        let shape = format!(r"(?m)^{rank}: benchmark process max:[0-9.]+s rate:.* objects:20 ");
        assert_eq!(
            Regex::new(&shape).unwrap().find_iter(&ended.stdout).count(),
            2
        );
    }
    let dir = bench.results().pop().unwrap();
    let whole = dir.read().unwrap();
    let ops: u64 = (0..3)
        .map(|rank| {
            let path = dir.path().join(format!("ranks/rank-{rank}.json"));
            let one: Run = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            one.summary.ops
        })
        .sum();
    // Of each rank: 2 sets made and removed, 40 objects made and deleted, and 2 · 20 rounds and
    // sets of four operations.
    assert_eq!(
        (whole.summary.ops, ops),
        (3 * (4 + 80 + 160), 3 * (4 + 80 + 160))
    );
}

#[test]
fn counts_are_those_of_the_task() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["--print-detailed-stats"]).expect_code(0);
    let row = |name: &str| -> Vec<u64> {
        let line = ended.stdout.lines().find(|l| l.starts_with(name)).unwrap();
        let cells = line.split('\t').skip(1).take(8);
        cells.map(|c| c.parse().unwrap()).collect()
    };
    assert!(
        ended
            .stdout
            .contains("\nphase\t\td name\tcreate\tdelete\tob nam\tcreate\tread\t")
    );
    assert_eq!(row("precreate"), [2, 2, 0, 0, 40, 0, 0, 0]);
    assert_eq!(row("benchmark"), [0, 0, 0, 0, 20, 20, 20, 20]);
    assert_eq!(row("cleanup"), [0, 0, 2, 0, 0, 0, 0, 40]);
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
    let waits: Vec<&str> = waits
        .captures_iter(&ended.stderr)
        .map(|c| c.get(1).unwrap().as_str())
        .collect();
    assert_eq!(
        waits,
        ["0.06", "0.12", "0.25", "0.50", "1.00", "2.00", "4.00"]
    );
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
    assert!(
        refused.contains("exists and is not overwritten"),
        "{refused}"
    );
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
    for (arguments, why) in [
        (
            &["-i=mongo"][..],
            "the interface `mongo` is not in Plimsoll",
        ),
        (&["-i=psix"], "did you mean `posix`?"),
        (&["-2"], "cannot read the position from mdtest.status"),
        (
            &["-3", "--run-info-file=notes"],
            "notes is not a run-info file",
        ),
        (
            &["-1", "--run-info-file=notes"],
            "notes is not a run-info file",
        ),
        (&["-o", "full"], "full"),
        (&["-o", "missing/too/out"], "missing"),
        (&["--processes=0"], "--processes is 0"),
        (&["-2", "--start-item=5"], "out"),
        (&["--results=out/r"], "--results chooses another place"),
        (&["-S=1t", "-P=1000000"], "the objects take 1.91 EiB"),
    ] {
        let ended = small(&bench, arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        let refused = ended.refusal();
        assert!(refused.contains(why), "{arguments:?}: {refused}");
        assert_eq!(
            refused.trim_end().lines().count(),
            1,
            "{arguments:?}: {refused}"
        );
    }
    let refused = small(&bench, &["-P", "-1"]).refusal();
    assert!(refused.contains("expected a whole number"), "{refused}");
    assert_eq!(
        bench.left_but(&["notes", "full", "results"]),
        Vec::<String>::new()
    );
    assert_eq!(std::fs::read_dir(bench.path("full")).unwrap().count(), 1);
    assert_eq!(
        std::fs::read_to_string(bench.path("notes")).unwrap(),
        "mine\n"
    );
}

#[test]
fn the_interfaces_are_listed() {
    let bench = Bench::on_tmpfs();
    for flag in ["-i=list", "-a=list", "--interface=list", "--api=list"] {
        let ended = md(&bench, &[flag]).expect_code(0);
        assert!(
            ended
                .stdout
                .starts_with("Available plugins: dummy posix null sim nfs3 nfs4"),
            "{}",
            ended.stdout
        );
        assert_eq!(ended.stdout.lines().count(), 1);
    }
    assert_eq!(bench.left_but(&[]), Vec::<String>::new());
}

#[test]
fn nothing_at_all_takes_the_whole_task() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["-q", "-i=dummy", "--processes=2"]).expect_code(0);
    assert_eq!(
        ended.stdout.matches(" objects:40 ").count(),
        2,
        "{}",
        ended.stdout
    );
    assert!(!bench.path("out").exists());
    for phase in ["-1", "-2", "-3"] {
        small(&bench, &["-q", "-i=dummy", phase]).expect_code(0);
    }
}

#[test]
fn a_dry_run_says_what_would_be_done_and_does_nothing() {
    let bench = Bench::on_tmpfs();
    let ended = small(&bench, &["--dry-run", "--processes=3"]).expect_code(0);
    for part in [
        "3 ranks with 2 sets each",
        "benchmark 1 to 2: 10 rounds",
        "4 stages",
    ] {
        assert!(ended.stdout.contains(part), "{part}\n{}", ended.stdout);
    }
    for part in [
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
    assert!(ended.stdout.contains(" objects:19 "), "{}", ended.stdout);
    assert!(ended.stdout.contains(" (1 errs!!!) "), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("\nbenchmark errors: stat ENOENT 1\n"),
        "{}",
        ended.stdout
    );
    // Nothing was added to the set for the object that was missing.
    assert!(!objects(&bench.path("out")).contains("0_1/file-23"));
    assert!(objects(&bench.path("out")).contains("0_0/file-23"));
    let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
    assert_eq!(info, "pos: 10\n");
    let ended = small(&bench, &["-3", "-q"]).expect_code(3);
    assert!(
        ended.stdout.contains("(1 errs!!!)"),
        "errors are shouted even when quiet"
    );
    assert!(
        ended.stderr.contains("md-workbench: invalid"),
        "{}",
        ended.stderr
    );
}

#[test]
fn contents_that_are_not_what_was_written_are_found() {
    let bench = Bench::on_tmpfs();
    small(&bench, &["-1", "-X"]).expect_code(0);
    let out = bench.path("out");
    let other = std::fs::read(out.join("0_1/file-5")).unwrap();
    std::fs::write(out.join("0_0/file-2"), other).unwrap();
    let ended = small(&bench, &["-2", "-X", "-v", "-R=1"]).expect_code(3);
    assert!(ended.stdout.contains("read EBADMSG 1"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("0_1/file-5"),
        "whose contents they are is said"
    );
    // It was deleted all the same, and another one made.
    assert!(!out.join("0_0/file-2").exists() && out.join("0_0/file-22").exists());
    small(&bench, &["-3", "-X"]).expect_code(0);
    assert!(!out.exists());
}

#[test]
fn another_number_of_ranks_or_sets_does_not_fit_what_is_there() {
    let bench = Bench::on_tmpfs();
    small(&bench, &["-1"]).expect_code(0);
    for other in [
        &["-2", "-D=3"][..],
        &["-2", "--processes=2"],
        &["-2", "-S=101"],
        &["-1"],
    ] {
        let refused = small(&bench, other).refusal();
        assert!(refused.contains("out"), "{other:?}: {refused}");
    }
    small(&bench, &["-3"]).expect_code(0);
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
    assert!(
        ended.stderr.contains("the run did not finish"),
        "{}",
        ended.stderr
    );
    let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
    assert_eq!(info, "pos: 0\n");
    let foreign = bench.path("out/0_0/mine");
    std::fs::write(&foreign, "").unwrap();
    let cleaned = Ended::of(bench.plimsoll(["clean", "out"])).expect_code(0);
    assert!(cleaned.stdout.contains("0_0/mine"), "{}", cleaned.stdout);
    assert_eq!(
        objects(&bench.path("out")),
        BTreeSet::from(["0_0/mine".to_string()])
    );
}

#[test]
fn io500s_patterns_leave_nothing_and_count_every_file() {
    let bench = Bench::on_tmpfs();
    let phases = |ended: &Ended| -> Vec<(String, String)> {
        let line = Regex::new(
            r"(?m)^\[RESULT\] +(\S+) +[0-9]+\.[0-9]{6} (kIOPS|GiB/s) : time [0-9]+\.[0-9]{3} seconds$",
        );
        let line = line.unwrap();
        let found = line.captures_iter(&ended.stdout);
        found
            .map(|c| (c[1].to_string(), c[2].to_string()))
            .collect()
    };
    let expected = |pattern: &str, phases: &[&str], unit: &str| -> Vec<(String, String)> {
        let named = phases
            .iter()
            .map(|p| (format!("{pattern}-{p}"), unit.to_string()));
        named.collect()
    };
    let files = ["-n=30", "-w=0", "--processes=4", "-q"];
    for (pattern, names) in [
        ("mdtest-easy", &["write", "stat", "delete"][..]),
        ("mdtest-hard", &["write", "stat", "read", "delete"]),
    ] {
        let ended = md(&bench, &[&["--pattern", pattern], &files[..]].concat()).expect_code(0);
        assert_eq!(
            phases(&ended),
            expected(pattern, names, "kIOPS"),
            "{}",
            ended.stdout
        );
        for stage in last_run(&bench, pattern)
            .stages
            .iter()
            .filter(|s| s.name.starts_with("mdtest"))
        {
            assert_eq!(stage.window.summary.ops, 120, "{}", stage.name);
            assert_eq!(stage.window.summary.errors, 0);
        }
    }
    for (pattern, size) in [("ior-easy", 2 << 20), ("ior-hard", 47_008)] {
        let ended = md(
            &bench,
            &[
                "--pattern",
                pattern,
                "--transfers=5",
                "-w=0",
                "--processes=4",
                "-q",
            ],
        )
        .expect_code(0);
        assert_eq!(
            phases(&ended),
            expected(pattern, &["write", "read"], "GiB/s")
        );
        for stage in last_run(&bench, pattern).stages {
            assert_eq!(stage.window.summary.bytes, 4 * 5 * size, "{}", stage.name);
        }
    }
    assert_eq!(bench.left_but(&["results"]), Vec::<String>::new());
}

#[test]
fn io500s_stonewall_evens_the_ranks_out() {
    let bench = Bench::on_tmpfs();
    for pattern in ["mdtest-easy", "ior-hard"] {
        let ended = md(
            &bench,
            &["--pattern", pattern, "-w=0.1", "--processes=3", "-q"],
        );
        ended.expect_code(0);
        let run = last_run(&bench, pattern);
        let write = run
            .stages
            .iter()
            .find(|s| s.name.ends_with("-write"))
            .unwrap();
        let rounds: Vec<u64> = write.ranks.iter().map(|r| r.rounds).collect();
        assert!(
            rounds[0] > 0 && rounds.windows(2).all(|w| w[0] == w[1]),
            "{rounds:?}"
        );
        for later in run.stages.iter().filter(|s| s.name.starts_with(pattern)) {
            assert_eq!(later.window.summary.errors, 0);
            let most = later.window.operations.iter().map(|o| o.ops).max();
            assert_eq!(most, Some(rounds[0] * 3), "{}", later.name);
        }
    }
    assert!(!bench.path("ior-hard").join(MARKER).exists());
}
