//! The block device of a file system.

use procfs::FromRead;
use procfs::process::MountInfos;
use rustix::fs::{AtFlags, CWD, FileType, Stat, StatxFlags};
use std::os::fd::AsFd;
use std::path::Path;

/// A block device, identified by its device numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockDevice {
    pub(super) major: u32,
    pub(super) minor: u32,
}

impl BlockDevice {
    /// The device of an open directory's file system; `None` if the file system has no block device, such as tmpfs or
    /// NFS.
    pub(super) fn of_dir(dir: impl AsFd) -> Option<Self> {
        Self::at(dir, Path::new(""), AtFlags::EMPTY_PATH)
    }

    /// The device at a path, or at the nearest existing parent directory.
    fn of_path(path: &Path) -> Option<Self> {
        let absolute = std::path::absolute(path).ok()?;
        let existing = absolute.ancestors().find(|p| p.exists())?;
        Self::at(CWD, existing, AtFlags::empty())
    }

    fn at(dir: impl AsFd, path: &Path, flags: AtFlags) -> Option<Self> {
        let stat = rustix::fs::statx(dir, path, flags, StatxFlags::MNT_ID).ok()?;
        let device = Self {
            major: stat.stx_dev_major,
            minor: stat.stx_dev_minor,
        };
        if Path::new(&device.attributes()).exists() {
            return Some(device);
        }
        // File systems such as btrfs give each volume its own device number; the mount table names the block device.
        let is_known = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let mounts = MountInfos::from_file("/proc/self/mountinfo").ok()?.0;
        let mut mounts = mounts.into_iter().filter(|_| is_known);
        let mount = mounts.find(|m| m.mnt_id as u64 == stat.stx_mnt_id)?;
        Self::of_file(Path::new(&mount.mount_source?))
    }

    /// The device of a device file such as `/dev/sda`.
    fn of_file(path: &Path) -> Option<Self> {
        Self::of_stat(&rustix::fs::stat(path).ok()?)
    }

    /// The device of a device file with the attributes `stat`; `None` for any other file.
    pub(super) fn of_stat(stat: &Stat) -> Option<Self> {
        let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        is_device.then(|| Self {
            major: rustix::fs::major(stat.st_rdev),
            minor: rustix::fs::minor(stat.st_rdev),
        })
    }

    /// The sysfs directory of the device.
    pub(super) fn attributes(self) -> String {
        format!("/sys/dev/block/{}:{}", self.major, self.minor)
    }

    /// Maximum requests that the device queues (`nr_requests`).
    pub(super) fn queued_requests(self) -> Option<u32> {
        let base = self.attributes();
        // A partition uses the queue of its disk.
        let paths = ["queue", "../queue"].map(|queue| format!("{base}/{queue}/nr_requests"));
        let text = paths.iter().find_map(|p| std::fs::read_to_string(p).ok())?;
        text.trim().parse().ok()
    }
}

/// Whether a directory is, or once created will be, on a block device.
#[must_use]
pub fn is_on_block_device(dir: &Path) -> bool {
    BlockDevice::of_path(dir).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_not_a_block_device() {
        assert!(!is_on_block_device(Path::new("/proc")));
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        assert!(!is_on_block_device(&dir.path().join("not/there/yet")));
        assert_eq!(BlockDevice::of_file(Path::new("/dev/null")), None);
    }

    /// The device number of a disk's file system is the number of the device in the mount table.
    #[test]
    fn file_systems_of_disks_are_on_the_devices_of_their_mounts() {
        let mounts = MountInfos::from_file("/proc/self/mountinfo").unwrap().0;
        for mount in mounts
            .iter()
            .filter(|m| ["ext4", "xfs"].contains(&&*m.fs_type))
        {
            let source = mount.mount_source.as_deref().unwrap_or_default();
            // A name such as /dev/root may have no device file.
            let Some(device) = BlockDevice::of_file(Path::new(source)) else {
                continue;
            };
            let (at, flags) = (&mount.mount_point, AtFlags::empty());
            // Another file system may be mounted over this mount point.
            let shown = rustix::fs::statx(CWD, at, flags, StatxFlags::MNT_ID);
            if shown.is_ok_and(|shown| shown.stx_mnt_id == mount.mnt_id as u64) {
                assert_eq!(BlockDevice::of_path(at), Some(device), "{source}");
                assert!(device.queued_requests().is_some_and(|n| n > 0), "{source}");
            }
        }
    }
}
