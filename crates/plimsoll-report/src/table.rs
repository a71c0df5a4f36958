//! Tables: the first column left-aligned, the others right-aligned, two spaces between.

use crate::text::{Paint, shorten};
use plimsoll_diagnostics::foreign;

/// Columns between two columns of a table.
const GAP: usize = 2;

/// Minimum width of a shortened first column.
const MIN_NAME_WIDTH: usize = 12;

/// A table.
pub(crate) struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<S: AsRef<str>>(head: &[S]) -> Self {
        Self {
            head: head.iter().map(|h| h.as_ref().to_owned()).collect(),
            rows: vec![],
        }
    }

    /// Adds a row; cells that are missing at its end are empty.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        // Before the widths are computed: escapes take columns.
        let shown = cells.iter().map(|c| foreign::escaped(c).into_owned());
        self.rows.push(shown.collect());
    }

    /// Width of the table in columns.
    pub(crate) fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
    }

    fn widths(&self) -> Vec<usize> {
        let cells = |i: usize| self.rows.iter().filter_map(move |r| r.get(i));
        let heads = self.head.iter().enumerate();
        heads
            .map(|(i, head)| {
                let longest = cells(i).map(|c| c.chars().count()).max().unwrap_or(0);
                longest.max(head.chars().count())
            })
            .collect()
    }

    /// Appends the table; the first column is shortened if the table would exceed `width`.
    pub(crate) fn render(&self, out: &mut String, width: usize, paint: Paint) {
        let mut widths = self.widths();
        let excess = self.width().saturating_sub(width);
        if excess > 0 {
            widths[0] = widths[0].saturating_sub(excess).max(MIN_NAME_WIDTH);
        }
        let line = |cells: &[String]| {
            let mut line = String::new();
            for (i, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                if i == 0 {
                    line.push_str(&format!("{:<width$}", shorten(cell, *width)));
                } else {
                    line.push_str(&format!("{:GAP$}{cell:>width$}", ""));
                }
            }
            line.trim_end().to_owned()
        };
        out.push_str(&paint.bold(&line(&self.head)));
        out.push('\n');
        for row in &self.rows {
            out.push_str(&line(row));
            out.push('\n');
        }
    }
}
