//! Report on a search for the load line.

use crate::document::{Block, Document, Line, LineKind, Tone};
use crate::html::charts;
use crate::series::{append, head, load_of, rate_and_mean, remarks, runs, state};
use crate::simulation;
use crate::text::reason_codes;
use plimsoll_plan::{Count, counted};
use plimsoll_results::{Agreement, LoadSearch, SearchEnd, SeriesOf, SeriesRun, SeriesState};

/// Explanation below the heading of the figures of a search.
const ABOUT: &str = "A load is sustained if it passed every criterion in more than half of its runs. The load line lies \
                     between the highest sustained load and the lowest that is not.";

/// The report on a search.
#[must_use]
pub fn document(search: SeriesOf<'_, LoadSearch>) -> Document {
    let end = search.figures.load_line.termination;
    let tone = match (search.state, end) {
        (SeriesState::Failed, _) | (_, SearchEnd::NoneSustained) => Tone::Bad,
        (SeriesState::Complete, SearchEnd::Found) => Tone::Good,
        _ => Tone::Doubtful,
    };
    let state = match search.state {
        SeriesState::Complete | SeriesState::Stopped => end.to_string(),
        _ => state(&search).0.to_owned(),
    };
    let measured = search.measured().count() as u64;
    let state = format!("{state}, {}", counted(measured, "run", "runs"));
    let title = format!("{}, search for the load line", search.name);
    let mut document = Document::new(title, state, tone);
    let requested = format!(
        "the highest load up to {} {} that meets the criteria",
        Count(search.figures.rules.max_load),
        search.metric_name()
    );
    document.head = head(&search, requested);
    if measured > 0 {
        document.explained_section("achieved", "Load line", ABOUT, load_line(search));
    }
    let charts = Block::charts(charts::of_series(&search));
    let columns = ["run", "load", "purpose", "verdict", "margin"];
    let table = runs(&search, "Runs, in their order", &columns, |number, run| {
        let margin = run.margin.map(|m| format!("{:+.1} %", 100.0 * m));
        let verdict = if run.is_valid() { "pass" } else { "fail" };
        vec![
            number.to_string(),
            load_of(run).to_string(),
            purpose(run),
            verdict.into(),
            margin.unwrap_or("-".into()),
        ]
    });
    let table = Block::table(table).into_iter();
    let runs = table.chain(remarks(&search)).collect();
    document
        .section("charts", "Loads", charts)
        .section("runs", "Runs", runs);
    append(&mut document, &search);
    document
}

/// One line on a completed run; `number` counts from 1.
#[must_use]
pub fn line(metric: &str, number: usize, run: &SeriesRun) -> String {
    let verdict = match run.is_valid() {
        true => "pass".to_owned(),
        false => format!("fail{}", reason_codes(&run.reasons)),
    };
    format!(
        "run {number}, {}: load {} {metric}: {}: {verdict}",
        purpose(run),
        load_of(run),
        rate_and_mean(run),
    )
}

/// Purpose of a run, in a word.
#[must_use]
pub(crate) fn purpose(run: &SeriesRun) -> String {
    run.purpose.map_or_else(String::new, |p| p.to_string())
}

/// The load line, the runs that support it, and the reasons against the lowest load that is not sustained.
fn load_line(search: SeriesOf<'_, LoadSearch>) -> Vec<Block> {
    let metric = search.metric_name();
    let supported = |s: Agreement| {
        format!(
            "{} {metric}, passed {} of {}",
            Count(s.load),
            s.passed,
            counted(u64::from(s.runs), "run", "runs")
        )
    };
    let sustained = match (
        search.figures.load_line.sustained,
        search.figures.load_line.termination,
    ) {
        (Some(s), SearchEnd::MaxLoadSustained) => {
            let supported = supported(s);
            format!("at least {supported}; --max-load is the highest load tried")
        }
        (Some(s), _) => supported(s),
        (None, _) => "none: no load was sustained".into(),
    };
    let mut blocks = vec![Line::result("load line", sustained)];
    if let Some(upper) = search.figures.load_line.not_sustained {
        blocks.push(Line::result("not sustained", supported(upper)));
    }
    if let Some(failed) = not_sustained(search) {
        let reasons = failed.reasons.iter();
        blocks.extend(reasons.map(|r| Line::nested(&r.code, &r.text)));
        let bottleneck = failed.bottleneck.as_ref().map(simulation::bottleneck);
        blocks.extend(bottleneck.map(|text| Line::nested("bottleneck", text)));
        if failed.is_client_limited() {
            blocks.push(Block::Line(Line {
                text: "the client limited the load: the load line may be the client's and not the \
                       storage's"
                    .into(),
                tone: Tone::Doubtful,
                kind: LineKind::Nested,
                ..Line::default()
            }));
        }
    }
    if let Some(text) = interval(search) {
        blocks.push(Block::Line(Line {
            label: "not found".into(),
            text,
            tone: Tone::Doubtful,
            ..Line::default()
        }));
    }
    blocks
}

/// The last failed run at the lowest load that is not sustained.
fn not_sustained<'a>(search: SeriesOf<'a, LoadSearch>) -> Option<&'a SeriesRun> {
    let load = search.figures.load_line.not_sustained?.load;
    let failed = |r: &&SeriesRun| r.load == Some(load) && !r.is_valid();
    search.series.measured().rev().find(failed)
}

/// A sentence with the interval that contains the load line; `None` for a complete search, and before the first run.
#[must_use]
pub fn interval(search: SeriesOf<'_, LoadSearch>) -> Option<String> {
    let line = &search.figures.load_line;
    if !matches!(
        line.termination,
        SearchEnd::MaxRunsReached | SearchEnd::Unfinished
    ) || search.measured().next().is_none()
    {
        return None;
    }
    let (metric, max) = (search.metric_name(), search.figures.rules.max_load);
    let of = |s: Agreement| Count(s.load).to_string();
    let known = match (line.sustained, line.not_sustained) {
        (Some(lower), Some(upper)) => format!(
            "it lies from {} up to below {} {metric}; the interval is wider than the resolution, \
             or its ends are not confirmed",
            of(lower),
            of(upper)
        ),
        (Some(lower), None) => format!(
            "it is {} {metric} or more; no load was found that is not sustained, and loads up to {} \
             remained to be tried",
            of(lower),
            Count(max)
        ),
        (None, Some(upper)) => format!("it lies below {} {metric}", of(upper)),
        (None, None) => "nothing is known of it".into(),
    };
    Some(known)
}
