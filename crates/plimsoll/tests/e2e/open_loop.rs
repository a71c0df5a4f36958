//! What a paced run says first: the response time. A service that stands still for a second holds up
//! everything that arrives meanwhile, and hardly shows in the service time.

use crate::common::{Bench, Ended, row, signal, started};
use crate::serve::serve;
use plimsoll_plan::Count;
use plimsoll_results::{LatencyKind, Run, RunDir};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

/// Arrivals per second.
const RATE: u64 = 1000;

/// Seconds of virtual time.
const SECONDS: u64 = 10;

/// A service of 0.1 ms that stands still from 5 s to 6 s.
const STALLED: [&str; 4] = [
    "--target=null:?latency=100us&stall=1s&stall_after=5s",
    "--clock=virtual",
    "--warmup=0s",
    "--time=10s",
];

const LIMITED: &str = "eventgen rate=1000
define fileset name=s,path=files,entries=100,dirwidth=10,prealloc
define process name=p { thread name=t,memsize=1k,instances=1 {
  flowop eventlimit name=pace
  flowop statfile name=look,filesetname=s
} }
run 10
";

/// As many arrivals, from `processes`.
fn mix(bench: &Bench, processes: u64) -> String {
    let (rate, data) = (RATE / processes, 8 * processes);
    let text = format!(
        "[metric]
name = \"clients\"
data = \"{data}k\"

[[component]]
name = \"client\"
processes = {processes}
rate = {rate}

[component.mix]
stat = 100

[component.files]
count = 8
size = \"1k\"
"
    );
    let path = bench.path("arrivals.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Response and service times in milliseconds, in increasing order, of arrivals one millisecond apart
/// at a server that takes them in turn: computed by itself, from what the target is said to do.
fn computed() -> (Vec<f64>, Vec<f64>) {
    const STALL: (f64, f64) = (5000.0, 6000.0);
    let gap = 1000.0 / RATE as f64;
    let (mut free, mut responses, mut services) = (0.0f64, vec![], vec![]);
    for n in 0..RATE * SECONDS {
        let due = n as f64 * gap;
        let begun = free.max(due);
        let served = if (STALL.0..STALL.1).contains(&begun) {
            STALL.1
        } else {
            begun
        };
        free = served + 0.1;
        responses.push(free - due);
        services.push(free - begun);
    }
    responses.sort_by(f64::total_cmp);
    services.sort_by(f64::total_cmp);
    (responses, services)
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

fn percentile(sorted: &[f64], p: f64) -> f64 {
    sorted[(sorted.len() as f64 * p / 100.0).ceil() as usize - 1]
}

/// Arrivals begin somewhere in the first millisecond; histograms have three digits.
#[track_caller]
fn near(found: f64, expected: f64) {
    let off = (found - expected).abs();
    assert!(off <= 1.1 + expected * 2e-3, "{found} is not {expected}");
}

#[track_caller]
fn check(run: &Run) {
    let (responses, services) = computed();
    let s = &run.summary;
    assert!(s.ops.abs_diff(RATE * SECONDS) <= 2, "{}", s.ops);
    assert_eq!(s.latency_kind(), LatencyKind::Response);
    near(s.mean_ms, mean(&responses));
    near(s.p99_ms, percentile(&responses, 99.0));
    assert!((45.0..65.0).contains(&s.mean_ms), "{}", s.mean_ms);
    assert!((850.0..950.0).contains(&s.p99_ms), "{}", s.p99_ms);
    assert!((0.1..0.101).contains(&s.p50_ms), "{}", s.p50_ms);
    let service = s.service.expect("the service time stands beside it");
    assert!(
        (service.mean_ms - mean(&services)).abs() < 1e-3,
        "{service:?}"
    );
    assert!((0.1..0.101).contains(&service.p99_ms), "{service:?}");
}

#[test]
fn a_service_that_stalls_for_a_second_is_the_headline_of_a_limited_workload() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LIMITED);
    let run = bench.run(&workload, &STALLED).result(0);
    check(&run);
    let look = row(&run, "look");
    assert_eq!(look.latency.p99_ms, run.summary.p99_ms);
    assert_eq!(look.service().p99_ms, run.summary.service.unwrap().p99_ms);
    near(look.service().max_ms, 1000.0);
}

/// A service is too slow for the event rate: every report states the offered, achieved and dropped events.
#[test]
fn a_rate_that_is_not_achieved_is_a_reason_and_in_every_report() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&LIMITED.replace("run 10", "run 60"));
    let args = ["--target=null:?latency=2ms", "--clock=virtual"];
    let run = bench.run(&workload, &args).result(3);
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert_eq!(codes, ["total_rate"]);
    let schedule = run.schedule.expect("an event rate is a schedule");
    let rates = (
        schedule.offered_events_per_s,
        schedule.achieved_events_per_s,
    );
    assert_eq!(rates, (1000.0, 500.0));
    assert_eq!((schedule.scheduled, schedule.completed), (59_999, 30_000));
    // All events are dropped except the used events and the events of the last five seconds.
    assert!(
        schedule.dropped.abs_diff(59_999 - 30_000 - 5000) <= 2,
        "{schedule:?}"
    );
    let latency = row(&run, "look").latency;
    assert!((4990.0..5010.0).contains(&latency.max_ms), "{latency:?}");
    let report = |format: &str| {
        let mut command = bench.plimsoll(["report", "--format", format]);
        command.arg(bench.results()[0].path());
        let out = Ended::of(command).expect_code(0).stdout;
        out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let sentence = format!(
        "500 of 1 000 events/s offered; {} dropped",
        Count(schedule.dropped)
    );
    assert!(
        report("text").contains(&format!("achieved: {sentence}")),
        "{}",
        report("text")
    );
    assert!(
        report("markdown").contains(&format!("**achieved**: {sentence}")),
        "{}",
        report("markdown")
    );
    let page = report("html");
    assert!(page.contains(&format!("<strong>achieved</strong>: {sentence}")));
    let csv = report("csv");
    let expected = format!(",1000,500,{},", schedule.dropped);
    assert!(
        csv.contains("offered_per_s,achieved_per_s,dropped") && csv.contains(&expected),
        "{csv}"
    );
}

/// Every place that shows a latency shows the response time first.
#[test]
fn the_response_time_is_the_latency_everywhere() {
    let bench = Bench::on_tmpfs();
    let workload = mix(&bench, 1);
    let mut args = STALLED.to_vec();
    args.push("--interval=500ms");
    let stalled = bench.run(&workload, &args).result(0);
    check(&stalled);
    args[0] = "--target=null:?latency=100us";
    let smooth = bench.run(&workload, &args).result(0);
    assert!(smooth.summary.p99_ms < 0.2, "{}", smooth.summary.p99_ms);
    let dirs: Vec<PathBuf> = bench
        .results()
        .iter()
        .map(|r| r.path().to_owned())
        .collect();
    let slow = |d: &&PathBuf| RunDir::at(d).read().unwrap().summary.p99_ms > 100.0;
    let (slow, fast): (Vec<&PathBuf>, Vec<&PathBuf>) = dirs.iter().partition(slow);
    let (slow, fast) = (slow[0], fast[0]);
    let report = |format: &str| {
        let mut command = bench.plimsoll(["report", "--format", format]);
        Ended::of({
            command.arg(slow);
            command
        })
        .expect_code(0)
        .stdout
    };

    let p99 = plimsoll_report::latency(stalled.summary.p99_ms);
    let text = report("text");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "response time: mean 5";
    assert!(
        flat.contains(first) && flat.contains(&format!("p99 {p99}")),
        "{text}"
    );
    assert!(
        flat.contains("service time: mean 200 µs, p50 100 µs, p99 100 µs"),
        "{text}"
    );
    let line = text.lines().find(|l| l.starts_with("stat "));
    assert!(line.is_some_and(|l| l.contains(&p99)), "{text}");
    let page = report("html");
    for title in [
        "99th percentile of the response time",
        "99th percentile of the service time",
        "Mean response time",
        "Mean service time",
        "Response times of stat over time",
        "stat, response time",
        "stat, service time",
    ] {
        assert!(page.contains(title), "{title}");
    }
    let markdown = report("markdown");
    for line in [
        "- **response time**: mean 5",
        "- **service time**: mean 200 µs",
    ] {
        assert!(markdown.contains(line), "{markdown}");
    }
    let csv = report("csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let cell = |name: &str| {
        let at = rows[0].iter().position(|h| *h == name).unwrap();
        rows[1][at].parse::<f64>().unwrap()
    };
    assert_eq!(cell("latency_p99_ms"), stalled.summary.p99_ms);
    assert_eq!(
        cell("service_p99_ms"),
        stalled.summary.service.unwrap().p99_ms
    );
    assert_eq!(cell("paced_ops"), stalled.summary.ops as f64);

    // The second of the stall is in the series: what waited then completed in the next.
    let rows = RunDir::at(slow).read_intervals().unwrap();
    let worst = rows.iter().filter(|r| r.kind == "stat");
    let worst = worst.max_by(|a, b| a.p99_ms.total_cmp(&b.p99_ms)).unwrap();
    assert!(
        worst.p99_ms > 900.0 && worst.service_p99_ms < Some(1.0),
        "{worst:?}"
    );

    let compare = |condition: &str| {
        let mut command = bench.plimsoll(["compare", "--fail-if", condition]);
        command.args([fast, slow]);
        Ended::of(command)
    };
    compare("p99 > +1000%").expect_code(3);
    compare("stat:p99 > +1000%").expect_code(3);
    let compared = compare("service p99 > +1%").expect_code(0).stdout;
    assert!(compared.contains("p99 service time"), "{compared}");

    let browser = serve(&bench, &[]);
    let name = slow.file_name().unwrap().to_str().unwrap();
    let entry = browser.get(&format!("/api/v1/results/{name}")).json();
    assert_eq!(entry["p99_ms"], stalled.summary.p99_ms);
    assert_eq!(
        entry["service_p99_ms"],
        stalled.summary.service.unwrap().p99_ms
    );
    let list = browser.get("/").text;
    assert!(list.contains("service 100 µs"), "{list}");
}

#[test]
fn repeated_runs_say_their_response_time() {
    let bench = Bench::on_tmpfs();
    let workload = mix(&bench, 1);
    let mut command = bench.plimsoll(["run", &workload, "--repeat=2", "--quiet"]);
    command
        .args(STALLED)
        .arg("--results")
        .arg(bench.path("results"));
    let out = Ended::of(command).expect_code(0).stdout;
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, spread) = flat.split_once("2 runs: ").expect(&flat);
    let (latency, service) = spread.split_once("; service time mean ").expect(spread);
    assert!(
        latency.contains("p99 9") && service.contains("p99 100 µs"),
        "{spread}"
    );
}

/// A server in a process of its own, which ends with the test.
struct NfsServer {
    child: Child,
    url: String,
}

impl NfsServer {
    fn start(bench: &Bench) -> Self {
        let mut command = bench.plimsoll(["emulate", "nfs"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { child, url }
    }
}

impl Drop for NfsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that is stopped while load arrives: its process, by the signal.
#[test]
fn a_server_that_is_stopped_for_a_second_is_the_headline() {
    let bench = Bench::new();
    let server = NfsServer::start(&bench);
    let workload = mix(&bench, 4);
    let mut command = bench.command(&workload, &["--target", &server.url]);
    command.args(["--warmup=0s", "--time=4s"]);
    let running = started(command, "measuring");
    let pid = server.child.id() as i32;
    std::thread::sleep(Duration::from_millis(500));
    signal(pid, Signal::STOP);
    std::thread::sleep(Duration::from_secs(1));
    signal(pid, Signal::CONT);
    let ended = running.end();
    // A busy machine may not carry the load besides.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run = ended.parsed().expect("a result");
    let s = &run.summary;
    assert!(s.p99_ms > 300.0, "{s:?}");
    let service = s.service.expect("the service time stands beside it");
    // One call of each process was under way when the server stopped.
    assert!(service.p99_ms < s.p99_ms / 2.0, "{s:?}");
    assert_eq!(s.paced_ops, s.ops);
}
