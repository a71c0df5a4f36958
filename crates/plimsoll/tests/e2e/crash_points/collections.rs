//! Results that consist of runs: curves, searches, profiles and repeated runs, and how they go on.

use super::*;
use crate::common::load_tests;
use plimsoll_results::{
    CurveDir, CurvePoint, CurveWriter, FindDir, FindWriter, ProfileDir, ProfileWriter, RepeatsDir,
};
use plimsoll_testkit::crash_points::Change;

/// A kind of results that consist of runs.
struct Subject {
    /// The command that resumes them; `None` if nothing does.
    command: Option<&'static str>,
    /// What there is of them, run by run.
    figures: fn(&Path) -> Result<Vec<String>, String>,
    /// Resumes them without measuring anything.
    resume: fn(&Path) -> Checked,
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn of_point(dir: &Path, point: &CurvePoint) -> Result<String, String> {
    let run = whole_run(&dir.join(&point.run))?;
    let (achieved, mean) = (point.achieved_ops_per_s, point.mean_ms);
    ensure(Some(run.summary.mean_ms) == mean, || {
        format!("{} has another mean", point.run)
    })?;
    Ok(format!(
        "{} {achieved} {mean:?} {:?}",
        point.load, point.verdict
    ))
}

const CURVE: Subject = Subject {
    command: Some("curve"),
    figures: |dir| {
        let curve = CurveDir::at(dir).read().map_err(text)?;
        curve.points.iter().map(|p| of_point(dir, p)).collect()
    },
    resume: |dir| CurveWriter::resume(dir).map(|_| ()).map_err(text),
};

const SEARCH: Subject = Subject {
    command: Some("find"),
    figures: |dir| {
        let search = FindDir::at(dir).read().map_err(text)?;
        search
            .runs
            .iter()
            .map(|r| of_point(dir, &r.point))
            .collect()
    },
    resume: |dir| FindWriter::resume(dir).map(|_| ()).map_err(text),
};

const PROFILE: Subject = Subject {
    command: Some("profile"),
    figures: |dir| {
        let profile = ProfileDir::at(dir).read().map_err(text)?;
        let ended = profile.cases.iter().filter_map(|case| {
            let results = case.results.as_ref()?;
            let run = whole_run(&dir.join(results));
            Some(run.map(|run| format!("{results} {}", run.summary.ops)))
        });
        ended.collect()
    },
    resume: |dir| ProfileWriter::resume(dir).map(|_| ()).map_err(text),
};

const REPEATS: Subject = Subject {
    command: None,
    figures: |dir| {
        let runs = RepeatsDir::at(dir).runs().map_err(text)?;
        let one = |run: &RunDir| {
            Ok(format!(
                "{} {}",
                run.name(),
                whole_run(run.path())?.summary.ops
            ))
        };
        runs.iter().map(one).collect()
    },
    resume: |_| Ok(()),
};

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

/// Records a command, and checks what crashes leave of its results.
fn check(subject: &Subject, bench: &Bench, command: Command) {
    let recording = record(bench, command);
    assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
    let expected = (subject.figures)(bench.results()[0].path()).unwrap();
    assert!(expected.len() > 1, "{expected:?}");
    check_each(&recording, |bench, state| {
        let root = bench.path("results");
        let ended = ended_runs(&recording, state);
        let (_, published) = directories(&root);
        let Some(dir) = published.first() else {
            ensure(ended == 0, || "the results are lost".into())?;
            return recover(bench, "results", state);
        };
        check_index(bench, &root, 1)?;
        let (listed, mut there) = ((subject.figures)(dir)?, vec![]);
        ensure(expected.starts_with(&listed), || format!("{listed:?}"))?;
        runs_below(dir, &mut there);
        ensure(listed.len().max(there.len()) >= ended, || {
            format!("{} runs of {ended}", there.len())
        })?;
        go_on(subject, bench, dir, (&expected, state))?;
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

/// Resumes results, which then are as if nothing had happened.
fn go_on(
    subject: &Subject,
    bench: &Bench,
    dir: &Path,
    (expected, state): (&[String], &CrashState),
) -> Checked {
    let shown = dir.to_str().unwrap();
    let listed = (subject.figures)(dir)?;
    match subject.command {
        Some(command) if is_by_program(state) => {
            let ended = call(bench, &[command, "--resume", shown])?;
            // Only if nothing was left to list.
            let is_complete = ended.code == Some(2) && ended.stderr.contains("is complete");
            let is_complete = is_complete && listed == expected;
            ensure(ended.code == Some(0) || is_complete, || {
                format!("--resume ended with {:?}: {}", ended.code, ended.stderr)
            })?;
            let now = (subject.figures)(dir)?;
            ensure(now == expected, || {
                format!("{now:?} after --resume, not {expected:?}")
            })
        }
        Some(_) => (subject.resume)(dir),
        None => recover(bench, "results", state),
    }
}

const TIMES: [&str; 3] = ["--time=2s", "--warmup=0s", "--clock=virtual"];

#[test]
fn a_curve_goes_on_after_any_crash() {
    let bench = Bench::on_tmpfs();
    let more = [&TIMES[..], &["--load=1,3", "--target=null:?latency=10ms"]].concat();
    check(&CURVE, &bench, load_tests::command(&bench, "curve", &more));
}

#[test]
fn a_search_goes_on_after_any_crash() {
    let bench = Bench::on_tmpfs();
    let search = [
        "--max-load=3",
        "--start-load=3",
        "--confirm-runs=2",
        "--target=null:?latency=10ms",
    ];
    let more = [&TIMES[..], &search].concat();
    check(&SEARCH, &bench, load_tests::command(&bench, "find", &more));
}

#[test]
fn a_profile_goes_on_after_any_crash() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let profile = "DEFAULTS { runtime = 2; filesystem = n; dir = d; stats = results; }\n\
                   CONFIG a { personality = w; }\nCONFIG b { personality = w; }\n";
    std::fs::write(bench.path("p.prof"), profile).unwrap();
    let args = [
        "profile",
        "p.prof",
        "--filesystem=n=null:?latency=10ms",
        "--clock=virtual",
    ];
    check(&PROFILE, &bench, bench.plimsoll(args));
}

#[test]
fn repeated_runs_are_whole_after_any_crash() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let args = ["run", "w.f", "--results=results", "--repeat=2"];
    check(
        &REPEATS,
        &bench,
        bench.plimsoll([&args[..], &VIRTUAL].concat()),
    );
}
