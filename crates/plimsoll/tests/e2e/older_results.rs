//! Results that were written by the version before: `report`, `compare` and `serve` read them under the present names.

use crate::common::{Bench, Ended};
use crate::serve::serve;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The stored results: what they are, and the document of each.
const SAMPLES: [(&str, &str); 7] = [
    ("curve", "curve.json"),
    ("find", "find.json"),
    ("md", "run.json"),
    ("mix", "run.json"),
    ("profile", "profile.json"),
    ("repeats", "repeats.json"),
    ("stalled", "run.json"),
];

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/older")
}

/// A document as it is stored.
fn stored(name: &str) -> Value {
    let (_, file) = SAMPLES.iter().find(|(n, _)| *n == name).unwrap();
    let text = std::fs::read_to_string(samples().join(name).join(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A bench with copies of the samples: nothing may be changed in the stored ones.
fn bench() -> Bench {
    let bench = Bench::on_tmpfs();
    let copied = std::process::Command::new("cp")
        .arg("-r")
        .arg(samples())
        .arg(bench.path("results"))
        .status();
    assert!(copied.unwrap().success());
    bench
}

fn report(bench: &Bench, name: &str, format: &str) -> String {
    let path = format!("results/{name}");
    let args = ["report", &path, "--format", format];
    Ended::of(bench.plimsoll(args)).expect_code(0).stdout
}

/// The document as `report` gives it.
fn read(bench: &Bench, name: &str) -> Value {
    let text = report(bench, name, "json");
    let value: Value = serde_json::from_str(&text).unwrap();
    match value {
        Value::Array(mut all) if all.len() == 1 => all.remove(0),
        one => one,
    }
}

#[test]
fn every_report_of_an_older_result_is_made() {
    let bench = bench();
    for (name, _) in SAMPLES {
        for format in ["text", "markdown", "csv", "html"] {
            assert!(!report(&bench, name, format).is_empty(), "{name} {format}");
        }
    }
}

#[test]
fn fields_have_their_present_names_and_the_same_values() {
    let bench = bench();
    let (old, new) = (stored("mix"), read(&bench, "mix"));
    assert_eq!(new["schema_version"], 3);
    assert_eq!(new["started_at"], old["started"]);
    let (was, is) = (&old["mix"]["total"], &new["mix"]["total"]);
    for (former, present) in [
        ("asked_ops_per_s", "offered_ops_per_s"),
        ("done_ops_per_s", "achieved_ops_per_s"),
        ("due", "scheduled"),
        ("done", "completed"),
        ("missed", "dropped"),
        ("slowest_percent", "slowest_process_percent"),
        ("start_lateness", "start_delay"),
    ] {
        assert!(!was[former].is_null(), "{former}");
        assert_eq!(was[former], is[present], "{present}");
    }
    assert!(was["done"].as_u64().unwrap() > 0);

    let (old, new) = (stored("stalled"), read(&bench, "stalled"));
    let (was, is) = (&old["summary"], &new["summary"]);
    assert_eq!(was["longest_gap_ms"], is["max_gap_ms"]);
    assert!(was["longest_gap_ms"].as_f64().unwrap() > 1000.0);
    assert_eq!(was["stalls"][0]["from_s"], is["stalls"][0]["start_s"]);
    assert_eq!(was["stalls"][0]["counts"], is["stalls"][0]["invalidates"]);
    assert_eq!(old["populated"], new["filesets"]);

    let (old, new) = (stored("curve"), read(&bench, "curve"));
    assert_eq!(old["time_s"], new["measure_s"]);
    assert_eq!(old["stopped"]["rule"], new["stop_reason"]["rule"]);
    let (was, is) = (&old["points"][2], &new["points"][2]);
    assert_eq!(was["achieved"], is["achieved_ops_per_s"]);
    assert_eq!(was["latency_ms"], is["mean_ms"]);
    assert!(was["latency_ms"].as_f64().unwrap() > 1.0);

    let (old, new) = (stored("find"), read(&bench, "find"));
    let (was, is) = (&old["line"], &new["load_line"]);
    assert_eq!(was["carried"]["load"], is["sustained"]["load"]);
    assert_eq!(was["carried"]["held"], is["sustained"]["passed"]);
    assert_eq!(was["not_carried"]["load"], is["not_sustained"]["load"]);
    assert_eq!(is["termination"], "found");
    assert_eq!(old["search"]["most_runs"], new["search"]["max_runs"]);
    assert_eq!(old["runs"][0]["held"], new["runs"][0]["passed"]);

    let repeats = plimsoll_results::RepeatsDir::at(&bench.path("results/repeats"));
    let requested = repeats.read().unwrap().requested_runs;
    assert_eq!(stored("repeats")["asked"], requested);
}

#[test]
fn an_older_result_is_compared_with_a_new_one() {
    let bench = bench();
    let args = [
        "run",
        "vda",
        "--load=1",
        "--time=3s",
        "--warmup=1s",
        "--target=null:?latency=2ms",
        "--clock=virtual",
        "--results=new",
        "--quiet",
    ];
    Ended::of(bench.plimsoll(args)).expect_code(0);
    let new = std::fs::read_dir(bench.path("new")).unwrap().next();
    let new = new.unwrap().unwrap().path();
    let args = [
        "compare",
        "results/mix",
        new.to_str().unwrap(),
        "--format=json",
    ];
    let compared = Ended::of(bench.plimsoll(args)).expect_code(0);
    let compared: Value = serde_json::from_str(&compared.stdout).unwrap();
    // The seed, the clock and the target are the same, and so is what is measured.
    let text = compared.to_string();
    assert!(text.contains("ops_per_s"), "{text}");
    let args = ["compare", "results/curve", "results/curve"];
    Ended::of(bench.plimsoll(args)).expect_code(0);
}

#[test]
fn older_results_are_in_the_browser() {
    let bench = bench();
    let browser = serve(&bench, &[]);
    let list = browser.get("/api/v1/results").json();
    let entries = list["results"].as_array().unwrap();
    for (name, _) in SAMPLES {
        let entry = entries.iter().find(|e| e["name"] == name);
        let entry = entry.unwrap_or_else(|| panic!("{name} of {list}"));
        assert!(entry["problem"].is_null(), "{entry}");
        assert!(entry["started_at"].is_string(), "{entry}");
    }
}

/// A curve that the version before left unfinished is resumed with its own Plan.
#[test]
fn an_older_curve_is_resumed() {
    let bench = bench();
    let path = bench.path("results/curve/curve.json");
    let mut curve = stored("curve");
    curve["state"] = "interrupted".into();
    curve["points"].as_array_mut().unwrap().truncate(1);
    std::fs::write(&path, curve.to_string()).unwrap();
    let args = ["curve", "--resume", "results/curve", "--format=json"];
    let resumed = Ended::of(bench.plimsoll(args)).expect_code(0).stdout;
    let resumed: Value = serde_json::from_str(&resumed).unwrap();
    assert_eq!(resumed["schema_version"], 3);
    assert_eq!(resumed["state"], "complete");
    // In virtual time a load of a seed is always the same.
    let old = stored("curve");
    for (was, is) in [1, 2].map(|i| (&old["points"][i], &resumed["points"][i])) {
        assert_eq!(was["load"], is["load"]);
        assert_eq!(was["achieved"], is["achieved_ops_per_s"]);
        assert_eq!(was["latency_ms"], is["mean_ms"]);
    }
}
