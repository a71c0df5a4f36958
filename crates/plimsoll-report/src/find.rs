//! A search for the load line in a terminal or a text file.

use crate::curve::{doubt, latency_of, times};
use crate::format::rate;
use crate::percentiles::align_marked;
use crate::table::Table;
use crate::terminal::Layout;
use crate::text::{Paint, paragraph};
use plimsoll_plan::{Count, counted, scaled, show_duration};
use plimsoll_points::{Agreement, SearchEnd};
use plimsoll_results::{ClockKind, LoadSearch, Percentile, SearchRun};
use std::path::Path;
use std::time::Duration;

/// The whole report of a search; `results` is where its directory lies.
#[must_use]
pub fn render(search: &LoadSearch, results: Option<&Path>, layout: Layout) -> String {
    let mut out = String::new();
    let paint = Paint(layout.color);
    headline(&mut out, search, layout);
    if !search.runs.is_empty() {
        out.push('\n');
        table(search).render(&mut out, layout.columns(), paint);
        let points = search.runs.iter().map(|r| &r.point);
        doubt(
            &mut out,
            points,
            search.shown_percentiles(&[Percentile::P99]),
            layout,
        );
        out.push('\n');
        line_found(&mut out, search, layout);
    }
    if let Some(path) = results {
        let path = path.display().to_string();
        out.push_str(&format!("\nresults in {}\n", paint.bold(&path)));
        if search.can_resume() {
            out.push_str(&format!("resume with plimsoll find --resume {path}\n"));
        }
    }
    out
}

/// A run in one line, for when it has just been made; `number` counts from 1.
#[must_use]
pub fn line(metric: &str, number: usize, run: &SearchRun) -> String {
    let point = &run.point;
    let asked = match point.offered_ops_per_s {
        Some(asked) => format!(" of {}", rate(asked)),
        None => String::new(),
    };
    let codes: Vec<&str> = point.reasons.iter().map(|r| r.code.as_str()).collect();
    let verdict = match run.passed {
        true => "pass".to_owned(),
        false => format!("fail ({})", codes.join(", ")),
    };
    format!(
        "run {number}, {}: load {} {metric}: {}{asked} ops/s, mean {}: {verdict}",
        run.purpose,
        Count(point.load),
        rate(point.achieved_ops_per_s),
        latency_of(point.mean_ms).replace("  ", " "),
    )
}

fn headline(out: &mut String, search: &LoadSearch, layout: Layout) {
    let paint = Paint(layout.color);
    let said = search.selection.load_line.termination.to_string();
    let state = match (
        search.selection.load_line.termination,
        &search.selection.failure,
    ) {
        (_, Some(_)) => paint.bad("failed"),
        (SearchEnd::Found, None) => paint.good("found"),
        (SearchEnd::NoneSustained, None) => paint.bad(&said),
        (
            SearchEnd::MaxLoadSustained
            | SearchEnd::MaxRunsReached
            | SearchEnd::Interrupted
            | SearchEnd::Unfinished,
            None,
        ) => paint.doubtful(&said),
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
    let length = |s: f64| show_duration(Duration::try_from_secs_f64(s).unwrap_or_default());
    let clock = match search.clock {
        ClockKind::Real => "",
        ClockKind::Virtual => " of virtual time",
    };
    let mut facts = format!(
        "load in {}, at most {}, {} measured after {} of warm-up{clock} in each run, seed {}, \
         target {}",
        search.metric,
        Count(search.selection.search.max_load),
        length(search.measure_s),
        length(search.warmup_s),
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
    for ((number, run), times) in (1..).zip(&search.runs).zip(all) {
        let p = &run.point;
        let number: u64 = number;
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

/// Where the load line lies, how sure that is, and what stands against a higher load.
fn line_found(out: &mut String, search: &LoadSearch, layout: Layout) {
    let columns = layout.columns();
    let metric = &search.metric;
    let sure = |s: Agreement| {
        format!(
            "{} {metric}, passed {} of {}",
            Count(s.load),
            s.passed,
            counted(u64::from(s.runs), "run", "runs")
        )
    };
    let carried = match (
        search.selection.load_line.sustained,
        search.selection.load_line.termination,
    ) {
        (Some(s), SearchEnd::MaxLoadSustained) => {
            format!("at least {}; --max-load is the highest load tried", sure(s))
        }
        (Some(s), _) => sure(s),
        (None, _) => "none: no load was sustained".into(),
    };
    paragraph(out, "load line: ", &carried, columns);
    if let Some(text) = interval(search) {
        paragraph(out, "not found: ", &text, columns);
    }
    let Some(upper) = search.selection.load_line.not_sustained else {
        return;
    };
    paragraph(out, "not sustained: ", &sure(upper), columns);
    let of_upper = search
        .runs
        .iter()
        .rev()
        .filter(|r| r.point.load == upper.load);
    let Some(worst) = of_upper.into_iter().find(|r| !r.passed) else {
        return;
    };
    for reason in &worst.point.reasons {
        paragraph(out, &format!("  {}: ", reason.code), &reason.text, columns);
    }
    if worst.is_client_limited() {
        let text =
            "the client limited the load: the load line may be the client's and not the storage's";
        paragraph(out, "  ", text, columns);
    }
}

/// What is known of the load line if the search ended before it was found, in a sentence.
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
            "it lies from {} up to below {} {metric}; the interval is not as narrow as it was to \
             be, or its ends are not confirmed",
            of(lower),
            of(upper)
        ),
        (Some(lower), None) => format!(
            "it is {} {metric} or more; no load was found that is not sustained, and loads up to {} \
             were to be tried",
            of(lower),
            Count(max)
        ),
        (None, Some(upper)) => format!("it lies below {} {metric}", of(upper)),
        (None, None) => "nothing is known of it".into(),
    };
    Some(known)
}
