//! `results serve`: the results browser, as programs see it.

mod access_control;
mod changes;
mod live;

use crate::common::{Bench, Ended};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A workload whose operations take no time to speak of.
pub const WORKLOAD: &str = "define fileset name=s,path=files,entries=20,size=8k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=2 {
  flowop openfile name=open1,filesetname=s,fd=1
  flowop readwholefile name=read1,fd=1,iosize=4k
  flowop closefile name=close1,fd=1
} }
run 60
";

/// A configuration on two file systems.
const PROFILE: &str = "DEFAULTS {
  runtime = 1;
  filesystem = a, b;
  dir = d-$filesystem;
  stats = s;
}
CONFIG one {
  function = generic;
  personality = randomread;
  filesize = 64k;
  nthreads = 1;
}
";

/// A token that a server takes.
const TOKEN: &str = "correct-horse-battery";

/// A server that ends with the test.
pub struct Browser {
    child: Child,
    /// Without a slash at its end.
    pub url: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server of the results root of a bench.
pub fn serve(bench: &Bench, more: &[&str]) -> Browser {
    Browser::start(command(bench, more))
}

fn command(bench: &Bench, more: &[&str]) -> Command {
    std::fs::create_dir_all(bench.path("results")).unwrap();
    let mut command = bench.plimsoll(["results", "serve"]);
    // Options of `results serve` that a test passes in `more` replace the default options of the tests.
    for option in ["--listen=127.0.0.1:0", "--results=results"] {
        let name = option.split('=').next().unwrap();
        if !more.iter().any(|m| m.starts_with(name)) {
            command.arg(option);
        }
    }
    command.args(more).env_remove("PLIMSOLL_TOKEN");
    command
}

/// HTTP response of the results browser: status code, headers and body.
pub struct Answer {
    pub status: u16,
    pub headers: ureq::http::HeaderMap,
    pub text: String,
}

impl Answer {
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_str(&self.text).unwrap_or_else(|e| panic!("{e}: {}", self.text))
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

impl Browser {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        let url = line.trim_end().trim_end_matches('/').to_owned();
        assert!(url.starts_with("http://127.0.0.1:"), "{line}");
        Self { child, url }
    }

    /// Sends a request with these headers, following nothing.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let agent = ureq::Agent::new_with_config(config);
        let sent = agent.run(request.body(body.to_owned()).unwrap());
        let mut response = sent.unwrap_or_else(|e| panic!("{method} {path}: {e}"));
        Answer {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            text: response.body_mut().read_to_string().unwrap(),
        }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "")
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body: Vec<String> = fields.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        self.send("POST", path, &kind, &body.join("&"))
    }

    /// Names of the results that the interface lists for a query, in its order.
    #[track_caller]
    fn names(&self, query: &str) -> Vec<String> {
        let answer = self.get(&format!("/api/v1/results?{query}"));
        assert_eq!(answer.status, 200, "{}", answer.text);
        let list = answer.json();
        let results = list["results"].as_array().unwrap().iter();
        results
            .map(|r| r["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The secret that forms of a page carry.
    #[track_caller]
    fn form_of(&self, path: &str) -> String {
        let page = self.get(path).text;
        let (_, rest) = page.split_once("name=\"form\" value=\"").expect("a form");
        rest.split('"').next().unwrap().to_owned()
    }
}

/// Results of a run in virtual time, with a name of our own.
pub fn results(bench: &Bench, name: &str) -> PathBuf {
    let workload = bench.workload(WORKLOAD);
    let more = [
        "--target=null:?latency=1ms&clock=virtual",
        "--time=3s",
        "--quiet",
    ];
    let before = paths(bench);
    bench.run(&workload, &more).expect_code(0);
    let new = paths(bench).into_iter().find(|p| !before.contains(p));
    let path = bench.path("results").join(name);
    std::fs::rename(new.unwrap(), &path).unwrap();
    path
}

fn paths(bench: &Bench) -> Vec<PathBuf> {
    let results = bench.results();
    results.iter().map(|r| r.path().to_owned()).collect()
}

/// A copy of results, with these fields of `run.json` changed.
pub fn copy(of: &Path, name: &str, changes: &[(&str, Value)]) -> PathBuf {
    let to = of.with_file_name(name);
    std::fs::create_dir(&to).unwrap();
    for file in ["run.json", "histograms.hlog", "intervals.csv"] {
        std::fs::copy(of.join(file), to.join(file)).unwrap();
    }
    let path = to.join("run.json");
    let mut run: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    for (pointer, value) in changes {
        *run.pointer_mut(pointer).unwrap() = value.clone();
    }
    std::fs::write(&path, run.to_string()).unwrap();
    to
}

fn tag(bench: &Bench, dir: &Path, tags: &str) {
    let mut call = bench.plimsoll(["results", "tag"]);
    call.arg(dir).args(["--add", tags]);
    Ended::of(call).expect_code(0);
}

#[test]
fn the_list_shows_what_the_filter_lets_through() {
    let bench = Bench::on_tmpfs();
    let first = results(&bench, "a");
    // Noon, so that the day is the same in most zones; the test's own zone is UTC.
    for (i, name) in ["b", "c", "d", "e"].iter().enumerate() {
        let day = format!("2026-03-0{}T12:00:00Z", i + 1);
        copy(&first, name, &[("/started_at", json!(day))]);
    }
    let root = first.parent().unwrap();
    copy(
        &first,
        "f",
        &[
            ("/started_at", json!("2026-03-09T12:00:00Z")),
            ("/workload", json!("other & <b>")),
            ("/target/url", json!("nfs3://server/export")),
            ("/validity/verdict", json!("invalid")),
        ],
    );
    tag(&bench, &root.join("c"), "x,y");
    tag(&bench, &root.join("d"), "x");
    let mut call = command(&bench, &[]);
    call.env("TZ", "UTC");
    let browser = Browser::start(call);
    for (query, expected) in [
        ("from=2020-01-01&to=2026-04-01", "f e d c b"),
        ("from=2026-03-02&to=2026-03-03", "d c"),
        ("from=2026-03-09&to=2026-03-09", "f"),
        ("workload=other+%26+%3Cb%3E", "f"),
        ("workload=other", ""),
        ("target=nfs3%3A%2F%2Fserver%2Fexport", "f"),
        ("status=invalid", "f"),
        ("tag=x", "d c"),
        ("tag=x&tag=y", "c"),
        ("tag=x&status=failed", ""),
        ("tag=x&workload=&target=", "d c"),
        ("tag=x&sort=name", "c d"),
        ("to=2026-04-01&sort=name&order=desc", "f e d c b"),
        ("to=2026-04-01&sort=workload", "f e d c b"),
        ("q=OTHER+nfs3", "f"),
    ] {
        assert_eq!(browser.names(query).join(" "), expected, "{query}");
        let page = browser.get(&format!("/?{query}"));
        let ticks = page.text.matches("type=\"checkbox\" name=\"with\"").count();
        let count = expected.split_whitespace().count();
        assert_eq!((page.status, ticks), (200, count));
    }
    assert_eq!(browser.names("")[0], "a", "the latest is the first");
    let second = browser.get("/api/v1/results?per_page=4&page=2").json();
    assert_eq!((&second["total"], &second["pages"]), (&json!(6), &json!(2)));
    assert_eq!(second["results"].as_array().unwrap().len(), 2);
    let page = browser.get("/?per_page=4&page=1&status=").text;
    assert!(page.contains("href=\"/?per_page=4&amp;page=2\""), "{page}");
    assert!(!page.contains("& <b>"), "a name is text");
    let wrong = browser.get("/api/v1/results?state=valid");
    assert_eq!(wrong.status, 400);
    let error = wrong.json()["error"].as_str().unwrap().to_owned();
    let expected = "`state` is not a parameter of a list";
    assert!(error.starts_with(expected), "{error}");
    for (query, error) in [
        ("from=soon", "from: `soon` is not a day"),
        ("sort=speed", "sort: `speed` is not a column"),
        (
            "sort=parameter:none",
            "sort: no results have the parameter `none`",
        ),
    ] {
        let page = browser.get(&format!("/?{query}"));
        assert_eq!(page.status, 400, "{query}");
        assert!(page.text.contains(error), "{query}: {}", page.text);
    }
    let differences = browser.get("/api/v1/results").json()["differences"].clone();
    assert_eq!(differences, json!(["workload", "target"]));
}

#[test]
fn the_list_says_what_the_run_says() {
    let bench = Bench::on_tmpfs();
    let dir = results(&bench, "a");
    tag(&bench, &dir, "x");
    let mut note = bench.plimsoll(["results", "note"]);
    note.arg(&dir).arg("with <b>new</b> firmware");
    Ended::of(note).expect_code(0);
    let text = std::fs::read_to_string(dir.join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&text).unwrap();
    let browser = serve(&bench, &[]);
    let entry = browser.get("/api/v1/results/a").json();
    for (field, pointer) in [
        ("workload", "/workload"),
        ("target", "/target/url"),
        ("started_at", "/started_at"),
        ("status", "/validity/verdict"),
        ("ops_per_s", "/summary/ops_per_s"),
        ("bytes_per_s", "/summary/bytes_per_s"),
        ("mean_ms", "/summary/mean_ms"),
        ("p99_ms", "/summary/p99_ms"),
    ] {
        assert_eq!(&entry[field], run.pointer(pointer).unwrap(), "{field}");
    }
    assert_eq!(entry["tags"], json!(["x"]));
    assert_eq!(entry["note"], "with <b>new</b> firmware");
    let document = browser.get("/api/v1/results/a/document");
    assert_eq!(document.text, text);
    let page = browser.get("/results/a");
    assert_eq!(page.status, 200);
    let note = "with &lt;b&gt;new&lt;/b&gt; firmware";
    for part in ["id=\"throughput\"", note, "/?tag=x"] {
        assert!(page.text.contains(part), "{part}");
    }
}

/// Results of each kind but a run, made quickly.
pub fn one_of_each(bench: &Bench) {
    let workload = bench.workload(WORKLOAD);
    let null = "--target=null:?latency=10ms&servers=1&clock=virtual";
    let manner = ["--quiet", "--results=results", null];
    std::fs::write(bench.path("study.prof"), PROFILE).unwrap();
    let first: [&[&str]; 4] = [
        &["run", &workload, "--repeat=2", "--time=2s"],
        &["curve", "vda", "--load=2,4", "--time=2s", "--warmup=1s"],
        &["find", "vda", "--max-load=2", "--time=2s", "--warmup=1s"],
        &["profile", "study.prof", "--repeat=2"],
    ];
    for command in first {
        let mut call = bench.plimsoll(command.iter().copied());
        call.args(manner);
        Ended::of(call).expect_code(0);
    }
}

#[test]
fn every_kind_of_results_has_a_page() {
    let bench = Bench::on_tmpfs();
    one_of_each(&bench);
    let browser = serve(&bench, &[]);
    let list = browser.get("/api/v1/results").json();
    let mut kinds = Vec::new();
    for entry in list["results"].as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        kinds.push(entry["kind"].as_str().unwrap().to_owned());
        assert_eq!(entry["status"], "valid", "{name}");
        let page = browser.get(&format!("/results/{name}"));
        assert_eq!(page.status, 200, "{}", page.text);
        // Each of its runs has a page as well.
        let begin = format!("href=\"/results/{name}/runs/");
        let runs: Vec<&str> = page.text.split(&begin).skip(1).collect();
        assert_eq!(runs.len() as u64, entry["runs"].as_u64().unwrap(), "{name}");
        let run = runs[0].split('"').next().unwrap();
        let run = browser.get(&format!("/results/{name}/runs/{run}"));
        assert_eq!(run.status, 200, "{}", run.text);
        assert!(run.text.contains("Operations per second"), "{name}");
    }
    kinds.sort();
    assert_eq!(kinds, ["curve", "profile", "repeats", "search"]);
    let valid = browser.names("status=valid");
    let named = |part: &str| valid.iter().find(|n| n.contains(part)).unwrap();
    let curve = browser.get(&format!("/api/v1/results/{}", named("curve")));
    let curve = curve.json();
    assert_eq!(curve["load_line"], 4);
    assert_eq!(curve["metric"], "streams");
    let repeats = named("repeats");
    let query = format!("/compare?with={repeats}%2Frun-01&with={repeats}%2Frun-02");
    assert_eq!(browser.get(&query).status, 200);
    let query = format!("/compare?with={repeats}&with={}", named("curve"));
    let mixed = browser.get(&query);
    assert_eq!(mixed.status, 409);
    let expected = "only results of one kind can be compared";
    assert!(mixed.text.contains(expected), "{}", mixed.text);
}

#[test]
fn a_comparison_is_that_of_the_command() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    let changes = [("/summary/ops_per_s", json!(1.0))];
    copy(&a, "b", &changes);
    let browser = serve(&bench, &[]);
    let mut call = bench.plimsoll(["compare", "--format=json", "a", "b"]);
    call.current_dir(bench.path("results"));
    let expected: Value = serde_json::from_str(&Ended::of(call).expect_code(0).stdout).unwrap();
    let found = browser.get("/api/v1/compare?with=a&with=b");
    assert_eq!(found.json(), expected);
    let page = browser.get("/compare?with=a&with=b");
    assert_eq!(page.status, 200);
    assert!(page.text.contains("2 results side by side"));
    for (query, status) in [
        ("with=a", 400),
        ("with=a&with=missing", 404),
        ("with=a&with=..%2Fa", 404),
        ("with=a&with=a%2F..%2Fb", 404),
        ("width=a&with=b", 400),
    ] {
        let answer = browser.get(&format!("/api/v1/compare?{query}"));
        assert_eq!(answer.status, status, "{query}: {}", answer.text);
    }
}

#[test]
fn what_changes_in_the_directories_is_seen_at_once() {
    let bench = Bench::on_tmpfs();
    let a = results(&bench, "a");
    let root = a.parent().unwrap().to_owned();
    let browser = serve(&bench, &[]);
    assert_eq!(browser.names(""), ["a"]);
    copy(&a, "b", &[("/started_at", json!("2026-03-01T12:00:00Z"))]);
    assert_eq!(browser.names(""), ["a", "b"]);
    tag(&bench, &root.join("b"), "new");
    assert_eq!(browser.names("tag=new"), ["b"]);
    std::fs::rename(root.join("b"), root.join("c")).unwrap();
    assert_eq!(browser.names("tag=new"), ["c"]);
    std::fs::remove_dir_all(root.join("c")).unwrap();
    assert_eq!(browser.names(""), ["a"]);
    // The results browser does not list directories without results, and names damaged results with the reason.
    std::fs::create_dir(root.join("empty")).unwrap();
    std::fs::write(root.join("file"), "").unwrap();
    std::os::unix::fs::symlink(&a, root.join("link")).unwrap();
    let damaged = copy(&a, "damaged", &[]);
    std::fs::write(damaged.join("run.json"), "{").unwrap();
    copy(&a, "future", &[("/schema_version", json!(99))]);
    assert_eq!(browser.names(""), ["a"]);
    let page = browser.get("/").text;
    assert!(page.contains("2 cannot be read"), "{page}");
    assert!(page.contains("has schema version 99; this program reads version 1"));
    for name in ["empty", "file", "link", "damaged", "future", "missing"] {
        let page = browser.get(&format!("/results/{name}"));
        assert_eq!(page.status, 404, "{name}");
    }
}
