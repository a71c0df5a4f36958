//! `plimsoll md` with several ranks in virtual time: workers of one process that do what processes do.

use crate::common::{Bench, Ended};
use crate::simulated::filer;
use plimsoll_measure::RankStage;
use plimsoll_results::{ClockKind, Run, Stage, Verdict};
use regex::Regex;
use std::collections::BTreeSet;

const RANKS: u64 = 4;
const SETS: u64 = 2;
const OBJECTS: u64 = 20;
const ROUNDS: u64 = 10;

/// The task of these numbers, twice.
const TASK: [&str; 6] = ["--processes=4", "-D=2", "-P=20", "-I=10", "-R=2", "-S=100"];

/// Options for the target `null`, on which every call takes 1 ms, in virtual time.
const EVEN: [&str; 1] = ["--target=null:?latency=1ms&clock=virtual"];

/// The disks of this system are chosen at random, and their service times are drawn.
const FILER: &str = "--target=sim:./filer.toml";

fn md(bench: &Bench, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["md", "--results=results"]);
    command.args(more);
    Ended::of(command)
}

fn json(bench: &Bench, more: &[&str]) -> Run {
    md(bench, &[more, &["--format=json"]].concat()).result(0)
}

/// Counts of one rank for an operation in a stage: completed operations, transferred bytes, and errors.
type Counts = (u64, u128, u64);

/// Counts of each rank for the operation `name` in a stage, by rank number.
fn of_ranks(run: &Run, stage: &Stage, name: &str) -> Vec<Counts> {
    let names = run.plan.operations.iter().map(|o| o.name.as_str());
    let at = names.clone().position(|n| n == name).expect(name);
    let row = |rank: &RankStage| {
        let row = &rank.rows[at];
        (row.ops, row.bytes, row.errors)
    };
    stage.ranks.iter().map(row).collect()
}

fn ops_of_ranks(run: &Run, stage: &Stage, name: &str) -> Vec<u64> {
    of_ranks(run, stage, name).iter().map(|row| row.0).collect()
}

/// The operations and errors of a stage are those of its ranks together, in every row.
#[track_caller]
fn assert_ranks_add_up(run: &Run) {
    for stage in &run.stages {
        assert_eq!(stage.ranks.len() as u64, RANKS, "{}", stage.name);
        for row in &stage.window.operations {
            let ranks = of_ranks(run, stage, &row.name);
            let ops: u64 = ranks.iter().map(|r| r.0).sum();
            let errors: u64 = ranks.iter().map(|r| r.2).sum();
            let said = format!("{}: {}", stage.name, row.name);
            assert_eq!((ops, errors), (row.ops, row.errors), "{said}");
        }
    }
}

#[test]
fn each_rank_does_what_the_task_says_on_every_target() {
    for target in [&EVEN[..], &[FILER], &["--target=sim:flash-2-replicas"]] {
        let bench = filer();
        let run = json(&bench, &[&TASK, target].concat());
        assert_eq!(run.validity.verdict, Verdict::Valid, "{target:?}");
        assert_eq!(run.clock, ClockKind::Virtual);
        let numbers = (u64::from(run.ranks), run.workers, run.lanes);
        assert_eq!(numbers, (RANKS, RANKS, 1));
        let (rounds, objects) = (SETS * ROUNDS, SETS * OBJECTS);
        let expected = [
            ("precreate", [("make set", SETS), ("create", objects)]),
            ("benchmark", [("stat", rounds), ("create", rounds)]),
            ("benchmark", [("read", rounds), ("delete", rounds)]),
            ("cleanup", [("delete", objects), ("remove set", SETS)]),
        ];
        assert_eq!(run.stages.len(), expected.len());
        for (stage, (name, rows)) in run.stages.iter().zip(expected) {
            assert_eq!(stage.name, name);
            for (row, each) in rows {
                assert_eq!(ops_of_ranks(&run, stage, row), [each; 4], "{name}: {row}");
            }
            let numbers: Vec<u32> = stage.ranks.iter().map(|r| r.rank).collect();
            assert_eq!(numbers, [0, 1, 2, 3]);
        }
        assert_ranks_add_up(&run);
        // Operations of each rank: creation and removal of its sets and of their objects, and four operations per round
        // and set.
        let each = 2 * SETS + 2 * SETS * OBJECTS + 2 * 4 * SETS * ROUNDS;
        assert_eq!(run.summary.ops, RANKS * each, "{target:?}");
        let left = bench.left_but(&["results", "filer.toml", "readers.toml"]);
        assert_eq!(left, [""; 0]);
    }
}

/// On a target whose calls all take as long, the times of the ranks are sums of calls.
#[test]
fn ranks_begin_together_and_are_timed_each() {
    let bench = Bench::on_tmpfs();
    let run = json(&bench, &[&TASK[..], &EVEN].concat());
    // A creation opens, writes and closes, a read opens, reads and closes; stat and deletion are one call.
    let calls = [
        SETS + 3 * SETS * OBJECTS,
        (3 + 3 + 1 + 1) * SETS * ROUNDS,
        (3 + 3 + 1 + 1) * SETS * ROUNDS,
        SETS * OBJECTS + SETS,
    ];
    for (stage, calls) in run.stages.iter().zip(calls) {
        for rank in &stage.ranks {
            let times = (rank.time_ns, rank.time_with_barrier_ns);
            assert_eq!(times, (calls * 1_000_000, calls * 1_000_000), "{rank:?}");
        }
    }
    // A set of one server makes the ranks wait for each other: the last call of rank r ends r
    // milliseconds after that of rank 0, and all wait for the last.
    let queue = ["--target=null:?latency=1ms&servers=1&clock=virtual"];
    let run = json(&bench, &[&TASK[..], &queue].concat());
    for (stage, calls) in run.stages.iter().zip(calls) {
        let last = calls * RANKS * 1_000_000;
        let times: Vec<u64> = stage.ranks.iter().map(|r| r.time_ns).collect();
        assert_eq!(times, [3, 2, 1, 0].map(|before| last - before * 1_000_000));
        assert!(stage.ranks.iter().all(|r| r.time_with_barrier_ns == last));
    }
}

#[test]
fn lines_are_those_of_ranks() {
    let bench = Bench::on_tmpfs();
    let lines = [&TASK[..], &EVEN, &["-q", "--process-reports"]].concat();
    let out = md(&bench, &lines).expect_code(0).stdout;
    let count = |pattern: &str| Regex::new(pattern).unwrap().find_iter(&out).count();
    // 20 rounds and sets of 8 ms.
    let times = r"max:0\.16s min:0\.2s mean: 0\.2s balance:100\.0 stddev:0\.0";
    let all = format!(r"(?m)^benchmark process {times} rate:2000\.0 iops/s objects:80 ");
    assert_eq!(count(&all), 2, "{out}");
    for rank in 0..RANKS {
        let one =
            format!(r"(?m)^{rank}: benchmark process max:0\.16s rate:500\.0 iops/s objects:20 ");
        assert_eq!(count(&one), 2, "rank {rank}\n{out}");
    }
    assert_eq!(out.lines().count() as u64, 4 * (1 + RANKS), "{out}");
}

#[test]
fn the_time_of_every_operation_of_every_rank_is_kept() {
    let bench = filer();
    let more = [FILER, "-L=times", "--latency-all"];
    let run = json(&bench, &[&TASK[..], &more].concat());
    let lines = |name: &str| {
        let text = std::fs::read_to_string(bench.path(name)).unwrap();
        let lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines
    };
    let reads = lines("times-0.00-0-read-all.csv");
    assert_eq!(reads.len() as u64, RANKS * SETS * ROUNDS);
    // Reads of a rank follow each other, and a rank begins with its first.
    let start = |l: &String| l.split(',').next().unwrap().parse().unwrap();
    let starts: Vec<f64> = reads.iter().map(start).collect();
    let of_ranks = starts.chunks((SETS * ROUNDS) as usize);
    let first = of_ranks.filter(|rank| rank.is_sorted());
    assert_eq!(first.count() as u64, RANKS, "{starts:?}");
    assert_eq!(run.validity.verdict, Verdict::Valid);
}

#[test]
fn one_seed_is_the_same_result_and_another_seed_is_not() {
    let bench = filer();
    let result = |seed: &str| {
        let run = json(&bench, &[&TASK[..], &[FILER, seed]].concat());
        let dir = bench.results().pop().unwrap();
        let histograms = std::fs::read(dir.path().join("histograms.hlog")).unwrap();
        let ranks: Vec<Vec<RankStage>> = run.stages.iter().map(|s| s.ranks.clone()).collect();
        (histograms, ranks)
    };
    let one = result("--seed=7");
    assert!(one == result("--seed=7"), "the same seed");
    let other = result("--seed=8");
    assert_ne!(one.0, other.0);
    assert_ne!(one.1, other.1);
}

/// Work of each rank in each stage, without times: stage, rank, rounds, and the counts of each row.
fn work(run: &Run) -> Vec<(String, u32, u64, Vec<Counts>)> {
    let ranks = run.stages.iter().flat_map(|stage| {
        stage.ranks.iter().map(move |rank| {
            let rows = rank.rows.iter().map(|r| (r.ops, r.bytes, r.errors));
            (stage.name.clone(), rank.rank, rank.rounds, rows.collect())
        })
    });
    ranks.collect()
}

#[test]
fn workers_of_one_process_do_what_processes_do() {
    for pattern in [
        "-P=20 -I=10 -D=3 -R=2 -O=2",
        "-P=8 -I=8 -D=2 -R=1 -O=-1 --read-only",
        "-P=20 -I=10 -D=2 -R=1 --warmup=1",
        "--pattern=mdtest-easy -n=30 -w=0",
        "--pattern=mdtest-hard -n=30 -w=0",
        "--pattern=ior-easy --transfers=5 --transfer-size=64k -w=0",
        "--pattern=ior-hard --transfers=7 -w=0",
    ] {
        let arguments: Vec<&str> = pattern.split(' ').collect();
        let bench = filer();
        let all = |more: &[&str]| {
            let run = json(&bench, &[&arguments, &["--processes=4"][..], more].concat());
            assert_eq!(run.ranks, 4);
            assert_ranks_add_up(&run);
            (work(&run), run.summary.ops)
        };
        let processes = all(&[]);
        // The runs with real processes leave no files, and no directory of the pattern.
        assert_eq!(
            bench.left_but(&["results", "filer.toml", "readers.toml", "mdtest.status"]),
            [""; 0]
        );
        assert!(processes.1 > 0, "{pattern:?}");
        assert_eq!(all(&EVEN), processes, "{pattern:?}");
        assert_eq!(all(&[FILER]), processes, "{pattern:?}");
    }
}

/// More rounds than fit before the stonewall.
const WALL: [&str; 6] = [
    "--processes=4",
    "-D=2",
    "-P=50",
    "-I=1000",
    "-R=2",
    "-w=200ms",
];

/// The filer with random times long enough for ranks to drift apart, and a log that never fills: ranks that
/// wait for room get it in turns.
fn uneven_filer() -> Bench {
    let bench = filer();
    let text = std::fs::read_to_string(bench.path("filer.toml")).unwrap();
    let text = text
        .replace("\"20us\"", "\"400us\"")
        .replace("\"exponential\"", "\"hyperexponential\"\nsquared_cv = 100")
        .replace("\"1m\"", "\"1g\"");
    std::fs::write(bench.path("filer.toml"), text).unwrap();
    bench
}

#[test]
fn ranks_that_a_stonewall_lets_drift_apart_delete_what_exists() {
    let bench = uneven_filer();
    let run = json(&bench, &[&WALL[..], &[FILER]].concat());
    assert_ranks_add_up(&run);
    let benchmark = &run.stages[1];
    let rounds: Vec<u64> = benchmark.ranks.iter().map(|r| r.rounds).collect();
    let different: BTreeSet<u64> = rounds.iter().copied().collect();
    assert!(different.len() > 1, "the ranks are even: {rounds:?}");
    let reads = ops_of_ranks(&run, benchmark, "read");
    assert_eq!(reads, rounds.iter().map(|n| n * SETS).collect::<Vec<u64>>());
    // The cleanup phase deletes the objects of all ranks, although ranks have deleted objects of other ranks and
    // created new ones.
    let deleted = ops_of_ranks(&run, &run.stages[3], "delete");
    assert_eq!(deleted.iter().sum::<u64>(), RANKS * SETS * 50);

    // Phases that are run alone store the position of each rank.
    let phase = |more: &[&str]| json(&bench, &[&WALL[..], &[FILER], more].concat());
    phase(&["-1"]);
    let run = phase(&["-2", "-R=1"]);
    let rounds: Vec<u64> = run.stages[0].ranks.iter().map(|r| r.rounds).collect();
    let stored = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
    let words: Vec<String> = rounds.iter().map(u64::to_string).collect();
    let expected = format!("pos: {}\nranks: {}\n", rounds[0], words.join(" "));
    assert_eq!(stored, expected);
    let run = phase(&["-3"]);
    let deleted = ops_of_ranks(&run, &run.stages[0], "delete");
    assert_eq!(deleted.iter().sum::<u64>(), RANKS * SETS * 50);
}

#[test]
fn with_wear_out_all_ranks_do_as_many_rounds_as_the_fastest() {
    let bench = uneven_filer();
    let run = json(&bench, &[&WALL[..], &[FILER, "-W"]].concat());
    assert_ranks_add_up(&run);
    for stage in &run.stages[1..3] {
        let at_wall = stage.ranks.iter().map(|r| r.stonewall_rounds.unwrap());
        let (least, most) = (at_wall.clone().min(), at_wall.max().unwrap());
        assert!(least < Some(most), "the ranks are even: {stage:?}");
        assert!(stage.ranks.iter().all(|r| r.rounds == most), "{stage:?}");
    }
    // Patterns of IO500: after the stonewall, every rank writes as much as the fastest rank, and the later stages find
    // everything that was written.
    for pattern in ["mdtest-easy", "mdtest-hard", "ior-easy", "ior-hard"] {
        let named = format!("--pattern={pattern}");
        let (first, count) = match pattern.starts_with("mdtest") {
            true => (1, "-n=100000"),
            false => (0, "--transfers=100000"),
        };
        let options = [&named, count, "-w=100ms", "--processes=4", FILER];
        let run = json(&bench, &options);
        assert_ranks_add_up(&run);
        let written = run.stages[first].ranks.iter();
        let most = written.filter_map(|r| r.stonewall_rounds).max();
        let most = most.expect("the stonewall comes before all is written");
        let stages = run.stages.iter();
        for stage in stages.filter(|s| s.name.starts_with(pattern)) {
            let row = match stage.name.rsplit('-').next().unwrap() {
                "write" if first == 1 => "create",
                row => row,
            };
            assert_eq!(ops_of_ranks(&run, stage, row), [most; 4], "{}", stage.name);
        }
    }
}

/// In virtual time, a failed operation is an error of the rank whose worker executed the operation.
#[test]
fn errors_are_those_of_their_rank() {
    let bench = filer();
    let text = std::fs::read_to_string(bench.path("filer.toml")).unwrap();
    let head =
        "[node.head]\ncount = 1\nwhen_down = \"fail\"\n\n[station.processors]\nnode = \"head\"\n";
    let text = text.replace("[station.processors]\n", head);
    let choose = "\"network.request\", { node = \"head\", choose = \"client\" },";
    let text = text.replace("\"network.request\",", choose);
    std::fs::write(bench.path("failing.toml"), text).unwrap();
    let target = "--target=sim:./failing.toml?event=300ms,down,head&event=304ms,up,head";
    let options = ["--processes=4", "-D=2", "-P=50", "-I=50", "-R=1"];
    let more = ["--format=json", target];
    let run = md(&bench, &[&options[..], &more].concat()).result(3);
    assert_ranks_add_up(&run);
    let failed = of_ranks(&run, &run.stages[1], "stat");
    let errors: BTreeSet<u64> = failed.iter().map(|r| r.2).collect();
    assert!(errors.len() > 1, "all ranks fail alike: {failed:?}");
    // A round that fails is over.
    let rounds = failed.iter().map(|(ops, _, errors)| ops + errors);
    assert_eq!(rounds.collect::<Vec<_>>(), [SETS * 50; 4]);
}

#[test]
fn what_does_not_go_together_is_refused_in_one_sentence() {
    let bench = filer();
    for row in [
        "--processes=2 --per-rank --target=sim:./filer.toml => the ranks share one process",
        "--processes=5000 --target=sim:./filer.toml => --processes is 5000: expected 1 to 1024",
    ] {
        let (options, expected) = row.split_once(" => ").unwrap();
        let options: Vec<&str> = options.split(' ').collect();
        let said = md(&bench, &options).refusal();
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.matches("error:").count(), 1, "{said}");
        // On a target that exists only in virtual time, `--dry-run` is refused for the same reason as the run.
        if row.contains("sim:") {
            let dry = md(&bench, &[&options[..], &["--dry-run"]].concat());
            assert_eq!(dry.refusal(), said);
        }
    }
    assert!(bench.results().is_empty());
}
