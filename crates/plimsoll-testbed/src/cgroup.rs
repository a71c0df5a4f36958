//! A limit of the rate of a block device's operations, by a control group.
//!
//! Both versions of control groups are used: the throttle of `blkio` (version 1) and `io.max` (version
//! 2). The group applies to the processes that are in it: the bed's own and those that enter the bed.

use crate::BedError;
use std::path::{Path, PathBuf};

/// A limit of the operations per second of one block device.
pub struct IoLimit {
    group: PathBuf,
    /// Major and minor number of the device.
    device: (u32, u32),
    is_unified: bool,
    iops: Option<u64>,
}

impl IoLimit {
    /// A group of this name without a limit yet, for a device.
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

    /// The group's directory.
    pub(crate) fn group(&self) -> &Path {
        &self.group
    }

    /// The limit.
    pub(crate) fn iops(&self) -> Option<u64> {
        self.iops
    }

    /// Sets or removes the limit, of reads and of writes each.
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
        // A process that still is in it is the user's, and keeps it.
        let _ = std::fs::remove_dir(&self.group);
    }
}

/// Removes the group of a name that a process has left which was killed, if there is one.
pub(crate) fn remove_group(name: &str) {
    if let Some((parent, _)) = io_controller() {
        // Most beds have none, and one with a process that still is in it stays.
        let _ = std::fs::remove_dir(parent.join(name));
    }
}

/// The directory in which groups for block devices are made, and whether it is of version 2.
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
