//! Environment of a run: the client machine, and the file system of the work directory.

use crate::mounts::{find_mount, mounts};
use crate::read_source::ReadSource;
use plimsoll_measure::control_groups::{ControlGroups, QuotaUse};
use plimsoll_measure::system::machine_memory;
use procfs::Current;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

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
