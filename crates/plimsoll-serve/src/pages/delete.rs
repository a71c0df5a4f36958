//! Deletion of results: the page that asks for confirmation, and its form.

use super::form::{field, require_own};
use super::tag;
use crate::address::address;
use crate::layout::document;
use crate::problem::Problem;
use crate::state::{Shared, run_blocking};
use axum::extract::{Path, State};
use axum::response::{Html, Redirect};
use maud::html;
use plimsoll_plan::{Bytes, counted};
use plimsoll_results::Removal;

pub(crate) async fn confirm_page(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<Html<String>, Problem> {
    run_blocking(move || {
        let results = app.results(&name)?;
        let removal = Removal::of(&results.path)?;
        let tags = &results.entry.tags;
        let files = counted(removal.files() as u64, "file", "files");
        let body = html! {
            h1 { "Delete " (name) "?" }
            p { (files) ", " (Bytes(removal.bytes())) ", in " span.mono { (results.path.display()) } }
            form method="post" action=(format!("{}/delete", address(&name))) {
                input type="hidden" name="form" value=(app.guard.form());
                @if !tags.is_empty() {
                    p { "It is tagged: " @for t in tags { (tag(t)) } }
                    p { label {
                        input type="checkbox" name="tagged" value="yes" required;
                        " Delete it although it is tagged"
                    } }
                }
                div.actions {
                    button.danger type="submit" { "Delete" }
                    a href=(address(&name)) { "Keep" }
                }
            }
        };
        Ok(document("Delete", &body))
    })
    .await
}

pub(crate) async fn execute(
    State(app): State<Shared>,
    Path(name): Path<String>,
    form: String,
) -> Result<Redirect, Problem> {
    require_own(&app, &form)?;
    let tagged = field(&form, "tagged") == "yes";
    run_blocking(move || {
        remove(&app, &name, tagged)?;
        Ok(Redirect::to("/"))
    })
    .await
}

/// Deletes results; refuses tagged results unless `tagged` is true.
pub(crate) fn remove(app: &Shared, name: &str, tagged: bool) -> Result<(), Problem> {
    let results = app.results(name)?;
    let tags = results.entry.tags.join(", ");
    if !tags.is_empty() && !tagged {
        return Err(Problem::conflict(format!(
            "{name} is tagged ({tags}): it is deleted only if tagged results are included"
        )));
    }
    Ok(Removal::of(&results.path)?.execute()?)
}
