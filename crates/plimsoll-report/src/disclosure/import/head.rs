//! Head of a report: title, vendor, product, metric, and the two claimed figures.

use super::flow::TextFlow;
use super::number::{self, Number};
use plimsoll_diagnostics::Problem;
use std::ops::Range;

/// Text before the overall response time on the line of the metric.
const ORT: &str = "(Overall Response Time =";

/// Text in place of an unknown latency or of an overall response time that is not claimed.
pub(crate) const NO_FIGURE: &str = "n/a";

/// The head of a report.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) title: String,
    pub(super) vendor: String,
    pub(super) product: String,
    pub(super) metric: String,
    pub(super) peak: f64,
    pub(super) peak_place: Range<usize>,
    pub(super) unit: String,
    pub(super) ort: Option<Number>,
    /// Position in the flow at which the head ends.
    pub(super) end: usize,
}

/// Reads the head.
pub(super) fn read(flow: &TextFlow) -> Result<Head, Problem> {
    let title = title(flow);
    let Some(ort_at) = flow.text.find(ORT) else {
        return Err(match title {
            Some(_) if flow.text.len() < 1000 => flow
                .problem_at_end("the report was cut before its metric and overall response time"),
            _ => not_a_report(),
        });
    };
    let Some(title) = title.filter(|t| t.end <= ort_at) else {
        return Err(flow
            .problem(
                &(0..flow.text.len().min(1)),
                "the report has no title",
                "expected `… Result` here",
            )
            .help("reports begin with a title such as `SPEC SFS(R)2014_vda Result`"));
    };
    let claim = title.end..ort_at;
    let equals = flow.text[claim.clone()]
        .rfind(" = ")
        .map(|at| claim.start + at);
    let Some(equals) = equals else {
        return Err(flow.problem(
            &(ort_at..ort_at + ORT.len()),
            "the report has no peak figure",
            "expected `METRIC = NUMBER UNIT` before this",
        ));
    };
    let (peak, peak_place, unit) = peak(flow, equals + 3..ort_at)?;
    let (metric, identity) = metric(flow, &title, equals)?;
    let (vendor, product) = identity_of(flow, identity);
    let (ort, end) = overall_response_time(flow, ort_at + ORT.len())?;
    Ok(Head {
        title: flow.text[title].to_owned(),
        vendor,
        product,
        metric,
        peak,
        peak_place,
        unit,
        ort,
        end,
    })
}

/// The error on a text that is not a report.
pub(super) fn not_a_report() -> Problem {
    Problem::of_text(
        0,
        "this is not a disclosure report: it has no line `METRIC = N UNIT (Overall Response Time = \
         N msec)`",
    )
    .help(
        "the ASCII (.txt) form of SPECsfs2008, SPEC SFS 2014 and SPECstorage 2020 reports is read",
    )
}

/// The title: everything up to the first word `Result`.
fn title(flow: &TextFlow) -> Option<Range<usize>> {
    let mut words = flow.words(0..flow.text.len());
    let end = words.find(|w| w.text == "Result")?.range.end;
    // Lines of `=` above the title are decoration.
    let start = flow
        .words(0..end)
        .find(|w| !w.is_run_of('='))
        .map(|w| w.range.start)?;
    Some(start..end)
}

/// Number, position and unit of `N UNIT`.
fn peak(flow: &TextFlow, range: Range<usize>) -> Result<(f64, Range<usize>, String), Problem> {
    let mut words = flow.words(range.clone());
    let wrong = |place: &Range<usize>, expected: &str| {
        flow.problem(place, "the peak figure is not a number", expected)
    };
    let Some(first) = words.next() else {
        return Err(wrong(&range, "expected a number and its unit"));
    };
    let peak = number::read(first.text).map_err(|e| wrong(&first.range, e))?;
    let unit: Vec<&str> = words.map(|w| w.text).collect();
    Ok((peak.value, first.range, unit.join(" ")))
}

/// The name of the metric, which ends at `equals`, and the range of the text before the name. The title repeats the
/// name, perhaps with trademark signs.
fn metric(
    flow: &TextFlow,
    title: &Range<usize>,
    equals: usize,
) -> Result<(String, Range<usize>), Problem> {
    let named = flow.text[title.clone()].trim_end_matches("Result").trim();
    let before = &flow.text[title.end..equals];
    let plain = without_signs(named);
    let found = [named, plain.as_str()]
        .into_iter()
        .filter(|n| !n.is_empty() && before.ends_with(n))
        .map(|n| before.len() - n.len())
        .next()
        .or_else(|| before.rfind("SPEC"));
    let Some(at) = found else {
        let place = equals.saturating_sub(1)..equals;
        return Err(flow.problem(
            &place,
            "the report has no metric",
            format!("expected `{plain}` before the `=`, as in the title"),
        ));
    };
    let identity = title.end..title.end + at;
    Ok((without_signs(&before[at..]), identity))
}

impl Head {
    /// Note on an excerpt whose title lines lack the vendor or the product; `None` if both are known.
    pub(super) fn note(&self) -> Option<String> {
        let note = match (self.vendor.is_empty(), self.product.is_empty()) {
            (false, false) => return None,
            (true, false) => "the vendor is missing, or not separated from the product by ` : `",
            (false, true) => "the product is missing",
            (true, true) => "the vendor and the product are missing",
        };
        Some(note.to_owned())
    }
}

/// A name without trademark signs.
fn without_signs(name: &str) -> String {
    let mut plain = name.to_owned();
    for sign in ["(R)", "(r)", "(TM)", "(tm)", "®", "™"] {
        plain = plain.replace(sign, "");
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Vendor and product from `VENDOR : PRODUCT`; both empty if an excerpt lacks the line.
fn identity_of(flow: &TextFlow, range: Range<usize>) -> (String, String) {
    let words = flow.words(range);
    let text: Vec<&str> = words
        .filter(|w| !w.is_run_of('='))
        .map(|w| w.text)
        .collect();
    match text.iter().position(|w| *w == ":") {
        Some(colon) => (text[..colon].join(" "), text[colon + 1..].join(" ")),
        None => (String::new(), text.join(" ")),
    }
}

/// The figure after [`ORT`], and the position after the closing parenthesis.
fn overall_response_time(flow: &TextFlow, from: usize) -> Result<(Option<Number>, usize), Problem> {
    let rest = &flow.text[from..];
    let end = rest.len();
    let mut words = flow.words(from..from + end);
    let Some(figure) = words.next() else {
        return Err(flow.problem_at_end("the report was cut in its overall response time"));
    };
    if let Some(none) = figure.text.strip_suffix(')')
        && none == NO_FIGURE
    {
        return Ok((None, figure.range.end));
    }
    let number = number::read(figure.text).map_err(|expected| {
        let message = format!(
            "the overall response time is not a number: `{}`",
            figure.text
        );
        flow.problem(&figure.range, message, expected)
    })?;
    match words.next() {
        Some(unit) if unit.text == "msec)" => Ok((Some(number), unit.range.end)),
        Some(unit) if unit.range.end < flow.text.len() => Err(flow.problem(
            &unit.range,
            "the overall response time is not in milliseconds",
            "expected `msec)`",
        )),
        _ => Err(flow.problem_at_end("the report was cut in its overall response time")),
    }
}
