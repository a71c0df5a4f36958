//! Confidence intervals of the figures of a run.

use crate::document::{Block, Figure, Line, Table};
use crate::format::{latency, or_dash, rate};
use plimsoll_measure::{Bounds, CONFIDENCE, Confidence};
use plimsoll_plan::counted;
use plimsoll_results::Run;

/// Names of the figures with intervals.
const FIGURES: [&str; 5] = ["ops/s", "mean", "p50", "p95", "p99"];

/// Interval of each of [`FIGURES`], as text.
fn texts(confidence: &Confidence) -> [Option<String>; 5] {
    let text = |bounds: Option<Bounds>, show: fn(f64) -> String| {
        bounds.map(|b| format!("{} to {}", show(b.low), show(b.high)))
    };
    [
        text(confidence.ops_per_s, rate),
        text(confidence.mean_ms, latency),
        text(confidence.p50_ms, latency),
        text(confidence.p95_ms, latency),
        text(confidence.p99_ms, latency),
    ]
}

/// Name of the intervals, with the probability.
fn label() -> String {
    format!("{:.0} % confidence", 100.0 * CONFIDENCE)
}

/// Intervals of the figures of all operations together, or the reason why the window has none.
pub fn of_all(run: &Run) -> Option<Block> {
    let confidence = run.summary.confidence.as_ref()?;
    if let Some(doubt) = &confidence.doubt {
        return Some(Line::of(label(), format!("cannot tell, because {doubt}")));
    }
    let texts = FIGURES.into_iter().zip(texts(confidence));
    let known = texts.filter_map(|(name, text)| Some(Figure::new(name, text?)));
    Some(Block::results(&label(), known.collect()))
}

/// Table of the intervals of each operation.
pub fn table(run: &Run) -> Table {
    let head = ["operation", "kind"].into_iter().chain(FIGURES);
    let mut table = Table::new(&format!("Intervals of {}", label()), head);
    let mut untold = 0;
    for o in &run.operations {
        let Some(confidence) = &o.confidence else {
            untold += u64::from(o.ops > 0);
            continue;
        };
        let mut row = vec![o.name.clone(), o.kind.to_string()];
        row.extend(texts(confidence).map(or_dash));
        table.row(row);
    }
    table.notes.push(
        "the intervals follow from the variation within the window; other runs can differ more"
            .into(),
    );
    if untold > 0 {
        let operations = counted(untold, "operation has", "operations have");
        let text =
            format!("{operations} no interval, because the figures change slowly or are rare");
        table.notes.push(text);
    }
    table
}
