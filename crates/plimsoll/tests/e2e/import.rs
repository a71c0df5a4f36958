//! `plimsoll results import`: published reports through the program.

use crate::common::{Bench, Ended};
use serde_json::Value;

/// A sample of the disclosure crate.
fn sample(name: &str) -> String {
    let path = format!(
        "{}/../plimsoll-report/tests/published/{name}.txt",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read_to_string(path).unwrap()
}

/// Imports a text that lies in `report.txt`.
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
    for (name, metric, peak, ort) in [
        ("nfs2008", "SPECsfs2008_nfs.v3", 1_592_334.0, 1.24),
        ("nfs2008-collapsed", "SPECsfs2008_nfs.v3", 1_592_334.0, 1.24),
        ("vda2014", "SPEC SFS2014_vda", 1700.0, 4.12),
        ("vda2014-collapsed", "SPEC SFS2014_vda", 1700.0, 4.12),
    ] {
        let d = json(&sample(name));
        assert_eq!(d["metric"], metric, "{name}");
        assert_eq!(d["peak"], peak, "{name}");
        assert_eq!(d["ort_published_ms"], ort, "{name}");
        let computed = d["ort_ms"].as_f64().unwrap();
        assert_eq!(format!("{computed:.2}"), ort.to_string(), "{name}");
        let points = d["points"].as_array().unwrap();
        assert_eq!(points.len(), 10, "{name}");
        assert_eq!(points[9]["load"], peak, "{name}");
        assert_eq!(
            points[9].get("mb_per_s").is_some(),
            peak == 1700.0,
            "{name}"
        );
        for key in ["title", "vendor", "product", "sections"] {
            assert!(!d[key].is_null(), "{name}: {key}");
        }
    }
}

#[test]
fn the_text_form_fits_a_screen() {
    let ended = import(&sample("vda2014"), &[]).expect_code(0);
    insta::assert_snapshot!(ended.stdout);
    assert!(ended.stdout.lines().all(|l| l.len() <= 80));
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
    assert!(
        cell.contains(say) && cell.contains("report.txt:20:34"),
        "{cell}"
    );
    let table = vda.find("Product and Test").unwrap();
    let cut = import(&vda[..table - 300], &[]).refusal();
    assert!(
        cut.contains("the report was cut") && cut.contains("report.txt:"),
        "{cut}"
    );
    let gone: String = vda
        .lines()
        .filter(|l| !l.contains("16980"))
        .map(|l| format!("{l}\n"))
        .collect();
    let gone = import(&gone, &[]).refusal();
    assert!(
        gone.contains("load points are missing") && gone.contains("report.txt:23"),
        "{gone}"
    );
    let other = import("name = \"plimsoll\"\n", &[]).refusal();
    assert!(
        other.contains("report.txt: this is not a disclosure report"),
        "{other}"
    );
    assert!(import("", &[]).refusal().contains("the file is empty"));
}

/// Title, claim and load points are enough: what is missing is said, and the rest is as it would be of
/// the whole report, also for other commands.
#[test]
fn an_excerpt_is_read() {
    for name in [
        "nfs2008",
        "nfs2008-collapsed",
        "vda2014",
        "vda2014-collapsed",
    ] {
        let text = sample(name);
        let table = text.find("Product and Test").unwrap();
        let excerpt = import(&text[..table], &["--format=json"]).expect_code(0);
        let note = "note: report.txt: this is an excerpt: 2";
        assert!(excerpt.stderr.starts_with(note), "{}", excerpt.stderr);
        let missing = " sections are missing (Product and Test Information, ";
        assert!(excerpt.stderr.contains(missing), "{}", excerpt.stderr);
        assert_eq!(excerpt.stderr.lines().count(), 1);
        let d: Value = serde_json::from_str(&excerpt.stdout).unwrap();
        let whole = json(&text);
        for key in [
            "title", "vendor", "product", "metric", "peak", "points", "ort_ms",
        ] {
            assert_eq!(d[key], whole[key], "{name}: {key}");
        }
        let bench = Bench::new();
        std::fs::write(bench.path("report.txt"), &text[..table]).unwrap();
        let shown = Ended::of(bench.plimsoll(["report", "report.txt"])).expect_code(0);
        assert!(shown.stderr.starts_with(note), "{}", shown.stderr);
    }
}

#[test]
fn what_cannot_be_read_is_named() {
    let bench = Bench::new();
    let none = Ended::of(bench.plimsoll(["results", "import", "none.txt"])).refusal();
    assert!(
        none.contains("cannot read none.txt: No such file"),
        "{none}"
    );
    let dir = Ended::of(bench.plimsoll(["results", "import", "."])).refusal();
    assert!(dir.contains("cannot read .: Is a directory"), "{dir}");
    let endless = Ended::of(bench.plimsoll(["results", "import", "/dev/zero"])).refusal();
    assert!(endless.contains("too large for a report"), "{endless}");
}
