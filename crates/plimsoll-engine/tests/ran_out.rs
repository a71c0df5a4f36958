//! Runs that end because a fileset is used up, in virtual time: operations take 10 ms.

mod common;

use common::{codes, plan, row, run_virtually, try_run};
use plimsoll_engine::Outcome;
use plimsoll_plan::{Plan, QuitMode};
use std::path::Path;
use std::time::Duration;

/// Filesets of files to delete, of files to create, and of files that stay.
const SETS: &str = "\
define fileset name=old,path=/tmp/a,entries=10,dirwidth=20,prealloc
define fileset name=new,path=/tmp/b,entries=10,dirwidth=20
define fileset name=still,path=/tmp/c,entries=5,dirwidth=20,prealloc
";

fn with(processes: &str, script: &str) -> Plan {
    plan(
        &format!("{SETS}{processes}{script}\n"),
        Path::new("/nowhere"),
        |_| {},
    )
}

fn thread(name: &str, instances: u32, flowops: &str) -> String {
    format!(
        "define process name={name}p {{ thread name={name},memsize=1m,instances={instances} \
         {{ {flowops} }} }}\n"
    )
}

const DELETE: &str = "flowop deletefile name=gone,filesetname=old";
const CREATE: &str = "flowop createfile name=made,filesetname=new,fd=1
                      flowop closefile name=shut,fd=1";
const COPY: &str = "flowop openfile name=from,filesetname=old,fd=1
                    flowop readwholefile name=in,fd=1
                    flowop createfile name=to,filesetname=new,fd=2
                    flowop writewholefile name=out,fd=2,srcfd=1
                    flowop closefile name=shut1,fd=1
                    flowop closefile name=shut2,fd=2";
const STAT_FLOWOP: &str = "flowop statfile name=look,filesetname=still";

/// Length of the last window, rounded to milliseconds.
fn window_ms(outcome: &Outcome) -> u64 {
    let totals = &outcome.windows.last().unwrap().totals;
    (totals.end - totals.start + 500_000) / 1_000_000
}

#[test]
fn work_that_ends_by_itself_is_valid_and_all_of_it_is_measured() {
    // Two workers delete ten files, and then neither worker finds a file to delete.
    let plan = with(&thread("d", 2, DELETE), "run 60");
    let outcome = run_virtually(&plan, "10ms");
    assert_eq!(codes(&outcome), [""; 0]);
    assert_eq!(
        (row(&plan, &outcome, "gone").ops, window_ms(&outcome)),
        (10, 50)
    );
    assert_eq!(outcome.ran_out, None);
    assert_eq!(
        outcome.notes,
        ["no existing file of fileset `old` was left for `gone`: its workers ended by themselves"]
    );

    let plan = with(&thread("c", 1, COPY), "run 60");
    let outcome = run_virtually(&plan, "10ms");
    assert_eq!(codes(&outcome), [""; 0]);
    // A copy without a missing file has opened and read its source file.
    for (name, ops) in [
        ("from", 11),
        ("in", 11),
        ("to", 10),
        ("out", 10),
        ("shut2", 10),
    ] {
        assert_eq!(row(&plan, &outcome, name).ops, ops, "{name}");
    }
}

#[test]
fn the_end_waits_for_all_work_that_ends_by_itself() {
    // Deletes end after 100 ms; creations, which take twice as many calls, end after 200 ms.
    let groups = thread("d", 1, DELETE) + &thread("c", 1, CREATE);
    let plan = with(&groups, "run 60");
    let outcome = run_virtually(&plan, "10ms");
    assert_eq!(codes(&outcome), [""; 0]);
    assert_eq!(window_ms(&outcome), 200);
    assert_eq!(row(&plan, &outcome, "made").ops, 10);
    assert_eq!(outcome.notes.len(), 2);
}

#[test]
fn other_work_beside_it_makes_the_result_invalid_from_that_instant_on() {
    let groups = thread("d", 1, DELETE) + &thread("l", 3, STAT_FLOWOP);
    let plan = with(&groups, "run 60");
    let outcome = run_virtually(&plan, "10ms");
    assert_eq!(codes(&outcome), ["fileset_exhausted"]);
    assert_eq!(
        outcome.reasons[0].text,
        "no existing file of fileset `old` was left for `gone` (test.f:4:72) after 0.100 s of the \
         measured window: give the fileset more entries or the run less time, or end it with \
         --quit alldone"
    );
    assert_eq!(window_ms(&outcome), 100);
    assert_eq!(row(&plan, &outcome, "gone").ops, 10);
    // An operation that completed at the instant of the exhaustion counts.
    assert_eq!(row(&plan, &outcome, "look").ops, 30);
    let totals = &outcome.windows[0].totals;
    assert_eq!(totals.rows.iter().map(|r| r.ops).sum::<u64>(), 40);
    let ran_out = outcome.ran_out.unwrap();
    assert_eq!((ran_out.after_ns, ran_out.measured), (100_000_000, true));
}

#[test]
fn quit_modes_that_ask_for_it_end_it_as_before() {
    for (quit, ops) in [(QuitMode::AllDone, 10), (QuitMode::FirstDone, 10)] {
        let groups = thread("d", 1, DELETE) + &thread("l", 1, STAT_FLOWOP);
        let mut plan = with(&groups, "run 60");
        plan.quit = quit;
        let outcome = run_virtually(&plan, "10ms");
        assert_eq!(codes(&outcome), [""; 0], "{quit:?}");
        assert_eq!(row(&plan, &outcome, "gone").ops, ops);
        let ms = window_ms(&outcome);
        assert_eq!(
            ms,
            if quit == QuitMode::AllDone {
                60_000
            } else {
                100
            }
        );
    }
}

#[test]
fn a_supply_that_never_existed_is_not_a_natural_end() {
    let empty = "flowop statfile name=look,filesetname=new";
    let plan = with(&thread("l", 1, empty), "run 60");
    let outcome = run_virtually(&plan, "10ms");
    assert_eq!(codes(&outcome), ["no_operations", "fileset_exhausted"]);
    // A fileset that never has the wanted files is an error beside work that ends by itself, too.
    let groups = thread("l", 1, &format!("{DELETE}\n{empty}"));
    let outcome = run_virtually(&with(&groups, "run 60"), "10ms");
    assert_eq!(codes(&outcome), ["fileset_exhausted"]);
}

#[test]
fn what_runs_out_before_the_window_is_reported_as_such() {
    let groups = thread("d", 1, DELETE) + &thread("l", 1, STAT_FLOWOP);
    let outcome = run_virtually(&with(&groups, "warmup 1\nrun 60"), "10ms");
    assert_eq!(codes(&outcome), ["no_operations", "fileset_exhausted"]);
    let text = &outcome.reasons[1].text;
    assert!(
        text.contains("after 0.100 s of work, with no window open:"),
        "{text}"
    );
}

/// In real time, in which scripts may have several windows: each operation takes 10 ms or more.
fn run_really(groups: &str, script: &str, window: Option<Duration>) -> (Plan, Outcome) {
    let text = format!("{SETS}{groups}{script}\n");
    let plan = plan(&text, Path::new("/nowhere"), |o| o.time = window);
    let (outcome, _) = try_run(&plan, "null:?latency=10ms").unwrap();
    assert_eq!(outcome.failure, None);
    (plan, outcome)
}

#[test]
fn the_window_that_ran_out_is_the_result_and_those_behind_it_are_not_opened() {
    let groups = thread("d", 1, DELETE) + &thread("l", 1, STAT_FLOWOP);
    let script = "create processes\nstats clear\nsleep 600\nstats snap\nsleep 600\n\
                  stats clear\nsleep 600\nstats snap";
    let (plan, outcome) = run_really(&groups, script, None);
    assert_eq!(codes(&outcome), ["fileset_exhausted"]);
    assert_eq!(outcome.windows.len(), 1);
    assert_eq!(row(&plan, &outcome, "gone").ops, 10);
    assert!(window_ms(&outcome) >= 100);
}

#[test]
fn what_runs_out_after_the_last_window_changes_nothing() {
    let groups = thread("d", 1, DELETE) + &thread("l", 1, STAT_FLOWOP);
    let window = Some(Duration::from_millis(50));
    let script = "create processes\nsleep 50\nstats snap\nsleep 600";
    let (_, outcome) = run_really(&groups, script, window);
    assert_eq!((codes(&outcome), window_ms(&outcome)), (vec![], 50));
    // The exhaustion ends the run before a window that the longer script has, which makes the result invalid.
    let script = format!("{script}\nstats clear\nsleep 1\nstats snap");
    let (_, outcome) = run_really(&groups, &script, window);
    assert_eq!(codes(&outcome), ["fileset_exhausted"]);
    assert_eq!((outcome.windows.len(), window_ms(&outcome)), (1, 50));
}

#[test]
fn a_run_that_ends_when_its_files_do_is_valid() {
    // The last of ten deletes ends with the run.
    let groups = thread("d", 1, DELETE) + &thread("l", 1, STAT_FLOWOP);
    let outcome = run_virtually(&with(&groups, "run 1"), "100ms");
    assert_eq!(codes(&outcome), [""; 0]);
}
