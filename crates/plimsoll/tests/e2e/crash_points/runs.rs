//! Results of single runs.

use super::*;
use plimsoll_results::{Annotations, ClockKind, RunWriter};
use plimsoll_testkit::crash_points::Change;
use std::fs::File;
use std::time::SystemTime;

/// Commands of the user, by which the recording tells how far the run is.
const MARKS: [&str; 2] = [
    "--event=before sh touch begun",
    "--event=after sh touch measured",
];

const RUN: [&str; 5] = [
    "run",
    "w.f",
    "--results=results",
    "--interval=1s",
    "--quiet",
];

fn run_args(more: &[&'static str]) -> Vec<&'static str> {
    [&RUN[..], &VIRTUAL, more].concat()
}

/// Number of changes after which a file exists.
#[track_caller]
fn created(recording: &Recording, name: &str) -> usize {
    let is_it = |c: &Change| matches!(c, Change::Create(path) if path == Path::new(name));
    recording
        .end_of(is_it)
        .unwrap_or_else(|| panic!("{name} is not made"))
}

#[test]
fn a_run_is_whole_or_recovered_after_any_crash() {
    check_run(&run_args(&MARKS));
}

/// Its intervals are written at the end, with the results of each rank.
#[test]
fn a_run_of_two_ranks_is_whole_or_recovered_after_any_crash() {
    let ranks = [
        "--target=null:?latency=10ms",
        "--time=400ms",
        "--interval=100ms",
        "--processes=2",
        "--per-rank",
    ];
    let args = ["run", "w.f", "--results=results", "--quiet"];
    let recording = check_run(&[&args[..], &ranks, &MARKS].concat());
    for rank in ["rank-0.json", "rank-1.json"] {
        let is_it = |c: &Change| matches!(c, Change::Create(path) if path.ends_with(rank));
        assert!(recording.end_of(is_it).is_some(), "{rank} is written");
    }
}

/// Records a run with [`MARKS`] and checks what crashes leave of its results.
fn check_run(args: &[&str]) -> Recording {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let recording = record(&bench, bench.plimsoll(args));
    assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
    let (begun, measured) = (
        created(&recording, "begun"),
        created(&recording, "measured"),
    );
    let whole = whole_run(bench.results()[0].path()).unwrap();
    assert_eq!(whole.validity.verdict, Verdict::Valid);
    check_each(&recording, |bench, state| {
        let root = bench.path("results");
        // What has its name is whole.
        let (_, published) = directories(&root);
        for dir in &published {
            let run = whole_run(dir)?;
            ensure(run.summary.ops == whole.summary.ops, || {
                format!("{} operations", run.summary.ops)
            })?;
        }
        ensure(state.changes < measured || published.len() == 1, || {
            "the results are lost".into()
        })?;
        check_index(&root, published.len())?;
        recover(bench, "results", state)?;
        let (_, recovered) = directories(&root);
        ensure(state.changes < begun || recovered.len() == 1, || {
            format!("{recovered:?} recovered")
        })?;
        for dir in &recovered {
            let run = whole_run(dir)?;
            let is_all = run.summary.ops == whole.summary.ops;
            ensure(is_cut_short(&run) || is_all, || {
                format!("{} operations are valid", run.summary.ops)
            })?;
            if is_by_program(state) {
                let told = call(bench, &["report", dir.to_str().unwrap()])?;
                ensure(told.stdout.contains("w: "), || told.stderr.clone())?;
            }
        }
        second_run(bench, state)?;
        let (hidden, now) = directories(&root);
        let second = usize::from(is_by_program(state));
        ensure(now.len() == recovered.len() + second, || {
            format!("{now:?} after a second run")
        })?;
        check_index(&root, now.len())?;
        let unowned = |dir: &&PathBuf| dir.join(".owner").exists();
        let left: Vec<_> = hidden.iter().filter(unowned).collect();
        ensure(left.is_empty(), || format!("{left:?} stays"))?;
        for dir in &now {
            whole_run(dir)?;
        }
        Ok(())
    });
    recording
}

/// Makes a run in the same results, or begins one.
fn second_run(bench: &Bench, state: &CrashState) -> Checked {
    if is_by_program(state) {
        return call_well(bench, &run_args(&[])).map(|_| ());
    }
    let (root, plan) = (bench.path("results"), plimsoll_plan::Plan::empty("w"));
    let begun = RunWriter::create(&root, &plan, SystemTime::now(), ClockKind::Virtual, None);
    begun.map(|_| ()).map_err(|e| e.to_string())
}

/// A crash of the recovery of a run that was killed after its second interval.
#[test]
fn a_recovery_is_whole_after_any_crash() {
    let bench = Bench::on_tmpfs();
    bench.workload(LOOKERS);
    let recording = record(&bench, bench.plimsoll(run_args(&[])));
    let is_synced = |c: &Change| matches!(c, Change::Sync(p) if p.ends_with("intervals.csv"));
    let synced = recording.end_of(is_synced).unwrap();
    let states = recording.crash_states();
    let killed = states
        .iter()
        .rfind(|s| s.changes < synced && s.crash == Crash::Kill);
    let place = Bench::on_tmpfs();
    killed.unwrap().make(place.root()).unwrap();
    // The last interval is not whole.
    let (hidden, _) = directories(&place.path("results"));
    let log = hidden[0].join("histograms.hlog");
    let length = log.metadata().unwrap().len();
    File::options()
        .write(true)
        .open(&log)
        .unwrap()
        .set_len(length - 9)
        .unwrap();
    let recovery = record(&place, place.plimsoll(["report", "--recover", "results"]));
    assert_eq!(recovery.status.code(), Some(0), "{}", recovery.stderr);
    let (_, recovered) = directories(&place.path("results"));
    let expected = whole_run(&recovered[0]).unwrap();
    assert!(expected.summary.ops > 0 && is_cut_short(&expected));
    check_each(&recovery, |bench, state| {
        recover(bench, "results", state)?;
        let (_, now) = directories(&bench.path("results"));
        ensure(now.len() == 1, || format!("{now:?}"))?;
        let run = whole_run(&now[0])?;
        ensure(run == expected, || "it is another run".into())
    });
}

#[test]
fn tags_are_the_old_or_the_new_ones_after_any_crash() {
    let bench = with_results();
    let tags = [None, Some("nvme"), None];
    for (step, option) in ["--add=nvme", "--remove=nvme"].into_iter().enumerate() {
        let recording = record(
            &bench,
            bench.plimsoll(["results", "tag", "results/run", option]),
        );
        assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
        let end = recording.changes.len();
        check_each(&recording, |bench, state| {
            let dir = bench.path("results/run");
            whole_run(&dir)?;
            let found = Annotations::read(&dir).map_err(|e| e.to_string())?;
            let found = found.tag_list();
            let [old, new] = [tags[step], tags[step + 1]].map(Option::unwrap_or_default);
            let is_one = found == new || (found == old && state.changes < end);
            ensure(is_one, || format!("the tags are `{found}`"))?;
            check_index(&bench.path("results"), 1)?;
            call_well(bench, &["results", "tag", "results/run", "--add=other"])?;
            // What was begun does not keep results from being deleted.
            let prune = [
                "results",
                "prune",
                "--results=results",
                "--older-than=0m",
                "--yes",
            ];
            let untag = ["results", "tag", "results/run", "--remove=nvme,other"];
            call_well(bench, &untag)?;
            call_well(bench, &prune)?;
            ensure(!dir.exists(), || "they cannot be deleted".into())
        });
    }
}

#[test]
fn results_go_as_a_whole_after_any_crash() {
    let prune = [
        "results",
        "prune",
        "--results=results",
        "--older-than=0m",
        "--yes",
    ];
    let bench = with_results();
    let recording = record(&bench, bench.plimsoll(prune));
    assert_eq!(recording.status.code(), Some(0), "{}", recording.stderr);
    assert_eq!(bench.results(), []);
    check_each(&recording, |bench, _| {
        let dir = RunDir::at(&bench.path("results/run"));
        let lacks = dir.lacks();
        if dir.exists() && !lacks.is_empty() {
            // It says what it lacks.
            let told = call(bench, &["report", "results/run"])?;
            let said = format!("{}{}", told.stdout, told.stderr);
            let is_told = lacks.iter().all(|file| said.contains(file));
            ensure(is_told, || format!("no {lacks:?} in {said}"))?;
        }
        call_well(bench, &prune)?;
        let left = std::fs::read_dir(dir.path()).into_iter().flatten().count();
        ensure(left == 0, || format!("{left} files stay"))
    });
}
