//! Tables on a page.

use super::article::class;
use crate::document::{Cell, Row, Table};
use maud::{Markup, html};

/// Maximum number of rows of a table that is not collapsed.
const MAX_OPEN_ROWS: usize = 200;

/// A table whose first cells are row headings, with the notes below.
pub(crate) fn table(table: &Table) -> Markup {
    html! {
        @if table.rows.len() > MAX_OPEN_ROWS {
            details { summary { (table.caption) } (open(table)) }
        } @else {
            (open(table))
        }
        @for note in &table.notes { p.about { (note) } }
    }
}

fn open(table: &Table) -> Markup {
    let has_words = table.columns_of_words();
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.caption) {
            table {
                caption { (table.caption) }
                thead { tr { @for h in &table.head { th scope="col" { (h) } } } }
                tbody { @for r in &table.rows { (row(r, &has_words)) } }
            }
        }
    }
}

fn row(row: &Row, has_words: &[bool]) -> Markup {
    html! {
        tr {
            @for (i, Cell { text, tone }) in row.cells.iter().enumerate() {
                @if i == 0 {
                    th class=[row.nested.then_some("nested")] scope="row" { (text) }
                } @else {
                    td class=[class(*tone).or(has_words[i].then_some("word"))] { (text) }
                }
            }
        }
    }
}
