//! `local`: a file system on a loop device, with a size and an operation rate limit.

use super::{IP, Kind, KindChoice, Rights, no_status};
use crate::BedError;
use crate::bed::Bed;
use crate::cgroup::IoLimit;
use crate::daemon::CommandLine;
use crate::needs::Need;
use crate::options::BedOptions;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "local",
    summary: "a file system on a loop device: ext4, XFS or btrfs, of a size and with a limit of its rate",
    options: &["--file-system", "--size"],
    choice: Some(KindChoice {
        option: "--file-system",
        values: &FILE_SYSTEMS,
        set: |options, value| options.file_system = Some(value),
    }),
    needs,
    rights: |_| Rights::Root("loop devices belong to the machine"),
    up,
    status: no_status,
};

/// File systems, the default first.
const FILE_SYSTEMS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Size of the file system in bytes if none is given.
const DEFAULT_SIZE: u64 = 1 << 30;

/// Minimum size in bytes: the minimum size of XFS.
const MIN_SIZE: u64 = 300 << 20;

fn file_system(options: &BedOptions) -> Result<&'static str, BedError> {
    BedOptions::choice(
        "--file-system",
        options.file_system.as_deref(),
        &FILE_SYSTEMS,
    )
}

fn needs(options: &BedOptions) -> Result<Vec<Need>, BedError> {
    let size = options.size.unwrap_or(DEFAULT_SIZE);
    if size < MIN_SIZE {
        return Err(BedError::Usage(format!(
            "--size {size}: a file system needs at least {MIN_SIZE} bytes (300m)"
        )));
    }
    let make = match file_system(options)? {
        "xfs" => Need::debian("mkfs.xfs", "xfsprogs"),
        "btrfs" => Need::debian("mkfs.btrfs", "btrfs-progs"),
        _ => Need::debian("mkfs.ext4", "e2fsprogs"),
    };
    Ok(vec![IP, make, Need::debian("mount", "mount")])
}

fn up(bed: &mut Bed) -> Result<(), BedError> {
    let file_system = file_system(&bed.options)?;
    let size = bed.options.size.unwrap_or(DEFAULT_SIZE);
    let disk = bed.data("disk")?;
    check_room(&disk, size)?;
    let image = disk.join("image");
    File::create(&image)
        .and_then(|f| f.set_len(size))
        .map_err(BedError::at(&image))?;
    bed.progress(&format!("making {file_system}"));
    let make = CommandLine::new(format!("mkfs.{file_system}"));
    let quiet = make.clone().arg("-q").arg(&image);
    bed.run(&quiet)?;
    let dir = bed.mount_dir()?;
    let mount = CommandLine::new("mount")
        .args(["-o", "loop"])
        .arg(&image)
        .arg(&dir);
    bed.run(&mount)?;
    let device = dir.metadata().map_err(BedError::at(&dir))?.dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    bed.software(file_system, "file system", &make.arg("-V"));
    bed.note(format!(
        "{file_system} of {size} bytes on a loop device, on a file system of this machine"
    ));
    let name = bed.group_name();
    // No limit applies to btrfs, which has device numbers of its own.
    let limit = match file_system {
        "btrfs" => None,
        _ => IoLimit::new(&name, device).ok(),
    };
    if let Some(limit) = &limit {
        bed.set_control_group(limit.group().to_owned());
    }
    let node = bed.node("disk", "file system", None);
    node.note_file_system(&dir);
    if let Some(limit) = limit {
        node.set_io_limit(limit);
    }
    bed.add_directory("disk", dir);
    Ok(())
}

/// Checks that the whole file system could be written, because the fault `fill` fills the file system.
fn check_room(dir: &Path, size: u64) -> Result<(), BedError> {
    let free = rustix::fs::statvfs(dir).map_err(|e| BedError::at(dir)(e.into()))?;
    let free = free.f_bavail.saturating_mul(free.f_frsize);
    match size <= free {
        true => Ok(()),
        false => Err(BedError::Usage(format!(
            "--size {size}: the file system of {} has {free} bytes free",
            dir.display()
        ))),
    }
}
