//! Style sheet and scripts of the pages.

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// Address of the style sheet of all pages.
pub(crate) const STYLE_PATH: &str = "/assets/style.css";

/// Address of the script that reports use for charts.
pub(crate) const CHARTS_PATH: &str = "/assets/charts.js";

/// Address of the script of the browser's own pages.
pub(crate) const BROWSER_PATH: &str = "/assets/browser.js";

/// Style rules of the browser's own pages, in addition to the rules of reports.
const BROWSER_STYLE: &str = include_str!("assets/browser.css");

/// Script that follows a run in progress, and counts selected results.
const BROWSER_SCRIPT: &str = include_str!("assets/browser.js");

const CSS: &str = "text/css; charset=utf-8";

const JS: &str = "text/javascript; charset=utf-8";

pub(crate) async fn style() -> Response {
    let text = plimsoll_report::html::page::stylesheet() + BROWSER_STYLE;
    ([(CONTENT_TYPE, CSS)], text).into_response()
}

pub(crate) async fn charts() -> Response {
    ([(CONTENT_TYPE, JS)], plimsoll_report::html::page::script()).into_response()
}

pub(crate) async fn browser() -> Response {
    ([(CONTENT_TYPE, JS)], BROWSER_SCRIPT).into_response()
}
