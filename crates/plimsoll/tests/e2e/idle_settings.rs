//! Options without effect are refused, and settings of a workload without effect are noted.

use crate::common::{Bench, Ended};

/// Notes of a run, as its results have them.
#[track_caller]
fn notes(bench: &Bench, workload: &str, more: &[&str], code: i32) -> Vec<String> {
    let run = bench.run_in_work(workload, more).result(code);
    run.notes.into_iter().map(|n| n.text).collect()
}

const SMALL: [&str; 2] = ["--set=nfiles=20", "--time=200ms"];

#[test]
fn dropping_caches_where_there_are_none_is_refused() {
    let (memory, disk) = (Bench::on_tmpfs(), Bench::on_disk());
    let refused = |more: &[&str]| {
        let more = [&SMALL[..], &["--drop-caches"], more].concat();
        memory.run_in_work("varmail", &more).expect_code(2).stderr
    };
    for (more, why) in [
        (&[][..], "the files of tmpfs"),
        (&["--target=null"], "the target `null`"),
        (&["--target=null", "--dry-run"], "the target `null`"),
    ] {
        let said = refused(more);
        assert!(
            said.contains(&format!("--drop-caches has no effect: {why}")),
            "{said}"
        );
        assert!(said.contains("the target `posix`"), "{said}");
    }
    let said = notes(
        &disk,
        "varmail",
        &[&SMALL[..], &["--drop-caches"]].concat(),
        0,
    );
    assert!(!said.concat().contains("--drop-caches"), "{said:?}");
}

#[test]
fn a_rate_at_which_nothing_is_scheduled() {
    let bench = Bench::on_tmpfs();
    let more = ["--target=null", "--set=SWBUILD.rate=0.01", "--time=300ms"];
    let more = [&more[..], &["--warmup=0s"]].concat();
    let expected = "fewer than one operation is scheduled";
    // Whether an operation is due at all is up to the seed.
    let ended = bench.run_in_work("swbuild", &more);
    let run = ended.parsed().expect("results of a run without operations");
    let is_noted = run.notes.iter().any(|n| n.text.contains(expected));
    assert!(is_noted, "{:?}", run.notes);
    let curve = ["curve", "swbuild", "--load=1,2", "--results=results"];
    let said = Ended::of(bench.plimsoll([&curve[..], &more].concat())).stdout;
    let line = format!("load line: none: {expected}");
    assert!(said.contains(&line), "{said}");
    let refused = bench.run_in_work("swbuild", &["--time=0s"]).refusal();
    assert!(refused.contains("a time above 0"), "{refused}");
}

#[test]
fn a_rate_without_a_limiter() {
    let bench = Bench::on_tmpfs();
    let looks = "eventgen rate=10
        define fileset name=s,path=files,entries=4,prealloc
        define process name=p { thread name=t,memsize=1k { flowop statfile name=op,filesetname=s } }
        run 1";
    let workload = bench.workload(looks);
    let said = notes(&bench, &workload, &["--target=null"], 0).join("\n");
    let expected = "the rate of 10 events per second has no effect";
    assert!(said.contains(expected), "{said}");
    let limited = ["--time=200ms", "--set=eventrate=1000", "--target=null"];
    let said = notes(&bench, "videoserver", &limited, 0).join("\n");
    assert!(!said.contains("no effect"), "{said}");
}

fn md(bench: &Bench, more: &[&str], code: i32) -> Ended {
    let mut args = vec!["md", "--results=results"];
    args.extend(more);
    Ended::of(bench.plimsoll(args)).expect_code(code)
}

#[test]
fn patterns_that_do_nothing() {
    let bench = Bench::on_tmpfs();
    for (options, code, expected) in [
        ("--pattern=mdtest-easy -n=0", 3, "no file is made"),
        ("--pattern=ior-easy --transfers=0", 3, "nothing is written"),
        ("--pattern=mdtest-easy -n=3", 0, ""),
    ] {
        let said = md(&bench, &options.split(' ').collect::<Vec<_>>(), code).stdout;
        for note in ["no file is made", "nothing is written"] {
            assert_eq!(said.contains(note), note == expected, "{options}: {said}");
        }
    }
    let small = ["-P=5", "-D=1", "-I=2", "-R=1"];
    for option in ["-m", "-M"] {
        // Of more memory than any machine has, nothing is left over.
        let all = [&small[..], &[option, "1000000000"]].concat();
        let said = md(&bench, &all, 2).stderr;
        let expected = format!("{option} has no effect");
        assert!(said.contains(&expected), "{said}");
    }
    md(&bench, &small, 0);
}
