//! Settings that can do nothing are said to do nothing.

use crate::common::{Bench, Ended};

/// Notes of a run, as its results have them.
#[track_caller]
fn notes(bench: &Bench, workload: &str, more: &[&str], code: i32) -> Vec<String> {
    let run = bench.run_in_work(workload, more).result(code);
    run.notes.into_iter().map(|n| n.text).collect()
}

const SMALL: [&str; 2] = ["--set=nfiles=20", "--time=200ms"];

#[test]
fn a_cold_cache_where_there_is_none() {
    let with = |bench: &Bench, more: &[&str]| {
        let more = [&SMALL[..], &["--drop-caches"], more].concat();
        notes(bench, "varmail", &more, 0).join("\n")
    };
    let memory = Bench::on_tmpfs();
    let said = with(&memory, &[]);
    assert!(
        said.contains("--drop-caches changes nothing: the files of tmpfs"),
        "{said}"
    );
    let said = with(&memory, &["--target=null"]);
    assert!(
        said.contains("--drop-caches changes nothing: the target `null`"),
        "{said}"
    );
    let plan = Ended::of(memory.plimsoll([
        "run",
        "varmail",
        "--dry-run",
        "--target=null",
        "--drop-caches",
    ]));
    assert!(
        plan.stderr.contains("note: --drop-caches changes nothing"),
        "{}",
        plan.stderr
    );
    let said = with(&Bench::on_disk(), &[]);
    assert!(!said.contains("--drop-caches"), "{said}");
    let said = notes(&memory, "varmail", &SMALL, 0).join("\n");
    assert!(!said.contains("--drop-caches"), "{said}");
}

#[test]
fn a_rate_at_which_nothing_is_scheduled() {
    let bench = Bench::on_tmpfs();
    let more = [
        "--target=null",
        "--set=SWBUILD.rate=0.01",
        "--time=300ms",
        "--warmup=0s",
    ];
    // Whether an operation is due at all is up to the seed.
    let ended = bench.run_in_work("swbuild", &more);
    let run = ended.parsed().expect("results of a run without operations");
    let said: Vec<_> = run.notes.iter().map(|n| n.text.as_str()).collect();
    assert!(
        said.iter()
            .any(|n| n.contains("fewer than one operation is scheduled")),
        "{said:?}"
    );
    assert!(
        ended
            .stdout
            .contains("fewer than one operation is scheduled"),
        "{}",
        ended.stdout
    );
    let curve = ["curve", "swbuild", "--load=1,2", "--results=results"];
    let ended = Ended::of(bench.plimsoll([&curve[..], &more].concat()));
    assert!(
        ended
            .stdout
            .contains("load line: none: fewer than one operation is scheduled"),
        "{}",
        ended.stdout
    );
    let refused = bench.run_in_work("swbuild", &["--time=0s"]).refusal();
    assert!(refused.contains("a time above 0"), "{refused}");
}

#[test]
fn a_rate_without_a_limiter() {
    let bench = Bench::on_tmpfs();
    let more = ["--set=filesize=1m", "--time=200ms", "--rate=10"];
    let said = notes(&bench, "randomread", &more, 0).join("\n");
    assert!(
        said.contains("the rate of 10 events per second has no effect"),
        "{said}"
    );
    let limited = ["--time=200ms", "--rate=1000", "--set=nfiles=20"];
    let said = notes(
        &bench,
        "videoserver",
        &[&limited[..2], &["--target=null"]].concat(),
        0,
    )
    .join("\n");
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
    let none = md(&bench, &["--pattern=mdtest-easy", "-n=0"], 3);
    assert!(none.stdout.contains("no file is made"), "{}", none.stdout);
    let none = md(&bench, &["--pattern=ior-easy", "--transfers=0"], 3);
    assert!(
        none.stdout.contains("nothing is written"),
        "{}",
        none.stdout
    );
    let some = md(&bench, &["--pattern=mdtest-easy", "-n=3"], 0);
    assert!(!some.stdout.contains("no file is made"), "{}", some.stdout);
    let small = ["-P=5", "-D=1", "-I=2", "-R=1"];
    for option in ["-m", "-M"] {
        // Of more memory than any machine has, nothing is left over.
        let all = [&small[..], &[option, "1000000000"]].concat();
        let said = md(&bench, &all, 0).stdout;
        assert!(
            said.contains(&format!("{option} allocates no memory")),
            "{said}"
        );
    }
    let said = md(&bench, &small, 0).stdout;
    assert!(!said.contains("allocates no memory"), "{said}");
}
