//! Catalog entries of results.

use crate::fixtures::{
    create, curve, list, make, make_all, plan, profile, repeats, run, search, sweep, target,
};
use plimsoll_plan::{Parameter, Plan};
use plimsoll_results::{
    Document, Entry, Environment, Kind, RUN_FILE, Run, Series, SeriesState, SeriesWriter, Setting,
    Status, Step, SummaryLatency, Verdict, WorkDir, directories,
};
use std::path::Path;

#[test]
fn words_of_a_status_are_read_back() {
    let words = Status::ALL.iter().map(|s| s.word()).collect::<Vec<_>>();
    assert_eq!(
        words,
        ["valid", "invalid", "failed", "interrupted", "unfinished"]
    );
    for &status in Status::ALL {
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

/// Writes the document of a run with 200 operations per second and a response time of 8 ms.
fn write_run(dir: &Path, change: impl FnOnce(&mut Run)) {
    let mut run = run(plan(), 2000, 8, &[]);
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
    let path = dir.path().join("one");
    let entry = |change: fn(&mut Run)| {
        write_run(&path, change);
        Entry::read(&path).unwrap()
    };
    let measured = entry(|r| {
        (r.summary.mean_ms, r.summary.p99_ms) = (2.0, 9.0);
        r.summary.service = Some(SummaryLatency {
            mean_ms: 1.0,
            p50_ms: 0.5,
            p99_ms: 4.0,
        });
    });
    assert_eq!((measured.name.as_str(), measured.kind), ("one", Kind::Run));
    assert_eq!((measured.status, measured.runs), (Status::Valid, 1));
    assert_eq!(
        (measured.ops_per_s, measured.bytes_per_s),
        (Some(200.0), Some(200.0 * 4096.0))
    );
    assert_eq!(
        latencies(&measured),
        [Some(2.0), Some(9.0), Some(1.0), Some(4.0)]
    );
    assert_eq!(
        (measured.target.as_str(), measured.started_at.as_str()),
        ("null", "2023-11-14T22:13:20.000Z")
    );
    let idle = entry(|r| {
        (r.summary.ops, r.summary.service) = (0, None);
    });
    assert_eq!((idle.ops_per_s, latencies(&idle)), (Some(200.0), [None; 4]));
    let without_window = entry(|r| {
        (r.window_number, r.summary.service) = (0, None);
    });
    assert_eq!(
        (without_window.ops_per_s, latencies(&without_window)),
        (None, [None; 4])
    );
    let text = std::fs::read_to_string(path.join(RUN_FILE)).unwrap();
    let anonymous = text.replace("\"schema_version\"", "\"version\"");
    std::fs::write(path.join(RUN_FILE), anonymous).unwrap();
    let error = Entry::read(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("has no schema version; this program reads version 1"),
        "{error}"
    );
}

fn entry(writer: &SeriesWriter) -> Entry {
    Entry::read(writer.dir().path()).unwrap()
}

#[test]
fn repeated_runs_have_the_means_of_known_figures() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = create(root.path(), repeats(3));
    let none = entry(&writer);
    assert_eq!(none.kind, Kind::Repeats);
    assert_eq!(
        (none.runs, none.status, none.ops_per_s),
        (0, Status::Unfinished, None)
    );
    for (done, ms) in [(400, 4), (800, 8), (0, 0)] {
        make(&mut writer, done, ms, &[]);
    }
    assert_eq!(entry(&writer).status, Status::Unfinished);
    make_all(&mut writer, |_| None);
    let all = entry(&writer);
    assert_eq!((all.runs, all.status), (3, Status::Valid));
    assert_eq!((all.load_line, all.metric, all.ort_ms), (None, None, None));
    // The third run completed no operation and has no latency.
    assert_eq!(
        (all.ops_per_s, all.bytes_per_s),
        (Some(40.0), Some(40.0 * 4096.0))
    );
    assert_eq!((all.mean_ms, all.service_mean_ms), (Some(6.0), Some(3.0)));
    let near = |figure: Option<f64>, ms: f64| (figure.unwrap() - ms).abs() < ms * 1e-3;
    assert!(near(all.p99_ms, 6.0) && near(all.service_p99_ms, 3.0));
}

#[test]
fn a_series_has_the_status_of_its_end() {
    let root = tempfile::tempdir().unwrap();
    let all = |series: Series, reasons: &'static [&'static str]| {
        let mut writer = create(root.path(), series);
        make_all(&mut writer, |_| Some((100, 2, reasons)));
        entry(&writer)
    };
    let kinds = [
        repeats(2),
        curve(),
        search(),
        profile(1, &[("a", "ext4"), ("b", "ext4")]),
    ];
    for series in kinds {
        let valid = all(series.clone(), &[]);
        assert_eq!(valid.status, Status::Valid, "{}", valid.kind);
        let invalid = all(series.clone(), &["total_rate"]);
        assert_eq!(invalid.status, Status::Invalid, "{}", invalid.kind);
        let interrupted = all(series.clone(), &["interrupted"]);
        assert_eq!(
            (interrupted.status, interrupted.runs),
            (Status::Interrupted, 1),
            "{}",
            interrupted.kind
        );
        let mut failed = create(root.path(), series);
        failed.end(SeriesState::Failed, None).unwrap();
        assert_eq!(entry(&failed).status, Status::Failed);
    }
}

#[test]
fn a_curve_and_a_search_have_their_load_line_and_no_means() {
    let root = tempfile::tempdir().unwrap();
    for (series, load_line) in [(curve(), 4), (search(), 5)] {
        let mut writer = create(root.path(), series);
        while let Step::Run(next) = writer.series().next() {
            let passes = next.load <= Some(5);
            make(&mut writer, 100, 2, if passes { &[] } else { &["errors"] });
        }
        let entry = entry(&writer);
        assert_eq!(entry.load_line, Some(load_line));
        assert_eq!(entry.metric.as_deref(), Some("streams"));
        assert_eq!((entry.ops_per_s, latencies(&entry)), (None, [None; 4]));
        assert_eq!(entry.ort_ms.is_some(), entry.kind == Kind::Curve);
    }
}

#[test]
fn a_profile_has_a_target_if_all_its_runs_have_the_same_one() {
    let root = tempfile::tempdir().unwrap();
    let mut series = profile(1, &[("a", "ext4"), ("a", "xfs")]);
    list(&mut series, Verdict::Valid);
    let same = entry(&create(root.path(), series.clone()));
    assert_eq!((same.target.as_str(), same.runs), ("null", 1));
    series.configurations[1].target = target("posix");
    assert_eq!(entry(&create(root.path(), series)).target, "");
}

/// Parameters of a Plan from their names and values.
fn parameters(values: &[(String, String)]) -> Vec<Parameter> {
    let parameter = |(name, value): &(String, String)| Parameter {
        name: name.clone(),
        value: value.clone(),
        default: "1".into(),
        meaning: String::new(),
    };
    values.iter().map(parameter).collect()
}

/// Values of a setting; empty if the setting is left out.
fn setting(entry: &Entry, setting: Setting) -> Vec<&str> {
    let values = entry.settings.get(&setting).into_iter().flatten();
    values.map(String::as_str).collect()
}

#[test]
fn a_run_has_its_parameters_and_settings() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("one");
    write_run(&path, |r| {
        r.plan.parameters = parameters(&[("nthreads".into(), "16".into())]);
        r.plan.work_dir.dir = "mail".into();
        r.target.url = "posix:?io=uring&depth=8".into();
        r.environment = Environment {
            host: "bench".into(),
            kernel: "Linux 7".into(),
            work_dir: Some(WorkDir {
                path: "/mnt/a/mail".into(),
                fs_type: Some("xfs".into()),
                device: None,
                ..WorkDir::default()
            }),
            ..Environment::default()
        };
    });
    let entry = Entry::read(&path).unwrap();
    assert_eq!(entry.parameters["nthreads"], ["16"]);
    for (name, expected) in [
        (Setting::Directory, "/mnt/a/mail"),
        (Setting::FileSystem, "xfs"),
        (Setting::Io, "uring, depth 8"),
        (Setting::Content, "random"),
        (Setting::Load, "10"),
        (Setting::Scale, "0.5"),
        (Setting::Host, "bench"),
        (Setting::Kernel, "Linux 7"),
        (Setting::Seed, "41"),
    ] {
        assert_eq!(setting(&entry, name), [expected], "{name}");
    }
    assert!(!entry.settings.contains_key(&Setting::Device));
    write_run(&path, |r| {
        r.plan.work_dir.temporary = true;
        r.plan.metric = None;
    });
    let entry = Entry::read(&path).unwrap();
    for name in [Setting::Directory, Setting::Scale, Setting::Load] {
        assert!(!entry.settings.contains_key(&name), "{name}");
    }
}

#[test]
fn a_series_has_the_values_of_all_its_configurations() {
    let root = tempfile::tempdir().unwrap();
    let varied = sweep(&[("iosize", "4k,1m"), ("nthreads", "1,2")], |cell| Plan {
        parameters: parameters(cell),
        ..plan()
    });
    let varied = entry(&create(root.path(), varied));
    assert_eq!(varied.parameters["iosize"], ["4k", "1m"]);
    assert_eq!(varied.parameters["nthreads"], ["1", "2"]);
    assert_eq!(setting(&varied, Setting::Load), ["10"]);
    let systems = profile(1, &[("a", "ext4"), ("b", "ext4"), ("a", "xfs")]);
    let systems = entry(&create(root.path(), systems));
    assert_eq!(setting(&systems, Setting::FileSystem), ["ext4", "xfs"]);
    // The Plan of a curve has the highest load only.
    let curve = entry(&create(root.path(), curve()));
    assert_eq!(setting(&curve, Setting::Load), [""; 0]);
    assert_eq!(setting(&curve, Setting::Seed), ["41"]);
}

#[test]
fn directories_are_listed_by_name_without_hidden_ones_files_and_links() {
    let root = tempfile::tempdir().unwrap();
    for name in ["b", "a", ".plimsoll-abcDEF"] {
        std::fs::create_dir(root.path().join(name)).unwrap();
    }
    std::fs::write(root.path().join("file"), "").unwrap();
    std::os::unix::fs::symlink(root.path().join("a"), root.path().join("link")).unwrap();
    let found = directories(root.path()).unwrap();
    assert_eq!(found, ["a", "b"].map(|name| root.path().join(name)));
    assert!(directories(&root.path().join("none")).is_err());
}
