//! Results as they are named on the command line: odd names, and directories that are not whole.

use crate::common::{Bench, Ended};
use std::path::Path;

#[test]
fn names_that_begin_with_a_hyphen_are_taken_and_printed_as_any_command_takes_them() {
    let bench = Bench::on_tmpfs();
    let run = "run varmail --target=null --time=100ms --set=nfiles=20 --results -r";
    let ended = Ended::of(bench.plimsoll(run.split(' '))).expect_code(0);
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
fn a_result_that_lacks_a_file_is_said_to_whatever_looks_for_it() {
    let bench = Bench::on_tmpfs();
    let more = ["--target=null", "--time=100ms", "--set=nfiles=20"];
    bench.run("varmail", &more).result(0);
    let place = bench.results()[0].path().to_owned();
    let place = place.to_str().unwrap();
    let mut said = "it lacks".to_owned();
    for (missing, lacks) in [
        ("histograms.hlog", " histograms.hlog"),
        ("intervals.csv", " and intervals.csv"),
    ] {
        said += lacks;
        std::fs::remove_file(Path::new(place).join(missing)).unwrap();
        for format in ["html", "csv"] {
            let format = format!("--format={format}");
            let refused = Ended::of(bench.plimsoll(["report", place, &format])).refusal();
            let whole = format!("is not a complete result: {said}");
            assert!(refused.contains(&whole), "{format}: {refused}");
        }
        let compare = ["compare", "--format=json", place, place];
        let compared = Ended::of(bench.plimsoll(compare)).expect_code(0).stdout;
        let note = format!("{place} is not a complete result: {said}\"");
        assert!(compared.contains(&note), "{compared}");
    }
    std::fs::remove_file(Path::new(place).join("run.json")).unwrap();
    for format in ["--format=html", "--format=csv", "--format=text"] {
        let refused = Ended::of(bench.plimsoll(["report", place, format])).refusal();
        let whole = "is not a complete result: it lacks run.json and histograms.hlog and";
        assert!(refused.contains(whole), "{format}: {refused}");
    }
}
