//! A report as an article of a page.

use super::figure::{figure, multiples};
use super::table::table;
use crate::disclosure::{Disclosure, FormSection};
use crate::document::{Block, Document, Figure, Figures, Line, LineKind, Section, State, Tone};
use crate::format::local_time;
use crate::html::chart::{Chart, Room};
use maud::{Markup, html};
use plimsoll_plan::Source;

/// Id of the section that a full disclosure replaces.
pub(crate) const UNDISCLOSED: &str = "undisclosed";

/// Ids and headings of an article.
pub(crate) struct ArticleStyle {
    /// Prefix of ids; empty if the article is alone on its page.
    prefix: String,
    /// Whether the article is among others, so that its headings are one level lower.
    nested: bool,
}

impl ArticleStyle {
    /// Style of an article by its position among all articles of the page.
    pub(crate) fn of(position: usize, articles: usize) -> Self {
        let nested = articles > 1;
        let prefix = if nested {
            format!("run-{}", position + 1)
        } else {
            String::new()
        };
        Self { prefix, nested }
    }

    /// Id of the article.
    pub(crate) fn own_id(&self) -> &str {
        match self.prefix.as_str() {
            "" => "run-1",
            prefix => prefix,
        }
    }

    /// Id of a part of the article.
    pub(crate) fn id(&self, part: &str) -> String {
        match self.prefix.as_str() {
            "" => part.to_owned(),
            prefix => format!("{prefix}-{part}"),
        }
    }
}

/// Report as an HTML `article`. A page of several reports omits the commands that make a full disclosure report.
pub(crate) fn article(
    document: &Document,
    style: &ArticleStyle,
    disclosed: Option<(&Disclosure, &[FormSection])>,
) -> Markup {
    let title = html! { (document.title) (badge(document)) };
    let sections = document.sections.iter().chain(&document.appendix);
    let is_shown = |s: &&Section| s.id != UNDISCLOSED || (disclosed.is_none() && !style.nested);
    html! {
        article id=(style.own_id()) {
            header {
                @if style.nested { h2 { (title) } } @else { h1 { (title) } }
                (blocks(&document.head_with_name(), "", style))
            }
            @for s in sections.filter(is_shown) { (section(s, style)) }
            @if let Some((d, sections)) = disclosed { (super::disclosure::section(d, sections, style)) }
        }
    }
}

/// The state of the results as a badge, after a space; empty without a state.
pub(crate) fn badge(document: &Document) -> Markup {
    html! {
        @if let Some(State { text, tone }) = &document.state {
            " " span class=(format!("verdict {}", class(*tone).unwrap_or_default())) { (text) }
        }
    }
}

/// Style sheet class for the tone of a text.
pub(crate) fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some("good"),
        Tone::Doubtful => Some("doubtful"),
        Tone::Bad => Some("bad"),
    }
}

fn section(section: &Section, style: &ArticleStyle) -> Markup {
    let (id, title) = (style.id(section.id), &section.title);
    html! {
        section aria-labelledby=(id) {
            @if style.nested { h3 id=(id) { (title) } } @else { h2 id=(id) { (title) } }
            (blocks(&section.blocks, title, style))
            @if !section.about.is_empty() { p.about { (section.about) } }
        }
    }
}

/// Blocks below a heading as HTML; consecutive lines of one kind form a list.
fn blocks(all: &[Block], heading: &str, style: &ArticleStyle) -> Markup {
    let kind = |block: &Block| match block {
        Block::Line(line) if line.kind == LineKind::Result => Some(LineKind::Result),
        Block::Line(line) if line.kind == LineKind::Code => None,
        Block::Line(line) if line.label.is_empty() && line.kind == LineKind::Plain => None,
        Block::Line(_) => Some(LineKind::Plain),
        _ => None,
    };
    let is_small = |block: &Block| small(block).is_some();
    let same = |a: &Block, b: &Block| match kind(a) {
        None => is_small(a) && is_small(b),
        of_a => of_a == kind(b),
    };
    html! {
        @for group in all.chunk_by(same) {
            @match kind(&group[0]) {
                Some(LineKind::Result) => {
                    dl.tiles { @for line in lines(group) {
                        div { dt { (line.label) } dd class=[class(line.tone)] { (tile_text(&line.text)) } }
                    } }
                }
                Some(_) => { ul.reasons { @for line in lines(group) { (item(line)) } } }
                None if is_small(&group[0]) => {
                    (multiples(&group.iter().filter_map(small).collect::<Vec<_>>(), |id| style.id(id)))
                }
                None => { @for block in group { (single(block, heading, style)) } }
            }
        }
    }
}

/// The chart of a block that is one of several small charts.
fn small(block: &Block) -> Option<&Chart> {
    match block {
        Block::Chart(chart) => Some(&**chart).filter(|chart| chart.room == Room::Small),
        _ => None,
    }
}

fn lines(blocks: &[Block]) -> impl Iterator<Item = &Line> {
    blocks.iter().filter_map(|block| match block {
        Block::Line(line) => Some(line),
        _ => None,
    })
}

fn item(line: &Line) -> Markup {
    html! {
        li.nested[line.kind == LineKind::Nested] {
            @if !line.label.is_empty() { strong { (inline(&line.label)) } ": " }
            @if let Some(class) = class(line.tone) {
                span class=(class) { (inline(&line.text)) }
            } @else {
                (inline(&line.text))
            }
        }
    }
}

fn single(block: &Block, heading: &str, style: &ArticleStyle) -> Markup {
    match block {
        Block::Line(line) if line.kind == LineKind::Code => html! {
            p { @if !line.label.is_empty() { (line.label) ": " } span.mono { (line.text) } }
        },
        Block::Line(line) => html! { p class=[class(line.tone)] { (inline(&line.text)) } },
        Block::Figures(figures) => self::figures(figures),
        Block::Table(of) => table(of, heading),
        Block::Chart(chart) => figure(chart, &style.id(&chart.id)),
        Block::Source(source) => source_text(source),
        Block::Note(note) => html! { p.note { (note) } },
    }
}

/// A text of a sentence, with code in place of pairs of backticks. No line ends inside a number.
pub(super) fn inline(text: &str) -> Markup {
    let text = without_breaks(text, Unbroken::Numbers);
    let pieces: Vec<&str> = text.split('`').collect();
    let is_paired = pieces.len() % 2 == 1;
    html! {
        @for (number, piece) in pieces.iter().enumerate() {
            @if !is_paired && number > 0 { "`" (piece) }
            @else if number % 2 == 1 { code { (piece) } }
            @else { (piece) }
        }
    }
}

/// A text of a tile. No line ends inside a number, or between a number and the next word.
fn tile_text(text: &str) -> Markup {
    match text.contains('`') {
        true => inline(text),
        false => html! { (without_breaks(text, Unbroken::Quantities)) },
    }
}

fn figures(figures: &Figures) -> Markup {
    // Figures of a different kind than the first ones have their kind in their names.
    let name = |name: &str| match figures.label.as_str() {
        "" | "summary" => name.to_owned(),
        label => format!("{label}, {name}"),
    };
    let value = |figure: &Figure| match figure.is_time {
        true => local_time(&figure.value),
        false => figure.value.clone(),
    };
    let items: Vec<(String, String)> = figures
        .items
        .iter()
        .map(|f| (name(&f.name), value(f)))
        .collect();
    if figures.are_results {
        tiles(&items)
    } else {
        facts(&items)
    }
}

/// Definition list of facts, each a name and a value.
pub(super) fn facts<N: AsRef<str>>(facts: &[(N, String)]) -> Markup {
    html! {
        dl.facts { @for (name, value) in facts { div { dt { (name.as_ref()) } dd { (value) } } } }
    }
}

/// Figures in large type with their names.
#[must_use]
pub fn tiles<N: AsRef<str>, V: AsRef<str>>(tiles: &[(N, V)]) -> Markup {
    html! {
        dl.tiles { @for (name, value) in tiles {
            div { dt { (name.as_ref()) } dd { (tile_text(value.as_ref())) } }
        } }
    }
}

/// Place of no-break spaces in a text.
#[derive(Clone, Copy, PartialEq)]
enum Unbroken {
    /// Between the groups of digits of a number, as in `12 345`.
    Numbers,
    /// Also between a number and the next word, as in `5 streams`.
    Quantities,
}

/// A text with no-break spaces instead of the spaces at which no line may end.
fn without_breaks(text: &str, unbroken: Unbroken) -> String {
    let starts_group = |word: &str| word.bytes().take_while(u8::is_ascii_digit).count() == 3;
    let text = text.replace('\u{a0}', " ");
    let mut words = text.split(' ');
    let mut whole = words.next().unwrap_or_default().to_owned();
    for word in words {
        let is_glued = whole.ends_with(|c: char| c.is_ascii_digit())
            && (unbroken == Unbroken::Quantities || starts_group(word));
        whole.push(if is_glued { '\u{a0}' } else { ' ' });
        whole.push_str(word);
    }
    whole
}

/// The text of a workload, collapsed.
fn source_text(source: &Source) -> Markup {
    html! {
        details {
            summary { "Text of " (source.name) }
            pre tabindex="0" { code { (source.text) } }
        }
    }
}
