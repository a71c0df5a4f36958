//! Lines of texts in the form of `.ini` files: sections, settings and comments.

use crate::report::{Report, Reported};
use plimsoll_diagnostics::Span;

/// A setting in a line: name, place of the name, and the value with its place; `None` for a name without `=`.
pub(crate) type Setting<'a> = (&'a str, Span, Option<(String, Span)>);

/// The lines of a text with the index `file` that are not empty, each with its place and without its comment and
/// surrounding blanks. A comment begins with `;` or `#`.
pub(crate) fn lines(text: &str, file: u16) -> impl Iterator<Item = (&str, Span)> {
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let begin = start;
        start += line.len();
        let content = line.split([';', '#']).next().unwrap_or("");
        let trimmed = content.trim();
        let from = begin + content.len() - content.trim_start().len();
        let span = Span::of(file, from..from + trimmed.len(), text);
        (!trimmed.is_empty()).then_some((trimmed, span))
    })
}

/// The name of the section that a line begins; `None` for another line.
///
/// # Errors
/// If the name does not end, or text follows the name.
pub(crate) fn section<'a>(
    line: &'a str,
    span: Span,
    report: &mut impl Report,
) -> Result<Option<&'a str>, Reported> {
    let Some(rest) = line.strip_prefix('[') else {
        return Ok(None);
    };
    let Some((name, after)) = rest.rsplit_once(']') else {
        return report.fail(span, "the name of the section does not end", "expected `]`");
    };
    if !after.trim().is_empty() {
        return report.fail(
            span,
            "unexpected text after the section",
            "expected nothing after `]`",
        );
    }
    Ok(Some(name.trim()))
}

/// The setting in a line at `span` of `text`.
pub(crate) fn setting<'a>(line: &'a str, span: Span, text: &str) -> Setting<'a> {
    let equals = line.find('=');
    let name = line[..equals.unwrap_or(line.len())].trim();
    let start = span.range().start;
    let value = equals.map(|at| {
        let value = &line[at + 1..];
        let trimmed = value.trim_start();
        let from = start + at + 1 + (value.len() - trimmed.len());
        let place = Span::of(span.file, from..span.range().end, text);
        (trimmed.to_owned(), place)
    });
    let name_span = Span::of(span.file, start..start + name.len(), text);
    (name, name_span, value)
}
