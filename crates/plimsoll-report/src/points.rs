//! Load curves as comma-separated values and as Markdown.

use crate::csv::line;
use crate::format::{latency, mib_per_s, rate};
use crate::markdown::{escaped, table};
use plimsoll_plan::Count;
use plimsoll_results::{CurvePoint, LoadCurve};

/// Columns of the values.
const HEAD: [&str; 19] = [
    "results",
    "workload",
    "metric",
    "scale",
    "load",
    "verdict",
    "asked_ops_per_s",
    "achieved_ops_per_s",
    "bytes_per_s",
    "response_mean_ms",
    "response_p50_ms",
    "response_p95_ms",
    "response_p99_ms",
    "response_max_ms",
    "service_mean_ms",
    "slowest_percent",
    "errors",
    "window_s",
    "run",
];

/// A line a load point of each curve, with the figures as `curve.json` has them and a first line
/// of names; what was not measured is empty.
#[must_use]
pub fn csv(curves: &[(&str, &LoadCurve)]) -> String {
    let mut out = line(&HEAD.map(str::to_owned));
    for (name, curve) in curves {
        for point in &curve.points {
            out.push_str(&line(&values(name, curve, point)));
        }
    }
    out
}

fn values(name: &str, curve: &LoadCurve, p: &CurvePoint) -> Vec<String> {
    let number = |n: Option<f64>| n.map_or_else(String::new, |n| n.to_string());
    vec![
        name.to_owned(),
        curve.workload.clone(),
        curve.metric.clone(),
        curve.scale.to_string(),
        p.load.to_string(),
        p.verdict.to_string(),
        number(p.asked_ops_per_s),
        p.achieved.to_string(),
        p.bytes_per_s.to_string(),
        p.latency_ms.to_string(),
        p.p50_ms.to_string(),
        number(p.p95_ms),
        p.p99_ms.to_string(),
        number(p.max_ms),
        p.service_ms.to_string(),
        number(p.slowest_percent),
        p.errors.to_string(),
        p.window_s.to_string(),
        p.run.clone(),
    ]
}

/// Heading, figures of the curve and the table of its points. `name` is that of the results
/// directory.
#[must_use]
pub fn markdown(name: &str, curve: &LoadCurve) -> String {
    let time = |ms: f64| latency(ms).replace("  ", " ");
    let known = |what: Option<String>| what.unwrap_or_else(|| "none".into());
    let mut out = format!("## {}, load curve\n\n", escaped(&curve.workload));
    if !curve.comparable {
        out.push_str(&format!(
            "Scaled to {} of the full data and rates: not comparable.\n\n",
            curve.scale
        ));
    }
    out.push_str(&format!(
        "Load line {} {}, overall response time {}; seed {}, target {}; results `{}`, began {}.\n\n",
        known(curve.load_line.map(|l| Count(l).to_string())),
        escaped(&curve.metric),
        known(curve.ort_ms.map(time)),
        curve.seed,
        escaped(&curve.target.url),
        name.replace('`', "'"),
        curve.started,
    ));
    let head = [
        "load",
        "verdict",
        "asked ops/s",
        "ops/s",
        "MiB/s",
        "mean",
        "p50",
        "p95",
        "p99",
        "errors",
    ];
    let row = |p: &CurvePoint| {
        vec![
            Count(p.load).to_string(),
            p.verdict.to_string(),
            p.asked_ops_per_s.map_or("–".into(), rate),
            rate(p.achieved),
            mib_per_s(p.bytes_per_s),
            time(p.latency_ms),
            time(p.p50_ms),
            p.p95_ms.map_or("–".into(), time),
            time(p.p99_ms),
            Count(p.errors).to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = curve.points.iter().map(row).collect();
    out + &table(&head, &rows)
}
