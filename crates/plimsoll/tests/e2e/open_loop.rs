//! Latencies of paced runs are response times: a server that stands still for a second delays every operation that
//! arrives meanwhile, which the service times hardly show.

use crate::common::{Bench, Ended, row};
use crate::serve::serve;
use plimsoll_plan::Count;
use plimsoll_results::{LatencyKind, Run, RunDir};
use std::path::PathBuf;

/// Rate of the workloads: number of operations per second that are scheduled, whether or not earlier operations have
/// completed.
const RATE: u64 = 1000;

/// Length of the measured window in seconds of virtual time.
const SECONDS: u64 = 10;

/// Options for a target whose operations take 0.1 ms, and which stands still from 5 s to 6 s.
const STALLED: [&str; 3] = [
    "--target=null:?latency=100us&stall=1s&stall_after=5s&clock=virtual",
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

/// Operation mix of one process with the rate [`RATE`].
const MIX: &str = "[metric]
name = \"clients\"
data = \"8k\"

[[component]]
name = \"client\"
processes = 1
rate = 1000

[component.mix]
stat = 100

[component.files]
count = 8
size = \"1k\"
";

fn mix(bench: &Bench) -> String {
    let path = bench.path("arrivals.toml");
    std::fs::write(&path, MIX).unwrap();
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
        let stands = (STALL.0..STALL.1).contains(&begun);
        let served = if stands { STALL.1 } else { begun };
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
    let off = service.mean_ms - mean(&services);
    assert!(off.abs() < 1e-3, "{service:?}");
    assert!((0.1..0.101).contains(&service.p99_ms), "{service:?}");
}

/// A service is too slow for the event rate: every report states the offered, achieved and dropped events.
#[test]
fn a_rate_that_is_not_achieved_is_a_reason_and_in_every_report() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(&LIMITED.replace("run 10", "run 60"));
    let args = ["--target=null:?latency=2ms&clock=virtual"];
    let run = bench.run(&workload, &args).result(3);
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert_eq!(codes, ["queue_growth", "total_rate"]);
    let schedule = run.schedule.expect("an event rate is a schedule");
    assert_eq!(schedule.offered_events_per_s, 1000.0);
    assert_eq!(schedule.achieved_events_per_s, 500.0);
    assert_eq!((schedule.scheduled, schedule.completed), (59_999, 30_000));
    // All events are dropped except the used events and the events of the last five seconds.
    let dropped = schedule.dropped;
    assert!(
        dropped.abs_diff(59_999 - 30_000 - 5000) <= 2,
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
    let sentence = format!("500 of 1 000 events/s offered; {} dropped", Count(dropped));
    for (format, said) in [
        ("text", format!("achieved: {sentence}")),
        ("markdown", format!("**achieved**: {sentence}")),
        ("html", format!("<strong>achieved</strong>: {sentence}")),
        ("csv", "offered_per_s,achieved_per_s,dropped".into()),
        ("csv", format!(",1000,500,{dropped},")),
    ] {
        let shown = report(format);
        assert!(shown.contains(&said), "no {said} in {format}: {shown}");
    }
}

/// Every place that shows a latency shows the response time first.
#[test]
fn the_response_time_is_the_latency_everywhere() {
    let bench = Bench::on_tmpfs();
    let workload = mix(&bench);
    let mut args = STALLED.to_vec();
    args.push("--interval=500ms");
    let stalled = bench.run(&workload, &args).result(0);
    check(&stalled);
    args[0] = "--target=null:?latency=100us&clock=virtual";
    let smooth = bench.run(&workload, &args).result(0);
    assert!(smooth.summary.p99_ms < 0.2, "{}", smooth.summary.p99_ms);
    let dirs = bench.results();
    let dirs: Vec<PathBuf> = dirs.iter().map(|r| r.path().to_owned()).collect();
    let slow = |d: &&PathBuf| RunDir::at(d).read().unwrap().summary.p99_ms > 100.0;
    let (slow, fast): (Vec<&PathBuf>, Vec<&PathBuf>) = dirs.iter().partition(slow);
    let (slow, fast) = (slow[0], fast[0]);
    let report = |format: &str| {
        let mut command = bench.plimsoll(["report", "--format", format]);
        command.arg(slow);
        Ended::of(command).expect_code(0).stdout
    };

    let p99 = plimsoll_report::latency(stalled.summary.p99_ms);
    let text = report("text");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "response time: mean 5",
        &format!("p99 {p99}"),
        "service time: mean 200 µs, p50 100 µs, p99 100 µs",
    ] {
        assert!(flat.contains(part), "{text}");
    }
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
    let csv = report("csv");
    let rows: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    let cell = |name: &str| {
        let at = rows[0].iter().position(|h| *h == name).unwrap();
        rows[1][at].parse::<f64>().unwrap()
    };
    assert_eq!(cell("latency_p99_ms"), stalled.summary.p99_ms);
    let service = stalled.summary.service.unwrap().p99_ms;
    assert_eq!(cell("service_p99_ms"), service);
    assert_eq!(cell("paced_ops"), stalled.summary.ops as f64);

    // In `intervals.csv`, the worst response times are in the second after the stall, when the waiting operations
    // completed; their service times are short.
    let rows = RunDir::at(slow).read_intervals().unwrap();
    let worst = rows.iter().filter(|r| r.kind == "stat");
    let worst = worst.max_by(|a, b| a.p99_ms.total_cmp(&b.p99_ms)).unwrap();
    let is_worst = worst.p99_ms > 900.0 && worst.service_p99_ms < Some(1.0);
    assert!(is_worst, "{worst:?}");

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
    assert_eq!(entry["service_p99_ms"], service);
    let list = browser.get("/").text;
    assert!(list.contains("service 100 µs"), "{list}");
}

#[test]
fn repeated_runs_say_their_response_time() {
    let bench = Bench::on_tmpfs();
    let workload = mix(&bench);
    let mut command = bench.plimsoll(["run", &workload, "--repeat=2", "--quiet"]);
    command.args(STALLED).arg("--results=results");
    let out = Ended::of(command).expect_code(0).stdout;
    let mean = |figure: &str| {
        let row = out.lines().find_map(|line| line.strip_prefix(figure));
        row.and_then(|row| row.split_whitespace().next())
            .expect(&out)
    };
    assert!(mean("p99 latency").starts_with('9'), "{out}");
    assert_eq!(mean("p99 service time"), "100", "{out}");
}
