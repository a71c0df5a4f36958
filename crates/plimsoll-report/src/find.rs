//! A search for the load line in a terminal or a text file.

use crate::curve::{doubt, rate_and_mean, times};
use crate::format::{clock_note, duration_text, rate};
use crate::percentiles::align_marked;
use crate::simulation;
use crate::table::Table;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph, reason_codes, results_location};
use plimsoll_plan::{Count, counted, scaled};
use plimsoll_points::{Agreement, SearchEnd};
use plimsoll_results::{LoadSearch, Percentile, SearchRun};
use std::path::Path;

/// The whole report on a search; `results` is its directory.
#[must_use]
pub fn render(search: &LoadSearch, results: Option<&Path>, layout: Layout) -> String {
    let mut out = String::new();
    let paint = Paint(layout.color);
    headline(&mut out, search, layout);
    if !search.runs.is_empty() {
        out.push('\n');
        table(search).render(&mut out, layout.columns(), paint);
        let points = search.runs.iter().map(|r| &r.point);
        let shown = search.shown_percentiles(&[Percentile::P99]);
        doubt(&mut out, points, shown, layout);
        out.push('\n');
        load_line(&mut out, search, layout);
    }
    let resume = search.can_resume().then_some("find");
    results_location(&mut out, results, resume, paint);
    out
}

/// A run that has just ended, in one line; `number` counts from 1.
#[must_use]
pub fn line(metric: &str, number: usize, run: &SearchRun) -> String {
    let point = &run.point;
    let verdict = match run.passed {
        true => "pass".to_owned(),
        false => format!("fail{}", reason_codes(&point.reasons)),
    };
    format!(
        "run {number}, {}: load {} {metric}: {}: {verdict}",
        run.purpose,
        Count(point.load),
        rate_and_mean(point),
    )
}

fn headline(out: &mut String, search: &LoadSearch, layout: Layout) {
    let paint = Paint(layout.color);
    let termination = search.selection.load_line.termination.to_string();
    let state = match (
        search.selection.load_line.termination,
        &search.selection.failure,
    ) {
        (_, Some(_)) => paint.bad("failed"),
        (SearchEnd::Found, None) => paint.good("found"),
        (SearchEnd::NoneSustained, None) => paint.bad(&termination),
        (
            SearchEnd::MaxLoadSustained
            | SearchEnd::MaxRunsReached
            | SearchEnd::Interrupted
            | SearchEnd::Unfinished,
            None,
        ) => paint.doubtful(&termination),
    };
    out.push_str(&format!(
        "{}: search for the load line: {state}, {}\n",
        paint.bold(&search.workload),
        counted(search.runs.len() as u64, "run", "runs")
    ));
    let columns = layout.columns();
    if let Some(why) = &search.selection.failure {
        paragraph(out, &format!("  {}: ", why.code), &why.text, columns);
    }
    if !search.comparable {
        paragraph(out, "  ", &scaled(search.scale), columns);
    }
    let mut facts = format!(
        "load in {}, at most {}, {} measured after {} of warm-up{} in each run, seed {}, target {}",
        search.metric,
        Count(search.selection.search.max_load),
        duration_text(search.measure_s),
        duration_text(search.warmup_s),
        clock_note(search.clock),
        search.seed,
        search.target.url
    );
    if search.ranks > 1 {
        facts.push_str(&format!(", {} ranks", search.ranks));
    }
    paragraph(out, "  ", &facts, columns);
    for note in &search.notes {
        paragraph(out, "  note: ", &note.text, columns);
    }
}

fn table(search: &LoadSearch) -> Table {
    let shown = search.shown_percentiles(&[Percentile::P99]);
    let mut head = ["run", "load", "offered/s", "ops/s", "mean"]
        .map(str::to_owned)
        .to_vec();
    head.extend(shown.iter().map(Percentile::to_string));
    head.extend(["margin", "purpose", "verdict"].map(str::to_owned));
    let mut table = Table::new(&head);
    let mut all: Vec<Vec<String>> = search.runs.iter().map(|r| times(&r.point, shown)).collect();
    align_marked(&mut all.iter_mut().collect::<Vec<_>>());
    for ((number, run), times) in (1u64..).zip(&search.runs).zip(all) {
        let p = &run.point;
        let mut row = vec![
            number.to_string(),
            Count(p.load).to_string(),
            p.offered_ops_per_s.map_or("-".into(), rate),
            rate(p.achieved_ops_per_s),
        ];
        row.extend(times);
        let margin = run.margin.map(|m| format!("{:+.1} %", 100.0 * m));
        row.extend([
            margin.unwrap_or("-".into()),
            run.purpose.to_string(),
            if run.passed { "pass" } else { "fail" }.into(),
        ]);
        table.row(row);
    }
    table
}

/// The load line, the runs that support it, and why a higher load is not sustained.
fn load_line(out: &mut String, search: &LoadSearch, layout: Layout) {
    let columns = layout.columns();
    let metric = &search.metric;
    let supported = |s: Agreement| {
        format!(
            "{} {metric}, passed {} of {}",
            Count(s.load),
            s.passed,
            counted(u64::from(s.runs), "run", "runs")
        )
    };
    let sustained = match (
        search.selection.load_line.sustained,
        search.selection.load_line.termination,
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
    let Some(upper) = search.selection.load_line.not_sustained else {
        return;
    };
    paragraph(out, "not sustained: ", &supported(upper), columns);
    let Some(failed) = not_sustained(search) else {
        return;
    };
    for reason in &failed.point.reasons {
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
fn not_sustained(search: &LoadSearch) -> Option<&SearchRun> {
    let load = search.selection.load_line.not_sustained?.load;
    let failed = |r: &&SearchRun| r.point.load == load && !r.passed;
    search.runs.iter().rev().find(failed)
}

/// The station that limits the simulated system at the lowest load that is not sustained.
#[must_use]
pub fn bottleneck(search: &LoadSearch) -> Option<String> {
    let station = not_sustained(search)?.point.bottleneck.as_ref()?;
    Some(simulation::bottleneck(station))
}

/// The interval in which the load line is, in a sentence, if the search ended before it was found.
#[must_use]
pub fn interval(search: &LoadSearch) -> Option<String> {
    let line = &search.selection.load_line;
    if !matches!(
        line.termination,
        SearchEnd::MaxRunsReached | SearchEnd::Interrupted | SearchEnd::Unfinished
    ) || search.runs.is_empty()
    {
        return None;
    }
    let (metric, max) = (&search.metric, search.selection.search.max_load);
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
