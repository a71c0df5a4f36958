//! mdtest's command lines: Plans, refusals and output lines.

use plimsoll_measure::{RankRow, RankStage};
use plimsoll_plan::{Plan, RootHandling, SetTree};
use plimsoll_workload::mdtest::{Arguments, Options, Report, lower};

fn options(line: &str) -> Result<Options, String> {
    Options::new(&crate::arguments::<Arguments>(line)?)
}

fn plan(line: &str, ranks: u32) -> Plan {
    let plan = lower(&options(line).unwrap(), ranks).unwrap();
    plan.check().unwrap();
    plan
}

/// The printed lines of a Plan's stages for 4 tasks, without their common end.
fn stages(line: &str) -> Vec<String> {
    let text = plan(line, 4).to_string();
    let lines = text.lines().map(str::trim_start);
    let stages = lines.filter_map(|l| l.strip_suffix("; stops at the first error"));
    stages.map(String::from).collect()
}

#[test]
fn command_lines_become_stages() {
    assert_eq!(
        stages("-n 8 -N 1 -y -w 10"),
        [
            "Tree creation: make set for each set",
            "Directory creation: 8 rounds, over all sets: make directory (make directory, own)",
            "Directory stat: 8 rounds, set by set: stat (stat directory, rank +1)",
            "Directory rename: 8 rounds, set by set: rename (rename directory, rank +1)",
            "Directory removal: 8 rounds, over all sets: remove directory (remove directory, rank +3)",
            "File creation: 8 rounds, over all sets: create (make and flush, own)",
            "File stat: 8 rounds, set by set: stat (stat, rank +1)",
            "File read: 8 rounds, set by set: read (read, rank +2)",
            "File removal: 8 rounds, over all sets: delete (delete, rank +3)",
            "Tree removal: remove set for each set",
        ]
    );
    // The creation of IO500's phase mdtest-easy-write.
    assert_eq!(
        stages("-n 1000000 -u -L -F -N 1 -C -W 300 -d data/mdtest-easy"),
        [
            "Tree creation: make set for each set",
            "File creation: 1 000 000 rounds, over all sets: create (make, own); stonewall after 5m, then all do \
             as many rounds as the fastest",
        ]
    );
    assert_eq!(
        stages("-F -I 5 -z 2 -b 3 -R --random-seed 7 -T -E -r"),
        [
            "File stat: 5 rounds, shuffled by seed 7: stat (stat, own)",
            "File read: 5 rounds, shuffled by seed 7: read (read, own)",
            "File removal: 5 rounds, set by set, depth first: delete (delete, own)",
            "Tree removal: remove set for each set",
        ]
    );
    let after_wall = stages("-F -n 8 -W 1");
    assert!(
        after_wall[4].contains("every object that was made"),
        "{after_wall:?}"
    );
    let twice = stages("-D -n 8 -i 2");
    let names: Vec<&str> = twice.iter().map(|l| l.split(':').next().unwrap()).collect();
    let once = [
        "Tree creation",
        "Directory creation",
        "Directory stat",
        "Directory rename",
        "Directory removal",
        "Tree removal",
    ];
    let again: Vec<String> = once.iter().map(|name| format!("{name} 2")).collect();
    assert_eq!(names[..6], once);
    assert_eq!(names[6..], again);
    // A task with one directory has no name of another directory.
    assert!(!stages("-D -n 1").iter().any(|l| l.contains("rename")));
}

/// mdtest's arithmetic for `-n`, `-I`, `-z`, `-b` and `-L` gives the items of a directory and the shape of the tree.
#[test]
fn items_are_spread_over_the_tree() {
    let tree = |branch, first_set| Some(SetTree { branch, first_set });
    for (line, dirs, per_dir, items, shape) in [
        ("-n 100", 1, 100, 100, None),
        ("-n 100 -z 0 -b 5 -L", 1, 100, 100, None),
        ("-n 100 -z 2 -b 3", 13, 7, 91, tree(3, 0)),
        ("-n 100 -z 2 -b 3 -L", 13, 11, 99, tree(3, 4)),
        ("-n 100 -z 3", 4, 25, 100, tree(1, 0)),
        ("-n 100 -z 3 -L", 4, 100, 100, tree(1, 3)),
        ("-I 10 -z 2 -b 3", 13, 10, 130, tree(3, 0)),
        ("-I 10 -z 2 -b 3 -L", 13, 10, 90, tree(3, 4)),
    ] {
        let options = options(line).unwrap();
        assert_eq!(
            (options.dirs, options.per_dir, options.items(), options.tree),
            (dirs, per_dir, items, shape),
            "{line}"
        );
    }
}

#[test]
fn files_stay_or_are_taken_as_the_phases_say() {
    for (line, root_is, stays) in [
        ("-n 1", RootHandling::New, false),
        ("-n 1 -C", RootHandling::New, true),
        ("-n 1 -T", RootHandling::Kept, true),
        ("-n 1 -r", RootHandling::Kept, false),
    ] {
        let plan = plan(line, 2);
        let pattern = plan.pattern().unwrap();
        assert_eq!(
            (pattern.root_is, pattern.leaves_objects),
            (root_is, stays),
            "{line}"
        );
    }
    for (line, notes) in [("-n 1 -w 9", 1), ("-n 1 -w 9 -e 9", 0), ("-n 1 -D", 0)] {
        assert_eq!(plan(line, 2).notes.len(), notes, "{line}");
    }
    let plan = plan("-n 1 -d /mnt/test/md -G 9 -w 3901 -e 100", 2);
    let pattern = plan.pattern().unwrap();
    assert_eq!(
        (plan.work_dir.dir.to_str(), plan.seed),
        (Some("/mnt/test"), 9)
    );
    assert_eq!(pattern.root.as_str(), "md/test-dir.0-0");
    assert_eq!((pattern.object_size, pattern.read_size), (3901, Some(100)));
}

#[test]
fn unsupported_options_and_contradictions_are_named() {
    for option in [
        "-B",
        "-c",
        "-f 1",
        "-g",
        "-k",
        "-l 1",
        "-p 1",
        "-s 1",
        "-S",
        "-t",
        "-V 1",
        "-x f",
        "-Y",
        "--print-all-procs",
        "--verify-write",
        "--dataPacketType t",
        "--run-cmd-before-phase x",
        "--run-cmd-after-phase x",
        "--warningAsErrors",
        "--saveRankPerformanceDetails f",
        "--savePerOpDataCSV f",
        "--showRankStatistics",
    ] {
        let name = option.split(' ').next().unwrap();
        let refused = options(&format!("-n 1 {option}")).unwrap_err();
        let expected = format!("{name} of mdtest is not supported: ");
        assert!(refused.starts_with(&expected), "{refused}");
    }
    for (line, why) in [
        ("", "expected -n or -I"),
        ("-n 0", "expected at least 1"),
        ("-I 0", "expected at least 1"),
        ("-n 5 -I 5", "choose one"),
        ("-n 5 -z 2 -b 3", "expected at least 13"),
        ("-n 5 -b 0", "at least 1 child"),
        ("-n 5 -z 9 -b 99", "more than 16777216 directories"),
        ("-n 5 -i 0", "-i is 0"),
        ("-n 5 -i 2 -C", "-i needs the phases of -C and -r"),
        ("-n 5 -d a@b", "one directory is supported"),
        ("-n 5 -w 1 -e 2", "-e reads more bytes than -w writes"),
        ("-n 5 -X", "it needs the read phase and -e"),
        ("-n 5 -w 9 -e 5 -X", "-e and -w must be equal"),
        ("-n 5 --random-seed 1", "only with -R"),
        ("-n 5 -y", "only with -w"),
        ("-n 5 -W 1 -D", "-W limits the creation of files"),
        ("-n 5 -W 1 -z 1", "leave out -z"),
        ("-n 5 -a MPIIO", "the interface `MPIIO` is not in Plimsoll"),
        ("-n 18446744073709551615", "more than can be counted"),
    ] {
        let refused = options(line).unwrap_err();
        assert!(refused.contains(why), "{line}: {refused}");
    }
    let many = options("-n 5000000000000000000").unwrap();
    assert!(lower(&many, 4).unwrap_err().contains("-n · tasks"));
    assert!(lower(&many, 0).is_err());
}

/// Results of a rank that did `ops` operations in every row within `ms` milliseconds.
fn rank(plan: &Plan, rank: u32, ops: u64, ms: u64) -> RankStage {
    RankStage {
        rank,
        time_ns: ms * 1_000_000,
        time_with_barrier_ns: ms * 1_000_000,
        rounds: ops,
        matches: None,
        stonewall_rounds: None,
        stonewall_ns: None,
        rows: vec![
            RankRow {
                ops,
                ..RankRow::default()
            };
            plan.operations.len()
        ],
    }
}

#[test]
fn the_summary_has_rates_and_times_of_all_iterations() {
    let line = "-n 10 -F -C -r -i 2 -P -v";
    let (options, plan) = (options(line).unwrap(), plan(line, 2));
    let report = Report::new(&options, &plan);
    // Milliseconds of tree creation, file creation, file removal and tree removal in two iterations.
    let times = [1, 10, 20, 2, 2, 40, 20, 2];
    let done: Vec<Vec<RankStage>> = times
        .iter()
        .map(|ms| vec![rank(&plan, 0, 10, *ms), rank(&plan, 1, 10, ms / 2)])
        .collect();
    let text = report.end(&done, "now");
    for (name, figures) in [
        // 20 files in 10 ms and in 40 ms.
        (
            "File creation",
            ["2000.000", "500.000", "1250.000", "1060.660"],
        ),
        ("File stat", ["0.000", "0.000", "0.000", "0.000"]),
        (
            "File removal",
            ["1000.000", "1000.000", "1000.000", "0.000"],
        ),
        // One directory in 1 ms and in 2 ms.
        (
            "Tree creation",
            ["1000.000", "500.000", "750.000", "353.553"],
        ),
        ("File creation", ["0.040", "0.010", "0.025", "0.021"]),
        ("Tree removal", ["0.002", "0.002", "0.002", "0.000"]),
    ] {
        let expected: Vec<&str> = name.split(' ').chain(figures).collect();
        let found = text
            .lines()
            .any(|l| l.split_whitespace().collect::<Vec<_>>() == expected);
        assert!(found, "{expected:?}\n{text}");
    }
    assert!(!text.contains("Directory"), "{text}");
    assert!(text.contains("SUMMARY rate (in ops/sec): (of 2 iterations)"));
    assert!(text.contains("SUMMARY time (in sec): (of 2 iterations)"));
    let begin = report.begin(&["mdtest".into(), "-n".into()], "0.1", "now");
    assert!(begin.contains("Command line used: mdtest -n\n"), "{begin}");
    assert!(begin.contains("\n2 tasks, 20 files\n"), "{begin}");
    let phase = report.stage(1, &done[1]);
    let words: Vec<&str> = phase.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "File", "creation", ":", "0.010", "sec,", "2000.000", "ops/sec"
        ]
    );
    let mut at_wall = done[1].clone();
    (at_wall[0].stonewall_rounds, at_wall[1].stonewall_rounds) = (Some(4), Some(7));
    let lines = report.stage(1, &at_wall);
    assert!(
        lines.starts_with("Continue stonewall hit min: 4 max: 7 avg: 5.5 \n"),
        "{lines}"
    );
}
