//! Rendering of a report as text, for a terminal or a file.

use crate::document::{Block, Document, Line, LineKind, Table};
use crate::percentiles::UNCERTAIN_MARK;
use crate::text::{Paint, paragraph, shorten};
use plimsoll_diagnostics::foreign;

/// Minimum width of a report in columns.
const MIN_WIDTH: usize = 60;

/// Columns between two columns of a table.
const GAP: usize = 2;

/// Minimum width of a shortened first column.
const MIN_NAME_WIDTH: usize = 12;

/// Minimum width of a shortened first column in a table with preferred breaks; the table is broken if its first column
/// would have to be narrower.
const LONG_NAME_WIDTH: usize = 36;

/// Indentation of nested lines, and of the lines below the heading.
const INDENT: &str = "  ";

/// Width and colours of a rendered report.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Width of the terminal in columns; a report is at least 60 columns wide.
    pub width: usize,
    /// Whether the report uses ANSI colours.
    pub color: bool,
}

impl Layout {
    /// Layout of a report in a file: 100 columns without colours.
    #[must_use]
    pub fn plain() -> Self {
        Self {
            width: 100,
            color: false,
        }
    }

    /// Width of a report in columns, at least 60.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.width.max(MIN_WIDTH)
    }
}

/// Renders a report as text for a terminal; charts and appendix are left out.
#[must_use]
pub fn render(document: &Document, layout: Layout) -> String {
    let mut out = Text::new(layout);
    out.headline(document);
    document.head.iter().for_each(|b| out.block(b, INDENT));
    // An empty line separates the head from the first section.
    out.after_table = !document.head.is_empty();
    for section in &document.sections {
        section.blocks.iter().for_each(|b| out.block(b, ""));
    }
    if let Some(path) = &document.location {
        let path = out.paint.bold(&path.display().to_string());
        out.text.push_str(&format!("\nresults in {path}\n"));
    }
    if let Some(hint) = &document.resume_hint {
        out.text.push_str(&format!("{hint}\n"));
    }
    out.text
}

/// Renders parts of a report, such as a table.
#[must_use]
pub fn blocks(blocks: &[Block], layout: Layout) -> String {
    let mut out = Text::new(layout);
    blocks.iter().for_each(|b| out.block(b, ""));
    out.text
}

/// Text of a report while it is rendered.
struct Text {
    text: String,
    columns: usize,
    paint: Paint,
    /// Whether the last block was a table, which an empty line separates from the next block.
    after_table: bool,
}

impl Text {
    fn new(layout: Layout) -> Self {
        Self {
            text: String::new(),
            columns: layout.columns(),
            paint: Paint(layout.color),
            after_table: false,
        }
    }

    fn headline(&mut self, document: &Document) {
        let title = self.paint.bold(&document.title);
        let state = document.state.as_ref();
        let state = state.map(|s| format!(": {}", self.paint.tone(s.tone, &s.text)));
        let state = state.unwrap_or_default();
        self.text.push_str(&format!("{title}{state}\n"));
    }

    fn block(&mut self, block: &Block, indent: &str) {
        match block {
            Block::Chart(_) | Block::Source(_) => {}
            Block::Table(table) => {
                if !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.table(table);
                self.after_table = true;
            }
            Block::Line(line) => {
                self.end_table();
                self.line(line, indent);
            }
            Block::Figures(figures) => {
                self.end_table();
                let label = label(indent, &figures.label);
                self.paragraph(&label, &figures.words());
            }
            Block::Note(note) => {
                self.end_table();
                for (i, line) in note.lines().enumerate() {
                    let head = if i == 0 { "note: " } else { "      " };
                    let line = foreign::escaped_lines(line);
                    self.text.push_str(&format!("{indent}{head}{line}\n"));
                }
            }
        }
    }

    /// Writes the empty line between a table and the next text.
    fn end_table(&mut self) {
        if std::mem::take(&mut self.after_table) {
            self.text.push('\n');
        }
    }

    fn line(&mut self, line: &Line, indent: &str) {
        let is_nested = line.kind == LineKind::Nested;
        let nested = if is_nested { INDENT } else { "" };
        let label = label(&format!("{indent}{nested}"), &line.label);
        if line.kind == LineKind::Code {
            let text = foreign::escaped(&line.text);
            self.text.push_str(&format!("{label}{text}\n"));
        } else {
            self.paragraph(&label, &line.text);
        }
    }

    fn paragraph(&mut self, label: &str, text: &str) {
        paragraph(&mut self.text, label, text, self.columns);
    }

    /// Renders a table, in several parts if the table is too wide.
    fn table(&mut self, table: &Table) {
        let has_words = table.columns_of_words();
        let columns = has_words.iter().enumerate();
        let columns: Vec<Vec<String>> =
            columns.map(|(i, words)| column(table, i, *words)).collect();
        let mut widths: Vec<usize> = columns
            .iter()
            .map(|cells| cells.iter().map(|c| c.chars().count()).max().unwrap_or(0))
            .collect();
        if widths.is_empty() {
            return;
        }
        let parts = parts(&mut widths, &table.breaks, self.columns);
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                self.text.push('\n');
            }
            for (row, name) in columns[0].iter().enumerate() {
                let name = shorten(name, widths[0]);
                let mut line = format!("{name:<0$}", widths[0]);
                for i in part.clone() {
                    let (cell, width) = (&columns[i][row], widths[i]);
                    line.push_str(&" ".repeat(GAP));
                    line.push_str(&if has_words[i] {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    });
                }
                let line = line.trim_end();
                // If a table is broken into parts, each part omits rows without a value in the part, such as the row of
                // service times in the part with the counts.
                let shown = part.clone().any(|i| !columns[i][row].trim().is_empty());
                if row == 0 {
                    self.text.push_str(&self.paint.bold(line));
                } else if shown || part.is_empty() {
                    self.text.push_str(line);
                } else {
                    continue;
                }
                self.text.push('\n');
            }
        }
        for note in &table.notes {
            self.paragraph(INDENT, note);
        }
    }
}

fn label(indent: &str, label: &str) -> String {
    if label.is_empty() {
        indent.to_owned()
    } else {
        format!("{indent}{}: ", foreign::escaped(label))
    }
}

/// Splits a table that is wider than `room` into parts: one range of columns per part, without the first column, which
/// every part repeats. The table's first column is shortened if a shorter column reduces the number of parts.
fn parts(widths: &mut [usize], breaks: &[usize], room: usize) -> Vec<std::ops::Range<usize>> {
    let whole = 1..widths.len();
    let wide = |part: &std::ops::Range<usize>, widths: &[usize]| -> usize {
        part.clone().map(|i| GAP + widths[i]).sum()
    };
    let excess = (widths[0] + wide(&whole, widths)).saturating_sub(room);
    let least = if breaks.is_empty() {
        MIN_NAME_WIDTH
    } else {
        LONG_NAME_WIDTH
    };
    if excess == 0 || widths[0] >= least + excess {
        widths[0] -= excess;
        return vec![whole];
    }
    let mut groups = Vec::new();
    let mut from = 1;
    for at in breaks.iter().copied().chain([widths.len()]) {
        groups.push(from..at);
        from = at;
    }
    let widest = groups.iter().map(|g| wide(g, widths)).max().unwrap_or(0);
    if MIN_NAME_WIDTH.min(widths[0]) + widest <= room {
        widths[0] = widths[0].min(room - widest);
        return groups;
    }
    widths[0] = widths[0].min(MIN_NAME_WIDTH);
    let mut parts = Vec::new();
    for group in groups {
        let mut from = group.start;
        let mut taken = widths[0];
        for i in group.clone() {
            taken += GAP + widths[i];
            if taken > room && i > from {
                parts.push(from..i);
                from = i;
                taken = widths[0] + GAP + widths[i];
            }
        }
        parts.push(from..group.end);
    }
    parts
}

/// Heading and cells of a column, escaped, and padded so that right-aligned numbers line up.
fn column(table: &Table, i: usize, has_words: bool) -> Vec<String> {
    let head = table.head[i].clone();
    let cells = table.rows.iter().map(|row| {
        let nested = if i == 0 && row.nested { INDENT } else { "" };
        // Escaped before the widths are computed, because escapes take columns.
        format!("{nested}{}", foreign::escaped(&row.cells[i].text))
    });
    let mut cells: Vec<String> = cells.collect();
    if !has_words {
        align(&mut cells);
    }
    std::iter::once(head).chain(cells).collect()
}

/// Pads figures with short units of time or without marks, so that the numbers of the column line up.
fn align(cells: &mut [String]) {
    let split = |cell: &str| {
        let significance = [" *", " ~", " !"];
        let bare = significance.iter().find_map(|m| cell.strip_suffix(m));
        let bare = bare.unwrap_or(cell);
        let bare = bare.strip_suffix(UNCERTAIN_MARK).unwrap_or(bare);
        bare.len()
    };
    let time = |cell: &str| ["ns", "µs", "ms"].iter().any(|u| cell.ends_with(u));
    let short_units = cells.iter().any(|c| time(&c[..split(c)]));
    let marks = cells.iter().map(|c| c.len() - split(c)).max().unwrap_or(0);
    for cell in cells.iter_mut().filter(|c| !c.is_empty()) {
        let at = split(cell);
        let missing = marks - (cell.len() - at);
        cell.push_str(&" ".repeat(missing));
        if short_units && cell[..at].ends_with(" s") {
            cell.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(head: &[&str], rows: &[&[&str]], breaks: &[usize], width: usize) -> String {
        let rows = rows.iter();
        let rows = rows.map(|row| row.iter().map(|c| (*c).to_owned()).collect());
        let of = Table::new("", head.iter().copied()).with_rows(rows);
        let of = Table {
            breaks: breaks.to_vec(),
            ..of
        };
        let color = false;
        blocks(&[Block::Table(of)], Layout { width, color })
    }

    #[test]
    fn numbers_line_up() {
        let rows: [&[&str]; 4] = [
            &["a", "1.00 s"],
            &["b", "20.0 ms?"],
            &["c", "-"],
            &["d", "1.11 s?"],
        ];
        assert_eq!(
            shown(&["of", "p99"], &rows, &[], 80),
            "of       p99\na   1.00 s\nb   20.0 ms?\nc         -\nd   1.11 s?\n"
        );
        let changes: [&[&str]; 2] = [&["a", "+1.0 %"], &["b", "-20.0 % *"]];
        assert_eq!(
            shown(&["of", "change"], &changes, &[], 80),
            "of     change\na    +1.0 %\nb   -20.0 % *\n"
        );
    }

    #[test]
    fn a_wide_table_is_broken_where_it_says_or_anywhere() {
        let long = "0123456789012345678901234567";
        let rows: [&[&str]; 1] = [&["a", long, "1", long]];
        let head = ["of", "x", "y", "z"];
        assert_eq!(
            shown(&head, &rows, &[2], 60),
            format!(
                "of                             x\na   {long}\n\nof  y                             z\na   1  {long}\n"
            )
        );
        let free = shown(&head, &rows, &[], 60);
        assert_eq!(free.lines().filter(|l| l.starts_with("of")).count(), 2);
        assert!(free.lines().all(|l| l.chars().count() <= 60), "{free}");
    }
}
