//! Login page, which asks for the token.

use super::form::field;
use crate::guard::LOGIN;
use crate::layout::document;
use crate::state::Shared;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::SET_COOKIE;
use axum::response::{Html, IntoResponse, Redirect, Response};
use maud::html;

pub(crate) async fn show(RawQuery(query): RawQuery) -> Html<String> {
    page(&field(&query.unwrap_or_default(), "to"), false)
}

pub(crate) async fn check(State(app): State<Shared>, body: String) -> Response {
    let to = field(&body, "to");
    if !app.guard.is_token(&field(&body, "token")) {
        return (StatusCode::UNAUTHORIZED, page(&to, true)).into_response();
    }
    let cookie = [(SET_COOKIE, app.guard.cookie())];
    (cookie, Redirect::to(local_address(&to))).into_response()
}

fn page(to: &str, wrong: bool) -> Html<String> {
    let body = html! {
        h1 { "Sign in" }
        @if wrong { p.alert role="alert" { "That is not the token." } }
        form method="post" action=(LOGIN) {
            input type="hidden" name="to" value=(to);
            label.field for="token" { "Token that `plimsoll results serve` was started with" }
            div.actions {
                input id="token" name="token" type="password" autocomplete="current-password" required autofocus;
                button type="submit" { "Enter" }
            }
        }
    };
    document("Token", &body)
}

/// The address `to` if `to` is a path on this server, else the address of the list of results.
fn local_address(to: &str) -> &str {
    let plain = |to: &str| to.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    match to.starts_with('/') && !to.starts_with("//") && plain(to) {
        true => to,
        false => "/",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_sent_elsewhere() {
        assert_eq!(local_address("/results/a?b=c"), "/results/a?b=c");
        for bad in [
            "",
            "//evil.example",
            "/\\evil.example",
            "http://evil.example",
            "x",
            "/a\r\nb",
        ] {
            assert_eq!(local_address(bad), "/", "{bad:?}");
        }
    }
}
