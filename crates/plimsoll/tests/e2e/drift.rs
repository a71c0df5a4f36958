//! Paired comparisons on a file system that becomes slower from run to run.
//!
//! The file system is ext4 with the mount option `dirsync`. Two workers take turns to change a directory, so each change
//! follows a change by another thread. The journal then waits `min_batch_time` for further changes before the commit
//! (`jbd2_journal_stop` of Linux). A command changes `min_batch_time` before each run: more in each run for the drift, and
//! 10 % more in the runs of B for the planted difference. An operation sleeps for most of its time, and the primary figure
//! is the median latency, so that other programs of the machine hardly change the figure.

use crate::common::Ended;
use crate::common::loop_device::LoopDevice;
use crate::common::series::parsed;
use plimsoll_results::{Percentile, Series};
use plimsoll_testkit::needs_root;

/// Number of comparisons of like with like.
const COMPARISONS: u64 = 20;

/// Maximum number of comparisons of like with like that show a difference by chance. An honest 95 % interval excludes a
/// ratio of 1 in 5 % of the comparisons; the probability of more than five in twenty is 0.0003.
const MAX_CHANCE_DIFFERENCES: usize = 5;

/// Waits of the journal before a commit, in microseconds.
struct CommitWait {
    /// Commit wait extrapolated to a run number 0; run numbers begin with 1.
    base: u64,
    /// Increase of the wait from each run to the next.
    growth: u64,
    /// Percentage by which the waits in runs of B are longer.
    planted_percent: u64,
}

impl CommitWait {
    /// Drift of the file system between two runs: the ratio of the commit waits in run `last` and in run `first`.
    fn drift(&self, first: u64, last: u64) -> f64 {
        let wait = |run| (self.base + self.growth * run) as f64;
        wait(last) / wait(first)
    }

    /// A paired comparison of two directories of one file system.
    fn compare(&self, device: &LoopDevice, more: &[&str]) -> Series {
        let workload = device.bench.workload(
            "define fileset name=tree,path=tree,leafdirs=20,dirwidth=100,prealloc=50\n\
             define process name=p {\n\
             thread name=maker,memsize=1m {\n\
             flowop makedir name=make,filesetname=tree\n\
             flowop sempost name=made,target=removal,value=1\n\
             flowop semblock name=creation,highwater=1,value=1 }\n\
             thread name=remover,memsize=1m {\n\
             flowop semblock name=removal,highwater=1,value=1\n\
             flowop removedir name=remove,filesetname=tree\n\
             flowop sempost name=removed,target=creation,value=1 } }\nrun 1\n",
        );
        let (base, growth, percent) = (self.base, self.growth, self.planted_percent);
        let mount_point = device.mount_point();
        let mount_point = mount_point.display();
        let remount = "mount -o remount,max_batch_time=1000000,min_batch_time";
        let slow = format!(
            "before load sh wait=$(({base} + {growth} * PLIMSOLL_RUN)) && \
             if [ $PLIMSOLL_CONFIGURATION = B ]; then wait=$((wait + wait * {percent} / 100)); fi && \
             {remount}=$wait {mount_point}"
        );
        let fast = format!("after load sh {remount}=0 {mount_point}");
        let mut command = device.bench.plimsoll(["ab", &workload, "--format=json"]);
        command.args(["--dir=A=mnt/a", "--dir=B=mnt/b", "--results=results"]);
        command.args([
            "--settle=0s",
            "--warmup=0s",
            "--time=300ms",
            "--primary=p50",
        ]);
        command
            .args(["--event", &slow, "--event", &fast])
            .args(more);
        let ended = Ended::of(command);
        // A busy machine can make single runs invalid.
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        parsed(&ended)
    }
}

/// Median latency of a run of a series, in milliseconds.
fn median_ms(series: &Series, run: usize) -> f64 {
    series.runs[run].percentile(Percentile::P50).unwrap().ms
}

#[test]
fn on_a_drifting_file_system_like_against_like_shows_no_difference() {
    needs_root!();
    let Some(device) = LoopDevice::ext4("dirsync") else {
        return;
    };
    let wait = CommitWait {
        base: 5000,
        growth: 800,
        planted_percent: 0,
    };
    let mut drifts = Vec::new();
    let mut differences = Vec::new();
    let mut compared = 0;
    for seed in 1..=COMPARISONS {
        let seed = format!("--seed={seed}");
        let series = wait.compare(&device, &["--pairs=3", &seed]);
        drifts.push(median_ms(&series, 5) / median_ms(&series, 0));
        let Some(effect) = series.as_paired().unwrap().figures.effect else {
            continue;
        };
        compared += 1;
        let (low, high) = effect.interval;
        if low > 1.0 || high < 1.0 {
            differences.push(effect);
        }
    }
    drifts.sort_by(f64::total_cmp);
    let (drift, expected) = (drifts[drifts.len() / 2], wait.drift(1, 6));
    assert!(
        drift > 0.7 * expected && drift > 1.2,
        "{drift} of {expected}: {drifts:?}"
    );
    assert!(compared > COMPARISONS / 2, "{compared} comparisons");
    assert!(
        differences.len() <= MAX_CHANCE_DIFFERENCES,
        "{differences:?}"
    );
}

#[test]
fn on_a_drifting_file_system_a_difference_of_10_percent_is_found() {
    needs_root!();
    let Some(device) = LoopDevice::ext4("dirsync") else {
        return;
    };
    let wait = CommitWait {
        base: 12_000,
        growth: 120,
        planted_percent: 10,
    };
    let until = ["--until=3%", "--max-pairs=60", "--seed=1"];
    let series = wait.compare(&device, &until);
    let effect = series.as_paired().unwrap().figures.effect.unwrap();
    let (low, high) = effect.interval;
    // With a half width of 3 %, an honest interval around 1.1 contains 1 or excludes 1.05 to 1.16 in fewer than one of a
    // thousand comparisons.
    assert!(low > 1.0, "{effect:?}");
    assert!(
        effect.ratio > 1.05 && effect.ratio < 1.16 && high < 1.25,
        "{effect:?}"
    );
}
