//! `plimsoll io500`: the phases of a configuration file, the files in IO500's forms, scores, and resumption.

use crate::common::series::{only_in, runs_of};
use crate::common::{Bench, Ended, tree, wait_until};
use plimsoll_results::{SeriesDir, SeriesState, Verdict};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Instant;

/// A tiny suite: each writing phase ends long before IO500's 300 s.
const SMALL: &str = "\
[global]
datadir = data
timestamp-datadir = FALSE
[debug]
stonewall-time = 2
[ior-easy]
transferSize = 64k
blockSize = 256k
[ior-hard]
segmentCount = 5
[mdtest-easy]
n = 20
[mdtest-hard]
n = 102
";

fn io500(bench: &Bench, config: &str, more: &[&str]) -> std::process::Command {
    let text = config.replacen("[debug]", "resultdir = results\n[debug]", 1);
    std::fs::write(bench.path("config.ini"), text).unwrap();
    let mut command = bench.plimsoll(["io500", "config.ini"]);
    command.args(more);
    command
}

/// Names of the phases in the lines of IO500's summary, in order.
fn phases(summary: &str) -> Vec<&str> {
    let lines = summary.lines().filter(|line| line.contains(" : time "));
    let names = lines.filter_map(|line| line[8..].split_whitespace().next());
    names.collect()
}

/// The score of a summary from the figures in its lines, recomputed with another formula: the n-th root of the product.
fn score(summary: &str) -> [f64; 3] {
    let mean = |is_bandwidth: bool| {
        let scored = summary.lines().filter(|line| line.starts_with("[RESULT]"));
        let words = scored.map(|line| line.split_whitespace().collect::<Vec<_>>());
        let figures = words.filter(|w| w[1].starts_with("ior") == is_bandwidth);
        let figures: Vec<f64> = figures.map(|w| w[2].parse().unwrap()).collect();
        let counted = figures.iter().filter(|f| **f > 0.0);
        let n = counted.clone().count() as f64;
        counted.product::<f64>().powf(1.0 / n)
    };
    let (bandwidth, metadata) = (mean(true), mean(false));
    [bandwidth, metadata, (bandwidth * metadata).sqrt()]
}

#[test]
fn a_killed_suite_continues_with_the_phase_that_did_not_end() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.path("pause")).unwrap();
    let pause = bench.path("pause/mdtest-easy-delete");
    std::fs::write(&pause, "").unwrap();
    let config = SMALL.replace("[debug]", "[debug]\npause-dir = pause");
    let mut command = io500(&bench, &config, &["--processes", "2"]);
    command
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // The suite waits before the phase that deletes the files of mdtest-easy.
    let results = bench.path("results");
    let waits = || {
        let mut dirs = std::fs::read_dir(&results).into_iter().flatten().flatten();
        let series = dirs.find_map(|dir| SeriesDir::at(&dir.path()).read().ok());
        let last = series.and_then(|series| Some(series.configurations.last()?.name.clone()));
        last.as_deref() == Some("mdtest-easy-delete")
    };
    wait_until("the suite waits before the phase", waits);
    let files = tree(&bench.path("data")).0;
    let of = |part: &str| {
        files
            .iter()
            .filter(|(path, _)| path.contains(part))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("mdtest-easy/test-dir.0-0/mdtest_tree.").len(),
        2 * 20,
        "{files:?}"
    );
    let hard = of("mdtest-hard/test-dir.0-0/mdtest_tree.0/file.mdtest.");
    assert_eq!(hard.len(), 2 * 102);
    assert!(hard.iter().all(|(_, size)| **size == 3901));
    let easy = of("ior_file_easy.");
    assert_eq!(easy.len(), 2);
    assert!(easy.iter().all(|(_, size)| **size == 256 << 10));
    assert_eq!(of("ior-hard/file")[0].1, &(2 * 5 * 47_008));
    kill_process_group(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    std::fs::remove_file(&pause).unwrap();

    let dir = only_in(&results);
    assert_eq!(dir.read().unwrap().state, SeriesState::Unfinished);
    let path = dir.path().display().to_string();
    let resume = [
        "resume",
        path.as_str(),
        "--processes",
        "2",
        "--allow-commands",
    ];
    let begun = Instant::now();
    let child = bench
        .plimsoll(resume)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ended = Ended::wait(child.unwrap(), begun).expect_code(3);
    let series = dir.read().unwrap();
    assert_eq!(series.state, SeriesState::Complete);
    let suite = series.as_suite().unwrap();
    let names: Vec<&str> = suite
        .figures
        .run_phases()
        .map(|(_, p)| p.name.as_str())
        .collect();
    let runs = runs_of(&dir);
    assert_eq!(runs.len(), names.len());
    assert!(
        runs.iter()
            .all(|run| run.validity.verdict == Verdict::Valid)
    );
    // The files of mdtest-easy were made again, unmeasured, and all were deleted.
    let at = names
        .iter()
        .position(|name| *name == "mdtest-easy-delete")
        .unwrap();
    assert_eq!(series.runs[at].phase.as_ref().unwrap().items, 2 * 20);
    assert!(ended.stdout.contains("on new files"), "{}", ended.stdout);
    // Of the names of each rank, only `file.mdtest.RANK.101` contains `01`.
    let found = suite.figures.run_of("find", &series.runs).unwrap();
    assert_eq!(found.phase.as_ref().unwrap().matches, Some(2));
    // Nothing of the suite is left but its results.
    let left = tree(&bench.path("data")).0;
    assert!(left.is_empty(), "{left:?}");

    let summary = std::fs::read_to_string(dir.path().join("result_summary.txt")).unwrap();
    let order = phases(&summary);
    assert_eq!(
        order[..4],
        [
            "ior-easy-write",
            "mdtest-easy-write",
            "timestamp",
            "ior-hard-write"
        ]
    );
    assert_eq!(order[4..7], ["mdtest-hard-write", "find", "ior-easy-read"]);
    assert_eq!(
        order[7..10],
        ["mdtest-easy-stat", "ior-hard-read", "mdtest-hard-stat"]
    );
    assert_eq!(
        order[10..13],
        [
            "mdtest-easy-delete",
            "mdtest-hard-read",
            "mdtest-hard-delete"
        ]
    );
    assert_eq!(order[13..], ["ior-rnd4K-easy-read"]);
    let written = summary
        .lines()
        .filter(|line| line.contains("-write "))
        .collect::<Vec<_>>();
    assert_eq!(written.len(), 4);
    assert!(
        written.iter().all(|line| line.ends_with(" [INVALID]")),
        "{summary}"
    );
    let line = summary
        .lines()
        .find(|line| line.starts_with("[SCORE ]"))
        .unwrap();
    assert!(line.ends_with(" [INVALID]"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let stated = [words[3], words[7], words[11]].map(|word| word.parse::<f64>().unwrap());
    for (stated, computed) in stated.iter().zip(score(&summary)) {
        assert!(
            (stated - computed).abs() <= 1e-4 * computed.max(1.0),
            "{line} {computed}"
        );
    }
    assert_eq!(
        summary.matches("IO500-style, not an IO500 result").count(),
        1
    );

    let csv = std::fs::read_to_string(dir.path().join("mdtest-hard-read.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 1 + 2, "{csv}");
    let original = std::fs::read_to_string(dir.path().join("config-orig.ini")).unwrap();
    assert_eq!(
        original,
        std::fs::read_to_string(bench.path("config.ini")).unwrap()
    );
    let result = dir.path().join("result.txt");
    let verify = |text: &str| {
        std::fs::write(bench.path("checked.txt"), text).unwrap();
        let command = bench.plimsoll(["io500", "config.ini", "--verify", "checked.txt"]);
        Ended::of(command).expect_code(3).stdout
    };
    let text = std::fs::read_to_string(result).unwrap();
    assert!(verify(&text).contains("[OK]"), "{text}");
    let alone = bench.plimsoll(["io500", "--verify", "checked.txt"]);
    let alone = Ended::of(alone).expect_code(3).stdout;
    assert!(
        alone.contains("(not checked without a configuration)"),
        "{alone}"
    );
    let score = text
        .lines()
        .find(|line| line.starts_with("score "))
        .unwrap();
    assert!(verify(&text.replacen(score, "score = 9.000000", 1)).contains("ERROR: "));
}

#[test]
fn a_dry_run_prints_the_phases_and_makes_nothing() {
    let bench = Bench::on_tmpfs();
    let ended = Ended::of(io500(&bench, SMALL, &["--dry-run", "--mode=extended"])).expect_code(0);
    let begins: Vec<&str> = ended
        .stdout
        .lines()
        .filter_map(|l| l.split(": ").next())
        .collect();
    assert_eq!(begins[0], "ior-easy-write");
    assert!(begins.contains(&"mdworkbench-bench"), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("--pattern mdtest-hard"),
        "{}",
        ended.stdout
    );
    assert_eq!(bench.left_but(&["config.ini"]), Vec::<String>::new());
}

#[test]
fn a_model_runs_the_extended_mode_in_virtual_time() {
    let bench = Bench::on_tmpfs();
    let config = format!("{SMALL}[mdworkbench]\nprecreatePerSet = 5\nfilesPerProc = 3\n");
    let options = [
        "--mode=extended",
        "--processes=3",
        "--target",
        "sim:flash-2-replicas",
    ];
    let ended = Ended::of(io500(&bench, &config, &options)).expect_code(3);
    let dir = only_in(&bench.path("results"));
    let series = dir.read().unwrap();
    let suite = series.as_suite().unwrap().figures;
    assert!(suite.score.is_some() && suite.extended_score.is_some());
    let find = suite
        .results
        .iter()
        .find(|result| result.name == "find")
        .unwrap();
    assert!(find.reasons[0].contains("keeps no files"), "{find:?}");
    let run = suite.run_of("mdworkbench-delete", &series.runs).unwrap();
    // Each rank has 10 sets with 5 objects, before and after the benchmark.
    assert_eq!(run.phase.as_ref().unwrap().items, 3 * 10 * (5 + 1));
    assert!(ended.stdout.contains("[SCOREX]"), "{}", ended.stdout);
}

#[test]
fn what_is_wrong_in_a_configuration_is_shown_at_its_place() {
    let bench = Bench::on_tmpfs();
    let config = SMALL.replace("datadir = data", "datadir = data\napi = DFS");
    let ended = Ended::of(io500(&bench, &config, &[])).expect_code(2);
    assert!(ended.stderr.contains("config.ini:3:7"), "{}", ended.stderr);
    assert_eq!(bench.left_but(&["config.ini"]), Vec::<String>::new());
}
