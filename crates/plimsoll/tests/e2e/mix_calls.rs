//! Operations of built-in mixes as the kernel sees them: strace recounts the shares of the operations.

use crate::common::{Bench, Ended};
use plimsoll_results::Run;
use std::collections::BTreeMap;
use std::process::Command;

/// Distance of a share from its percentage, in points, that the recount may have whatever the number of operations.
const POINTS: f64 = 0.5;

/// Standard deviations by which a count of random choices may differ from its mean.
const DEVIATIONS: f64 = 4.0;

/// Runs a built-in mix under strace; returns the run, and the system calls of each worker.
fn traced(bench: &Bench, workload: &str, calls: &str, options: &[&str]) -> (Run, Vec<String>) {
    // A file for each thread keeps every call in one line.
    let traces = bench.path("traces");
    std::fs::create_dir(&traces).unwrap();
    let mut command = Command::new("strace");
    command
        .args(["-ff", "-s", "16", "-o"])
        .arg(traces.join("thread"))
        .args(["-e", &format!("trace=prctl,{calls}")])
        .arg(plimsoll_testkit::bench::built_program("plimsoll"))
        .args([
            "run",
            workload,
            "--quiet",
            "--target=posix:?io=sync",
            "--results",
        ])
        .arg(bench.path("results"))
        .arg("--dir")
        .arg(bench.work())
        .args(options)
        .current_dir(bench.root())
        .env("TMPDIR", bench.root());
    let ended = Ended::of(command);
    assert!(matches!(ended.code, Some(0 | 3)), "{}", ended.stderr);
    let run: Run = bench.results()[0].read_with(None).unwrap();
    assert_eq!((run.summary.errors, &run.failure), (0, &None));
    // Each worker is a thread that gives itself the beginning of the worker's name.
    let groups: Vec<String> = run
        .plan
        .groups
        .iter()
        .map(|g| format!("{}-", g.process))
        .collect();
    let is_worker = |text: &str| {
        let names = text
            .lines()
            .filter_map(|l| l.strip_prefix("prctl(PR_SET_NAME, \""));
        names
            .into_iter()
            .any(|name| groups.iter().any(|g| name.starts_with(g)))
    };
    let threads = std::fs::read_dir(&traces).unwrap();
    let texts = threads.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let workers: Vec<String> = texts.filter(|text| is_worker(text)).collect();
    assert_eq!(workers.len() as u64, run.plan.workers());
    (run, workers)
}

/// The operation of `swbuild` that begins with a system call; `None` for a call that continues an operation.
fn operation_of(call: &str) -> Option<&'static str> {
    let (name, arguments) = call.split_once('(')?;
    let has = |flag: &str| arguments.contains(flag);
    Some(match name {
        "newfstatat" | "fstatat64" => "stat",
        "faccessat" | "faccessat2" => "access",
        "mkdirat" => "mkdir",
        // Directories are removed in the preparation of `mkdir`.
        "unlinkat" if has("AT_REMOVEDIR") => return None,
        "unlinkat" => "unlink",
        "openat2" if has("O_TRUNC") => "write_file",
        "openat2" if has("O_CREAT") => "create",
        // The parent of a new name is checked before the operation.
        "openat2" if has("O_PATH|O_DIRECTORY") => return None,
        "openat2" if has("O_DIRECTORY") => "readdir",
        // The mode of a file is changed through a descriptor that cannot read.
        "openat2" if has("O_PATH") => "chmod",
        "openat2" => "read_file",
        _ => return None,
    })
}

#[test]
fn the_kernel_sees_the_operations_of_a_published_mix_in_their_shares() {
    // One build with its published operations, at another rate and on less data. The names suffice, so that no operation
    // makes or removes a file first.
    let bench = Bench::on_tmpfs();
    let options = [
        "--ops=30000",
        "--time=10m",
        "--warmup=0s",
        "--set=SWBUILD.rate=100000",
        "--set=SWBUILD.files.count=200",
        "--set=SWBUILD.files.size=4k",
        "--set=SWBUILD.files.turnover_size=4k",
        "--set=SWBUILD.files.directories=10",
        "--set=metric.data=4000k",
    ];
    let calls = "openat2,newfstatat,faccessat,faccessat2,mkdirat,unlinkat";
    let (run, workers) = traced(&bench, "swbuild", calls, &options);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in workers
        .iter()
        .flat_map(|w| w.lines())
        .filter_map(operation_of)
    {
        *counts.entry(operation).or_default() += 1;
    }
    let all: u64 = counts.values().sum();
    let mix = run.plan.groups[0].program.mix().unwrap();
    assert_eq!(counts.len(), mix.table.len(), "{counts:?}");
    for row in &mix.table {
        let (name, percent) = (row.op.name(), row.percent);
        let share = 100.0 * counts[name] as f64 / all as f64;
        let deviation = (percent * (100.0 - percent) / all as f64).sqrt();
        let bound = POINTS.max(DEVIATIONS * deviation);
        assert!(
            (share - percent).abs() <= bound,
            "{name}: {share} of {percent} within {bound}, {counts:?}"
        );
        // Each worker may have one operation in flight at the end of the measured window.
        let reported = run.operations.iter().find(|o| o.name == name).unwrap().ops;
        let unmeasured = counts[name].abs_diff(reported);
        assert!(
            unmeasured <= run.plan.workers(),
            "{name}: {} calls, {reported} reported",
            counts[name]
        );
    }
}

#[test]
fn the_kernel_gets_the_published_advice_on_opened_and_closed_files() {
    let bench = Bench::on_tmpfs();
    let options = [
        "--ops=6000",
        "--time=10m",
        "--warmup=0s",
        "--set=GENOMICS.rate=100000",
        "--set=GENOMICS.files.count=200",
        "--set=GENOMICS.files.size=16k",
        "--set=GENOMICS.files.directories=10",
        "--set=metric.data=12800k",
    ];
    let (run, workers) = traced(
        &bench,
        "genomics",
        "openat2,fadvise64,close,pread64,pwrite64",
        &options,
    );
    let (mut opened, mut sequential, mut closed, mut unneeded) = (0, 0, 0, 0);
    for worker in &workers {
        let mut before = "";
        for call in worker.lines() {
            let data = call.starts_with("openat2(")
                && !call.contains("O_CREAT")
                && !call.contains("O_PATH");
            opened += u64::from(data);
            if call.contains("POSIX_FADV_SEQUENTIAL") {
                assert!(before.starts_with("openat2("), "{before}\n{call}");
                sequential += 1;
            }
            // A file is advised as not needed directly before the close.
            if before.contains("POSIX_FADV_DONTNEED") {
                assert!(call.starts_with("close("), "{before}\n{call}");
                closed += 1;
            }
            unneeded += u64::from(call.contains("POSIX_FADV_DONTNEED"));
            before = call;
        }
    }
    assert_eq!(closed, unneeded);
    // Files that are open at the end are closed with their worker, without advice.
    let open = run.plan.workers() * 32;
    assert!(opened - unneeded <= open, "{unneeded} of {opened} files");
    let share = 100.0 * sequential as f64 / opened as f64;
    let bound = DEVIATIONS * (20.0 * 80.0 / opened as f64).sqrt();
    assert!(
        (share - 20.0).abs() <= bound,
        "{sequential} of {opened} files"
    );
    // Opens and closes are preparations. The advice is a part of them, and each worker may have one in flight at the end.
    let prepare = run.operations.iter().find(|o| o.name == "prepare").unwrap();
    assert!(
        prepare.ops.abs_diff(opened + unneeded) <= run.plan.workers(),
        "{prepare:?}"
    );
}
