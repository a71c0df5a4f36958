//! The end of a report, and its completeness.

use super::GENERATED;
use super::flow::TextFlow;
use super::forms::{PERFORMANCE, form};
use super::head::Head;
use super::sections::Part;

/// Maximum length of a report's last lines in bytes of the flow.
const MAX_CLOSING_BYTES: usize = 1000;

/// Maximum number of words of the date after [`GENERATED`], as in `Mon May 06 12:00:00 UTC 2013`.
const DATE_WORDS: usize = 6;

/// Finds the position in the flow, after `from`, at which the last lines begin: the last [`GENERATED`] near the end
/// that is followed by a date and, if the report has line breaks, begins a line. The same words in prose do not end a
/// report.
pub(super) fn at(flow: &TextFlow, from: usize) -> Option<usize> {
    let near = flow.text.len().saturating_sub(MAX_CLOSING_BYTES).max(from);
    let near = flow.text.ceil_char_boundary(near);
    let has_lines = flow.breaks_between(0, from);
    let found = flow.text.get(near..)?.rmatch_indices(GENERATED);
    let mut places = found.map(|(at, _)| near + at);
    places.find(|at| {
        let begins = match has_lines {
            true => begins_line(flow, *at),
            false => flow.text[..*at].ends_with(' '),
        };
        begins && is_dated(&flow.text[at + GENERATED.len()..])
    })
}

fn begins_line(flow: &TextFlow, at: usize) -> bool {
    let offset = flow.offset(at);
    let start = flow.line(flow.line_of(offset)).start;
    flow.source[start..offset].trim().is_empty()
}

/// Whether a text begins with a date: `2013-05-06`, `05/06/2013`, or the name of a month and a year.
fn is_dated(text: &str) -> bool {
    let words = text.strip_prefix(' ').unwrap_or("").split(' ');
    let parts: Vec<&str> = words
        .take(DATE_WORDS)
        .flat_map(|w| w.split(['-', '/', ',', '.', 'T']))
        .collect();
    let number = |t: &str, digits: std::ops::RangeInclusive<usize>| {
        digits.contains(&t.len()) && t.bytes().all(|b| b.is_ascii_digit())
    };
    let is_year = |t: &&str| number(t, 4..=4) && (t.starts_with("19") || t.starts_with("20"));
    let small = |t: &str| number(t, 1..=2);
    let in_figures = match parts[..] {
        [first, second, third, ..] => {
            small(second) && (is_year(&first) && small(third) || small(first) && is_year(&third))
        }
        _ => false,
    };
    in_figures || (parts.iter().any(is_year) && parts.iter().any(|p| is_month(p)))
}

/// Whether a word is the name of a month or its abbreviation to at least three letters.
fn is_month(word: &str) -> bool {
    const MONTHS: &str = "january february march april may june july august september october \
                          november december";
    const MIN_LETTERS: usize = 3;
    // In lower case, `may` and `march` are other words.
    let begins = word.starts_with(|c: char| c.is_ascii_uppercase());
    let word = word.to_ascii_lowercase();
    begins && word.len() >= MIN_LETTERS && MONTHS.split(' ').any(|m| m.starts_with(&word))
}

/// Warning if only the last lines of an imported report are missing, and note if the report is an excerpt; `end` is the
/// position of the line `Generated on …`.
pub(super) fn check(
    flow: &TextFlow,
    parts: &[Part],
    head: &Head,
    end: Option<usize>,
) -> (Option<String>, Option<String>) {
    let form = form(&head.metric);
    let last = parts.iter().rfind(|p| p.heading.start >= head.end);
    let is_last = |p: &&Part| form.last() == Some(&p.name.as_str());
    let has_last = parts.iter().any(|p| is_last(&p));
    if end.is_some() && has_last {
        return (None, None);
    }
    if let (None, Some(last)) = (end, last.filter(is_last).filter(|l| !l.body.is_empty())) {
        let name = &last.name;
        let warning = format!(
            "its last lines, `{GENERATED} …`, are missing; the section `{name}` may have been cut"
        );
        return (Some(warning), None);
    }
    let there = |name: &&&str| parts.iter().any(|p| p.name == **name);
    let missing: Vec<&str> = form.iter().filter(|name| !there(name)).copied().collect();
    let missing = match missing.len() {
        0 => format!("its last lines, `{GENERATED} …`, are missing"),
        1 => format!("1 section is missing ({})", missing[0]),
        n => format!("{n} sections are missing ({})", missing.join(", ")),
    };
    // Only the text of a last section can be cut: the load points have been checked.
    let ends_text = |part: &Part| part.body.end == flow.text.len();
    let cut = last.filter(|l| end.is_none() && l.name != PERFORMANCE && ends_text(l));
    let cut = cut.map_or(String::new(), |l| {
        format!("; `{}` may have been cut", l.name)
    });
    (None, Some(format!("this is an excerpt: {missing}{cut}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_told_from_prose() {
        for dated in [
            " Mon May 06 12:00:00 2013 by a formatter",
            " Wed Mar 13 16:00:00 UTC 2019",
            " 2026-01-02 03:04:05 by Plimsoll",
            " 2026-01-02T03:04:05Z",
            " 14-May-2013",
            " 05/06/2013",
            " September 3, 2020",
        ] {
            assert!(is_dated(dated), "{dated}");
        }
        for prose in [
            "",
            " ",
            " 16 clients",
            " 16 clients of the model 2013",
            " 2013 clients which may run",
            "ce Mon May 06 2013",
            " 10 to 20 nodes",
        ] {
            assert!(!is_dated(prose), "{prose}");
        }
    }

    #[test]
    fn months_are_names_or_abbreviations() {
        assert!(["Mar", "March", "Sept", "DEC"].iter().all(|m| is_month(m)));
        assert!(
            !["", "Ma", "may", "Marches", "16"]
                .iter()
                .any(|m| is_month(m))
        );
    }
}
