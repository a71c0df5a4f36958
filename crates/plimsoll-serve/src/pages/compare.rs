//! Page that compares results.

use crate::address::{address, run_address};
use crate::layout::document;
use crate::problem::Problem;
use crate::state::{Shared, below, run_blocking};
use axum::extract::{RawQuery, State};
use axum::response::Html;
use maud::html;
use plimsoll_report::compare::{Comparison, Results, side_by_side};
use std::path::PathBuf;

const MAX_COMPARED: usize = 26;

pub(crate) async fn show(
    State(app): State<Shared>,
    RawQuery(query): RawQuery,
) -> Result<Html<String>, Problem> {
    let names = names(&query.unwrap_or_default())?;
    run_blocking(move || {
        let mut comparison = compared(&app, &names)?;
        let paths = names.iter().map(|name| path(&app, name));
        comparison.read_latencies(paths.collect::<Result<Vec<_>, _>>()?);
        let body = html! {
            (plimsoll_report::html::page::body(&[plimsoll_report::compare::document(&comparison)]))
            h2 { "The results" }
            ul { @for name in &names {
                @let (results, run) = parts(name);
                @let page = run.map_or_else(|| address(results), |r| run_address(results, r));
                li { a href=(page) { (name) } }
            } }
        };
        let title = format!("{} results side by side", comparison.sets.len());
        Ok(document(&title, &body))
    })
    .await
}

/// Parses the names of compared results, or of single runs as `RESULTS/RUN`.
pub(crate) fn names(query: &str) -> Result<Vec<String>, Problem> {
    let mut names = Vec::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "with" => names.push(value.into_owned()),
            other => {
                return Err(Problem::bad(format!(
                    "`{}` is not a parameter of a comparison: expected with",
                    other.escape_debug()
                )));
            }
        }
    }
    match names.len() {
        2..=MAX_COMPARED => Ok(names),
        n => Err(Problem::bad(format!(
            "From 2 to {MAX_COMPARED} results can be compared, and {n} were named."
        ))),
    }
}

/// Reads the named results and compares their figures.
pub(crate) fn compared(app: &Shared, names: &[String]) -> Result<Comparison, Problem> {
    let read =
        |name: &String| Results::read(&path(app, name)?, name, None).map_err(Problem::conflict);
    let results = names.iter().map(read).collect::<Result<_, _>>()?;
    side_by_side(results, None).map_err(Problem::conflict)
}

/// Directory of the named results, or of the named run.
fn path(app: &Shared, name: &str) -> Result<PathBuf, Problem> {
    let (results, run) = parts(name);
    let path = app.results(results)?.path;
    match run {
        None => Ok(path),
        Some(run) => below(&path, run)
            .ok_or_else(|| Problem::missing(format!("{results} has no run of that name."))),
    }
}

fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once('/') {
        Some((results, run)) => (results, Some(run)),
        None => (name, None),
    }
}
