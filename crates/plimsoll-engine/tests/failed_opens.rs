//! With counted errors, an operation on a file whose open failed is counted as not issued (`NOT_OPEN`); otherwise the
//! failed open ends the run.

mod common;
#[path = "common/mixes.rs"]
mod mixes;

use common::{plan, row, try_run};
use plimsoll_engine::Outcome;
use plimsoll_plan::{MixOp, OnError, OpKind, Plan};
use std::collections::BTreeMap;
use std::time::Duration;

/// One of five files, which are opened in turn, is missing.
const ONE_IS_MISSING: &str = "\
define fileset name=s,path=files,entries=5,dirwidth=20,size=4k,prealloc
define process name=p { thread name=t,memsize=1m { FLOWOPS } }
create files
system \"find DIR -name 00000003 -delete\"
run 1
";

fn flowops(flowops: &str, on_error: OnError) -> (Plan, Outcome) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let text = ONE_IS_MISSING.replace("FLOWOPS", flowops);
    let text = text.replace("DIR", &dir.path().display().to_string());
    let plan = plan(&text, dir.path(), |o| {
        o.time = Some(Duration::from_millis(200));
        o.options.on_error = on_error;
        o.options.allow_commands = true;
    });
    let (outcome, _) = try_run(&plan, "posix").unwrap();
    (plan, outcome)
}

/// The failures of an operation by code.
fn errors<'a>(plan: &Plan, outcome: &'a Outcome, name: &str) -> &'a BTreeMap<String, u64> {
    &row(plan, outcome, name).errors
}

const ON_ONE_FILE: &str = "
    flowop openfile name=open,filesetname=s,fd=1
    flowop readwholefile name=readall,fd=1
    flowop read name=read,fd=1,iosize=1k,iters=3
    flowop appendfile name=append,fd=1,iosize=1k
    flowop fsync name=flush,fd=1
    flowop statfile name=look,fd=1
    flowop closefile name=close,fd=1";

#[test]
fn operations_on_a_file_that_could_not_be_opened_are_counted_and_the_program_goes_on() {
    let (plan, outcome) = flowops(ON_ONE_FILE, OnError::Count);
    assert_eq!(outcome.failure, None);
    let of_open = errors(&plan, &outcome, "open");
    assert_eq!(Vec::from_iter(of_open.keys()), ["ENOENT"]);
    let failed = of_open["ENOENT"];
    assert!(failed > 1, "{failed}");
    for (name, each) in [
        ("readall", 1),
        ("read", 3),
        ("append", 1),
        ("flush", 1),
        ("look", 1),
        ("close", 1),
    ] {
        let codes = errors(&plan, &outcome, name);
        assert_eq!(Vec::from_iter(codes.keys()), ["NOT_OPEN"]);
        // The run may end in the middle of a cycle, whose last operations are missing.
        let expected = each * (failed - 1)..=each * failed;
        assert!(expected.contains(&codes["NOT_OPEN"]), "{name}: {codes:?}");
        // An operation that is counted as `NOT_OPEN` makes no call, so the operation has no service time.
        let done = row(&plan, &outcome, name);
        assert_eq!(done.service.count(), done.ops, "{name}");
        assert!(done.ops > failed, "{name}: {} of {failed}", done.ops);
    }
}

#[test]
fn such_a_failure_ends_the_run_by_its_cause_without_on_error_count() {
    let (_, outcome) = flowops(ON_ONE_FILE, OnError::Stop);
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.operation, "open");
    assert!(failure.error.contains("ENOENT"), "{failure:?}");
}

/// An operation concerns the file whose open failed, and not the previous file of the slot.
#[test]
fn the_file_that_a_slot_had_before_is_left_alone() {
    let program = "
        flowop openfile name=open,filesetname=s,fd=1
        flowop closefile name=close,fd=1
        flowop deletefile name=gone,fd=1";
    let (plan, outcome) = flowops(program, OnError::Count);
    assert_eq!(outcome.failure, None);
    // In the end only the missing file is left to be opened.
    let failed = errors(&plan, &outcome, "open")["ENOENT"];
    assert_eq!(row(&plan, &outcome, "gone").ops, 4);
    let codes = errors(&plan, &outcome, "gone");
    assert_eq!(Vec::from_iter(codes.keys()), ["NOT_OPEN"]);
    assert!((failed - 1..=failed).contains(&codes["NOT_OPEN"]));
}

/// A flowop that names a fileset has an open with a row of its own.
#[test]
fn an_operation_whose_implicit_open_failed_is_counted_by_its_own_row_too() {
    let program = "
        flowop readwholefile name=readall,filesetname=s,fd=1
        flowop closefile name=close,fd=1";
    let (plan, outcome) = flowops(program, OnError::Count);
    assert_eq!(outcome.failure, None);
    let of_kind = |kind: OpKind| {
        let totals = &outcome.windows.last().unwrap().totals.rows;
        let mut rows = plan.operations.iter().zip(totals);
        let found = rows.find(|(op, _)| op.name == "readall" && op.kind == kind);
        found.expect("it has a row of this kind").1
    };
    let (open, read) = (of_kind(OpKind::Open), of_kind(OpKind::ReadWhole));
    assert_eq!(Vec::from_iter(open.errors.keys()), ["ENOENT"]);
    let failed = open.errors["ENOENT"];
    assert!(failed > 1, "{failed}");
    for row in [read, row(&plan, &outcome, "close")] {
        assert_eq!(Vec::from_iter(row.errors.keys()), ["NOT_OPEN"]);
        // The run may end in the middle of a cycle, whose last operations are missing.
        assert!((failed - 1..=failed).contains(&row.errors["NOT_OPEN"]));
        assert!(row.ops > 0 && row.service.count() == row.ops, "{row:?}");
    }
}

#[test]
fn a_copy_needs_both_of_its_files() {
    let program = "
        flowop openfile name=from,filesetname=s,fd=1
        flowop openfile name=to,filesetname=s,fd=2
        flowop writewholefile name=copy,fd=2,srcfd=1
        flowop closefile name=close1,fd=1
        flowop closefile name=close2,fd=2";
    let (plan, outcome) = flowops(program, OnError::Count);
    assert_eq!(outcome.failure, None);
    let opens = ["from", "to"].map(|name| errors(&plan, &outcome, name)["ENOENT"]);
    let failed: u64 = opens.iter().sum();
    let copies = errors(&plan, &outcome, "copy")["NOT_OPEN"];
    assert!(
        (failed - 1..=failed).contains(&copies),
        "{copies} of {opens:?}"
    );
    assert!(row(&plan, &outcome, "copy").ops > 0);
}

#[test]
fn a_program_that_never_opens_the_slot_still_ends_the_run() {
    let program = "
        flowop openfile name=open,filesetname=s,fd=1,indexed=0
        flowop closefile name=close,fd=1
        flowop read name=read,fd=1,iosize=1k";
    let (_, outcome) = flowops(program, OnError::Count);
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.operation, "read");
    assert_eq!(failure.error, "slot fd=1 is not open");
}

/// A loop on a file that is not open makes no calls that could end the loop, so the loop ends with the run.
#[test]
fn a_long_loop_without_calls_ends_with_the_run() {
    let program = "
        flowop openfile name=open,filesetname=s,fd=1,indexed=2
        flowop statfile name=look,fd=1,iters=1000000000000
        flowop closefile name=close,fd=1";
    let (plan, outcome) = flowops(program, OnError::Count);
    assert_eq!((&outcome.failure, &outcome.hung_workers), (&None, &vec![]));
    assert_eq!(errors(&plan, &outcome, "open")["ENOENT"], 1);
    let look = row(&plan, &outcome, "look");
    assert!(look.ops == 0 && look.errors["NOT_OPEN"] > 0, "{look:?}");
}

#[test]
fn a_mix_counts_the_operations_whose_file_could_not_be_opened() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut plan = mixes::plan(dir.path(), 1, &[(MixOp::ReadRand, 100.0)], |mix| {
        mix.flags.keep_open = false;
    });
    plan.options.on_error = OnError::Count;
    let plan = mixes::lasting(plan, Duration::from_millis(500));
    let (data, empty) = (dir.path().join("data"), dir.path().join("empty"));
    let thief = std::thread::spawn(move || {
        // The fileset `empty` is populated last, right before the workers start.
        while !empty.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(200));
        std::fs::rename(&data, data.with_file_name("gone")).unwrap();
    });
    let (outcome, _) = try_run(&plan, "posix").unwrap();
    thief.join().unwrap();
    assert_eq!(outcome.failure, None);
    let failed = errors(&plan, &outcome, "prepare")["ENOENT"];
    let name = MixOp::ReadRand.name();
    let codes = errors(&plan, &outcome, name);
    assert_eq!(Vec::from_iter(codes.keys()), ["NOT_OPEN"]);
    assert!((failed - 1..=failed).contains(&codes["NOT_OPEN"]));
    let reads = row(&plan, &outcome, name);
    assert_eq!(reads.service.count(), reads.ops);
    assert!(outcome.processes[0].counts.completed == reads.ops);
}
