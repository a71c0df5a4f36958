//! Tests of `plimsoll resume` with every kind of series.

use crate::common::series::{self, cut, edit, only, parsed, resume};
use crate::common::{Bench, Ended, MARKER, started_series, tree};
use plimsoll_results::{SeriesDir, SeriesState, SeriesWriter, Verdict};
use std::process::Command;

/// A workload that reads attributes of 20 files with two threads, so that the files stay whole.
pub const LOOKER: &str = "\
set $nfiles=20
set $nthreads=2
define fileset name=s,path=files,entries=$nfiles,size=4k,dirwidth=8,prealloc
define process name=p { thread name=t,memsize=1m,instances=$nthreads {
  flowop statfile name=look,filesetname=s
} }
run 3600
";

const PROFILE: &str = "CONFIG lookers { personality = w; nthreads = 1, 2; }\n";

/// A kind of series, with the command that begins the series.
struct Kind {
    arguments: &'static [&'static str],
    /// Further arguments of a series in real time.
    in_real_time: &'static [&'static str],
    /// Directory of the first run.
    first: &'static str,
    /// Whether the runs share files, which stay until the series is complete.
    shares_files: bool,
}

const CURVE: Kind = Kind {
    arguments: &["curve", "users.toml", "--load=1..4"],
    in_real_time: &[],
    first: "point-01-load-1",
    shares_files: true,
};

/// Eight servers with a latency of 4 ms sustain 21 users, each of whom requests 100 operations per second.
const SEARCH: Kind = Kind {
    arguments: &[
        "find",
        "users.toml",
        "--max-load=25",
        "--start-load=18",
        "--resolution=1",
    ],
    in_real_time: &[],
    first: "run-01-load-18",
    shares_files: true,
};

const PROFILES: Kind = Kind {
    arguments: &["profile", "p.prof", "--repeat=2"],
    in_real_time: &[],
    first: "local/lookers,nthreads=1/run-01",
    shares_files: false,
};

const REPEATS: Kind = Kind {
    arguments: &["run", "w.f", "--repeat=3"],
    in_real_time: &[],
    first: "run-01",
    shares_files: false,
};

const PAIRS: Kind = Kind {
    arguments: &["ab", "w.f", "--pairs=2", "--set=B:nthreads=3"],
    in_real_time: &["--settle=0s"],
    first: "pair-01-A",
    shares_files: false,
};

const SWEEP: Kind = Kind {
    arguments: &["curve", "w.f", "--vary=nthreads=1,2,3"],
    in_real_time: &[],
    first: "nthreads=1",
    shares_files: true,
};

/// Eight servers sustain eight threads without a queue.
const VALUES: Kind = Kind {
    arguments: &["find", "w.f", "--vary=nthreads", "--until=p99 > 5ms"],
    in_real_time: &[],
    first: "run-01-nthreads-2",
    shares_files: true,
};

const KINDS: [&Kind; 7] = [
    &CURVE, &SEARCH, &PROFILES, &REPEATS, &PAIRS, &SWEEP, &VALUES,
];

impl Kind {
    /// The command that begins the series, with JSON on standard output.
    fn command(&self, bench: &Bench, more: &[&str]) -> Command {
        bench.workload(LOOKER);
        std::fs::write(bench.path("users.toml"), series::USERS).unwrap();
        std::fs::write(bench.path("p.prof"), PROFILE).unwrap();
        let mut command = bench.plimsoll(self.arguments);
        command.args(["--results=results", "--format=json", "--warmup=0s"]);
        command.args(more);
        command
    }

    /// Measures a complete series in virtual time.
    fn complete(&self, bench: &Bench) -> SeriesDir {
        let target = "--target=null:?latency=4ms&servers=8&clock=virtual";
        let more = ["--time=10s", target];
        Ended::of(self.command(bench, &more)).expect_code(0);
        only(bench)
    }

    /// Interrupts a series in the first run, with files in the directory `work`.
    fn interrupted(&self, bench: &Bench) -> SeriesDir {
        let more = [&["--time=1h", "--dir=work"], self.in_real_time].concat();
        let command = self.command(bench, &more);
        let going = started_series(command, &bench.path("results"));
        going.interrupt();
        let ended = going.end().expect_code(130);
        let (series, dir) = (parsed(&ended), only(bench));
        assert_eq!(dir.read().unwrap(), series);
        assert_eq!(series.state, SeriesState::Interrupted);
        let verdicts: Vec<Verdict> = series.runs.iter().map(|run| run.verdict).collect();
        assert_eq!(verdicts, [Verdict::Interrupted]);
        assert_eq!(runs_below(&dir), [format!("{}-interrupted", self.first)]);
        assert_eq!(!tree(&bench.work()).0.is_empty(), self.shares_files);
        dir
    }
}

/// Paths of all run directories in a series directory, relative to the series directory, sorted.
fn runs_below(dir: &SeriesDir) -> Vec<String> {
    let files = tree(dir.path()).0.into_keys();
    let runs = files.filter_map(|path| Some(path.strip_suffix("/run.json")?.to_owned()));
    let mut runs: Vec<String> = runs.collect();
    runs.sort();
    runs
}

#[test]
fn an_interrupted_series_is_resumed_in_another_directory_on_its_files() {
    for kind in KINDS {
        let bench = Bench::on_tmpfs();
        let dir = kind.interrupted(&bench);
        let elsewhere = bench.path("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let mut command = bench.plimsoll(["resume"]);
        command.arg(dir.path()).current_dir(&elsewhere);
        let again = started_series(command, &bench.path("results"));
        again.interrupt();
        let ended = again.end().expect_code(130);
        let hint = format!("resume with plimsoll resume {}", dir.path().display());
        assert!(ended.stdout.contains(&hint), "{}", ended.stdout);
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
        // The interrupted run is no longer listed, but its results stay.
        let runs = series::runs_of(&dir);
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].plan.work_dir.dir, bench.work());
        let first = kind.first;
        let names = ["", "-2"].map(|end| format!("{first}-interrupted{end}"));
        assert_eq!(runs_below(&dir), names);
        assert_eq!(!tree(&bench.work()).0.is_empty(), kind.shares_files);
        if kind.shares_files {
            Ended::of(bench.plimsoll(["clean", "work"])).expect_code(0);
        }
        let known = ["results", "w.f", "users.toml", "p.prof", "elsewhere"];
        assert_eq!(bench.left_but(&known), [""; 0]);
    }
}

#[test]
fn a_series_that_was_killed_is_resumed_to_the_same_end() {
    for (kind, jobs) in [
        (&CURVE, "--jobs=1"),
        (&CURVE, "--jobs=2"),
        (&SEARCH, "--jobs=1"),
        (&PROFILES, "--jobs=1"),
        (&PROFILES, "--jobs=2"),
        (&REPEATS, "--jobs=1"),
        (&REPEATS, "--jobs=2"),
        (&PAIRS, "--jobs=1"),
        (&PAIRS, "--jobs=2"),
        (&SWEEP, "--jobs=1"),
        (&SWEEP, "--jobs=2"),
        (&VALUES, "--jobs=1"),
    ] {
        let bench = Bench::on_tmpfs();
        let dir = kind.complete(&bench);
        let refused = resume(&bench, &dir, &[jobs]).refusal();
        assert!(refused.contains("is complete"), "{refused}");
        let whole = cut(&dir, 1);
        assert!(whole.runs.len() > 2);
        let mut resumed = parsed(&resume(&bench, &dir, &[jobs]).expect_code(0));
        assert_eq!(dir.read().unwrap(), resumed);
        assert_eq!(resumed.runs[0], whole.runs[0]);
        // In virtual time, runs with the same seed are equal except for `started_at`.
        for (again, before) in resumed.runs.iter_mut().zip(&whole.runs) {
            again.started_at.clone_from(&before.started_at);
        }
        assert_eq!(resumed, whole);
    }
}

#[test]
fn a_series_that_is_refused_when_it_is_resumed_keeps_its_results() {
    for kind in KINDS {
        let bench = Bench::on_tmpfs();
        let dir = kind.interrupted(&bench);
        let directories = tree(dir.path()).1;
        // The work directory now contains a foreign file and no marker.
        let _ = std::fs::remove_file(bench.work().join(MARKER));
        std::fs::create_dir_all(bench.work()).unwrap();
        std::fs::write(bench.work().join("thesis.tex"), "mine\n").unwrap();
        let series = parsed(&resume(&bench, &dir, &[]).expect_code(1));
        assert_eq!(series.state, SeriesState::Failed);
        let reason = series.stop_reason.as_ref().unwrap();
        assert_eq!(reason.code, "refused");
        let expected = "was not created by Plimsoll";
        assert!(reason.text.contains(expected), "{reason:?}");
        assert_eq!((dir.read().unwrap(), series.runs.len()), (series, 0));
        assert_eq!(tree(dir.path()).1, directories);
        let thesis = std::fs::read_to_string(bench.work().join("thesis.tex"));
        assert_eq!(thesis.unwrap(), "mine\n");
    }
}

#[test]
fn a_series_that_cannot_be_resumed_is_refused_and_stays_as_it_is() {
    let bench = Bench::on_tmpfs();
    let dir = REPEATS.complete(&bench);
    let whole = cut(&dir, 1);
    let left = dir.read().unwrap();
    let search = Bench::on_tmpfs();
    let searched = SEARCH.complete(&search);
    cut(&searched, 1);
    let jobs = resume(&search, &searched, &["--jobs=2"]).refusal();
    assert!(jobs.contains("expected --jobs 1"), "{jobs}");
    let two = resume(&bench, &dir, &["--processes=2"]).refusal();
    let expected = "was started with 1 process and there are 2 now";
    assert!(two.contains(expected), "{two}");
    // `resume` does not accept options that change the measurement.
    let seed = resume(&bench, &dir, &["--seed=3"]).refusal();
    assert!(seed.contains("unexpected argument '--seed'"), "{seed}");
    let held = SeriesWriter::resume(dir.path()).unwrap();
    let busy = resume(&bench, &dir, &[]).refusal();
    let expected = "is being written by another process";
    assert!(busy.contains(expected), "{busy}");
    drop(held);
    let nowhere = Ended::of(bench.plimsoll(["resume", "nowhere"])).refusal();
    let expected = "cannot read nowhere/series.json";
    assert!(nowhere.contains(expected), "{nowhere}");
    assert_eq!(dir.read().unwrap(), left);
    edit(&dir, |series| series.ranks = 2);
    let one = resume(&bench, &dir, &[]).refusal();
    let expected = "was started with 2 processes and there is 1 now";
    assert!(one.contains(expected), "{one}");
    edit(&dir, |series| series.ranks = 1);
    let resumed = parsed(&resume(&bench, &dir, &[]).expect_code(0));
    assert_eq!(resumed.runs.len(), whole.runs.len());
}

#[test]
fn runs_are_not_written_outside_of_the_directory_of_their_series() {
    let bench = Bench::on_tmpfs();
    let dir = PROFILES.complete(&bench);
    cut(&dir, 2);
    edit(&dir, |series| {
        series.configurations[1].directory = "../../outside".into();
    });
    let failed = parsed(&resume(&bench, &dir, &[]).expect_code(1));
    assert_eq!((failed.state, failed.runs.len()), (SeriesState::Failed, 2));
    let known = ["results", "w.f", "users.toml", "p.prof"];
    assert_eq!(bench.left_but(&known), [""; 0]);
    assert_eq!(bench.results().len(), 1);
}
