//! Table of load points in the ASCII form of a disclosure report.

use crate::disclosure::import::INVALID_MARK;
use crate::disclosure::model::Disclosure;
use crate::document::Row;

/// Maximum width of a heading: the page has room for four headings of this width, spaces and the mark of an invalid
/// point.
const MAX_HEADING_WIDTH: usize = 16;

/// Minimum width of a column of the table of load points, in characters.
const MIN_COLUMN_WIDTH: usize = 12;

impl Disclosure {
    /// Appends the table of load points to a report's text. A mark follows the row of an invalid load point.
    pub(super) fn push_points(&self, out: &mut String) {
        let cells = |row: &Row| row.cells.iter().map(|c| c.text.clone()).collect();
        let rows: Vec<Vec<String>> = self.performance().rows.iter().map(cells).collect();
        let heads = self.headings();
        let height = heads.iter().map(Vec::len).max().unwrap_or(0);
        let heading = |i: usize| -> Vec<String> {
            // Headings are aligned at the bottom.
            let of = |head: &Vec<String>| (i + head.len()).checked_sub(height);
            let lines = heads.iter().map(|h| of(h).map(|i| h[i].clone()));
            lines.map(Option::unwrap_or_default).collect()
        };
        let mut lines: Vec<Vec<String>> = (0..height).map(heading).collect();
        let width = |column: usize| {
            let longest = lines.iter().chain(&rows).map(|l| l[column].len()).max();
            longest.unwrap_or(0).max(MIN_COLUMN_WIDTH)
        };
        let widths: Vec<usize> = (0..heads.len()).map(width).collect();
        lines.push(widths.iter().map(|w| "-".repeat(*w)).collect());
        for line in lines.iter().chain(&rows) {
            let cells = line.iter().zip(&widths);
            let mut cells: Vec<String> = cells.map(|(c, width)| format!("{c:>width$}")).collect();
            cells.extend(line.last().filter(|c| *c == INVALID_MARK).cloned());
            out.push_str(&format!("{}\n", cells.join(" ").trim_end()));
        }
    }

    /// Headings of the columns of the table of load points, each broken into lines.
    fn headings(&self) -> Vec<Vec<String>> {
        let lines = |words: &[&str], last: Vec<String>| -> Vec<String> {
            words.iter().map(|w| (*w).to_owned()).chain(last).collect()
        };
        let unit = pieces(&format!("({})", self.unit));
        let of_unit = |name: &str| [pieces(&self.unit), vec![name.to_owned()]].concat();
        match self.has_rates() {
            true => vec![
                lines(&["Business", "Metric"], unit),
                lines(&["Average", "Latency", "(msec)"], vec![]),
                of_unit("Ops/Sec"),
                of_unit("MB/Sec"),
            ],
            false => vec![
                lines(&["Throughput"], unit),
                lines(&["Response", "(msec)"], vec![]),
            ],
        }
    }
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
