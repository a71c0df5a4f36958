//! Statements that become phases of the script, and changes of the script by the command line.

use super::common;

use crate::tables::{each_row, halves};
use common::{lower_with, messages, plan};
use plimsoll_plan::{Overrides, Phase, Plan, QuitMode, SteadyRule, Until, Warmup};
use std::time::Duration;

const DEFS: &str = "set $dir=/d\ndefine fileset name=f,path=$dir,entries=5,dirwidth=5\n\
    define process name=p { thread name=t { flowop statfile name=s,filesetname=f } }\n";

/// A short text for a phase of the script; times are in seconds.
fn words(phase: &Phase) -> String {
    match phase {
        Phase::Populate { filesets } => {
            let numbers: Vec<String> = filesets.iter().map(|f| f.0.to_string()).collect();
            format!("populate {}", numbers.join(" and "))
        }
        Phase::Start => "start".into(),
        Phase::OpenWindow => "open".into(),
        Phase::CloseWindow => "close".into(),
        Phase::Stop => "stop".into(),
        Phase::Echo { text } => format!("echo {text}"),
        Phase::System { command } => format!("system {command}"),
        Phase::Wait { until, snapshots } => {
            let until = match until {
                Until::Elapsed { time } => format!("wait {}", time.as_secs_f64()),
                Until::Steady { rule, at_most } => {
                    format!("steady by {rule} within {}", at_most.as_secs_f64())
                }
                Until::Precise { percent, at_most } => {
                    format!("within {percent} % or {}", at_most.as_secs_f64())
                }
                Until::Done { at_most: None } => "done".into(),
                Until::Done { at_most: Some(t) } => format!("done within {}", t.as_secs_f64()),
            };
            match snapshots {
                Some(s) if s.cleared => format!("{until}, period every {}", s.every.as_secs_f64()),
                Some(s) => format!("{until}, all every {}", s.every.as_secs_f64()),
                None => until,
            }
        }
        Phase::StartStage { .. } => panic!("a stage of a pattern"),
    }
}

/// The phases of the script of a workload with the given statements, separated by `; `.
fn script(statements: &str, overrides: &Overrides) -> String {
    let plan = with(statements, overrides);
    let phases: Vec<String> = plan.script.iter().map(words).collect();
    phases.join("; ")
}

fn with(statements: &str, overrides: &Overrides) -> Plan {
    lower_with(&format!("{DEFS}{statements}"), overrides).unwrap_or_else(|e| panic!("{e}"))
}

/// Statements of a workload for the first releases of Filebench, which had no `run`; the `run` after `quit` has no
/// effect.
const OLD: &str = "create files\ncreate processes\nsleep 5\nstats clear\nsleep 30\n\
                   stats snap\nstats dump \"out\"\nshutdown processes\nquit\nrun 99\n";

#[test]
fn statements_become_phases() {
    each_row(
        r#"
        run 1 => populate 0; start; open; wait 1; close; stop
        run => populate 0; start; open; wait 60; close; stop
        set mode quit alldone\nrun => populate 0; start; open; done; close; stop
        set mode quit firstdone\nrun 5 => populate 0; start; open; wait 5; close; stop
        // A workload without a run is run, also if its processes are started and nothing waits.
        vars => populate 0; start; open; wait 60; close; stop
        set mode quit firstdone => populate 0; start; open; done; close; stop
        create processes => populate 0; start; open; open; wait 60; close; stop
        create filesets\ncreate processes\nquit
            => populate 0; start; open; open; wait 60; close; stop
        sleep 4\ncreate processes
            => wait 4; populate 0; start; open; open; wait 60; close; stop
        psrun 10 60 => populate 0; start; open; wait 60, all every 10; close; stop
        psrun -10 60 => populate 0; start; open; wait 60, period every 10; close; stop
        psrun 5 => populate 0; start; open; wait 60, all every 5; close; stop
        // `run 0` continues until the work or the user ends the run, as in Filebench.
        run 0 => populate 0; start; open; done; close; stop
        set $t=0\nrun $t => populate 0; start; open; done; close; stop
        psrun -1 0 => populate 0; start; open; done, period every 1; close; stop
        create processes\nsleep 0\nstats snap\nshutdown processes
            => populate 0; start; open; done; close; stop
        // Without a running thread there is no end to wait for.
        sleep 0\nrun 1 => populate 0; start; open; wait 1; close; stop
        // Processes that are left running are measured and stopped.
        create processes\nsleep 1 => populate 0; start; open; wait 1; close; stop
        create processes\ncreate processes\nsleep 1
            => populate 0; start; open; wait 1; close; stop
        create processes\nsleep 1\nshutdown proc => populate 0; start; open; wait 1; close; stop
        create processes\nsleep 7\nstatsdump "x"\nsleep 1
            => populate 0; start; open; wait 7; close; wait 1; stop
        create processes\nsleep 2\nshutdown processes\nrun 3
            => populate 0; start; open; wait 2; close; stop; start; open; wait 3; close; stop
        create processes\nrun 3 => populate 0; start; open; open; wait 3; close; stop
        // A window in which no time passes is dropped.
        create processes\nsleep 2\nstats snap\nstats clear\necho x\nstats snap\nshutdown proc
            => populate 0; start; open; wait 2; close; echo x; stop
        create processes\nsleep 2\nstats clear\nshutdown processes
            => populate 0; start; wait 2; stop
        create processes\nsleep 2\nstats clear => populate 0; start; wait 2; stop
        // Loops are unrolled, and set variables.
        foreach $t in 1, 2 {\n  set $x=$t\n  run $x\n}
            => populate 0; start; open; wait 1; close; stop; start; open; wait 2; close; stop
        // Nothing after `quit` is executed.
        run 1\nquit\necho "x"\nrun 2 => populate 0; start; open; wait 1; close; stop
        run 1\nabort\necho "x"\nrun 2 => populate 0; start; open; wait 1; close; stop
        foreach $t in 1, 2 {\n run $t\n quit\n}\nrun 7
            => populate 0; start; open; wait 1; close; stop
        // Filesets are made once, when they are asked for or by the run.
        create fileset\ndefine fileset name=g,path=/d,entries=5,dirwidth=5\nrun 1\nrun 2
            => populate 0; populate 1; start; open; wait 1; close; stop; start; open; wait 2; close; stop
        create processes\ndefine fileset name=g,path=/d,entries=5,dirwidth=5\nrun 3
            => populate 0; start; open; populate 1; open; wait 3; close; stop
        // Later runs may repeat what the Plan has once.
        eventgen rate=5\nrun 1\neventgen rate=5\nset mode quit timeout\nrun 1
            => populate 0; start; open; wait 1; close; stop; start; open; wait 1; close; stop
        echo "on $(hostname)"\nlog "at $(date)"\nusage "x"\necho "${stats.x}!"\nrun 1
            => echo on client1; echo at 2026-01-02; echo ${stats.x}!; populate 0; start; open; wait 1; close; stop
        "#,
        |statements, expected| {
            let found = script(statements, &Overrides::default());
            assert_eq!(found, expected, "{statements}");
        },
    );
    // The script of a workload for the first releases of Filebench measures from `stats clear` to `stats snap`.
    let old = script(OLD, &Overrides::default());
    let expected = "populate 0; start; open; wait 5; open; wait 30; close; stop";
    assert_eq!(old, expected);
}

#[test]
fn time_and_warm_up_of_the_command_line_reach_every_window() {
    let expect = |statements: &str, time: Option<u64>, warmup: Option<u64>, expected: &str| {
        let overrides = Overrides {
            time: time.map(Duration::from_secs),
            warmup: warmup.map(|s| Warmup::Fixed(Duration::from_secs(s))),
            ..Overrides::default()
        };
        let expected = format!("populate 0; {expected}");
        assert_eq!(script(statements, &overrides), expected, "{statements}");
    };
    each_row(
        r#"
        3 - | run 10 => start; open; wait 3; close; stop
        3 - | vars => start; open; wait 3; close; stop
        3 - | set mode quit alldone\nrun => start; open; done within 3; close; stop
        9 - | run 0 => start; open; done within 9; close; stop
        - 5 | warmup 10\nwarmup 1\nrun 20 => start; wait 16; open; wait 20; close; stop
        - 5 | run 20 => start; wait 5; open; wait 20; close; stop
        - 0 | run 5 => start; open; wait 5; close; stop
        3 2 | warmup 4\nrun 10\nrun 20
            => start; wait 6; open; wait 3; close; stop; start; wait 2; open; wait 3; close; stop
        // A window of several waits keeps one.
        3 2 | create processes\nstats clear\nsleep 5\necho "x"\nsleep 6\nstats snap
            => start; open; wait 2; open; wait 3; echo x; close; stop
        // A wait that prints is not a warm-up.
        3 2 | psrun 5 20
            => start; wait 2; open; wait 3, all every 5; close; stop
        "#,
        |row, expected| {
            let (times, statements) = halves(row);
            let (time, warmup) = times.split_once(' ').unwrap();
            expect(statements, time.parse().ok(), warmup.parse().ok(), expected);
        },
    );
    let old = "start; open; wait 6; open; wait 2; close; stop";
    expect(OLD, Some(2), Some(1), old);
}

#[test]
fn rules_of_the_command_line_reach_every_window_that_they_can_end() {
    let overrides = Overrides {
        warmup: Some(Warmup::Steady {
            rule: SteadyRule::Mser,
            at_most: Duration::from_secs(60),
        }),
        precision: Some(2.0),
        ..Overrides::default()
    };
    each_row(
        r#"
        run 20 => start; steady by mser within 60; open; within 2 % or 20; close; stop
        // A warm-up of the workload stays.
        warmup 4\nrun 10\nrun 20
            => start; wait 4; steady by mser within 60; open; within 2 % or 10; close; stop; start; steady by mser within 60; open; within 2 % or 20; close; stop
        // A window until the work is done, and a window of several waits, end as before.
        run 0 => start; steady by mser within 60; open; done; close; stop
        create processes\nstats clear\nsleep 5\necho "x"\nsleep 6\nstats snap
            => start; open; steady by mser within 60; open; wait 5; echo x; wait 6; close; stop
        "#,
        |statements, expected| {
            let expected = format!("populate 0; {expected}");
            assert_eq!(script(statements, &overrides), expected, "{statements}");
        },
    );
}

#[test]
fn commands_are_phases_that_take_time() {
    let mut overrides = Overrides::default();
    overrides.options.allow_commands = true;
    let within = "create processes\nsystem \"sync $dir\"\nstats snap\nshutdown processes";
    assert_eq!(
        script(within, &overrides),
        "populate 0; start; open; system sync /d; close; stop"
    );
}

#[test]
fn a_later_run_must_not_change_what_the_plan_has_once() {
    let process = "define process name=q { thread name=t { flowop hog name=h,value=1 } }";
    let random = "set $r=randvar(type=uniform,mean=$m)\n\
        define process name=q { thread name=t { flowop testrandvar name=v,value=$r } }";
    for (statements, what) in [
        (format!("run 1\n{process}\nrun 1"), "what the threads do"),
        ("run 1\nset $dir=/e\nrun 1".into(), "the fileset `f`"),
        ("run 1\neventgen rate=5\nrun 1".into(), "the event rate"),
        (
            "run 1\nset mode quit alldone\nrun 1".into(),
            "the quit mode",
        ),
        (
            format!("set $m=3\n{random}\nrun 1\nset $m=4\nrun 1"),
            "the random variable `$r`",
        ),
    ] {
        let expected = format!("{what} would differ from an earlier run in this workload");
        assert_eq!(messages(&format!("{DEFS}{statements}")), [expected]);
    }
    let same = with(
        &format!("set $m=3\n{random}\nrun 1\nset $m=3\nrun 1"),
        &Overrides::default(),
    );
    assert_eq!(same.variables.len(), 1);
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
    let changed = with("set mode quit timeout\neventgen rate=50\nrun 1", &overrides);
    assert_eq!(
        (changed.quit, changed.event_rate),
        (QuitMode::FirstDone, Some(2.5))
    );
    let lifted = Overrides {
        rate: Some(0.0),
        ..Overrides::default()
    };
    for (statements, overrides) in [
        ("eventgen rate=0\nrun 1", Overrides::default()),
        ("eventgen rate=50\nrun 1", lifted),
    ] {
        assert_eq!(with(statements, &overrides).event_rate, None);
    }
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

/// The notes of a workload with the given statements: for each note, the line counted from the first statement, and the
/// text.
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
    each_row(
        r#"
        create processes\ncreate processes\nsleep 1
            => 2 the processes run already; they are started once
        shutdown processes\nrun 1 => 1 `shutdown` has nothing to stop: no thread runs
        stats snap\nrun 1 => 1 `stats snap` has nothing to show: nothing was measured yet
        statsdump "x"\nrun 1 => 1 `statsdump` has nothing to show: nothing was measured yet
        stats clear\nrun 1 => 1 `stats clear` has nothing to clear: no thread runs yet
        sleep 0\nrun 1 => 1 `sleep 0` has nothing to wait for: no thread runs yet
        create processes\nsleep 2\nstats snap\nstats clear\necho x\nstats snap\nshutdown proc
            => 6 `stats snap` has nothing to show: no time has passed since measuring began
        stats command x\nrun 1
            => 1 `stats command` has no effect here: results go to the results directory
        echo "${stats.iops}"\nrun 1
            => 1 `${stats.iops}` is not known before the run; the text keeps it as written
        "#,
        |statements, want| assert_eq!(notes(statements), [want], "{statements}"),
    );
    let unmeasured = notes("create processes\nsleep 2\nstats clear");
    assert!(unmeasured.len() == 1 && unmeasured[0].ends_with("since measuring began"));
    // Results that have been shown may be shown again.
    assert_eq!(notes("run 1\nstats snap\nstats snap"), [""; 0]);
}

#[test]
fn statements_without_a_meaning_are_noted_once_with_their_place() {
    let statements = "debug 5\nversion\nvars\nlist fileset\nlist flowop\nenable lathist\n\
        enable multi master=a,client=b\ndomultisync value=1\nstats directory /x\ndebug 6\nrun 1\n\
        stats clear";
    let found = notes(statements);
    let expected = [
        "1 `debug` has no effect here",
        "2 `version` has no effect here",
        "3 `vars` has no effect here",
        "4 `list fileset` has no effect here",
        "5 `list flowop` has no effect here",
        "6 `enable lathist` has no effect here",
        "7 `enable multi` has no effect here",
        "8 `domultisync` has no effect here",
        "9 `stats directory` has no effect here",
        "12 `stats clear` has nothing to clear",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
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
fn a_run_that_failed_is_not_compared_with_later_ones() {
    let text = "set $n=none\ndefine process { thread instances=$n { flowop hog value=1 } }\n\
                run 1\nset $n=5\nrun 1";
    assert_eq!(
        messages(text),
        ["`instances` takes a whole number; `$n` is the text `none`"]
    );
}
