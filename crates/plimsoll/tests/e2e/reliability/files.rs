//! File systems that fill up, become read-only, lose blocks or disappear under a run.

use super::{READS_AND_WRITES, is_noted, written};
use crate::common::loop_device::LoopDevice;
use crate::common::{Bench, Ended, MARKER, row, started, tree, wait_until};
use plimsoll_results::{RunDir, Verdict};
use plimsoll_testkit::bench::Small;
use plimsoll_testkit::needs_root;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::mount::{MountFlags, mount_remount};
use std::process::Command;
use std::time::Duration;

/// What another program takes of the disk when the room has been checked leaves too little for the files.
#[test]
fn a_disk_that_fills_up_while_files_are_made() {
    needs_root!();
    let small = Small::new("size=8m");
    let place = small.dir().join("mine");
    let mut command = small.bench.command("webserver", &["--time=1s"]);
    command.args(["--set=nfiles=60", "--set=filesize=64k"]);
    command.args(["--event", "before sh fallocate -l 6M work/others"]);
    command.arg("--dir").arg(&place);
    let run = Ended::of(command).result(1);
    assert_eq!(run.validity.verdict, Verdict::Failed);
    let failure = run.failure.as_ref().unwrap();
    let said = failure.to_string();
    let is_named = said.contains("ENOSPC") && said.contains("bigfileset");
    assert!(is_named, "{failure:?}");
    assert_eq!((run.window_number, run.summary.ops), (0, 0));
    assert_eq!(written(&small.bench), run);
    // What is not Plimsoll's stays.
    assert!(!place.exists() && small.dir().join("others").exists());
}

/// Files are created until no inode is left.
#[test]
fn inodes_that_run_out() {
    needs_root!();
    let small = Small::new("size=8m,nr_inodes=200");
    let workload = small.bench.workload(
        "define fileset name=s,path=files,entries=500,dirwidth=1000,size=0\n\
         define process name=p { thread name=t,memsize=1m {\n\
         flowop createfile name=make,filesetname=s,fd=1\n\
         flowop closefile name=close,fd=1 } }\nrun 3600\n",
    );
    let run = small.bench.run_in_work(&workload, &[]).result(1);
    let failure = run.failure.as_ref().unwrap();
    assert_eq!(failure.operation, "make");
    assert_eq!(failure.location.as_ref().unwrap().line, 3);
    let made = row(&run, "make");
    assert_eq!(made.error_codes["ENOSPC"], 1);
    assert!((150..200).contains(&made.ops), "{}", made.ops);
    assert_eq!(written(&small.bench), run);
    assert_eq!(tree(small.dir()), Default::default());
}

/// A file system that becomes read-only, as some do after an error of the device: the files stay, and are
/// removed when it can be written to.
#[test]
fn a_file_system_that_becomes_read_only() {
    needs_root!();
    let small = Small::new("size=8m");
    let workload = small.bench.workload(READS_AND_WRITES);
    let run = started(small.bench.command_in_work(&workload, &[]), "measuring");
    // It is busy while a file is open to be written.
    while mount_remount(small.dir(), MountFlags::RDONLY, c"").is_err() {
        std::thread::yield_now();
    }
    let run = run.end().result(1);
    let failure = run.failure.as_ref().unwrap();
    assert!(failure.error.contains("EROFS"), "{failure:?}");
    let note = "Read-only file system (EROFS)";
    assert!(is_noted(&run, note), "{:?}", run.notes);
    assert_eq!(written(&small.bench), run);
    let (files, _) = tree(small.dir());
    assert_eq!((files.len(), small.dir().join(MARKER).exists()), (20, true));
    mount_remount(small.dir(), MountFlags::empty(), c"").unwrap();
    Ended::of(small.bench.plimsoll(["clean", "work"])).expect_code(0);
    assert_eq!(tree(small.dir()), Default::default());
}

/// The directory with all files is removed during the run.
#[test]
fn a_directory_that_is_removed_under_the_run() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let run = started(bench.command_in_work(&workload, &[]), "measuring");
    while std::fs::remove_dir_all(bench.work()).is_err() {}
    let run = run.end().result(1);
    let failure = run.failure.as_ref().unwrap();
    assert!(failure.error.contains("ENOENT"), "{failure:?}");
    assert_eq!(written(&bench), run);
    assert_eq!(bench.left_but(&["w.f", "results"]), [""; 0]);
}

/// A directory with another name is the same directory to a run that works in it: it goes on and removes its
/// files. What has the old name meanwhile belongs to another program and stays, even if it is empty; the directory itself
/// stays under its new name, which is noted.
#[test]
fn a_directory_that_is_renamed_under_the_run() {
    for has_files in [false, true] {
        let bench = Bench::on_tmpfs();
        let workload = bench.workload(READS_AND_WRITES);
        let command = bench.command_in_work(&workload, &["--time=500ms"]);
        let run = started(command, "measuring");
        std::fs::rename(bench.work(), bench.path("elsewhere")).unwrap();
        std::fs::create_dir(bench.work()).unwrap();
        if has_files {
            std::fs::write(bench.work().join("precious"), "x").unwrap();
        }
        let run = run.end().result(0);
        assert_eq!(run.validity.verdict, Verdict::Valid);
        assert!(run.summary.ops > 0 && run.summary.errors == 0);
        let elsewhere = bench.path("elsewhere");
        assert_eq!(tree(&elsewhere).0.len(), 0, "{:?}", run.notes);
        assert!(elsewhere.exists() && bench.work().exists());
        assert_eq!(bench.work().join("precious").exists(), has_files);
        assert!(is_noted(&run, "cannot remove directory"), "{:?}", run.notes);
    }
}

/// Some blocks of the device cannot be read any more: by default the first such read ends the run, and they
/// can be counted.
#[test]
fn reads_that_fail_on_a_device() {
    needs_root!();
    let Some(device) = LoopDevice::ext4("errors=continue") else {
        return;
    };
    let workload = device.bench.workload(
        "define fileset name=s,path=files,entries=30,dirwidth=40,size=1m,prealloc,reuse\n\
         define process name=p { thread name=t,memsize=1m {\n\
         flowop openfile name=open,filesetname=s,fd=1\n\
         flowop readwholefile name=read,fd=1,iosize=64k\n\
         flowop closefile name=close,fd=1 } }\nrun 3600\n",
    );
    let dir = device.mount_point().join("w");
    let run = |more: &[&str]| {
        let mut command = device.bench.command(&workload, &["--keep"]);
        command.args(more);
        command.arg("--dir").arg(&dir);
        Ended::of(command)
    };
    run(&["--time=200ms"]).expect_code(0);
    rustix::fs::sync();
    device.keep_bytes(24 << 20);
    let failed = run(&["--drop-caches=files"]).result(1);
    let failure = failed.failure.unwrap();
    assert_eq!(failure.operation, "read");
    assert!(failure.error.contains("EIO"), "{failure:?}");
    assert!(failure.path.unwrap().contains("/s/"));
    let counted = run(&["--drop-caches=files", "--on-error=count", "--time=2s"]).result(3);
    let read = row(&counted, "read");
    assert_eq!(read.error_codes.keys().collect::<Vec<_>>(), ["EIO"]);
    assert!(read.ops > 0 && read.errors > 0, "{read:?}");
    assert_eq!(counted.validity.reasons[0].code, "errors");
}

/// The whole device is gone: the run ends with its results, which are elsewhere, and its files are not
/// reached any more.
#[test]
fn a_device_that_is_gone() {
    needs_root!();
    let Some(device) = LoopDevice::ext4("errors=continue") else {
        return;
    };
    let workload = device.bench.workload(
        "define file name=f,path=files,size=32m,prealloc\n\
         define process name=p { thread name=t,memsize=1m {\n\
         flowop read name=read,filename=f,iosize=4k,random,directio } }\nrun 3600\n",
    );
    let mut command = device.bench.command(&workload, &[]);
    command.arg("--dir").arg(device.mount_point().join("w"));
    let run = started(command, "measuring");
    std::thread::sleep(Duration::from_millis(100));
    device.keep_bytes(0);
    let run = run.end().result(1);
    let failure = run.failure.as_ref().unwrap();
    assert!(failure.error.contains("EIO"), "{failure:?}");
    assert!(row(&run, "read:read").ops > 0);
    assert_eq!(written(&device.bench), run);
}

/// A file system whose writes block until this is dropped.
struct Frozen(std::path::PathBuf);

impl Frozen {
    fn new(mount_point: std::path::PathBuf) -> Self {
        let mut command = Command::new("fsfreeze");
        command.arg("--freeze").arg(&mount_point);
        Ended::of(command).expect_code(0);
        Self(mount_point)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let mut command = Command::new("fsfreeze");
        let status = command.arg("--unfreeze").arg(&self.0).status();
        // A second panic would end all tests.
        assert!(std::thread::panicking() || status.unwrap().success());
    }
}

/// The run goes on while its intervals wait for the disk, which has all of them in the end.
#[test]
fn writes_to_the_results_that_block() {
    needs_root!();
    let Some(device) = LoopDevice::ext4("errors=continue") else {
        return;
    };
    let bench = &device.bench;
    let workload = bench.workload(&READS_AND_WRITES.replace("run 3600", &"run 2\n".repeat(3)));
    let mut command = bench.plimsoll(["run", &workload, "--interval=100ms", "--dir"]);
    command.arg(bench.work()).arg("--results");
    command.arg(device.mount_point().join("results"));
    let (path, begun) = (bench.path("stderr"), std::time::Instant::now());
    command.stderr(std::fs::File::create(&path).unwrap());
    let child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let await_window = |window: u32| {
        let line = format!("measuring (window {window} of 3)");
        wait_until(&line, || {
            std::fs::read_to_string(&path).unwrap().contains(&line)
        });
    };
    await_window(1);
    let frozen = Frozen::new(device.mount_point());
    let stderr = std::fs::read_to_string(&path).unwrap();
    assert!(
        !stderr.contains("(window 3 of"),
        "frozen too late:\n{stderr}"
    );
    await_window(3);
    drop(frozen);
    Ended::wait(child, begun).expect_code(0);
    let dirs = std::fs::read_dir(device.mount_point().join("results")).unwrap();
    let dirs: Vec<_> = dirs.map(|dir| RunDir::at(&dir.unwrap().path())).collect();
    let [dir] = &dirs[..] else { panic!("{dirs:?}") };
    let (run, rows) = (dir.read().unwrap(), dir.read_intervals().unwrap());
    assert_eq!(run.window_number, 3);
    let ops = |window| -> u64 {
        let rows = rows.iter().filter(|row| row.window == window);
        rows.map(|row| row.ops).sum()
    };
    let counted: u64 = run.operations.iter().map(|op| op.ops).sum();
    assert!(ops(1) > 0 && ops(2) > 0);
    assert_eq!(ops(3), counted);
}

/// A directory that another user's link has replaced is not followed.
#[test]
fn a_tree_whose_directory_becomes_a_link() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(READS_AND_WRITES);
    let victim = bench.path("victim");
    let run = started(bench.command_in_work(&workload, &[]), "measuring");
    let (files, _) = tree(&bench.work());
    let first = bench.work().join(files.keys().next().expect("a file"));
    let files = first.parent().unwrap();
    // The link and the directory change places at once: an open between the two would find nothing.
    std::os::unix::fs::symlink(&victim, &victim).unwrap();
    renameat_with(CWD, &victim, CWD, files, RenameFlags::EXCHANGE).unwrap();
    let before = tree(&victim).0;
    let run = run.end().result(1);
    let failure = run.failure.unwrap();
    let is_refused = ["ELOOP", "ENOTDIR"]
        .iter()
        .any(|e| failure.error.contains(e));
    assert!(is_refused, "{failure:?}");
    // What was open may have been appended to; nothing was removed.
    assert!(tree(&victim).0.keys().eq(before.keys()));
}
