//! `plimsoll results import`: published reports through the program.

use crate::common::{Bench, Ended};
use serde_json::Value;

/// Text of a published report among the test data of the crate plimsoll-report.
fn sample(name: &str) -> String {
    let path = format!(
        "{}/../plimsoll-report/tests/published/{name}.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).unwrap()
}

/// Writes `text` to `report.txt`, and imports the file with `results import`.
fn import(text: &str, more: &[&str]) -> Ended {
    let bench = Bench::new();
    std::fs::write(bench.path("report.txt"), text).unwrap();
    let first = ["results", "import", "report.txt"];
    Ended::of(bench.plimsoll(first.iter().chain(more)))
}

fn json(text: &str) -> Value {
    let ended = import(text, &["--format=json"]).expect_code(0);
    assert_eq!(ended.stderr, "");
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn the_json_form_holds_what_the_report_says() {
    let d = json(&sample("vda2014"));
    assert_eq!(d["metric"], "SPEC SFS2014_vda");
    assert_eq!(d["ort_published_ms"], 4.12);
    let computed = d["ort_ms"].as_f64().unwrap();
    assert_eq!(format!("{computed:.2}"), "4.12");
    let points = d["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[9]["load"]), (10, &d["peak"]));
    assert!(points[9]["mb_per_s"].is_number());
}

#[test]
fn the_text_form_fits_a_screen() {
    let ended = import(&sample("vda2014"), &[]).expect_code(0);
    insta::assert_snapshot!(ended.stdout);
    assert!(ended.stdout.lines().all(|l| l.len() <= 120));
}

#[test]
fn a_wrong_overall_response_time_is_a_warning_with_both_numbers() {
    let text = sample("nfs2008").replace("1.24 msec", "1.42 msec");
    let ended = import(&text, &["--format=json"]).expect_code(0);
    assert_eq!(
        ended.stderr,
        "warning: report.txt: the report says an overall response time of 1.42 ms, but its load \
         points give 1.2399 ms; rounding explains a difference of 0.0550 ms at most\n"
    );
    let d: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(d["ort_published_ms"], 1.42);
}

#[test]
fn bad_input_is_refused_with_its_place() {
    let vda = sample("vda2014");
    let cell = import(&vda.replace("10204", "1o204"), &[]).refusal();
    let say = "the operations per second of load point 6 is not a number: `1o204`";
    let is_placed = cell.contains(say) && cell.contains("report.txt:20:34");
    assert!(is_placed, "{cell}");
    assert!(import("", &[]).refusal().contains("the file is empty"));
}

/// An excerpt with title, claim and load points of a published report is accepted; every command that reads the excerpt
/// names the missing sections.
#[test]
fn an_excerpt_is_read() {
    let text = sample("nfs2008");
    let table = text.find("Product and Test").unwrap();
    let excerpt = import(&text[..table], &["--format=json"]).expect_code(0);
    let note = "note: report.txt: this is an excerpt: 2";
    let missing = " sections are missing (Product and Test Information, ";
    assert!(excerpt.stderr.starts_with(note), "{}", excerpt.stderr);
    assert!(excerpt.stderr.contains(missing), "{}", excerpt.stderr);
    assert_eq!(excerpt.stderr.lines().count(), 1);
    let bench = Bench::new();
    std::fs::write(bench.path("report.txt"), &text[..table]).unwrap();
    let shown = Ended::of(bench.plimsoll(["report", "report.txt"])).expect_code(0);
    assert!(shown.stderr.starts_with(note), "{}", shown.stderr);
}

#[test]
fn what_cannot_be_read_is_named() {
    let bench = Bench::new();
    for (path, reason) in [
        ("none.txt", "cannot read none.txt: No such file"),
        (".", "cannot read .: Is a directory"),
        ("/dev/zero", "too large for a report"),
    ] {
        let said = Ended::of(bench.plimsoll(["results", "import", path])).refusal();
        assert!(said.contains(reason), "{said}");
    }
}
