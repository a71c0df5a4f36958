//! A search for the load line in a terminal or a text file.

use crate::curve::{doubt, rate_and_mean, times};
use crate::format::{clock_note, duration_text, rate};
use crate::percentiles::align_marked;
use crate::simulation;
use crate::table::Table;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph, reason_codes, series_location};
use plimsoll_plan::{Count, counted, scaled};
use plimsoll_results::{
    Agreement, LoadSearch, Percentile, SearchEnd, SeriesDir, SeriesOf, SeriesRun, SeriesState,
};

/// The whole report on a search; `dir` is its directory.
#[must_use]
pub fn render(search: SeriesOf<'_, LoadSearch>, dir: Option<&SeriesDir>, layout: Layout) -> String {
    let mut out = String::new();
    let paint = Paint(layout.color);
    headline(&mut out, search, layout);
    if search.measured().next().is_some() {
        out.push('\n');
        table(search).render(&mut out, layout.columns(), paint);
        let shown = search.shown_percentiles(&[Percentile::P99]);
        doubt(&mut out, search.measured(), shown, layout);
        out.push('\n');
        load_line(&mut out, search, layout);
    }
    series_location(&mut out, &search, dir, paint);
    out
}

/// A run that has just ended, in one line; `number` counts from 1.
#[must_use]
pub fn line(metric: &str, number: usize, run: &SeriesRun) -> String {
    let verdict = match run.is_valid() {
        true => "pass".to_owned(),
        false => format!("fail{}", reason_codes(&run.reasons)),
    };
    format!(
        "run {number}, {}: load {} {metric}: {}: {verdict}",
        purpose(run),
        Count(run.load.unwrap_or_default()),
        rate_and_mean(run),
    )
}

/// The purpose of a run, in a word.
#[must_use]
pub fn purpose(run: &SeriesRun) -> String {
    run.purpose.map_or_else(String::new, |p| p.to_string())
}

/// State of a search, in words.
#[must_use]
pub fn state(search: SeriesOf<'_, LoadSearch>) -> String {
    match search.state {
        SeriesState::Failed => "failed".into(),
        SeriesState::Interrupted => "interrupted".into(),
        SeriesState::Unfinished => "unfinished".into(),
        SeriesState::Complete | SeriesState::Stopped => {
            search.figures.load_line.termination.to_string()
        }
    }
}

fn headline(out: &mut String, search: SeriesOf<'_, LoadSearch>, layout: Layout) {
    let paint = Paint(layout.color);
    let words = state(search);
    let state = match (search.state, search.figures.load_line.termination) {
        (SeriesState::Failed, _) | (_, SearchEnd::NoneSustained) => paint.bad(&words),
        (SeriesState::Complete, SearchEnd::Found) => paint.good(&words),
        _ => paint.doubtful(&words),
    };
    out.push_str(&format!(
        "{}: search for the load line: {state}, {}\n",
        paint.bold(&search.name),
        counted(search.measured().count() as u64, "run", "runs")
    ));
    let columns = layout.columns();
    if let Some(why) = &search.stop_reason {
        paragraph(out, &format!("  {}: ", why.code), &why.text, columns);
    }
    if !search.is_comparable() {
        paragraph(out, "  ", &scaled(search.scale()), columns);
    }
    let (warmup_s, window_s) = search.times_s();
    let mut facts = format!(
        "load in {}, at most {}, {} measured after {} of warm-up{} in each run, seed {}, target {}",
        search.metric_name(),
        Count(search.figures.rules.max_load),
        duration_text(window_s),
        duration_text(warmup_s),
        clock_note(search.clock),
        search.seed(),
        search.first_target().url
    );
    if search.ranks > 1 {
        facts.push_str(&format!(", {} ranks", search.ranks));
    }
    paragraph(out, "  ", &facts, columns);
    for note in &search.notes {
        paragraph(out, "  note: ", &note.text, columns);
    }
}

fn table(search: SeriesOf<'_, LoadSearch>) -> Table {
    let shown = search.shown_percentiles(&[Percentile::P99]);
    let mut head = ["run", "load", "offered/s", "ops/s", "mean"]
        .map(str::to_owned)
        .to_vec();
    head.extend(shown.iter().map(Percentile::to_string));
    head.extend(["margin", "purpose", "verdict"].map(str::to_owned));
    let mut table = Table::new(&head);
    let mut all: Vec<Vec<String>> = search.measured().map(|r| times(r, shown)).collect();
    align_marked(&mut all.iter_mut().collect::<Vec<_>>());
    for ((number, run), times) in (1u64..).zip(search.measured()).zip(all) {
        let mut row = vec![
            number.to_string(),
            Count(run.load.unwrap_or_default()).to_string(),
            run.offered_ops_per_s.map_or("-".into(), rate),
            rate(run.achieved_ops_per_s),
        ];
        row.extend(times);
        let margin = run.margin.map(|m| format!("{:+.1} %", 100.0 * m));
        row.extend([
            margin.unwrap_or("-".into()),
            purpose(run),
            if run.is_valid() { "pass" } else { "fail" }.into(),
        ]);
        table.row(row);
    }
    table
}

/// The load line, the runs that support it, and why a higher load is not sustained.
fn load_line(out: &mut String, search: SeriesOf<'_, LoadSearch>, layout: Layout) {
    let columns = layout.columns();
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
    paragraph(out, "load line: ", &sustained, columns);
    if let Some(text) = interval(search) {
        paragraph(out, "not found: ", &text, columns);
    }
    let Some(upper) = search.figures.load_line.not_sustained else {
        return;
    };
    paragraph(out, "not sustained: ", &supported(upper), columns);
    let Some(failed) = not_sustained(search) else {
        return;
    };
    for reason in &failed.reasons {
        paragraph(out, &format!("  {}: ", reason.code), &reason.text, columns);
    }
    if let Some(text) = bottleneck(search) {
        paragraph(out, "  bottleneck: ", &text, columns);
    }
    if failed.is_client_limited() {
        let text =
            "the client limited the load: the load line may be the client's and not the storage's";
        paragraph(out, "  ", text, columns);
    }
}

/// The last failed run at the lowest load that is not sustained.
fn not_sustained<'a>(search: SeriesOf<'a, LoadSearch>) -> Option<&'a SeriesRun> {
    let load = search.figures.load_line.not_sustained?.load;
    let failed = |r: &&SeriesRun| r.load == Some(load) && !r.is_valid();
    search.series.measured().rev().find(failed)
}

/// The station that limits the simulated system at the lowest load that is not sustained.
#[must_use]
pub fn bottleneck(search: SeriesOf<'_, LoadSearch>) -> Option<String> {
    let station = not_sustained(search)?.bottleneck.as_ref()?;
    Some(simulation::bottleneck(station))
}

/// The interval in which the load line is, in a sentence, if the search ended before it was found.
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
