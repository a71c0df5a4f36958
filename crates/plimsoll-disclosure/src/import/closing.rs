//! Where a report ends, and whether it is whole.

use super::GENERATED;
use super::flow::Flow;
use super::head::Head;
use super::sections::Part;
use plimsoll_diagnostics::Problem;

/// Farthest from its end that a report's last lines begin, in bytes of the flow.
const LONGEST_END: usize = 1000;

/// Most words behind [`GENERATED`] that the date may take, as in `Mon May 06 12:00:00 UTC 2013`.
const DATE_WORDS: usize = 6;

/// Where the last lines begin in the flow, behind `from`: the last [`GENERATED`] near the end that
/// has a date behind it and, where the report has lines, begins one. Prose that says of something
/// else that it was generated on this or that does not end a report.
pub(super) fn at(flow: &Flow, from: usize) -> Option<usize> {
    let near = flow.text.len().saturating_sub(LONGEST_END).max(from);
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

fn begins_line(flow: &Flow, at: usize) -> bool {
    let offset = flow.offset(at);
    let start = flow.line(flow.line_of(offset)).start;
    flow.source[start..offset].trim().is_empty()
}

/// Whether a text begins with a date: `2013-05-06`, `05/06/2013`, or the name of a month and a
/// year.
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

/// Whether a word is the name of a month, or begins it by three letters at least.
fn is_month(word: &str) -> bool {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    const LEAST_LETTERS: usize = 3;
    // In small letters it is a word of some other meaning.
    let begins = word.starts_with(|c: char| c.is_ascii_uppercase());
    let word = word.to_ascii_lowercase();
    begins && word.len() >= LEAST_LETTERS && MONTHS.iter().any(|m| m.starts_with(&word))
}

/// The section that ends the form of a metric's generation.
fn last_section(metric: &str) -> &'static str {
    match metric.starts_with("SPECsfs2008") {
        true => "Other Notes",
        false => "Other Report Notes",
    }
}

/// Whether the report is whole; `end` is where its last lines begin. A warning if they alone are
/// missing, else an error that says behind which heading it was cut.
pub(super) fn check(
    flow: &Flow,
    parts: &[Part],
    head: &Head,
    end: Option<usize>,
) -> Result<Option<String>, Problem> {
    let ends = last_section(&head.metric);
    if end.is_some() && parts.iter().any(|p| p.name == ends) {
        return Ok(None);
    }
    let missing = match end {
        Some(_) => format!("its last section, `{ends}`, is missing"),
        None => format!("its last lines, `{GENERATED} …`, are missing"),
    };
    let Some(last) = parts.last() else {
        return Err(flow.problem_at_end(format!("the report was cut: {missing}")));
    };
    let name = &last.name;
    if end.is_none() && name == ends && !last.body.is_empty() {
        return Ok(Some(format!(
            "{missing}; the section `{name}` may have been cut"
        )));
    }
    let message = format!("the report was cut behind the section `{name}`: {missing}");
    let problem = match end {
        Some(at) => flow.problem(&(at..at + GENERATED.len()), message, "the last lines"),
        None => flow.problem_at_end(message),
    };
    Err(problem.also(flow.span(&last.heading), "the last section"))
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
