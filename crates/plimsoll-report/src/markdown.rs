//! A report as Markdown, for issues and wikis.

use crate::document::{Block, Document, Figures, Line, LineKind, State, Table, Tone};
use plimsoll_diagnostics::foreign;

pub use plimsoll_plan::{SCALED, scaled};

/// Mark before the name of a nested table row.
const NESTED: &str = "↳ ";

/// The report, without its charts and its appendix.
#[must_use]
pub fn render(document: &Document) -> String {
    let title = escaped(&document.title);
    let state = document
        .state
        .as_ref()
        .map(|State { text, .. }| escaped(text));
    let state = state.map_or_else(String::new, |state| format!(": {state}"));
    let mut out = format!("## {title}{state}\n");
    blocks(&mut out, &document.head_with_name());
    for section in &document.sections {
        let mut content = String::new();
        blocks(&mut content, &section.blocks);
        if !content.is_empty() {
            out.push_str(&format!("\n### {}\n{content}", escaped(&section.title)));
        }
        if !section.about.is_empty() && !content.is_empty() {
            out.push_str(&format!("\n{}\n", section.about));
        }
    }
    out
}

/// Blocks, separated by an empty line except between items of a list.
fn blocks(out: &mut String, blocks: &[Block]) {
    let mut in_list = false;
    for block in blocks {
        let (text, is_item) = match block {
            Block::Chart(_) | Block::Source(_) => continue,
            Block::Line(line) => self::line(line),
            Block::Figures(figures) => self::figures(figures),
            Block::Table(table) => (self::table(table), false),
            Block::Note(note) => {
                // A paragraph for each line keeps the line breaks.
                let lines = note.lines().map(|line| format!("> {}\n", escaped(line)));
                (lines.collect::<Vec<_>>().join(">\n"), false)
            }
        };
        if !(in_list && is_item) {
            out.push('\n');
        }
        out.push_str(&text);
        in_list = is_item;
    }
}

/// A line, and whether the line is an item of a list.
fn line(line: &Line) -> (String, bool) {
    let text = if line.kind == LineKind::Code {
        code(&line.text)
    } else {
        escaped(&line.text)
    };
    let text = match line.tone {
        Tone::Plain => text,
        Tone::Good | Tone::Doubtful | Tone::Bad => format!("**{text}**"),
    };
    let is_nested = line.kind == LineKind::Nested;
    if line.label.is_empty() && !is_nested {
        return (text + "\n", false);
    }
    let indent = if is_nested { "  " } else { "" };
    let label = match line.label.as_str() {
        "" => String::new(),
        label => format!("**{}**: ", escaped(label)),
    };
    (format!("{indent}- {label}{text}\n"), true)
}

fn figures(figures: &Figures) -> (String, bool) {
    let words = escaped(&figures.words());
    match figures.label.as_str() {
        "" => (words + "\n", false),
        label => (format!("- **{}**: {words}\n", escaped(label)), true),
    }
}

/// A table with right-aligned numbers, and its notes.
fn table(table: &Table) -> String {
    let heads: Vec<String> = table.head.iter().map(|h| escaped(h)).collect();
    let mut out = format!("| {} |\n", heads.join(" | "));
    for has_words in table.columns_of_words() {
        out.push_str(if has_words { "|:--" } else { "|--:" });
    }
    out.push_str("|\n");
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().map(|c| escaped(&c.text)).collect();
        let nested = if row.nested { NESTED } else { "" };
        out.push_str(&format!("| {nested}{} |\n", cells.join(" | ")));
    }
    for note in &table.notes {
        out.push_str(&format!("\n{}\n", escaped(note)));
    }
    out
}

/// A name in backquotes, which permit no escapes inside.
fn code(name: &str) -> String {
    let plain = |c: char| match c {
        '`' => '\'',
        c if foreign::is_unprintable(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    format!("`{}`", name.chars().map(plain).collect::<String>())
}

/// Escapes a text for Markdown, and for the HTML that Markdown may contain.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\r' | '\t' | '\u{a0}' => out.push(' '),
            c if foreign::is_unprintable(c) => out.push(char::REPLACEMENT_CHARACTER),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
