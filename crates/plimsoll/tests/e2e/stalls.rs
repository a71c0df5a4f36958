//! Servers that stand still, in the middle of a window and at its end.

use crate::common::series::{self, USERS};
use crate::common::served::Served;
use crate::common::{Bench, Ended, row, started};
use plimsoll_results::{Run, StallFigure, Verdict};
use rustix::process::Signal;
use std::time::Duration;

/// Workers that look at files.
const LOOKERS: &str = "\
define fileset name=s,path=files,entries=100,dirwidth=100,prealloc
define process name=p {
  thread name=t,memsize=1k,instances=2 {
    flowop statfile name=look,filesetname=s
  }
}
run 10
";

fn only_stall(run: &Run) -> StallFigure {
    let [stall] = run.summary.stalls[..] else {
        panic!("{:?}", run.summary.stalls)
    };
    stall
}

#[track_caller]
fn assert_stalled(run: &Run) {
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert_eq!(codes, ["stalled"], "{:?}", run.validity.reasons);
}

/// Output of `plimsoll report` for the first results of the bench; `form` is the value of `--format`.
fn page(bench: &Bench, form: &str) -> String {
    let results = bench.results();
    let dir = results[0].path().to_owned();
    let mut command = bench.plimsoll(["report", "--format", form]);
    command.arg(dir);
    Ended::of(command).expect_code(0).stdout
}

#[test]
fn a_commit_that_is_never_answered_is_in_the_figures() {
    let bench = Bench::new();
    let server = Served::with(&bench, &["--inject-fault", "commit=drop-reply:0.02"]);
    let more = ["--target", &server.url, "--time=6s", "--set=nfiles=50"];
    let run = bench.run("varmail", &[&more[..], &["--set=nthreads=2"]].concat());
    let run = run.result(3);
    // The reason `server_not_responding` is about the server, the reason `stalled` about the operations.
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert_eq!(codes, ["server_not_responding", "stalled"]);
    let stall = only_stall(&run);
    assert!(stall.at_end && stall.invalidates, "{stall:?}");
    let s = &run.summary;
    assert_eq!(s.in_flight, 2);
    let oldest = s.oldest_in_flight_ms.unwrap();
    assert!(oldest > 1000.0 && oldest <= 6000.0, "{oldest}");
    assert!(s.max_gap_ms > Some(1000.0) && s.expected_max_gap_ms < s.max_gap_ms);
    let hung: Vec<_> = run.operations.iter().filter(|o| o.in_flight > 0).collect();
    assert_eq!(hung.iter().map(|o| o.in_flight).sum::<u64>(), 2);
    for o in &hung {
        let oldest = o.oldest_in_flight_ms.unwrap();
        assert!(o.latency.max_ms >= oldest, "{o:?}");
        assert!(o.latency.max_at_least, "{o:?}");
    }
    let commit = run.procedures.iter().find(|p| p.name == "COMMIT").unwrap();
    assert_eq!(commit.in_flight, 2, "{commit:?}");

    let text = page(&bench, "text");
    for part in [
        "2 in flight at the end, the oldest for",
        "oldest in flight:",
        "≥",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(page(&bench, "html").contains("Shaded: nothing completed"));
}

#[test]
fn a_server_that_stops_for_a_while_is_seen_in_the_middle() {
    let bench = Bench::new();
    let server = Served::with(&bench, &[]);
    let workload = bench.workload(LOOKERS);
    let more = ["--target", &server.url, "--time=6s"];
    let going = started(bench.command(&workload, &more), "measuring");
    std::thread::sleep(Duration::from_secs(1));
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    server.signal(Signal::CONT);
    let run = going.end().result(3);
    assert_stalled(&run);
    let stall = only_stall(&run);
    assert!(!stall.at_end && stall.invalidates, "{stall:?}");
    assert!((2.0..6.0).contains(&stall.length_s()), "{stall:?}");
    let look = row(&run, "look");
    assert!(look.latency.max_ms >= 2000.0, "{look:?}");
    assert!(!look.latency.max_at_least, "they came back");
}

/// After the server of a run with two ranks stood still, the results contain a stall for each rank, timed by the clock
/// of the rank, and a stall of all ranks together.
#[test]
fn every_rank_tells_of_its_own_stalls() {
    let bench = Bench::new();
    let server = Served::with(&bench, &[]);
    let workload = bench.workload(LOOKERS);
    let more = ["--target", &server.url, "--processes=2", "--time=4s"];
    let going = started(bench.command(&workload, &more), "measuring");
    std::thread::sleep(Duration::from_secs(1));
    server.signal(Signal::STOP);
    // Until the window has ended for all.
    std::thread::sleep(Duration::from_millis(4200));
    server.signal(Signal::CONT);
    let run = going.end().result(3);
    assert_stalled(&run);
    let stalls = &run.summary.stalls;
    let ranks: Vec<Option<u32>> = stalls.iter().map(|s| s.rank).collect();
    assert_eq!(ranks, [None, Some(0), Some(1)], "{stalls:?}");
    let are_at_end = stalls.iter().all(|s| s.at_end && s.invalidates);
    assert!(are_at_end, "{stalls:?}");
    assert_eq!(row(&run, "look").in_flight, 2);
    assert!(run.summary.oldest_in_flight_ms > Some(1000.0));
}

/// A curve does not count a load point with a stall of the target as sustained, even if the late operations complete
/// after the stall.
#[test]
fn a_point_with_a_stall_is_not_sustained() {
    let bench = Bench::on_tmpfs();
    let target = "--target=null:?latency=2ms&stall=1500ms&stall_after=6s&clock=virtual";
    let timed = ["--time=20s", "--warmup=1s"];
    let args = [&["--load=1", target], &timed[..]].concat();
    let ended = Ended::of(series::command(&bench, "curve", &args));
    let curve = series::parsed(&ended);
    let point = &curve.runs[0];
    assert_eq!(point.verdict, Verdict::Invalid, "{point:?}");
    let codes: Vec<&str> = point.reasons.iter().map(|r| &*r.code).collect();
    assert!(codes.contains(&"stalled"), "{codes:?}");
}

/// A mix of one load, at the end of whose window the target stands still.
#[test]
fn a_mix_with_a_stall_at_the_end_shows_what_it_owes() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let target = "--target=null:?latency=2ms&stall=60s&stall_after=7s&clock=virtual";
    let more = [target, "--time=10s", "--warmup=1s"];
    let run = bench.run("users.toml", &more).result(3);
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert!(codes.contains(&"stalled"), "{codes:?}");
    assert!(only_stall(&run).at_end);
    let total = &run.mix.as_ref().unwrap().total;
    let response = total.response.unwrap();
    assert!(response.max_at_least);
    assert_eq!(run.summary.oldest_in_flight_ms, Some(response.max_ms));
    assert!((998..=1002).contains(&total.scheduled), "{total:?}");
    let text = page(&bench, "text");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let carried = flat.split("achieved: ").nth(1).unwrap();
    assert!(carried.contains("max ≥ "), "{carried}");
}

/// If no operation completes in the window, the results have only the ages of the operations in flight.
#[test]
fn what_never_comes_back_is_shown_by_its_age() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKERS);
    let more = ["--target=null:?latency=1ms&stall=60s&stall_after=0s&clock=virtual"];
    let run = bench.run(&workload, &more).result(3);
    let look = row(&run, "look");
    assert_eq!((look.ops, look.in_flight), (0, 2));
    for form in ["text", "markdown", "html"] {
        let text = page(&bench, form).replace("  ", " ");
        let (_, of_row) = text.split_once("look").unwrap();
        assert!(of_row.contains("≥ 10.0 s"), "{form}: {text}");
    }
    let csv = page(&bench, "csv");
    let mut lines = csv.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let (head, figures) = (lines.next().unwrap(), lines.next().unwrap());
    let cell = |name: &str| figures[head.iter().position(|h| *h == name).unwrap()];
    assert_eq!(cell("latency_mean_ms"), "");
    assert_eq!(cell("latency_at_least_from"), "p50");
    assert_eq!(cell("latency_p99_ms"), look.latency.p99_ms.to_string());
}

/// A phase of a pattern is judged like a window.
#[test]
fn a_phase_with_a_stall_is_named() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["md", "-P=20", "-I=100", "-D=2", "--results"]);
    let target = "--target=null:?latency=2ms&stall=2s&stall_after=600ms";
    command.arg(bench.path("results")).arg(target);
    Ended::of(command).expect_code(3);
    let run = bench.results()[0].read().unwrap();
    let of_stages = run.stages.iter().map(|s| s.window.summary.stalls.len());
    assert_eq!(of_stages.sum::<usize>(), 1, "{:?}", run.validity);
    let reason = run.validity.reasons.iter().find(|r| r.code == "stalled");
    let text = &reason.unwrap().text;
    assert!(text.starts_with("stage `"), "{text}");
    assert_eq!(run.summary.stalls.len(), 1);
}

/// In virtual time, the start and the end of a stall are exact to the length of a slot of the counts of completions.
#[test]
fn a_stall_has_its_length_in_virtual_time() {
    for (after, length, at_end) in [(4u32, 3u32, false), (7, 60, true)] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(LOOKERS);
        let stall = format!("stall={length}s&stall_after={after}s");
        let target = format!("--target=null:?latency=10ms&{stall}&clock=virtual");
        let run = bench.run(&workload, &[&target]).result(3);
        assert_stalled(&run);
        let stall = only_stall(&run);
        assert_eq!(stall.at_end, at_end);
        let end = (after + length).min(10);
        let near = |a: f64, b: f64| (a - b).abs() < 0.03;
        assert!(near(stall.start_s, f64::from(after)), "{stall:?}");
        assert!(near(stall.end_s, f64::from(end)), "{stall:?}");
        let look = row(&run, "look");
        assert_eq!(look.in_flight, 2);
        let oldest = look.oldest_in_flight_ms.unwrap();
        match at_end {
            true => {
                assert!(near(oldest / 1e3, 3.0), "{oldest}");
                assert_eq!(look.latency.max_ms, oldest);
            }
            false => assert!(oldest <= 10.0 && look.latency.max_ms > 3000.0, "{look:?}"),
        }
    }
}

#[test]
fn a_comparison_says_which_side_stood_still() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["compare"]);
    let workload = bench.workload(LOOKERS);
    for stall in ["", "&stall=4s&stall_after=3s"] {
        let target = format!("--target=null:?latency=10ms{stall}&clock=virtual");
        bench.run(&workload, &[&target]);
    }
    let results = bench.results();
    command.args(results.iter().map(|r| r.path().to_owned()));
    let said = Ended::of(command).stdout;
    assert!(said.contains("stalled for up to"), "{said}");
}
