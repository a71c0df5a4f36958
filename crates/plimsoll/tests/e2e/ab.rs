//! `ab`: paired comparisons, in virtual time on the target `null` and on real files.

use crate::common::series::{self, only, parsed, run_of};
use crate::common::{Bench, Ended, schema};
use plimsoll_results::{HookTime, PairedComparison, Series, SeriesDir, SeriesState, Status};
use std::process::Command;

/// Variants of 1 ms and of 2 ms per operation, in virtual time.
const SLOWER: [&str; 2] = [
    "--target=A=null:?latency=1ms&clock=virtual",
    "--target=B=null:?latency=2ms&clock=virtual",
];

const SHORT: [&str; 2] = ["--time=2s", "--warmup=0s"];

/// A comparison of the built-in workload `randomread`, with results in the bench.
fn ab(bench: &Bench, more: &[&str]) -> Command {
    let mut command = bench.plimsoll(["ab", "randomread", "--results=results"]);
    command.args(more);
    command
}

fn comparison(series: &Series) -> &PairedComparison {
    series.as_paired().unwrap().figures
}

/// Ratio of the operations of B to the operations of A over all pairs, from the documents of the runs.
fn ratio_of_runs(dir: &SeriesDir) -> f64 {
    let series = dir.read().unwrap();
    let mut logarithms = 0.0;
    for run in &series.runs {
        let rate = run_of(dir, run).summary.ops_per_s.ln();
        logarithms += if run.configuration == 0 { -rate } else { rate };
    }
    (2.0 * logarithms / series.runs.len() as f64).exp()
}

#[test]
fn the_factor_between_two_known_targets_is_found() {
    let bench = Bench::on_tmpfs();
    let ended = Ended::of({
        let mut command = ab(&bench, &SLOWER);
        command.args(SHORT).args(["--pairs=3", "--seed=5"]);
        command
    });
    let text = ended.expect_code(0).stdout;
    let words: Vec<&str> = text.split_whitespace().collect();
    let answer =
        "B is 0.50 times as fast as A (95 % interval 0.50 to 0.50, 3 pairs); p99 latency of";
    assert!(words.join(" ").contains(answer), "{text}");
    let dir = only(&bench);
    let series = dir.read().unwrap();
    let schema = serde_json::from_str(&plimsoll_results::schema::<Series>()).unwrap();
    let text_of_series = std::fs::read_to_string(dir.path().join("series.json")).unwrap();
    let value = serde_json::from_str(&text_of_series).unwrap();
    assert_eq!(schema::faults(&schema, &value), [""; 0]);
    let effect = comparison(&series).effect.unwrap();
    assert!((effect.ratio - ratio_of_runs(&dir)).abs() < 1e-9);
    assert!((effect.ratio - 0.5).abs() < 0.005, "{effect:?}");
    assert_eq!(series.state, SeriesState::Complete);
    // Both runs of a pair have one seed, and follow each other.
    let order: Vec<(u64, u32)> = series
        .runs
        .iter()
        .map(|r| (r.seed, r.configuration))
        .collect();
    let sides = comparison(&series).first.iter();
    let expected = (5..)
        .zip(sides)
        .flat_map(|(seed, first)| [*first, first.other()].map(|side| (seed, side.configuration())));
    assert_eq!(order, expected.collect::<Vec<_>>());
    // In virtual time nothing is waited for.
    assert!(series.runs.iter().all(|run| run.settling.is_none()));
}

#[test]
fn like_against_like_shows_no_difference_and_says_so() {
    let bench = Bench::on_tmpfs();
    let mut command = ab(&bench, &["--target=null:?latency=1ms&clock=virtual"]);
    command.args(SHORT).arg("--until=7%");
    let text = Ended::of(command).expect_code(0).stdout;
    assert!(text.contains("until the interval is ±7.0 %"), "{text}");
    assert!(text.contains("like against like"), "{text}");
    let answer = "no difference of ops/s larger than 0.0 % was found";
    assert!(text.contains(answer), "{text}");
    // The least number of pairs suffices.
    assert_eq!(only(&bench).read().unwrap().runs.len(), 8);
}

#[test]
fn the_variants_differ_in_parameters_and_loads() {
    let bench = Bench::on_tmpfs();
    let target = "--target=null:?latency=1ms&clock=virtual";
    let sets = [
        "--set=nthreads=4",
        "--set=B:nthreads=8",
        "--pairs=2",
        "--format=json",
    ];
    let mut command = ab(&bench, &[target]);
    command.args(SHORT).args(sets);
    let series = parsed(&Ended::of(command).expect_code(0));
    let effect = comparison(&series).effect.unwrap();
    assert!((effect.ratio - 2.0).abs() < 0.02, "{effect:?}");
    let differences = series.as_paired().unwrap().differences();
    let shown = differences
        .iter()
        .map(|d| format!("{} {} {}", d.what, d.a, d.b));
    assert_eq!(shown.collect::<Vec<_>>(), ["parameter nthreads 4 8"]);
}

/// Eight servers of 4 ms cannot sustain 30 users of 100 operations per second, so every run of B is invalid.
#[test]
fn a_comparison_without_a_pair_that_counts_has_no_answer_and_exits_with_3() {
    let bench = Bench::on_tmpfs();
    let loads = [
        "--load=A=10",
        "--load=B=30",
        "--pairs=2",
        "--time=5s",
        "--warmup=0s",
    ];
    let target = "--target=null:?latency=4ms&servers=8&clock=virtual";
    let mut command = series::command(&bench, "ab", &loads);
    command.arg(target);
    let series = parsed(&Ended::of(command).expect_code(3));
    assert_eq!((series.runs.len(), series.status()), (4, Status::Invalid));
    assert_eq!(comparison(&series).effect, None);
    // The load is an open loop.
    assert_eq!(comparison(&series).primary.to_string(), "p99");
    let mut report = bench.plimsoll(["report"]);
    report.arg(only(&bench).path());
    let text = Ended::of(report).expect_code(0).stdout;
    assert!(
        text.contains("no answer: p99 latency of B by A is not known"),
        "{text}"
    );
    for pair in [1, 2] {
        let named = format!("pair {pair} does not count: the run of B is invalid");
        assert!(text.contains(&named), "{text}");
    }
}

#[test]
fn commands_run_before_each_run_of_their_variant() {
    let bench = Bench::on_tmpfs();
    let log = |text: &str| format!("--before={text} $PLIMSOLL_CONFIGURATION >> log");
    let mut command = ab(&bench, &["--target=null", "--settle=10ms", "--pairs=2"]);
    command.args(["--time=100ms", "--warmup=0s", "--format=json"]);
    command.args([log("echo both"), log("B=echo own")]);
    let series = parsed(&Ended::of(command).expect_code(0));
    let expected = series.runs.iter().map(|run| match run.configuration {
        0 => "both A\n",
        _ => "both B\nown B\n",
    });
    let log = std::fs::read_to_string(bench.path("log")).unwrap();
    assert_eq!(log, expected.collect::<String>());
    for run in &series.runs {
        assert!(
            run.commands
                .iter()
                .all(|c| c.when == HookTime::Before && c.phase == "run")
        );
        assert_eq!(run.commands.len(), run.configuration as usize + 1);
        let settling = run.settling.as_ref().unwrap();
        assert!(settling.seconds >= 0.01 && settling.waited_for.is_empty());
    }
    let dir = only(&bench);
    let kept = std::fs::read_to_string(dir.path().join("commands.log")).unwrap();
    assert_eq!(kept.matches("== before run: ").count(), 6);
    // Results that others made run no command without permission.
    series::cut(&dir, 1);
    let refused = series::resume(&bench, &dir, &[]).refusal();
    assert!(refused.contains("add --allow-commands"), "{refused}");
    let resumed = parsed(&series::resume(&bench, &dir, &["--allow-commands"]).expect_code(0));
    assert_eq!(resumed.runs.len(), 4);
    series::edit(&dir, |series| {
        series.started_at = "2020-01-02T03:04:05Z".into()
    });
    let mut prune = bench.plimsoll(["results", "prune", "--results=results", "--older-than=30d"]);
    prune.arg("--yes");
    Ended::of(prune).expect_code(0);
    assert!(!dir.path().exists());
}

#[test]
fn a_command_that_fails_ends_the_series_which_can_be_resumed() {
    let bench = Bench::on_tmpfs();
    let mut command = ab(&bench, &["--target=null", "--settle=0s", "--pairs=2"]);
    command.args(["--time=100ms", "--warmup=0s", "--format=json"]);
    command.arg("--before=B=test -e ready");
    let series = parsed(&Ended::of(command).expect_code(1));
    assert_eq!(series.state, SeriesState::Failed);
    let reason = series.stop_reason.as_ref().unwrap();
    let expected = "the command `test -e ready` before run: it ended with exit status 1";
    assert!(reason.text.contains(expected), "{reason:?}");
    assert!(series.runs.iter().all(|run| run.configuration == 0));
    std::fs::write(bench.path("ready"), "").unwrap();
    let resumed = series::resume(&bench, &only(&bench), &["--allow-commands"]);
    assert_eq!(parsed(&resumed.expect_code(0)).runs.len(), 4);
}

#[test]
fn variants_work_in_their_directories() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=10,size=4k,prealloc\n\
         define process name=p { thread name=t,memsize=1m { flowop statfile name=look,filesetname=s } }\n\
         run 1\n",
    );
    let mut command = bench.plimsoll(["ab", &workload, "--results=results", "--pairs=2"]);
    command.args([
        "--dir=A=one",
        "--dir=B=two",
        "--settle=0s",
        "--time=100ms",
        "--format=json",
    ]);
    let series = parsed(&Ended::of(command).expect_code(0));
    for run in &series.runs {
        let name = ["one", "two"][run.configuration as usize];
        let plan = run_of(&only(&bench), run).plan;
        assert_eq!(plan.work_dir.dir, bench.path(name));
    }
    assert_eq!(bench.left_but(&["results", "w.f"]), [""; 0]);
}

#[test]
fn reports_show_the_effects_in_every_format() {
    let bench = Bench::on_tmpfs();
    let mut command = ab(&bench, &SLOWER);
    command.args(SHORT).args(["--pairs=2", "--quiet"]);
    Ended::of(command).expect_code(0);
    let dir = only(&bench);
    let report = |options: &[&str]| {
        let mut command = bench.plimsoll(["report"]);
        command.arg(dir.path()).args(options);
        Ended::of(command).expect_code(0).stdout
    };
    let page = report(&["--format=html"]);
    for id in [
        "effect-ops-per-s",
        "effect-p99-ms",
        "distributions",
        "order",
    ] {
        assert!(
            page.contains(&format!("<figure class=\"chart\" id=\"{id}\"")),
            "{id}"
        );
    }
    assert!(page.contains("B is 0.50 times as fast as A"));
    report(&["--format=svg", "--output=pictures"]);
    assert!(bench.path("pictures/effect-ops-per-s.svg").is_file());
    // A row for all operations and for the only operation of each run.
    let csv = report(&["--format=csv"]);
    for run in ["pair-01-A", "pair-01-B", "pair-02-A", "pair-02-B"] {
        assert!(csv.contains(run), "{csv}");
    }
    assert!(report(&["--format=markdown"]).contains("| all |"));
    let mut compare = bench.plimsoll(["compare"]);
    compare.args([dir.path(), dir.path()]);
    let refused = Ended::of(compare).refusal();
    assert!(refused.contains("is a paired comparison"), "{refused}");
}

#[test]
fn a_dry_run_shows_both_plans_and_makes_no_run() {
    let bench = Bench::on_tmpfs();
    let mut command = ab(&bench, &SLOWER);
    command.args(["--until=5%", "--max-pairs=20", "--dry-run"]);
    let text = Ended::of(command).expect_code(0).stdout;
    for expected in ["at most 20 pairs of runs", "\nA\n", "\nB\n"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(bench.left_but(&[]), [""; 0]);
}

#[test]
fn wrong_usage_is_refused_by_name() {
    let bench = Bench::on_tmpfs();
    let virtual_time = "--target=null:?latency=1ms&clock=virtual";
    for (options, expected) in [
        (&["--dir=C=x"][..], "there is no variant C"),
        (&["--set=B=nthreads=3"], "`B`"),
        (
            &["--target=A=posix", "--target=A=null"],
            "--target is given twice for variant A",
        ),
        (
            &[virtual_time, "--settle=1s"],
            "the time of the targets is virtual",
        ),
        (
            &["--target=null", "--settle=25h"],
            "a settling time of 90000 s: expected 0 to 86400 s",
        ),
        (
            &["--target=null", "--load=B=5"],
            "--load is for workloads with a business metric",
        ),
        (&["--target=B=nowhere:"], "nowhere"),
    ] {
        let refused = Ended::of(ab(&bench, options)).refusal();
        assert!(refused.contains(expected), "{options:?}: {refused}");
    }
    assert_eq!(bench.left_but(&[]), [""; 0]);
}
