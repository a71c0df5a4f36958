//! The page on results: the report, and what a person says of it.

use super::compare::run_address;
use super::login::field;
use super::{address, document, status, tag};
use crate::app::{Results, Shared, below, run_blocking};
use crate::problem::Problem;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use maud::{Markup, html};
use plimsoll_html::{LoadedResult, RunData};
use plimsoll_report::profile;
use plimsoll_report::terminal::Layout;
use plimsoll_results::{
    Annotations, CurveDir, FindDir, Kind, ProfileDir, RepeatsDir, RunDir, Tag, Verdict,
};
use std::collections::BTreeSet;
use std::path::Path as FilePath;

/// Columns of a report that is text.
const COLUMNS: usize = 110;

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
    if !app.guard.is_our_form(&field(&form, "form")) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "This form is not of this server, or of one that has ended: go back and load the page \
             again.",
        ));
    }
    let words = field(&form, "tags");
    let words = words.split([',', ' ']).filter(|w| !w.is_empty());
    let tags: BTreeSet<Tag> = words
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(Problem::bad)?;
    // Browsers end lines in two characters.
    let note = field(&form, "note").replace("\r\n", "\n").trim().to_owned();
    run_blocking(move || {
        let results = app.results(&name)?;
        Annotations::change(&results.path, |a| (a.tags, a.note) = (tags, note))?;
        Ok(Redirect::to(&address(&name)))
    })
    .await
}

/// What the list says too.
fn head(results: &Results) -> Markup {
    let said = &results.entry.said;
    html! {
        p.about { span.mono { (results.path.display()) } " " (status(results.entry.status)) }
        @if !said.tags.is_empty() { p { @for t in &said.tags { (tag(t)) } } }
        @if !said.note.is_empty() { p.note { (said.note) } }
    }
}

/// Links to the runs of results that have several.
fn runs(results: &Results) -> Result<Markup, Problem> {
    let verdict = |v: Verdict| status(v.into());
    let name = &results.entry.name;
    let points: Vec<(String, Markup)> = match results.entry.kind {
        Kind::Run => return Ok(html! {}),
        Kind::Repeats => {
            let runs = RepeatsDir::at(&results.path).runs()?;
            let dirs = runs.iter().filter_map(|r| r.path().file_name());
            dirs.map(|n| (n.to_string_lossy().into_owned(), html! {}))
                .collect()
        }
        Kind::Curve => {
            let points = CurveDir::at(&results.path).read()?.results.points;
            let points = points.into_iter();
            points.map(|p| (p.run, verdict(p.verdict))).collect()
        }
        Kind::Profile => {
            let cases = ProfileDir::at(&results.path).read()?.cases.into_iter();
            let ended = cases.filter_map(|c| Some((c.results?, verdict(c.verdict?))));
            ended.collect()
        }
        Kind::Search => {
            let runs = FindDir::at(&results.path).read()?.results.runs;
            let runs = runs.into_iter().map(|r| r.point);
            runs.map(|p| (p.run, verdict(p.verdict))).collect()
        }
    };
    Ok(html! {
        @if !points.is_empty() {
            nav aria-label="Runs" {
                details open[points.len() <= 12] {
                    summary { (points.len()) " runs" }
                    ul { @for (run, verdict) in &points {
                        li { a href=(run_address(name, run)) { (run) } " " (verdict) }
                    } }
                }
            }
        }
    })
}

/// The report, of whatever kind the results are.
fn report(path: &FilePath, kind: Kind) -> Result<Markup, Problem> {
    match kind {
        // What is said of them stands above the report already.
        Kind::Run => {
            let subject = RunData::Run(Box::new(LoadedResult::read(&RunDir::at(path), None)?));
            Ok(plimsoll_html::page::body(&[
                subject.with(Annotations::default())
            ]))
        }
        Kind::Curve | Kind::Search => {
            let subject = RunData::read(path, None)?.with(Annotations::default());
            Ok(plimsoll_html::page::body(&[subject]))
        }
        Kind::Profile => {
            let layout = Layout {
                width: COLUMNS,
                color: false,
            };
            let dir = ProfileDir::at(path);
            let results = dir.read()?;
            let sets = profile::sets(&results, &dir, None)?;
            let text = profile::render(&results, &sets, Some(path), layout);
            Ok(html! {
                h1 { (results.profile) ", profile" }
                pre tabindex="0" { (text) }
            })
        }
        Kind::Repeats => {
            let runs = RepeatsDir::at(path).runs()?;
            let read = |r: &RunDir| Ok(RunData::Run(Box::new(LoadedResult::read(r, None)?)));
            let subjects: Vec<RunData> = runs.iter().map(read).collect::<Result<_, Problem>>()?;
            Ok(plimsoll_html::page::body(&subjects))
        }
    }
}

/// The form that changes tags and note.
fn annotations(results: &Results, form: &str) -> Markup {
    let said = &results.entry.said;
    let place = format!("{}/annotations", address(&results.entry.name));
    html! {
        section {
            h2 { "Tags and note" }
            form method="post" action=(place) {
                input type="hidden" name="form" value=(form);
                p {
                    label.field for="tags" { "Tags, with commas between them" }
                    input id="tags" name="tags" value=(said.tags.join(", ")) size="50" autocomplete="off";
                }
                p {
                    label.field for="note" { "Note" }
                    textarea id="note" name="note" { (said.note) }
                }
                div.actions { button type="submit" { "Save" } }
            }
        }
    }
}
