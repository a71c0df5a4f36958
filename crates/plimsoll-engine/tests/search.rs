//! Searches of a directory tree by one rank and by several ranks, recounted from the files on disk.

mod common;

use common::RecordingObserver;
use plimsoll_engine::{EngineError, Outcome, Settings, Stop, run, run_ranks};
use plimsoll_plan::*;
use plimsoll_ranks::link::{Incoming, Link, PollRate};
use plimsoll_ranks::{Ranks, TreePosition};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

const LIST: OperationId = OperationId(0);
const STAT: OperationId = OperationId(1);

/// The tree: a large directory, many small ones, an empty one and a chain of directories.
fn make_tree(dir: &Path) {
    let file = |path: String, size: usize| {
        let path = dir.join("tree").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![7; size]).unwrap();
    };
    for i in 0..1200 {
        file(
            format!("shared/file.mdtest.0.{i}"),
            if i % 3 == 0 { 3901 } else { 10 },
        );
    }
    for i in 0..40 {
        file(format!("own/tree.{i}/file.01"), 3901);
        file(format!("own/tree.{i}/other"), 3901);
    }
    file("a/b/c/d/e/f01".into(), 3901);
    file("a/b/01/x".into(), 3901);
    std::fs::create_dir(dir.join("tree/empty")).unwrap();
    std::os::unix::fs::symlink("shared", dir.join("tree/link01")).unwrap();
    // Plimsoll's own files are no part of the workload.
    file("own/.plimsoll".into(), 3901);
}

fn plan(dir: &Path, ranks: u32, change: impl FnOnce(&mut TreeSearch)) -> Plan {
    let mut search = TreeSearch {
        top: RelPath::new("tree").unwrap(),
        name_contains: "01".into(),
        size: Some(3901),
        changed_since: None,
        list: LIST,
        stat: STAT,
    };
    change(&mut search);
    let root = RelPath::new("out").unwrap();
    let stages = vec![Stage {
        name: "find".into(),
        iteration: 0,
        work: StageWork::Search(search),
        on_error: OnError::Stop,
        warm_up: false,
        waiting_factor: 0.0,
        stonewall: None,
        squeeze_memory: None,
    }];
    let pattern = Pattern {
        object_name: NameTemplate::parse("file-{object}").unwrap(),
        samples: Samples::First,
        ..Pattern::empty(root.clone(), ranks, stages)
    };
    let mut plan = Plan::empty("find");
    plan.work_dir.dir = dir.into();
    plan.work_dir.guards = vec![root];
    plan.quit = QuitMode::AllDone;
    plan.add_row("list", OpKind::ListDir, None);
    plan.add_row("stat", OpKind::Stat, None);
    plan.script = vec![
        Phase::StartStage { stage: 0 },
        Phase::OpenWindow,
        Phase::wait(Until::Done { at_most: None }),
        Phase::CloseWindow,
        Phase::Stop,
    ];
    let program = Program::Pattern(Box::new(pattern));
    plan.groups = vec![WorkerGroup::new("rank", ranks, "rank", program)];
    plan
}

/// Counts of a tree: directories, files, files whose names contain the text, and matching files.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    dirs: u64,
    files: u64,
    named: u64,
    matching: u64,
}

fn count(dir: &Path, text: &str, accept: &dyn Fn(&std::fs::Metadata) -> bool) -> Counts {
    let mut all = Counts {
        dirs: 1,
        ..Counts::default()
    };
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let found = std::fs::symlink_metadata(entry.path()).unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with(".plimsoll") {
            continue;
        }
        if found.is_dir() {
            let below = count(&entry.path(), text, accept);
            all.dirs += below.dirs;
            all.files += below.files;
            all.named += below.named;
            all.matching += below.matching;
            continue;
        }
        all.files += 1;
        if name.contains(text) {
            all.named += 1;
            all.matching += u64::from(accept(&found));
        }
    }
    all
}

/// A message with the number of its sender.
type Message = (usize, Vec<u8>);

/// A link through channels of this process: for each neighbour a sender, and a receiver of messages with the sender's
/// number.
struct Channels {
    to: Vec<(Sender<Message>, usize)>,
    from: Receiver<Message>,
    early: std::cell::RefCell<std::collections::VecDeque<Message>>,
}

impl Link for Channels {
    fn post(&self, to: usize, frame: Vec<u8>) {
        // The neighbour may have ended.
        let (sender, own_number) = &self.to[to];
        let _ = sender.send((*own_number, frame));
    }

    fn send(&self, to: usize, frame: Vec<u8>, _: &mut dyn FnMut()) {
        self.post(to, frame);
    }

    fn receive(&self) -> Option<(usize, Incoming)> {
        let early = self.early.borrow_mut().pop_front();
        let received = early.or_else(|| self.from.try_recv().ok());
        received.map(|(from, frame)| (from, Incoming::Frame(frame)))
    }

    fn wait(&self, _: Instant, pace: PollRate) {
        match self.from.recv_timeout(pace.max_sleep()) {
            Ok(message) => self.early.borrow_mut().push_back(message),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pace.max_sleep()),
        }
    }

    fn flushed(&self) -> bool {
        true
    }

    fn close(&self, _: bool) {}
}

/// The links of `size` ranks, all of which are neighbours of rank 0 only.
fn links(size: u32) -> Vec<Channels> {
    let ends: Vec<_> = (0..size).map(|_| channel()).collect();
    let senders: Vec<_> = ends.iter().map(|(sender, _)| sender.clone()).collect();
    let receivers = (0..).zip(ends.into_iter().map(|(_, receiver)| receiver));
    let link = |(rank, from): (usize, Receiver<_>)| Channels {
        to: match rank {
            0 => senders[1..].iter().map(|s| (s.clone(), 0)).collect(),
            // Rank 0 numbers its neighbours from rank 1 on.
            _ => vec![(senders[0].clone(), rank - 1)],
        },
        from,
        early: Default::default(),
    };
    receivers.map(link).collect()
}

/// Runs a Plan with each rank in a thread; returns the outcome of rank 0.
fn run_together(plan: &Plan) -> Result<Outcome, EngineError> {
    let size = plan.pattern().unwrap().ranks;
    let settings = &Settings::default();
    if size == 1 {
        return run(
            plan,
            settings,
            &Stop::default(),
            &mut RecordingObserver::default(),
        );
    }
    std::thread::scope(|scope| {
        let one = |(rank, link): (u32, Channels)| {
            scope.spawn(move || {
                let ranks = Ranks::new(TreePosition::new(rank, size, size), link);
                let mut heard = RecordingObserver::default();
                run_ranks(plan, settings, &Stop::default(), &mut heard, &ranks)
            })
        };
        let threads: Vec<_> = (0..).zip(links(size)).map(one).collect();
        let mut ends = threads.into_iter().map(|t| t.join().unwrap());
        let first = ends.next().unwrap();
        assert_eq!(ends.filter(|end| end.is_ok() != first.is_ok()).count(), 0);
        first
    })
}

fn check(plan: &Plan, expected: &Counts) {
    let outcome = run_together(plan).unwrap();
    assert_eq!((outcome.failure, outcome.reasons), (None, vec![]));
    let ranks = &outcome.stages[0].ranks;
    let sum = |of: &dyn Fn(&plimsoll_measure::RankStage) -> u64| ranks.iter().map(of).sum::<u64>();
    let work = &plan.pattern().unwrap().stages[0].work;
    let StageWork::Search(search) = work else {
        unreachable!()
    };
    let stats = |r: &plimsoll_measure::RankStage| r.rows[STAT.0 as usize].ops;
    let found = Counts {
        dirs: sum(&|r| r.rows[LIST.0 as usize].ops),
        files: sum(&|r| r.rounds),
        named: sum(&stats),
        matching: sum(&|r| r.matches.unwrap()),
    };
    let statted = if search.needs_stat() {
        expected.named
    } else {
        0
    };
    assert_eq!(
        found,
        Counts {
            named: statted,
            ..*expected
        }
    );
    let most = statted.div_ceil(ranks.len() as u64);
    assert!(ranks.iter().all(|r| stats(r) <= most), "{ranks:?}");
    let rows = &outcome.windows[0].totals.rows;
    assert_eq!([rows[0].ops, rows[1].ops], [expected.dirs, statted]);
    assert_eq!(rows[0].service.count(), expected.dirs);
}

#[test]
fn every_directory_is_listed_once_and_stats_are_shared_by_all_ranks() {
    let dir = tempfile::tempdir().unwrap();
    make_tree(dir.path());
    let tree = dir.path().join("tree");
    let is_size = |m: &std::fs::Metadata| m.len() == 3901;
    let expected = count(&tree, "01", &is_size);
    assert!(expected.matching > 40 && expected.named > expected.matching);
    for ranks in [1, 3] {
        check(&plan(dir.path(), ranks, |_| ()), &expected);
        let names_only = |s: &mut TreeSearch| s.size = None;
        let by_name = count(&tree, "01", &|_| true);
        check(&plan(dir.path(), ranks, names_only), &by_name);
    }
    // The work directory itself has the tree, the root of the run, and nothing else.
    let whole = |s: &mut TreeSearch| (s.top, s.name_contains) = (RelPath::default(), String::new());
    let all = count(&tree, "", &is_size);
    let and_parents = Counts {
        dirs: all.dirs + 2,
        ..all
    };
    check(&plan(dir.path(), 2, whole), &and_parents);
}

#[test]
fn files_match_if_they_changed_at_the_reference_or_later() {
    let dir = tempfile::tempdir().unwrap();
    make_tree(dir.path());
    let tree = dir.path().join("tree");
    let changed = |m: &std::fs::Metadata| m.ctime() * 1_000_000_000 + m.ctime_nsec();
    let reference = "shared/file.mdtest.0.701";
    let since = changed(&std::fs::metadata(tree.join(reference)).unwrap());
    let expected = count(&tree, "01", &|m| changed(m) >= since);
    assert!(expected.matching > 0);
    let path = RelPath::new(&format!("tree/{reference}")).unwrap();
    let newer = |s: &mut TreeSearch| (s.size, s.changed_since) = (None, Some(path));
    check(&plan(dir.path(), 2, newer), &expected);
}

#[test]
fn a_search_that_fails_at_one_rank_ends_at_all() {
    let dir = tempfile::tempdir().unwrap();
    make_tree(dir.path());
    let missing = |s: &mut TreeSearch| s.top = RelPath::new("nowhere").unwrap();
    let outcome = run_together(&plan(dir.path(), 3, missing)).unwrap();
    let failure = outcome.failure.expect("the directory is missing");
    assert!(failure.to_string().contains("nowhere"), "{failure}");
}

#[test]
fn a_target_without_files_has_nothing_to_find() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings {
        target: "null".into(),
        ..Settings::default()
    };
    let plan = plan(dir.path(), 1, |_| ());
    let mut heard = RecordingObserver::default();
    let refused = run(&plan, &settings, &Stop::default(), &mut heard).map(|_| ());
    let Err(EngineError::Refused(why)) = refused else {
        panic!("{refused:?}");
    };
    assert!(why.contains("nothing to find"), "{why}");
}
