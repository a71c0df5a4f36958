//! Results of older versions, as they were written, read by this one.

use plimsoll_results::{CurveDir, Document, Entry, LatencyKind, Percentiles, Run, RunDir};
use std::path::{Path, PathBuf};

/// Where results are that a program of version 1 wrote.
fn stored(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/fixtures/schema-1").join(name)
}

fn read(dir: &Path) -> Run {
    RunDir::at(dir).read().unwrap()
}

fn near(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(off <= expected * 1e-3, "{found} is not {expected}");
}

/// A copy whose files may be taken away.
fn copy(name: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(stored(name)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    dir
}

#[test]
fn an_unpaced_run_is_as_it_was() {
    let run = read(&stored("free"));
    assert_eq!(run.schema_version, Run::SCHEMA);
    let s = &run.summary;
    assert_eq!((s.ops, s.mean_ms, s.p99_ms), (99, 10.0, 10.0));
    assert_eq!((s.paced_ops, s.service), (0, None));
    assert_eq!(run.operations[0].latency.max_ms, 10.0);
    assert!(run.operations.iter().all(|o| o.service.is_none()));
    let rows = RunDir::at(&stored("free")).read_intervals().unwrap();
    assert_eq!((rows[0].mean_ms, rows[0].service_mean_ms), (10.0, None));
}

/// One worker is due 200 operations per second and does 91 in the second, each in 10 ms; another
/// does 99 without a schedule.
#[test]
fn a_mix_of_paced_and_unpaced_operations_gets_its_latency_from_the_histograms() {
    let run = read(&stored("steady"));
    let s = &run.summary;
    assert_eq!((s.ops, s.paced_ops), (190, 91));
    assert_eq!(s.latency_kind(), LatencyKind::Mixed);
    // As the mix says of what was paced.
    let paced_ms = run.mix.as_ref().unwrap().total.response.unwrap().mean_ms;
    near(s.mean_ms, (91.0 * paced_ms + 99.0 * 10.0) / 190.0);
    // 99 of 190 take 10 ms.
    assert_eq!(s.p50_ms.round(), 10.0);
    // The second longest of the operations: the 189th of 190.
    near(s.p99_ms, 535.0);
    let service = s.service.unwrap();
    assert_eq!((service.mean_ms, service.p99_ms), (10.0, 10.0));
    let row = |name: &str| run.operations.iter().find(|o| o.name == name).unwrap();
    let stat = row("reader/stat");
    assert_eq!((stat.ops, stat.paced_ops), (35, 35));
    assert_eq!((stat.latency.max_ms, stat.service().max_ms), (535.0, 10.0));
    assert_eq!(row("scanner/stat").service, None);
}

#[test]
fn a_limited_workload_too() {
    let run = read(&stored("limited"));
    let s = &run.summary;
    // The first operation of all has no event before it.
    assert_eq!((s.ops, s.paced_ops), (99, 49));
    let first = &run.operations[0];
    assert_eq!((first.ops, first.paced_ops), (50, 49));
    near(
        s.mean_ms,
        (50.0 * first.latency.mean_ms + 49.0 * 10.0) / 99.0,
    );
    assert_eq!(s.service.unwrap().mean_ms, 10.0);
    assert_eq!(run.notes.len(), run.plan.notes.len());
}

#[test]
fn percentiles_of_older_results_are_computed_from_their_histograms() {
    let list: Percentiles = "50,99,99.9,100".parse().unwrap();
    let run = RunDir::at(&stored("steady"))
        .read_with(Some(&list))
        .unwrap();
    let s = &run.summary;
    let at = |text: &str| s.percentile(text.parse().unwrap()).unwrap();
    assert_eq!(at("99").ms, s.p99_ms);
    assert!(at("99").enough_samples && !at("99.9").enough_samples);
    assert_eq!((at("100").ms, at("100").service_ms), (540.0, Some(10.0)));
    let curve = CurveDir::at(&stored("steady-curve"));
    assert!(curve.read().unwrap().points[0].percentiles.is_empty());
    let curve = curve.read_with(Some(&list)).unwrap();
    for point in &curve.points {
        let shown = point.percentiles.iter().map(|f| f.percentile);
        assert!(shown.eq(list.as_slice().iter().copied()));
    }
}

#[test]
fn without_histograms_the_summary_says_what_it_is_of() {
    let dir = copy("limited");
    std::fs::remove_file(dir.path().join("histograms.hlog")).unwrap();
    let list: Percentiles = "99.99".parse().unwrap();
    let error = RunDir::at(dir.path()).read_with(Some(&list)).unwrap_err();
    assert!(error.to_string().contains("histograms.hlog"), "{error}");
    let run = read(dir.path());
    assert_eq!(run.summary.mean_ms, 10.0);
    assert_eq!(run.summary.latency_kind(), LatencyKind::Service);
    let said = run
        .notes
        .iter()
        .filter(|n| n.text.contains("service times"));
    assert_eq!(said.count(), 1, "{:?}", run.notes);
    assert!(run.operations[0].latency.mean_ms > 300.0);
}

#[test]
fn a_list_says_of_older_results_what_a_report_says() {
    let run = read(&stored("steady"));
    let entry = Entry::read(&stored("steady")).unwrap();
    assert_eq!(entry.p99_ms, Some(run.summary.p99_ms));
    assert_eq!(entry.service_p99_ms, Some(10.0));
    assert_eq!(Entry::read(&stored("free")).unwrap().service_p99_ms, None);
}

#[test]
fn the_runs_of_an_older_curve_are_read() {
    let dir = CurveDir::at(&stored("steady-curve"));
    let curve = dir.read().unwrap();
    assert_eq!(curve.points.len(), 2);
    for point in &curve.points {
        let run = dir.run(point).read().unwrap();
        assert_eq!(run.summary.service.unwrap().mean_ms, 10.0);
    }
}

#[test]
fn what_was_read_is_written_in_the_form_of_today() {
    let run = read(&stored("steady"));
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("run.json"), run.to_json()).unwrap();
    assert_eq!(read(dir.path()), run);
}
