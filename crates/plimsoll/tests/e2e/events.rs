//! Events while a run runs: `--event`.

use crate::common::series::{self, TO_THE_END};
use crate::common::served::Served;
use crate::common::{Bench, Ended, children_of, signal, started, wait_until};
use plimsoll_results::{EventFigures, EventState, Run, RunDir, RunEvent, Verdict};
use rustix::process::Signal;
use std::path::Path;

/// Two workers, on ten files, that look 200 times per second together.
const WORKLOAD: &str = "\
eventgen rate=200
define fileset name=s,path=files,entries=10,dirwidth=20,size=4k,prealloc
define process name=p {
  thread name=t,memsize=1m,instances=2 {
    flowop statfile name=look,filesetname=s
    flowop eventlimit name=pace
  }
}
run 1
";

/// A run of a second in intervals of 100 ms.
fn short(bench: &Bench, more: &[&str]) -> Ended {
    let workload = bench.workload(WORKLOAD);
    let short = ["--time=1s", "--interval=100ms"];
    bench.run_in_work(&workload, &[&short[..], more].concat())
}

/// An event that appends a line to a file.
fn note(bench: &Bench, at: &str, line: &str) -> String {
    format!("--event={at} sh echo {line} >> {}", noted(bench))
}

fn noted(bench: &Bench) -> String {
    bench.path("noted").display().to_string()
}

fn lines(bench: &Bench) -> Vec<String> {
    let text = std::fs::read_to_string(bench.path("noted")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn effect(event: &RunEvent) -> &EventFigures {
    event.effect.as_ref().expect("it began in the window")
}

/// Whether a run did what its events said: what else a loaded machine does to it is not looked at.
fn has_reason(run: &Run, code: &str) -> bool {
    run.validity.reasons.iter().any(|r| r.code == code)
}

#[test]
fn a_command_is_run_once_at_its_time() {
    let bench = Bench::on_tmpfs();
    let ended = short(&bench, &[&note(&bench, "350ms", "$PLIMSOLL_WHEN")]);
    let run = ended.parsed().expect("a run");
    assert_eq!(lines(&bench), ["event"]);
    let [event] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    assert_eq!((event.at_s, event.state), (0.35, EventState::Executed));
    assert_eq!(
        event.action,
        format!("sh echo $PLIMSOLL_WHEN >> {}", noted(&bench))
    );
    assert_eq!(
        (event.exit_status, event.signal, event.timed_out),
        (Some(0), None, false)
    );
    // Without a warm-up, the run begins with its window.
    let (late, place) = (event.lateness_s.unwrap(), event.window_s.unwrap());
    assert!(
        late >= 0.0 && (place - 0.35 - late).abs() < 1e-6,
        "{event:?}"
    );
    assert!((event.start_s.unwrap() - run.window_start_s - place).abs() < 1e-6);
    assert_eq!(event.window, Some(1));
    assert!(effect(event).before_ops_per_s.is_some());
    assert_eq!(effect(event).recovery_resolution_s, 0.1);
    assert!(!has_reason(&run, "event_failed"));
    // The lines of the interval in which it began have it, and no others.
    let dir = &bench.results()[0];
    assert_eq!(dir.read().unwrap(), run);
    let rows = dir.read_intervals().unwrap();
    assert!(rows.len() > 5, "{rows:?}");
    for row in &rows {
        let began = row.start_s <= place && place < row.start_s + row.length_s;
        let told = if began { event.action.as_str() } else { "" };
        assert_eq!(row.events, told, "{row:?}");
    }
    assert!(rows.iter().any(|row| !row.events.is_empty()));
    let log = std::fs::read_to_string(dir.path().join("commands.log")).unwrap();
    assert!(
        log.contains(&format!("== event: {}", &event.action[3..])),
        "{log}"
    );
    assert_eq!(bench.left_but(&["w.f", "results", "noted"]), [""; 0]);
}

#[test]
fn what_cannot_happen_is_refused() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let run = ["run", &workload];
    let cases: [(&[&str], &str); 9] = [
        (
            &["--event=before cleanup sh true"],
            "the run has no such phase: expected populate, load",
        ),
        (&["--event=1s"], "expected TIME sh COMMAND"),
        (&["--event=soon sh true"], "`soon` is not a duration"),
        (
            &["--event=1s kill server.2"],
            "'1s kill server.2' needs a simulated system (sim:SYSTEM): the target is posix",
        ),
        (
            &[
                "--event=1s sh true",
                "--target=null:?latency=1ms",
                "--clock=virtual",
            ],
            "and the run is in virtual time: expected --clock real",
        ),
        (
            &["--event=1s sh true", "--target=sim:edge-32"],
            "in which no command can run: expected TIME down WHAT",
        ),
        (
            &["--event=1s kill edge.3", "--target=sim:edge-32"],
            "expected TIME down WHAT",
        ),
        (
            &["--event=1s down edge.99", "--target=sim:edge-32"],
            "the numbers of `edge` are",
        ),
        (&["--event=-1s sh true"], "is not a duration"),
    ];
    for (args, expected) in cases {
        for dry in [&[][..], &["--dry-run"]] {
            let all = [&["run", run[1]][..], args, dry].concat();
            let said = Ended::of(bench.plimsoll(all)).refusal();
            assert!(said.contains(expected), "{args:?}: {said}");
        }
    }
    let md = Ended::of(bench.plimsoll(["md", "-I=1", "--event=after load sh true"])).refusal();
    assert!(
        md.contains("no such phase: expected precreate, benchmark, cleanup"),
        "{md}"
    );
    let curve = series::command(&bench, "curve", &["--load=1", "--event=1s cut a"]);
    let curve = Ended::of(curve).refusal();
    assert!(
        curve.contains("'1s cut a' needs a simulated system"),
        "{curve}"
    );
    assert_eq!(lines(&bench), [""; 0]);
    assert_eq!(bench.results().len(), 0);
}

#[test]
fn a_command_that_fails_makes_the_result_invalid() {
    let bench = Bench::on_tmpfs();
    let fails = "--event=300ms sh echo it is broken; echo; exit 7";
    let late = note(&bench, "1h", "late");
    let run = short(&bench, &[&late, fails]).result(3);
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    assert!(has_reason(&run, "event_failed"), "{:?}", run.validity);
    let [failed, late] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    assert_eq!(
        (failed.state, failed.exit_status),
        (EventState::Failed, Some(7))
    );
    assert_eq!(failed.last_line.as_deref(), Some("it is broken"));
    assert_eq!((late.state, late.start_s), (EventState::NotExecuted, None));
    assert_eq!((&late.effect, lines(&bench).len()), (&None, 0));
    for expected in [
        "event `0.3 s sh echo it is broken; echo; exit 7`: its command ended with exit status 7: it is \
         broken",
        "it was not executed: the run was over before",
    ] {
        let has = run.notes.iter().any(|n| n.text.contains(expected));
        assert!(has, "{expected}: {:?}", run.notes);
    }
}

#[test]
fn an_interrupted_run_ends_the_command_of_its_event() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let event = format!("--event=0s sh echo $$ > {}; sleep 1000", noted(&bench));
    let after = note(&bench, "500h", "after");
    let more = ["--time=1h", &event, &after];
    let running = started(bench.command_in_work(&workload, &more), "measuring");
    wait_until("the command runs", || {
        lines(&bench)
            .iter()
            .any(|line| !children_of(line.parse().unwrap()).is_empty())
    });
    let shell: i32 = lines(&bench)[0].parse().unwrap();
    running.interrupt();
    let run = running.end().result(130);
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    let states: Vec<_> = run.events.iter().map(|e| (e.state, e.timed_out)).collect();
    assert_eq!(
        states,
        [(EventState::Failed, true), (EventState::NotExecuted, false)]
    );
    assert!(!Path::new(&format!("/proc/{shell}/cwd")).exists());
    assert_eq!(lines(&bench).len(), 1);
}

#[test]
fn several_ranks_execute_an_event_once() {
    let bench = Bench::on_tmpfs();
    let event = note(&bench, "200ms", "once");
    let run = short(&bench, &["--processes=2", &event])
        .parsed()
        .expect("a run");
    assert_eq!((run.ranks, lines(&bench)), (2, vec!["once".to_owned()]));
    assert_eq!(run.events[0].state, EventState::Executed);
    let effect = effect(&run.events[0]);
    // Both ranks together.
    let (before, all) = (effect.before_ops_per_s.unwrap(), run.summary.ops_per_s);
    assert!(before > 0.6 * all, "{before} of {all}");
    let rows = bench.results()[0].read_intervals().unwrap();
    assert!(rows.iter().any(|r| r.events == run.events[0].action));
}

#[test]
fn phases_of_md_share_one_beginning() {
    let bench = Bench::on_tmpfs();
    let first = note(&bench, "0s", "first");
    let args = ["md", "--processes=2", "-P=200", "-I=100", "-D=2", "-R=1"];
    let mut command = bench.plimsoll(args);
    command.args([&first, "--event=9h sh true"]);
    command.args(["--format=json", "--results=results"]);
    let run = Ended::of(command).parsed().expect("a run");
    assert_eq!(lines(&bench), ["first"]);
    let states: Vec<_> = run.events.iter().map(|e| e.state).collect();
    assert_eq!(states, [EventState::Executed, EventState::NotExecuted]);
    let event = &run.events[0];
    // The clock of the run is older than the first phase.
    let begun = event.start_s.unwrap() - event.lateness_s.unwrap();
    assert!(
        (begun - run.stages[0].window.start_s).abs() < 0.5,
        "{event:?}"
    );
}

#[test]
fn every_point_of_a_curve_has_its_events() {
    let bench = Bench::on_tmpfs();
    let times = ["--time=300ms", "--warmup=100ms", "--interval=100ms"];
    let mut command = series::command_in_work(&bench, "curve", &times, &TO_THE_END);
    let event = note(&bench, "50ms", "$PLIMSOLL_LOAD");
    command.args(["--load=1,2", "--keep", &event]);
    let curve = series::parsed(&Ended::of(command));
    assert_eq!(lines(&bench), ["1", "2"]);
    assert_eq!(curve.events, [event.strip_prefix("--event=").unwrap()]);
    let dir = series::only(&bench);
    for run in series::runs_of(&dir) {
        let events = run.events;
        // In the warm-up, before the window.
        assert_eq!((events.len(), events[0].window), (1, None));
        assert!(events[0].window_s.unwrap() < 0.0, "{events:?}");
        assert_eq!(events[0].effect, None);
    }
}

#[test]
fn events_of_simulated_systems_are_in_the_same_list() {
    let bench = Bench::on_tmpfs();
    let run = bench.run(
        "vda",
        &[
            "--target=sim:edge-32",
            "--load=10",
            "--warmup=2s",
            "--time=8s",
            "--on-error=count",
            "--event=99s up edge.3",
            "--event=5s down edge.3",
        ],
    );
    let run = run.parsed().expect("a run");
    let [down, up] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    assert_eq!((down.action.as_str(), down.at_s), ("down edge.3", 5.0));
    assert_eq!(
        (down.state, down.start_s),
        (EventState::Executed, Some(5.0))
    );
    assert_eq!(
        (down.window_s, down.lateness_s, down.exit_status),
        (Some(3.0), None, None)
    );
    assert!(effect(down).before_ops_per_s.unwrap() > 0.0);
    assert_eq!((up.state, up.start_s), (EventState::NotExecuted, None));
    let rows = bench.results()[0].read_intervals().unwrap();
    let marked = rows.iter().filter(|r| r.events == "down edge.3");
    let starts: Vec<f64> = marked.map(|r| r.start_s).collect();
    assert!(
        !starts.is_empty() && starts.iter().all(|s| *s == 3.0),
        "{starts:?}"
    );
    assert!(rows.iter().all(|r| r.start_s == 3.0 || r.events.is_empty()));
}

/// The report of a run in a format; of pictures, all of them.
fn report(bench: &Bench, dir: &RunDir, format: &str) -> String {
    let out = bench.path("out");
    let mut command = bench.plimsoll(["report", "--format", format, "--output"]);
    command.arg(&out).arg(dir.path());
    Ended::of(command).expect_code(0);
    if out.is_file() {
        let text = std::fs::read_to_string(&out).unwrap();
        std::fs::remove_file(&out).unwrap();
        return text;
    }
    let files = std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().path());
    let over_time = files.filter(|path| path.to_string_lossy().contains("throughput"));
    let texts: Vec<String> = over_time
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    std::fs::remove_dir_all(&out).unwrap();
    texts.concat()
}

#[test]
fn reports_and_charts_show_events() {
    let bench = Bench::on_tmpfs();
    let hostile = "--event=500ms sh : '<b>&|bold</b>'";
    short(&bench, &[hostile, "--event=700ms sh exit 3"]);
    let dir = &bench.results()[0];
    let effects = [
        "before",
        "during",
        "after",
        "longest time without a success",
    ];
    let text = report(&bench, dir, "text")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("event at 500ms: sh : '<b>&|bold</b>'; begun "),
        "{text}"
    );
    assert!(text.contains("ended with exit status 3"), "{text}");
    let markdown = report(&bench, dir, "markdown");
    assert!(
        markdown.contains("- **event at 500ms**: sh : '&lt;b&gt;&amp;\\|bold&lt;/b&gt;'; begun "),
        "{markdown}"
    );
    let html = report(&bench, dir, "html");
    for said in effects {
        assert!(text.contains(said) && markdown.contains(said), "{said}");
        assert!(html.contains(said), "{said}");
    }
    assert!(!html.contains("<b>"), "a foreign text is escaped");
    assert!(html.contains("Vertical lines: events."));
    // The sentence, and the line in each of the charts over time, in two sizes.
    assert!(html.matches("&lt;b&gt;&amp;|bold&lt;/b&gt;").count() > 2);
    let svg = report(&bench, dir, "svg");
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let texts = svg.descendants().filter_map(|node| node.text());
    let texts: Vec<&str> = texts.map(str::trim).collect();
    for said in ["sh : '<b>&|bold</b>'", "sh exit 3"] {
        assert!(texts.contains(&said), "{said}: {texts:?}");
    }
}

#[test]
fn actions_in_results_cannot_reach_the_terminal_or_a_page() {
    let bench = Bench::on_tmpfs();
    short(&bench, &["--event=300ms sh true"]);
    let dir = &bench.results()[0];
    let path = dir.path().join("run.json");
    let mut json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let event = &mut json["events"][0];
    event["action"] = "sh \u{1b}]0;title\u{7}</text><script>\u{202e}".into();
    event["last_line"] = "\u{1b}[8mhidden".into();
    event["exit_status"] = 4.into();
    event["state"] = "failed".into();
    std::fs::write(&path, json.to_string()).unwrap();
    for format in ["text", "markdown", "html", "svg"] {
        let text = report(&bench, dir, format);
        assert!(text.contains("title"), "{format}: {text}");
        let is_foreign = |c| ['\u{1b}', '\u{7}', '\u{202e}'].contains(&c);
        assert!(!text.contains(is_foreign), "{format}");
        assert!(
            !text.contains("</text><script>") || format == "text",
            "{format}"
        );
    }
}

#[test]
fn a_killed_run_does_not_say_that_its_events_were_executed() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let event = note(&bench, "0s", "begun");
    let more = ["--time=1h", "--interval=100ms", &event];
    let running = started(bench.command_in_work(&workload, &more), "event: sh");
    wait_until("the command is run", || lines(&bench) == ["begun"]);
    signal(running.child.id() as i32, Signal::KILL);
    running.end();
    let recover = bench.plimsoll(["report", "--recover", "--format=json", "results"]);
    let run = Ended::of(recover).parsed();
    let run = run.unwrap_or_else(|| bench.results()[0].read().unwrap());
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    assert_eq!(run.events[0].state, EventState::Unknown);
    let unknown = "it is not known whether it was executed";
    assert!(
        run.notes.iter().any(|n| n.text.contains(unknown)),
        "{:?}",
        run.notes
    );
}

#[test]
fn an_outage_of_a_server_is_measured() {
    let bench = Bench::on_tmpfs();
    let served = Served::with(&bench, &[]);
    let (pid, url) = (served.pid(), &served.url);
    let stop = format!("--event=3s sh kill -STOP {pid}");
    let go_on = format!("--event=4500ms sh kill -CONT {pid}");
    let workload = bench.workload(WORKLOAD);
    let more = ["--time=10s", "--interval=500ms"];
    let target = ["--target", url, &stop, &go_on];
    let ended = bench.run(&workload, &[&more[..], &target].concat());
    // Should the run have ended before.
    signal(pid, Signal::CONT);
    let run = ended.parsed().expect("a run");
    let [stopped, resumed] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    for event in [stopped, resumed] {
        assert_eq!(event.state, EventState::Executed, "{event:?}");
    }
    // The server did nothing from the end of one command to the beginning of the other.
    let began = stopped.window_s.unwrap() + stopped.seconds.unwrap();
    let outage = resumed.window_s.unwrap() - began;
    let effect = effect(stopped);
    let middle = began + outage / 2.0;
    // A reply that was sent before may be recorded later, and others come soon after.
    let (gap_start, gap) = (effect.max_gap_start_s, effect.max_gap_s);
    assert!(gap_start < middle, "{middle}: {effect:?}");
    assert!(gap_start + gap >= middle, "{middle}: {effect:?}");
    assert!(gap >= outage / 2.0, "{outage}: {effect:?}");
    let before = effect.before_ops_per_s.unwrap();
    assert!((150.0..250.0).contains(&before), "{effect:?}");
    assert!(
        effect.during_ops_per_s.unwrap() < before / 2.0,
        "{effect:?}"
    );
    // Back in the interval in which it went on, or later.
    let back = effect.recovery_s.expect("the throughput is back");
    assert!(back > outage - 0.5 && back < 7.0, "{outage}: {effect:?}");
    assert!(effect.after_ops_per_s.unwrap() > 0.8 * before, "{effect:?}");
    assert_eq!(effect.errors, 0);
}
