//! Metrics of runs in progress in the text format OpenMetrics 1.0 for Prometheus.

use crate::live::{Progress, Totals, progress};
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use plimsoll_diagnostics::foreign;
use plimsoll_results::{IntervalRow, LiveRun};

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
        Ok(render(&runs))
    })
    .await?;
    Ok(([(CONTENT_TYPE, CONTENT)], text).into_response())
}

/// A metric family of OpenMetrics.
struct Family {
    name: &'static str,
    kind: &'static str,
    /// Unit, which is the suffix of the name; empty without a unit.
    unit: &'static str,
    help: &'static str,
}

const fn gauge(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    let kind = "gauge";
    Family {
        name,
        kind,
        unit,
        help,
    }
}

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Family {
    let kind = "counter";
    Family {
        name,
        kind,
        unit,
        help,
    }
}

const IN_PROGRESS: Family = gauge(
    "plimsoll_runs_in_progress",
    "",
    "Runs in progress below the results root.",
);

const START: Family = gauge(
    "plimsoll_run_start_seconds",
    "seconds",
    "When the run began, in seconds since 1970.",
);

/// A family, and the function that takes its value from the totals.
type Counter = (Family, fn(&Totals) -> u128);

/// Counters, which exist from the first measured interval on.
const COUNTERS: [Counter; 3] = [
    (
        counter(
            "plimsoll_operations",
            "",
            "Operations that succeeded, in measured intervals.",
        ),
        |t| t.ops.into(),
    ),
    (
        counter(
            "plimsoll_moved_bytes",
            "bytes",
            "Bytes moved, in measured intervals.",
        ),
        |t| t.bytes,
    ),
    (
        counter(
            "plimsoll_errors",
            "",
            "Operations that failed, in measured intervals.",
        ),
        |t| t.errors.into(),
    ),
];

const LATENCY_QUANTILE: Family = gauge(
    "plimsoll_latency_quantile_seconds",
    "seconds",
    "Quantiles of the latency in the last interval: response time of paced operations, service time of the others.",
);

const LATENCY_MEAN: Family = gauge(
    "plimsoll_latency_mean_seconds",
    "seconds",
    "Mean latency in the last interval: response time of paced operations, service time of the others.",
);

const SERVICE_QUANTILE: Family = gauge(
    "plimsoll_service_quantile_seconds",
    "seconds",
    "Quantiles of the service time in the last interval.",
);

const SERVICE_MEAN: Family = gauge(
    "plimsoll_service_mean_seconds",
    "seconds",
    "Mean service time in the last interval.",
);

/// A run in progress: its id, description and progress.
type LiveEntry = (String, LiveRun, Progress);

fn render(runs: &[LiveEntry]) -> String {
    let mut out = String::new();
    family(&mut out, &IN_PROGRESS, [format!(" {}", runs.len())]);
    let started = runs.iter().filter_map(|(id, run, _)| {
        let started: jiff::Timestamp = run.started_at.parse().ok()?;
        let seconds = started.as_millisecond() as f64 / 1e3;
        Some(format!("{} {seconds}", labels(id, run, None)))
    });
    family(&mut out, &START, started);
    for (head, pick) in &COUNTERS {
        let samples = runs.iter().flat_map(|(id, run, progress)| {
            progress.operations.iter().map(move |((op, of), totals)| {
                let labels = labels(id, run, Some((op, of, None)));
                format!("_total{labels} {}", pick(totals))
            })
        });
        family(&mut out, head, samples);
    }
    let rows: Vec<(&String, &LiveRun, &IntervalRow)> = runs
        .iter()
        .flat_map(|(id, run, progress)| progress.last().map(move |row| (id, run, row)))
        .collect();
    let sample = |(id, run, row): (&String, &LiveRun, &IntervalRow), quantile, ms: f64| {
        let of = (row.operation.as_str(), row.kind.as_str(), quantile);
        format!("{} {}", labels(id, run, Some(of)), ms / 1e3)
    };
    type RowValue = fn(&IntervalRow) -> f64;
    let mut families = |quantile: &Family, mean: &Family, pick: [RowValue; 3]| {
        let [p50, p99, mean_ms] = pick;
        let quantiles = rows.iter().flat_map(|r| {
            [
                sample(*r, Some("0.5"), p50(r.2)),
                sample(*r, Some("0.99"), p99(r.2)),
            ]
        });
        family(&mut out, quantile, quantiles);
        let means = rows.iter().map(|r| sample(*r, None, mean_ms(r.2)));
        family(&mut out, mean, means);
    };
    families(
        &LATENCY_QUANTILE,
        &LATENCY_MEAN,
        [|r| r.p50_ms, |r| r.p99_ms, |r| r.mean_ms],
    );
    families(
        &SERVICE_QUANTILE,
        &SERVICE_MEAN,
        [
            |r| r.service_p50_ms.unwrap_or(r.p50_ms),
            |r| r.service_p99_ms.unwrap_or(r.p99_ms),
            |r| r.service_mean_ms.unwrap_or(r.mean_ms),
        ],
    );
    out + "# EOF\n"
}

/// Writes a family and its samples: each sample is the text after the name.
fn family(out: &mut String, head: &Family, samples: impl IntoIterator<Item = String>) {
    let name = head.name;
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line(format!("# TYPE {name} {}", head.kind));
    if !head.unit.is_empty() {
        line(format!("# UNIT {name} {}", head.unit));
    }
    line(format!("# HELP {name} {}", head.help));
    for sample in samples {
        line(format!("{name}{sample}"));
    }
}

/// Labels of a sample: the run and, optionally, name, kind and quantile of an operation.
fn labels(id: &str, run: &LiveRun, operation: Option<(&str, &str, Option<&str>)>) -> String {
    let mut pairs = vec![("run", id), ("workload", run.workload.as_str())];
    if let Some((name, kind, quantile)) = operation {
        pairs.extend([("operation", name), ("kind", kind)]);
        pairs.extend(quantile.map(|q| ("quantile", q)));
    }
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
        let text = render(&[("abc123".into(), run, progress)]);
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
}
