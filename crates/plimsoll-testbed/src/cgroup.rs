//! A limit on the operation rate of a block device, by a control group.
//!
//! Both versions of control groups are supported: `blkio.throttle` (version 1) and `io.max` (version 2). The limit
//! applies to the processes in the group: processes of the bed, and processes that enter the bed.

use crate::BedError;
use crate::process_id::ProcessId;
use std::path::{Path, PathBuf};

/// A limit on the operations per second of one block device.
pub struct IoLimit {
    group: PathBuf,
    /// Major and minor number of the device.
    device: (u32, u32),
    is_unified: bool,
    iops: Option<u64>,
}

impl IoLimit {
    /// Creates a control group without a limit, for a device.
    ///
    /// # Errors
    /// If the system has no control groups for block devices.
    pub(crate) fn new(name: &str, device: (u32, u32)) -> Result<Self, BedError> {
        let (parent, is_unified) = io_controller().ok_or_else(|| {
            BedError::failed(
                "limiting a device",
                "the system has no control groups for block devices",
            )
        })?;
        let group = parent.join(name);
        std::fs::create_dir_all(&group).map_err(BedError::at(&group))?;
        Ok(Self {
            group,
            device,
            is_unified,
            iops: None,
        })
    }

    pub(crate) fn group(&self) -> &Path {
        &self.group
    }

    /// Maximum operations per second, of reads and of writes each; `None` without a limit.
    pub(crate) fn iops(&self) -> Option<u64> {
        self.iops
    }

    /// Sets or removes the limit, in operations per second, of reads and of writes each.
    pub(crate) fn set(&mut self, iops: Option<u64>) -> Result<(), BedError> {
        let (major, minor) = self.device;
        let write = |file: &str, text: String| {
            let path = self.group.join(file);
            std::fs::write(&path, text).map_err(BedError::at(&path))
        };
        if self.is_unified {
            let limit = iops.map_or("max".into(), |n| n.to_string());
            write(
                "io.max",
                format!("{major}:{minor} riops={limit} wiops={limit}"),
            )?;
        } else {
            for file in [
                "blkio.throttle.read_iops_device",
                "blkio.throttle.write_iops_device",
            ] {
                write(file, format!("{major}:{minor} {}", iops.unwrap_or(0)))?;
            }
        }
        self.iops = iops;
        Ok(())
    }
}

impl Drop for IoLimit {
    fn drop(&mut self) {
        // The group stays if a process of the user is still in the group.
        let _ = std::fs::remove_dir(&self.group);
    }
}

/// Prefix of the names of groups.
const PREFIX: &str = "plimsoll-testbed-";

pub(crate) fn group_name(bed: &str, pid: i32) -> String {
    format!("{PREFIX}{bed}-{pid}")
}

/// Removes the control group of a bed whose keeper has ended. Other directories are not touched.
pub(crate) fn remove(group: &Path) {
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let parent = io_controller().map(|(parent, _)| parent);
    if name.starts_with(PREFIX) && group.parent() == parent.as_deref() {
        // The group stays if a process of the user is still in the group.
        let _ = std::fs::remove_dir(group);
    }
}

/// Removes empty control groups of beds whose keeper has ended.
pub(crate) fn sweep() {
    let parent = io_controller().map(|(parent, _)| parent);
    let entries = parent.and_then(|p| std::fs::read_dir(p).ok());
    for entry in entries.into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|n| n.rsplit('-').next());
        let pid: Option<i32> = pid.and_then(|pid| pid.parse().ok());
        if pid.is_some_and(|pid| ProcessId::of(pid).is_none()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// The directory in which control groups for block devices are created, and whether its version is 2.
fn io_controller() -> Option<(PathBuf, bool)> {
    let legacy = Path::new("/sys/fs/cgroup/blkio");
    if legacy.join("blkio.throttle.read_iops_device").exists() || legacy.join("tasks").exists() {
        return Some((legacy.into(), false));
    }
    let unified = Path::new("/sys/fs/cgroup");
    let controllers = std::fs::read_to_string(unified.join("cgroup.subtree_control")).ok()?;
    controllers
        .split_whitespace()
        .any(|c| c == "io")
        .then(|| (unified.into(), true))
}
