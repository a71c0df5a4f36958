//! JSON interface for programs, with the same data as the pages.

use crate::filter::Listing;
use crate::live::{LastInterval, Totals, find_run, progress};
use crate::pages::{compare, delete};
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use plimsoll_results::{LiveDir, LiveRun};
use serde::Serialize;
use std::collections::BTreeMap;

type JsonResult = Result<Response, Failed>;

/// Failure of a request to the JSON interface; the response is JSON instead of a page.
struct Failed(Problem);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        self.0.json()
    }
}

impl<E: Into<Problem>> From<E> for Failed {
    fn from(e: E) -> Self {
        Self(e.into())
    }
}

pub(crate) fn router() -> Router<Shared> {
    Router::new()
        .route("/results", get(list))
        .route("/results/{name}", get(entry).delete(remove))
        .route("/results/{name}/document", get(document))
        .route("/compare", get(side_by_side))
        .route("/live", get(live))
        .route("/live/{id}", get(live_run))
        .fallback(async || Failed(Problem::missing("not found")))
        .method_not_allowed_fallback(async || {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            Failed(Problem::new(status, "that cannot be done here"))
        })
}

fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn json_response(value: &impl Serialize) -> JsonResult {
    let text = serde_json::to_string_pretty(value).map_err(Problem::internal)?;
    Ok(json_text(text + "\n"))
}

async fn list(State(app): State<Shared>, RawQuery(query): RawQuery) -> JsonResult {
    let listing = Listing::parse(&query.unwrap_or_default()).map_err(Problem::bad)?;
    let found = run_blocking(move || app.index()?.list(&listing).map_err(Problem::bad)).await?;
    json_response(&found)
}

async fn entry(State(app): State<Shared>, Path(name): Path<String>) -> JsonResult {
    let results = run_blocking(move || app.results(&name)).await?;
    json_response(&results.entry)
}

/// Responds with `run.json` or `series.json` of the results with a name, unchanged.
async fn document(State(app): State<Shared>, Path(name): Path<String>) -> JsonResult {
    let text = run_blocking(move || {
        let results = app.results(&name)?;
        let path = results.path.join(results.entry.kind.file());
        plimsoll_results::read_regular(&path)
            .map_err(|e| Problem::internal(format!("cannot read {}: {e}", path.display())))
    })
    .await?;
    Ok(json_text(text))
}

async fn remove(
    State(app): State<Shared>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> JsonResult {
    let tagged = match query.as_deref() {
        None | Some("") => false,
        Some("tagged=true") => true,
        Some(_) => {
            let message = "expected no parameter, or tagged=true to delete what has tags";
            return Err(Problem::bad(message).into());
        }
    };
    run_blocking(move || delete::remove(&app, &name, tagged)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn side_by_side(State(app): State<Shared>, RawQuery(query): RawQuery) -> JsonResult {
    let names = compare::names(&query.unwrap_or_default())?;
    let comparison = run_blocking(move || compare::compared(&app, &names)).await?;
    json_response(&comparison)
}

async fn live(State(app): State<Shared>) -> JsonResult {
    let runs = run_blocking(move || {
        let dirs = app.live()?;
        // A run that has just ended cannot be read and is left out.
        let runs = dirs.iter().filter_map(|d| described(d).ok());
        Ok(runs.collect::<Vec<_>>())
    })
    .await?;
    json_response(&BTreeMap::from([("runs", runs)]))
}

async fn live_run(State(app): State<Shared>, Path(id): Path<String>) -> JsonResult {
    let run = run_blocking(move || described(&find_run(&app, &id)?)).await?;
    json_response(&run)
}

/// JSON response on a run in progress: its settings and its measurements so far.
#[derive(Serialize)]
struct RunInProgress {
    id: String,
    run: LiveRun,
    latest: Option<LastInterval>,
    operations: Vec<OperationInProgress>,
}

#[derive(Serialize)]
struct OperationInProgress {
    name: String,
    kind: String,
    totals: Totals,
}

fn described(dir: &LiveDir) -> Result<RunInProgress, Problem> {
    let run = dir.read()?;
    let (_, progress) = progress(dir)?;
    let latest = progress.latest();
    let operation = |((name, kind), totals)| OperationInProgress { name, kind, totals };
    Ok(RunInProgress {
        id: dir.id().to_owned(),
        run,
        latest,
        operations: progress.operations.into_iter().map(operation).collect(),
    })
}
