//! Access control of `plimsoll results serve`: refused hosts, refused requests from other sites, and tokens.

use super::{Browser, TOKEN, command, results, serve};
use crate::common::{Bench, Ended};

#[test]
fn requests_of_other_hosts_and_sites_are_refused() {
    let bench = Bench::on_tmpfs();
    let dir = results(&bench, "a");
    let browser = serve(&bench, &["--allowed-host=bench.example"]);
    let as_host = |host: &str| browser.send("GET", "/", &[("host", host)], "").status;
    for ours in ["localhost", "127.0.0.1:1", "bench.example:8080", "[::1]:9"] {
        assert_eq!(as_host(ours), 200, "{ours}");
    }
    for other in [
        "evil.example",
        "bench.example.evil.example",
        "localhost.evil.example",
    ] {
        assert_eq!(as_host(other), 421, "{other}");
    }
    let delete = |headers: &[(&str, &str)]| {
        let answer = browser.send("DELETE", "/api/v1/results/a", headers, "");
        assert!(dir.exists());
        answer.status
    };
    assert_eq!(delete(&[("origin", "http://evil.example")]), 403);
    assert_eq!(delete(&[("origin", "null")]), 403);
    assert_eq!(delete(&[("sec-fetch-site", "cross-site")]), 403);
    // Forms that lack the secret field of the browser's own pages, or have a wrong secret, are refused.
    assert_eq!(browser.post("/results/a/delete", &[]).status, 403);
    let stale = [("form", "00000000000000000000000000000000")];
    assert_eq!(browser.post("/results/a/delete", &stale).status, 403);
    assert_eq!(browser.post("/results/a/annotations", &stale).status, 403);
    assert!(dir.exists() && !dir.join("annotations.json").exists());
    // Names never become paths.
    std::fs::rename(&dir, bench.path("beside")).unwrap();
    for name in [
        "..%2Fbeside",
        "%2E%2E",
        "..%2F..%2F..%2Fetc",
        "beside",
        "a%00",
        "%2e%2e%2fbeside",
    ] {
        for path in ["", "/delete", "/runs/x"] {
            let answer = browser.get(&format!("/results/{name}{path}"));
            assert!([400, 404].contains(&answer.status), "{name}{path}");
        }
        let path = format!("/api/v1/results/{name}");
        assert!([400, 404].contains(&browser.send("DELETE", &path, &[], "").status));
    }
    assert!(bench.path("beside/run.json").exists());
    let page = browser.get("/");
    let policy = page.header("content-security-policy");
    let begin = "default-src 'none'; style-src 'self';";
    assert!(policy.starts_with(begin), "{policy}");
    assert!(policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'"));
    assert!(!page.text.contains("<script>") && !page.text.contains("<style"));
    assert_eq!(page.header("x-content-type-options"), "nosniff");
}

#[test]
fn a_token_is_required() {
    let bench = Bench::on_tmpfs();
    results(&bench, "a");
    let mut call = command(&bench, &[]);
    call.env("PLIMSOLL_TOKEN", TOKEN);
    let browser = Browser::start(call);
    let with = |token: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        browser.send("GET", "/api/v1/results", &headers, "").status
    };
    let statuses = [TOKEN, "correct-horse-batterz", ""].map(with);
    assert_eq!(statuses, [200, 401, 401]);
    for path in ["/api/v1/results", "/api/v1/live", "/metrics"] {
        let answer = browser.get(path);
        assert_eq!(
            (answer.status, answer.header("www-authenticate")),
            (401, "Bearer")
        );
    }
    let asked = browser.get("/results/a?x=1");
    assert_eq!(asked.status, 303);
    assert_eq!(asked.header("location"), "/login?to=%2Fresults%2Fa%3Fx%3D1");
    assert_eq!(browser.get("/assets/style.css").status, 200);
    assert_eq!(browser.get(asked.header("location")).status, 200);
    let wrong = browser.post("/login", &[("token", "guess"), ("to", "%2F")]);
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, ""));
    let fields = [("token", TOKEN), ("to", "%2Fresults%2Fa")];
    let entered = browser.post("/login", &fields);
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, "/results/a")
    );
    let cookie = entered.header("set-cookie");
    let is_strict = cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict");
    assert!(is_strict, "{cookie}");
    assert!(!cookie.contains(TOKEN));
    let pair = [("cookie", cookie.split(';').next().unwrap())];
    assert_eq!(browser.send("GET", "/results/a", &pair, "").status, 200);
    let elsewhere = [("token", TOKEN), ("to", "%2F%2Fevil.example")];
    assert_eq!(browser.post("/login", &elsewhere).header("location"), "/");
}

#[test]
fn what_cannot_be_served_is_refused() {
    let bench = Bench::on_tmpfs();
    let dir = results(&bench, "a");
    let refused = |more: &[&str]| Ended::of(command(&bench, more)).refusal();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("--listen={}", held.local_addr().unwrap());
    let reached = "can be reached from other machines: set a token with --token";
    for (option, reason) in [
        ("--listen=0.0.0.0:0", reached),
        ("--listen=[::]:0", reached),
        ("--token=guess", "a token has at least 16 characters"),
        ("--results=missing", "cannot list missing: No such file"),
        (&taken, "cannot listen on 127.0.0.1:"),
    ] {
        let said = refused(&[option]);
        assert!(said.contains(reason), "{said}");
    }
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 3);
}
