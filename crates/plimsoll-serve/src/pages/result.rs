//! Page on results: the report, and the user's tags and note.

use super::form::{field, require_own};
use super::{status, tag};
use crate::address::{address, run_address};
use crate::layout::document;
use crate::problem::Problem;
use crate::state::{Results, Shared, below, run_blocking};
use axum::extract::{Path, State};
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use plimsoll_report::html::{RunData, page};
use plimsoll_report::series;
use plimsoll_results::{Annotations, Kind, SeriesDir, SeriesRun, Tag, Verdict, run_dirs};
use std::collections::BTreeSet;
use std::path::Path as FilePath;

pub(crate) async fn show(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<Html<String>, Problem> {
    run_blocking(move || {
        let results = app.results(&name)?;
        let body = html! {
            (head(&results))
            (runs(&results)?)
            (report(&results.path, results.entry.kind)?)
            (annotations(&results, app.guard.form()))
            section {
                h2 { "Delete" }
                div.actions { a.button.danger href=(format!("{}/delete", address(&name))) { "Delete these results…" } }
            }
        };
        Ok(document(&name, &body))
    })
    .await
}

pub(crate) async fn show_run(
    State(app): State<Shared>,
    Path((name, run)): Path<(String, String)>,
) -> Result<Html<String>, Problem> {
    run_blocking(move || {
        let results = app.results(&name)?;
        let missing = || Problem::missing(format!("{name} has no run of that name."));
        let path = below(&results.path, &run).ok_or_else(missing)?;
        let kind = Kind::of(&path).map_err(|_| missing())?;
        let body = html! {
            p { "Of " a href=(address(&name)) { (name) } }
            (report(&path, kind)?)
        };
        Ok(document(&format!("{name}, {run}"), &body))
    })
    .await
}

pub(crate) async fn annotate(
    State(app): State<Shared>,
    Path(name): Path<String>,
    form: String,
) -> Result<Redirect, Problem> {
    require_own(&app, &form)?;
    let words = field(&form, "tags");
    let words = words.split([',', ' ']).filter(|w| !w.is_empty());
    let tags: BTreeSet<Tag> = words
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(Problem::bad)?;
    // Browsers end lines of a form with CR LF.
    let note = field(&form, "note").replace("\r\n", "\n").trim().to_owned();
    run_blocking(move || {
        let results = app.results(&name)?;
        Annotations::change(&results.path, |a| (a.tags, a.note) = (tags, note))?;
        Ok(Redirect::to(&address(&name)))
    })
    .await
}

/// Head of the page on results: directory, status, tags and note.
fn head(results: &Results) -> Markup {
    let entry = &results.entry;
    html! {
        p.about { span.mono { (results.path.display()) } " " (status(results.entry.status)) }
        @if !entry.tags.is_empty() { p { @for t in &entry.tags { (tag(t)) } } }
        @if !entry.note.is_empty() { p.note { (entry.note) } }
    }
}

/// Links to the pages of a series' runs; empty for a single run.
fn runs(results: &Results) -> Result<Markup, Problem> {
    let verdict = |v: Verdict| status(v.into());
    let name = &results.entry.name;
    let runs: Vec<(String, Markup)> = match results.entry.kind {
        Kind::Run => return Ok(html! {}),
        _ => {
            let runs = SeriesDir::at(&results.path).read()?.runs;
            let link = |run: SeriesRun| (run.directory, verdict(run.verdict));
            runs.into_iter().map(link).collect()
        }
    };
    Ok(html! {
        @if !runs.is_empty() {
            nav aria-label="Runs" {
                details open[runs.len() <= 12] {
                    summary { (runs.len()) " runs" }
                    ul { @for (run, verdict) in &runs {
                        li { a href=(run_address(name, run)) { (run) } " " (verdict) }
                    } }
                }
            }
        }
    })
}

/// Report on results of any kind, without tags and note, which the head shows.
fn report(path: &FilePath, kind: Kind) -> Result<Markup, Problem> {
    let run = |path: &FilePath| RunData::read(path, None).map(|data| data.document());
    let documents = match kind {
        Kind::Run | Kind::Curve | Kind::Search | Kind::Ab | Kind::Sweep | Kind::Suite => {
            vec![run(path)?]
        }
        Kind::Profile => {
            let dir = SeriesDir::at(path);
            vec![series::document(&dir.read()?, &dir)?]
        }
        Kind::Repeats => {
            let dir = SeriesDir::at(path);
            let runs = run_dirs(path)?.into_iter();
            let runs = runs.map(|r| run(r.path())).collect::<Result<Vec<_>, _>>()?;
            [vec![series::document(&dir.read()?, &dir)?], runs].concat()
        }
    };
    Ok(page::body(&documents))
}

/// Form in which the user changes the tags and the note of results.
fn annotations(results: &Results, form: &str) -> Markup {
    let entry = &results.entry;
    let action = format!("{}/annotations", address(&results.entry.name));
    html! {
        section {
            h2 { "Tags and note" }
            form method="post" action=(action) {
                input type="hidden" name="form" value=(form);
                p {
                    label.field for="tags" { "Tags, comma-separated" }
                    input id="tags" name="tags" value=(entry.tags.join(", ")) size="50" autocomplete="off";
                }
                p {
                    label.field for="note" { "Note" }
                    textarea id="note" name="note" { (entry.note) }
                }
                div.actions { button type="submit" { "Save" } }
            }
        }
    }
}
