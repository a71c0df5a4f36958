//! Results as they are named on the command line: odd names, and directories that are not whole.

use crate::common::{Bench, Ended};
use std::path::Path;

#[test]
fn names_that_begin_with_a_hyphen_are_taken_and_printed_as_any_command_takes_them() {
    let bench = Bench::on_tmpfs();
    let run = [
        "run",
        "varmail",
        "--target=null",
        "--time=100ms",
        "--set=nfiles=20",
    ];
    let ended = Ended::of(bench.plimsoll([&run[..], &["--results", "-r"]].concat()));
    let ended = ended.expect_code(0);
    let (_, place) = ended.stdout.rsplit_once("results in ").unwrap();
    let place = place.trim();
    assert!(place.starts_with("./-r/varmail-"), "{place}");
    let report = Ended::of(bench.plimsoll(["report", place])).expect_code(0);
    assert!(
        report.stdout.contains("varmail: valid"),
        "{}",
        report.stdout
    );
    std::fs::rename(bench.path(place), bench.path("-a")).unwrap();
    let compare = ["compare", "--", "-a", "-a"];
    Ended::of(bench.plimsoll(compare)).expect_code(0);
}

#[test]
fn a_comparison_says_which_result_is_not_whole() {
    let bench = Bench::on_tmpfs();
    let more = ["--target=null", "--time=100ms", "--set=nfiles=20"];
    bench.run("varmail", &more).result(0);
    bench
        .run("varmail", &[&more[..], &["--repeat=2"]].concat())
        .expect_code(0);
    let mut places: Vec<_> = bench
        .results()
        .iter()
        .map(|r| r.path().to_owned())
        .collect();
    places.sort();
    let [one, two] = &places[..] else {
        panic!("{places:?}")
    };
    let compare = || {
        let mut command = bench.plimsoll(["compare", "--format=json"]);
        command.args(&places);
        Ended::of(command).expect_code(0).stdout
    };
    assert!(!compare().contains("no whole result"));
    std::fs::remove_file(one.join("histograms.hlog")).unwrap();
    std::fs::remove_file(two.join("run-02/histograms.hlog")).unwrap();
    std::fs::remove_file(two.join("run-02/intervals.csv")).unwrap();
    let said = compare();
    let (one, two) = (one.display(), two.display());
    for line in [
        format!("{one} is not a complete result: it lacks histograms.hlog\""),
        format!(
            "{two}/run-02 is not a complete result: it lacks histograms.hlog and intervals.csv\""
        ),
    ] {
        assert!(said.contains(&line), "{line}: {said}");
    }
}

#[test]
fn a_result_that_lacks_a_file_is_said_to_whatever_looks_for_it() {
    let bench = Bench::on_tmpfs();
    let more = ["--target=null", "--time=100ms", "--set=nfiles=20"];
    bench.run("varmail", &more).result(0);
    let place = bench.results()[0].path().to_owned();
    let place = place.to_str().unwrap();
    for (missing, said) in [
        ("intervals.csv", "lacks intervals.csv"),
        ("histograms.hlog", "lacks histograms.hlog and intervals.csv"),
        (
            "run.json",
            "lacks run.json and histograms.hlog and intervals.csv",
        ),
    ] {
        std::fs::remove_file(Path::new(place).join(missing)).unwrap();
        for format in ["html", "csv", "text"] {
            let format = format!("--format={format}");
            let refused = Ended::of(bench.plimsoll(["report", place, &format]));
            if refused.stderr.is_empty() {
                // What is shown as text needs less.
                assert!(format.ends_with("text") && missing != "run.json");
                continue;
            }
            let refused = refused.refusal();
            let whole = format!("is not a complete result: it {said}");
            assert!(refused.contains(&whole), "{format}: {refused}");
        }
    }
}
