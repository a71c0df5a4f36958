//! Description of this machine from the kernel's files.

use super::model::{
    Filesystems, LoadGenerator, Memory, Parameter, Processor, Software, Storage, Sut, Transport,
    Tuning,
};
use plimsoll_results::{Environment, WorkDir};
use procfs::{CpuInfo, FromRead};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Unit of `/sys/block/*/size` in bytes, whatever the sector size of the device.
const SECTOR: u64 = 512;

/// Kernel parameters (sysctl) that change how a file system uses memory, one a line with its meaning.
const SYSCTLS: &str = "\
vm/dirty_ratio percentage of memory in dirty pages at which writers wait
vm/dirty_background_ratio percentage of memory in dirty pages at which writeback begins
vm/dirty_expire_centisecs age at which dirty pages are written, in hundredths of a second
vm/swappiness how readily anonymous memory is swapped out
vm/vfs_cache_pressure how readily cached directories and inodes are dropped";

/// Types of file systems whose storage is on other machines.
const REMOTE: &str = "nfs nfs4 cifs smb3 ceph lustre gpfs beegfs glusterfs 9p virtiofs afs";

impl Sut {
    /// Describes this machine and the file system of `dir`. Facts that the system does not report stay empty.
    #[must_use]
    pub fn of_this_machine(dir: &Path) -> Self {
        let environment = Environment::look(Some(dir));
        let capacity = dir.ancestors().find_map(|d| rustix::fs::statvfs(d).ok());
        let capacity = capacity.map(|s| s.f_blocks * s.f_frsize);
        Machine::at(Path::new("/")).describe(&environment, capacity)
    }
}

/// A machine described by kernel files below a root directory.
pub(super) struct Machine {
    root: PathBuf,
}

impl Machine {
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.into() }
    }

    /// The first line of a file, if it is not empty.
    fn line(&self, path: &Path) -> Option<String> {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub(super) fn describe(&self, e: &Environment, capacity: Option<u64>) -> Sut {
        let dir = e.work_dir.clone().unwrap_or_default();
        let remote = dir.fs_type.as_deref().is_some_and(is_remote);
        let place = match remote {
            true => "client",
            false => "client and server",
        };
        let (sockets, cores, threads) = self.processors();
        // `Environment::cpus` only counts the processors that this process may use.
        let threads = threads.unwrap_or(u64::from(e.cpus));
        let model = e.cpu_model.clone().unwrap_or_default();
        let of_each = match cores {
            Some(cores) => format!("{model}, {cores} cores, {threads} hardware threads in all"),
            None => format!("{model}, {threads} hardware threads in all"),
        };
        let memory_gib = e.memory_bytes.map_or(0.0, gib);
        Sut {
            software: self.software(e, place),
            hardware_tuning: self.hardware_tuning(),
            software_tuning: self.software_tuning(&dir),
            storage: if remote { vec![] } else { self.storage() },
            filesystems: filesystems(&dir, capacity),
            transport: self.transport(),
            processors: vec![Processor {
                quantity: sockets,
                kind: "CPU".into(),
                location: place.into(),
                description: of_each,
                function: match remote {
                    true => "load generation, file system client".into(),
                    false => "load generation, file system".into(),
                },
            }],
            memory: vec![Memory {
                description: format!("memory of {}", e.host),
                size_gib: memory_gib,
                quantity: 1,
                nonvolatile: false,
            }],
            load_generators: vec![LoadGenerator {
                name: e.host.clone(),
                quantity: 1,
                processor: model,
                processors: threads,
                memory_gib,
                operating_system: self.distribution().unwrap_or_else(|| e.kernel.clone()),
                network: self.networks().join(", "),
            }],
            ..Sut::default()
        }
    }

    /// Number of sockets (at least 1), and number of cores and hardware threads if the kernel reports them.
    fn processors(&self) -> (u64, Option<usize>, Option<u64>) {
        let Ok(info) = CpuInfo::from_file(self.root.join("proc/cpuinfo")) else {
            return (1, None, None);
        };
        let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
        for cpu in &info.cpus {
            if let Some(socket) = cpu.get("physical id") {
                sockets.insert(socket);
                if let Some(core) = cpu.get("core id") {
                    cores.insert((socket, core));
                }
            }
        }
        let cores = Some(cores.len()).filter(|n| *n > 0);
        let threads = Some(info.cpus.len() as u64).filter(|n| *n > 0);
        (sockets.len().max(1) as u64, cores, threads)
    }

    fn distribution(&self) -> Option<String> {
        let text = fs::read_to_string(self.root.join("etc/os-release")).ok()?;
        let name = text.lines().find_map(|l| l.strip_prefix("PRETTY_NAME="))?;
        Some(name.trim().trim_matches(|c| "\"'".contains(c)).to_owned())
    }

    fn software(&self, e: &Environment, place: &str) -> Vec<Software> {
        let item = |kind: &str, version: String, description: &str| Software {
            component: place.into(),
            kind: kind.into(),
            version,
            description: description.into(),
        };
        let mut list = Vec::new();
        if let Some(name) = self.distribution() {
            list.push(item("operating system", name, "distribution"));
        }
        list.push(item("kernel", e.kernel.clone(), "file system and network"));
        list
    }

    /// Physical devices in a directory below the root, such as `sys/block` or `sys/class/net`, sorted by name.
    fn devices(&self, class: &str) -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(self.root.join(class)).into_iter().flatten();
        let mut found: Vec<(String, PathBuf)> = entries
            .filter_map(Result::ok)
            .map(|e| (e.file_name().to_string_lossy().into_owned(), e.path()))
            // Virtual devices, such as loops, bridges and mapped devices, have no `device` link.
            .filter(|(_, path)| path.join("device").exists())
            .collect();
        found.sort();
        found
    }

    fn storage(&self) -> Vec<Storage> {
        let disks = self.devices("sys/block").into_iter();
        disks
            .filter_map(|(name, path)| {
                let sectors: u64 = self.line(&path.join("size"))?.parse().ok()?;
                let bytes = sectors.checked_mul(SECTOR).filter(|b| *b > 0)?;
                let model = self.line(&path.join("device/model"));
                let kind = match self.line(&path.join("queue/rotational")).as_deref() {
                    Some("1") => ", rotating",
                    Some("0") => ", not rotating",
                    _ => "",
                };
                Some(Storage {
                    quantity: 1,
                    description: match model {
                        Some(model) => format!("{name}: {model}{kind}"),
                        None => format!("{name}{kind}"),
                    },
                    usable: size(bytes),
                    ..Storage::default()
                })
            })
            .collect()
    }

    /// Type and rate of each network device, with the name of the device.
    fn networks(&self) -> Vec<String> {
        let interfaces = self.devices("sys/class/net");
        interfaces
            .iter()
            .map(|(name, path)| self.network(name, path))
            .collect()
    }

    fn network(&self, name: &str, path: &Path) -> String {
        let speed = self.line(&path.join("speed"));
        let mbit: Option<u64> = speed.and_then(|s| s.parse().ok()).filter(|s| *s > 0);
        let driver = fs::read_link(path.join("device/driver")).ok();
        let driver = driver.and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
        let mut text = name.to_owned();
        if let Some(mbit) = mbit {
            text.push_str(&match mbit % 1000 {
                0 => format!(" {} Gbit/s", mbit / 1000),
                _ => format!(" {mbit} Mbit/s"),
            });
        }
        if let Some(driver) = driver {
            text.push_str(&format!(" ({driver})"));
        }
        text
    }

    fn transport(&self) -> Vec<Transport> {
        let interfaces = self.devices("sys/class/net").into_iter();
        interfaces
            .map(|(name, path)| {
                let mtu = self.line(&path.join("mtu"));
                let state = self.line(&path.join("operstate"));
                let notes = [mtu.map(|m| format!("MTU {m}")), state];
                Transport {
                    kind: self.network(&name, &path),
                    ports: 1,
                    notes: notes.into_iter().flatten().collect::<Vec<_>>().join(", "),
                }
            })
            .collect()
    }

    fn hardware_tuning(&self) -> Vec<Tuning> {
        let mut groups = Vec::new();
        let governor = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        if let Some(value) = self.line(&self.root.join(governor)) {
            let description = "how the clock rate is chosen";
            let governor = parameter("scaling_governor", value, description);
            groups.extend(tuning("processors".into(), vec![governor]));
        }
        for (name, path) in self.devices("sys/block") {
            let queue = |file: &str| self.line(&path.join("queue").join(file));
            let scheduler = queue("scheduler").map(|s| chosen(&s).to_owned());
            let known = [
                ("scheduler", scheduler, "order of requests"),
                ("read_ahead_kb", queue("read_ahead_kb"), "read-ahead in KiB"),
                (
                    "nr_requests",
                    queue("nr_requests"),
                    "requests that may wait",
                ),
            ];
            let parameters = known.into_iter();
            let parameters = parameters.filter_map(|(n, v, d)| Some(parameter(n, v?, d)));
            groups.extend(tuning(format!("queue of {name}"), parameters.collect()));
        }
        groups
    }

    fn software_tuning(&self, dir: &WorkDir) -> Vec<Tuning> {
        let at = dir.mount_point.as_deref().unwrap_or(&dir.path);
        let option = |o: &String| {
            let (name, value) = o.split_once('=').unwrap_or((o, "set"));
            parameter(name, value.into(), "mount option")
        };
        let options = dir.mount_options.iter().map(option).collect();
        let mount = tuning(format!("mount of {}", at.display()), options);
        let kernel = SYSCTLS.lines().filter_map(|line| {
            let (name, description) = line.split_once(' ')?;
            let value = self.line(&self.root.join("proc/sys").join(name))?;
            Some(parameter(&name.replace('/', "."), value, description))
        });
        let kernel = tuning("kernel".into(), kernel.collect());
        mount.into_iter().chain(kernel).collect()
    }
}

/// Table `software_tuning` or `hardware_tuning` of the machine or part `group`; `None` without settings.
fn tuning(group: String, parameters: Vec<Parameter>) -> Option<Tuning> {
    (!parameters.is_empty()).then_some(Tuning { group, parameters })
}

fn is_remote(kind: &str) -> bool {
    REMOTE.split(' ').any(|remote| remote == kind) || kind.starts_with("fuse.")
}

fn filesystems(dir: &WorkDir, capacity: Option<u64>) -> Filesystems {
    let device = dir.device.as_deref().unwrap_or_default();
    let at = dir.mount_point.as_deref().map(|p| p.display().to_string());
    Filesystems {
        count: 1,
        capacity: capacity.map(size).unwrap_or_default(),
        kind: dir.fs_type.clone().unwrap_or_default(),
        configuration: match at {
            Some(at) => format!("{device} at {at}"),
            None => String::new(),
        },
        ..Filesystems::default()
    }
}

fn parameter(name: &str, value: String, description: &str) -> Parameter {
    Parameter {
        name: name.into(),
        value,
        description: description.into(),
    }
}

/// The scheduler in brackets, as in `none [mq-deadline]`; the whole line if there are no brackets.
fn chosen(schedulers: &str) -> &str {
    let inside = schedulers
        .split_once('[')
        .and_then(|(_, s)| s.split_once(']'));
    inside.map_or(schedulers, |(s, _)| s)
}

/// Bytes in GiB, to a hundredth.
fn gib(bytes: u64) -> f64 {
    const PER_GIB: f64 = (1u64 << 30) as f64;
    (bytes as f64 / PER_GIB * 100.0).round() / 100.0
}

/// Formats a size in the largest unit in which it is at least 1.
fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = (bytes.max(1).ilog2() / 10).min(units.len() as u32 - 1);
    let value = bytes as f64 / (1u64 << (10 * power)) as f64;
    let value = format!("{value:.2}");
    let value = value.trim_end_matches('0').trim_end_matches('.');
    format!("{value} {}", units[power as usize])
}
