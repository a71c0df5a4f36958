//! `--event` at a time of the run: commands, their effect on the throughput, and their places in every report.

use crate::common::served::Served;
use crate::common::{Bench, Ended, signal, started, wait_until};
use plimsoll_results::{EventFigures, EventState, Run, RunDir, RunEvent, Verdict};
use rustix::process::Signal;

/// Workload with two workers that stat ten files, together 200 times per second.
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

/// Makes a run of one second on [`WORKLOAD`], with intervals of 100 ms.
fn short(bench: &Bench, more: &[&str]) -> Ended {
    let workload = bench.workload(WORKLOAD);
    let short = ["--time=1s", "--interval=100ms"];
    bench.run_in_work(&workload, &[&short[..], more].concat())
}

/// Value of `--event` whose command appends `line` to a file of the bench at the time `at`.
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

/// Whether a run's reasons include the given code; a busy test machine may add other reasons.
fn has_reason(run: &Run, code: &str) -> bool {
    run.validity.reasons.iter().any(|r| r.code == code)
}

#[test]
fn several_ranks_execute_a_command_once_at_its_time() {
    let bench = Bench::on_tmpfs();
    let event = note(&bench, "350ms", "$PLIMSOLL_WHEN");
    let run = short(&bench, &["--processes=2", &event])
        .parsed()
        .expect("a run");
    assert_eq!((run.ranks, lines(&bench)), (2, vec!["event".to_owned()]));
    let [event] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    assert_eq!((event.at_s, event.state), (0.35, EventState::Executed));
    assert_eq!(
        event.action,
        format!("sh echo $PLIMSOLL_WHEN >> {}", noted(&bench))
    );
    assert_eq!(
        (event.end.exit_status, event.end.signal, event.end.timed_out),
        (Some(0), None, false)
    );
    // Without a warm-up, the measured window opens when the run begins, so that the event's two times agree.
    let (late, place) = (event.lateness_s.unwrap(), event.window_s.unwrap());
    assert!(
        late >= 0.0 && (place - 0.35 - late).abs() < 1e-6,
        "{event:?}"
    );
    assert!((event.start_s.unwrap() - run.window_start_s - place).abs() < 1e-6);
    assert_eq!(event.window, Some(1));
    assert_eq!(effect(event).recovery_resolution_s, 0.1);
    // The effect of an event counts the operations of both ranks: one rank's operations would be half of the
    // throughput.
    let (before, all) = (
        effect(event).before_ops_per_s.unwrap(),
        run.summary.ops_per_s,
    );
    assert!(before > 0.6 * all, "{before} of {all}");
    assert!(!has_reason(&run, "event_failed"));
    // In `intervals.csv`, the rows of the interval in which the event began name the event's action, and no other rows
    // do.
    let dir = &bench.results()[0];
    assert_eq!(dir.read().unwrap(), run);
    let rows = dir.read_intervals().unwrap();
    for row in &rows {
        let began = row.start_s <= place && place < row.start_s + row.length_s;
        let told = if began { event.action.as_str() } else { "" };
        assert_eq!(row.events, told, "{row:?}");
    }
    assert!(rows.iter().any(|row| !row.events.is_empty()));
    let log = std::fs::read_to_string(dir.path().join("commands.log")).unwrap();
    let begin = format!("== event: {}", &event.action[3..]);
    assert!(log.contains(&begin), "{log}");
    assert_eq!(bench.left_but(&["w.f", "results", "noted"]), [""; 0]);
}

#[test]
fn what_cannot_happen_is_refused() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(WORKLOAD);
    let on_system = "--target=sim:edge-32";
    for (args, expected) in [
        (
            &["--event=before cleanup sh true"][..],
            "the run has no such phase: expected populate, load",
        ),
        (&["--event=soon sh true"], "`soon` is not a duration"),
        (
            &["--event=1s kill server.2"],
            "'1s kill server.2' needs a simulated system (sim:SYSTEM): the target is posix",
        ),
        (
            &[
                "--event=1s sh true",
                "--target=null:?latency=1ms&clock=virtual",
            ],
            "happens in real time, and the time of the target null:?latency=1ms&clock=virtual is virtual",
        ),
        (
            &["--event=1s sh true", on_system],
            "in which no command can run: expected TIME down WHAT",
        ),
        (
            &["--event=1s down edge.99", on_system],
            "the numbers of `edge` are",
        ),
    ] {
        for dry in [&[][..], &["--dry-run"]] {
            let all = [&["run", &workload], args, dry].concat();
            let said = Ended::of(bench.plimsoll(all)).refusal();
            assert!(said.contains(expected), "{args:?}: {said}");
        }
    }
    let md = Ended::of(bench.plimsoll(["md", "-I=1", "--event=after load sh true"])).refusal();
    assert!(
        md.contains("no such phase: expected precreate, benchmark, cleanup"),
        "{md}"
    );
    assert_eq!(bench.left_but(&["w.f"]), [""; 0]);
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
    // Times of events count from the run's beginning, before its first phase.
    let begun = event.start_s.unwrap() - event.lateness_s.unwrap();
    assert!(
        (begun - run.stages[0].window.start_s).abs() < 0.5,
        "{event:?}"
    );
}

#[test]
fn events_of_simulated_systems_are_in_the_same_list() {
    let bench = Bench::on_tmpfs();
    let args = [
        "--target=sim:edge-32",
        "--load=10",
        "--warmup=2s",
        "--time=8s",
        "--on-error=count",
        "--event=99s up edge.3",
        "--event=5s down edge.3",
    ];
    let run = bench.run("vda", &args).parsed().expect("a run");
    let [down, up] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    assert_eq!(
        (&*down.action, down.state, down.start_s, down.window_s),
        ("down edge.3", EventState::Executed, Some(5.0), Some(3.0))
    );
    assert!(effect(down).before_ops_per_s.unwrap() > 0.0);
    assert_eq!((up.state, up.start_s), (EventState::NotExecuted, None));
    let rows = bench.results()[0].read_intervals().unwrap();
    assert!(rows.iter().any(|row| row.start_s == 3.0));
    for row in &rows {
        let expected = if row.start_s == 3.0 {
            "down edge.3"
        } else {
            ""
        };
        assert_eq!(row.events, expected, "{row:?}");
    }
}

/// Text of the report on a run in `format`; for `svg`, the pictures of the throughput.
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
fn a_command_that_fails_makes_the_result_invalid_and_is_in_reports_and_charts() {
    let bench = Bench::on_tmpfs();
    let hostile = "--event=300ms sh : '<b>&|bold</b>'";
    let fails = "--event=500ms sh echo broken; exit 7";
    let late = note(&bench, "1h", "late");
    let run = short(&bench, &[&late, hostile, fails]).result(3);
    assert!(has_reason(&run, "event_failed"), "{:?}", run.validity);
    let [_, failed, late] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    assert_eq!(
        (failed.state, failed.end.exit_status),
        (EventState::Failed, Some(7))
    );
    assert_eq!(failed.last_line.as_deref(), Some("broken"));
    assert_eq!((late.state, late.start_s), (EventState::NotExecuted, None));
    assert_eq!((&late.effect, lines(&bench).len()), (&None, 0));
    for expected in [
        "its command ended with exit status 7: broken",
        "it was not executed: the run was over before",
    ] {
        let has = run.notes.iter().any(|n| n.text.contains(expected));
        assert!(has, "{expected}: {:?}", run.notes);
    }
    let dir = &bench.results()[0];
    let text = report(&bench, dir, "text");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let markdown = report(&bench, dir, "markdown");
    let html = report(&bench, dir, "html");
    let escaped = "&lt;b&gt;&amp;|bold&lt;/b&gt;";
    let in_markdown = escaped.replace('|', "\\|");
    for (report, said) in [
        (&text, "event at 300ms: sh : '<b>&|bold</b>'; begun "),
        (&text, "ended with exit status 7"),
        (
            &markdown,
            &*format!("- **event at 300ms**: sh : '{in_markdown}'; begun "),
        ),
        (&html, "Vertical lines: events."),
    ] {
        assert!(report.contains(said), "{said}: {report}");
    }
    for said in [
        "before",
        "during",
        "after",
        "longest time without a success",
    ] {
        let has = [&text, &markdown, &html].map(|report| report.contains(said));
        assert_eq!(has, [true; 3], "{said}");
    }
    assert!(!html.contains("<b>"), "the page escapes the action");
    // The HTML page has the event in a sentence, and as a line in each chart over time, which the page contains in two
    // sizes.
    assert!(html.matches(escaped).count() > 2);
    let svg = report(&bench, dir, "svg");
    let svg = roxmltree::Document::parse(&svg).unwrap();
    let texts = svg.descendants().filter_map(|node| node.text());
    let texts: Vec<&str> = texts.map(str::trim).collect();
    for event in [hostile, fails] {
        let (_, action) = event.split_once("ms ").unwrap();
        assert!(texts.contains(&action), "{action}: {texts:?}");
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
    // The run may have ended before its second event continues the stopped server.
    signal(pid, Signal::CONT);
    let run = ended.parsed().expect("a run");
    let [stopped, resumed] = &run.events[..] else {
        panic!("{:?}", run.events)
    };
    for event in [stopped, resumed] {
        assert_eq!(event.state, EventState::Executed, "{event:?}");
    }
    // The server was stopped from the end of the command `kill -STOP` to the beginning of `kill -CONT`.
    let began = stopped.window_s.unwrap() + stopped.seconds.unwrap();
    let outage = resumed.window_s.unwrap() - began;
    let effect = effect(stopped);
    let middle = began + outage / 2.0;
    // The maximum gap contains the middle of the outage, but may begin with a late reply to a call from before the
    // outage, and ends with the first reply after the outage.
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
    // The recovery time is at least the outage without the interval in which the server continues.
    let back = effect.recovery_s.expect("the throughput is back");
    assert!(back > outage - 0.5 && back < 7.0, "{outage}: {effect:?}");
    assert!(effect.after_ops_per_s.unwrap() > 0.8 * before, "{effect:?}");
    assert_eq!(effect.errors, 0);
}
