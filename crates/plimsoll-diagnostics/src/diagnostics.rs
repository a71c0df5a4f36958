//! Errors in a text that a user wrote, with source location, expectation and help.

use crate::excerpt::{Excerpt, shorten};
use crate::source::{Source, Span};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, ThemeStyles};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of collected errors; parsing stops at this number, because more errors would bury the first.
pub const MAX_ERRORS: usize = 10;

/// Width in columns of the [`fmt::Display`] output.
const DISPLAY_WIDTH: usize = 100;

/// Error in a text that a user wrote: message, place in the text, and advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// One sentence that states the error, such as "unknown key `laod`".
    pub message: String,
    /// Part of the text at which the error lies, which the output underlines.
    pub span: Span,
    /// Text below the underlined span, such as the values that were expected; empty for no text.
    pub label: String,
    /// Advice to the user for correcting the error; `None` without advice.
    pub help: Option<String>,
    /// Second span to which the error relates, such as an earlier definition, and the label of the span; `None` without
    /// a second span.
    pub also: Option<Box<(Span, String)>>,
    /// Whether the error concerns the text as a whole, so that no excerpt is shown.
    pub whole_text: bool,
}

impl Problem {
    /// Creates an error at a span, without help and without a second span.
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

    /// Creates an error that concerns the text with index `file` (from 0) as a whole.
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

    /// Translates a serde error message about an unknown key, an unknown value, or a value of the wrong type; `plain`
    /// replaces Rust type names. Returns `None` for other messages.
    #[must_use]
    pub fn of_reader(span: Span, message: &str, plain: fn(&str) -> &str) -> Option<Self> {
        let names = |start: &str| {
            let rest = message.strip_prefix(start)?;
            let mut quoted = rest.split('`').skip(1).step_by(2);
            Some((quoted.next()?, quoted.collect::<Vec<_>>()))
        };
        if let Some((key, known)) = names("unknown field ") {
            let message = format!("unknown key `{key}`");
            return Some(Self::new(span, message, "not a key of this table").suggest(key, known));
        }
        if let Some((name, known)) = names("unknown variant ") {
            let message = format!("unknown value `{name}`");
            return Some(Self::new(span, message, "not one of these").suggest(name, known));
        }
        let mut types = ["invalid type: ", "invalid value: "].iter();
        let rest = types.find_map(|start| message.strip_prefix(start))?;
        let (found, expected) = rest.split_once(", expected ").unwrap_or((rest, "another"));
        let message = format!("expected {}, found {found}", plain(expected));
        Some(Self::new(span, message, "this value"))
    }

    /// Adds advice for correcting the error.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds a second span to which the error relates; the span is shown only in the same text as the error.
    #[must_use]
    pub fn also(mut self, span: Span, label: impl Into<String>) -> Self {
        self.also = Some(Box::new((span, label.into())));
        self
    }

    /// Adds help with the known name nearest to `name`, or with the list of known names if the list is short.
    #[must_use]
    pub fn suggest<S: AsRef<str>>(self, name: &str, known: impl IntoIterator<Item = S>) -> Self {
        const MAX_LISTED: usize = 12;
        let known: Vec<S> = known.into_iter().collect();
        let mut known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
        known.sort_unstable();
        known.dedup();
        if let Some(near) = nearest(name, known.iter().copied()) {
            return self.help(format!("did you mean `{near}`?"));
        }
        if known.is_empty() || known.len() > MAX_LISTED {
            return self;
        }
        self.help(format!("known here: `{}`", known.join("`, `")))
    }
}

/// Returns the known name nearest to `name`, or `None` if none is near enough for a typing error. Case has no effect. A
/// name is near enough if its normalised Damerau–Levenshtein similarity is at least 0.6, or if one of the two names
/// begins with the other and both have at least three bytes.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const MIN_SIMILARITY: f64 = 0.6;
    let lower = name.to_ascii_lowercase();
    known
        .map(|k| {
            let likeness = strsim::normalized_damerau_levenshtein(&lower, &k.to_ascii_lowercase());
            // A partially typed name is as good a hint as a mistyped name.
            let long = lower.len().min(k.len()) >= 3;
            let part = long && (k.starts_with(&lower) || lower.starts_with(k));
            let least = if part { MIN_SIMILARITY } else { 0.0 };
            (likeness.max(least), k)
        })
        .filter(|(likeness, _)| *likeness >= MIN_SIMILARITY - 1e-9)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// The errors in a text and its included texts, at most [`MAX_ERRORS`], in the order that [`Diagnostics::new`] got.
///
/// `Display` renders the errors without colour for 100 columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostics {
    sources: Vec<Arc<Source>>,
    problems: Vec<Problem>,
}

/// An error of [`Diagnostics`] as plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Name of the text in which the error lies.
    pub file: String,
    /// Number of the line in which the error begins, from 1.
    pub line: u32,
    /// Number of the character in the line at which the error begins, from 1.
    pub column: u32,
    /// One sentence that states the error, such as "unknown key `laod`".
    pub message: String,
    /// Advice to the user for correcting the error; `None` without advice.
    pub help: Option<String>,
}

impl Diagnostics {
    /// Creates diagnostics from the first [`MAX_ERRORS`] errors of `problems`, whose spans refer to `sources` by index.
    ///
    /// # Panics
    /// If there are no problems, or a problem refers to a missing source.
    #[must_use]
    pub fn new(sources: Vec<Arc<Source>>, mut problems: Vec<Problem>) -> Self {
        assert!(!problems.is_empty(), "diagnostics without a problem");
        for problem in &problems {
            let file = usize::from(problem.span.file);
            assert!(
                file < sources.len(),
                "no source {file}: {}",
                problem.message
            );
        }
        problems.truncate(MAX_ERRORS);
        Self { sources, problems }
    }

    /// Returns the errors as plain values, in the order in which [`Diagnostics::new`] got the errors.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.problems
            .iter()
            .map(|p| {
                let source = &self.sources[usize::from(p.span.file)];
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

    /// Renders the errors: message, source line, underline, label and help; with ANSI styles if `color` is set.
    ///
    /// `width` is the width of the terminal in columns, at least 40.
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
                // Only a span outside its text cannot be rendered as an excerpt.
                out.push_str(&problem.message);
                out.push('\n');
            }
        }
        if self.problems.len() == MAX_ERRORS {
            out.push_str(&format!("\n{MAX_ERRORS} errors; there may be more\n"));
        }
        out
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false, DISPLAY_WIDTH))
    }
}

impl std::error::Error for Diagnostics {}

/// An error of a user's text in the form that the renderer miette needs.
#[derive(Debug)]
struct RenderedProblem {
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
    labels: Vec<LabeledSpan>,
}

impl RenderedProblem {
    fn new(problem: &Problem, sources: &[Arc<Source>]) -> Self {
        let source = &sources[usize::from(problem.span.file)];
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
        assert_eq!(excerpt.marks.len(), texts.len(), "a label for each mark");
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

/// Byte range of a span, restricted to its first line and to the text.
fn within(span: Span, text: &str) -> Range<usize> {
    let range = Span::of(span.file, span.range(), text).range();
    let line = text[range.clone()].lines().next().unwrap_or("");
    range.start..range.start + line.len()
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
