//! Deleting results: the question, and the deed.

use super::login::field;
use super::{address, document, tag};
use crate::app::{Shared, run_blocking};
use crate::problem::Problem;
use axum::extract::{Path, State};
use axum::http::StatusCode;
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
        let tags = &results.entry.said.tags;
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

pub(crate) async fn carry_out(
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
    let tagged = field(&form, "tagged") == "yes";
    run_blocking(move || {
        remove(&app, &name, tagged)?;
        Ok(Redirect::to("/"))
    })
    .await
}

/// Deletes results; tagged ones only if that is said.
pub(crate) fn remove(app: &Shared, name: &str, tagged: bool) -> Result<(), Problem> {
    let results = app.results(name)?;
    let tags = results.entry.said.tags.join(", ");
    if !tags.is_empty() && !tagged {
        return Err(Problem::conflict(format!(
            "{name} is tagged ({tags}): it is deleted only if that is said"
        )));
    }
    Ok(Removal::of(&results.path)?.execute()?)
}
