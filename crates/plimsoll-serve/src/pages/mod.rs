//! Pages of the results browser, with a module for each page, and parts that several pages show.

pub(crate) mod compare;
pub(crate) mod delete;
mod form;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod result;

use maud::{Markup, html};
use plimsoll_results::Status;

/// The status of results as HTML, in the colour of the status.
fn status(status: Status) -> Markup {
    let class = match status {
        Status::Valid => "good",
        Status::Invalid | Status::Interrupted | Status::Unfinished => "doubtful",
        Status::Failed => "bad",
    };
    html! { span.status.(class) { (status) } }
}

/// A tag as a link to the list of the results that have the tag.
fn tag(tag: &str) -> Markup {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("tag", tag)
        .finish();
    html! { a.tag href=(format!("/?{query}")) { (tag) } }
}
