//! A comparison as text and as Markdown.

use super::{ChangeVerdict, Comparison, Metric, Row, Value};
use crate::markdown::{escaped, table};
use crate::percentiles::{LOWER_BOUND_MARK, UNCERTAIN_MARK};
use crate::table::Table;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph};

/// The rows of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureBlock {
    /// The figure.
    pub metric: Metric,
    /// Names of the columns after the first, which has the operations.
    pub head: Vec<String>,
    /// Names and cells of the operations.
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// A cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Its text.
    pub text: String,
    /// Whether it is a significant change for the better, or for the worse.
    pub better: Option<bool>,
}

/// Letter of a result: A for the first.
#[must_use]
pub fn letter(i: usize) -> String {
    let letters = u8::try_from(i).ok().and_then(|i| b'A'.checked_add(i));
    match letters {
        Some(c) if c <= b'Z' => char::from(c).to_string(),
        _ => format!("#{}", i + 1),
    }
}

/// A change in percent.
fn percent(change: f64) -> String {
    match (change * 100.0).abs() {
        p if p.is_infinite() => if change > 0.0 { "+∞" } else { "-∞" }.into(),
        p if p >= 99_950.0 => format!("×{:.0}", 1.0 + change),
        p if p >= 99.95 => format!("{:+.0} %", change * 100.0),
        _ => format!("{:+.1} %", change * 100.0),
    }
}

/// The change from the first result. Between two lower bounds it is not known; from or to one it is a
/// bound itself.
fn change(row: &Row, value: Option<&Value>) -> Cell {
    let unknown = Cell {
        text: "-".into(),
        better: None,
    };
    let Some((value, change)) = value.and_then(|v| Some((v, v.change?))) else {
        return unknown;
    };
    let first = row.values.first().and_then(Option::as_ref);
    let bound = match (first.is_some_and(|f| f.at_least), value.at_least) {
        (true, true) => return unknown,
        (true, false) => "≤ ",
        (false, true) => LOWER_BOUND_MARK,
        (false, false) => "",
    };
    let real = value.statement == ChangeVerdict::Real;
    Cell {
        text: format!("{bound}{}{}", percent(change), value.statement.mark()),
        better: real.then_some((change > 0.0) == row.metric.more_is_better()),
    }
}

/// The rows of each figure, in the order of the figures.
#[must_use]
pub fn blocks(comparison: &Comparison) -> Vec<FigureBlock> {
    let mut blocks = Vec::new();
    let shown: Vec<&Row> = comparison.rows.iter().filter(|r| r.is_shown()).collect();
    let mut metrics: Vec<Metric> = shown.iter().map(|r| r.metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    for metric in metrics {
        let rows: Vec<&Row> = shown
            .iter()
            .copied()
            .filter(|r| r.metric == metric)
            .collect();
        let mut head = Vec::new();
        for i in 0..comparison.sets.len() {
            head.push(letter(i));
            if i > 0 {
                head.push("change".into());
            }
        }
        let cells = |row: &Row| {
            let mut cells = Vec::new();
            for (i, value) in row.values.iter().enumerate() {
                let shown = value.as_ref().map_or("-".into(), |v| {
                    let doubt = if v.enough_samples { "" } else { UNCERTAIN_MARK };
                    let bound = if v.at_least { LOWER_BOUND_MARK } else { "" };
                    let (shown, mark) = (metric.show(v.mean), v.statement.figure_mark());
                    format!("{bound}{shown}{doubt}{mark}")
                });
                cells.push(Cell {
                    text: shown,
                    better: None,
                });
                if i > 0 {
                    cells.push(change(row, value.as_ref()));
                }
            }
            (row.operation.clone(), cells)
        };
        blocks.push(FigureBlock {
            metric,
            head,
            rows: rows.into_iter().map(cells).collect(),
        });
    }
    blocks
}

/// A line per result: its letter, and its name and description.
fn legend(comparison: &Comparison) -> Vec<(String, String)> {
    let line = |(i, s): (usize, &super::ComparedResult)| {
        let runs = match s.runs {
            1 => "one run".to_owned(),
            n => format!("{n} runs"),
        };
        let what = format!("{}: {}, {runs}, {}", s.name, s.workload, s.verdict);
        (letter(i), what)
    };
    comparison.sets.iter().enumerate().map(line).collect()
}

/// The comparison for a terminal or a text file: a table per figure.
#[must_use]
pub fn text(comparison: &Comparison, layout: Layout) -> String {
    let (paint, width) = (Paint(layout.color), layout.width.max(60));
    let mut out = String::new();
    for (letter, what) in legend(comparison) {
        paragraph(&mut out, &format!("{letter}  "), &what, width);
    }
    for warning in &comparison.warnings {
        paragraph(&mut out, "warning: ", warning, width);
    }
    for mut block in blocks(comparison) {
        align_marked(&mut block.rows);
        let mut head = vec![block.metric.title()];
        head.extend(block.head);
        let mut table = Table::new(&head);
        for (operation, cells) in block.rows {
            let cells = cells.into_iter().map(|c| c.text);
            table.row(std::iter::once(operation).chain(cells).collect());
        }
        out.push('\n');
        table.render(&mut out, width, paint);
    }
    out.push('\n');
    for remark in comparison.remarks() {
        paragraph(&mut out, "", &remark, width);
    }
    out
}

/// Aligns the numbers of columns in which some have a mark: the others get spaces in its place.
fn align_marked(rows: &mut [(String, Vec<Cell>)]) {
    let columns = rows.first().map_or(0, |(_, cells)| cells.len());
    let is_marked = |cell: &Cell| [" *", " ~", " !"].iter().any(|m| cell.text.ends_with(m));
    for column in 0..columns {
        if rows.iter().any(|(_, cells)| is_marked(&cells[column])) {
            for (_, cells) in &mut *rows {
                if !is_marked(&cells[column]) {
                    cells[column].text.push_str("  ");
                }
            }
        }
    }
}

/// The comparison as Markdown, for issues and wikis.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    for (letter, what) in legend(comparison) {
        out.push_str(&format!("- **{letter}** {}\n", escaped(&what)));
    }
    for warning in &comparison.warnings {
        out.push_str(&format!("- warning: {}\n", escaped(warning)));
    }
    for block in blocks(comparison) {
        let title = block.metric.title();
        let mut head = vec![title.as_str()];
        head.extend(block.head.iter().map(String::as_str));
        let rows: Vec<Vec<String>> = block
            .rows
            .iter()
            .map(|(operation, cells)| {
                let cells = cells.iter().map(|c| escaped(&c.text));
                std::iter::once(escaped(operation)).chain(cells).collect()
            })
            .collect();
        out.push('\n');
        out.push_str(&table(&head, &rows));
    }
    out.push('\n');
    for remark in comparison.remarks() {
        out.push_str(&format!("{}\n", escaped(&remark)));
    }
    out
}
