//! Layout of every page around its content.

use crate::assets::{BROWSER_PATH, CHARTS_PATH, STYLE_PATH};
use axum::http::StatusCode;
use axum::response::Html;
use maud::{Markup, html};
use plimsoll_report::html::page::html_document;

/// A complete HTML page with the navigation of the results browser around `body`.
pub(crate) fn document(title: &str, body: &Markup) -> Html<String> {
    let head = html! {
        title { (title) " – Plimsoll" }
        // An empty icon keeps browsers from requesting `/favicon.ico`.
        link rel="icon" href="data:,";
        link rel="stylesheet" href=(STYLE_PATH);
        script src=(CHARTS_PATH) defer {}
        script src=(BROWSER_PATH) defer {}
    };
    let body = html! {
        nav.top aria-label="Plimsoll" {
            a.skip href="#main" { "To the content" }
            strong { a href="/" { "Plimsoll" } }
            a href="/" { "Results" }
            a href="/live" { "In progress" }
        }
        main id="main" { (body) }
        footer { "Plimsoll " (env!("CARGO_PKG_VERSION")) }
    };
    Html(html_document(&head, &body))
}

/// Page for a request that failed, with the message and the name of the HTTP status.
pub(crate) fn error_page(status: StatusCode, message: &str) -> Html<String> {
    let title = status.canonical_reason().unwrap_or("Problem");
    document(
        title,
        &html! {
            h1 { (title) }
            p.alert role="alert" { (message) }
            p { a href="/" { "All results" } }
        },
    )
}
