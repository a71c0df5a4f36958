//! `--event` in profiles.

use crate::common::series::{cut, edit, only_in, resume, runs_of};
use crate::common::{Bench, Ended};
use plimsoll_results::{EventState, SeriesDir, SeriesState};

const PROFILE: &str = "DEFAULTS {
  runtime = 0.4;
  nfiles = 12;
}
CONFIG some {
  personality = mine;
  nthreads = 1, 2;
}
";

const MINE: &str = "set $dir=/tmp
set $nfiles=3
set $nthreads=1
define fileset name=s,path=$dir,entries=$nfiles,size=4k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=$nthreads {
  flowop statfile name=stat1,filesetname=s
} }
";

fn bench() -> Bench {
    let bench = Bench::on_tmpfs();
    std::fs::write(bench.path("two.prof"), PROFILE).unwrap();
    std::fs::write(bench.path("mine.f"), MINE).unwrap();
    bench
}

fn call(bench: &Bench, args: &[&str]) -> Ended {
    let all = [&["profile", "two.prof", "--results=stats"], args].concat();
    Ended::of(bench.plimsoll(all))
}

/// The only profile that was run.
fn only(bench: &Bench) -> SeriesDir {
    only_in(&bench.path("stats"))
}

#[test]
fn every_run_of_a_profile_has_its_events_and_a_resumed_one_too() {
    let bench = bench();
    let noted = bench.path("noted");
    let event = format!(
        "100ms sh echo $PLIMSOLL_CONFIGURATION >> {}",
        noted.display()
    );
    let more = ["--dir=files", "--repeat=2", "--interval=50ms"];
    let ended = call(&bench, &[&more[..], &["--event", &event]].concat());
    // On a busy machine a run may be invalid for other reasons.
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let lines = || {
        let text = std::fs::read_to_string(&noted).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, two) = ("some,nthreads=1 on local", "some,nthreads=2 on local");
    assert_eq!(lines(), [one, one, two, two]);
    let dir = only(&bench);
    let results = dir.read().unwrap();
    assert_eq!(results.events, [event.as_str()]);
    let all = runs_of(&dir);
    assert_eq!(all.len(), 4);
    for run in &all {
        let [executed] = &run.events[..] else {
            panic!("{:?}", run.events)
        };
        assert_eq!(executed.state, EventState::Executed);
        assert_eq!((executed.at_s, executed.window), (0.1, Some(1)));
        assert!(executed.effect.is_some());
    }
    // The runs of the last configuration are missing.
    cut(&dir, 2);
    // Whoever made the results wrote the command.
    let refused = resume(&bench, &dir, &[]).refusal();
    let shown = refused.contains("contain commands") && refused.contains("--allow-commands");
    assert!(shown, "{refused}");
    assert_eq!(lines(), [one, one, two, two]);
    let resumed = resume(&bench, &dir, &["--allow-commands"]);
    assert!(matches!(resumed.code, Some(0 | 3)), "{}", resumed.stderr);
    assert_eq!(lines(), [one, one, two, two, two, two]);
    let resumed = dir.read().unwrap();
    let end = (resumed.state, resumed.runs.len());
    assert_eq!(end, (SeriesState::Complete, 4));
    // An event that was edited into the file is checked like one of the command line.
    cut(&dir, 2);
    edit(&dir, |series| series.events = vec!["1s kill server".into()]);
    let refused = resume(&bench, &dir, &[]).refusal();
    let expected = "needs a simulated system (sim:SYSTEM)";
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn events_that_do_not_apply_are_refused_before_the_first_run() {
    let bench = bench();
    for row in [
        "1s kill server => needs a simulated system",
        "1s sh true | --target=sim:edge-32 => no command can run",
        "1s down edge.99 | --target=sim:edge-32 => numbers of `edge` are",
        "1s down edge.1 | --filesystem=a=sim:edge-32 | --filesystem=b=null => needs a simulated system",
    ] {
        let (given, expected) = row.split_once(" => ").unwrap();
        let event = format!("--event={given}");
        let args: Vec<&str> = event.split(" | ").collect();
        let said = call(&bench, &args).refusal();
        assert!(said.contains(expected), "{row}: {said}");
        let listed = call(&bench, &[&args[..], &["--dry-run"]].concat()).expect_code(2);
        assert!(listed.stderr.contains(expected), "{row}: {}", listed.stderr);
    }
    assert!(!bench.path("stats").exists());
}

#[test]
fn a_dry_run_lists_the_events() {
    let bench = bench();
    let events = ["--event=300ms sh true", "--event=100ms sh false"];
    let dry = ["--dry-run", "--dir=files"];
    let listed = call(&bench, &[&dry[..], &events].concat()).expect_code(0);
    for event in ["300ms sh true", "100ms sh false"] {
        let line = format!("  event in each run: {event}\n");
        assert!(listed.stdout.contains(&line), "{}", listed.stdout);
    }
    assert!(!bench.path("stats").exists() && !bench.path("files").exists());
}
