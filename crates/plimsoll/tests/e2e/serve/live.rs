//! Runs in progress, as programs see them.

use super::{Browser, WORKLOAD, serve};
use crate::common::python::{printed, python};
use crate::common::{Bench, row, started, started_series};
use serde_json::json;
use std::io::{BufRead, BufReader};

/// Events of a stream, one after the other: name and data.
struct Events(BufReader<Box<dyn std::io::Read>>);

impl Events {
    fn of(browser: &Browser, path: &str) -> Self {
        let response = ureq::get(format!("{}{path}", browser.url)).call().unwrap();
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self(BufReader::new(Box::new(response.into_body().into_reader())))
    }

    fn next(&mut self) -> (String, String) {
        let (mut name, mut data) = (String::new(), Vec::new());
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", n)) => name = n.to_owned(),
                Some(("data", d)) => data.push(d.to_owned()),
                _ if line == "\n" && !name.is_empty() => return (name, data.join("\n")),
                _ => {}
            }
        }
    }
}

impl Events {
    /// Waits for the event `end` of a run in progress and returns the data of the event.
    fn end(&mut self) -> String {
        loop {
            let (name, data) = self.next();
            if name == "end" {
                return data;
            }
        }
    }
}

/// Identifier of the run in progress, of which there must be exactly one.
fn only_id(browser: &Browser) -> String {
    let live = browser.get("/api/v1/live").json();
    assert_eq!(live["runs"].as_array().unwrap().len(), 1, "{live}");
    live["runs"][0]["id"].as_str().unwrap().to_owned()
}

/// Options of a run that lasts five minutes, much longer than a test, with operations of 2 ms.
const LONG: [&str; 3] = [
    "--target=null:?latency=2ms",
    "--interval=100ms",
    "--time=300s",
];

/// Value of a sample of the metrics by how its line begins.
fn sample(text: &str, begin: &str) -> Option<f64> {
    let line = text.lines().find(|l| l.starts_with(begin))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Prints the metric families of a file, as Prometheus reads the file.
const READ_METRICS: &str = "\
import sys
from prometheus_client.openmetrics.parser import text_fd_to_metric_families
print([family.name for family in text_fd_to_metric_families(open(sys.argv[1]))])
";

#[test]
fn a_run_in_progress_is_watched_to_its_end() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let browser = serve(&bench, &[]);
    assert_eq!(browser.get("/api/v1/live").json(), json!({ "runs": [] }));
    let run = started(bench.command(&workload, &LONG), "measuring");
    let id = only_id(&browser);
    let live = &browser.get("/api/v1/live").json()["runs"][0]["run"];
    assert_eq!(live["workload"], "w");
    assert_eq!(live["workers"], 2);
    let link = format!("href=\"/live/{id}\"");
    assert!(browser.get("/live").text.contains(&link));
    let page = browser.get(&format!("/live/{id}")).text;
    assert!(page.contains(&format!("data-events=\"/live/{id}/events\"")));
    // The list of results does not contain the run in progress.
    assert_eq!(browser.names(""), [""; 0]);

    let mut events = Events::of(&browser, &format!("/live/{id}/events"));
    let points = |markup: &str| markup.matches("<tr data-at").count();
    let mut seen = 0;
    while seen < 20 {
        let (name, markup) = events.next();
        assert_eq!(name, "interval");
        assert!(points(&markup) >= seen, "{markup}");
        seen = points(&markup);
    }

    let metrics = browser.get("/metrics");
    let kind = metrics.header("content-type");
    let openmetrics = "application/openmetrics-text; version=1.0.0";
    assert!(kind.starts_with(openmetrics), "{kind}");
    let file = bench.path("metrics");
    std::fs::write(&file, &metrics.text).unwrap();
    let mut read = python();
    read.args(["-c", READ_METRICS]).arg(file);
    assert!(printed(read).contains("plimsoll_latest_result"));
    let of_read = format!("{{run=\"{id}\",workload=\"w\",operation=\"read1\",kind=\"read_whole\"");
    let counter = format!("plimsoll_operations_total{of_read}}}");
    let counted = sample(&metrics.text, &counter).unwrap();
    assert!(counted > 0.0);
    let in_progress = sample(&metrics.text, "plimsoll_runs_in_progress");
    assert_eq!(in_progress, Some(1.0));
    let p99 = format!("plimsoll_service_quantile_seconds{of_read},quantile=\"0.99\"}}");
    let p99 = sample(&metrics.text, &p99).unwrap();
    // The null target takes 2 ms for a read.
    assert!(p99 >= 0.002, "{p99} s");
    while sample(&browser.get("/metrics").text, &counter).unwrap() <= counted {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }

    run.interrupt();
    let end = events.end();
    let result = run.end().result(130);
    let address = end.strip_prefix("ended\n").unwrap();
    assert_eq!(browser.get(address).status, 200, "{address}");
    let entry = browser.get(&address.replace("/results", "/api/v1/results"));
    let entry = entry.json();
    assert_eq!(entry["status"], "interrupted");
    assert_eq!(entry["ops_per_s"], json!(result.summary.ops_per_s));
    assert_eq!(browser.get(&format!("/live/{id}")).status, 404);
    let read = row(&result, "read1");
    assert!(read.ops as f64 >= counted);
    let name = address.rsplit('/').next().unwrap();
    let dir = bench.path("results").join(name);
    assert!(!dir.join("live.json").exists());
}

/// An event is shown before its interval has ended, which in an outage may take long.
#[test]
fn an_event_is_shown_before_the_next_interval() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let browser = serve(&bench, &[]);
    let go = bench.path("go");
    let wait = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let event = format!("--event=0s sh {wait}");
    let more = [
        "--target=null:?latency=2ms",
        "--interval=1h",
        "--time=2h",
        &event,
    ];
    let run = started(bench.command(&workload, &more), "measuring");
    let id = only_id(&browser);
    let mut events = Events::of(&browser, &format!("/live/{id}/events"));
    let mut shown = |state: &str| {
        loop {
            let (name, markup) = events.next();
            assert_eq!(name, "interval");
            if markup.contains("id=\"events\"") && markup.contains(state) {
                assert!(!markup.contains("<tr data-at"), "{markup}");
                return;
            }
        }
    };
    shown("in progress");
    std::fs::write(&go, "").unwrap();
    shown("executed");
    run.interrupt();
    run.end().result(130);
}

#[test]
fn a_run_that_is_killed_ends_without_results() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let browser = serve(&bench, &[]);
    let mut run = started(bench.command(&workload, &LONG), "measuring");
    let id = only_id(&browser);
    let mut events = Events::of(&browser, &format!("/live/{id}/events"));
    assert_eq!(events.next().0, "interval");
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    assert_eq!(events.end(), "ended without results");
    assert_eq!(browser.get("/api/v1/live").json(), json!({ "runs": [] }));
    assert_eq!(browser.get(&format!("/live/{id}")).status, 404);
}

/// The results browser finds the runs in progress of a profile and of a curve in the directory of the series, and
/// refuses to delete a series that is running.
#[test]
fn runs_of_series_are_watched_and_the_series_is_not_deleted_meanwhile() {
    for (command, first) in [
        ("profile study.prof --repeat=2", "run-01"),
        ("curve vda --load=1", "point-01-load-1"),
    ] {
        let bench = Bench::on_tmpfs();
        std::fs::write(bench.path("study.prof"), super::PROFILE).unwrap();
        let browser = serve(&bench, &[]);
        let more = [
            "--warmup=0s",
            "--time=300s",
            "--target=null:?latency=1ms",
            "--results=results",
        ];
        let call = bench.plimsoll(command.split(' ').chain(more));
        let series = started_series(call, &bench.path("results"));
        only_id(&browser);
        let live = browser.get("/api/v1/live").json();
        assert_eq!(live["runs"][0]["run"]["name"], first);
        let name = browser.names("status=unfinished").pop().unwrap();
        let path = format!("/api/v1/results/{name}");
        let refused = browser.send("DELETE", &path, &[], "");
        assert_eq!(refused.status, 409, "{}", refused.text);
        let expected = "is being written by another process";
        assert!(refused.text.contains(expected), "{}", refused.text);
        assert!(
            bench
                .path("results")
                .join(&name)
                .join("series.json")
                .exists()
        );
        series.interrupt();
        series.end().expect_code(130);
        assert_eq!(browser.get(&path).json()["status"], "interrupted");
        assert_eq!(browser.get("/api/v1/live").json(), json!({ "runs": [] }));
    }
}

/// A request for the list of results recovers the results of a killed run.
#[test]
fn a_killed_run_is_in_the_list() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let args = ["--interval=50ms", "--time=1h"];
    let mut going = started(bench.command_in_work(&workload, &args), "measuring");
    std::thread::sleep(std::time::Duration::from_millis(500));
    going.child.kill().unwrap();
    going.end();
    let browser = serve(&bench, &[]);
    let list = browser.get("/api/v1/results").json();
    let only = &list["results"][0];
    assert_eq!(list["total"], 1);
    assert_eq!(only["status"], "interrupted");
    assert!(only["ops_per_s"].as_f64().unwrap() > 0.0, "{only}");
    assert_eq!(browser.get("/api/v1/live").json(), json!({ "runs": [] }));
    assert_eq!(bench.results().len(), 1);
}
