//! Documents of older versions, given the form of this one.
//!
//! Version 1 of `run.json` has service times where version 2 has latencies, beside the response times
//! of operations that were paced; its summary has service times alone. What the summary would have
//! been is in `histograms.hlog`. Of an operation of which only some were paced, that log has the
//! response times of these and no others.

use crate::Distribution;
use crate::histograms::tag_of_text;
use crate::recompute::LogDistributions;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Fields of a latency distribution.
const LATENCY: [&str; 7] = [
    "mean_ms", "min_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms",
];

/// Fields of one in a summary.
const SUMMARY: [&str; 3] = ["mean_ms", "p50_ms", "p99_ms"];

/// Note on results from which response times cannot be computed.
const NO_HISTOGRAM_NOTE: &str = "the summary of this older result has service times, not response times: \
                      histograms.hlog cannot be read";

/// Gives a `run.json` of version 1 the form of version 2.
pub(crate) fn run(value: &mut Value, from: u64, dir: &Path) -> bool {
    let Some(run) = value.as_object_mut().filter(|_| from == 1) else {
        return false;
    };
    let number = |window: &Map<String, Value>, name| window.get(name).and_then(Value::as_u64);
    let last = (number(run, "window_number").unwrap_or(0), rows_of(run));
    let mut earlier = vec![];
    for window in objects(run.get_mut("earlier_windows")) {
        earlier.push((number(window, "number").unwrap_or(0), rows_of(window)));
    }
    for stage in objects(run.get_mut("stages")) {
        if let Some(window) = stage.get_mut("window").and_then(Value::as_object_mut) {
            // The operations of a stage have no schedule.
            rows_of(window);
            unpaced(window.get_mut("summary"));
        }
    }
    let mut rows = last
        .1
        .iter()
        .chain(earlier.iter().flat_map(|(_, rows)| rows));
    let paced = rows.any(|r| r.paced);
    let log = match paced {
        true => LogDistributions::read(dir).ok(),
        false => None,
    };
    let mut told = summary(run, &last, log.as_ref());
    for (window, rows) in objects(run.get_mut("earlier_windows")).zip(&earlier) {
        told &= summary(window, rows, log.as_ref());
    }
    if !told && let Some(notes) = run.get_mut("notes").and_then(Value::as_array_mut) {
        notes.push(json!({ "text": NO_HISTOGRAM_NOTE, "place": null }));
    }
    run.insert("schema".into(), json!(2));
    true
}

/// A row of a window that counts in its summary.
struct SummaryRow {
    tag: String,
    ops: f64,
    paced: bool,
    mean_ms: f64,
    max_ms: f64,
}

fn objects(list: Option<&mut Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let list = list.and_then(Value::as_array_mut).into_iter().flatten();
    list.filter_map(Value::as_object_mut)
}

fn figure(object: &Map<String, Value>, name: &str) -> f64 {
    object.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

/// Takes some fields of an object as one of their own.
fn part(object: &Map<String, Value>, names: &[&str]) -> Value {
    let field = |n: &&str| Some(((*n).to_owned(), object.get(*n)?.clone()));
    Value::Object(names.iter().filter_map(field).collect())
}

/// Gives the operations and procedures of a window their new form; returns those that count.
fn rows_of(window: &mut Map<String, Value>) -> Vec<SummaryRow> {
    for procedure in objects(window.get_mut("procedures")) {
        row_of(procedure);
    }
    let operations = objects(window.get_mut("operations"));
    let rows = operations.map(|o| (row_of(o), o.get("class").and_then(Value::as_str)));
    let counts = |class: Option<&str>| matches!(class, Some("io" | "aio"));
    rows.filter(|(_, class)| counts(*class))
        .map(|(row, _)| row)
        .collect()
}

fn row_of(o: &mut Map<String, Value>) -> SummaryRow {
    let text = |name: &str| o.get(name).and_then(Value::as_str).unwrap_or_default();
    let tag = tag_of_text(text("name"), text("kind"));
    let response = o.remove("response").filter(Value::is_object);
    let paced = response.is_some();
    let (service, ops) = match response {
        Some(Value::Object(response)) => {
            let service = part(o, &LATENCY);
            o.extend(response);
            // Of rows that were paced in part it is fewer; the log says how many.
            (service, o.get("ops").cloned().unwrap_or(json!(0)))
        }
        _ => (Value::Null, json!(0)),
    };
    o.insert("service".into(), service);
    o.insert("paced_ops".into(), ops);
    SummaryRow {
        tag,
        ops: figure(o, "ops"),
        paced,
        mean_ms: figure(o, "mean_ms"),
        max_ms: figure(o, "max_ms"),
    }
}

fn unpaced(summary: Option<&mut Value>) {
    if let Some(summary) = summary.and_then(Value::as_object_mut) {
        summary.insert("paced_ops".into(), json!(0));
        summary.insert("service".into(), Value::Null);
    }
}

/// Gives a window's summary its new form; `false` if its response times are not known.
fn summary(
    window: &mut Map<String, Value>,
    (number, rows): &(u64, Vec<SummaryRow>),
    log: Option<&LogDistributions>,
) -> bool {
    unpaced(window.get_mut("summary"));
    if !rows.iter().any(|r| r.paced) {
        return true;
    }
    let Some(log) = log else { return false };
    let window_number = u32::try_from(*number).unwrap_or(u32::MAX);
    let of = |tag: &str| log.of(window_number, tag);
    let response = |row: &SummaryRow| of(&format!("{}/response", row.tag)).filter(|_| row.paced);
    let (mut latency, mut paced_ops) = (Distribution::default(), 0);
    let (mut sum_ms, mut ops, mut max_ms) = (0.0, 0.0, 0.0f64);
    for row in rows {
        let response = response(row);
        paced_ops += response.map_or(0, Distribution::count);
        if let Some(times) = response.or_else(|| of(&row.tag)) {
            latency.merge(times);
        }
        sum_ms += row.mean_ms * row.ops;
        ops += row.ops;
        max_ms = max_ms.max(row.max_ms);
    }
    for (operation, count) in objects(window.get_mut("operations")).filter_map(|o| {
        let text = |name: &str| o.get(name).and_then(Value::as_str).unwrap_or_default();
        let tag = format!("{}/response", tag_of_text(text("name"), text("kind")));
        let count = of(&tag)?.count();
        Some((o, count))
    }) {
        operation.insert("paced_ops".into(), json!(count));
    }
    let Some(summary) = window.get_mut("summary").and_then(Value::as_object_mut) else {
        return false;
    };
    let service = part(summary, &SUMMARY);
    let quantile_ms = |q| (latency.quantile(q) as f64 / 1e6).min(max_ms);
    let figures = [
        ("mean_ms", sum_ms / f64::max(ops, 1.0)),
        ("p50_ms", quantile_ms(0.5)),
        ("p99_ms", quantile_ms(0.99)),
    ];
    for (name, ms) in figures {
        summary.insert(name.into(), json!(ms));
    }
    summary.insert("paced_ops".into(), json!(paced_ops));
    summary.insert("service".into(), service);
    true
}
