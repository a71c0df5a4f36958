//! The style and the scripts of the pages.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// Where the style sheet is.
pub(crate) const STYLE_PATH: &str = "/assets/style.css";

/// Where the script of charts is.
pub(crate) const CHARTS_PATH: &str = "/assets/charts.js";

/// Where the script of our own pages is.
pub(crate) const BROWSER_PATH: &str = "/assets/browser.js";

/// Rules for what reports do not have.
const BROWSER_STYLE: &str = include_str!("assets/browser.css");

/// Watches a run, and counts ticks.
const BROWSER_SCRIPT: &str = include_str!("assets/browser.js");

const CSS: &str = "text/css; charset=utf-8";

const JS: &str = "text/javascript; charset=utf-8";

pub(crate) async fn style() -> Response {
    let text = plimsoll_html::page::stylesheet() + BROWSER_STYLE;
    ([(CONTENT_TYPE, CSS)], text).into_response()
}

pub(crate) async fn charts() -> Response {
    ([(CONTENT_TYPE, JS)], plimsoll_html::page::script()).into_response()
}

pub(crate) async fn browser() -> Response {
    ([(CONTENT_TYPE, JS)], BROWSER_SCRIPT).into_response()
}
