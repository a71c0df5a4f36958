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

/// The same, with a second of sleep behind each look.
const SLEEPERS: &str = "\
define fileset name=s,path=files,entries=100,dirwidth=100,prealloc
define process name=p {
  thread name=t,memsize=1k,instances=1 {
    flowop statfile name=look,filesetname=s,iters=50
    flowop delay name=rest,value=2
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
fn is_stalled(run: &Run) {
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert_eq!(codes, ["stalled"], "{:?}", run.validity.reasons);
}

/// What `report` makes of the first run.
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
    let more = [
        "--target",
        &server.url,
        "--time=6s",
        "--set=nfiles=50",
        "--set=nthreads=2",
    ];
    let run = bench.run("varmail", &more).result(3);
    // The clients' side of it, and the server's.
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert_eq!(
        codes,
        ["server_not_responding", "stalled"],
        "{:?}",
        run.validity.reasons
    );
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
        assert!(o.is_at_least(o.latency.max_ms), "{o:?}");
    }
    let commit = run.procedures.iter().find(|p| p.name == "COMMIT").unwrap();
    assert_eq!(commit.in_flight, 2, "{commit:?}");

    let text = page(&bench, "text");
    assert!(
        text.contains("2 in flight at the end, the oldest for"),
        "{text}"
    );
    assert!(
        text.contains("oldest in flight:") && text.contains("≥"),
        "{text}"
    );
    for form in ["markdown", "html"] {
        let text = page(&bench, form);
        assert!(
            text.contains("oldest in flight") && text.contains("≥"),
            "{form}"
        );
    }
    assert!(page(&bench, "html").contains("Shaded: nothing completed"));
    assert!(page(&bench, "csv").contains("oldest_in_flight_ms"));
}

#[test]
fn a_server_that_stops_for_a_while_is_seen_in_the_middle() {
    let bench = Bench::new();
    let server = Served::with(&bench, &[]);
    let workload = bench.workload(LOOKERS);
    let more = ["--target", &server.url];
    let going = started(bench.command(&workload, &more), "measuring");
    std::thread::sleep(Duration::from_secs(2));
    server.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(3));
    server.signal(Signal::CONT);
    let run = going.end().result(3);
    is_stalled(&run);
    let stall = only_stall(&run);
    assert!(!stall.at_end && stall.invalidates, "{stall:?}");
    assert!(
        stall.length_s() > 2.0 && stall.length_s() < 6.0,
        "{stall:?}"
    );
    let look = row(&run, "look");
    assert!(look.latency.max_ms >= 2000.0, "{look:?}");
    assert!(!look.is_at_least(look.latency.max_ms), "they came back");
}

/// Each rank sees by its own clock that nothing comes back, and all of them see it together.
#[test]
fn every_rank_tells_of_its_own_stalls() {
    let bench = Bench::new();
    let server = Served::with(&bench, &[]);
    let workload = bench.workload(LOOKERS);
    let more = ["--target", &server.url, "--processes=2", "--time=5s"];
    let going = started(bench.command(&workload, &more), "measuring");
    std::thread::sleep(Duration::from_secs(2));
    server.signal(Signal::STOP);
    // Until the window has ended for all.
    std::thread::sleep(Duration::from_millis(5200));
    server.signal(Signal::CONT);
    let run = going.end().result(3);
    is_stalled(&run);
    let stalls = &run.summary.stalls;
    let ranks: Vec<Option<u32>> = stalls.iter().map(|s| s.rank).collect();
    assert_eq!(ranks, [None, Some(0), Some(1)], "{stalls:?}");
    assert!(
        stalls.iter().all(|s| s.at_end && s.invalidates),
        "{stalls:?}"
    );
    assert_eq!(row(&run, "look").in_flight, 2);
    assert!(run.summary.oldest_in_flight_ms > Some(1000.0));
}

/// A load at which the target stood still is not carried, even if it was made up for.
#[test]
fn a_point_with_a_stall_is_not_sustained() {
    let bench = Bench::on_tmpfs();
    let args = [
        "--load=1",
        "--time=20s",
        "--warmup=1s",
        "--target=null:?latency=2ms&stall=1500ms&stall_after=6s",
        "--clock=virtual",
    ];
    let ended = Ended::of(series::command(&bench, "curve", &args));
    let curve = series::parsed(&ended);
    let point = &curve.runs[0];
    assert_eq!(point.verdict, Verdict::Invalid, "{point:?}");
    let codes: Vec<&str> = point.reasons.iter().map(|r| &*r.code).collect();
    assert!(codes.contains(&"stalled"), "{codes:?}");
}

/// A load line is not looked for above a load at which the target stands still.
#[test]
fn a_load_with_a_stall_is_not_carried_in_a_search() {
    let bench = Bench::on_tmpfs();
    for (stall, carried) in [("&stall=1500ms&stall_after=6s", None), ("", Some(2))] {
        let target = format!("--target=null:?latency=2ms{stall}");
        let more = [
            "--max-load=2",
            "--time=20s",
            "--warmup=1s",
            "--clock=virtual",
            &target,
        ];
        let ended = Ended::of(series::command(&bench, "find", &more));
        let search = series::parsed(&ended);
        let line = search.as_search().unwrap().figures.load_line;
        let sustained = line.sustained.map(|s| s.load);
        assert_eq!(sustained, carried, "{line:?}");
        for run in &search.runs {
            assert_eq!(run.is_valid(), carried.is_some());
            let criteria = &run.criteria;
            let stalled = criteria.iter().find(|c| c.code == "stalled").unwrap();
            assert_eq!(stalled.met, carried.is_some(), "{stalled:?}");
            // What was due in the stall was made up for.
            let missed: Vec<_> = criteria.iter().filter(|c| !c.met).collect();
            assert_eq!(missed.len(), usize::from(carried.is_none()), "{missed:?}");
        }
    }
}

/// A mix of one load, at the end of whose window the target stands still.
#[test]
fn a_mix_with_a_stall_at_the_end_shows_what_it_owes() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let more = [
        "--target=null:?latency=2ms&stall=60s&stall_after=7s",
        "--clock=virtual",
        "--time=10s",
        "--warmup=1s",
    ];
    let run = bench.run("users.toml", &more).result(3);
    let codes: Vec<&str> = run.validity.reasons.iter().map(|r| &*r.code).collect();
    assert!(codes.contains(&"stalled"), "{codes:?}");
    assert!(only_stall(&run).at_end);
    let total = &run.mix.as_ref().unwrap().total;
    let response = total.response.unwrap();
    let bound = total.response_at_least_ms.unwrap();
    assert_eq!(run.summary.oldest_in_flight_ms, Some(bound));
    assert_eq!(response.max_ms, bound);
    assert!((998..=1002).contains(&total.scheduled), "{total:?}");
    let text = page(&bench, "text");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let carried = flat.split("achieved: ").nth(1).unwrap();
    assert!(carried.contains("max ≥ "), "{carried}");
    assert!(page(&bench, "html").contains("≥ "));
}

/// Nothing completed, so that all that is known are the ages of what hangs.
#[test]
fn what_never_comes_back_is_shown_by_its_age() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(LOOKERS);
    let more = [
        "--target=null:?latency=1ms&stall=60s&stall_after=0s",
        "--clock=virtual",
    ];
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
    assert_eq!(
        (cell("latency_mean_ms"), cell("latency_at_least_from")),
        ("", "p50")
    );
    assert_eq!(cell("latency_p99_ms"), look.latency.p99_ms.to_string());
}

/// The same at a load of a curve, which is in its tables, and nowhere else.
#[test]
fn a_point_of_which_nothing_comes_back_has_lower_bounds() {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let mut command = bench.plimsoll(["curve", "users.toml", "--format=json", "--load=1"]);
    command.args(["--time=10s", "--warmup=1s", "--clock=virtual"]);
    command.arg("--target=null:?latency=2ms&stall=60s&stall_after=0s");
    command.arg("--results").arg(bench.path("results"));
    let ended = Ended::of(command).expect_code(3);
    let curve = series::parsed(&ended);
    let point = &curve.runs[0];
    assert_eq!(point.mean_ms, None);
    assert!(
        point.p99_ms > Some(9000.0) && point.max_at_least,
        "{point:?}"
    );
    for form in ["text", "markdown", "html"] {
        assert!(page(&bench, form).contains("≥ "), "{form}");
    }
    let csv = page(&bench, "csv");
    let (head, figures) = csv.split_once('\n').unwrap();
    assert!(head.ends_with(",latency_at_least_from"), "{head}");
    assert!(figures.trim_end().ends_with(",p50"), "{figures}");
}

/// What was due while the target stood still is due, also where it did so to the end.
#[test]
fn a_mix_owes_what_was_due_in_a_stall_at_the_end() {
    let bench = Bench::new();
    let server = Served::with(&bench, &[]);
    std::fs::write(bench.path("users.toml"), USERS).unwrap();
    let more = ["--target", &server.url, "--time=4s", "--warmup=1s"];
    let going = started(bench.command("users.toml", &more), "measuring");
    std::thread::sleep(Duration::from_secs(2));
    server.signal(Signal::STOP);
    let run = going.end().result(3);
    server.signal(Signal::CONT);
    let carried = run.mix.unwrap().total;
    // Two processes of 50 a second for 4 s; where each begins is up to the seed.
    assert!((398..=402).contains(&carried.scheduled), "{carried:?}");
    assert!(carried.completed < 350, "{carried:?}");
    let response = carried.response.unwrap();
    let oldest = run.summary.oldest_in_flight_ms.unwrap();
    assert!(response.max_ms >= oldest, "{response:?} {oldest}");
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

/// What is stalled in virtual time is so to the slot.
#[test]
fn a_stall_has_its_length_in_virtual_time() {
    for (after, length, at_end) in [(4u32, 3u32, false), (7, 60, true)] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(LOOKERS);
        let target = format!("--target=null:?latency=10ms&stall={length}s&stall_after={after}s");
        let more = [target.as_str(), "--clock=virtual"];
        let run = bench.run(&workload, &more).result(3);
        is_stalled(&run);
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
fn sleep_is_not_a_stall() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(SLEEPERS);
    let more = ["--target=null:?latency=1ms", "--clock=virtual"];
    let run = bench.run(&workload, &more).result(0);
    assert_eq!(run.summary.stalls, []);
    let gap = run.summary.max_gap_ms.unwrap();
    assert!((1990.0..2010.0).contains(&gap), "{gap}");
}

#[test]
fn a_comparison_says_which_side_stood_still() {
    let bench = Bench::on_tmpfs();
    let mut command = bench.plimsoll(["compare"]);
    let workload = bench.workload(LOOKERS);
    for stall in ["", "&stall=4s&stall_after=3s"] {
        let target = format!("--target=null:?latency=10ms{stall}");
        bench.run(&workload, &[&target, "--clock=virtual"]);
    }
    let results = bench.results();
    command.args(results.iter().map(|r| r.path().to_owned()));
    let said = Ended::of(command).stdout;
    assert!(said.contains("stalled for up to"), "{said}");
}
