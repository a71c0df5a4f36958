//! Every built-in workload runs for a second at reduced size.

use crate::common::{Bench, Ended};
use plimsoll_results::{Run, Verdict};
use regex::Regex;
use std::sync::Mutex;

/// Workloads that run at the same time.
const AT_ONCE: usize = 3;

/// How a built-in workload is made small, and what it must do all the same.
struct Case {
    name: &'static str,
    /// Settings, separated by blanks.
    sets: &'static str,
    /// Rows that need not have operations after a second, separated by blanks; all others must.
    but: &'static str,
}

const fn case(name: &'static str, sets: &'static str, but: &'static str) -> Case {
    Case { name, sets, but }
}

/// `tpcso` is missing: its files have fixed sizes, 140 GiB in all.
const CASES: &[Case] = &[
    case("bringover", "nfiles=300", ""),
    case("compflow_demo", "nfiles=30 filesize=8k nthreads=2", ""),
    case("copyfiles", "nfiles=100 meanfilesize=4k", ""),
    case(
        "createdelete-swing",
        "nfiles=50 filesize=8k meandirwidth=50",
        "",
    ),
    case("createfiles", "nfiles=400 nthreads=4", ""),
    case("cvar_example", "filesize=1m", ""),
    case("deletefiles", "nfiles=400 nthreads=4", ""),
    case("filemicro_create", "count=64 iosize=64k", ""),
    case("filemicro_createfiles", "nfiles=400 count=150", ""),
    case("filemicro_createrand", "bytes=2m iosize=64k", ""),
    case(
        "filemicro_delete",
        "nfiles=400 count=100 nthreads=4 filesize=4k",
        "",
    ),
    case("filemicro_rread", "filesize=4m bytes=1m", ""),
    case("filemicro_rwrite", "filesize=4m bytes=1m", ""),
    case("filemicro_rwritedsync", "filesize=4m count=50", ""),
    case("filemicro_rwritefsync", "filesize=4m iters=100", ""),
    case("filemicro_seqread", "filesize=8m", ""),
    case("filemicro_seqwrite", "count=16 iosize=64k", ""),
    case("filemicro_seqwriterand", "count=100", ""),
    case("filemicro_seqwriterandvargam", "count=100 nthreads=2", ""),
    case("filemicro_seqwriterandvartab", "count=100 nthreads=2", ""),
    case(
        "filemicro_statfile",
        "nfiles=200 filesize=1k nthreads=4",
        "",
    ),
    case("filemicro_writefsync", "writeiters=8 fsynccount=5", ""),
    case("fileserver", "nfiles=200 filesize=8k nthreads=4", ""),
    case("fivestreamread", "filesize=2m", ""),
    case("fivestreamreaddirect", "filesize=2m", ""),
    case("fivestreamwrite", "filesize=2m", ""),
    case("fivestreamwritedirect", "filesize=2m", ""),
    case("listdirs", "nfiles=300 nthreads=4", ""),
    case("makedirs", "ndirs=300 nthreads=4", ""),
    case("mongo", "nfiles=50 filesize=4k", ""),
    case("multistreamread", "filesize=1m nthreads=4", ""),
    case("multistreamwrite", "filesize=1m nthreads=4", ""),
    case("netsfs", "nfiles=200 eventrate=0", ""),
    case("networkfs", "nfiles=500 eventrate=2", ""),
    case(
        "oltp",
        "filesize=1m logfilesize=1m nshadows=8 ndbwriters=2 usermode=100",
        "",
    ),
    case("openfiles", "nfiles=300 nthreads=4", ""),
    case("randomfileaccess", "nfiles=100 nthreads=2", ""),
    case("randomread", "filesize=4m", ""),
    case("randomrw", "filesize=4m", ""),
    case("randomwrite", "filesize=4m", ""),
    case(
        "ratelimcopyfiles",
        "nfiles=50 filesize=4k eventrate=500",
        "",
    ),
    case("removedirs", "ndirs=300 nthreads=4", ""),
    case("singlestreamread", "filesize=4m", ""),
    case("singlestreamreaddirect", "filesize=4m", ""),
    case("singlestreamwrite", "iosize=8k", ""),
    case("singlestreamwritedirect", "iosize=8k", ""),
    case("varmail", "nfiles=100 filesize=4k nthreads=4", ""),
    case(
        "videoserver",
        "filesize=2m numactivevids=4 numpassivevids=6 nthreads=4 repintval=1",
        "replaceinterval",
    ),
    case("webproxy", "nfiles=300 meanfilesize=4k nthreads=8", ""),
    case("webserver", "nfiles=100 filesize=4k nthreads=8", ""),
    case("writesync", "filesize=4m count=50", ""),
];

/// Runs a workload; returns what does not hold.
fn check(case: &Case) -> Vec<String> {
    let bench = Bench::new();
    let work = bench.work();
    std::fs::create_dir(&work).unwrap();
    let mut args = vec!["--time=1s"];
    args.extend(case.sets.split_whitespace().flat_map(|set| ["--set", set]));
    let ended = bench.run_in_work(case.name, &args);
    let mut wrong = Vec::new();
    match ended.parsed() {
        Some(run) => wrong.extend(in_results(case, &ended, &run)),
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

fn in_results(case: &Case, ended: &Ended, run: &Run) -> Vec<String> {
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
    let may_be_idle = |name: &str| case.but.split_whitespace().any(|n| n == name);
    for row in &run.operations {
        if row.ops == 0 && !may_be_idle(&row.name) {
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
                        let text = format!("== {}\n  {}", case.name, found.join("\n  "));
                        wrong.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Operation mixes; `mixes.rs` runs them.
const MIXES: [&str; 9] = [
    "ai-image",
    "database",
    "eda",
    "eda-blended",
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
    let mut known: Vec<&str> = CASES.iter().map(|c| c.name).collect();
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
    // A tmpfs has less than 140 GiB wherever these tests run; elsewhere the plan would be valid.
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

/// The sizes of more than a million files are not all added up.
#[test]
fn totals_of_very_many_files_are_marked_as_estimates() {
    let bench = Bench::on_tmpfs();
    let plan = |load: &str| {
        let ended =
            Ended::of(bench.plimsoll(["run", "nfs-sfs2008", "--dry-run", load, "--dir", "x"]));
        ended.expect_code(2)
    };
    // 68 000 files of 172 KiB on average, of which some exist at the start, for each unit of load.
    for (load, about) in [("--load=15", ""), ("--load=16", "about ")] {
        let ended = plan(load);
        let size = r"[0-9.]+ GiB";
        let space =
            format!("space     {about}{size} to populate, {about}{size} if every file exists");
        let refused = format!("populating takes {about}{size} and");
        for (pattern, text) in [(space, &ended.stdout), (refused, &ended.stderr)] {
            assert!(
                Regex::new(&pattern).unwrap().is_match(text),
                "{pattern}: {text}"
            );
        }
    }
}
