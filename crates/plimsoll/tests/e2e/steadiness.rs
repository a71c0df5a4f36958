//! Runs whose rate is steady, falls or steps, in virtual time.

use crate::common::{Bench, Ended, codes};
use plimsoll_measure::RateJudgement;
use plimsoll_results::Verdict;
use serde_json::Value;

/// Two workers that look at files.
pub const LOOKERS: &str = "\
define fileset name=s,path=files,entries=100,dirwidth=100,prealloc
define process name=p {
  thread name=t,memsize=1k,instances=2 {
    flowop statfile name=look,filesetname=s
  }
}
run 20
";

/// Target whose operations take 10 ms.
pub const STEADY: &str = "--target=null:?latency=10ms&clock=virtual";

/// A workload of 20 workers of which one ends each second, if a look takes 10 ms, and of `staying` workers that stay.
pub fn ending(staying: u32, seconds: u32) -> String {
    let thread = |n: u32| {
        format!(
            "  thread name=t{n},memsize=1k {{\n    \
             flowop statfile name=look{n},filesetname=s\n    \
             flowop finishoncount name=enough{n},value={},target=look{n}\n  }}\n",
            100 * n
        )
    };
    let threads: String = (1..=20).map(thread).collect();
    let stay = match staying {
        0 => String::new(),
        n => format!(
            "  thread name=t,memsize=1k,instances={n} {{\n    flowop statfile name=stay,filesetname=s\n  }}\n"
        ),
    };
    format!(
        "define fileset name=s,path=files,entries=100,dirwidth=100,prealloc\n\
         define process name=p {{\n{stay}{threads}}}\nrun {seconds}\n"
    )
}

#[track_caller]
fn assert_near(actual: f64, expected: f64) {
    let off = (actual - expected).abs();
    assert!(off <= 0.01 * expected.abs(), "{actual}, not {expected}");
}

#[test]
fn a_steady_run_says_so_and_meets_the_requirement() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKERS);
    let run = bench.run(&workload, &[STEADY, "--require=steady"]);
    let run = run.result(0);
    let rate = run.stationarity.unwrap();
    assert_eq!(rate.judgement, RateJudgement::Steady, "{rate}");
    assert_eq!((rate.intervals, rate.interval_s), (40, 0.5));
    let results = bench.results()[0].path().to_owned();
    for format in ["text", "markdown", "html"] {
        let mut command = bench.plimsoll(["report", "--format", format]);
        command.arg(&results);
        let printed = Ended::of(command).expect_code(0).stdout;
        let is_said = printed.contains("rate over time") && printed.contains("% over the window");
        assert!(is_said, "{printed}");
    }
}

/// The rate in second n, from 0, is 100 × (20 − n) per second: 1050 per second on average, and 100 less each second.
#[test]
fn a_falling_rate_is_told_with_its_size_and_misses_the_requirement() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&ending(0, 60));
    let args = [STEADY, "--quit=alldone"];
    let run = bench.run(&workload, &args).result(0);
    let rate = run.stationarity.clone().unwrap();
    assert_eq!(rate.judgement, RateJudgement::Trend, "{rate}");
    let trend = rate.trend.unwrap();
    assert_near(trend.percent, -100.0 * 20.0 * 100.0 / 1050.0);
    assert!(trend.low < trend.percent && trend.percent < trend.high);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    let required = bench.run(&workload, &[&args[..], &["--require=steady"]].concat());
    let required = required.result(3);
    assert_eq!(required.validity.verdict, Verdict::Invalid);
    assert_eq!(codes(&required), ["unsteady"]);
    let text = &required.validity.reasons[0].text;
    assert!(text.contains("steady: falling, -190"), "{text}");
}

/// One server of 1 ms completes 1000 operations per second, and half as many when it is slow.
#[test]
fn a_server_that_becomes_slow_has_two_levels() {
    let bench = Bench::on_tmpfs();
    let system = "\
title = \"One server of 1 ms\"
[node.server]
count = 1
[station.processor]
node = \"server\"
servers = 1
service = \"1ms\"
[path]
serve = [{ node = \"server\", choose = \"file\" }, \"processor\"]
data_read = [\"serve\"]
data_write = [\"serve\"]
metadata_read = [\"serve\"]
metadata_change = [\"serve\"]
";
    std::fs::write(bench.path("server.toml"), system).unwrap();
    let args = [
        "--target=sim:./server.toml",
        "--event=12s slow processor 2",
        "--require=steady",
    ];
    let run = bench.run(&bench.workload(LOOKERS), &args).result(3);
    assert_eq!(codes(&run), ["unsteady"]);
    let levels = run.stationarity.unwrap().levels.unwrap();
    assert_eq!(levels.changed_at_s, 12.0);
    assert_near(levels.before_ops_per_s, 1000.0);
    assert_near(levels.after_ops_per_s, 500.0);
}

#[test]
fn a_requirement_that_a_short_window_cannot_meet_is_refused() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKERS);
    let short = ["--time=2s", STEADY];
    let coarse = [&short[..], &["--interval=1s"]].concat();
    let run = bench.run(&workload, &coarse).result(0);
    let rate = run.stationarity.unwrap();
    assert_eq!(rate.judgement, RateJudgement::Unknown);
    let doubt = "the window has 2 intervals, fewer than 10";
    assert_eq!(rate.doubt.as_deref(), Some(doubt));
    let required = [&coarse[..], &["--require=steady"]].concat();
    let refusal = bench.run(&workload, &required).refusal();
    let expected = "--require steady needs at least 10 intervals of 1s in the measured window, which is 2s long";
    assert!(refusal.contains(expected), "{refusal}");
    let finer = [&short[..], &["--require=steady"]].concat();
    let run = bench.run(&workload, &finer).result(0);
    assert_eq!(run.stationarity.unwrap().intervals, 20);
}

/// Work that ends by itself has no planned length.
#[test]
fn a_run_that_ends_after_few_intervals_misses_the_requirement() {
    let bench = Bench::on_tmpfs();
    let args = [STEADY, "--quit=firstdone", "--require=steady"];
    let run = bench.run(&bench.workload(&ending(0, 60)), &args).result(3);
    assert_eq!(codes(&run), ["unsteady"]);
}

#[test]
fn a_curve_states_the_rate_of_each_point_and_whether_the_requirement_is_met() {
    let bench = Bench::on_tmpfs();
    let args = [
        "curve",
        "vda",
        "--load=5,10",
        "--warmup=0s",
        "--time=30s",
        STEADY,
        "--require=steady",
        "--format=json",
    ];
    let printed = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let series: Value = serde_json::from_str(&printed).unwrap();
    let points = series["runs"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        assert_eq!(point["stationarity"]["judgement"], "steady", "{point}");
        let criteria = point["criteria"].as_array().unwrap();
        let unsteady = criteria.iter().find(|c| c["code"] == "unsteady").unwrap();
        assert_eq!(unsteady["met"], true, "{point}");
    }
}
