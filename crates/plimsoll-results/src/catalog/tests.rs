use super::*;
use crate::{Document, MeasuredRun, RUN_FILE, Repeats, SummaryLatency, Target};
use plimsoll_plan::Plan;
use serde_json::json;

#[test]
fn words_of_a_status_are_read_back() {
    let words = Status::ALL.map(Status::word);
    assert_eq!(
        words,
        ["valid", "invalid", "failed", "interrupted", "unfinished"]
    );
    for status in Status::ALL {
        assert_eq!(
            (status.word().parse(), status.to_string()),
            (Ok(status), status.word().into())
        );
    }
    assert_eq!(
        "good".parse::<Status>().unwrap_err(),
        "`good` is not a status: expected one of valid, invalid, failed, interrupted, unfinished"
    );
    assert_eq!(format!("{:>8}|", Status::Valid), "   valid|");
    let verdicts = [
        Verdict::Valid,
        Verdict::Invalid,
        Verdict::Failed,
        Verdict::Interrupted,
    ];
    assert_eq!(verdicts.map(Status::from), Status::ALL[..4]);
}

/// A directory with a run of one measured window.
fn run(dir: &Path, change: impl FnOnce(&mut Run)) {
    let target = Target {
        url: "posix".into(),
        description: String::new(),
        system: None,
    };
    let measured = MeasuredRun::new(Plan::empty("w"), target, std::time::SystemTime::UNIX_EPOCH);
    let mut run = Run::assemble(measured);
    run.window_number = 1;
    run.validity.verdict = Verdict::Valid;
    run.summary = Summary {
        ops: 10,
        ops_per_s: 5.0,
        bytes_per_s: 50.0,
        mean_ms: 2.0,
        p99_ms: 9.0,
        ..Summary::default()
    };
    change(&mut run);
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join(RUN_FILE), run.to_json()).unwrap();
}

fn latencies(e: &Entry) -> [Option<f64>; 4] {
    [e.mean_ms, e.p99_ms, e.service_mean_ms, e.service_p99_ms]
}

#[test]
fn a_run_has_the_figures_that_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |change: fn(&mut Run)| {
        run(dir.path(), change);
        Entry::read(dir.path()).unwrap()
    };
    let measured = entry(|r| {
        r.summary.service = Some(SummaryLatency {
            mean_ms: 1.0,
            p50_ms: 0.5,
            p99_ms: 4.0,
        });
    });
    assert_eq!(
        (measured.ops_per_s, measured.bytes_per_s),
        (Some(5.0), Some(50.0))
    );
    assert_eq!(
        latencies(&measured),
        [Some(2.0), Some(9.0), Some(1.0), Some(4.0)]
    );
    assert_eq!(
        (measured.target.as_str(), measured.started_at.as_str()),
        ("posix", "1970-01-01T00:00:00.000Z")
    );
    let idle = entry(|r| r.summary.ops = 0);
    assert_eq!((idle.ops_per_s, latencies(&idle)), (Some(5.0), [None; 4]));
    let without_window = entry(|r| r.window_number = 0);
    assert_eq!(
        (without_window.ops_per_s, latencies(&without_window)),
        (None, [None; 4])
    );
}

#[test]
fn repeated_runs_have_the_means_of_what_is_known_and_the_first_doubt() {
    let dir = tempfile::tempdir().unwrap();
    let mut repeats = Repeats::new("w", 3);
    let entry = |repeats: &Repeats| {
        std::fs::write(dir.path().join(Repeats::FILE), repeats.to_json()).unwrap();
        Entry::read(dir.path()).unwrap()
    };
    let none = entry(&repeats);
    assert_eq!(
        (none.runs, none.status, none.ops_per_s),
        (0, Status::Unfinished, None)
    );
    assert_eq!((none.target.as_str(), none.started_at.as_str()), ("", ""));
    for (name, ops_per_s) in [("run-01", 4.0), ("run-02", 8.0), ("run-03", 0.0)] {
        run(&dir.path().join(name), |r| {
            r.summary.ops_per_s = ops_per_s;
            r.summary.ops = ops_per_s as u64;
            r.summary.mean_ms = ops_per_s;
        });
        repeats.runs.push(name.into());
    }
    let all = entry(&repeats);
    assert_eq!((all.runs, all.status), (3, Status::Valid));
    // The third did nothing, and has no latency.
    assert_eq!(
        (all.ops_per_s, all.mean_ms, all.service_mean_ms),
        (Some(4.0), Some(6.0), None)
    );
    repeats.requested_runs = 4;
    assert_eq!(entry(&repeats).status, Status::Unfinished);
    run(&dir.path().join("run-02"), |r| {
        r.validity.verdict = Verdict::Invalid
    });
    run(&dir.path().join("run-03"), |r| {
        r.validity.verdict = Verdict::Failed
    });
    assert_eq!(entry(&repeats).status, Status::Invalid);
}

#[test]
fn a_profile_has_the_status_of_its_cases() {
    let dir = tempfile::tempdir().unwrap();
    let entry = |interrupted: bool, cases: &[(&str, Option<&str>)]| {
        let case = |(target, verdict): &(&str, Option<&str>)| json!({"target": target, "verdict": verdict});
        let profile = json!({
            "schema_version": ProfileResults::SCHEMA,
            "profile": "study",
            "started_at": "now",
            "interrupted": interrupted,
            "cases": cases.iter().map(case).collect::<Vec<_>>(),
        });
        std::fs::write(dir.path().join(ProfileResults::FILE), profile.to_string()).unwrap();
        let entry = Entry::read(dir.path()).unwrap();
        (entry.status, entry.runs, entry.target)
    };
    let (valid, invalid) = (("a", Some("valid")), ("a", Some("invalid")));
    let (failed, interrupted) = (("a", Some("failed")), ("b", Some("interrupted")));
    let missing = ("a", None);
    assert_eq!(
        entry(false, &[valid, valid]),
        (Status::Valid, 2, "a".into())
    );
    assert_eq!(
        entry(false, &[valid, invalid]),
        (Status::Invalid, 2, "a".into())
    );
    assert_eq!(
        entry(false, &[invalid, missing]),
        (Status::Unfinished, 1, "a".into())
    );
    assert_eq!(
        entry(true, &[valid, missing]),
        (Status::Interrupted, 1, "a".into())
    );
    assert_eq!(
        entry(false, &[valid, interrupted, missing]),
        (Status::Interrupted, 2, String::new())
    );
    assert_eq!(
        entry(true, &[failed, interrupted]),
        (Status::Failed, 2, String::new())
    );
    assert_eq!(entry(false, &[]), (Status::Valid, 0, String::new()));
}

#[test]
fn curves_and_searches_have_the_status_of_their_end() {
    let dir = tempfile::tempdir().unwrap();
    let curve = |state: &str, verdicts: &[&str]| {
        let points: Vec<_> = verdicts.iter().map(|v| json!({"verdict": v})).collect();
        let curve = json!({
            "schema_version": LoadCurve::SCHEMA,
            "workload": "w",
            "started_at": "now",
            "metric": "streams",
            "state": state,
            "points": points,
            "load_line": 7,
            "ort_ms": 1.5,
            "target": {"url": "posix"},
        });
        std::fs::write(dir.path().join(LoadCurve::FILE), curve.to_string()).unwrap();
        let entry = Entry::read(dir.path()).unwrap();
        assert_eq!(
            (entry.load_line, entry.ort_ms, entry.metric.as_deref()),
            (Some(7), Some(1.5), Some("streams"))
        );
        (entry.status, entry.runs)
    };
    assert_eq!(curve("complete", &["invalid", "valid"]), (Status::Valid, 2));
    assert_eq!(curve("stopped", &["valid"]), (Status::Valid, 1));
    assert_eq!(curve("complete", &["invalid"]), (Status::Invalid, 1));
    assert_eq!(curve("stopped", &[]), (Status::Invalid, 0));
    assert_eq!(curve("unfinished", &["valid"]), (Status::Unfinished, 1));
    assert_eq!(curve("interrupted", &["valid"]), (Status::Interrupted, 1));
    assert_eq!(curve("failed", &["valid"]), (Status::Failed, 1));
}

#[test]
fn directories_are_listed_by_name_without_hidden_ones_files_and_links() {
    let root = tempfile::tempdir().unwrap();
    for name in ["b", "a", ".hidden"] {
        std::fs::create_dir(root.path().join(name)).unwrap();
    }
    std::fs::write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink(root.path().join("a"), root.path().join("link")).unwrap();
    let found = directories(root.path()).unwrap();
    assert_eq!(found, ["a", "b"].map(|name| root.path().join(name)));
    assert!(directories(&root.path().join("none")).is_err());
}
