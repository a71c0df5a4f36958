//! Forms of the pages.

use crate::problem::Problem;
use crate::state::App;
use axum::http::StatusCode;

/// The value of a field of a URL-encoded form; empty if the form has no such field.
pub(crate) fn field(form: &str, name: &str) -> String {
    let mut pairs = form_urlencoded::parse(form.as_bytes());
    let found = pairs.find(|(n, _)| n == name);
    found.map_or_else(String::new, |(_, value)| value.into_owned())
}

/// Refuses a form that does not come from one of this server's own pages.
pub(crate) fn require_own(app: &App, form: &str) -> Result<(), Problem> {
    match app.guard.is_our_form(&field(form, "form")) {
        true => Ok(()),
        false => Err(Problem::new(
            StatusCode::FORBIDDEN,
            "This form came from another server or from an earlier run of this one: go back and \
             load the page again.",
        )),
    }
}
