//! Samples for monitoring systems, of results of every kind.

use crate::fixtures::{
    SECOND, create, curve, make_all, measured, paired, plan, plan_at, profile, repeats, search,
    sweep,
};
use influxdb_line_protocol::{FieldValue, ParsedLine, parse_lines};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use plimsoll_measure::ClockKind;
use plimsoll_report::monitoring::Export;
use plimsoll_results::{MeasuredRun, Run, RunDir, RunWriter, Series};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Wall time of the start of all runs, in nanoseconds since 1970.
const STARTED: i64 = 1_700_000_000_000_000_000;

fn export(dir: &Path) -> Export {
    Export::read(&[dir.to_owned()]).unwrap()
}

/// Writes the results of a run.
fn written(root: &Path, measured: MeasuredRun) -> RunDir {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let writer = RunWriter::create(root, &measured.plan, started, measured.clock, None);
    writer.unwrap().finish(&Run::assemble(measured)).unwrap()
}

/// Value of a field in the only line of an export with these tags.
#[track_caller]
fn field(text: &str, tags: &[(&str, &str)], name: &str) -> f64 {
    let lines = parse_lines(text).map(|line| line.unwrap());
    let has = |line: &ParsedLine<'_>, (tag, value): &(&str, &str)| {
        line.tag_value(tag).is_some_and(|v| *v == *value)
    };
    let found: Vec<f64> = lines
        .filter(|line| tags.iter().all(|tag| has(line, tag)))
        .filter_map(|line| match line.field_value(name) {
            Some(FieldValue::F64(value)) => Some(*value),
            _ => None,
        })
        .collect();
    assert_eq!(found.len(), 1, "{tags:?} {name}: {text}");
    found[0]
}

#[test]
fn every_series_has_the_figures_of_its_runs() {
    let root = tempfile::tempdir().unwrap();
    let grid = sweep(&[("iosize", "4k,8k")], |_| plan());
    let cases = [
        (repeats(2), "repeats", 2, None),
        (curve(), "curve", 5, Some(("load", "10"))),
        (search(), "search", 2, Some(("load", "10"))),
        (
            profile(1, &[("a", "ext4"), ("a", "xfs")]),
            "profile",
            2,
            Some(("profile_filesystem", "xfs")),
        ),
        (paired(2, None), "ab", 4, Some(("configuration", "B"))),
        (grid, "sweep", 2, Some(("configuration", "iosize=8k"))),
    ];
    for (series, kind, least, label) in cases {
        let series: Series = series;
        let mut writer = create(root.path(), series);
        make_all(&mut writer, |next| {
            Some((next.load.unwrap_or(4) * 200, 2, &[]))
        });
        let text = export(writer.dir().path()).influx();
        let count = |tag: &str, value: &str, field: &str| {
            let lines = parse_lines(&text).map(|line| line.unwrap());
            let with = lines.filter(|line| line.tag_value(tag).is_some_and(|v| *v == value));
            with.filter(|line| line.field_value(field).is_some())
                .count()
        };
        assert_eq!(
            count("results_kind", kind, "window_seconds"),
            writer.series().runs.len()
        );
        assert!(
            count("results_kind", kind, "window_seconds") >= least,
            "{kind}: {text}"
        );
        assert_eq!(count("part", "series", "valid"), 1, "{kind}: {text}");
        if let Some((tag, value)) = label {
            assert!(
                count(tag, value, "operations_per_second") > 0,
                "{kind}: {text}"
            );
        }
        let line = field_if(&text, "load_line");
        assert_eq!(
            line,
            ["curve", "search"].contains(&kind).then_some(10.0),
            "{kind}"
        );
    }
}

/// Value of a field of the line of a whole series.
fn field_if(text: &str, name: &str) -> Option<f64> {
    let mut lines = parse_lines(text).map(|line| line.unwrap());
    lines.find_map(|line| match line.field_value(name) {
        Some(FieldValue::F64(value)) => Some(*value),
        _ => None,
    })
}

#[test]
fn formats_have_the_same_figures_at_the_end_of_the_window() {
    let root = tempfile::tempdir().unwrap();
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let mut now = measured(plan_at(2), 400, 2, &[]);
    now.clock = ClockKind::Real;
    // The window opens at second 1 of the clock.
    now.outcome.windows[0].started = Some(started + Duration::from_millis(1500));
    let dir = written(root.path(), now);
    let run = dir.read().unwrap();
    let end_ns = STARTED + 11_500_000_000;
    let export = export(dir.path());

    let influx = export.influx();
    let all = [("level", "summary"), ("part", "run")];
    let rate = run.summary.ops as f64 / run.window_s;
    assert_eq!(field(&influx, &all, "operations_per_second"), rate);
    let read = [("operation", "read"), ("kind", "read")];
    assert_eq!(
        field(&influx, &read, "operations"),
        run.operations[0].ops as f64
    );
    let p99 = [("operation", "read"), ("quantile", "0.99")];
    let p99_s = run.operations[0].latency.p99_ms / 1e3;
    assert_eq!(field(&influx, &p99, "latency_quantile_seconds"), p99_s);
    assert!(parse_lines(&influx).all(|line| line.unwrap().timestamp == Some(end_ns)));
    // There are too few operations for the 99.9th percentile.
    assert!(!influx.contains("quantile=0.999"), "{influx}");

    let text = export.openmetrics();
    let begin = "plimsoll_result_operations_per_second{";
    let summary = |l: &&str| l.starts_with(begin) && l.contains("level=\"summary\"");
    let line = text.lines().find(summary).unwrap();
    assert!(
        line.ends_with(&format!(" {rate} 1700000011.500000")),
        "{line}"
    );

    let mut points = 0;
    for line in export.otlp().lines() {
        let request: ExportMetricsServiceRequest = serde_json::from_str(line).unwrap();
        let metrics = &request.resource_metrics[0].scope_metrics[0].metrics;
        for metric in metrics {
            use opentelemetry_proto::tonic::metrics::v1::metric::Data;
            let Some(Data::Gauge(gauge)) = &metric.data else {
                panic!("{metric:?}");
            };
            let at_end = |p: u64| i64::try_from(p) == Ok(end_ns);
            assert!(gauge.data_points.iter().all(|p| at_end(p.time_unix_nano)));
            points += gauge.data_points.len();
        }
    }
    let samples = text.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(points, samples);
}

#[test]
fn what_hangs_is_a_lower_bound_and_virtual_time_has_no_instants() {
    let root = tempfile::tempdir().unwrap();
    let mut hung = measured(plan_at(2), 400, 2, &[]);
    hung.outcome.windows[0].totals.rows[0]
        .in_flight
        .add(4 * SECOND);
    let dir = written(root.path(), hung);
    let text = export(dir.path()).influx();
    let bound = [("operation", "read"), ("bound", "lower")];
    assert_eq!(field(&text, &bound, "latency_max_seconds"), 4.0);
    let exact = [("operation", "read"), ("quantile", "0.5")];
    assert_eq!(
        field(&text, &exact, "latency_quantile_seconds").round(),
        0.0
    );
    let virtual_clock = parse_lines(&text).map(|line| line.unwrap());
    for line in virtual_clock {
        assert_eq!(line.timestamp, Some(STARTED));
        assert!(
            line.tag_value("clock")
                .is_some_and(|clock| *clock == "virtual")
        );
    }
}

#[test]
fn copies_of_results_are_exported_once_and_a_run_without_a_window_has_its_verdict_only() {
    let root = tempfile::tempdir().unwrap();
    let dir = written(root.path(), measured(plan_at(2), 400, 2, &[]));
    let path = dir.path().to_owned();
    let twice = Export::read(&[path.clone(), path.clone()]).unwrap();
    assert_eq!(twice.openmetrics(), export(&path).openmetrics());
    let mut failed = measured(plan_at(2), 0, 2, &["interrupted"]);
    failed.outcome.windows.clear();
    let dir = written(root.path(), failed);
    let text = export(dir.path()).openmetrics();
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(samples.len(), 1, "{text}");
    assert!(samples[0].starts_with("plimsoll_result_valid{"), "{text}");
    assert!(samples[0].contains("verdict=\"interrupted\""), "{text}");
    assert!(samples[0].ends_with(" 0 1700000000.000000"), "{text}");
}
