//! `report --format openmetrics`, `influx` and `otlp`: the same samples, read by others' parsers, are what the results
//! say.

use crate::common::python::{printed, python, source_tree};
use crate::common::{Bench, Ended, series};

/// Compares the samples of the only results with the results; returns the numbers of runs, of 99th percentiles of
/// operations, and of samples.
#[track_caller]
fn checked(bench: &Bench) -> [usize; 3] {
    let mut check = python();
    check.arg(source_tree().join("crates/plimsoll/tests/e2e/monitoring/check.py"));
    check.arg(series::only_results(bench));
    check.arg(env!("CARGO_BIN_EXE_plimsoll"));
    let said = printed(check);
    let numbers: Vec<usize> = said.split(' ').filter_map(|w| w.parse().ok()).collect();
    numbers.try_into().unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn samples_in_virtual_time_are_those_of_the_results() {
    let slow = "--target=null:?latency=2ms&clock=virtual";
    let stalled = "--target=null:?latency=2ms&stall=1500ms&stall_after=1s&clock=virtual";
    for (args, target, code, runs) in [
        ("curve vda --load=2,4 --warmup=0s --time=2s", slow, 0, 2),
        ("md -P=10 -D=1 -I=5 -R=1", slow, 0, 1),
        ("run randomread --time=4s", stalled, 3, 1),
        ("run randomread --time=1s --repeat=2", slow, 0, 2),
    ] {
        let bench = Bench::on_tmpfs();
        let mut command = bench.plimsoll(args.split(' ').chain([target]));
        command.args(["--quiet", "--results=results"]);
        Ended::of(command).expect_code(code);
        assert_eq!(checked(&bench)[0], runs, "{args}");
    }
}

#[test]
fn samples_of_a_run_of_now_have_the_time_of_its_end() {
    let bench = Bench::on_tmpfs();
    let more = ["--set", "nfiles=50", "--time=300ms"];
    bench.run_in_work("varmail", &more).expect_code(0);
    let [runs, percentiles, _] = checked(&bench);
    assert_eq!(runs, 1);
    assert!(percentiles >= 5, "{percentiles}");
}

#[test]
fn a_file_is_refused() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("published.txt"), "").unwrap();
    for format in ["openmetrics", "influx", "otlp"] {
        let report = bench.plimsoll(["report", "published.txt", "--format", format]);
        let said = Ended::of(report).expect_code(2).stderr;
        let words = format!("is a file, and --format {format} is made of results directories");
        assert!(said.contains(&words), "{said}");
    }
}
