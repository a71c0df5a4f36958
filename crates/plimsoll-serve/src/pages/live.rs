//! Pages on runs in progress.

use crate::layout::document;
use crate::live::{find_run, progress};
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::{Path, State};
use axum::response::Html;
use maud::html;
use plimsoll_plan::Count;
use plimsoll_report::local_time;

pub(crate) async fn list(State(app): State<Shared>) -> Result<Html<String>, Problem> {
    run_blocking(move || {
        let dirs = app.live()?;
        // A run that has just ended cannot be read and is left out.
        let runs = dirs.iter().filter_map(|d| Some((d.id(), d.read().ok()?)));
        let runs: Vec<_> = runs.collect();
        let body = html! {
            h1 { "Runs in progress" }
            @if runs.is_empty() { p { "None." } }
            ul { @for (id, run) in &runs {
                li { a href=(format!("/live/{id}")) { (run.name) } " since " (local_time(&run.started_at)) }
            } }
        };
        Ok(document("Runs in progress", &body))
    })
    .await
}

pub(crate) async fn show(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Html<String>, Problem> {
    run_blocking(move || {
        let dir = find_run(&app, &id)?;
        let run = dir.read()?;
        let (_, progress) = progress(&dir)?;
        let body = html! {
            h1 { (run.workload) }
            p {
                "Since " (local_time(&run.started_at)) ", " (Count(run.workers)) " workers: "
                strong id="state" role="status" { "in progress" }
                " " a id="results" href="/" hidden { "See the results" }
            }
            p.about { "Rates and latencies are those of the last interval; charts show the last 600." }
            div id="figures" data-events=(format!("/live/{}/events", dir.id())) { (progress.markup()) }
        };
        Ok(document(&run.name, &body))
    })
    .await
}
