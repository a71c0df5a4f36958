//! `plimsoll md` on cold caches, past the page cache, and after a warm-up.

use crate::common::{Bench, Ended};
use plimsoll_results::Run;
use plimsoll_testkit::is_cached;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A task of 2 sets of 20 objects a rank, each a page.
const PAGES: [&str; 3] = ["-P=20", "-D=2", "-S=4096"];

fn md(bench: &Bench, more: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["md", "--results"]);
    command.arg(bench.path("results")).args(PAGES).args(more);
    Ended::of(command)
}

fn last_run(bench: &Bench) -> Run {
    bench.results().pop().unwrap().read().unwrap()
}

/// Objects of one set that are in the page cache, by their numbers.
fn cached(bench: &Bench, set: &str) -> BTreeSet<u64> {
    let entries = std::fs::read_dir(bench.path("out").join(set)).unwrap();
    let paths: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    let number = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.strip_prefix("file-").unwrap().parse().unwrap()
    };
    let cached = paths.iter().filter(|p| is_cached(p, 0).unwrap());
    cached.map(|p| number(p)).collect()
}

#[test]
fn cold_drops_what_an_earlier_run_left() {
    let bench = Bench::on_disk();
    md(&bench, &["-1"]).expect_code(0);
    let read = ["-2", "--read-only", "-I=1", "-R=1"];
    md(&bench, &read).expect_code(0);
    let all: BTreeSet<u64> = (0..20).collect();
    assert_eq!(cached(&bench, "0_0"), all, "they were written a moment ago");
    md(&bench, &[&read[..], &["--drop-caches"]].concat()).expect_code(0);
    for set in ["0_0", "0_1"] {
        assert_eq!(cached(&bench, set), BTreeSet::from([0]), "{set}");
    }
    md(&bench, &["-3", "--drop-caches"]).expect_code(0);
    assert!(!bench.path("out").exists());
}

#[test]
fn cold_drops_what_every_rank_wrote_and_read_before_each_phase() {
    let bench = Bench::on_disk();
    let more = ["-1", "-2", "-I=5", "-R=2", "--processes=2"];
    md(&bench, &[&more[..], &["--drop-caches"]].concat()).expect_code(0);
    // Of each set 10 objects were removed and 10 were made, half of those by the last phase.
    for set in ["0_0", "0_1", "1_0", "1_1"] {
        assert_eq!(cached(&bench, set), (25..30).collect(), "{set}");
    }
    md(&bench, &["-3", "--processes=2"]).expect_code(0);
}

#[test]
fn cold_before_ior_reads_drops_the_files_it_wrote() {
    let bench = Bench::on_disk();
    let ior = |more: &[&str]| {
        let mut command = bench.plimsoll(["md", "--pattern=ior-hard", "--transfers=20", "-w=0"]);
        command
            .arg("--results")
            .arg(bench.path("results"))
            .args(more);
        Ended::of(command)
    };
    ior(&["--drop-caches", "--processes=2"]).expect_code(0);
    // The caches of the whole machine are root's alone.
    let as_root = rustix::process::geteuid().is_root();
    let code = if as_root { 0 } else { 2 };
    ior(&["--drop-caches=system", "--dry-run"]).expect_code(code);
}

#[test]
fn direct_transfers_leave_nothing_in_the_page_cache() {
    let bench = Bench::on_disk();
    md(&bench, &["-1", "--direct"]).expect_code(0);
    for set in ["0_0", "0_1"] {
        assert_eq!(cached(&bench, set), BTreeSet::new(), "{set}");
    }
    md(&bench, &["-3"]).expect_code(0);
    let whole = ["--direct", "-X", "-I=5", "-R=2", "--processes=2"];
    md(&bench, &whole).expect_code(0);
    assert_eq!(last_run(&bench).summary.errors, 0);
    let mut ior = bench.plimsoll(["md", "--pattern=ior-easy", "--transfers=8", "-w=0"]);
    ior.args(["--transfer-size=64k", "--direct", "--results"]);
    Ended::of({
        ior.arg(bench.path("results"));
        ior
    })
    .expect_code(0);
}

#[test]
fn what_cannot_go_past_the_page_cache_is_refused() {
    let bench = Bench::on_disk();
    for (more, why) in [
        (&["-S=3901"][..], "which 3901 is not; -S 4096 would do"),
        (&["-S=0"], "these files are empty"),
        (&["-i=dummy"], "the target `null` does not use"),
        (
            &["--target=nfs3://x/y"],
            "the target `nfs3://x/y` does not use",
        ),
    ] {
        let ended = md(&bench, &[&["--direct"], more].concat());
        assert_eq!(ended.code, Some(2), "{more:?}: {}", ended.stderr);
        let refused = ended.refusal();
        assert!(refused.contains(why), "{more:?}: {refused}");
    }
    for pattern in ["mdtest-easy", "mdtest-hard", "ior-hard"] {
        let pattern = format!("--pattern={pattern}");
        let ended = Ended::of(bench.plimsoll(["md", &pattern, "--direct"]));
        let refused = ended.refusal();
        assert!(refused.contains("--direct"), "{pattern}: {refused}");
    }
    let refused = md(&bench, &["--drop-caches", "-i=dummy"]).refusal();
    assert!(
        refused.contains("--drop-caches is for this machine's page cache"),
        "{refused}"
    );
}

/// A file system in memory that never takes direct I/O is mounted where only the program sees it.
#[test]
fn a_file_system_without_direct_io_is_refused_before_anything_is_made() {
    let bench = Bench::on_tmpfs();
    std::fs::create_dir(bench.path("memory")).unwrap();
    let md = bench.plimsoll(["md", "--dir=memory", "--direct"]);
    let mut command = Command::new("unshare");
    command
        .args(["--map-root-user", "--mount", "sh", "-c"])
        .arg("mount -t ramfs none memory && exec \"$@\"")
        .arg("sh")
        .arg(md.get_program())
        .args(md.get_args())
        .args(PAGES)
        .current_dir(bench.root());
    let ended = Ended::of(command);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    let refused = ended.refusal();
    assert!(
        refused.contains("`memory` is on a file system that does not take direct I/O (O_DIRECT)"),
        "{refused}"
    );
}

#[test]
fn a_warm_up_is_done_and_not_measured() {
    let bench = Bench::on_tmpfs();
    let phases = ["-1", "-2", "-I=4", "-R=2", "-L=times", "--processes=2"];
    let ended = md(&bench, &[&phases[..], &["--warmup=3"]].concat()).expect_code(0);
    let lines = ended.stdout.matches("\nbenchmark process ").count();
    assert_eq!(lines, 2, "{}", ended.stdout);
    assert!(ended.stdout.contains("\n\twarmup=3\n"), "{}", ended.stdout);
    let run = last_run(&bench);
    let stages: Vec<&str> = run.stages.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(stages, ["precreate", "benchmark", "benchmark"]);
    // 2 iterations of 4 rounds in 2 sets by 2 ranks.
    let reads = run.operations.iter().find(|o| o.name == "read").unwrap();
    assert_eq!(reads.ops, 2 * 4 * 2 * 2);
    let timed = std::fs::read_to_string(bench.path("times-0.00-0-read.csv")).unwrap();
    assert_eq!(timed.lines().count(), 1 + 4 * 2);
    assert!(!bench.path("times-0.00-2-read.csv").exists());
    // 5 iterations moved the position on.
    let info = std::fs::read_to_string(bench.path("mdtest.status")).unwrap();
    assert_eq!(info, "pos: 20\n");
    md(&bench, &["-3", "--processes=2"]).expect_code(0);
    assert!(!bench.path("out").exists());
    for (more, why) in [
        (
            &["-1", "--warmup=1"][..],
            "--warmup prepares the benchmark phase",
        ),
        (
            &["-R=0", "--warmup=1"],
            "--warmup prepares the benchmark phase",
        ),
        (&["--warmup=soon"], "expected a whole number"),
    ] {
        let refused = md(&bench, more).refusal();
        assert!(refused.contains(why), "{more:?}: {refused}");
    }
    let mut other = bench.plimsoll(["md", "--pattern=mdtest-easy", "--warmup=1"]);
    other.stdin(std::process::Stdio::null());
    let refused = Ended::of(other).refusal();
    assert!(
        refused.contains("--warmup belongs to the pattern"),
        "{refused}"
    );
}
