//! Model of a report: built once for each kind of results, rendered by format.
//!
//! All formats show the lines, figures, tables and notes of the sections. Only pages show captions, the texts of
//! workloads and the appendix; only pages and pictures show charts. The terminal leaves out headings and explanations
//! ([`Section::about`]).
//!
//! Texts are plain: each format escapes a text when rendering or printing it. A no-break space keeps words on one line
//! of a terminal; other formats write a space.

use crate::html::chart::Chart;
use crate::html::name_of;
use crate::markdown::SCALED;
use crate::text::list;
use plimsoll_plan::{Note, Source, counted};
use plimsoll_results::{
    Annotations, PromiseResult, Qualifier, QualifierKind, Reason, Series, SeriesDir, Verdict,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Report on results of any kind: the one source of the terminal, Markdown and HTML renderings.
#[derive(Debug, Clone, Default)]
pub struct Document {
    /// Name of the results directory; empty if the results are in no directory.
    pub name: String,
    /// Heading of the report, such as the name of the workload.
    pub title: String,
    /// Verdict of a run or state of a series, beside the heading; `None` if the results have neither.
    pub state: Option<State>,
    /// Reasons of the verdict and facts about the run, below the report's heading.
    pub head: Vec<Block>,
    /// Sections of the report, in the order in which every format shows the sections.
    pub sections: Vec<Section>,
    /// Sections with details and circumstances of the runs, such as the environment; only HTML pages and
    /// `report --details` show the appendix.
    pub appendix: Vec<Section>,
    /// Path of the results directory, which only the terminal shows; `None` if results are in no directory.
    pub location: Option<PathBuf>,
    /// Command that resumes a series, which only the terminal shows; `None` if no runs are missing.
    pub resume_hint: Option<String>,
}

/// Verdict of a run or state of a series in words, with a colour.
#[derive(Debug, Clone)]
pub struct State {
    /// Verdict of a run or state of a series in words, such as `valid` or `2 of 3 runs`.
    pub text: String,
    /// Whether the verdict or state is good, doubtful or bad.
    pub tone: Tone,
}

/// Meaning of the colour of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// No meaning: the colour of the surrounding text.
    #[default]
    Plain,
    /// Good; for a change of a figure, better.
    Good,
    /// To be read with care.
    Doubtful,
    /// Bad; for a change of a figure, worse.
    Bad,
}

/// Section of a report, with an explanation of its figures.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Anchor of the section in links.
    pub id: &'static str,
    /// Heading of the section, which the terminal leaves out.
    pub title: String,
    /// Explanation of the section's figures, which the terminal leaves out; may be empty.
    pub about: &'static str,
    /// Lines, figures, tables, charts and notes of the section, from top to bottom.
    pub blocks: Vec<Block>,
}

/// Smallest unit of a report's layout: a line, a list of figures, a table, a chart, or a text.
#[derive(Debug, Clone)]
pub enum Block {
    /// A sentence, or several words.
    Line(Line),
    /// Several named figures on one subject, such as the settings of a run.
    Figures(Figures),
    /// A table, with its caption and the notes below the table.
    Table(Table),
    /// A chart, which only HTML pages and separate pictures show.
    Chart(Box<Chart>),
    /// Source text of a workload, which only HTML pages show.
    Source(Source),
    /// The user's note on the results (`annotations.json`), with the note's line breaks.
    Note(String),
}

/// A sentence, or several words.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// Word before the line's text that names the subject of the line, such as `target`; may be empty.
    pub label: String,
    /// Unescaped text of the line: each format escapes the text when rendering.
    pub text: String,
    /// Whether the line states something good, doubtful or bad, which decides its colour.
    pub tone: Tone,
    /// Role of the line, such as a main result or a detail.
    pub kind: LineKind,
}

/// Role of a line, which decides how each format shows the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineKind {
    /// Ordinary line: neither a main result, nor a detail, nor program output.
    #[default]
    Plain,
    /// One of the main results, which a page shows in large type.
    Result,
    /// A detail of the preceding statement.
    Nested,
    /// Output in the form of another program, which is not wrapped.
    Code,
}

/// Several figures or facts on one subject, which the terminal shows as one line.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Word before the figures that names their subject; may be empty.
    pub label: String,
    /// Whether the figures are results, rather than circumstances of the run.
    pub are_results: bool,
    /// Figures and facts on the subject, in the order of the report.
    pub items: Vec<Figure>,
}

/// Named figure or fact in a report, such as `1200 ops/s` or `seed 7`.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Name of the fact, or unit of the figure.
    pub name: String,
    /// Formatted number of the figure, or the fact in words.
    pub value: String,
    /// Whether `name` is a unit, which follows the value.
    pub is_unit: bool,
    /// Whether the value is a time of day in UTC, beside which a page shows the local time.
    pub is_time: bool,
}

/// Table of a report: rows of text cells, with a caption and notes.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Content of the table in a phrase.
    pub caption: String,
    /// Headings of the table's columns.
    pub head: Vec<String>,
    /// Rows of the table, each with a cell for each column.
    pub rows: Vec<Row>,
    /// Indices of the columns before which a terminal preferably breaks a table that is too wide. A table without
    /// indices, or a part that is still too wide, is broken before any column.
    pub breaks: Vec<usize>,
    /// Sentences below the table that explain marks and columns.
    pub notes: Vec<String>,
    /// Rows that a row stands for, by the index of the row. A page shows the rows on request, and
    /// [`Document::with_details`] in the table.
    pub folded: BTreeMap<usize, Vec<Row>>,
}

/// Row of a report's table: a cell for each column; a nested row is a detail of the preceding row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Cells of the row, one for each column of the table.
    pub cells: Vec<Cell>,
    /// Whether the row is a detail of the preceding row.
    pub nested: bool,
}

/// Cell of a report's table: a text, and the meaning of the text's colour.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Unescaped text of the cell; empty if the row has no value for the column.
    pub text: String,
    /// Whether the cell's value is good, doubtful or bad, which decides its colour.
    pub tone: Tone,
}

impl Document {
    /// A report with a title and a state, without content.
    #[must_use]
    pub fn new(title: impl Into<String>, state: impl Into<String>, tone: Tone) -> Self {
        Self {
            title: title.into(),
            state: Some(State {
                text: state.into(),
                tone,
            }),
            ..Self::default()
        }
    }

    /// Adds a section unless it is empty.
    pub fn section(&mut self, id: &'static str, title: &str, blocks: Vec<Block>) -> &mut Self {
        self.sections.extend(Section::new(id, title, blocks));
        self
    }

    /// Adds a section with an explanation of its figures, unless the section is empty.
    pub fn explained_section(
        &mut self,
        id: &'static str,
        title: &str,
        about: &'static str,
        blocks: Vec<Block>,
    ) -> &mut Self {
        let section = Section::new(id, title, blocks);
        self.sections
            .extend(section.map(|section| Section { about, ..section }));
        self
    }

    /// Adds a section to the appendix unless it is empty.
    pub fn append(&mut self, id: &'static str, title: &str, blocks: Vec<Block>) -> &mut Self {
        self.appendix.extend(Section::new(id, title, blocks));
        self
    }

    /// The document with its appendix among the sections, and with all rows of its tables.
    #[must_use]
    pub fn with_details(mut self) -> Self {
        self.sections.append(&mut self.appendix);
        let blocks = self.sections.iter_mut().flat_map(|s| &mut s.blocks);
        for block in blocks {
            if let Block::Table(table) = block {
                table.unfold();
            }
        }
        self
    }

    /// Sets the location to the directory of a run.
    #[must_use]
    pub fn at(mut self, path: Option<&Path>) -> Self {
        self.location = path.map(Path::to_owned);
        self
    }

    /// Sets the location to the directory of a series, and the name if the report has none.
    #[must_use]
    pub fn of_series(mut self, series: &Series, dir: Option<&SeriesDir>) -> Self {
        if let Some(dir) = dir
            && self.name.is_empty()
        {
            self.name = name_of(dir.path());
        }
        let left = dir.filter(|_| series.state.can_resume());
        self.resume_hint = left.map(SeriesDir::resume_hint);
        self.at(dir.map(SeriesDir::path))
    }

    /// Sets the name of the results directory.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The head with the name of the results directory among the facts, for formats that do not show the location.
    pub(crate) fn head_with_name(&self) -> Vec<Block> {
        let mut head = self.head.clone();
        if self.name.is_empty() {
            return head;
        }
        let named = Figure::new("results", &self.name);
        let facts = head.iter_mut().find_map(|block| match block {
            Block::Figures(figures) => Some(figures),
            _ => None,
        });
        match facts {
            Some(figures) => figures.items.push(named),
            None => head.push(Block::facts(vec![named])),
        }
        head
    }

    /// Adds the user's tags and note.
    #[must_use]
    pub fn annotated(mut self, annotations: &Annotations) -> Self {
        if !annotations.tags.is_empty() {
            self.head.push(Line::of("tags", annotations.tag_list()));
        }
        if !annotations.note.is_empty() {
            self.head.push(Block::Note(annotations.note.clone()));
        }
        self
    }

    /// The charts as separate pictures. With `is_scaled`, each title states that the result cannot be compared.
    #[must_use]
    pub fn charts(&self, is_scaled: bool) -> Vec<Chart> {
        let blocks = self.sections.iter().flat_map(|s| &s.blocks);
        let charts = blocks.filter_map(|block| match block {
            Block::Chart(chart) => Some((**chart).clone()),
            _ => None,
        });
        let titled = charts.map(|mut chart| {
            if is_scaled {
                chart.title = format!("{} ({SCALED})", chart.title);
            }
            chart
        });
        titled.collect()
    }
}

impl Section {
    fn new(id: &'static str, title: &str, blocks: Vec<Block>) -> Option<Self> {
        (!blocks.is_empty()).then(|| Self {
            id,
            title: title.into(),
            about: "",
            blocks,
        })
    }
}

impl Block {
    /// A sentence without a label.
    pub fn sentence(text: impl Into<String>) -> Self {
        Line::of("", text)
    }

    /// A sentence to be read with care.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::Line(Line {
            text: text.into(),
            tone: Tone::Doubtful,
            ..Line::default()
        })
    }

    /// Circumstances of the run, as figures.
    #[must_use]
    pub fn facts(items: Vec<Figure>) -> Self {
        Self::Figures(Figures {
            label: String::new(),
            are_results: false,
            items,
        })
    }

    /// Results, as figures with a label.
    pub fn results(label: &str, items: Vec<Figure>) -> Self {
        Self::Figures(Figures {
            label: label.into(),
            are_results: true,
            items,
        })
    }

    /// The table as a block; `None` without rows.
    #[must_use]
    pub fn table(table: Table) -> Option<Self> {
        (!table.rows.is_empty()).then_some(Self::Table(table))
    }

    /// A line for each reason.
    pub fn reasons(reasons: &[Reason]) -> impl Iterator<Item = Self> {
        reasons.iter().map(|r| Line::of(&r.code, &r.text))
    }

    /// A line for each promise: a tick for a kept promise or a cross for a broken promise, the promise and the figure.
    pub fn promises(promises: &[PromiseResult]) -> impl Iterator<Item = Self> {
        promises.iter().map(|result| {
            let (mark, tone) = if result.kept {
                ('✓', Tone::Good)
            } else {
                ('✗', Tone::Bad)
            };
            Self::Line(Line {
                label: format!("{mark} {}", result.promise()),
                text: result.text.clone(),
                tone,
                ..Line::default()
            })
        })
    }

    /// A line for each qualifier that no reason states, to be read with care unless each single run has the qualifier.
    pub fn qualifiers<'a>(
        qualifiers: &'a [Qualifier],
        reasons: &'a [Reason],
    ) -> impl Iterator<Item = Self> + use<'a> {
        Qualifier::beside(qualifiers, reasons).map(|q| {
            Self::Line(Line {
                label: q.kind.to_string(),
                text: q.text.clone(),
                tone: if q.kind == QualifierKind::OneRun {
                    Tone::Plain
                } else {
                    Tone::Doubtful
                },
                ..Line::default()
            })
        })
    }

    /// A line for each note.
    pub fn notes(notes: &[Note]) -> impl Iterator<Item = Self> {
        notes.iter().map(|note| {
            let text = match &note.location {
                Some(at) => format!("{} ({at})", note.text),
                None => note.text.clone(),
            };
            Line::of("note", text)
        })
    }

    /// A block for each chart.
    pub fn charts(charts: Vec<Chart>) -> Vec<Self> {
        let charts = charts.into_iter();
        charts.map(|c| Self::Chart(Box::new(c))).collect()
    }
}

impl Line {
    /// A plain line of a label and a text.
    pub fn of(label: impl Into<String>, text: impl Into<String>) -> Block {
        Self::of_kind(LineKind::Plain, label, text)
    }

    /// A line with a main result.
    pub fn result(label: impl Into<String>, text: impl Into<String>) -> Block {
        Self::of_kind(LineKind::Result, label, text)
    }

    /// A line with a detail of the preceding statement.
    pub fn nested(label: impl Into<String>, text: impl Into<String>) -> Block {
        Self::of_kind(LineKind::Nested, label, text)
    }

    /// A line in the form of another program's output.
    pub fn code(label: impl Into<String>, text: impl Into<String>) -> Block {
        Self::of_kind(LineKind::Code, label, text)
    }

    fn of_kind(kind: LineKind, label: impl Into<String>, text: impl Into<String>) -> Block {
        Block::Line(Self {
            label: label.into(),
            text: text.into(),
            tone: Tone::Plain,
            kind,
        })
    }
}

impl Figure {
    /// A named value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            is_unit: false,
            is_time: false,
        }
    }

    /// A figure whose value is a time of day in UTC (RFC 3339).
    pub fn time(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            is_time: true,
            ..Self::new(name, value)
        }
    }

    /// A value with its unit as the name.
    pub fn unit(value: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            is_unit: true,
            ..Self::new(unit, value)
        }
    }

    /// A count with its noun, in the singular or plural.
    #[must_use]
    pub fn count(n: u64, one: &str, many: &str) -> Self {
        let words = counted(n, one, many);
        let name = if n == 1 { one } else { many };
        let value = words.strip_suffix(name).unwrap_or(&words);
        Self::unit(value.trim_end(), name)
    }

    /// The figure in words.
    #[must_use]
    pub fn phrase(&self) -> String {
        let (name, value) = (&self.name, &self.value);
        if self.is_unit {
            format!("{value} {name}")
        } else {
            format!("{name} {value}")
        }
    }
}

impl Figures {
    /// The figures as one text, in which each result stays on one line.
    #[must_use]
    pub fn words(&self) -> String {
        let phrases: Vec<String> = self.items.iter().map(Figure::phrase).collect();
        if self.are_results {
            list(&phrases, ", ")
        } else {
            phrases.join(", ")
        }
    }
}

impl Table {
    /// A table with a caption and column names, without rows.
    pub fn new<S: Into<String>>(caption: &str, head: impl IntoIterator<Item = S>) -> Self {
        Self {
            caption: caption.into(),
            head: head.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Inserts the rows that a row stands for below the row and its details.
    fn unfold(&mut self) {
        for (at, rows) in std::mem::take(&mut self.folded).into_iter().rev() {
            let details = self.rows[at + 1..].iter().take_while(|row| row.nested);
            let end = at + 1 + details.count();
            let nested = true;
            let rows = rows.into_iter().map(|row| Row { nested, ..row });
            self.rows.splice(end..end, rows);
        }
    }

    /// Whether each column contains words, which are left-aligned, rather than numbers. The first column names the
    /// rows.
    #[must_use]
    pub fn columns_of_words(&self) -> Vec<bool> {
        let is_number = |text: &str| {
            let digits = text.trim_start_matches(['-', '+', '≥', '≤', '×', ' ']);
            digits.starts_with(|c: char| c.is_ascii_digit() || c == '∞')
        };
        let has_words = |column: usize| {
            let cells = self.rows.iter().map(|row| row.cells[column].text.as_str());
            let mut known = cells.filter(|text| !text.is_empty() && *text != "-");
            known.next().is_some_and(|first| !is_number(first)) && !known.any(is_number)
        };
        (0..self.head.len())
            .map(|column| column == 0 || has_words(column))
            .collect()
    }

    /// Adds a row of plain cells; missing cells are empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.push(cells, false);
    }

    /// Adds a row that is a detail of the preceding row.
    pub fn nested_row(&mut self, cells: Vec<String>) {
        self.push(cells, true);
    }

    fn push(&mut self, mut cells: Vec<String>, nested: bool) {
        cells.resize(self.head.len(), String::new());
        let cells = cells.into_iter().map(Cell::from).collect();
        self.rows.push(Row { cells, nested });
    }

    /// Adds rows of plain cells.
    #[must_use]
    pub fn with_rows(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        rows.into_iter().for_each(|row| self.row(row));
        self
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            text,
            tone: Tone::Plain,
        }
    }
}

impl From<Verdict> for Tone {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Valid => Self::Good,
            Verdict::Invalid | Verdict::Interrupted => Self::Doubtful,
            Verdict::Failed => Self::Bad,
        }
    }
}
