//! Jobs on a raw block device.

use super::common::{groups, groups_on_device, notes, transfers};
use plimsoll_plan::{Phase, Value};
use std::path::Path;

#[test]
fn jobs_share_a_device_of_its_whole_size() {
    let text = "[global]\nfilename=/dev/sdb\nioengine=libaio\niodepth=4\n\
                [r]\nrw=randread\n[w]\nrw=write\nsize=50%\noffset=512k\nnumjobs=2\ndirectory=/x\n";
    let mut groups = groups_on_device(text).unwrap();
    assert_eq!(groups.len(), 1);
    let group = groups.remove(0);
    assert_eq!(group.target, "device:/dev/sdb?serial=S1");
    let plan = group.plan;
    let [fileset] = &plan.filesets[..] else {
        panic!("{:?}", plan.filesets)
    };
    assert_eq!((fileset.entries, fileset.size), (1, Value::Const(1 << 20)));
    assert_eq!(fileset.cached, Some(false));
    // Nothing is made, and no directory is used.
    assert!(
        !plan
            .script
            .iter()
            .any(|phase| matches!(phase, Phase::Populate { .. }))
    );
    assert_eq!(plan.work_dir.dir, Path::new("/dev/sdb"));
    assert!(!plan.work_dir.temporary);
    // The whole device is read, and the second half is written.
    let read = transfers(&plan);
    assert_eq!((read.offset, read.bytes), (0, Some(1 << 20)));
    let write = plan.groups[1].program.job().unwrap().transfers().unwrap();
    assert_eq!((write.offset, write.span), (512 << 10, 512 << 10));
    assert_eq!(write.bytes, Some(512 << 10));
    let text = notes(&plan);
    assert!(
        text.contains("the job overwrites the content of `/dev/sdb`"),
        "{text}"
    );
    assert!(text.contains("`directory` has no effect"), "{text}");
}

#[test]
fn a_job_of_system_calls_that_only_reads_overwrites_nothing() {
    let group = groups_on_device("[r]\nfilename=/dev/sdb\nrw=read\n")
        .unwrap()
        .remove(0);
    assert_eq!(group.target, "device:/dev/sdb?serial=S1");
    assert_eq!(notes(&group.plan), "");
}

#[test]
fn the_serial_permits_only_block_devices() {
    let job = "[a]\nsize=4k\nfilename=/dev/null\n";
    for groups in [groups(job), groups_on_device(job)] {
        let found = groups.err().unwrap().findings().remove(0);
        assert_eq!(found.message, "`/dev/null` is not a block device");
        assert_eq!((found.line, found.column), (3, 10));
    }
}

#[test]
fn what_a_device_lacks_is_refused_at_its_place() {
    for (options, line, message) in [
        (
            "verify=crc32c",
            3,
            "Plimsoll does not verify the content of a device",
        ),
        (
            "fallocate=posix",
            3,
            "a device has all of its blocks: `fallocate` has no meaning",
        ),
        (
            "ioengine=filestat",
            3,
            "this engine does not work on a device",
        ),
        ("ioengine=null", 3, "this engine does not work on a device"),
        (
            "filesize=4k",
            3,
            "a device has a size of its own: `size` gives the part that the job uses",
        ),
        ("size=101%", 3, "`101%` is no value of `size`"),
        ("offset=50%", 3, "`50%` is no value of `offset`"),
        (
            "size=1m\noffset=4k",
            3,
            "the job ends 4096 bytes beyond the end of the device",
        ),
        (
            "size=512k\noffset_increment=512k\nnumjobs=3",
            3,
            "the job ends 524288 bytes beyond the end of the device",
        ),
        (
            "offset_increment=4k\nnumjobs=2",
            1,
            "clones with different offsets on a device need a `size`",
        ),
        ("filename=/dev/sdb:x", 3, "a job on a device has one name"),
        (
            "[b]\nsize=4k",
            3,
            "another job uses a device, and this job uses files",
        ),
        (
            "[b]\nstonewall\nfilename=/dev/sdc",
            5,
            "`--raw-device` has the serial of one device, and the jobs name two devices",
        ),
    ] {
        let text = format!("[a]\nfilename=/dev/sdb\n{options}\n");
        let errors = groups_on_device(&text).err();
        let errors = errors.unwrap_or_else(|| panic!("accepted: {options}"));
        let found = errors.findings().remove(0);
        assert_eq!(
            (found.line, found.message.as_str()),
            (line, message),
            "{options}"
        );
    }
    assert!(groups_on_device("[a]\nfilename=/dev/sdb\nfallocate=none\n").is_ok());
}
