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
    ior.arg(bench.path("results"));
    Ended::of(ior).expect_code(0);
}

#[test]
fn what_cannot_go_past_the_page_cache_is_refused() {
    let bench = Bench::on_disk();
    for (more, why) in [
        ("-S=3901", "which 3901 is not; -S 4096 would do"),
        ("-S=0", "these files are empty"),
        ("-i=dummy", "the target `null` does not use"),
    ] {
        let refused = md(&bench, &["--direct", more]).refusal();
        assert!(refused.contains(why), "{more}: {refused}");
    }
    let pattern = ["md", "--pattern=mdtest-hard", "--direct"];
    let refused = Ended::of(bench.plimsoll(pattern)).refusal();
    assert!(refused.contains("--direct"), "{refused}");
    let refused = md(&bench, &["--drop-caches", "-i=dummy"]).refusal();
    let expected = "--drop-caches is for this machine's page cache";
    assert!(refused.contains(expected), "{refused}");
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
    let refused = Ended::of(command).refusal();
    let expected = "`memory` is on a file system that does not take direct I/O (O_DIRECT)";
    assert!(refused.contains(expected), "{refused}");
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
    let refused = md(&bench, &["-1", "--warmup=1"]).refusal();
    let expected = "--warmup prepares the benchmark phase";
    assert!(refused.contains(expected), "{refused}");
}
