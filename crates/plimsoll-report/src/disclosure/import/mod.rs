//! Import of full disclosure reports, published or written by Plimsoll.

mod closing;
mod flow;
mod forms;
mod head;
mod number;
mod sections;
mod table;

pub(crate) use forms::PERFORMANCE;
pub(crate) use head::NO_FIGURE;
pub(crate) use table::INVALID_MARK;

use crate::disclosure::model::Disclosure;
use flow::TextFlow;
use head::Head;
use number::Number;
use plimsoll_diagnostics::{Diagnostics, Problem, Source};
use plimsoll_measure::curve::{PointVerdict, Rule};
use std::borrow::Cow;
use std::ops::Range;
use table::Table;

/// Maximum size of a report in bytes; published reports have about ten thousand.
pub const MAX_REPORT_BYTES: usize = 16 << 20;

/// Minimum number of load points of a published result, by the run rules of every generation.
const MIN_PUBLISHED_POINTS: usize = 10;

/// Maximum number of characters in a note on the text after the load points of an excerpt.
const REST_SHOWN: usize = 40;

/// First words of the last lines of a report.
pub(crate) const GENERATED: &str = "Generated on";

/// An imported report, with warnings and notes.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// Claim, load points and sections of the imported report.
    pub disclosure: Disclosure,
    /// Sentences on contradictions in the report, such as an overall response time that does not follow from the load
    /// points.
    pub warnings: Vec<String>,
    /// Sentences on the parts that an excerpt of a report lacks.
    pub notes: Vec<String>,
}

/// Reads the ASCII form of a report of SPECsfs2008, SPEC SFS 2014, SPECstorage 2020 or Plimsoll. The line breaks of the
/// report may all be collapsed to spaces. Error messages call the report `name`.
///
/// Text that is not UTF-8 is read as ISO 8859-1. The overall response time is recomputed by the rule of the report's
/// generation; a difference from the published figure beyond rounding is a warning.
///
/// An excerpt of a report needs title, metric and all load points; a note lists the missing parts.
///
/// # Errors
/// One error with line and column: the text is too large or not a report, was cut before or within the load points, has
/// a cell that is not a number, or lacks load points.
pub fn import(bytes: &[u8], name: &str) -> Result<Imported, Diagnostics> {
    let fail = |text: &str, problem| Diagnostics::new(vec![Source::new(name, text)], vec![problem]);
    if bytes.len() > MAX_REPORT_BYTES {
        let message = format!("too large for a report; at most {MAX_REPORT_BYTES} bytes are read");
        return Err(fail("", Problem::of_text(0, message)));
    }
    let text = decode(bytes);
    read(&text).map_err(|problem| fail(&text, problem))
}

/// Decodes the text of a file. Control characters, which terminals interpret and reports do not contain, are replaced.
fn decode(bytes: &[u8]) -> Cow<'_, str> {
    let text: Cow<str> = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).into(),
        // In ISO 8859-1 each byte is the character of its number.
        Err(_) => bytes.iter().map(|b| char::from(*b)).collect(),
    };
    let control = |c: char| c.is_control() && !c.is_whitespace();
    match text.contains(control) {
        true => text.replace(control, "\u{fffd}").into(),
        false => text,
    }
}

fn read(text: &str) -> Result<Imported, Problem> {
    let flow = TextFlow::new(text);
    if flow.text.is_empty() {
        return Err(Problem::of_text(0, "the file is empty"));
    }
    let head = head::read(&flow)?;
    let end = closing::at(&flow, head.end);
    let parts = sections::parts(&flow, end.unwrap_or(flow.text.len()));
    let place = place_of_points(&flow, &head, &parts, end)?;
    let table = table::read(&flow, &place.body, place.is_followed, head.peak)?;
    let (warning, note) = closing::check(&flow, &parts, &head, end);
    let mut warnings = Vec::from_iter(warning);
    let mut notes = Vec::from_iter(head.note());
    notes.extend(note);
    if let (None, Some(cell)) = (end, table.cell_at_end(&flow)) {
        warnings.push(format!(
            "the text ends with a figure of its table, `{cell}`, which may have been cut"
        ));
    }
    if let Some(rest) = &table.rest {
        let first: String = flow.text[rest.clone()].chars().take(REST_SHOWN).collect();
        notes.push(format!(
            "text after the load points is not part of them and was ignored: `{first}`"
        ));
    }
    let end = end.unwrap_or(flow.text.len());
    let rule = rule_of(&head.metric);
    let remark: Vec<&str> = flow
        .words(place.remark)
        .filter(|w| !w.is_run_of('='))
        .map(|w| w.text)
        .collect();
    let others = parts
        .iter()
        .enumerate()
        .filter(|(i, _)| Some(*i) != place.section);
    let mut disclosure = Disclosure {
        title: head.title.clone(),
        vendor: head.vendor.clone(),
        product: head.product.clone(),
        metric: head.metric.clone(),
        peak: head.peak,
        unit: head.unit.clone(),
        remark: remark.join(" "),
        points: table.points.clone(),
        ort_published_ms: head.ort.map(|n| n.value),
        ort_ms: None,
        rule,
        sections: others.map(|(_, p)| sections::section(&flow, p)).collect(),
        generated: flow.text[end..].to_owned(),
    };
    all_points_there(&flow, &head, &table)?;
    warnings.extend(check_ort(&mut disclosure, &head, &table));
    Ok(Imported {
        disclosure,
        warnings,
        notes,
    })
}

/// Position of the load points in the flow.
struct PointsSpan {
    /// Index of the section with the load points; `None` if the heading is missing.
    section: Option<usize>,
    body: Range<usize>,
    /// The text between the claim and the load points.
    remark: Range<usize>,
    /// Whether text follows the load points, so that they were not cut off.
    is_followed: bool,
}

/// Finds the load points: below their heading, or after the claim in an excerpt without the heading.
fn place_of_points(
    flow: &TextFlow,
    head: &Head,
    parts: &[sections::Part],
    end: Option<usize>,
) -> Result<PointsSpan, Problem> {
    if let Some(section) = parts.iter().position(|p| p.name == PERFORMANCE) {
        return Ok(PointsSpan {
            section: Some(section),
            body: parts[section].body.clone(),
            remark: head.end..parts[section].heading.start.max(head.end),
            is_followed: end.is_some() || section + 1 < parts.len(),
        });
    }
    let following = parts.iter().map(|p| p.heading.start);
    let next = following.filter(|start| *start >= head.end).min();
    let until = next.or(end).unwrap_or(flow.text.len());
    let body = sections::without_rules(&flow.text, head.end..until);
    let Some(lines) = flow.words(body.clone()).find(|w| w.is_run_of('-')) else {
        return Err(no_performance(flow, head, end));
    };
    // The column names belong to the table; a published report has no remark.
    let remark = match head.metric.contains("SPEC") {
        true => head.end..head.end,
        false => head.end..lines.range.start,
    };
    Ok(PointsSpan {
        section: None,
        body,
        remark,
        is_followed: until < flow.text.len(),
    })
}

/// The rule for a metric, by the generation in the name of the metric or of a Plimsoll style.
pub(crate) fn rule_of(metric: &str) -> Rule {
    match metric.starts_with("SPECsfs2008") || metric.starts_with("SFS 2008 ") {
        true => Rule::Sfs2008,
        false => Rule::Sfs2014,
    }
}

fn no_performance(flow: &TextFlow, head: &Head, end: Option<usize>) -> Problem {
    if end.is_none() {
        return flow.problem_at_end("the report was cut before its load points");
    }
    let place = head.end.saturating_sub(1)..head.end;
    flow.problem(
        &place,
        format!("the report has no section `{PERFORMANCE}`"),
        "expected the underlined heading behind this",
    )
}

/// Checks that the load points agree with the peak, and that a published report has enough of them.
fn all_points_there(flow: &TextFlow, head: &Head, table: &Table) -> Result<(), Problem> {
    let valid = |p: &&crate::disclosure::LoadPoint| p.verdict == PointVerdict::Valid;
    let highest = table.points.iter().rev().find(valid);
    let highest = highest.map_or(0.0, |p| p.load);
    let last = table.places[table.places.len() - 1].clone();
    let (peak, unit) = (head.peak, &head.unit);
    if highest != peak {
        let claimed = table.points.iter().position(|p| p.load == peak);
        let claims = format!("the report claims {peak} {unit}, but");
        let (place, message, label) = match claimed {
            // The report contains the claimed point, but as an invalid point.
            Some(i) if highest < peak => (
                table.places[i].clone(),
                format!(
                    "{claims} its load point at {peak} is invalid (`{INVALID_MARK}`); the highest \
                     valid load point is at {highest}"
                ),
                "this point is invalid",
            ),
            _ => {
                let missing = match highest < peak {
                    true => ": load points are missing",
                    false => "",
                };
                (
                    last,
                    format!("{claims} its highest valid load point is at {highest}{missing}"),
                    "the last load point",
                )
            }
        };
        let problem = flow.problem(&place, message, label);
        return Err(problem.also(flow.span(&head.peak_place), "the claim"));
    }
    let have = table.points.len();
    if head.metric.contains("SPEC") && have < MIN_PUBLISHED_POINTS {
        let problem = flow.problem(
            &last,
            format!(
                "load points are missing: a published result has at least \
                 {MIN_PUBLISHED_POINTS}, this one has {have}"
            ),
            "the last of them",
        );
        return Err(problem);
    }
    Ok(())
}

/// Recomputes the overall response time; returns a warning if the published figure differs.
fn check_ort(disclosure: &mut Disclosure, head: &Head, table: &Table) -> Option<String> {
    let curve = disclosure.curve().ok()?;
    disclosure.ort_ms = curve.overall_response_time(disclosure.rule).ok();
    let published = head.ort?;
    let Some(computed) = disclosure.ort_ms else {
        return Some(format!(
            "the report claims an overall response time of {} ms, but its valid load points give \
             none",
            published.value
        ));
    };
    // The overall response time is a mean of latencies, each rounded by at most half a unit of its last digit.
    let allowed = Number::rounding(published.decimals) + Number::rounding(table.latency_decimals);
    let differs = (computed - published.value).abs() > allowed * (1.0 + 1e-9);
    differs.then(|| {
        format!(
            "the report says an overall response time of {} ms, but its load points give \
             {computed:.4} ms; rounding explains a difference of {allowed:.4} ms at most",
            published.value
        )
    })
}
