//! Crashes at every write, sync, rename and removal of results: the process is killed, or the power fails.
//! What is left works, or what is missing is said.

mod exports;
mod faults;
mod runs;
mod series;
mod work_dirs;

use crate::common::{Bench, Ended};
use plimsoll_results::{Run, RunDir, Verdict, tag_of, tag_of_text};
use plimsoll_serve::filter::Listing;
use plimsoll_serve::index::Index;
use plimsoll_testkit::crash_points::{Crash, CrashState, Recorder, Recording};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Workers that look at files of a target that takes its time, in virtual time.
const LOOKERS: &str = "\
define fileset name=s,path=files,entries=100,dirwidth=100,prealloc
define process name=p {
  thread name=t,memsize=1k,instances=2 {
    flowop statfile name=look,filesetname=s
  }
}
run 3
";

/// 100 operations a second of each worker.
const VIRTUAL: [&str; 1] = ["--target=null:?latency=10ms&clock=virtual"];

/// What a check found wrong.
type Checked = Result<(), String>;

/// A bench with the results of one run, in a directory of that name.
fn with_results() -> Bench {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let args = ["run", "w.f", "--results=results"];
    Ended::of(bench.plimsoll([&args[..], &VIRTUAL].concat())).expect_code(0);
    let made = bench.results()[0].path().to_owned();
    std::fs::rename(made, bench.path("results/run")).unwrap();
    bench
}

/// Records a command whose files are in the bench.
#[track_caller]
fn record(bench: &Bench, command: Command) -> Recording {
    let recorder = Recorder::of(bench.root()).unwrap();
    recorder.record(command).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes every state that crashes leave and checks it, with as many at a time as there are processors.
#[track_caller]
fn check_each(recording: &Recording, check: impl Fn(&Bench, &CrashState) -> Checked + Sync) {
    let states = recording.crash_states();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(state) = states.get(next.fetch_add(1, Relaxed)) {
            let bench = Bench::on_tmpfs();
            state.make(bench.root()).unwrap();
            if let Err(why) = check(&bench, state) {
                wrong
                    .lock()
                    .unwrap()
                    .push(explained(recording, state, &why));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(!states.is_empty());
    assert!(
        wrong.is_empty(),
        "{} of {} states are wrong, such as\n{}",
        wrong.len(),
        states.len(),
        wrong.iter().take(4).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// A state that is wrong, with the changes before it and what is there.
fn explained(recording: &Recording, state: &CrashState, why: &str) -> String {
    let made = &recording.changes[..state.changes];
    let last = made[made.len().saturating_sub(12)..].iter();
    let changes: Vec<String> = last.map(|c| format!("    {}", c.summary())).collect();
    let entry = |(path, content): (&PathBuf, &Option<_>)| {
        let length = content
            .as_ref()
            .map_or(0, |bytes: &std::sync::Arc<Vec<u8>>| bytes.len());
        format!("    {} ({length})", path.display())
    };
    let there: Vec<String> = state.tree.iter().map(entry).collect();
    format!(
        "{state}: {why}\n  changes:\n{}\n  left:\n{}\n",
        changes.join("\n"),
        there.join("\n")
    )
}

fn ensure(is_so: bool, text: impl FnOnce() -> String) -> Checked {
    match is_so {
        true => Ok(()),
        false => Err(text()),
    }
}

/// Calls the program, which may refuse but must not panic.
fn call(bench: &Bench, args: &[&str]) -> Result<Ended, String> {
    let ended = Ended::of(bench.plimsoll(args));
    let known = [0, 1, 2, 3, 130];
    let is_told = ended.code.is_some_and(|code| known.contains(&code));
    ensure(is_told && !ended.stderr.contains("panicked"), || {
        format!("{args:?} ended with {:?}: {}", ended.code, ended.stderr)
    })?;
    Ok(ended)
}

/// Calls the program, which does it.
fn call_well(bench: &Bench, args: &[&str]) -> Result<Ended, String> {
    let ended = call(bench, args)?;
    ensure(ended.code == Some(0), || {
        format!("{args:?} ended with {:?}: {}", ended.code, ended.stderr)
    })?;
    Ok(ended)
}

/// Directories in one, hidden ones and the others.
fn directories(dir: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    paths.retain(|p| p.is_dir());
    paths.sort();
    let is_hidden = |p: &PathBuf| p.file_name().unwrap().as_encoded_bytes().starts_with(b".");
    paths.into_iter().partition(is_hidden)
}

/// Reads the results of a run, whose series have as many operations as its figures.
fn whole_run(dir: &Path) -> Result<Run, String> {
    let dir = RunDir::at(dir);
    let shown = dir.path().display();
    let failed = |e| format!("{shown}: {e}");
    let run = dir.read().map_err(failed)?;
    let rows = dir.read_intervals().map_err(failed)?;
    let mut histograms = Vec::new();
    dir.each_histogram(&mut |line| histograms.push(line))
        .map_err(failed)?;
    // Rows of operations without files have no figures.
    let tags: Vec<String> = run
        .operations
        .iter()
        .map(|row| tag_of(&row.name, row.kind))
        .collect();
    let has = |tag: &String| tags.contains(tag);
    let of_rows = rows
        .iter()
        .filter(|r| has(&tag_of_text(&r.operation, &r.kind)));
    let of_rows: u64 = of_rows.map(|r| r.ops).sum();
    let of_log = histograms.iter().filter(|h| has(&h.tag));
    let of_log: u64 = of_log.map(|h| h.histogram.count()).sum();
    let ops = run.operations.iter().map(|row| row.ops).sum::<u64>();
    ensure((of_rows, of_log) == (ops, ops), || {
        format!("{shown}: {ops} operations, {of_rows} in the rows and {of_log} in the log")
    })?;
    Ok(run)
}

/// Whether the index of the browser lists that number of results and calls none damaged.
fn check_index(root: &Path, expected: usize) -> Checked {
    if !root.exists() {
        return Ok(());
    }
    let mut index = Index::new(root);
    index.refresh().map_err(|e| e.to_string())?;
    let damaged = index.damaged();
    let listed = index.list(&Listing::default())?.total;
    ensure(damaged.is_empty() && listed == expected as u64, || {
        format!("the index has {listed} of {expected} results, and {damaged:?}")
    })
}

/// Whether a state is checked through the program. Through the library all are: starting thousands of
/// processes would take minutes.
fn is_by_program(state: &CrashState) -> bool {
    use plimsoll_testkit::crash_points::{Contents, Names};
    matches!(
        state.crash,
        Crash::Kill | Crash::PowerCut(Names::Kept, Contents::Lost)
    )
}

/// Recovers killed runs in a directory, if it exists.
fn recover(bench: &Bench, root: &str, state: &CrashState) -> Checked {
    if !bench.path(root).exists() {
        return Ok(());
    }
    if !is_by_program(state) {
        return match plimsoll_results::recover(&bench.path(root)) {
            Ok(all) => all
                .into_iter()
                .try_for_each(|one| one.map(|_| ()).map_err(|e| e.to_string())),
            Err(plimsoll_results::ResultsError::NothingLeft { .. }) => Ok(()),
            Err(e) => Err(e.to_string()),
        };
    }
    let ended = call(bench, &["report", "--recover", root])?;
    let is_none = ended.stderr.contains("no remains of a killed run");
    ensure(
        ended.code == Some(130) || ended.code == Some(0) || is_none,
        || format!("recovery ended with {:?}: {}", ended.code, ended.stderr),
    )
}

/// Whether a verdict is that of a run which was cut short.
fn is_cut_short(run: &Run) -> bool {
    run.validity.verdict == Verdict::Interrupted
}
