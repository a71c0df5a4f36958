//! Access control: hosts, the token, forms and the origin of requests.

use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use constant_time_eq::constant_time_eq;
use std::net::IpAddr;
use std::sync::Arc;

/// Content security policy: pages load only the server's own style sheet, scripts and data. Charts set colours in style
/// attributes, which can neither load nor run anything.
const POLICY: &str = "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; \
     script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// Security headers of every response. The referrer policy `same-origin` lets browsers send the origin of a form, by
/// which the guard recognises forms of other sites.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Prefix of the name of the session cookie; the port follows. Browsers send cookies of a machine to all of its ports,
/// and two servers must not overwrite each other's cookie.
const COOKIE: &str = "plimsoll-session";

/// Address of the page that asks for the token.
pub const LOGIN: &str = "/login";

/// Access control of a server. Holds secrets and therefore does not implement `Debug`.
pub struct Guard {
    token: Option<String>,
    hosts: Vec<String>,
    /// Name of the session cookie, which contains the port of the server.
    cookie: String,
    /// Value of the session cookie of logged-in users; random in each process.
    session: String,
    /// Secret in the server's own forms, against cross-site request forgery.
    form: String,
}

impl Guard {
    /// A guard for the server on `port`, with the optional token and the host names of the server.
    ///
    /// # Errors
    /// An error if the system provides no random numbers.
    pub fn new(
        token: Option<String>,
        hosts: Vec<String>,
        port: u16,
    ) -> Result<Self, getrandom::Error> {
        Ok(Self {
            token,
            hosts,
            cookie: format!("{COOKIE}-{port}"),
            session: secret()?,
            form: secret()?,
        })
    }

    /// The secret that a form must contain in its field `form`.
    #[must_use]
    pub fn form(&self) -> &str {
        &self.form
    }

    /// Whether a text is the secret of the server's own forms; compared in constant time.
    #[must_use]
    pub fn is_our_form(&self, sent: &str) -> bool {
        same(sent, &self.form)
    }

    /// Whether a text is the token; compared in constant time.
    #[must_use]
    pub fn is_token(&self, sent: &str) -> bool {
        self.token.as_deref().is_some_and(|t| same(sent, t))
    }

    /// Value of the `Set-Cookie` header for a user who has entered the token.
    #[must_use]
    pub fn cookie(&self) -> String {
        format!(
            "{}={}; Path=/; HttpOnly; SameSite=Strict",
            self.cookie, self.session
        )
    }

    /// Whether a request may name this host: an IP address, to which no foreign name resolves, `localhost`, or a name
    /// of the server. Any port is accepted, because ports may be forwarded.
    #[must_use]
    pub fn is_our_host(&self, host: &str) -> bool {
        let (name, port) = match host.strip_prefix('[') {
            Some(rest) => rest.split_once(']').unwrap_or_default(),
            None => host.split_at(host.find(':').unwrap_or(host.len())),
        };
        let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(is_number);
        let is_ours = name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|h| h.eq_ignore_ascii_case(name));
        is_port && is_ours
    }

    /// Whether a request has the token or, without a bearer token, the session cookie; true if no token is set.
    fn has_token(&self, headers: &HeaderMap) -> bool {
        if self.token.is_none() {
            return true;
        }
        let bearer = text(headers, header::AUTHORIZATION);
        let bearer = bearer.and_then(|b| b.strip_prefix("Bearer "));
        if let Some(sent) = bearer {
            return self.is_token(sent.trim());
        }
        let cookies = headers.get_all(header::COOKIE).iter();
        let mut pairs = cookies
            .filter_map(|c| c.to_str().ok())
            .flat_map(|c| c.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && same(value, &self.session))
    }
}

/// Compares a sent text with a secret in constant time, so that the duration does not reveal the length of the correct
/// prefix.
fn same(sent: &str, secret: &str) -> bool {
    constant_time_eq(sent.as_bytes(), secret.as_bytes())
}

/// A new secret: 128 random bits in hexadecimal.
fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|v| v.to_str().ok())
}

/// Whether the headers of a request show that the request comes from a page of another site.
fn is_cross_site(headers: &HeaderMap, host: &str) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|s| s != b"same-origin" && s != b"none") {
        return true;
    }
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let origin = origin.to_str().unwrap_or("");
    let theirs = origin.split_once("://").map(|(_, host)| host);
    theirs.is_none_or(|theirs| !theirs.eq_ignore_ascii_case(host))
}

/// Checks a request before anything else reads it, and sets the headers of every response.
pub(crate) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let for_programs = ["/api/", "/metrics"]
        .iter()
        .any(|p| request.uri().path().starts_with(p));
    let mut response = match refusal(&guard, &request) {
        None => next.run(request).await,
        Some(Refusal::Unknown) if !for_programs && request.method() == Method::GET => {
            let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
            let query = form_urlencoded::Serializer::new(String::new())
                .append_pair("to", path)
                .finish();
            Redirect::to(&format!("{LOGIN}?{query}")).into_response()
        }
        Some(refusal) => {
            let problem = refusal.problem();
            let mut response = match for_programs {
                true => problem.json(),
                false => problem.into_response(),
            };
            if response.status() == StatusCode::UNAUTHORIZED {
                let bearer = HeaderValue::from_static("Bearer");
                response
                    .headers_mut()
                    .insert(header::WWW_AUTHENTICATE, bearer);
            }
            response
        }
    };
    for (name, value) in HEADERS {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Reason why the guard refuses a request.
enum Refusal {
    Host,
    CrossSite,
    Unknown,
}

impl Refusal {
    fn problem(&self) -> Problem {
        match self {
            Self::Host => Problem::new(
                StatusCode::MISDIRECTED_REQUEST,
                "This is not a server of that name. It is reached by its address or as localhost; \
                 `plimsoll results serve --allowed-host NAME` gives it another name.",
            ),
            Self::CrossSite => Problem::new(
                StatusCode::FORBIDDEN,
                "Only pages of this server may change anything here.",
            ),
            Self::Unknown => Problem::new(
                StatusCode::UNAUTHORIZED,
                "This server requires a token: send it as `Authorization: Bearer TOKEN`.",
            ),
        }
    }
}

fn refusal(guard: &Guard, request: &Request) -> Option<Refusal> {
    let headers = request.headers();
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|h| h.to_str().ok()).unwrap_or("");
    if hosts.next().is_some() || !guard.is_our_host(host) {
        return Some(Refusal::Host);
    }
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && is_cross_site(headers, host) {
        return Some(Refusal::CrossSite);
    }
    let path = request.uri().path();
    // The login page and its style sheet need no token.
    let open = path == LOGIN || path == crate::assets::STYLE_PATH;
    (!open && !guard.has_token(headers)).then_some(Refusal::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(token: Option<&str>) -> Guard {
        Guard::new(token.map(String::from), vec!["bench.example".into()], 8080).unwrap()
    }

    #[test]
    fn only_our_own_names_are_ours() {
        let guard = guard(None);
        for ours in [
            "localhost",
            "LOCALHOST:9000",
            "127.0.0.1:8080",
            "10.1.2.3",
            "[::1]",
            "[::1]:8080",
            "bench.example:80",
        ] {
            assert!(guard.is_our_host(ours), "{ours}");
        }
        for other in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:80@evil.example",
            "[::1]evil.example",
            "[::1",
            "::1",
            "127.1",
        ] {
            assert!(!guard.is_our_host(other), "{other}");
        }
    }

    #[test]
    fn the_token_opens_by_header_and_by_cookie() {
        let guard = guard(Some("0123456789abcdef"));
        let with = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            guard.has_token(&headers)
        };
        assert!(!guard.has_token(&HeaderMap::new()));
        assert!(with("authorization", "Bearer 0123456789abcdef"));
        assert!(!with("authorization", "Bearer 0123456789abcdeg"));
        assert!(!with("authorization", "Bearer "));
        assert!(!with("authorization", "Basic 0123456789abcdef"));
        let session = guard.cookie();
        let pair = session.split(';').next().unwrap().to_owned();
        assert!(with("cookie", &format!("a=b; {pair}; c=d")));
        assert!(!with("cookie", &format!("{COOKIE}-8080=")));
        assert!(!with("cookie", &format!("{COOKIE}-8080=0123456789abcdef")));
        assert!(!pair.contains("0123456789abcdef"), "the token stays here");
    }

    #[test]
    fn what_other_sites_send_is_known() {
        let of = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            is_cross_site(&headers, "127.0.0.1:8080")
        };
        assert!(!of(&[]));
        assert!(!of(&[("origin", "http://127.0.0.1:8080")]));
        assert!(!of(&[("sec-fetch-site", "same-origin")]));
        for origin in [
            "null",
            "http://127.0.0.1:9",
            "http://evil.example",
            "127.0.0.1:8080",
        ] {
            assert!(of(&[("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            assert!(of(&[("sec-fetch-site", site)]), "{site}");
        }
    }
}
