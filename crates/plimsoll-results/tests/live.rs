//! Runs in progress, observed from another process.

use plimsoll_measure::{Completions, Interval, Latency, OpTotals, WindowTotals};
use plimsoll_plan::{OpKind, Operation, Plan};
use plimsoll_results::{
    ClockKind, INTERVALS_FILE, LIVE_FILE, LiveDir, LiveLocation, MeasuredRun, Outcome, Run,
    RunWriter, Target,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

const SECOND: u64 = 1_000_000_000;

fn plan() -> Plan {
    let mut plan = Plan::empty("w");
    plan.seed = 7;
    plan.operations = ["read", "a,\"b\""].map(operation).into();
    plan
}

fn operation(name: &str) -> Operation {
    Operation {
        name: name.into(),
        kind: OpKind::Read,
        location: None,
    }
}

fn started() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

fn totals(ops: u64) -> OpTotals {
    OpTotals {
        ops,
        bytes: 10 * u128::from(ops),
        service: Latency::of(std::iter::repeat_n(2_000_000, ops as usize)),
        ..OpTotals::default()
    }
}

fn interval(index: u64, ops: [u64; 2]) -> Interval {
    Interval {
        window: 1,
        index,
        opened: 0,
        start: index * SECOND,
        length: SECOND,
        rows: ops.map(totals).into(),
        completions: Completions::default(),
    }
}

fn writer(root: &Path) -> RunWriter {
    RunWriter::create(root, &plan(), started(), ClockKind::Real, None).unwrap()
}

fn only(root: &Path) -> LiveDir {
    let mut found = LiveDir::find(&[root.to_owned()]);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn run() -> Run {
    let window = WindowTotals {
        number: 1,
        start: 0,
        end: 2 * SECOND,
        rows: [5, 1].map(totals).into(),
        ..WindowTotals::default()
    };
    Run::assemble(MeasuredRun {
        outcome: Outcome {
            windows: vec![window.into()],
            ..Outcome::default()
        },
        ..MeasuredRun::new(
            plan(),
            Target {
                url: "posix".into(),
                description: String::new(),
                system: None,
            },
            started(),
        )
    })
}

#[test]
fn intervals_are_seen_when_they_end_and_the_run_is_found_at_its_end() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(LiveDir::find(&[root.path().to_owned()]), []);
    let mut writer = writer(root.path());
    let live = only(root.path());
    let known = live.read().unwrap();
    assert_eq!((known.workload.as_str(), known.seed), ("w", 7));
    assert_eq!(known.started_at, "2023-11-14T22:13:20Z");
    assert_eq!(known.pid, std::process::id());

    let mut follower = live.open_reader().unwrap();
    assert_eq!(follower.rows().unwrap(), []);
    writer.interval(&interval(0, [3, 0])).unwrap();
    writer.flush().unwrap();
    let rows = follower.rows().unwrap();
    assert_eq!(rows.len(), 1, "what did nothing has no row");
    assert_eq!((rows[0].ops, rows[0].bytes, rows[0].mean_ms), (3, 30, 2.0));
    assert_eq!(follower.rows().unwrap(), []);
    writer.interval(&interval(1, [2, 1])).unwrap();
    writer.flush().unwrap();
    let rows = follower.rows().unwrap();
    let seen: Vec<_> = rows.iter().map(|r| (r.operation.as_str(), r.ops)).collect();
    assert_eq!(seen, [("read", 2), ("a,\"b\"", 1)]);
    assert_eq!(follower.location(), LiveLocation::InProgress);

    // A reader that is opened later reads all intervals.
    assert_eq!(live.open_reader().unwrap().rows().unwrap().len(), 3);
    let dir = writer.finish(&run()).unwrap();
    let place = dir.path().canonicalize().unwrap();
    assert_eq!(follower.location(), LiveLocation::Finished(place));
    assert_eq!(follower.rows().unwrap(), []);
    assert_eq!(LiveDir::find(&[root.path().to_owned()]), []);
    assert!(!dir.path().join(LIVE_FILE).exists());
    assert_eq!(dir.read_intervals().unwrap().len(), 3);
    assert!(live.read().is_err() && live.open_reader().is_err());
}

#[test]
fn a_run_that_leaves_nothing_is_gone() {
    let root = tempfile::tempdir().unwrap();
    let writer = writer(root.path());
    let follower = only(root.path()).open_reader().unwrap();
    drop(writer);
    assert_eq!(follower.location(), LiveLocation::Gone);
}

#[test]
fn only_whole_lines_are_rows() {
    let root = tempfile::tempdir().unwrap();
    let mut writer = writer(root.path());
    writer.interval(&interval(0, [3, 0])).unwrap();
    writer.flush().unwrap();
    let live = only(root.path());
    let mut follower = live.open_reader().unwrap();
    assert_eq!(follower.rows().unwrap().len(), 1);
    let mut file = OpenOptions::new()
        .append(true)
        .open(live.path().join(INTERVALS_FILE))
        .unwrap();
    file.write_all(b"1,1,1,1,read,read,4,40,0,2.0,2.0").unwrap();
    assert_eq!(follower.rows().unwrap(), []);
    file.write_all(b",2.0,2.0,0,,,,,\n1,2,2").unwrap();
    let rows = follower.rows().unwrap();
    assert_eq!((rows.len(), rows[0].ops), (1, 4));
    file.write_all(b",1,read,read,x,0,0,0,0,0,0,0,,,,,\n")
        .unwrap();
    assert!(follower.rows().is_err(), "a damaged line is no row");
}
