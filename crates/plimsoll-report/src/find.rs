//! Report on a search for the load line.

use crate::document::{Block, Document, Line, LineKind, Tone};
use crate::format::rate;
use crate::html::charts;
use crate::percentiles::{PercentileKind, shown};
use crate::series::{append, head, load_of, rate_and_mean, remarks, runs, state};
use crate::simulation;
use crate::text::reason_codes;
use plimsoll_plan::{Count, counted};
use plimsoll_results::{
    Agreement, LoadSearch, Percentile, SearchEnd, Series, SeriesOf, SeriesRun, SeriesState,
};

/// Explanation below the heading of the figures of a search.
const ABOUT: &str = "A load is sustained if it passed every criterion in more than half of its runs. The load line lies \
                     between the highest sustained load and the lowest that is not.";

/// The report on a search.
#[must_use]
pub fn document(search: SeriesOf<'_, LoadSearch>) -> Document {
    let end = search.figures.load_line.termination;
    let tone = match (search.state, end) {
        (SeriesState::Failed, _) | (_, SearchEnd::NoneSustained) => Tone::Bad,
        (SeriesState::Complete, SearchEnd::Found | SearchEnd::Saturated) => Tone::Good,
        _ => Tone::Doubtful,
    };
    let state = match search.state {
        SeriesState::Complete | SeriesState::Stopped => end.to_string(),
        _ => state(&search).0.to_owned(),
    };
    let measured = search.measured().count() as u64;
    let state = format!("{state}, {}", counted(measured, "run", "runs"));
    let title = match search.searched() {
        None => format!("{}, search for the load line", search.name),
        Some(parameter) => format!("{}, search over {}", search.name, parameter.name),
    };
    let mut document = Document::new(title, state, tone);
    document.head = head(&search, requested(search));
    if measured > 0 {
        document.explained_section("achieved", "Load line", ABOUT, load_line(search));
    }
    let charts = Block::charts(charts::of_series(&search));
    let load = match search.searched() {
        None => "load".to_owned(),
        Some(parameter) => parameter.quantity(),
    };
    let columns = ["run", load.as_str(), "purpose", "verdict", "margin"];
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
        .section("runs", "Runs", runs)
        .section("charts", "Loads", charts);
    append(&mut document, &search);
    document
}

/// Phrase on the requested load line.
fn requested(search: SeriesOf<'_, LoadSearch>) -> String {
    let rules = &search.figures.rules;
    let most = rules.max_load.map(|max| match search.searched() {
        None => format!(" up to {}", search.load_words(max)),
        Some(parameter) => format!(" up to {}", parameter.value(max)),
    });
    let most = most.unwrap_or_default();
    let promises = &search.first_plan().promises;
    let promises: Vec<String> = promises.iter().map(ToString::to_string).collect();
    match search.searched() {
        None if promises.is_empty() => format!("the highest load{most} that meets the criteria"),
        None => format!(
            "the highest load{most} that meets the criteria and keeps {}",
            promises.join(" and ")
        ),
        Some(parameter) if promises.is_empty() => {
            format!(
                "the highest {}{most} at which runs are valid",
                parameter.name
            )
        }
        Some(parameter) => format!(
            "the highest {}{most} that keeps {}",
            parameter.name,
            promises.join(" and ")
        ),
    }
}

/// One line on a completed run; `number` counts from 1.
#[must_use]
pub fn line(search: &Series, number: usize, run: &SeriesRun) -> String {
    let verdict = match run.is_valid() {
        true => "pass".to_owned(),
        false => format!("fail{}", reason_codes(&run.reasons)),
    };
    format!(
        "run {number}, {}: {}{}: {}: {verdict}",
        purpose(run),
        run.load.map_or("", |_| "load "),
        search.load_words(run.load_or_value().unwrap_or_default()),
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
    let supported = |s: Agreement| {
        format!(
            "{}, passed {} of {}",
            search.load_words(s.load),
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
            let tried = match search.searched() {
                None => "--max-load is the highest load tried",
                Some(_) => "no higher value was to be tried",
            };
            format!("at least {supported}; {tried}")
        }
        (Some(s), SearchEnd::Saturated) => {
            format!("at least {}; higher values were not tried", supported(s))
        }
        (Some(s), _) => supported(s),
        (None, _) => "none: no load was sustained".into(),
    };
    let mut blocks = vec![Line::result("load line", sustained)];
    blocks.extend(saturation(search));
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

/// Lines on the value at which throughput stopped growing, with the figures of the promises at the value; empty if the
/// search ended for another reason.
fn saturation(search: SeriesOf<'_, LoadSearch>) -> Vec<Block> {
    let Some(value) = search.figures.load_line.saturated_at else {
        return vec![];
    };
    let at = search.load_words(value);
    let there = |run: &&SeriesRun| run.load_or_value() == Some(value);
    let Some(run) = search.series.measured().find(there) else {
        return vec![];
    };
    let p99 = shown(run.percentile(Percentile::P99), PercentileKind::Latency);
    let text = format!(
        "throughput stopped growing at {at}: {} ops/s; p99 there is {p99}",
        rate(run.achieved_ops_per_s)
    );
    let kept = run.promises.iter();
    let kept = kept.map(|p| Line::nested(p.condition.to_string(), &p.text));
    std::iter::once(Line::result("saturation", text))
        .chain(kept)
        .collect()
}

/// The last failed run at the lowest load that is not sustained.
fn not_sustained<'a>(search: SeriesOf<'a, LoadSearch>) -> Option<&'a SeriesRun> {
    let load = search.figures.load_line.not_sustained?.load;
    let failed = |r: &&SeriesRun| r.load_or_value() == Some(load) && !r.is_valid();
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
    let of = |s: Agreement| search.load_words(s.load);
    let known = match (line.sustained, line.not_sustained) {
        (Some(lower), Some(upper)) => format!(
            "it lies from {} up to below {}; the interval is wider than the resolution, or its ends are not confirmed",
            of(lower),
            of(upper)
        ),
        (Some(lower), None) => {
            let remaining = match search.figures.rules.max_load {
                Some(max) => format!(", and loads up to {} remained to be tried", Count(max)),
                None => String::new(),
            };
            format!(
                "it is {} or more; no load was found that is not sustained{remaining}",
                of(lower)
            )
        }
        (None, Some(upper)) => format!("it lies below {}", of(upper)),
        (None, None) => "nothing is known of it".into(),
    };
    Some(known)
}
