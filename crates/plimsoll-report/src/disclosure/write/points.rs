//! Table of load points.

use crate::disclosure::import::{INVALID_MARK, NO_FIGURE};
use crate::disclosure::layout::decimals;
use crate::disclosure::model::{Disclosure, LoadPoint};
use plimsoll_measure::curve::PointVerdict;
use std::fmt::Write;

/// Maximum width of a heading: the page has room for four headings of this width, spaces and the mark of an invalid
/// point.
const MAX_HEADING_WIDTH: usize = 16;

/// Minimum width of a column.
const MIN_COLUMN_WIDTH: usize = 12;

impl Disclosure {
    /// Appends the table of load points.
    pub(super) fn push_points(&self, out: &mut String) {
        let columns = self.columns();
        let heads: Vec<Vec<String>> = columns.iter().map(|c| self.heading(c)).collect();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        let cells: Vec<Vec<String>> = columns.iter().map(|c| self.cells(c)).collect();
        let widths: Vec<usize> = heads
            .iter()
            .zip(&cells)
            .map(|(head, cells)| {
                let longest = head.iter().chain(cells).map(String::len).max();
                longest.unwrap_or(0).max(MIN_COLUMN_WIDTH)
            })
            .collect();
        let mut push = |cells: &[&str], mark: &str| {
            let cells = cells.iter().zip(&widths);
            let cells = cells.map(|(cell, width)| format!("{cell:>width$}"));
            let line = format!("{}{mark}", cells.collect::<Vec<_>>().join(" "));
            let _ = writeln!(out, "{}", line.trim_end());
        };
        for i in 0..height {
            // Headings are aligned at the bottom.
            let of = |head: &'_ Vec<String>| (i + head.len()).checked_sub(height);
            let line = heads.iter().map(|h| of(h).map_or("", |i| h[i].as_str()));
            push(&line.collect::<Vec<_>>(), "");
        }
        let rules: Vec<String> = widths.iter().map(|w| "-".repeat(*w)).collect();
        push(&rules.iter().map(String::as_str).collect::<Vec<_>>(), "");
        for (i, p) in self.points.iter().enumerate() {
            let mark = match p.verdict {
                PointVerdict::Valid => String::new(),
                PointVerdict::Invalid => format!(" {INVALID_MARK}"),
            };
            let row = cells.iter().map(|column| column[i].as_str());
            push(&row.collect::<Vec<_>>(), &mark);
        }
    }

    fn columns(&self) -> Vec<Column> {
        let load = |p: &LoadPoint| Some(p.load);
        let latency = |p: &LoadPoint| p.latency_ms;
        let column = |words, unit, name, figure| Column {
            words,
            unit,
            name,
            figure,
        };
        match self.points.iter().any(|p| p.ops_per_s.is_some()) {
            true => vec![
                column(&["Business", "Metric"], true, "", load),
                column(&["Average", "Latency"], false, "(msec)", latency),
                column(&[], true, "Ops/Sec", |p| Some(p.ops_per_s.unwrap_or(0.0))),
                column(&[], true, "MB/Sec", |p| Some(p.mb_per_s.unwrap_or(0.0))),
            ],
            false => vec![
                column(&["Throughput"], true, "", load),
                column(&["Response"], false, "(msec)", latency),
            ],
        }
    }

    /// The lines of a column's heading.
    fn heading(&self, column: &Column) -> Vec<String> {
        let mut lines: Vec<String> = column.words.iter().map(|w| (*w).to_owned()).collect();
        match (column.unit, column.name) {
            (true, "") => lines.extend(pieces(&format!("({})", self.unit))),
            (true, name) => lines.extend(pieces(&self.unit).into_iter().chain([name.to_owned()])),
            (false, name) => lines.push(name.to_owned()),
        }
        lines
    }

    /// Cells of a column, all with the maximum number of decimals that any of them needs.
    fn cells(&self, column: &Column) -> Vec<String> {
        let figures: Vec<Option<f64>> = self.points.iter().map(column.figure).collect();
        let decimals = figures.iter().flatten().map(|v| decimals(*v));
        let decimals = decimals.max().unwrap_or(0);
        let cell = |v: &Option<f64>| v.map_or(NO_FIGURE.into(), |v| format!("{v:.decimals$}"));
        figures.iter().map(cell).collect()
    }
}

/// A column of the table.
struct Column {
    /// First words of the heading, each on its own line.
    words: &'static [&'static str],
    /// Whether the unit of load follows the first words.
    unit: bool,
    /// Last line of the heading; if empty, the heading ends with the unit in parentheses.
    name: &'static str,
    /// Figure of a load point; `None` if the point has no such figure.
    figure: fn(&LoadPoint) -> Option<f64>,
}

/// Breaks a unit into pieces no wider than a heading, after the `_` between words if possible.
fn pieces(unit: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in unit.split_inclusive('_') {
        let room = lines.last().map_or(0, |l| MAX_HEADING_WIDTH - l.len());
        if word.len() > room {
            lines.push(String::new());
        }
        for c in word.chars() {
            if lines
                .last()
                .is_none_or(|l| l.len() + c.len_utf8() > MAX_HEADING_WIDTH)
            {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
        }
    }
    lines.retain(|l| !l.is_empty());
    lines
}
