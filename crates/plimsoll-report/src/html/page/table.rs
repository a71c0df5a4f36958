//! Tables on a page.

use super::article::{class, inline};
use crate::document::{Cell, Row, Table};
use maud::{Markup, html};

/// Maximum number of rows of a table that is not collapsed.
const MAX_OPEN_ROWS: usize = 200;

/// Maximum length of a cell's text that stays on one line, in characters.
const MAX_ONE_LINE: usize = 24;

/// A table whose first cells are row headings, with the notes below. The caption is hidden if the heading above the
/// table, or the heading of the first column, has the caption's text.
pub(crate) fn table(table: &Table, heading: &str) -> Markup {
    html! {
        @if table.rows.len() > MAX_OPEN_ROWS {
            details { summary { (table.caption) } (open(table, heading)) }
        } @else {
            (open(table, heading))
        }
        @for note in &table.notes { p.about { (inline(note)) } }
    }
}

fn open(table: &Table, heading: &str) -> Markup {
    let is_said = table.caption == heading || table.head.first() == Some(&table.caption);
    let has_words = table.columns_of_words();
    // A row begins an entry of the table, and its details follow.
    let rows: Vec<(usize, &Row)> = table.rows.iter().enumerate().collect();
    let entries = rows.chunk_by(|_, (_, next)| next.nested);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.caption) {
            table {
                @if !is_said { caption { (table.caption) } }
                thead { tr { @for (h, words) in table.head.iter().zip(&has_words) {
                    th class=[words.then_some("word")] scope="col" { (h) }
                } } }
                @if table.folded.is_empty() {
                    tbody { @for r in &table.rows { (row(r, &has_words, Fold::None)) } }
                } @else {
                    @for entry in entries { (unfolding(entry, table, &has_words)) }
                }
            }
        }
    }
}

/// An entry of a table, with the rows that the entry stands for.
fn unfolding(entry: &[(usize, &Row)], table: &Table, has_words: &[bool]) -> Markup {
    let folded = table.folded.get(&entry[0].0);
    html! {
        tbody {
            @for (number, (_, r)) in entry.iter().enumerate() {
                @let fold = if number == 0 && folded.is_some() { Fold::Button } else { Fold::None };
                (row(r, has_words, fold))
            }
            @for r in folded.into_iter().flatten() { (row(r, has_words, Fold::Hidden)) }
        }
    }
}

/// Role of a row in an entry that unfolds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    /// The row is always shown.
    None,
    /// The row has the button that shows other rows.
    Button,
    /// The row is shown on request.
    Hidden,
}

fn row(row: &Row, has_words: &[bool], fold: Fold) -> Markup {
    let is_hidden = fold == Fold::Hidden;
    html! {
        tr class=[is_hidden.then_some("folded")] hidden[is_hidden] {
            @for (i, Cell { text, tone }) in row.cells.iter().enumerate() {
                @let long = (text.chars().count() > MAX_ONE_LINE).then_some("long");
                @if i == 0 {
                    @let nested = (row.nested || is_hidden).then_some("nested");
                    th class=[classes([nested, long])] scope="row" {
                        @if fold == Fold::Button {
                            button.unfold type="button" aria-expanded="false" { (text) }
                        } @else {
                            (text)
                        }
                    }
                } @else {
                    @let word = has_words[i].then_some("word");
                    td class=[classes([class(*tone).or(word), long])] { (text) }
                }
            }
        }
    }
}

/// Value of the attribute `class`; `None` without classes.
fn classes(all: [Option<&'static str>; 2]) -> Option<String> {
    let all: Vec<&str> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" "))
}
