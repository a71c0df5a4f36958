//! Where a run took place: the machine and the work directory's file system.

use crate::read_source::ReadSource;
use plimsoll_measure::system::unescaped;
use procfs::process::{MountInfo, MountInfos};
use procfs::{Current, FromRead};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The machine and the place of the files. What the system does not tell is null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Name of the host.
    pub host: String,
    /// Operating system, its release and version.
    pub kernel: String,
    /// Instruction set.
    pub machine: String,
    /// Model of the processor.
    pub cpu_model: Option<String>,
    /// Processors this process may use.
    pub cpus: u32,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// The work directory and its file system; null for a target that is not a directory here.
    pub work_dir: Option<WorkDir>,
    /// How it is known what of the data that a run reads comes from the storage; null where it is
    /// not.
    #[serde(default)]
    pub read_source: Option<ReadSource>,
}

/// The work directory and the file system it lies on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDir {
    /// The directory.
    #[serde(with = "plimsoll_plan::path_text")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Type of the file system, such as `ext4`.
    pub fs_type: Option<String>,
    /// What is mounted: a device, or the name of a remote file system.
    pub device: Option<String>,
    /// Where it is mounted.
    #[serde(default, with = "plimsoll_plan::path_text::option")]
    #[schemars(with = "Option<String>")]
    pub mount_point: Option<PathBuf>,
    /// Options of the mount and of the file system, sorted.
    pub mount_options: Vec<String>,
}

impl Environment {
    /// Looks at this machine, and at the file system of `work_dir` if the target is one.
    #[must_use]
    pub fn look(work_dir: Option<&Path>) -> Self {
        let uname = rustix::system::uname();
        let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get());
        Self {
            host: text(uname.nodename()),
            kernel: format!(
                "{} {} {}",
                text(uname.sysname()),
                text(uname.release()),
                text(uname.version())
            ),
            machine: text(uname.machine()),
            cpu_model: procfs::CpuInfo::current()
                .ok()
                .and_then(|info| info.model_name(0).map(str::to_owned)),
            cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
            memory_bytes: procfs::Meminfo::current().ok().map(|m| m.mem_total),
            work_dir: work_dir.map(WorkDir::look),
            read_source: None,
        }
    }
}

impl WorkDir {
    /// Looks up the file system that a directory, or its nearest existing parent, lies on.
    #[must_use]
    pub fn look(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mounts = mounts();
        let found = find_mount(&path, &mounts).cloned();
        let Some(mount) = found else {
            return Self {
                path,
                ..Self::default()
            };
        };
        let option = |(name, value): (String, Option<String>)| match value {
            Some(value) => format!("{name}={value}"),
            None => name,
        };
        let options = mount.mount_options.into_iter().chain(mount.super_options);
        let mut mount_options: Vec<String> = options.map(option).collect();
        mount_options.sort();
        mount_options.dedup();
        Self {
            path,
            fs_type: Some(mount.fs_type),
            device: mount.mount_source,
            mount_point: Some(mount.mount_point),
            mount_options,
        }
    }
}

/// What is mounted, as this process sees it; nothing where the system does not tell.
pub(crate) fn mounts() -> Vec<MountInfo> {
    let found = MountInfos::from_file("/proc/self/mountinfo");
    let mut mounts = found.map_or_else(|_| vec![], |mounts| mounts.0);
    for mount in &mut mounts {
        mount.mount_point = unescaped(&mount.mount_point.to_string_lossy()).into();
    }
    mounts
}

/// The mount that a path lies on: the longest mount point that is a parent of the path with its
/// symbolic links followed, and of several there the latest, which hides the others.
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

    fn mount(line: &str) -> procfs::process::MountInfo {
        procfs::process::MountInfo::from_line(line).unwrap()
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

    #[test]
    fn this_machine_has_a_name_and_processors() {
        let e = Environment::look(Some(Path::new("/")));
        assert!(!e.kernel.is_empty() && e.cpus >= 1);
        assert_eq!(e.work_dir.unwrap().path, Path::new("/"));
        assert_eq!(Environment::look(None).work_dir, None);
    }
}
