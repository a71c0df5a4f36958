//! Crashes of series: curves, searches, profiles and repeated runs are resumed after every crash.

use super::*;
use crate::common::series;
use plimsoll_results::{SeriesDir, SeriesWriter};
use plimsoll_testkit::crash_points::Change;

/// The runs that a series lists, each with figures that equal the run's results.
fn listed(dir: &Path) -> Result<Vec<String>, String> {
    let dir = SeriesDir::at(dir);
    let series = dir.read().map_err(|e| e.to_string())?;
    let one = |entry: &plimsoll_results::SeriesRun| {
        let run = whole_run(&dir.path().join(&entry.directory))?;
        let (name, mean) = (&entry.directory, entry.mean_ms);
        ensure(Some(run.summary.mean_ms) == mean, || {
            format!("{name} has another mean")
        })?;
        let (achieved, verdict) = (entry.achieved_ops_per_s, entry.verdict);
        Ok(format!("{name} {achieved} {mean:?} {verdict:?}"))
    };
    series.runs.iter().map(one).collect()
}

/// Directories of runs below one, which has their names.
fn runs_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for dir in directories(dir).1 {
        match dir.join("run.json").exists() {
            true => found.push(dir),
            false => runs_below(&dir, found),
        }
    }
}

/// Number of runs that are over: a further one had begun in the results.
fn ended_runs(recording: &Recording, state: &CrashState) -> usize {
    let is_begin = |c: &&Change| match c {
        Change::MakeDir(path) => {
            let name = path.file_name().unwrap().as_encoded_bytes();
            name.starts_with(b".plimsoll-") && path.components().count() > 2
        }
        _ => false,
    };
    let begun = recording.changes[..state.changes]
        .iter()
        .filter(is_begin)
        .count();
    begun.saturating_sub(1)
}

/// Records a command, and checks the series that each possible crash leaves.
fn check(bench: &Bench, command: Command) {
    let recording = record(bench, command);
    assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
    let expected = listed(bench.results()[0].path()).unwrap();
    assert!(expected.len() > 1, "{expected:?}");
    check_each(&recording, |bench, state| {
        let root = bench.path("results");
        let ended = ended_runs(&recording, state);
        let (_, published) = directories(&root);
        let Some(dir) = published.first() else {
            ensure(ended == 0, || "the results are lost".into())?;
            return recover(bench, "results", state);
        };
        check_index(&root, 1)?;
        let (before, mut there) = (listed(dir)?, vec![]);
        ensure(expected.starts_with(&before), || format!("{before:?}"))?;
        runs_below(dir, &mut there);
        ensure(before.len().max(there.len()) >= ended, || {
            format!("{} runs of {ended}", there.len())
        })?;
        resume(bench, dir, &expected, state)?;
        there.clear();
        runs_below(dir, &mut there);
        for run in &there {
            whole_run(run)?;
            let name = run.file_name().unwrap().to_str().unwrap();
            // A second one of a name is one that was measured again although it was complete.
            ensure(!name.ends_with("-2"), || {
                format!("{} was made again", run.display())
            })?;
        }
        if is_by_program(state) {
            call_well(bench, &["report", dir.to_str().unwrap()])?;
        }
        Ok(())
    });
}

/// Resumes a series and checks that the series equals a series without a crash.
fn resume(bench: &Bench, dir: &Path, expected: &[String], state: &CrashState) -> Checked {
    if !is_by_program(state) {
        return SeriesWriter::resume(dir)
            .map(|_| ())
            .map_err(|e| e.to_string());
    }
    let before = listed(dir)?;
    let ended = call(bench, &["resume", dir.to_str().unwrap()])?;
    // `resume` refuses a complete series; a crash after the last run may leave one.
    let is_complete = ended.code == Some(2) && ended.stderr.contains("is complete");
    let is_complete = is_complete && before == expected;
    ensure(ended.code == Some(0) || is_complete, || {
        format!("resume ended with {:?}: {}", ended.code, ended.stderr)
    })?;
    let now = listed(dir)?;
    ensure(now == expected, || {
        format!("{now:?} after resume, not {expected:?}")
    })
}

const TIMES: [&str; 2] = ["--time=2s", "--warmup=0s"];

#[test]
fn a_curve_is_resumed_after_any_crash() {
    let bench = Bench::on_tmpfs();
    let more = [
        &TIMES[..],
        &["--load=1,3", "--target=null:?latency=10ms&clock=virtual"],
    ]
    .concat();
    check(&bench, series::command(&bench, "curve", &more));
}

#[test]
fn a_search_is_resumed_after_any_crash() {
    let bench = Bench::on_tmpfs();
    let search = [
        "--max-load=3",
        "--start-load=3",
        "--confirm-runs=2",
        "--target=null:?latency=10ms&clock=virtual",
    ];
    let more = [&TIMES[..], &search].concat();
    check(&bench, series::command(&bench, "find", &more));
}

#[test]
fn a_profile_is_resumed_after_any_crash() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let profile = "DEFAULTS { runtime = 2; filesystem = n; dir = d; stats = results; }\n\
                   CONFIG a { personality = w; }\nCONFIG b { personality = w; }\n";
    std::fs::write(bench.path("p.prof"), profile).unwrap();
    let args = [
        "profile",
        "p.prof",
        "--filesystem=n=null:?latency=10ms&clock=virtual",
    ];
    check(&bench, bench.plimsoll(args));
}

#[test]
fn repeated_runs_are_resumed_after_any_crash() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let args = ["run", "w.f", "--results=results", "--repeat=2"];
    check(&bench, bench.plimsoll([&args[..], &VIRTUAL].concat()));
}
