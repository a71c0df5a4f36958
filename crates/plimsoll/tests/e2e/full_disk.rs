//! Runs on file systems that are full or read-only. The tests mount small file systems as root in a user namespace,
//! which the macro `needs_root!` enters.

use crate::common::{Ended, row};
use plimsoll_results::{Run, Verdict};
use plimsoll_testkit::bench::Small;
use plimsoll_testkit::needs_root;
use rustix::mount::{MountFlags, mount_remount};

#[test]
fn too_little_space_is_refused_before_anything_is_made() {
    needs_root!();
    let small = Small::new("size=2m");
    let sets = ["--set=nfiles=100", "--set=filesize=64k"];
    for dry in [None, Some("--dry-run")] {
        let mut args = vec!["run", "webserver", "--dir=work"];
        args.extend(sets);
        args.extend(dry);
        let ended = Ended::of(small.bench.plimsoll(args)).expect_code(2);
        for part in ["populating takes 6.", "has 2 MiB free", "--set"] {
            assert!(ended.stderr.contains(part), "{dry:?}: {}", ended.stderr);
        }
    }
    assert_eq!(small.left(), (0, 0));
}

#[test]
fn too_few_inodes_are_refused() {
    needs_root!();
    let small = Small::new("size=8m,nr_inodes=50");
    let args = ["--set=nfiles=100", "--set=filesize=0"];
    let said = small.bench.run_in_work("webserver", &args).refusal();
    assert!(said.contains("inodes"), "{said}");
    assert_eq!(small.left(), (0, 0));
}

/// Workload that appends to one file until the file system is full.
pub const GROWS: &str = "\
define file name=log,path=files,size=0,prealloc
define process name=p {
  thread name=t,memsize=1m {
    flowop appendfile name=grow,filesetname=log,iosize=16k
  }
}
run 3600
";

/// Workload that only reads, so that the space it needs does not depend on the speed of the machine.
const READS: &str = "\
define fileset name=tree,path=files,entries=30,dirwidth=4,size=1k,prealloc
define process name=p {
  thread name=t,memsize=1m {
    flowop openfile name=open,filesetname=tree
    flowop readwholefile name=read,iosize=1k
    flowop closefile name=close
  }
}
run 3600
";

/// A claim needs two directories and a file, for which a full file system has no room.
#[test]
fn files_of_a_run_are_cleaned_from_a_full_disk() {
    needs_root!();
    let small = Small::new("size=8m,nr_inodes=60");
    let workload = small.bench.workload(READS);
    let kept = ["--time=100ms", "--keep"];
    small.bench.run_in_work(&workload, &kept).result(0);
    let mut others = 0;
    while std::fs::write(small.dir().join(format!("theirs{others}")), "").is_ok() {
        others += 1;
    }
    assert!(others > 0);
    Ended::of(small.bench.plimsoll(["clean", "work"])).expect_code(0);
    assert_eq!(small.left(), (others, 0));
}

/// Asserts that a run of [`GROWS`] on a file system of 2 MiB failed with ENOSPC, has figures, and left no files.
#[track_caller]
fn assert_filled_up(small: &Small, run: &Run) {
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.as_ref().unwrap();
    assert!(failure.error.contains("ENOSPC"), "{}", failure.error);
    let appends = row(run, "grow:append");
    // A file system of 2 MiB holds 128 appends of 16 KiB, less the space of marker and directories.
    assert!((110..=128).contains(&appends.ops), "{}", appends.ops);
    assert_eq!(appends.error_codes["ENOSPC"], 1);
    assert_eq!(small.left(), (0, 0));
}

#[test]
fn a_disk_that_fills_up_ends_the_run_with_its_results() {
    needs_root!();
    let small = Small::new("size=2m");
    let workload = small.bench.workload(GROWS);
    let run = small.bench.run_in_work(&workload, &[]).result(1);
    assert_filled_up(&small, &run);
    let failure = run.failure.as_ref().unwrap();
    assert_eq!(failure.operation, "grow");
    assert!(failure.path.as_ref().unwrap().contains("log"), "{failure}");
    let place = failure.location.as_ref().unwrap();
    assert_eq!((place.line, place.column), (4, 12), "{place:?}");
    let written: Run = small.bench.results()[0].read().unwrap();
    assert_eq!(written, run);
    // The text report also names the failed operation, the error and the place in the workload.
    let mut report = small.bench.plimsoll(["report"]);
    report.arg(small.bench.results()[0].path());
    let text = Ended::of(report).expect_code(0).stdout;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["failed: grow", "ENOSPC", "w.f:4:12"] {
        assert!(words.contains(part), "no {part} in\n{text}");
    }
}

#[test]
fn a_disk_that_fills_up_ends_a_run_through_io_uring_too() {
    needs_root!();
    if plimsoll_target::uring_unavailable().is_some() {
        // Its refusal is tested beside io_uring's other tests.
        return;
    }
    let small = Small::new("size=2m");
    let workload = small.bench.workload(GROWS);
    let run = small
        .bench
        .run_in_work(&workload, &["--target=posix:?io=uring"]);
    assert_filled_up(&small, &run.result(1));
}

#[test]
fn a_full_disk_can_be_counted_instead() {
    needs_root!();
    let small = Small::new("size=1m");
    let workload = small.bench.workload(GROWS);
    let run = small
        .bench
        .run_in_work(&workload, &["--time=500ms", "--on-error=count"])
        .result(3);
    let appends = row(&run, "grow:append");
    assert!(appends.ops > 0);
    assert_eq!(appends.error_codes.keys().collect::<Vec<_>>(), ["ENOSPC"]);
    assert_eq!(run.validity.reasons[0].code, "errors");
    assert_eq!(small.left(), (0, 0));
}

#[test]
fn a_read_only_file_system_is_a_clear_error() {
    needs_root!();
    let small = Small::new("size=1m");
    mount_remount(small.dir(), MountFlags::RDONLY, c"").unwrap();
    let ended = small.bench.run_in_work("varmail", &["--set=nfiles=10"]);
    assert!(matches!(ended.code, Some(1 | 2)), "{:?}", ended.code);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    let says = said.contains("read-only") || said.contains("Read-only");
    assert!(says, "{said}");
    assert!(said.contains(small.dir().to_str().unwrap()), "{said}");
}

#[test]
fn commands_of_a_run_whose_results_cannot_be_written_are_told() {
    needs_root!();
    let small = Small::new("size=1m");
    let workload = small.bench.workload(GROWS);
    let mut command = small.bench.plimsoll(["run", &workload, "--format=json"]);
    command
        .args(["--dir=work/files", "--results=work/results"])
        .args(["--time=2s", "--interval=10ms", "--on-error=count"])
        .arg("--event=before sh true");
    let ended = Ended::of(command).expect_code(1);
    let run: Run = serde_json::from_str(&ended.stdout).unwrap();
    let failure = run.failure.unwrap();
    assert_eq!(failure.operation, "write the results", "{failure}");
    assert_eq!(run.commands.len(), 2, "{:?}", run.commands);
}
