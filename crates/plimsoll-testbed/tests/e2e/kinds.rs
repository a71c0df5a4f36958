//! Tests of each kind of test bed with its real software: start, load, each fault that applies, and end. Data written
//! before a fault is read correctly after the fault, and a bed that has ended leaves nothing.

use crate::common::{Bed, NAME, processes_with};
use plimsoll_testkit::bench::{Ended, signal, wait_until};
use plimsoll_testkit::needs_root;
use rustix::process::Signal;
use std::process::Stdio;
use std::time::Instant;

/// Writes random bytes, which no other file contains.
const WRITE: &str = "head -c 3000000 /dev/urandom > $FILES/before; \
    cp $FILES/before /dev/shm/before.$$; sync $FILES/before; echo $$";

/// Writes a file to a mounted file system; returns the path of a copy on another file system.
fn write_before(bed: &Bed) -> String {
    let copy = format!("/dev/shm/before.{}", bed.sh(WRITE).trim());
    let own = bed.beds.bench.path("before").to_string_lossy().into_owned();
    bed.sh(&format!("mv {copy} {own}"));
    own
}

fn same_as_before(bed: &Bed, copy: &str) {
    bed.sh(&format!("cmp {copy} $FILES/before"));
}

#[test]
fn ceph_keeps_two_copies() {
    needs_root!();
    let Some(bed) = Bed::up("replicated", &[]) else {
        return;
    };
    let before = write_before(&bed);
    bed.load();
    bed.hurt(&["server.1", "metadata", "manager", "monitor", "client"]);
    bed.cut_and_heal("server.2");
    let is_clean = || {
        bed.lines()
            .contains(&"placement groups: 16: 16 active+clean".to_owned())
    };
    wait_until("all copies", is_clean);
    same_as_before(&bed, &before);

    // Each server alone has all data.
    bed.fault("kill server.1");
    same_as_before(&bed, &before);
    let one_up = || bed.lines().contains(&"OSDs up: 1 of 2".to_owned());
    wait_until("the monitor's notice", one_up);
    bed.sh("echo more > $FILES/more; sync $FILES/more");
    bed.fault("restart server.1");
    wait_until("all copies", is_clean);
    bed.fault("kill server.2");
    same_as_before(&bed, &before);
    assert_eq!(bed.sh("cat $FILES/more"), "more\n");

    // A writer waits for the servers.
    bed.fault("kill server.1");
    let mut writer = bed.script("echo waited > $FILES/w; sync $FILES/w");
    let writer = writer.stdout(Stdio::piped()).stderr(Stdio::piped());
    let writer = writer.spawn().unwrap();
    bed.fault("restart server.1");
    bed.fault("restart server.2");
    Ended::wait(writer, Instant::now()).expect_code(0);
    assert_eq!(bed.sh("cat $FILES/w"), "waited\n");
    bed.down();
}

#[test]
fn gluster_heals_what_a_server_missed() {
    needs_root!();
    let Some(bed) = Bed::up("replicated", &["--software=gluster", "--size=200m"]) else {
        return;
    };
    let healed = || {
        let lines = bed.lines();
        lines.len() == 2
            && lines
                .iter()
                .all(|l| l.ends_with(": Connected, entries to heal: 0"))
    };
    let before = write_before(&bed);
    bed.load();
    for server in ["server.1", "server.2"] {
        bed.fault(&format!("kill {server}"));
        bed.sh(&format!("echo missed > $FILES/{server}"));
        bed.fault(&format!("restart {server}"));
        wait_until("healing", healed);
        let copy = bed.data().join(format!("{server}-disk/brick/{server}"));
        assert_eq!(bed.sh(&format!("cat {}", copy.display())), "missed\n");
    }
    bed.hurt(&["server.1"]);
    wait_until("healing", healed);
    bed.hurt(&["management", "client"]);
    bed.fill_and_heal("server.2");
    wait_until("healing", healed);
    bed.cut_and_heal("server.1");
    wait_until("healing", healed);
    same_as_before(&bed, &before);

    // The node adopts the process that the management daemon has started.
    bed.fault("kill server.2");
    bed.fault("restart management");
    wait_until("the server", || bed.state("server.2") == "running");
    wait_until("healing", healed);
    same_as_before(&bed, &before);
    bed.down();
}

#[test]
fn moosefs_goes_on_with_one_server() {
    needs_root!();
    let Some(bed) = Bed::up("replicated", &["--software=moosefs", "--size=600m"]) else {
        return;
    };
    let before = write_before(&bed);
    bed.load();
    bed.hurt(&["server.1", "master", "client"]);
    bed.cut_and_heal("server.2");
    bed.fill_and_heal("server.1");
    same_as_before(&bed, &before);
    bed.down();
}

/// Without a client, nothing can be written to the machine's own disk through the mount point.
#[test]
fn without_a_client_nothing_is_written() {
    needs_root!();
    let Some(bed) = Bed::up("replicated", &["--software=moosefs"]) else {
        return;
    };
    bed.sh("echo here > $FILES/f");
    bed.fault("kill client");
    let ended = Ended::of(bed.script("umount --lazy $FILES; echo there > $FILES/f"));
    assert!(
        ended.stderr.contains("Read-only file system"),
        "{}",
        ended.stderr
    );
    bed.fault("restart client");
    assert_eq!(bed.sh("cat $FILES/f"), "here\n");
    bed.down();
}

#[test]
fn the_kernels_server_keeps_files_over_a_crash() {
    needs_root!();
    kernel_server_keeps_files(&["--nfs-version=3", "--rtt=2ms", "--size=64m"]);
}

/// Starts the kernel's server behind a line, injects each fault, and checks that no file is lost.
pub fn kernel_server_keeps_files(options: &[&str]) {
    let Some(bed) = Bed::up("knfsd", options) else {
        return;
    };
    let versions = ["v3", "v4.1"];
    for version in versions {
        bed.md_through(version, "-1");
    }
    bed.hurt(&["server"]);
    bed.cut_and_heal("server");
    bed.cut_and_heal("line");
    bed.fault("delay 1ms line");
    assert_eq!(bed.state("line"), "round trip 1ms");
    for version in versions {
        bed.md_through(version, "-2");
    }
    bed.load();
    bed.down();
}

#[test]
fn an_edge_of_metadata_has_all_data_at_the_core() {
    needs_root!();
    let Some(bed) = Bed::up("edge-metadata", &["--rtt=2ms", "--size=100m"]) else {
        return;
    };
    bed.md("-1");
    let at_core = bed.sh(&format!("ls {}/export/md | wc -l", bed.data().display()));
    assert_ne!(at_core.trim(), "0");
    bed.load();
    bed.cut_and_heal("line");
    bed.fault("delay 1ms");
    bed.fill_and_heal("core");
    bed.cut_and_heal("core");
    bed.cut_and_heal("edge");
    bed.hurt(&["core", "edge"]);
    bed.md("-2");
    bed.load();
    bed.down();
}

#[test]
fn ganesha_behind_a_line_serves_each_version() {
    needs_root!();
    let options = ["--nfs-version=4.0", "--rtt=2ms", "--size=100m"];
    let Some(bed) = Bed::up("nfs", &options) else {
        return;
    };
    let versions = ["v3", "v4.0", "v4.1"];
    for version in versions {
        bed.md_through(version, "-1");
    }
    bed.load();
    bed.cut_and_heal("line");
    bed.fill_and_heal("server");
    bed.hurt(&["server", "port-mapper"]);
    for version in versions {
        bed.md_through(version, "-2");
    }
    bed.down();
}

#[test]
fn a_caching_edge_goes_on_after_faults() {
    needs_root!();
    let Some(bed) = Bed::up("edge", &["--rtt=2ms", "--write-back=1s", "--size=100m"]) else {
        return;
    };
    bed.md("-1");
    bed.load();
    bed.cut_and_heal("line");
    bed.cut_and_heal("core-line");
    bed.fault("delay 1ms line");
    for node in ["edge", "core"] {
        bed.fill_and_heal(node);
    }
    bed.hurt(&["core", "edge", "core-nfs"]);
    bed.md("-2");
    bed.load();
    // All data that the edge has acknowledged reach the core in the end.
    bed.beds.done(&["testbed", "status", NAME, "--wait", "60s"]);
    let at_core = bed.sh(&format!("ls {}/core/md | wc -l", bed.data().display()));
    assert_ne!(at_core.trim(), "0");
    bed.down();
}

/// Over S3 the core's files are objects of a bucket.
#[test]
fn an_edge_writes_back_to_an_object_store() {
    needs_root!();
    let options = ["--rtt=2ms", "--write-back=1s", "--core-protocol=s3"];
    let Some(bed) = Bed::up("edge", &options) else {
        return;
    };
    bed.md("-1");
    bed.load();
    bed.cut_and_heal("line");
    bed.hurt(&["core"]);
    bed.md("-2");
    bed.beds.done(&["testbed", "status", NAME, "--wait", "60s"]);
    let at_core = bed.sh(&format!(
        "find {}/core/files/md -type f | wc -l",
        bed.data().display()
    ));
    assert_ne!(at_core.trim(), "0");
    bed.down();
}

#[test]
fn a_core_without_its_edge_is_far_away() {
    needs_root!();
    let Some(bed) = Bed::up("edge", &["--rtt=2ms", "--without-edge"]) else {
        return;
    };
    bed.md("-1");
    bed.cut_and_heal("core-line");
    bed.hurt(&["core-nfs"]);
    bed.md("-2");
    bed.down();
}

/// The files are on a device of their own, whose operation rate is limited for processes that load the bed.
#[test]
fn a_local_file_system_is_filled_and_slowed() {
    needs_root!();
    for file_system in ["ext4", "xfs", "btrfs"] {
        let options = ["--file-system", file_system, "--size", "400m"];
        let Some(bed) = Bed::up("local", &options) else {
            return;
        };
        bed.load();
        let kind = bed.sh("stat --file-system --format=%T ${FILES%/*}");
        let expected = if file_system == "ext4" {
            "ext2/ext3"
        } else {
            file_system
        };
        assert_eq!(kind.trim(), expected);
        bed.sh("mkdir $FILES");
        assert!(!bed.files().exists(), "only the bed sees its mount");
        let before = write_before(&bed);
        bed.fault("fill");
        assert_eq!(bed.state("disk"), "full");
        let mut full = bed.script("head -c 1000000 /dev/zero > ${FILES%/*}/more");
        full.env("LC_ALL", "C");
        let full = Ended::of(full);
        assert_ne!(full.code, Some(0));
        let full = full.stderr;
        assert!(full.contains("No space left on device"), "{full}");
        bed.fault("heal");
        bed.sh("head -c 1000000 /dev/zero > ${FILES%/*}/more");
        same_as_before(&bed, &before);
        if file_system == "ext4" {
            slow_and_heal(&bed);
        }
        bed.down();
    }
}

fn slow_and_heal(bed: &Bed) {
    let reads = || {
        let mut command = bed.beds.on(NAME, &["run", "randomread", "--time=2s"]);
        command.args(["--set=filesize=16m", "--set=directio=1", "--format=json"]);
        // The root directory of the file system has other files.
        command.args(["--dir={}/random", "--results=results"]);
        Ended::of(command).result(0).summary.ops
    };
    let slow = bed
        .beds
        .command(&["testbed", "fault", NAME, "slow", "50iops"]);
    let slow = Ended::of(slow);
    if slow.code != Some(0) {
        // Some systems have no control groups for block devices.
        assert!(
            slow.stderr.contains("`slow` applies to no node"),
            "{}",
            slow.stderr
        );
        return;
    }
    assert_eq!(bed.state("disk"), "50 iops");
    // The assertion allows twice the limited rate, because the kernel may permit a burst.
    let ops = reads();
    assert!(ops <= 200, "{ops}");
    bed.fault("heal disk");
    assert_eq!(bed.state("disk"), "");
}

/// The next command of `plimsoll testbed` removes a bed whose first process was killed, and a bed whose start was
/// killed. `beds.rs` tests the removal of killed beds of the kind `nfs`.
#[test]
fn a_bed_whose_process_is_killed_is_swept() {
    needs_root!();
    for (kind, options) in [
        ("knfsd", &[][..]),
        ("edge-metadata", &[]),
        ("edge", &[]),
        ("local", &["--size=300m"]),
        ("replicated", &["--software=moosefs"]),
    ] {
        // `Bed::up` returns `None` if this machine lacks the kind's programs or rights.
        let Some(bed) = Bed::up(kind, options) else {
            continue;
        };
        signal(bed.beds.keeper(NAME).pid, Signal::KILL);
        assert_no_process(&bed);
        bed.assert_gone();
        a_killed_start_is_swept(kind, options);
    }
}

fn assert_no_process(bed: &Bed) {
    let root = bed.beds.dir().to_string_lossy().into_owned();
    wait_until("the end of its processes", || {
        processes_with(&root).is_empty()
    });
}

fn a_killed_start_is_swept(kind: &str, options: &[&str]) {
    let bed = Bed::new();
    let words = ["testbed", "up", kind, "--name", NAME, "--quiet"];
    let mut up = bed.beds.command(&words);
    let up = up.args(options);
    let up = up.stdout(Stdio::null()).stderr(Stdio::null());
    let mut up = up.spawn().unwrap();
    let logs = bed.beds.dir().join("states").join(NAME).join("logs");
    wait_until("the start", || logs.exists());
    up.kill().unwrap();
    up.wait().unwrap();
    // The bed may have come up just before.
    let _ = Ended::of(bed.beds.command(&["testbed", "down", NAME]));
    assert_no_process(&bed);
    bed.assert_gone();
}
