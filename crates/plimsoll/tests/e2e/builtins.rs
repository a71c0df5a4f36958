//! Every built-in workload runs for a second at reduced size.

use crate::common::{Bench, Ended};
use plimsoll_results::{Run, Verdict};
use std::sync::Mutex;

/// Workloads that run at the same time.
const AT_ONCE: usize = 3;

/// Names of built-in workloads, each with the `--set` parameters that make the workload small. The workload `tpcso` is
/// not in the list, because its files have fixed sizes, 140 GiB in all.
const CASES: &[&str] = &[
    "bringover nfiles=300",
    "compflow_demo nfiles=30 filesize=8k nthreads=2",
    "copyfiles nfiles=100 meanfilesize=4k",
    "createdelete-swing nfiles=50 filesize=8k meandirwidth=50",
    "createfiles nfiles=400 nthreads=4",
    "cvar_example filesize=1m",
    "deletefiles nfiles=400 nthreads=4",
    "filemicro_create count=64 iosize=64k",
    "filemicro_createfiles nfiles=400 count=150",
    "filemicro_createrand bytes=2m iosize=64k",
    "filemicro_delete nfiles=400 count=100 nthreads=4 filesize=4k",
    "filemicro_rread filesize=4m bytes=1m",
    "filemicro_rwrite filesize=4m bytes=1m",
    "filemicro_rwritedsync filesize=4m count=50",
    "filemicro_rwritefsync filesize=4m iters=100",
    "filemicro_seqread filesize=8m",
    "filemicro_seqwrite count=16 iosize=64k",
    "filemicro_seqwriterand count=100",
    "filemicro_seqwriterandvargam count=100 nthreads=2",
    "filemicro_seqwriterandvartab count=100 nthreads=2",
    "filemicro_statfile nfiles=200 filesize=1k nthreads=4",
    "filemicro_writefsync writeiters=8 fsynccount=5",
    "fileserver nfiles=200 filesize=8k nthreads=4",
    "fivestreamread filesize=2m",
    "fivestreamreaddirect filesize=2m",
    "fivestreamwrite filesize=2m",
    "fivestreamwritedirect filesize=2m",
    "listdirs nfiles=300 nthreads=4",
    "makedirs ndirs=300 nthreads=4",
    "mongo nfiles=50 filesize=4k",
    "multistreamread filesize=1m nthreads=4",
    "multistreamwrite filesize=1m nthreads=4",
    "netsfs nfiles=200 eventrate=0",
    "networkfs nfiles=500 eventrate=2",
    "oltp filesize=1m logfilesize=1m nshadows=8 ndbwriters=2 usermode=100",
    "openfiles nfiles=300 nthreads=4",
    "randomfileaccess nfiles=100 nthreads=2",
    "randomread filesize=4m",
    "randomrw filesize=4m",
    "randomwrite filesize=4m",
    "ratelimcopyfiles nfiles=50 filesize=4k eventrate=500",
    "removedirs ndirs=300 nthreads=4",
    "singlestreamread filesize=4m",
    "singlestreamreaddirect filesize=4m",
    "singlestreamwrite iosize=8k",
    "singlestreamwritedirect iosize=8k",
    "singlestreamwritefsync filesize=4m",
    "varmail nfiles=100 filesize=4k nthreads=4",
    "videoserver filesize=2m numactivevids=4 numpassivevids=6 nthreads=4 repintval=1",
    "webproxy nfiles=300 meanfilesize=4k nthreads=8",
    "webserver nfiles=100 filesize=4k nthreads=8",
    "writesync filesize=4m count=50",
];

/// Operation of a built-in workload that may not complete within a run of one second, because the workload paces the
/// operation.
const MAY_BE_IDLE: &str = "replaceinterval";

/// Runs the built-in workload of a line of [`CASES`], and returns a sentence for each expectation that the run does not
/// meet.
fn check(case: &str) -> Vec<String> {
    let bench = Bench::new();
    let work = bench.work();
    std::fs::create_dir(&work).unwrap();
    let (name, sets) = case.split_once(' ').unwrap();
    let sets = sets.split(' ').flat_map(|set| ["--set", set]);
    let args: Vec<&str> = sets.chain(["--time=1s"]).collect();
    let ended = bench.run_in_work(name, &args);
    let mut wrong = Vec::new();
    match ended.parsed() {
        Some(run) => wrong.extend(in_results(&ended, &run)),
        None => wrong.push(format!("no run.json was printed, code {:?}", ended.code)),
    }
    let left = std::fs::read_dir(&work).map(|entries| entries.count());
    if !matches!(left, Ok(0)) {
        wrong.push(format!("the work directory was empty before: {left:?}"));
    }
    let others = bench.left_but(&["work", "results"]);
    if !others.is_empty() {
        wrong.push(format!("beside the work directory there is {others:?}"));
    }
    if !wrong.is_empty() {
        wrong.push(format!("standard error:\n{}", ended.stderr));
    }
    wrong
}

fn in_results(ended: &Ended, run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    if run.validity.verdict != Verdict::Valid || ended.code != Some(0) {
        wrong.push(format!(
            "code {:?}, {:?}, {:?}",
            ended.code, run.validity, run.failure
        ));
    }
    if run.summary.errors > 0 || run.summary.ops == 0 {
        wrong.push(format!("{:?}", run.summary));
    }
    for row in &run.operations {
        if row.ops == 0 && row.name != MAY_BE_IDLE {
            wrong.push(format!("{} ({:?}) did nothing", row.name, row.kind));
        }
    }
    wrong
}

#[test]
fn every_builtin_runs_and_leaves_nothing() {
    let left = Mutex::new(CASES.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(case) = left.lock().unwrap().next() else {
                        return;
                    };
                    let found = check(case);
                    if !found.is_empty() {
                        let text = format!("== {case}\n  {}", found.join("\n  "));
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the built-in operation mixes, which the tests of the module `mixes` run.
const MIXES: [&str; 8] = [
    "ai-image",
    "database",
    "eda",
    "genomics",
    "nfs-sfs2008",
    "swbuild",
    "vda",
    "vdi",
];

#[test]
fn the_table_names_every_builtin() {
    let bench = Bench::new();
    let ended = Ended::of(bench.plimsoll(["workloads", "list", "--format=json"])).expect_code(0);
    let list: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let listed = list.as_array().unwrap().iter();
    let mut listed: Vec<&str> = listed.map(|w| w["name"].as_str().unwrap()).collect();
    let mut known: Vec<&str> = CASES.iter().map(|c| c.split(' ').next().unwrap()).collect();
    known.push("tpcso");
    known.extend(MIXES);
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(listed, known);
}

#[test]
fn tpcso_runs_on_nothing_and_says_what_it_would_need() {
    let bench = Bench::new();
    let sets = [
        "--set=nshadows=8",
        "--set=ndbwriters=2",
        "--set=usermode=100",
    ];
    let mut args = vec!["--target=null:", "--time=1s"];
    args.extend(sets);
    let run = bench.run("tpcso", &args).result(0);
    assert_eq!(run.validity.verdict, Verdict::Valid);
    assert!(run.summary.ops > 0);
    // The files of `tpcso` do not fit on the tmpfs, which has less than 140 GiB on every test machine.
    let bench = Bench::on_tmpfs();
    let ended =
        Ended::of(bench.plimsoll(["run", "tpcso", "--dry-run", "--dir", "x"])).expect_code(2);
    assert!(
        ended.stdout.contains("140 GiB to populate"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.contains("refused: populating takes 140 GiB"),
        "{}",
        ended.stderr
    );
}
