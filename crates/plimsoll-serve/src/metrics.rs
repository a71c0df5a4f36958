//! Metrics of runs in progress, and numbers of results, in the text format OpenMetrics 1.0 for Prometheus.

use crate::live::{Progress, Totals, progress};
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use plimsoll_diagnostics::foreign;
use plimsoll_results::{Entry, IntervalRow, LiveRun, QualifierKind};
use std::collections::BTreeMap;

const CONTENT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) async fn show(State(app): State<Shared>) -> Result<Response, Problem> {
    let text = run_blocking(move || {
        let mut runs = Vec::new();
        for dir in app.live()? {
            // A run that has just ended cannot be read and is left out.
            if let (Ok(run), Ok((_, progress))) = (dir.read(), progress(&dir)) {
                runs.push((dir.id().to_owned(), run, progress));
            }
        }
        let results = NumberOfResults::by_workload(app.index()?.entries());
        Ok(render(&runs, &results))
    })
    .await?;
    Ok(([(CONTENT_TYPE, CONTENT)], text).into_response())
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

fn render(runs: &[LiveEntry], results: &BTreeMap<String, NumberOfResults>) -> String {
    let mut out = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: Vec<String>| {
        out += &format!("# TYPE {name} {kind}\n");
        let units = ["seconds", "bytes"];
        if let Some(unit) = units.iter().find(|unit| name.ends_with(*unit)) {
            out += &format!("# UNIT {name} {unit}\n");
        }
        out += &format!("# HELP {name} {help}.\n");
        // An element of `samples` is the text of a sample after the metric's name: suffix, labels and value.
        samples.iter().for_each(|s| out += &format!("{name}{s}\n"));
    };
    family(
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
    family(
        "plimsoll_run_start_seconds",
        "gauge",
        "When the run began, in seconds since 1970",
        started.collect(),
    );
    for (name, help, pick) in COUNTERS {
        let samples = runs.iter().flat_map(|(id, run, progress)| {
            progress.operations.iter().map(move |((op, of), totals)| {
                let labels = labels(id, run, Some((op, of, None)));
                format!("_total{labels} {}", pick(totals))
            })
        });
        let help = format!("{help}, in measured intervals");
        family(name, "counter", &help, samples.collect());
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
        family(&named("quantile"), "gauge", &of, quantiles);
        let mean = format!("Mean {help}");
        family(&named("mean"), "gauge", &mean, sample(None, 2));
    }
    let all = results.iter().map(|(workload, n)| {
        let labels = label_set(&[("workload", workload)]);
        format!("{labels} {}", n.all)
    });
    family(
        "plimsoll_results",
        "gauge",
        "Results below the results root",
        all.collect(),
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
    family(
        "plimsoll_qualified_results",
        "gauge",
        "Results below the results root that have the qualifier",
        qualified.collect(),
    );
    out + "# EOF\n"
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

/// Names and values of labels in the text format.
fn label_set(pairs: &[(&str, &str)]) -> String {
    let shown = pairs.iter().map(|(n, v)| format!("{n}=\"{}\"", escaped(v)));
    format!("{{{}}}", shown.collect::<Vec<_>>().join(","))
}

fn escaped(value: &str) -> String {
    foreign::escaped_lines(value)
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_results::{ClockKind, Document};

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

    #[test]
    fn samples_are_sums_and_the_last_interval_and_names_are_quoted() {
        let run = LiveRun {
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
        };
        let mut progress = Progress::default();
        progress.add(vec![row(0, 10), row(1, 5)]);
        let runs = [("abc123".into(), run, progress)];
        let text = render(&runs, &BTreeMap::new());
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
        let text = render(&[], &NumberOfResults::by_workload(entries.iter()));
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
}
