//! Pages: what every one has, and one module a page.

pub(crate) mod compare;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod live;
pub(crate) mod login;
pub(crate) mod result;

use crate::assets::{BROWSER_PATH, CHARTS_PATH, STYLE_PATH};
use crate::problem::Problem;
use axum::response::Html;
use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, html};
use plimsoll_diagnostics::foreign;
use plimsoll_results::Status;

/// A whole page.
pub(crate) fn document(title: &str, body: &Markup) -> Html<String> {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Plimsoll" }
                // An empty picture, so that browsers do not ask for one.
                link rel="icon" href="data:,";
                link rel="stylesheet" href=(STYLE_PATH);
                script src=(CHARTS_PATH) defer {}
                script src=(BROWSER_PATH) defer {}
            }
            body {
                nav.top aria-label="Plimsoll" {
                    a.skip href="#main" { "To the content" }
                    strong { a href="/" { "Plimsoll" } }
                    a href="/" { "Results" }
                    a href="/live" { "In progress" }
                }
                main id="main" { (body) }
                footer { "Plimsoll " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    Html(foreign::replaced(&markup.into_string()).into_owned())
}

/// A page that says why there is no other.
pub(crate) fn problem(problem: &Problem) -> Html<String> {
    let title = problem.status.canonical_reason().unwrap_or("Problem");
    document(
        title,
        &html! {
            h1 { (title) }
            p.alert role="alert" { (problem.message) }
            p { a href="/" { "All results" } }
        },
    )
}

/// A part of an address, of any text.
pub(crate) fn segment(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let mut out = String::new();
    for b in text.bytes() {
        match plain(b) {
            true => out.push(char::from(b)),
            false => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

/// Address of the page on results.
pub(crate) fn address(name: &str) -> String {
    format!("/results/{}", segment(name))
}

/// A status in its colour.
pub(crate) fn status(status: Status) -> Markup {
    let class = match status {
        Status::Valid => "good",
        Status::Invalid | Status::Interrupted | Status::Unfinished => "doubtful",
        Status::Failed => "bad",
    };
    html! { span.status.(class) { (status) } }
}

/// A tag that leads to the results that have it.
pub(crate) fn tag(tag: &str) -> Markup {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("tag", tag)
        .finish();
    html! { a.tag href=(format!("/?{query}")) { (tag) } }
}

/// A time of results by the clock of this machine; as it is if it is none.
pub(crate) fn time(started: &str) -> String {
    let time: Result<jiff::Timestamp, _> = started.parse();
    time.map_or_else(
        |_| started.to_owned(),
        |t| {
            let local = t.to_zoned(TimeZone::system());
            local.strftime("%Y-%m-%d %H:%M:%S").to_string()
        },
    )
}
