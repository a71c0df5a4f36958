//! `plimsoll fio` on a raw block device: a loop device, whose serial is the path of its file.

use crate::common::loop_device::{LoopDevice, RawLoopDevice};
use crate::common::{Bench, Ended, row};
use plimsoll_results::{ReadSource, Run};
use plimsoll_testkit::needs_root;
use std::process::Command;

const DEVICE_BYTES: usize = 8 << 20;

fn device() -> Option<RawLoopDevice> {
    let pattern: Vec<u8> = (0..DEVICE_BYTES).map(|at| (at / 4096 + at) as u8).collect();
    RawLoopDevice::new(&pattern)
}

/// `plimsoll fio` with a job on a device; results are in the bench.
fn fio(bench: &Bench, device: &str, words: &[&str]) -> Ended {
    let mut command = bench.plimsoll(["fio", "--results"]);
    command.arg(bench.path("results"));
    command.args(["--name=d", &format!("--filename={device}")]);
    command.args(words);
    Ended::of(command)
}

fn only_run(bench: &Bench) -> Run {
    let results = bench.results();
    assert_eq!(results.len(), 1);
    results[0].read_with(None).unwrap()
}

/// Bytes that the kernel has read from a device (field 3 of `stat` of sysfs, in units of 512 bytes).
fn bytes_read(device: &str) -> u64 {
    let name = device.strip_prefix("/dev/").unwrap();
    let text = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    text.split_whitespace()
        .nth(2)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 512
}

#[test]
fn random_writes_arrive_at_the_part_of_the_device_that_a_job_uses() {
    needs_root!();
    for engine in ["psync", "libaio", "mmap"] {
        let Some(device) = device() else { return };
        let before = device.contents();
        let ended = fio(
            &device.bench,
            &device.path,
            &[
                "--rw=randwrite",
                "--bs=4k",
                "--size=50%",
                "--iodepth=4",
                &format!("--ioengine={engine}"),
                "--end_fsync=1",
                "--raw-device",
                &device.serial(),
            ],
        );
        assert_eq!(ended.code, Some(0), "{engine}\n{}", ended.stderr);
        let run = only_run(&device.bench);
        let writes = row(&run, "d.write");
        assert_eq!((writes.ops, writes.bytes), (1024, 4 << 20), "{engine}");
        let expected = format!("device, {}: loop device, 8 MiB, serial ", device.path);
        let described = &run.target.description;
        assert!(described.starts_with(&expected), "{described}");
        assert_eq!(described.contains("io_uring"), engine == "libaio");
        let after = device.contents();
        let is_same = |at: usize| before[at..at + 4096] == after[at..at + 4096];
        let unchanged: Vec<usize> = (0..DEVICE_BYTES)
            .step_by(4096)
            .filter(|at| is_same(*at))
            .collect();
        let second_half: Vec<usize> = (DEVICE_BYTES / 2..DEVICE_BYTES).step_by(4096).collect();
        assert_eq!(unchanged, second_half, "{engine}");
        // No work directory was made, and the device is free again.
        assert_eq!(
            device.bench.left_but(&["results", "image"]),
            Vec::<String>::new()
        );
    }
}

#[test]
fn random_reads_come_from_the_whole_device_and_change_nothing() {
    needs_root!();
    for (engine, more) in [
        ("psync", "--direct=1"),
        ("io_uring", "--direct=1"),
        ("psync", "--direct=0"),
    ] {
        let Some(device) = device() else { return };
        let (before, read) = (device.contents(), bytes_read(&device.path));
        let engine = format!("--ioengine={engine}");
        let serial = format!("--raw-device={}", device.serial());
        let job = ["--rw=randread", "--bs=4k", more, &engine, &serial];
        let ended = fio(&device.bench, &device.path, &job);
        assert_eq!(ended.code, Some(0), "{engine}\n{}", ended.stderr);
        let run = only_run(&device.bench);
        let reads = row(&run, "d.read");
        assert_eq!((reads.ops, reads.bytes), (2048, DEVICE_BYTES as u128));
        // Each block is read once, from the device: buffered reads begin without cached pages.
        let read = bytes_read(&device.path) - read;
        assert!(read >= DEVICE_BYTES as u64, "{engine} {more}: {read}");
        assert_eq!(run.environment.read_source, Some(ReadSource::Memory));
        assert!(
            device.contents() == before,
            "a job that reads changed the device"
        );
    }
}

#[test]
fn a_wrong_or_missing_serial_is_refused_and_the_device_keeps_its_content() {
    needs_root!();
    let Some(device) = device() else { return };
    let (before, path) = (device.contents(), device.path.as_str());
    let job = ["--rw=write", "--bs=4k"];
    let size = "loop device, 8 MiB";
    let missing = fio(&device.bench, path, &job);
    let message = &missing.stderr;
    assert_eq!(missing.code, Some(2), "{message}");
    let raw = format!("`{path}` is a raw device: {size}");
    for part in [
        raw.as_str(),
        "--raw-device SERIAL",
        "losetup",
        "command line:2",
    ] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let wrong = fio(
        &device.bench,
        path,
        &[&job[..], &["--raw-device=S1"]].concat(),
    );
    let message = &wrong.stderr;
    assert_eq!(wrong.code, Some(2), "{message}");
    for part in [size, "has another serial", "losetup", "^^"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains(&device.serial()), "{message}");
    assert!(
        device.contents() == before,
        "a refused run changed the device"
    );
    assert!(device.bench.results().is_empty());
}

#[test]
fn a_mounted_device_is_refused() {
    needs_root!();
    let Some(mounted) = LoopDevice::ext4("errors=continue") else {
        return;
    };
    let image = mounted.bench.path("image");
    let mut command = Command::new("losetup");
    command
        .args(["--noheadings", "--output=NAME", "--associated"])
        .arg(&image);
    let path = Ended::of(command).stdout.trim().to_owned();
    let serial = format!("--raw-device={}", image.display());
    for rw in ["--rw=read", "--rw=write"] {
        let ended = fio(&mounted.bench, &path, &[rw, "--size=4k", &serial]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(
            ended.stderr.contains("is in use by a mounted file system"),
            "{}",
            ended.stderr
        );
    }
    assert!(mounted.bench.results().is_empty());
}

#[test]
fn workloads_with_more_than_one_file_are_refused_on_a_device() {
    needs_root!();
    let Some(device) = device() else { return };
    let before = device.contents();
    let target = format!("device:{}?serial={}", device.path, device.serial());
    let one = "define fileset name=f,path=f,entries=1,size=4k,prealloc\n\
               define process name=p { thread name=t,memsize=1m { flowop FLOWOP } }\nrun 1\n";
    let with = |flowop: &str| device.bench.workload(&one.replace("FLOWOP", flowop));
    for (workload, reason) in [
        (
            "fileserver".to_owned(),
            "is one block device, which serves a workload with one file",
        ),
        (
            with("deletefile name=d,filesetname=f"),
            "cannot do `d`: a block device can be opened, read, written, mapped and flushed",
        ),
    ] {
        let mut command = device
            .bench
            .plimsoll(["run", &workload, "--target", &target]);
        command.arg("--results").arg(device.bench.path("results"));
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        let message = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(message.contains(reason), "{message}");
    }
    assert!(
        device.contents() == before,
        "a refused run changed the device"
    );
}

#[test]
fn options_for_devices_need_a_device() {
    let bench = Bench::on_tmpfs();
    let job = [
        "fio",
        "--raw-device=S1",
        "--name=a",
        "--size=4k",
        "--dry-run",
    ];
    let ended = Ended::of(bench.plimsoll(job));
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("no job has a device as `filename`"),
        "{}",
        ended.stderr
    );
    let ended = fio(&bench, "/dev/null", &["--raw-device=S1"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("`/dev/null` is not a block device"),
        "{}",
        ended.stderr
    );
}
