//! Kernel counters that tell which data a run reads from storage.
//!
//! For block devices the source is the kernel's account of the process, not the counters of the disk: the account
//! excludes other programs, can be added up over the ranks of a machine, and does not depend on the kind of device.

use crate::mounts::{find_mount, mounts};
use procfs::process::MountInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Counter that tells how many bytes a run reads from storage instead of from a cache of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReadSource {
    /// Count by the kernel of the bytes that Plimsoll's processes caused to be read from block devices (`read_bytes` in
    /// `/proc/self/io`).
    ProcessIo,
    /// Count by the kernel's NFS client of the bytes read from the server for the mount (`/proc/self/mountstats`).
    NfsMount,
    /// Count by Plimsoll's own NFS client of the bytes that its model of a cache did not hold.
    NfsClient,
    /// No counter: the files are in the memory of the machine (such as tmpfs), without storage behind the file system.
    Memory,
}

/// Types of file system that keep all data in memory.
const MEMORY_FILESYSTEMS: [&str; 5] = ["tmpfs", "ramfs", "rootfs", "devtmpfs", "hugetlbfs"];

/// Types of file system on block devices for which the kernel accounts reads of data to the process that causes the
/// reads.
const BLOCK_DEVICE_FILESYSTEMS: [&str; 20] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "nilfs2", "reiserfs", "bcachefs",
    "ocfs2", "gfs2", "vfat", "msdos", "exfat", "ntfs3", "hfs", "hfsplus", "minix", "udf",
];

/// Maximum number of block devices and file systems stacked on each other: partitions, device mapper, loop devices,
/// overlays.
const MAX_STACKED_DEVICES: u32 = 16;

impl ReadSource {
    /// Finds the counter for reads of files in `dirs`, or in the nearest existing parents of `dirs`; `None` if there is
    /// no counter, or if the directories have different counters.
    #[must_use]
    pub fn of_directories(dirs: &[PathBuf]) -> Option<Self> {
        let system = MountTable {
            mounts: mounts(),
            sys: "/sys".into(),
        };
        let mut found = dirs.iter().map(|dir| {
            let dir = std::path::absolute(dir).ok()?;
            let mount = find_mount(&dir, &system.mounts)?;
            let source = system.of_mount(mount, MAX_STACKED_DEVICES)?;
            // NFS counters are per mount, so two mounts differ.
            let mount = (source == Self::NfsMount).then_some(mount.mount_point.as_path());
            Some((source, mount))
        });
        let first = found.next()??;
        found.all(|other| other == Some(first)).then_some(first.0)
    }

    /// Finds the counter for reads of the block device at a path; `None` if there is no block device.
    #[must_use]
    pub fn of_block_device(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        let system = MountTable {
            mounts: mounts(),
            sys: "/sys".into(),
        };
        let device = metadata.file_type().is_block_device();
        let device = device.then(|| system.numbered(metadata.rdev())).flatten()?;
        Some(system.of_block_device(&device, MAX_STACKED_DEVICES))
    }
}

/// Mounted file systems, and the directory in which the kernel describes block devices (`/sys`).
struct MountTable {
    mounts: Vec<MountInfo>,
    sys: PathBuf,
}

impl MountTable {
    fn of_mount(&self, mount: &MountInfo, depth: u32) -> Option<ReadSource> {
        match mount.fs_type.as_str() {
            t if MEMORY_FILESYSTEMS.contains(&t) => Some(ReadSource::Memory),
            "nfs" | "nfs4" => Some(ReadSource::NfsMount),
            "overlay" => self.of_overlay(mount, depth.checked_sub(1)?),
            t if BLOCK_DEVICE_FILESYSTEMS.contains(&t) => self.of_device(mount, depth),
            _ => None,
        }
    }

    /// Counter for an overlay: the counter of the file system of the upper directory, which holds the files of a run.
    /// An upper directory that is not visible, as in a container, is assumed to be on a block device.
    fn of_overlay(&self, mount: &MountInfo, depth: u32) -> Option<ReadSource> {
        let upper = mount.super_options.get("upperdir").cloned().flatten();
        let upper = upper
            .map(PathBuf::from)
            .filter(|p| p.is_absolute() && p.exists());
        let Some(below) = upper.and_then(|p| find_mount(&p, &self.mounts)) else {
            return Some(ReadSource::ProcessIo);
        };
        match below.fs_type.as_str() {
            // The mount table names the upper directory as the host sees it: inside a container, the path is another
            // directory.
            "overlay" => Some(ReadSource::ProcessIo),
            _ => self.of_mount(below, depth),
        }
    }

    fn of_device(&self, mount: &MountInfo, depth: u32) -> Option<ReadSource> {
        // DAX reads persistent memory in place: no block is read, and nothing is cached.
        let dax = mount.super_options.get("dax").map(Option::as_deref);
        if matches!(dax, Some(None | Some("always"))) {
            return None;
        }
        let device = self.device(mount);
        Some(device.map_or(ReadSource::ProcessIo, |device| {
            self.of_block_device(&device, depth)
        }))
    }

    fn of_block_device(&self, device: &Path, depth: u32) -> ReadSource {
        match self.is_memory(device, depth) {
            true => ReadSource::Memory,
            false => ReadSource::ProcessIo,
        }
    }

    /// Directory below `/sys` of the block device with a device number.
    fn numbered(&self, number: u64) -> Option<PathBuf> {
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let link = self.sys.join(format!("dev/block/{major}:{minor}"));
        link.canonicalize().ok()
    }

    /// Directory of a mount's block device below `/sys`.
    fn device(&self, mount: &MountInfo) -> Option<PathBuf> {
        let link = self.sys.join("dev/block").join(&mount.majmin);
        // Some file systems, such as btrfs, report device numbers that belong to no block device.
        link.canonicalize().ok().or_else(|| {
            let source = std::fs::metadata(mount.mount_source.as_ref()?).ok()?;
            self.numbered(source.rdev())
        })
    }

    /// Whether a device, or every device below it, is memory: a RAM disk, compressed memory, or a loop device on a file
    /// in memory.
    fn is_memory(&self, device: &Path, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let name = device.file_name().unwrap_or_default().to_string_lossy();
        let numbered = |prefix: &str| {
            let number = name.strip_prefix(prefix);
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        if numbered("ram") || numbered("zram") {
            return true;
        }
        if device.join("partition").exists() {
            return device
                .parent()
                .is_some_and(|disk| self.is_memory(disk, depth));
        }
        if let Ok(file) = std::fs::read_to_string(device.join("loop/backing_file")) {
            let file = Path::new(file.trim_end_matches('\n'));
            // A backing file that is removed or in another namespace has no known mount.
            let mount = file
                .exists()
                .then(|| find_mount(file, &self.mounts))
                .flatten();
            let source = mount.and_then(|m| self.of_mount(m, depth));
            return source == Some(ReadSource::Memory);
        }
        let Ok(parts) = std::fs::read_dir(device.join("slaves")) else {
            return false;
        };
        let mut parts = parts
            .filter_map(|e| e.ok()?.path().canonicalize().ok())
            .peekable();
        parts.peek().is_some() && parts.all(|part| self.is_memory(&part, depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ReadSource::{Memory, NfsMount, ProcessIo};
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    /// Mounts from `lines` in the form of mountinfo, with devices described below `sys`.
    fn system(sys: &Path, lines: &[String]) -> MountTable {
        let mount = |line: &String| MountInfo::from_line(line).unwrap();
        MountTable {
            mounts: lines.iter().map(mount).collect(),
            sys: sys.into(),
        }
    }

    fn of(system: &MountTable, number: usize) -> Option<ReadSource> {
        system.of_mount(&system.mounts[number], MAX_STACKED_DEVICES)
    }

    #[test]
    fn file_systems_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let cases = [
            ("tmpfs tmpfs rw,size=1024k", Some(Memory)),
            ("ramfs none rw", Some(Memory)),
            ("ext4 /dev/sda1 rw", Some(ProcessIo)),
            ("xfs /dev/sda1 rw,attr2", Some(ProcessIo)),
            ("xfs /dev/pmem0 rw,dax=always", None),
            ("ext4 /dev/pmem0 rw,dax", None),
            ("ext4 /dev/pmem0 rw,dax=never", Some(ProcessIo)),
            ("nfs4 host:/x rw,vers=4.2", Some(NfsMount)),
            ("nfs host:/x rw", Some(NfsMount)),
            ("fuse.sshfs host: rw", None),
            ("9p share rw", None),
            ("overlay overlay rw,lowerdir=/l", Some(ProcessIo)),
            (
                "overlay overlay rw,upperdir=/not/in/this/namespace",
                Some(ProcessIo),
            ),
        ];
        for (what, expected) in cases {
            let line = format!("1 0 250:77 / /mnt rw - {what}");
            assert_eq!(of(&system(dir.path(), &[line]), 0), expected, "{what}");
        }
    }

    #[test]
    fn overlays_are_what_their_upper_directory_is() {
        let dir = tempfile::tempdir().unwrap();
        let upper = dir.path().canonicalize().unwrap();
        let overlay = format!(
            "2 1 0:9 / /mnt rw - overlay overlay rw,upperdir={}",
            upper.display()
        );
        for (below, expected) in [
            ("tmpfs tmpfs rw", Some(Memory)),
            ("ext4 /dev/sda1 rw", Some(ProcessIo)),
            ("overlay overlay rw", Some(ProcessIo)),
            ("fuse.x y rw", None),
        ] {
            let below = format!("1 0 250:77 / {} rw - {below}", upper.display());
            assert_eq!(of(&system(&upper, &[below, overlay.clone()]), 1), expected);
        }
    }

    #[test]
    fn devices_are_followed_to_what_they_are_made_of() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let memory = root.join("memory");
        create_dir_all(&memory).unwrap();
        write(memory.join("image"), "").unwrap();
        write(root.join("image"), "").unwrap();
        create_dir_all(root.join("dev/block")).unwrap();
        let device = |number: &str, path: &str| {
            let to = root.join("devices").join(path);
            create_dir_all(&to).unwrap();
            symlink(&to, root.join("dev/block").join(number)).unwrap();
            to
        };
        device("8:0", "sda");
        write(device("8:1", "sda/sda1").join("partition"), "1").unwrap();
        device("1:0", "ram0");
        write(device("1:1", "ram0/ram0p1").join("partition"), "1").unwrap();
        device("253:0", "zram0");
        let backed = |number: &str, path: &str, file: &Path| {
            let to = device(number, path).join("loop");
            create_dir_all(&to).unwrap();
            write(to.join("backing_file"), format!("{}\n", file.display())).unwrap();
        };
        backed("7:0", "loop0", &memory.join("image"));
        backed("7:1", "loop1", &root.join("image"));
        backed("7:2", "loop2", Path::new("/gone (deleted)"));
        let mapped = |number: &str, path: &str, parts: &[&str]| {
            let to = device(number, path).join("slaves");
            create_dir_all(&to).unwrap();
            for part in parts {
                let name = part.replace('/', "-");
                symlink(root.join("devices").join(part), to.join(name)).unwrap();
            }
        };
        mapped("254:0", "dm-0", &["ram0/ram0p1", "loop0"]);
        mapped("254:1", "dm-1", &["zram0", "sda/sda1"]);
        mapped("254:2", "dm-2", &["dm-0"]);
        mapped("254:3", "dm-3", &["dm-3"]);
        mapped("254:4", "dm-4", &[]);
        let cases = [
            ("8:0", ProcessIo),
            ("8:1", ProcessIo),
            ("1:0", Memory),
            ("1:1", Memory),
            ("253:0", Memory),
            ("7:0", Memory),
            ("7:1", ProcessIo),
            ("7:2", ProcessIo),
            ("254:0", Memory),
            ("254:1", ProcessIo),
            ("254:2", Memory),
            ("254:3", ProcessIo),
            ("254:4", ProcessIo),
            ("9:9", ProcessIo),
        ];
        for (number, expected) in cases {
            let lines = [
                "1 0 8:1 / / rw - ext4 /dev/sda1 rw".to_owned(),
                format!("2 1 0:5 / {} rw - tmpfs tmpfs rw", memory.display()),
                format!("3 1 {number} / /mnt rw - ext4 /dev/none rw"),
            ];
            assert_eq!(of(&system(&root, &lines), 2), Some(expected), "{number}");
        }
    }

    #[test]
    fn directories_of_different_kinds_have_none_in_common() {
        let of = |dirs: &[&str]| {
            let dirs: Vec<PathBuf> = dirs.iter().map(PathBuf::from).collect();
            ReadSource::of_directories(&dirs)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["/dev/shm/x", "/dev/shm/y/z"]), Some(Memory));
        assert_eq!(of(&["/dev/shm", "/proc"]), None);
    }
}
