//! File systems that are full or read-only. Making those takes the right to mount.

use crate::common::{Bench, Ended, row};
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

/// Appends to one file until there is no room.
pub const GROWS: &str = "\
define file name=log,path=files,size=0,prealloc
define process name=p {
  thread name=t,memsize=1m {
    flowop appendfile name=grow,filesetname=log,iosize=16k
  }
}
run 3600
";

/// Reads files of a tree. Nothing grows, however fast the machine is.
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

#[test]
fn a_disk_that_fills_up_ends_the_run_with_its_results() {
    needs_root!();
    let small = Small::new("size=2m");
    let workload = small.bench.workload(GROWS);
    let run = small.bench.run_in_work(&workload, &[]).result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.clone().unwrap();
    assert_eq!(failure.operation, "grow");
    assert!(failure.error.contains("ENOSPC"), "{}", failure.error);
    let path = failure.path.unwrap();
    assert!(path.contains("log"), "{path}");
    let place = failure.location.unwrap();
    assert_eq!((place.line, place.column), (4, 12), "{place:?}");
    let appends = row(&run, "grow:append");
    // 2 MiB are 128 appends of 16 KiB; the marker and directories take some of it.
    assert!((110..=128).contains(&appends.ops), "{}", appends.ops);
    assert_eq!(appends.error_codes["ENOSPC"], 1);
    assert_eq!(small.left(), (0, 0));
    let written: Run = small.bench.results()[0].read().unwrap();
    assert_eq!(written, run);
    // What is printed for people names the same.
    let args = ["run", &workload, "--dir=work"];
    let text = Ended::of(small.bench.plimsoll(args)).expect_code(1).stdout;
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
        .run_in_work(&workload, &["--io=uring"])
        .result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.clone().unwrap();
    assert!(failure.error.contains("ENOSPC"), "{}", failure.error);
    let appends = row(&run, "grow:append");
    assert!((110..=128).contains(&appends.ops), "{}", appends.ops);
    assert_eq!(appends.error_codes["ENOSPC"], 1);
    assert_eq!(small.left(), (0, 0));
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
    assert!(
        said.contains("read-only") || said.contains("Read-only"),
        "{said}"
    );
    assert!(said.contains(small.dir().to_str().unwrap()), "{said}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_like_any_other() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(GROWS);
    let plimsoll = bench.command_in_work(&workload, &["--time=500ms"]);
    let mut limited = std::process::Command::new("prlimit");
    limited.arg("--fsize=1048576").arg(plimsoll.get_program());
    limited.args(plimsoll.get_args());
    limited.current_dir(plimsoll.get_current_dir().unwrap());
    let run = Ended::of(limited).result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    assert!(run.failure.unwrap().error.contains("EFBIG"));
    assert_eq!(
        row(&bench.results()[0].read().unwrap(), "grow:append").ops,
        64
    );
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
