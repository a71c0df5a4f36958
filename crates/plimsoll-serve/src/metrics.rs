//! Metrics of runs in progress and of the latest results, and numbers of results, in the text format OpenMetrics 1.0 for
//! Prometheus.

use crate::live::{Progress, Totals, progress};
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use plimsoll_report::monitoring::openmetrics::{self, Exposition, label_set};
use plimsoll_results::{Entry, IntervalRow, LiveRun, QualifierKind, Status};
use std::collections::BTreeMap;

pub(crate) async fn show(State(app): State<Shared>) -> Result<Response, Problem> {
    let text = run_blocking(move || {
        let mut runs = Vec::new();
        for dir in app.live()? {
            // A run that has just ended cannot be read and is left out.
            if let (Ok(run), Ok((_, progress))) = (dir.read(), progress(&dir)) {
                runs.push((dir.id().to_owned(), run, progress));
            }
        }
        let index = app.index()?;
        let results = NumberOfResults::by_workload(index.entries());
        Ok(render(&runs, &results, &latest(index.entries())))
    })
    .await?;
    Ok(([(CONTENT_TYPE, openmetrics::CONTENT_TYPE)], text).into_response())
}

/// A run in progress for the metrics: its id, the contents of its `live.json`, and its measurements so far.
type LiveEntry = (String, LiveRun, Progress);

/// Numbers of results of a workload or profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct NumberOfResults {
    all: u64,
    /// Number of results with a qualifier of each kind. A series has the qualifiers of its runs.
    qualified: BTreeMap<QualifierKind, u64>,
}

impl NumberOfResults {
    fn by_workload<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<String, Self> {
        let mut numbers: BTreeMap<String, Self> = BTreeMap::new();
        for entry in entries {
            let of_workload = numbers.entry(entry.workload.clone()).or_default();
            of_workload.all += 1;
            for kind in &entry.qualifiers {
                *of_workload.qualified.entry(*kind).or_default() += 1;
            }
        }
        numbers
    }
}

/// Latest result of each workload or profile. One result per workload bounds the number of samples of a scrape.
fn latest<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<&'a str, &'a Entry> {
    let mut latest: BTreeMap<&str, &Entry> = BTreeMap::new();
    let age = |entry: &Entry| (start(entry), entry.name.clone());
    for entry in entries {
        let of_workload = latest.entry(&entry.workload).or_insert(entry);
        if age(entry) > age(of_workload) {
            *of_workload = entry;
        }
    }
    latest
}

/// Start time of a result; `None` for an unreadable time.
fn start(entry: &Entry) -> Option<jiff::Timestamp> {
    entry.started_at.parse().ok()
}

/// Function that returns a figure of a result, in the unit of its metric.
type FigureOf = fn(&Entry) -> Option<f64>;

/// Figures of the latest result of each workload: name, quantile of a latency, help, and figure from the entry.
const FIGURES: [(&str, Option<&str>, &str, FigureOf); 10] = [
    (
        "plimsoll_latest_start_seconds",
        None,
        "When the latest result of the workload began, in seconds since 1970",
        |e| Some(start(e)?.as_millisecond() as f64 / 1e3),
    ),
    (
        "plimsoll_latest_valid",
        None,
        "1 if the latest result of the workload is valid, otherwise 0",
        |e| Some(f64::from(e.status == Status::Valid)),
    ),
    (
        "plimsoll_latest_operations_per_second",
        None,
        "Operations per second of the latest result of the workload",
        |e| e.ops_per_s,
    ),
    (
        "plimsoll_latest_bytes_per_second",
        None,
        "Bytes per second of the latest result of the workload",
        |e| e.bytes_per_s,
    ),
    (
        "plimsoll_latest_latency_mean_seconds",
        None,
        "Mean latency of the latest result of the workload",
        |e| Some(e.mean_ms? / 1e3),
    ),
    (
        "plimsoll_latest_latency_quantile_seconds",
        Some("0.99"),
        "99th percentile of the latency of the latest result of the workload",
        |e| Some(e.p99_ms? / 1e3),
    ),
    (
        "plimsoll_latest_service_mean_seconds",
        None,
        "Mean service time of the latest result of the workload",
        |e| Some(e.service_mean_ms.or(e.mean_ms)? / 1e3),
    ),
    (
        "plimsoll_latest_service_quantile_seconds",
        Some("0.99"),
        "99th percentile of the service time of the latest result of the workload",
        |e| Some(e.service_p99_ms.or(e.p99_ms)? / 1e3),
    ),
    (
        "plimsoll_latest_load_line",
        None,
        "Load line of the latest result of the workload, if a curve or a search",
        |e| Some(e.load_line? as f64),
    ),
    (
        "plimsoll_latest_overall_response_time_seconds",
        None,
        "Overall response time of the latest result of the workload, if a curve",
        |e| Some(e.ort_ms? / 1e3),
    ),
];

/// Appends the figures of the latest result of each workload. The label with the result's name is on
/// `plimsoll_latest_result_info` only: on figures, the label would begin a new time series with each result.
fn final_figures(text: &mut Exposition, latest: &BTreeMap<&str, &Entry>) {
    let result = latest.values().map(|entry| {
        let kind = entry.kind.to_string();
        let labels = label_set(&[
            ("workload", &entry.workload),
            ("results", &entry.name),
            ("results_kind", &kind),
            ("target", &entry.target),
            ("verdict", entry.status.word()),
        ]);
        format!("_info{labels} 1")
    });
    let help = "The latest result of each workload";
    text.family("plimsoll_latest_result", "info", help, result);
    for (name, quantile, help, figure) in FIGURES {
        let samples = latest.values().filter_map(|entry| {
            let mut labels = vec![
                ("workload", entry.workload.as_str()),
                ("target", &entry.target),
                ("verdict", entry.status.word()),
            ];
            labels.extend(quantile.map(|q| ("quantile", q)));
            Some(format!("{} {}", label_set(&labels), figure(entry)?))
        });
        text.family(name, "gauge", help, samples);
    }
}

/// Function that returns the value of a counter from the totals of an operation.
type TotalOf = fn(&Totals) -> u128;

/// Counters of each operation, which exist from the first measured interval on: name, help, and value from the
/// operation's totals.
const COUNTERS: [(&str, &str, TotalOf); 3] = [
    ("plimsoll_operations", "Operations that succeeded", |t| {
        t.ops.into()
    }),
    ("plimsoll_moved_bytes", "Bytes moved", |t| t.bytes),
    ("plimsoll_errors", "Operations that failed", |t| {
        t.errors.into()
    }),
];

/// Function that returns median, 99th percentile and mean in milliseconds of a kind of latency, from a row of
/// `intervals.csv`.
type LatencyOf = fn(&IntervalRow) -> [f64; 3];

/// Kinds of latency (latency, service time) with metrics of their own: part of the metric's name, help, and figures
/// from a row.
const LATENCIES: [(&str, &str, LatencyOf); 2] = [
    (
        "latency",
        "latency in the last interval: response time of paced operations, service time of the others",
        |r| [r.p50_ms, r.p99_ms, r.mean_ms],
    ),
    ("service", "service time in the last interval", |r| {
        [
            r.service_p50_ms.unwrap_or(r.p50_ms),
            r.service_p99_ms.unwrap_or(r.p99_ms),
            r.service_mean_ms.unwrap_or(r.mean_ms),
        ]
    }),
];

fn render(
    runs: &[LiveEntry],
    results: &BTreeMap<String, NumberOfResults>,
    latest: &BTreeMap<&str, &Entry>,
) -> String {
    let mut text = Exposition::default();
    text.family(
        "plimsoll_runs_in_progress",
        "gauge",
        "Runs in progress below the results root",
        vec![format!(" {}", runs.len())],
    );
    let started = runs.iter().filter_map(|(id, run, _)| {
        let started: jiff::Timestamp = run.started_at.parse().ok()?;
        let seconds = started.as_millisecond() as f64 / 1e3;
        Some(format!("{} {seconds}", labels(id, run, None)))
    });
    text.family(
        "plimsoll_run_start_seconds",
        "gauge",
        "When the run began, in seconds since 1970",
        started,
    );
    for (name, help, pick) in COUNTERS {
        let samples = runs.iter().flat_map(|(id, run, progress)| {
            progress.operations.iter().map(move |((op, of), totals)| {
                let labels = labels(id, run, Some((op, of, None)));
                format!("_total{labels} {}", pick(totals))
            })
        });
        let help = format!("{help}, in measured intervals");
        text.family(name, "counter", &help, samples);
    }
    for (name, help, pick) in LATENCIES {
        let sample = |quantile: Option<&str>, at: usize| -> Vec<String> {
            let rows = runs.iter().flat_map(|(id, run, progress)| {
                progress.last().map(move |row| {
                    let of = (row.operation.as_str(), row.kind.as_str(), quantile);
                    format!("{} {}", labels(id, run, Some(of)), pick(row)[at] / 1e3)
                })
            });
            rows.collect()
        };
        let quantiles = [sample(Some("0.5"), 0), sample(Some("0.99"), 1)].concat();
        let named = |what| format!("plimsoll_{name}_{what}_seconds");
        let of = format!("Quantiles of the {help}");
        text.family(&named("quantile"), "gauge", &of, quantiles);
        let mean = format!("Mean {help}");
        text.family(&named("mean"), "gauge", &mean, sample(None, 2));
    }
    let all = results.iter().map(|(workload, n)| {
        let labels = label_set(&[("workload", workload)]);
        format!("{labels} {}", n.all)
    });
    text.family(
        "plimsoll_results",
        "gauge",
        "Results below the results root",
        all,
    );
    // A kind without results has a sample too, because Prometheus does not read an absent sample as zero.
    let qualified = results.iter().flat_map(|(workload, n)| {
        QualifierKind::ALL.iter().map(move |kind| {
            let kind_name = name_in_json(*kind);
            let pairs = [("workload", workload.as_str()), ("qualifier", &kind_name)];
            let number = n.qualified.get(kind).unwrap_or(&0);
            format!("{} {number}", label_set(&pairs))
        })
    });
    text.family(
        "plimsoll_qualified_results",
        "gauge",
        "Results below the results root that have the qualifier",
        qualified,
    );
    final_figures(&mut text, latest);
    text.finish()
}

/// Name of a kind of qualifier in `run.json`.
fn name_in_json(kind: QualifierKind) -> String {
    let json = serde_json::to_value(kind).expect("a variant without fields is JSON");
    let name = json.as_str();
    name.expect("a variant without fields is a text").to_owned()
}

/// Labels of a sample: id and workload of the run and, optionally, name, kind and quantile of an operation.
fn labels(id: &str, run: &LiveRun, operation: Option<(&str, &str, Option<&str>)>) -> String {
    let mut pairs = vec![("run", id), ("workload", run.workload.as_str())];
    if let Some((name, kind, quantile)) = operation {
        pairs.extend([("operation", name), ("kind", kind)]);
        pairs.extend(quantile.map(|q| ("quantile", q)));
    }
    label_set(&pairs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_results::{ClockKind, Document, Kind};
    use std::collections::BTreeSet;

    fn row(interval: u64, ops: u64) -> IntervalRow {
        IntervalRow {
            window: 1,
            interval,
            start_s: interval as f64,
            length_s: 1.0,
            operation: "a\"b\\c\nd".into(),
            kind: "read".into(),
            ops,
            bytes: 8 * u128::from(ops),
            errors: 1,
            mean_ms: 1.5,
            p50_ms: 1.0,
            p99_ms: 4.0,
            max_ms: 5.0,
            paced_ops: ops,
            service_mean_ms: Some(0.25),
            service_p50_ms: Some(0.125),
            service_p99_ms: Some(0.5),
            service_max_ms: Some(1.0),
            events: String::new(),
        }
    }

    fn live_run() -> LiveRun {
        LiveRun {
            schema_version: LiveRun::SCHEMA,
            workload: "w".into(),
            name: "w-20260301-120000".into(),
            started_at: "2026-03-01T12:00:00.5Z".into(),
            clock: ClockKind::Real,
            seed: 1,
            workers: 2,
            pid: 7,
            tells_verdict: false,
            events: vec![],
        }
    }

    #[test]
    fn samples_are_sums_and_the_last_interval_and_names_are_quoted() {
        let mut progress = Progress::default();
        progress.add(vec![row(0, 10), row(1, 5)]);
        let runs = [("abc123".into(), live_run(), progress)];
        let text = render(&runs, &BTreeMap::new(), &BTreeMap::new());
        let samples: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
        let run = r#"{run="abc123",workload="w""#;
        let read = format!(r#"{run},operation="a\"b\\c\nd",kind="read""#);
        let expected = [
            "plimsoll_runs_in_progress 1".to_owned(),
            format!("plimsoll_run_start_seconds{run}}} 1772366400.5"),
            format!("plimsoll_operations_total{read}}} 15"),
            format!("plimsoll_moved_bytes_total{read}}} 120"),
            format!("plimsoll_errors_total{read}}} 2"),
            format!("plimsoll_latency_quantile_seconds{read},quantile=\"0.5\"}} 0.001"),
            format!("plimsoll_latency_quantile_seconds{read},quantile=\"0.99\"}} 0.004"),
            format!("plimsoll_latency_mean_seconds{read}}} 0.0015"),
            format!("plimsoll_service_quantile_seconds{read},quantile=\"0.5\"}} 0.000125"),
            format!("plimsoll_service_quantile_seconds{read},quantile=\"0.99\"}} 0.0005"),
            format!("plimsoll_service_mean_seconds{read}}} 0.00025"),
        ];
        assert_eq!(samples, expected);
        assert!(text.ends_with("\n# EOF\n"));
    }

    #[test]
    fn results_are_counted_by_workload_and_qualifier() {
        use QualifierKind::{MeasuresMemory, NotSteady, OneRun};
        let entry = |workload: &str, qualifiers: &[QualifierKind]| Entry {
            workload: workload.into(),
            qualifiers: qualifiers.iter().copied().collect(),
            ..Entry::default()
        };
        let entries = [
            entry("varmail", &[MeasuresMemory, NotSteady, OneRun]),
            entry("oltp", &[]),
            entry("varmail", &[MeasuresMemory]),
        ];
        let text = render(
            &[],
            &NumberOfResults::by_workload(entries.iter()),
            &BTreeMap::new(),
        );
        let samples = text.lines().filter(|l| l.starts_with("plimsoll_"));
        let counted = samples.filter(|l| l.contains('{') && !l.ends_with(" 0"));
        assert_eq!(
            counted.collect::<Vec<_>>(),
            [
                r#"plimsoll_results{workload="oltp"} 1"#,
                r#"plimsoll_results{workload="varmail"} 2"#,
                r#"plimsoll_qualified_results{workload="varmail",qualifier="measures_memory"} 2"#,
                r#"plimsoll_qualified_results{workload="varmail",qualifier="not_steady"} 1"#,
                r#"plimsoll_qualified_results{workload="varmail",qualifier="one_run"} 1"#,
            ]
        );
        let none = r#"plimsoll_qualified_results{workload="oltp",qualifier="measures_memory"} 0"#;
        assert!(text.lines().any(|line| line == none), "{text}");
    }

    #[test]
    fn final_figures_are_of_the_latest_result_of_each_workload() {
        let entry = |name: &str, day: u32, ops_per_s: f64| Entry {
            name: name.into(),
            workload: "varmail".into(),
            target: "posix".into(),
            started_at: format!("2026-03-{day:02}T12:00:00Z"),
            status: Status::Valid,
            ops_per_s: Some(ops_per_s),
            p99_ms: Some(4.0),
            ..Entry::default()
        };
        let curve = Entry {
            name: "vda".into(),
            workload: "vda".into(),
            kind: Kind::Curve,
            load_line: Some(12),
            ..Entry::default()
        };
        let entries = [
            entry("b", 10, 7.5),
            entry("c", 2, 1.0),
            entry("a", 9, 2.0),
            curve,
        ];
        let text = render(&[], &BTreeMap::new(), &latest(entries.iter()));
        let samples = text.lines().filter(|l| l.starts_with("plimsoll_latest"));
        let of = r#"{workload="varmail",target="posix",verdict="valid""#;
        let of_curve = r#"{workload="vda",target="",verdict="unfinished"}"#;
        let kept = r#"target="posix",verdict="valid"} 1"#;
        let expected = [
            format!(
                r#"plimsoll_latest_result_info{{workload="varmail",results="b",results_kind="run",{kept}"#
            ),
            r#"plimsoll_latest_result_info{workload="vda",results="vda",results_kind="curve","#
                .to_owned()
                + r#"target="",verdict="unfinished"} 1"#,
            format!("plimsoll_latest_start_seconds{of}}} 1773144000"),
            format!("plimsoll_latest_valid{of}}} 1"),
            format!("plimsoll_latest_valid{of_curve} 0"),
            format!("plimsoll_latest_operations_per_second{of}}} 7.5"),
            format!("plimsoll_latest_latency_quantile_seconds{of},quantile=\"0.99\"}} 0.004"),
            format!("plimsoll_latest_service_quantile_seconds{of},quantile=\"0.99\"}} 0.004"),
            format!("plimsoll_latest_load_line{of_curve} 12"),
        ];
        assert_eq!(samples.collect::<Vec<_>>(), expected);
    }

    /// Labels of each metric that `/metrics` writes, with their values, if each metric has a sample.
    fn written() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
        let mut progress = Progress::default();
        progress.add(vec![IntervalRow {
            operation: "read".into(),
            ..row(0, 1)
        }]);
        let entry = Entry {
            workload: "w".into(),
            started_at: "2026-03-01T12:00:00Z".into(),
            ops_per_s: Some(1.0),
            bytes_per_s: Some(1.0),
            mean_ms: Some(1.0),
            p99_ms: Some(1.0),
            load_line: Some(1),
            ort_ms: Some(1.0),
            ..Entry::default()
        };
        let runs = [("abc123".into(), live_run(), progress)];
        let results = NumberOfResults::by_workload([&entry].into_iter());
        let text = render(&runs, &results, &latest([&entry].into_iter()));
        let mut written: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for sample in text.lines().filter(|line| !line.starts_with('#')) {
            let (labelled, _) = sample.rsplit_once(' ').unwrap();
            let (name, labels) = labelled.split_once('{').unwrap_or((labelled, "}"));
            let of_metric = written.entry(name.to_owned()).or_default();
            for (label, value) in matchers(labels.strip_suffix('}').unwrap()) {
                of_metric.entry(label).or_default().insert(value);
            }
        }
        written
    }

    /// Labels and values between the braces of a sample or of a selector.
    fn matchers(text: &str) -> Vec<(String, String)> {
        let each = text.split(',').map(str::trim).filter(|m| !m.is_empty());
        let pair = |m: &str| {
            let (label, value) = m.split_once('=').unwrap();
            (label.to_owned(), value.trim_matches(['~', '"']).to_owned())
        };
        each.map(pair).collect()
    }

    /// Names and labels of an expression or a legend that are written: metrics with their matchers, and the labels of
    /// `by (…)` and of `{{…}}`.
    fn assert_written(expression: &str, legend: &str) {
        let written = written();
        let begin = expression.find("plimsoll_").expect(expression);
        let selector = &expression[begin..];
        let end = selector.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (name, rest) = selector.split_at(end.unwrap_or(selector.len()));
        assert!(!rest.contains("plimsoll_"), "one metric: {expression}");
        let labels = written.get(name).unwrap_or_else(|| panic!("{name}"));
        let inner = rest.strip_prefix('{').and_then(|r| r.split_once('}'));
        for (label, value) in matchers(inner.map_or("", |(inner, _)| inner)) {
            let values = &labels[&label];
            assert!(
                value.starts_with('$') || values.contains(&value),
                "{expression}"
            );
        }
        let by = expression.split_once("by (").map(|(_, rest)| rest);
        let by: Vec<&str> = by.map_or(vec![], |rest| {
            let (labels, _) = rest.split_once(')').unwrap();
            labels.split(", ").collect()
        });
        for label in &by {
            assert!(labels.contains_key(*label), "{label}: {expression}");
        }
        for part in legend.split("{{").skip(1) {
            let (label, _) = part.split_once("}}").unwrap();
            let is_kept = by.contains(&label) || (by.is_empty() && labels.contains_key(label));
            assert!(is_kept, "{legend}: {expression}");
        }
    }

    #[test]
    fn the_dashboard_shows_metrics_that_are_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../grafana/plimsoll.json");
        let text = std::fs::read_to_string(path).unwrap();
        let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let ids: BTreeSet<u64> = panels.iter().map(|p| p["id"].as_u64().unwrap()).collect();
        assert_eq!(ids.len(), panels.len());
        let mut taken = BTreeSet::new();
        let mut expressions = 0;
        for panel in panels {
            let [x, y, w, h] =
                ["x", "y", "w", "h"].map(|at| panel["gridPos"][at].as_u64().unwrap());
            assert!(x + w <= 24, "{panel}");
            for column in x..x + w {
                let mut lines = y..y + h;
                assert!(lines.all(|line| taken.insert((column, line))), "{panel}");
            }
            for target in panel["targets"].as_array().into_iter().flatten() {
                assert_eq!(target["datasource"]["uid"], "${datasource}");
                let legend = target["legendFormat"].as_str().unwrap();
                assert_written(target["expr"].as_str().unwrap(), legend);
                expressions += 1;
            }
        }
        assert!(expressions >= 10, "{expressions}");
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let [source, workload] = &variables[..] else {
            panic!("{variables:?}");
        };
        assert_eq!(
            (&source["name"], &source["query"]),
            (&"datasource".into(), &"prometheus".into())
        );
        assert_eq!(
            workload["definition"],
            "label_values(plimsoll_results, workload)"
        );
        assert!(written()["plimsoll_results"].contains_key("workload"));
    }
}
