//! Recovery of results from the files that a killed run left.

use crate::fixtures::logged;
use plimsoll_measure::{Completions, Interval, Latency, OpTotals};
use plimsoll_plan::{OpKind, Operation, Phase, Plan};
use plimsoll_results::{
    ClockKind, HISTOGRAMS_FILE, INTERVALS_FILE, MeasuredRun, Outcome, Run, RunDir, RunWriter,
    Target, Verdict, recover,
};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::SystemTime;

const SECOND: u64 = 1_000_000_000;

/// A name that is longer in bytes than in characters.
const NAME: &str = "schön";

/// A Plan whose script opens the second window before closing the first, so the first window is discarded.
fn plan() -> Plan {
    let mut plan = Plan::empty("w");
    plan.operations = vec![Operation {
        name: NAME.into(),
        kind: OpKind::Read,
        location: None,
    }];
    plan.script = vec![
        Phase::Start,
        Phase::OpenWindow,
        Phase::OpenWindow,
        Phase::CloseWindow,
        Phase::Stop,
    ];
    plan
}

fn draft(plan: &Plan, ranks: u32, clock: ClockKind) -> Run {
    Run::assemble(MeasuredRun {
        ranks,
        clock,
        outcome: Outcome {
            interrupted: true,
            lanes: 1,
            ..Outcome::default()
        },
        ..MeasuredRun::new(
            plan.clone(),
            Target {
                url: "posix".into(),
                description: String::new(),
                system: None,
            },
            SystemTime::UNIX_EPOCH,
        )
    })
}

fn interval(window: u32, index: u64) -> Interval {
    Interval {
        window,
        index,
        opened: 0,
        start: index * SECOND,
        length: SECOND,
        rows: vec![OpTotals {
            ops: 1,
            service: Latency::of([2_000_000]),
            ..OpTotals::default()
        }],
        completions: Completions::default(),
    }
}

/// Creates the remains of a run of `ranks` ranks that was killed after `intervals`, as a copy of a live run's
/// directory: the lock of the writer does not cover the copy.
fn killed(root: &Path, name: &str, ranks: u32, intervals: &[(u32, u64)]) -> PathBuf {
    killed_on(ClockKind::Real, root, name, ranks, intervals)
}

fn killed_on(
    clock: ClockKind,
    root: &Path,
    name: &str,
    ranks: u32,
    intervals: &[(u32, u64)],
) -> PathBuf {
    let (plan, elsewhere) = (plan(), tempfile::tempdir().unwrap());
    let started = SystemTime::UNIX_EPOCH;
    let writer = RunWriter::create(elsewhere.path(), &plan, started, clock, None);
    let mut writer = writer.unwrap();
    writer.draft(&draft(&plan, ranks, clock)).unwrap();
    for (window, index) in intervals {
        writer.interval(&interval(*window, *index)).unwrap();
    }
    writer.flush().unwrap();
    let left = root.join(name);
    std::fs::create_dir(&left).unwrap();
    for file in std::fs::read_dir(writer.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), left.join(file.file_name())).unwrap();
    }
    left
}

/// Recovers the only killed run in `path`, and returns the results.
#[track_caller]
fn recovered(path: &Path) -> (RunDir, Run) {
    let mut found = recover(path).unwrap();
    assert_eq!(found.len(), 1);
    let dir = found.remove(0).unwrap();
    let run = dir.read().unwrap();
    assert_eq!(run.validity.verdict, Verdict::Interrupted);
    (dir, run)
}

fn says(run: &Run, text: &str) -> bool {
    run.notes.iter().any(|n| n.text.contains(text))
}

#[test]
fn what_was_dropped_does_not_come_back() {
    let root = tempfile::tempdir().unwrap();
    let left = killed(
        root.path(),
        ".plimsoll-aaaaaa",
        1,
        &[(1, 0), (1, 1), (2, 0)],
    );
    let (dir, run) = recovered(&left);
    assert_eq!((run.window_number, run.summary.ops), (2, 1));
    assert_eq!(run.earlier_windows, []);
    // The time series contain the recovered intervals, like the time series of a completed run.
    assert_eq!(dir.read_intervals().unwrap().len(), 3);
    assert_eq!(logged(&dir).len(), 3);
}

#[test]
fn a_run_of_which_all_is_dropped_has_measured_nothing() {
    let root = tempfile::tempdir().unwrap();
    let left = killed(root.path(), ".plimsoll-aaaaaa", 1, &[(1, 0), (1, 1)]);
    let (dir, run) = recovered(&left);
    assert_eq!((run.window_number, run.summary.ops), (0, 0));
    assert!(says(&run, "an interval that counts"), "{:?}", run.notes);
    assert_eq!(logged(&dir).len(), 2);
}

#[test]
fn a_cut_within_a_character_costs_the_line_that_it_is_in() {
    for name in [INTERVALS_FILE, HISTOGRAMS_FILE] {
        let root = tempfile::tempdir().unwrap();
        let left = killed(root.path(), ".plimsoll-aaaaaa", 1, &[(2, 0), (2, 1)]);
        let path = left.join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        let cut = bytes.windows(2).rposition(|pair| pair == "ö".as_bytes());
        bytes.truncate(cut.unwrap() + 1);
        std::fs::write(&path, bytes).unwrap();
        let (dir, run) = recovered(&left);
        assert_eq!((run.window_s, run.summary.ops), (1.0, 1), "{name}");
        assert_eq!(dir.read_intervals().unwrap()[0].operation, NAME);
        assert_eq!(logged(&dir).len(), 1);
    }
}

#[test]
fn processes_that_recover_at_once_make_each_result_once() {
    const THREADS: usize = 4;
    let root = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..40).map(|n| format!(".plimsoll-aaaa{n:02}")).collect();
    for name in &names {
        killed(root.path(), name, 1, &[(2, 0)]);
    }
    let begin = Barrier::new(THREADS);
    let each = || {
        begin.wait();
        let mut made = 0;
        // Every thread tries the runs one by one, so all threads compete for each run.
        for name in &names {
            for result in recover(&root.path().join(name)).unwrap_or_default() {
                result.unwrap();
                made += 1;
            }
        }
        made
    };
    let made: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(each)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    assert_eq!(made, names.len());
    let left = std::fs::read_dir(root.path()).unwrap();
    let left = left.map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|n| !n.starts_with('.')).count(), names.len());
}

/// In virtual time, one process has all ranks and writes each interval at the end of the interval.
#[test]
fn figures_of_ranks_in_virtual_time_are_those_of_complete_intervals() {
    let root = tempfile::tempdir().unwrap();
    let left = killed_on(
        ClockKind::Virtual,
        root.path(),
        ".plimsoll-aaaaaa",
        3,
        &[(2, 0), (2, 1)],
    );
    let (_, run) = recovered(&left);
    assert_eq!((run.ranks, run.summary.ops), (3, 2));
    assert!(
        says(&run, "the intervals that were complete"),
        "{:?}",
        run.notes
    );
}

#[test]
fn a_run_of_several_processes_says_that_their_figures_were_not_gathered() {
    for (intervals, text) in [
        (&[][..], "the figures of its 3 processes were not gathered"),
        (&[(2, 0)], "those of the part in progress were not"),
    ] {
        let root = tempfile::tempdir().unwrap();
        let left = killed(root.path(), ".plimsoll-aaaaaa", 3, intervals);
        let (_, run) = recovered(&left);
        assert_eq!((run.ranks, run.summary.ops), (3, intervals.len() as u64));
        assert!(says(&run, text), "{:?}", run.notes);
    }
}
