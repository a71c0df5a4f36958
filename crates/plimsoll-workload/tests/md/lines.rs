//! Output lines: golden outputs, and the values that a script reads from the lines.

use super::common;

use common::{Did, options, plan, stage};
use plimsoll_measure::{OpTotals, RankStage};
use plimsoll_plan::Plan;
use plimsoll_workload::md::{Position, Report, position_after};
use proptest::prelude::*;
use regex::Regex;
use std::time::Duration;

fn did(row: &'static str, times_ns: &[u64], bytes: u64) -> Did {
    Did {
        row,
        times_ns: times_ns.to_vec(),
        bytes,
        errors: 0,
    }
}

fn ramp(from: u64, step: u64, n: u64) -> Vec<u64> {
    (0..n).map(|i| from + i * step).collect()
}

/// Results of two ranks for the stages of a small run.
fn two_ranks(plan: &Plan) -> Vec<(Vec<RankStage>, Vec<OpTotals>)> {
    let precreate = |t| {
        let sets = did("make set", &[20_000, 30_000], 0);
        (
            t,
            vec![sets, did("create", &ramp(8_799, 1_000, 20), 20 * 3901)],
        )
    };
    let bench = |t, n| {
        (
            t,
            vec![
                did("stat", &ramp(870, 10, n), 0),
                did("read", &ramp(2_701, 100, n), n * 3901),
                did("delete", &ramp(6_680, 500, n), 0),
                did("create", &ramp(9_004, 2_000, n), n * 3901),
            ],
        )
    };
    let cleanup = |t| {
        let sets = did("remove set", &[40_000, 50_000], 0);
        (t, vec![did("delete", &ramp(5_665, 700, 20), 0), sets])
    };
    vec![
        stage(plan, vec![precreate(617_000_000), precreate(586_000_000)]),
        stage(plan, vec![bench(370_000_000, 20), bench(309_000_000, 20)]),
        stage(plan, vec![cleanup(343_000_000), cleanup(336_000_000)]),
    ]
}

const SMALL: &str = "-I=10 -P=10 -D=2 -R=1";

fn all_lines(more: &str) -> String {
    let line = format!("{SMALL} {more}");
    let (options, plan) = (options(&line).unwrap(), plan(&line, 2));
    let report = Report::new(&options, &plan);
    let arguments = ["plimsoll", "md", "-I=10", "-P=10"].map(String::from);
    let mut out = report.begin(&arguments, "0.1.0", "2026-03-07 12:13:29");
    for (k, (ranks, rows)) in (0..).zip(two_ranks(&plan)) {
        out.push_str(&report.stage(k, &ranks, &rows));
    }
    out.push_str(&report.end(Duration::from_millis(1_600), "2026-03-07 12:13:31"));
    out
}

#[test]
fn the_whole_output_is_md_workbenchs() {
    insta::assert_snapshot!("whole", all_lines(""));
    insta::assert_snapshot!("quiet", all_lines("-q"));
    insta::assert_snapshot!("process_reports", all_lines("-q --process-reports"));
    insta::assert_snapshot!("detailed", all_lines("--print-detailed-stats"));
    insta::assert_snapshot!("waiting", all_lines("-q -t=0.25"));
}

/// The number that a regular expression finds in a line, as scripts parse MD-Workbench's output.
fn number(line: &str, expression: &str) -> f64 {
    let found = Regex::new(expression).unwrap().captures(line);
    let found = found.unwrap_or_else(|| panic!("`{expression}` is not in `{line}`"));
    found[1].parse().unwrap_or_else(|e| panic!("{e}: {line}"))
}

fn vector(line: &str, name: &str) -> Vec<f64> {
    let e = r"([0-9e.\-+]+)s";
    let expression = format!(r" {name}\({}\)", [e; 7].join(", "));
    let found = Regex::new(&expression).unwrap().captures(line);
    let found = found.unwrap_or_else(|| panic!("`{name}` is not in `{line}`"));
    (1..8).map(|i| found[i].parse().unwrap()).collect()
}

fn near(a: f64, b: f64, digits: i32) -> bool {
    (a - b).abs() <= 0.5001 * 10f64.powi(-digits)
}

proptest! {
    #[test]
    fn a_script_reads_out_what_was_put_in(
        times in prop::collection::vec(0u64..20_000_000_000, 1..9),
        samples in prop::collection::vec(1u64..1_000_000_000, 1..40),
        size in 0u64..100_000,
        waiting in prop_oneof![Just(0.0), 0.01f64..4.0],
    ) {
        let line = format!("-2 -R=1 -S={size} -t={waiting}");
        let ranks = times.len() as u32;
        let (options, plan) = (options(&line).unwrap(), plan(&line, ranks));
        let n = samples.len() as u64;
        let each = |t: &u64| (*t, ["stat", "read", "delete", "create"]
            .map(|row| did(row, &samples, 0)).into());
        let (stages, rows) = stage(&plan, times.iter().map(each).collect());
        let printed = Report::new(&options, &plan).stage(0, &stages, &rows);
        let line = printed.trim_end();
        prop_assert!(!line.contains("NaN") && !line.contains("inf"), "{line}");

        let seconds: Vec<f64> = times.iter().map(|t| *t as f64 / 1e9).collect();
        let most = seconds.iter().copied().fold(0.0, f64::max);
        let least = seconds.iter().copied().fold(f64::MAX, f64::min);
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        prop_assert!(near(number(line, r"process max:([0-9.]+)s"), most, 2));
        prop_assert!(near(number(line, r"min:([0-9.]+)s"), least, 1));
        prop_assert!(near(number(line, r"mean: ([0-9.]+)s"), mean, 1));
        let objects = n * u64::from(ranks);
        prop_assert_eq!(number(line, r"objects:(\d+)") as u64, objects);
        if most > 0.0 {
            let rate = objects as f64 / most;
            prop_assert!(near(number(line, r"rate:([0-9.]+) iops/s"), 4.0 * rate, 1));
            prop_assert!(near(number(line, r"rate:([0-9.]+) obj/s"), rate, 1));
            prop_assert!(near(number(line, r"balance:([0-9.]+)"), least / most * 100.0, 1));
            let mib = 2.0 * rate * size as f64 / 1024.0 / 1024.0;
            prop_assert!(near(number(line, r"tp:([0-9.]+) MiB/s"), mib, 1));
        }
        let slowest = *samples.iter().max().unwrap() as f64 / 1e9;
        let op_max = number(line, r"op-max:([0-9e.\-+]+)s");
        prop_assert!((op_max - slowest).abs() <= slowest * 1e-4);
        prop_assert_eq!(number(line, r"\((\d+) errs\)"), 0.0);
        if waiting > 0.0 {
            prop_assert!(near(number(line, r"op-max:\S+ waiting_factor:([0-9.]+)"), waiting, 2));
        } else {
            prop_assert!(!line.contains("waiting_factor"));
        }

        // Every rank has the same samples, so all ranks together have each sample once per rank.
        let mut all: Vec<u64> = samples.iter().flat_map(|s| vec![*s; times.len()]).collect();
        all.sort_unstable();
        let at = |q: f64| {
            let place = (q * all.len() as f64 + 0.49).round() as usize;
            all[place.min(all.len() - 1)] as f64 / 1e9
        };
        let middle = (all[(all.len() - 1) / 2] + all[all.len() / 2]) as f64 / 2e9;
        let expected = [
            all[0] as f64 / 1e9, at(0.25), middle, at(0.75), at(0.9), at(0.99), slowest,
        ];
        for name in ["read", "stat", "create", "delete"] {
            for (got, expected) in vector(line, name).into_iter().zip(expected) {
                prop_assert!((got - expected).abs() <= expected * 1.1e-3 + 1e-9, "{got} {expected}");
            }
        }
    }

    #[test]
    fn nothing_is_ever_no_number(t in prop_oneof![Just(0u64), 1u64..5], ranks in 1usize..4) {
        for line in ["-R=1", "-R=1 --print-detailed-stats --process-reports", "-R=1 -w=1 -W -v"] {
            let (options, plan) = (options(line).unwrap(), plan(line, ranks as u32));
            let report = Report::new(&options, &plan);
            for k in 0..3 {
                let (stages, rows) = stage(&plan, (0..ranks).map(|_| (t, vec![])).collect());
                let text = report.stage(k, &stages, &rows);
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                let text = report.stage(k, &[], &rows);
                prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
            }
        }
    }
}

#[test]
fn errors_are_shouted_even_when_quiet_and_named_when_asked() {
    let line = "-q -v -2 -R=1";
    let (options, plan) = (options(line).unwrap(), plan(line, 1));
    let mut stat = did("stat", &[1_000], 0);
    stat.errors = 3;
    let (ranks, rows) = stage(&plan, vec![(1_000_000, vec![stat])]);
    let text = Report::new(&options, &plan).stage(0, &ranks, &rows);
    assert!(text.contains(" (3 errs!!!) stat("), "{text}");
    assert!(
        text.ends_with("benchmark errors: stat ENOENT 3\n"),
        "{text}"
    );
}

#[test]
fn errors_replace_the_detailed_counts() {
    let line = "--print-detailed-stats -R=1";
    let (options, plan) = (options(line).unwrap(), plan(line, 1));
    let failed = |row, errors| Did {
        errors,
        ..did(row, &[], 0)
    };
    let all = [
        ("create", 1),
        ("read", 2),
        ("stat", 3),
        ("delete", 4),
        ("make set", 5),
    ];
    let all = all.map(|(row, n)| failed(row, n)).into();
    let (ranks, rows) = stage(&plan, vec![(1, all)]);
    let text = Report::new(&options, &plan).stage(1, &ranks, &rows);
    assert_eq!(text, "benchmark err\t0\t5\t0\t0\t1\t2\t3\t4\n");
}

#[test]
fn stonewalls_are_told() {
    let printed = |line: &str, rounds: &[(u64, Option<u64>)]| {
        let (options, plan) = (options(line).unwrap(), plan(line, rounds.len() as u32));
        let (mut ranks, rows) = stage(&plan, rounds.iter().map(|_| (1, vec![])).collect());
        for (rank, (rounds, at_wall)) in ranks.iter_mut().zip(rounds) {
            (rank.rounds, rank.stonewall_rounds) = (*rounds, *at_wall);
        }
        let text = Report::new(&options, &plan).stage(1, &ranks, &rows);
        let found = Regex::new(r"\(0 errs\) stonewall-iter:(\d+)").unwrap();
        found.captures(&text).map(|c| c[1].parse::<u64>().unwrap())
    };
    assert_eq!(printed("-w=1", &[(5, Some(5)), (7, Some(7))]), Some(7));
    assert_eq!(printed("-w=1", &[(1000, None), (7, Some(7))]), Some(7));
    assert_eq!(printed("-w=1", &[(1000, None)]), None);
    assert_eq!(printed("-w=1 -W", &[(7, Some(5)), (7, Some(7))]), Some(7));
    assert_eq!(printed("-w=1 -W", &[(1000, None)]), Some(1000));
    assert_eq!(printed("", &[(1000, None)]), None);
}

#[test]
fn rank_0_says_when_its_stonewall_came() {
    let printed = |line: &str, at: Option<u64>| {
        let (options, plan) = (options(line).unwrap(), plan(line, 2));
        let (mut ranks, rows) = stage(&plan, vec![(9, vec![]), (9, vec![])]);
        for rank in &mut ranks {
            rank.rounds = 17;
        }
        ranks[0].stonewall_ns = at;
        ranks[1].stonewall_ns = Some(7);
        Report::new(&options, &plan).stage(1, &ranks, &rows)
    };
    let first = |text: String| text.lines().next().unwrap().to_owned();
    let told = first(printed("-q -w=1 -W", Some(1_000_123_456)));
    assert_eq!(told, "stonewall wear out 1.000123s (17 iter)");
    assert!(first(printed("-q -w=1 -W", None)).starts_with("benchmark "));
    assert!(first(printed("-q -w=1", Some(1_000_123_456))).starts_with("benchmark "));
}

#[test]
fn io500_lines_are_io500s() {
    let lines = |line: &str, t: u64, rows: &'static [&'static str], bytes: u64| -> String {
        let (options, plan) = (options(line).unwrap(), plan(line, 2));
        let stages = plan.groups[0].program.pattern().unwrap().stages.len() as u32;
        let report = Report::new(&options, &plan);
        let work = || {
            rows.iter()
                .map(|row| did(row, &[1_000; 50], bytes))
                .collect()
        };
        let each = |k| {
            let (ranks, rows) = stage(&plan, vec![(t, work()), (t / 2, work())]);
            report.stage(k, &ranks, &rows)
        };
        report.begin(&["plimsoll".into(), "md".into()], "x", "y")
            + &(0..stages).map(each).collect::<String>()
    };
    let second = 1_000_000_000;
    insta::assert_snapshot!(
        "io500_mdtest",
        lines("--pattern=mdtest-hard -w=2", 3 * second, &["create"], 0)
    );
    insta::assert_snapshot!(
        "io500_ior",
        lines("--pattern=ior-easy", 300 * second, &["write"], 3 << 30)
    );
    // Both ranks stat 100 files in total; the slower rank takes one second.
    let text = lines("--pattern=mdtest-easy -q -w=0", second, &["stat"], 0);
    let score = number(
        &text,
        r"\[RESULT\] +mdtest-easy-stat +([0-9.]+) kIOPS : time 1.000 seconds",
    );
    assert!(near(score, 0.1, 6));
}

#[test]
fn the_position_moves_on_by_the_rounds_of_all_stages() {
    let after = |line: &str, rounds: &[[u64; 2]]| {
        let plan = plan(line, 2);
        let rank = |rank, rounds: &[u64; 2]| RankStage {
            rank,
            rounds: rounds[rank as usize],
            ..RankStage::default()
        };
        let done: Vec<Vec<RankStage>> = rounds
            .iter()
            .map(|r| vec![rank(0, r), rank(1, r)])
            .collect();
        position_after(&plan, &done)
    };
    let all = |n| Some(Position(vec![n]));
    assert_eq!(after("-1", &[[3000, 3000]]), all(0));
    assert_eq!(after("-1 --start-item=4", &[[3000, 3000]]), all(4));
    assert_eq!(
        after("-2 -R=2 --start-item=4", &[[10, 10], [7, 7]]),
        all(21)
    );
    assert_eq!(
        after("-2 -R=1 --read-only --start-item=4", &[[10, 10]]),
        all(4)
    );
    assert_eq!(
        after("-2 -R=2", &[[10, 11], [5, 5]]),
        Some(Position(vec![15, 16]))
    );
    assert_eq!(after("-2 -R=2", &[[10, 10]]), None);
}
