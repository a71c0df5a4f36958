//! The results browser: no response has the status of a server error (5xx), and none names a script of another site.
//! Inputs are requests as text: method and address, headers, an empty line, a form.

use crate::browser::Browser;

/// Sends the input as a request to the results browser, and checks status, security headers and scripts of the
/// response.
pub fn run(data: &[u8]) {
    let Some(request) = Browser::request(data) else {
        return;
    };
    let response = Browser::of_thread(|browser| browser.send(request));
    let (parts, body) = response;
    let shown = String::from_utf8_lossy(&body);
    assert!(!parts.status.is_server_error(), "{}: {shown}", parts.status);
    let headers = &parts.headers;
    let value = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
    assert_eq!(value("x-content-type-options"), Some("nosniff"));
    let policy = value("content-security-policy").unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    for other in ["http:", "https:", "*", "'unsafe-eval'"] {
        assert!(
            !policy.split([' ', ';']).any(|word| word == other),
            "{policy}"
        );
    }
    for foreign in ["<script src=\"http", "<script src=\"//"] {
        assert!(!shown.contains(foreign), "{shown}");
    }
}
