//! Paired comparisons on a file system that becomes slower from run to run.
//!
//! The file system is ext4 without hashed directories, and the workload lists a directory, so that the time of an
//! operation is proportional to the number of files in the directory. A command adds files before each run: more in each
//! run for the drift, and 10 % more in the runs of B for the planted difference. The primary figure is the median latency,
//! which other programs of the machine change least; the program runs at a raised priority, so that a busy machine changes
//! the figure less. The highest priority would starve other tests.

use crate::common::Ended;
use crate::common::loop_device::LoopDevice;
use crate::common::series::parsed;
use plimsoll_results::{Percentile, Series};
use plimsoll_testkit::needs_root;
use std::process::Command;

/// Number of files of the workload; the remaining files of a directory are of the commands.
const OWN_FILES: u64 = 100;

/// Number of comparisons of like with like.
const COMPARISONS: u64 = 20;

/// Maximum number of comparisons of like with like that show a difference by chance. An honest 95 % interval excludes a
/// ratio of 1 in 5 % of the comparisons; the probability of more than five in twenty is 0.0003.
const MAX_CHANCE_DIFFERENCES: usize = 5;

/// Numbers of files in the directory of a run.
struct Files {
    /// Number in all runs, of which `OWN_FILES` are the workload's.
    base: u64,
    /// Number by which each run has more files than the run before.
    growth: u64,
    /// Percentage by which the runs of B have more files.
    planted_percent: u64,
}

impl Files {
    /// Ratio of the numbers of files in runs `last` and `first`.
    fn drift(&self, first: u64, last: u64) -> f64 {
        let files = |run| (self.base + self.growth * run) as f64;
        files(last) / files(first)
    }

    /// A paired comparison of two directories of one file system.
    fn compare(&self, device: &LoopDevice, more: &[&str]) -> Series {
        let workload = device.bench.workload(&format!(
            "define fileset name=inbox,path=inbox,entries={OWN_FILES},dirwidth=1000,prealloc\n\
             define process name=p {{ thread name=t,memsize=1m {{\n\
             flowop listdir name=list,filesetname=inbox }} }}\nrun 1\n"
        ));
        let (base, growth, percent) = (self.base, self.growth, self.planted_percent);
        let add = format!(
            "before load sh cd \"$PLIMSOLL_DIR\"/inbox && files=$(({base} + {growth} * PLIMSOLL_RUN)) && \
             if [ $PLIMSOLL_CONFIGURATION = B ]; then files=$((files + files * {percent} / 100)); fi && \
             touch $(seq -f new%.0f $((files - {OWN_FILES})))"
        );
        let remove = "after load sh rm -f \"$PLIMSOLL_DIR\"/inbox/new*";
        let mut command = device.bench.plimsoll(["ab", &workload, "--format=json"]);
        command.args(["--dir=A=mnt/a", "--dir=B=mnt/b", "--results=results"]);
        command.args([
            "--settle=0s",
            "--warmup=0s",
            "--time=150ms",
            "--interval=1s",
            "--primary=p50",
        ]);
        command
            .args(["--event", &add, "--event", remove])
            .args(more);
        let ended = Ended::of(at_raised_priority(&command));
        // A busy machine can make single runs invalid.
        assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
        parsed(&ended)
    }
}

/// The command at a raised priority, if the system allows a raised priority.
fn at_raised_priority(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "-5"]).arg(command.get_program());
    nice.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        nice.current_dir(dir);
    }
    nice
}

fn device() -> Option<LoopDevice> {
    LoopDevice::ext4(&["-O", "^dir_index", "-N", "30000"])
}

/// Median latency of a run of a series, in milliseconds.
fn median_ms(series: &Series, run: usize) -> f64 {
    series.runs[run].percentile(Percentile::P50).unwrap().ms
}

#[test]
fn on_a_drifting_file_system_like_against_like_shows_no_difference() {
    needs_root!();
    let Some(device) = device() else { return };
    let files = Files {
        base: 700,
        growth: 100,
        planted_percent: 0,
    };
    let mut drifts = Vec::new();
    let mut differences = Vec::new();
    let mut compared = 0;
    for seed in 1..=COMPARISONS {
        let seed = format!("--seed={seed}");
        let series = files.compare(&device, &["--pairs=3", &seed]);
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
    let (drift, expected) = (drifts[drifts.len() / 2], files.drift(1, 6));
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
    let Some(device) = device() else { return };
    let files = Files {
        base: 2100,
        growth: 50,
        planted_percent: 10,
    };
    let until = ["--until=3%", "--max-pairs=60", "--seed=1"];
    let series = files.compare(&device, &until);
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
