//! Stalls of a target, and operations that take long because of their many calls or bytes.

mod common;

use common::{built_in, codes, plan, row, run_virtually};
use plimsoll_engine::Outcome;
use plimsoll_measure::Stall;
use plimsoll_plan::Plan;
use std::path::Path;
use std::time::Duration;

fn stalls(outcome: &Outcome) -> &[Stall] {
    &outcome.windows[0].totals.stalls
}

/// `netsfs`, whose whole-file reads mostly have pieces of 8 KiB: usually two pieces, and up to 1.7 MB.
fn netsfs(seed: u64, sets: &str, seconds: u64) -> Plan {
    built_in("netsfs", sets, |o| {
        o.seed = Some(seed);
        o.time = Some(Duration::from_secs(seconds));
    })
}

#[test]
fn a_file_in_many_pieces_is_no_stall_whatever_the_seed() {
    let mut longest = Duration::ZERO;
    for seed in 1..=24 {
        let plan = netsfs(seed, "eventrate=0", 60);
        let outcome = run_virtually(&plan, "20ms");
        assert_eq!(
            (codes(&outcome), stalls(&outcome)),
            (vec![], &[][..]),
            "seed {seed}"
        );
        let gap = outcome.windows[0].totals.gaps.all;
        longest = longest.max(Duration::from_nanos(gap.length()));
    }
    // In the runs with 24 seeds, the longest time without a completed operation exceeds 3 s, because a large file takes
    // many calls.
    assert!(longest > Duration::from_secs(3), "{longest:?}");
}

/// At 20 ms per call, one thread does not achieve the scheduled ten rounds per second, which makes the result invalid
/// but is no stall. With 80 threads, the workload achieves the scheduled rate.
#[test]
fn a_rate_that_one_thread_does_not_achieve_is_no_stall_either() {
    for seed in 1..=24 {
        let outcome = run_virtually(&netsfs(seed, "", 60), "20ms");
        let mut failed = codes(&outcome);
        // The queue grows in jumps, because files differ in size, and not steadily with every seed.
        failed.retain(|code| *code != "queue_growth");
        assert_eq!(
            (failed, stalls(&outcome)),
            (vec!["total_rate"], &[][..]),
            "seed {seed}"
        );
    }
    for seed in 1..=6 {
        let outcome = run_virtually(&netsfs(seed, "nthreads=80", 15), "20ms");
        assert_eq!(
            (codes(&outcome), stalls(&outcome)),
            (vec![], &[][..]),
            "seed {seed}"
        );
    }
}

/// One worker that reads small files, and after every 50 small files a file of 2 MiB in pieces of 8 KiB.
const FILES: &str = "\
define fileset name=small,path=/tmp,entries=10,dirwidth=20,size=8k,prealloc
define fileset name=large,path=/tmp,entries=1,dirwidth=20,size=2m,prealloc
define flowop name=look {
  flowop openfile name=open,filesetname=small,fd=1
  flowop readwholefile name=read,fd=1,iosize=8k
  flowop closefile name=close,fd=1
}
define process name=p { thread name=t,memsize=1m {
  flowop look name=first,iters=50
  flowop openfile name=open,filesetname=large,fd=2
  flowop readwholefile name=read,fd=2,iosize=8k
  flowop closefile name=close,fd=2
} }
run 40
";

/// [`FILES`], with all files written instead of read.
fn writing() -> String {
    FILES.replace("readwholefile name=read", "writewholefile name=read")
}

/// A stall is found wherever the target stops: between two files, within the large file, or at the end of the window.
#[test]
fn a_target_that_stops_within_a_long_operation_is_stalled() {
    for text in [FILES, &writing()] {
        let plan = plan(text, Path::new("/nowhere"), |_| ());
        let outcome = run_virtually(&plan, "10ms");
        assert_eq!((codes(&outcome), stalls(&outcome)), (vec![], &[][..]));
        let gap = outcome.windows[0].totals.gaps.all.length();
        assert!(gap > 2_500_000_000, "the large file takes 2.56 s: {gap}");
        let mut within = 0;
        for after in [500, 2505, 3005, 4005, 17_003, 33_000, 37_007] {
            let target = format!("10ms&stall=3s&stall_after={after}ms");
            let outcome = run_virtually(&plan, &target);
            assert_eq!(codes(&outcome), ["stalled"], "{target}");
            let [stall] = stalls(&outcome) else {
                panic!("{target}: {:?}", stalls(&outcome))
            };
            let from = stall.gap.from.abs_diff(after * 1_000_000);
            let long = stall.gap.length().abs_diff(3_000_000_000);
            assert!(
                from < 15_000_000 && long < 15_000_000,
                "{target}: {stall:?}"
            );
            assert_eq!(stall.at_end, after == 37_007);
            // An operation that contains the outage also has pieces before and after the outage.
            within += u64::from(row(&plan, &outcome, "read").service.max() > 5_000_000_000);
        }
        assert!(
            within >= 3,
            "{within} of the outages were within the large file"
        );
    }
}

/// Usual reads take 10 ms. A read of the usual number of bytes that takes seconds is a stall. A read of thousands of
/// times the usual bytes is no stall, because the usual time of the read is not known.
#[test]
fn a_transfer_that_moves_more_bytes_may_take_longer() {
    let text = "define fileset name=small,path=/tmp,entries=10,dirwidth=20,size=8k,prealloc
define fileset name=large,path=/tmp,entries=1,dirwidth=20,size=64m,prealloc
define process name=p { thread name=t,memsize=64m {
  flowop read name=read,filesetname=small,fd=1,iosize=8k,random,iters=200
  flowop read name=read,filesetname=large,fd=2,iosize=SIZE,random
} }
run 40
";
    for (size, stalled) in [("8k", true), ("64m", false)] {
        let text = text.replace("SIZE", size);
        let plan = plan(&text, Path::new("/nowhere"), |_| ());
        // Each round takes 2.01 s; the outage begins while the large file is read.
        let outcome = run_virtually(&plan, "10ms&stall=3s&stall_after=20113ms");
        let found = !stalls(&outcome).is_empty();
        assert_eq!(found, stalled, "{size}: {:?}", stalls(&outcome));
    }
}
