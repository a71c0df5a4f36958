//! Environment of a run: the client machine, and the file system of the work directory.

use crate::mounts::{find_mount, mounts};
use crate::read_source::ReadSource;
use plimsoll_measure::control_groups::{ControlGroups, QuotaUse};
use plimsoll_measure::system::machine_memory;
use procfs::Current;
use rustix::fs::StatVfs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directory in which the Linux kernel has a file for each known vulnerability of processors.
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";

/// Client machine of a run, and file system of the work directory. A field of the environment is null if the operating
/// system does not report the fact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// Host name of the machine, as `uname -n` prints the name.
    pub host: String,
    /// Name, release and version of the operating system's kernel, as from `uname -srv`.
    pub kernel: String,
    /// Instruction set architecture of the machine, such as `x86_64`.
    pub machine: String,
    /// Model name of the machine's first processor; null if `/proc/cpuinfo` states no model.
    pub cpu_model: Option<String>,
    /// Mitigation of each known vulnerability of processors, in the words of the kernel, such as `Mitigation: PTI`, by
    /// the kernel's name of the vulnerability; empty if the kernel does not tell. Mitigations make system calls slower.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mitigations: BTreeMap<String, String>,
    /// Number of processors on which Plimsoll's process may run, by its CPU affinity.
    pub cpus: u32,
    /// Smallest CPU quota of the control groups of Plimsoll's process, in processors, such as 0.5; null without a
    /// quota.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine in bytes; null if unknown.
    pub memory_bytes: Option<u64>,
    /// Smallest memory limit of the control groups of Plimsoll's process in bytes, page cache included; null without a
    /// limit.
    pub memory_limit_bytes: Option<u64>,
    /// Work directory and its file system; null if the target is not a directory of this machine.
    pub work_dir: Option<WorkDir>,
    /// Counter that tells how many bytes a run reads from storage; null if no counter tells.
    pub read_source: Option<ReadSource>,
}

/// Work directory of a run, and the file system that contains the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkDir {
    /// Absolute path of the work directory, in which the run creates its files.
    #[serde(with = "plimsoll_plan::path_text")]
    #[schemars(with = "String")]
    pub path: PathBuf,
    /// Type of the work directory's file system, such as `ext4`; null if no mount was found.
    pub fs_type: Option<String>,
    /// Mounted device of the work directory's file system, or name of the remote file system; null if unknown.
    pub device: Option<String>,
    /// Mount point of the work directory's file system; null if no mount was found.
    #[serde(with = "plimsoll_plan::path_text::option")]
    #[schemars(with = "Option<String>")]
    pub mount_point: Option<PathBuf>,
    /// Options of the mount and of the file system of the work directory, sorted; empty if no mount was found.
    pub mount_options: Vec<String>,
    /// Size of the work directory's file system in bytes; null if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Free space of the work directory's file system in bytes before the run created files, including space that is
    /// reserved for root; null if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

impl Environment {
    /// Examines this machine, and the file system of `work_dir` if the target is a directory.
    #[must_use]
    pub fn look(work_dir: Option<&Path>) -> Self {
        let uname = rustix::system::uname();
        let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
        let groups = ControlGroups::of_this_process();
        let cpus = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
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
            mitigations: mitigations(Path::new(VULNERABILITIES)),
            cpus,
            cpu_quota: groups.cpu_quota().map(|(processors, _)| processors),
            memory_bytes: machine_memory().map(|(all, _)| all),
            memory_limit_bytes: groups.memory_limit().map(|limit| limit.bytes),
            work_dir: work_dir.map(WorkDir::look),
            read_source: None,
        }
    }

    /// Number of processors that Plimsoll's process may use: the processors of its CPU affinity, or a smaller CPU
    /// quota.
    #[must_use]
    pub fn usable_processors(&self) -> f64 {
        let all = f64::from(self.cpus);
        self.cpu_quota.map_or(all, |quota| quota.min(all))
    }

    /// [`usable_processors`](Self::usable_processors) as text, which names a quota below the available processors.
    #[must_use]
    pub fn processors_text(&self) -> String {
        match self.usable_processors() {
            usable if usable < f64::from(self.cpus) => {
                format!("{} of {} (CPU quota)", QuotaUse::rounded(usable), self.cpus)
            }
            _ => self.cpus.to_string(),
        }
    }

    /// Memory in bytes that programs and page cache may use together; `None` if the system reports no size.
    #[must_use]
    pub fn usable_memory(&self) -> Option<u64> {
        let limits = [self.memory_bytes, self.memory_limit_bytes];
        limits.into_iter().flatten().min()
    }

    /// Memory limit of the control groups in bytes; `None` unless the limit is below the memory of the machine.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        let machine = self.memory_bytes.unwrap_or(u64::MAX);
        self.memory_limit_bytes.filter(|limit| *limit < machine)
    }
}

/// The kernel's words on the mitigation of each vulnerability, from a directory with a file for each vulnerability.
fn mitigations(dir: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of_file = |file: std::fs::DirEntry| {
        let words = std::fs::read_to_string(file.path()).ok()?;
        Some((
            file.file_name().into_string().ok()?,
            words.trim().to_owned(),
        ))
    };
    files.filter_map(of_file).collect()
}

impl WorkDir {
    /// Finds the file system of a directory, or of its nearest existing parent.
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
        // The system reports a quota of the directory only for paths below the directory.
        let space = path.ancestors().find_map(|p| rustix::fs::statvfs(p).ok());
        let bytes = |blocks: fn(&StatVfs) -> u64| {
            let space = space.as_ref()?;
            blocks(space).checked_mul(space.f_frsize)
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
            size_bytes: bytes(|s| s.f_blocks),
            free_bytes: bytes(|s| s.f_bfree),
        }
    }

    /// Fraction of the file system that is in use, from 0 to 1; `None` if unknown, and for a file system without a
    /// size, such as some network and pseudo file systems.
    #[must_use]
    pub fn used_share(&self) -> Option<f64> {
        let size = self.size_bytes.filter(|size| *size > 0)?;
        Some(1.0 - self.free_bytes? as f64 / size as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_name_and_processors() {
        let e = Environment::look(Some(Path::new("/")));
        assert!(!e.kernel.is_empty() && e.cpus >= 1);
        assert_eq!(e.work_dir.unwrap().path, Path::new("/"));
        assert_eq!(Environment::look(None).work_dir, None);
    }

    #[test]
    fn mitigations_are_named_in_the_words_of_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(mitigations(&dir.path().join("absent")), BTreeMap::new());
        for (name, words) in [
            ("meltdown", "Mitigation: PTI\n"),
            ("srbds", "Not affected\n"),
        ] {
            std::fs::write(dir.path().join(name), words).unwrap();
        }
        let expected = [("meltdown", "Mitigation: PTI"), ("srbds", "Not affected")];
        let expected = expected.map(|(name, words)| (name.to_owned(), words.to_owned()));
        assert_eq!(mitigations(dir.path()), expected.into());
    }

    #[test]
    fn the_used_share_of_a_file_system_excludes_free_space() {
        let of = |size_bytes, free_bytes| WorkDir {
            size_bytes,
            free_bytes,
            ..WorkDir::default()
        };
        assert_eq!(of(Some(400), Some(100)).used_share(), Some(0.75));
        assert_eq!(of(Some(0), Some(0)).used_share(), None);
        assert_eq!(of(None, None).used_share(), None);
        let root = WorkDir::look(Path::new("/"));
        assert!((0.0..=1.0).contains(&root.used_share().unwrap()));
        assert!(root.size_bytes >= root.free_bytes);
    }

    #[test]
    fn limits_of_control_groups_are_used_where_they_are_smaller() {
        let e = |cpu_quota, memory_limit_bytes| Environment {
            cpus: 4,
            memory_bytes: Some(100),
            cpu_quota,
            memory_limit_bytes,
            ..Environment::default()
        };
        let of = |e: Environment| (e.processors_text(), e.usable_memory(), e.memory_limit());
        assert_eq!(of(e(None, None)), ("4".into(), Some(100), None));
        let limited = ("0.5 of 4 (CPU quota)".into(), Some(80), Some(80));
        assert_eq!(of(e(Some(0.5), Some(80))), limited);
        assert_eq!(of(e(Some(8.0), Some(1000))), ("4".into(), Some(100), None));
        let unknown = Environment::default();
        assert_eq!(unknown.usable_memory(), None);
    }
}
