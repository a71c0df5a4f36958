//! Report on a comparison.

use super::{ChangeVerdict, ComparedResult, Comparison, Metric, Row, Value};
use crate::document::{self, Block, Cell, Document, Line, Table, Tone};
use crate::html::charts;
use crate::percentiles::{LOWER_BOUND_MARK, marked};
use std::collections::BTreeSet;

/// Letter of a result by its index: A for the first.
#[must_use]
pub fn letter(i: usize) -> String {
    let letters = u8::try_from(i).ok().and_then(|i| b'A'.checked_add(i));
    match letters {
        Some(c) if c <= b'Z' => char::from(c).to_string(),
        _ => format!("#{}", i + 1),
    }
}

/// A change in percent.
pub(super) fn percent(change: f64) -> String {
    match (change * 100.0).abs() {
        p if p.is_infinite() => if change > 0.0 { "+∞" } else { "-∞" }.into(),
        p if p >= 99_950.0 => format!("×{:.0}", 1.0 + change),
        p if p >= 99.95 => format!("{:+.0} %", change * 100.0),
        _ => format!("{:+.1} %", change * 100.0),
    }
}

/// The change from the first result. `-` between two lower bounds; a bound if only one of the figures is a lower bound.
fn change(row: &Row, value: Option<&Value>) -> Cell {
    let Some((value, change)) = value.and_then(|v| Some((v, v.change?))) else {
        return Cell::from("-".to_owned());
    };
    let first = row.values.first().and_then(Option::as_ref);
    let bound = match (first.is_some_and(|f| f.at_least), value.at_least) {
        (true, true) => return Cell::from("-".to_owned()),
        (true, false) => "≤ ",
        (false, true) => LOWER_BOUND_MARK,
        (false, false) => "",
    };
    let is_better = (change > 0.0) == row.metric.more_is_better();
    Cell {
        text: format!("{bound}{}{}", percent(change), value.statement.mark()),
        tone: match (value.statement, is_better) {
            (ChangeVerdict::Real, true) => Tone::Good,
            (ChangeVerdict::Real, false) => Tone::Bad,
            _ => Tone::Plain,
        },
    }
}

/// A row of a table: the operation, the figure of each result, and the changes.
fn cells(row: &Row) -> Vec<Cell> {
    let mut cells = vec![Cell::from(row.operation.clone())];
    for (i, value) in row.values.iter().enumerate() {
        let shown = value.as_ref().map_or("-".into(), |v| {
            let shown = marked(&row.metric.show(v.mean), v.at_least, v.enough_samples);
            shown + v.statement.figure_mark()
        });
        cells.push(Cell::from(shown));
        if i > 0 {
            cells.push(change(row, value.as_ref()));
        }
    }
    cells
}

/// A table for each figure, in the order of the figures.
fn tables(comparison: &Comparison) -> impl Iterator<Item = (Metric, Block)> {
    let shown: Vec<&Row> = comparison.rows.iter().filter(|r| r.is_shown()).collect();
    let metrics: BTreeSet<Metric> = shown.iter().map(|r| r.metric).collect();
    let columns = comparison.labels.iter().enumerate().flat_map(|(i, label)| {
        let change = (i > 0).then(|| "change".to_owned());
        std::iter::once(label.clone()).chain(change)
    });
    let columns: Vec<String> = columns.collect();
    metrics.into_iter().map(move |metric| {
        let title = metric.title();
        let head = std::iter::once(title.clone()).chain(columns.iter().cloned());
        let mut table = Table::new(&title, head);
        let rows = shown.iter().filter(|r| r.metric == metric);
        table.rows.extend(rows.map(|row| document::Row {
            cells: cells(row),
            nested: false,
        }));
        (metric, Block::Table(table))
    })
}

/// A line per result: its short name, its name unless it is the short name, and its description.
fn legend(comparison: &Comparison) -> impl Iterator<Item = Block> {
    let is_of_curves = comparison.load_axis.is_some();
    let line = move |(label, s): (&String, &ComparedResult)| {
        let runs = match (s.runs, is_of_curves) {
            (_, true) => String::new(),
            (1, _) => "one run, ".to_owned(),
            (n, _) => format!("{n} runs, "),
        };
        let name = match *label == s.name {
            true => String::new(),
            false => format!("{}: ", s.name),
        };
        let what = format!("{name}{}, {runs}{}", s.workload, s.verdict);
        Line::of(label, what)
    };
    comparison.labels.iter().zip(&comparison.sets).map(line)
}

/// Note on rows that stand for a group of operations.
const GROUPED: &str =
    "×N: N rows whose names differ only in a final number; --format json has each row";

/// Headlines, warnings, and the list of the results.
fn head(comparison: &Comparison) -> Vec<Block> {
    let mut head = comparison.headlines();
    let warnings = comparison.warnings.iter();
    head.extend(warnings.map(|warning| Line::of("warning", warning)));
    head.extend(legend(comparison));
    head
}

/// The table of the main figure, charts, the tables of the other figures, and explanations of marks.
fn figures(comparison: &Comparison) -> Vec<Block> {
    let metric = comparison.main_metric();
    let (main, others): (Vec<_>, Vec<_>) = tables(comparison).partition(|(of, _)| *of == metric);
    let charts = [
        charts::of_comparison(comparison),
        charts::relative_changes(comparison, metric),
        charts::latencies(comparison),
    ];
    let mut blocks: Vec<Block> = main.into_iter().map(|(_, table)| table).collect();
    blocks.extend(Block::charts(charts.into_iter().flatten().collect()));
    blocks.extend(others.into_iter().map(|(_, table)| table));
    let is_grouped = comparison.rows.iter().any(|r| r.is_in_group);
    blocks.extend(is_grouped.then(|| Block::sentence(GROUPED)));
    blocks.extend(comparison.remarks().into_iter().map(Block::sentence));
    blocks
}

/// Headlines, results and figures of a comparison.
#[must_use]
pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = head(comparison);
    blocks.extend(figures(comparison));
    blocks
}

/// The report on a comparison.
#[must_use]
pub fn document(comparison: &Comparison) -> Document {
    let title = format!("{} results side by side", comparison.sets.len());
    let mut document = Document {
        title,
        head: head(comparison),
        ..Document::default()
    };
    document.section("figures", "Figures", figures(comparison));
    document
}
