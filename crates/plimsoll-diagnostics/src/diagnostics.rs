//! Errors in a text: each with its place, what was expected, and a way out.

use crate::excerpt::{Excerpt, shorten};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, ThemeStyles};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Most errors collected before reading stops; more would bury the first.
pub const MAX_ERRORS: usize = 10;

/// Columns that [`fmt::Display`] renders for.
const DISPLAY_WIDTH: usize = 100;

/// A text that spans point into: a workload file, or a setting of the command line.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// What messages call it.
    pub name: String,
    /// The text.
    pub text: String,
    /// Offset of each line's first byte.
    lines: Vec<usize>,
}

impl Source {
    /// A text and what messages call it.
    #[must_use]
    pub fn new(name: &str, text: &str) -> Arc<Self> {
        let ends = text.bytes().enumerate().filter(|(_, b)| *b == b'\n');
        Arc::new(Self {
            name: name.into(),
            text: text.into(),
            lines: std::iter::once(0).chain(ends.map(|(i, _)| i + 1)).collect(),
        })
    }

    /// Line and column of a byte offset, both from 1; the column counts characters.
    #[must_use]
    pub fn position(&self, offset: usize) -> (u32, u32) {
        let offset = self.text.floor_char_boundary(offset);
        // The first line begins at 0, so at least one line begins at or before any offset.
        let line = self.lines.partition_point(|start| *start <= offset);
        let column = self.text[self.lines[line - 1]..offset].chars().count() + 1;
        (line as u32, column as u32)
    }
}

/// A piece of a source text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Index into the list of sources of whoever holds the span.
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// Byte behind the last one.
    pub end: u32,
}

impl Span {
    /// From the start of this span to the end of another of the same text.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span {
            end: last.end.max(self.end),
            ..self
        }
    }

    /// The bytes it covers.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One error.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What is said at the underlined place; empty for nothing.
    pub label: String,
    /// What helps, if something does.
    pub help: Option<String>,
    /// A second place that has to do with it.
    pub also: Option<Box<(Span, String)>>,
    /// The text as a whole is at fault: there is no place in it to show.
    pub whole_text: bool,
}

impl Problem {
    /// Something wrong at a place.
    #[must_use]
    pub fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            span,
            label: label.into(),
            help: None,
            also: None,
            whole_text: false,
        }
    }

    /// Something wrong with the text of number `file` as a whole.
    #[must_use]
    pub fn of_text(file: u16, message: impl Into<String>) -> Self {
        let span = Span {
            file,
            ..Span::default()
        };
        Self {
            whole_text: true,
            ..Self::new(span, message, "")
        }
    }

    /// Adds what helps.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds a second place that has to do with it; shown if it is in the same text.
    #[must_use]
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.also = Some(Box::new((span, label.into())));
        self
    }

    /// Help that offers the nearest of the known names, or lists them when few.
    #[must_use]
    pub fn suggest<'a>(self, name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        const MAX_LISTED: usize = 12;
        let mut known: Vec<&str> = known.into_iter().collect();
        known.sort_unstable();
        known.dedup();
        if let Some(near) = nearest(name, known.iter().copied()) {
            return self.help(format!("did you mean `{near}`?"));
        }
        match known.len() {
            0 => self,
            1..=MAX_LISTED => {
                let list: Vec<String> = known.iter().map(|k| format!("`{k}`")).collect();
                self.help(format!("known here: {}", list.join(", ")))
            }
            _ => self,
        }
    }
}

/// The known name nearest to `name`, if it is near enough to be a slip of the hand.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const MIN_SIMILARITY: f64 = 0.6;
    let lower = name.to_ascii_lowercase();
    known
        .map(|k| {
            let likeness = strsim::normalized_damerau_levenshtein(&lower, &k.to_ascii_lowercase());
            // A name typed in part is as good a hint as one typed wrongly.
            let long = lower.len().min(k.len()) >= 3;
            let part = long && (k.starts_with(&lower) || lower.starts_with(k));
            (
                if part {
                    likeness.max(MIN_SIMILARITY)
                } else {
                    likeness
                },
                k,
            )
        })
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY - 1e-9)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// Everything found wrong with a text and those it includes, at most ten errors, in the order they were found.
///
/// `Display` renders it without colour for 100 columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostics {
    sources: Vec<Arc<Source>>,
    problems: Vec<Problem>,
}

/// One error of [`Diagnostics`], without its picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the text it is in.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What helps, if something does.
    pub help: Option<String>,
}

impl Diagnostics {
    /// What is wrong with texts; the spans of `problems` number the `sources` from 0.
    ///
    /// Neither list may be empty: without a problem there is nothing to say, and without a
    /// source nothing to point at.
    #[must_use]
    pub fn new(sources: Vec<Arc<Source>>, mut problems: Vec<Problem>) -> Self {
        debug_assert!(!problems.is_empty() && !sources.is_empty());
        problems.truncate(MAX_ERRORS);
        Self { sources, problems }
    }

    /// The errors as plain values.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.problems
            .iter()
            .map(|p| {
                let source = self.source(p.span);
                let (line, column) = source.position(p.span.start as usize);
                Finding {
                    file: source.name.clone(),
                    line,
                    column,
                    message: p.message.clone(),
                    help: p.help.clone(),
                }
            })
            .collect()
    }

    /// The errors as a person reads them: message, source line, underline, label and help.
    ///
    /// `width` is the width of the terminal in columns.
    #[must_use]
    pub fn render(&self, color: bool, width: usize) -> String {
        let mut theme = GraphicalTheme::unicode_nocolor();
        if color {
            theme.styles = ThemeStyles::ansi();
        }
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_links(false)
            .with_width(width.max(40))
            .with_context_lines(1);
        let mut out = String::new();
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            let view = RenderedProblem::new(problem, &self.sources);
            if handler.render_report(&mut out, &view).is_err() {
                // Only a span outside its text gets here; the message still tells what it is.
                out.push_str(&problem.message);
                out.push('\n');
            }
        }
        if self.problems.len() == MAX_ERRORS {
            out.push_str(&format!("\n{MAX_ERRORS} errors; there may be more\n"));
        }
        out
    }

    fn source(&self, span: Span) -> &Source {
        let last = self.sources.len() - 1;
        &self.sources[usize::from(span.file).min(last)]
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false, DISPLAY_WIDTH))
    }
}

impl std::error::Error for Diagnostics {}

/// One problem in the form the renderer takes.
#[derive(Debug)]
struct RenderedProblem {
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
}

impl RenderedProblem {
    fn new(problem: &Problem, sources: &[Arc<Source>]) -> Self {
        let file = usize::from(problem.span.file).min(sources.len() - 1);
        let source = &sources[file];
        let help = problem.help.as_deref().map(shorten);
        if problem.whole_text {
            return Self {
                message: shorten(&format!("{}: {}", source.name, problem.message)),
                help,
                excerpt: None,
                labels: vec![],
            };
        }
        let mut marks = vec![within(problem.span, &source.text)];
        let mut texts = vec![Some(shorten(&problem.label)).filter(|l| !l.is_empty())];
        if let Some((span, label)) = problem.also.as_deref()
            && span.file == problem.span.file
        {
            marks.push(within(*span, &source.text));
            texts.push(Some(shorten(label)));
        }
        let excerpt = Excerpt::new(source, &marks);
        let labels = excerpt.marks.iter().zip(texts).enumerate();
        let labels = labels.map(|(i, (mark, text))| {
            let place = (mark.start, mark.len());
            match i {
                0 => LabeledSpan::new_primary_with_span(text, place),
                _ => LabeledSpan::new_with_span(text, place),
            }
        });
        Self {
            message: shorten(&problem.message),
            help,
            labels: labels.collect(),
            excerpt: Some(excerpt),
        }
    }
}

/// The bytes of a span, cut to its first line and to the text.
fn within(span: Span, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(span.start as usize);
    let end = text.floor_char_boundary(span.end as usize).max(start);
    let line = text[start..end].lines().next().unwrap_or("");
    start..start + line.len()
}

impl fmt::Display for RenderedProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RenderedProblem {}

impl miette::Diagnostic for RenderedProblem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.help.as_ref()?;
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        let excerpt = self.excerpt.as_ref()?;
        Some(excerpt)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters_from_one() {
        let s = Source::new("x", "aä$\nb");
        assert_eq!(s.position(0), (1, 1));
        assert_eq!(s.position(3), (1, 3));
        assert_eq!(s.position(5), (2, 1));
        assert_eq!(s.position(999), (2, 2));
    }

    #[test]
    fn slips_of_the_hand_find_the_name() {
        let known = ["openfile", "read", "readwholefile", "write"];
        let near = |n: &str| nearest(n, known.into_iter());
        assert_eq!(near("raed"), Some("read"));
        assert_eq!(near("openfil"), Some("openfile"));
        assert_eq!(near("READ"), Some("read"));
        assert_eq!(near("readwhole"), Some("readwholefile"));
        assert_eq!(near("zzz"), None);
    }
}
