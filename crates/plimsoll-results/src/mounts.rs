//! The table of mounted file systems.

use procfs::process::MountInfo;
use std::path::Path;

/// Mounted file systems in the mount namespace of this process; empty if `/proc/self/mountinfo` cannot be read.
pub(crate) fn mounts() -> Vec<MountInfo> {
    plimsoll_measure::system::mounts(Path::new("/proc/self/mountinfo"))
}

/// Finds the mount of a path: the longest mount point that is a parent of the path after resolving symbolic links. The
/// latest of several mounts at one point hides the others.
pub(crate) fn find_mount<'a>(path: &Path, mounts: &'a [MountInfo]) -> Option<&'a MountInfo> {
    let existing = path.ancestors().find_map(|p| p.canonicalize().ok())?;
    mounts
        .iter()
        .filter(|m| existing.starts_with(&m.mount_point))
        .max_by_key(|m| m.mount_point.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(line: &str) -> MountInfo {
        MountInfo::from_line(line).unwrap()
    }

    #[test]
    fn the_nearest_and_latest_mount_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let at = real.display();
        let mounts = vec![
            mount("1 0 8:1 / / rw - ext4 /dev/sda1 rw"),
            mount(&format!(
                "2 1 8:2 / {at} rw,noatime - xfs /dev/sdb1 rw,attr2"
            )),
            mount(&format!("3 1 0:9 / {at} rw - tmpfs tmpfs rw,size=1024k")),
            mount(&format!("4 1 0:8 / {at}/other rw - nfs4 host:/x rw")),
        ];
        let found = find_mount(&real.join("not/there/yet"), &mounts).unwrap();
        assert_eq!(found.fs_type, "tmpfs");
    }
}
