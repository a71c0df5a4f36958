//! Statements that make the controller's script, and what the command line changes of it.

use super::common;

use common::{lower_with, messages, plan};
use plimsoll_plan::{FilesetId, Overrides, Phase, Plan, QuitMode, Snapshots, Until};
use std::time::Duration;

const DEFS: &str = "set $dir=/d\ndefine fileset name=f,path=$dir,entries=5,dirwidth=5\n\
    define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\n";

fn populate(ids: &[u32]) -> Phase {
    Phase::Populate {
        filesets: ids.iter().map(|i| FilesetId(*i)).collect(),
    }
}

fn wait(s: u64) -> Phase {
    Phase::Wait {
        until: Until::Elapsed {
            time: Duration::from_secs(s),
        },
        snapshots: None,
    }
}

fn done(at_most: Option<u64>) -> Phase {
    Phase::Wait {
        until: Until::Done {
            at_most: at_most.map(Duration::from_secs),
        },
        snapshots: None,
    }
}

/// A run: started, measured over this wait, stopped.
fn run(measured: Phase) -> Vec<Phase> {
    vec![
        Phase::Start,
        Phase::OpenWindow,
        measured,
        Phase::CloseWindow,
        Phase::Stop,
    ]
}

fn script(statements: &str) -> Vec<Phase> {
    plan(&format!("{DEFS}{statements}")).script
}

fn with(statements: &str, overrides: Overrides) -> Plan {
    lower_with(&format!("{DEFS}{statements}"), &overrides).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn run_populates_starts_measures_and_stops() {
    let want = [vec![populate(&[0])], run(wait(10))].concat();
    assert_eq!(script("run 10"), want);
}

#[test]
fn run_without_a_time_takes_a_minute_or_goes_on_until_done() {
    assert_eq!(script("run")[1..], run(wait(60)));
    assert_eq!(script("set mode quit alldone\nrun")[1..], run(done(None)));
    assert_eq!(script("set mode quit firstdone\nrun 5")[1..], run(wait(5)));
}

#[test]
fn a_file_without_a_run_is_run() {
    assert_eq!(script("")[1..], run(wait(60)));
    assert_eq!(script("set mode quit firstdone")[1..], run(done(None)));
    assert_eq!(
        script("create filesets\ncreate processes\nquit")[1..].len(),
        6
    );
}

#[test]
fn time_replaces_the_length_of_every_run() {
    let time = || Overrides {
        time: Some(Duration::from_secs(3)),
        ..Overrides::default()
    };
    assert_eq!(with("run 10", time()).script[1..], run(wait(3)));
    assert_eq!(with("", time()).script[1..], run(wait(3)));
    let until_done = with("set mode quit alldone\nrun", time());
    assert_eq!(until_done.script[1..], run(done(Some(3))));
    let twice = with("run 10\nrun 20", time());
    assert_eq!(twice.script[1..], [run(wait(3)), run(wait(3))].concat());
}

#[test]
fn warm_ups_add_up() {
    let overrides = Overrides {
        warmup: Some(Duration::from_secs(5)),
        ..Overrides::default()
    };
    let plan = with("warmup 10\nwarmup 1\nrun 20", overrides.clone());
    assert_eq!(
        plan.script[1..4],
        [Phase::Start, wait(16), Phase::OpenWindow]
    );
    let plain = with("run 20", overrides);
    assert_eq!(
        plain.script[1..4],
        [Phase::Start, wait(5), Phase::OpenWindow]
    );
}

#[test]
fn psrun_prints_meanwhile() {
    for (statement, cleared) in [("psrun 10 60", false), ("psrun -10 60", true)] {
        let want = Phase::Wait {
            until: Until::Elapsed {
                time: Duration::from_secs(60),
            },
            snapshots: Some(Snapshots {
                every: Duration::from_secs(10),
                cleared,
            }),
        };
        assert_eq!(script(statement)[1..], run(want));
    }
    assert!(matches!(
        script("psrun 5")[3],
        Phase::Wait {
            snapshots: Some(_),
            ..
        }
    ));
}

const OLD: &str = "create files\ncreate processes\nsleep 5\nstats clear\nsleep 30\n\
                   stats snap\nstats dump \"out\"\nshutdown processes\nquit\nrun 99\n";

#[test]
fn the_oldest_scripts_measure_from_clear_to_snap() {
    let want = [
        populate(&[0]),
        Phase::Start,
        Phase::OpenWindow,
        wait(5),
        Phase::OpenWindow,
        wait(30),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    assert_eq!(script(OLD), want);
}

#[test]
fn time_and_warm_up_reach_the_oldest_scripts() {
    let overrides = Overrides {
        time: Some(Duration::from_secs(2)),
        warmup: Some(Duration::from_secs(1)),
        ..Overrides::default()
    };
    let script = with(OLD, overrides).script;
    assert_eq!(script[3..6], [wait(6), Phase::OpenWindow, wait(2)]);
}

#[test]
fn what_is_left_running_is_measured_and_stopped() {
    let want = [Phase::OpenWindow, wait(7), Phase::CloseWindow, Phase::Stop];
    assert_eq!(script("create processes\nsleep 7")[2..], want);
    assert_eq!(
        script("create processes\nsleep 7\nshutdown proc")[2..],
        want
    );
    let dumped = script("create processes\nsleep 7\nstatsdump \"x\"\nsleep 1");
    assert_eq!(
        dumped[2..],
        [
            Phase::OpenWindow,
            wait(7),
            Phase::CloseWindow,
            wait(1),
            Phase::Stop
        ]
    );
}

#[test]
fn loops_unroll_the_script() {
    let script = script("foreach $t in 1, 2 {\n  echo \"run $t\"\n  run $t\n}");
    let echo = |t: &str| Phase::Echo { text: t.into() };
    let want = [
        vec![echo("run 1"), populate(&[0])],
        run(wait(1)),
        vec![echo("run 2")],
        run(wait(2)),
    ]
    .concat();
    assert_eq!(script, want);
}

#[test]
fn loops_may_set_variables_that_nothing_else_uses() {
    let text = "foreach $n in 10, 20 {\n  set $x=$n\n  run $x\n}";
    assert_eq!(
        script(text).iter().filter(|p| **p == Phase::Start).count(),
        2
    );
}

#[test]
fn a_second_run_must_not_change_what_runs() {
    let more =
        "run 1\ndefine process name=q { thread name=t { flowop hog name=h,value=1 } }\nrun 1";
    assert_eq!(
        messages(&format!("{DEFS}{more}")),
        ["what the threads do would differ from an earlier run in this workload"]
    );
    assert_eq!(
        messages(&format!("{DEFS}run 1\nset $dir=/e\nrun 1")),
        ["the fileset `f` would differ from an earlier run in this workload"]
    );
    assert_eq!(
        messages(&format!("{DEFS}run 1\neventgen rate=5\nrun 1")),
        ["the event rate would differ from an earlier run in this workload"]
    );
}

#[test]
fn filesets_are_made_once_and_when_asked() {
    let more = "create fileset\ndefine fileset name=g,path=/d,entries=5,dirwidth=5\nrun 1\nrun 2";
    let made: Vec<Phase> = script(more)
        .into_iter()
        .filter(|p| matches!(p, Phase::Populate { .. }))
        .collect();
    assert_eq!(made, [populate(&[0]), populate(&[1])]);
}

#[test]
fn modes_rates_and_accounting() {
    let plan = plan(&format!(
        "{DEFS}set mode quit AllDone\nset mode noUsageStats\neventgen rate=50\nrun 1"
    ));
    assert_eq!(plan.quit, QuitMode::AllDone);
    assert!(!plan.cpu_accounting);
    assert_eq!(plan.event_rate, Some(50.0));
    let overrides = Overrides {
        quit: Some(QuitMode::FirstDone),
        rate: Some(2.5),
        ..Overrides::default()
    };
    let changed = with("set mode quit timeout\neventgen rate=50\nrun 1", overrides);
    assert_eq!(
        (changed.quit, changed.event_rate),
        (QuitMode::FirstDone, Some(2.5))
    );
    assert_eq!(
        with("eventgen rate=0\nrun 1", Overrides::default()).event_rate,
        None
    );
    let lifted = Overrides {
        rate: Some(0.0),
        ..Overrides::default()
    };
    assert_eq!(with("eventgen rate=50\nrun 1", lifted).event_rate, None);
}

#[test]
fn system_needs_leave() {
    let mut overrides = Overrides::default();
    overrides.options.allow_commands = true;
    let plan = with("system \"sync $dir\"\nrun 1", overrides);
    let command = "sync /d".to_string();
    assert_eq!(plan.script[0], Phase::System { command });
    assert_eq!(
        messages(&format!("{DEFS}system \"sync\"\nrun 1")),
        ["the workload runs a shell command"]
    );
}

#[test]
fn echo_and_log_print_and_usage_does_not() {
    let script = script("echo \"on $(hostname)\"\nlog \"at $(date)\"\nusage \"x\"\nrun 1");
    let texts: Vec<&str> = script
        .iter()
        .filter_map(|p| match p {
            Phase::Echo { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, ["on client1", "at 2026-01-02"]);
}

#[test]
fn what_means_nothing_any_more_is_noted_once_with_its_place() {
    let statements = "debug 5\nversion\nvars\nlist fileset\nlist flowop\nenable lathist\n\
        enable multi master=a,client=b\ndomultisync value=1\nstats directory /x\nstats command \"y\"\n\
        debug 6\nrun 1\nstats clear\nlog \"${stats.iops}\"";
    let plan = plan(&format!("{DEFS}{statements}"));
    let notes: Vec<String> = plan
        .notes
        .iter()
        .map(|n| format!("{} {}", n.location.as_ref().unwrap().line, n.text))
        .collect();
    let begins = |n: usize, with: &str| {
        assert!(notes[n].starts_with(with), "{}: {}", n, notes[n]);
    };
    begins(0, "4 `debug` has no effect here");
    begins(1, "5 `version` has no effect here");
    begins(2, "6 `vars` has no effect here");
    begins(3, "7 `list fileset` has no effect here");
    begins(4, "8 `list flowop` has no effect here");
    begins(5, "9 `enable lathist` has no effect here");
    begins(6, "10 `enable multi` has no effect here");
    begins(7, "11 `domultisync` has no effect here");
    begins(8, "12 `stats directory` has no effect here");
    begins(9, "13 `stats command` has no effect here");
    begins(10, "16 `stats clear` has nothing to clear");
    begins(11, "17 `${stats.iops}` is not known");
    assert_eq!(notes.len(), 12);
}

#[test]
fn load_brings_in_a_workload_and_set_changes_it() {
    let plan = plan("load copyfiles\nset $nfiles=7\nset $dir=/mnt\nrun 5\n");
    assert_eq!(plan.filesets[0].entries, 7);
    assert_eq!(plan.work_dir.dir.to_str(), Some("/mnt"));
    assert_eq!(plan.quit, QuitMode::FirstDone);
    let place = plan.operations[0].location.as_ref().unwrap();
    assert_eq!(place.file, "copyfiles");
    assert!(
        plan.parameters
            .iter()
            .any(|p| p.name == "nfiles" && p.value == "7")
    );
}

#[test]
fn nothing_to_run_is_an_error() {
    assert_eq!(
        messages("define fileset name=f,path=/d,entries=5,dirwidth=5\ncreate files\n"),
        ["no process is defined: there is nothing to run"]
    );
    assert_eq!(
        messages(""),
        ["no process is defined: there is nothing to run"]
    );
}

/// The notes of a workload: line and text.
fn notes(statements: &str) -> Vec<String> {
    let plan = plan(&format!("{DEFS}{statements}"));
    let shown = plan.notes.iter().map(|n| {
        let place = n.location.as_ref().unwrap();
        format!("{} {}", place.line - 3, n.text)
    });
    shown.collect()
}

#[test]
fn statements_that_find_nothing_to_do_are_noted() {
    for (statements, want) in [
        (
            "create processes\ncreate processes\nsleep 1",
            "2 the processes run already; they are started once",
        ),
        (
            "shutdown processes\nrun 1",
            "1 `shutdown` has nothing to stop: no thread runs",
        ),
        (
            "stats snap\nrun 1",
            "1 `stats snap` has nothing to show: nothing was measured yet",
        ),
        (
            "statsdump \"x\"\nrun 1",
            "1 `statsdump` has nothing to show: nothing was measured yet",
        ),
        (
            "stats clear\nrun 1",
            "1 `stats clear` has nothing to clear: no thread runs yet",
        ),
        (
            "stats command x\nrun 1",
            "1 `stats command` has no effect here: results go to the results directory",
        ),
        (
            "echo \"${stats.iops}\"\nrun 1",
            "1 `${stats.iops}` is not known before the run; the text keeps it as written",
        ),
    ] {
        assert_eq!(notes(statements), [want], "{statements}");
    }
    assert_eq!(
        script("create processes\ncreate processes\nsleep 1"),
        script("create processes\nsleep 1")
    );
    assert_eq!(
        script("echo \"${stats.x}!\"")[0],
        Phase::Echo {
            text: "${stats.x}!".into()
        }
    );
    // Results that were shown already may be shown again.
    assert_eq!(notes("run 1\nstats snap\nstats snap"), [""; 0]);
}

/// `run 0` continues until the work or the user ends the run, as in Filebench.
#[test]
fn a_time_of_zero_is_the_end_of_the_work() {
    assert_eq!(script("run 0")[1..], run(done(None)));
    assert_eq!(script("set $t=0\nrun $t")[1..], run(done(None)));
    let psrun = &script("psrun -1 0")[3];
    assert!(matches!(psrun, Phase::Wait { until, .. } if *until == Until::Done { at_most: None }));
    let window = [
        Phase::OpenWindow,
        done(None),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    assert_eq!(
        script("create processes\nsleep 0\nstats snap\nshutdown processes")[2..],
        window
    );
    // Without a running thread there is no end to wait for.
    assert_eq!(script("sleep 0\nrun 1")[1..], run(wait(1)));
    assert_eq!(
        notes("sleep 0\nrun 1"),
        ["1 `sleep 0` has nothing to wait for: no thread runs yet"]
    );
    let overrides = Overrides {
        time: Some(Duration::from_secs(9)),
        ..Overrides::default()
    };
    assert_eq!(with("run 0", overrides).script[3], done(Some(9)));
}

#[test]
fn a_window_in_which_no_time_passes_is_dropped() {
    let begin = [Phase::Start, Phase::OpenWindow];
    let all = "create processes\nsleep 2\nstats snap\nstats clear\necho x\nstats snap\nshutdown processes";
    let kept = [wait(2), Phase::CloseWindow];
    let echo = Phase::Echo { text: "x".into() };
    assert_eq!(
        script(all)[1..],
        [&begin[..], &kept, &[echo, Phase::Stop]].concat()
    );
    assert_eq!(
        notes(all),
        ["6 `stats snap` has nothing to show: no time has passed since measuring began"]
    );
    for none in [
        "create processes\nsleep 2\nstats clear\nshutdown processes",
        "create processes\nsleep 2\nstats clear",
    ] {
        assert_eq!(script(none)[1..], [Phase::Start, wait(2), Phase::Stop]);
        let said = notes(none);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].ends_with("no time has passed since measuring began"));
    }
    // A command takes time.
    let command = "create processes\nsystem \"sleep 1\"\nstats snap\nshutdown processes";
    let mut overrides = Overrides::default();
    overrides.options.allow_commands = true;
    assert!(
        with(command, overrides)
            .script
            .contains(&Phase::CloseWindow)
    );
}

#[test]
fn a_run_after_a_shutdown_starts_and_one_before_it_measures_what_runs() {
    let again = script("create processes\nsleep 2\nshutdown processes\nrun 3");
    let first = [
        Phase::Start,
        Phase::OpenWindow,
        wait(2),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    assert_eq!(again[1..], [first.to_vec(), run(wait(3))].concat());
    let within = script("create processes\nrun 3");
    assert_eq!(
        within[1..],
        [
            Phase::Start,
            Phase::OpenWindow,
            Phase::OpenWindow,
            wait(3),
            Phase::CloseWindow,
            Phase::Stop
        ]
    );
}

#[test]
fn filesets_defined_while_processes_run_are_made_by_the_run() {
    let more = "create processes\ndefine fileset name=g,path=/d,entries=5,dirwidth=5\nrun 3";
    let made: Vec<Phase> = script(more)
        .into_iter()
        .filter(|p| matches!(p, Phase::Populate { .. }))
        .collect();
    assert_eq!(made, [populate(&[0]), populate(&[1])]);
}

#[test]
fn a_started_workload_without_a_wait_is_run() {
    let started = script("create processes");
    assert_eq!(
        started[1..],
        [
            Phase::Start,
            Phase::OpenWindow,
            Phase::OpenWindow,
            wait(60),
            Phase::CloseWindow,
            Phase::Stop
        ]
    );
    // A wait before the start is not one of what was started.
    let slept = script("sleep 4\ncreate processes");
    assert_eq!((&slept[0], slept.last()), (&wait(4), Some(&Phase::Stop)));
    assert_eq!(slept[slept.len() - 3], wait(60));
}

#[test]
fn later_runs_may_differ_in_nothing_that_the_plan_has_once() {
    assert_eq!(
        messages(&format!("{DEFS}run 1\nset mode quit alldone\nrun 1")),
        ["the quit mode would differ from an earlier run in this workload"]
    );
    let same = "eventgen rate=5\nset mode quit timeout\nrun 1\neventgen rate=5\nset mode quit timeout\nrun 1";
    assert_eq!(script(same)[1..], [run(wait(1)), run(wait(1))].concat());
    let random = "set $r=randvar(type=uniform,mean=$m)\n\
        define process name=p { thread name=t { flowop testrandvar name=s,value=$r } }\n";
    let text = format!("set $m=3\n{random}run 1\nset $m=3\nrun 1");
    assert_eq!(plan(&text).variables.len(), 1);
    assert_eq!(
        messages(&text.replace("\nset $m=3\nrun", "\nset $m=4\nrun")),
        ["the random variable `$r` would differ from an earlier run in this workload"]
    );
}

#[test]
fn nothing_after_quit_is_executed() {
    for quit in ["quit", "abort"] {
        let ended = format!("run 1\n{quit}\necho \"x\"\nrun 2");
        assert_eq!(script(&ended)[1..], run(wait(1)));
        let in_loop = format!("foreach $t in 1, 2 {{\n run $t\n {quit}\n}}\nrun 7");
        assert_eq!(script(&in_loop)[1..], run(wait(1)));
    }
}

#[test]
fn the_plan_has_its_text_and_what_the_command_line_sets() {
    let text = format!("# A title\n{DEFS}run 1");
    let mut overrides = Overrides {
        seed: Some(7),
        ..Overrides::default()
    };
    overrides.options.allow_commands = true;
    let plan = lower_with(&text, &overrides).unwrap();
    assert_eq!(
        (plan.title.as_str(), plan.name.as_str()),
        ("A title", "test")
    );
    assert_eq!(
        (plan.source.kind, plan.source.name.as_str()),
        (plimsoll_plan::SourceKind::File, "test.f")
    );
    assert_eq!(plan.source.text, text);
    assert_eq!((plan.seed, plan.options), (7, overrides.options));
    let usual = common::plan(&text);
    assert_eq!((usual.seed, usual.cpu_accounting), (1, true));
    let place = |l: &Option<plimsoll_plan::SourcePosition>| {
        let l = l.as_ref().unwrap();
        (l.file.clone(), l.line, l.column)
    };
    assert_eq!(place(&plan.filesets[0].location), ("test.f".into(), 3, 1));
    assert_eq!(
        place(&plan.operations[0].location),
        ("test.f".into(), 4, 48)
    );
    assert_eq!(place(&plan.groups[0].location), ("test.f".into(), 4, 25));
}

#[test]
fn time_and_warm_up_reach_every_window() {
    let both = || Overrides {
        time: Some(Duration::from_secs(3)),
        warmup: Some(Duration::from_secs(2)),
        ..Overrides::default()
    };
    let window = |warm: u64| {
        vec![
            Phase::Start,
            wait(warm),
            Phase::OpenWindow,
            wait(3),
            Phase::CloseWindow,
            Phase::Stop,
        ]
    };
    let twice = with("warmup 4\nrun 10\nrun 20", both());
    assert_eq!(twice.script[1..], [window(6), window(2)].concat());
    // A window of several waits keeps one.
    let several = with(
        "create processes\nstats clear\nsleep 5\necho \"x\"\nsleep 6\nstats snap",
        both(),
    );
    let echo = Phase::Echo { text: "x".into() };
    assert_eq!(
        several.script[2..],
        [
            Phase::OpenWindow,
            wait(2),
            Phase::OpenWindow,
            wait(3),
            echo,
            Phase::CloseWindow,
            Phase::Stop
        ]
    );
    let none = Overrides {
        warmup: Some(Duration::ZERO),
        ..Overrides::default()
    };
    assert_eq!(with("run 5", none).script, script("run 5"));
    // A wait that prints is not a warm-up.
    let printed = with("psrun 5 20\nrun 6", both()).script;
    assert_eq!(printed.iter().filter(|p| **p == wait(2)).count(), 2);
}

#[test]
fn a_run_that_failed_is_not_compared_with_later_ones() {
    let text = "set $n=none\ndefine process { thread instances=$n { flowop hog value=1 } }\n\
                run 1\nset $n=5\nrun 1";
    assert_eq!(
        messages(text),
        ["`instances` takes a whole number; `$n` is the text `none`"]
    );
}
