//! Limits of the client: control groups, descriptors and address space.

use crate::common::{Bench, Ended};
use crate::reliability::limits::limited;
use plimsoll_results::Run;
use plimsoll_testkit::user_mode_linux::in_another_kernel;
use plimsoll_testkit::{needs_root, table::NfsServer};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Eight unpaced workers.
const READS: &str = "\
define fileset name=s,path=files,entries=20,dirwidth=20,size=4k,prealloc
define process name=p { thread name=t,memsize=1m,instances=8 {
  flowop openfile name=open,filesetname=s,fd=1
  flowop read name=read,fd=1,iosize=4k
  flowop closefile name=close,fd=1 } }
run 1
";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// A control-group hierarchy that is mounted for a test, with one controller (version 1) or all controllers (version 2).
struct Hierarchy(TempDir);

impl Hierarchy {
    /// Mounts a hierarchy in which groups can have limits; `None` if the kernel has the controllers in the other version,
    /// or if the user may not change groups.
    fn mounted(version: Version, controller: &str) -> Option<Self> {
        let (kind, options) = match version {
            Version::V1 => ("cgroup", CString::new(controller).unwrap()),
            Version::V2 => ("cgroup2", CString::default()),
        };
        let dir = tempfile::tempdir().unwrap();
        mount("none", dir.path(), kind, MountFlags::empty(), &*options).ok()?;
        let this = Self(dir);
        if version == Version::V2 {
            let root = this.0.path();
            let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
            controllers.split_whitespace().find(|c| *c == controller)?;
            // The controller may be enabled already.
            let _ = fs::write(
                root.join("cgroup.subtree_control"),
                format!("+{controller}"),
            );
        }
        // A user may see the hierarchy without the right to change it.
        let may_limit = this.group().is_some();
        may_limit.then_some(this)
    }

    fn group(&self) -> Option<Group<'_>> {
        let name = format!("plimsoll-test-{}", std::process::id());
        let dir = self.0.path().join(name);
        fs::create_dir(&dir).ok()?;
        let group = Group {
            dir,
            _hierarchy: self,
        };
        fs::create_dir(group.inner()).unwrap();
        Some(group)
    }
}

impl Drop for Hierarchy {
    fn drop(&mut self) {
        let _ = unmount(self.0.path(), UnmountFlags::empty());
    }
}

/// A control group with limits, and an inner group without limits for the processes.
struct Group<'a> {
    dir: PathBuf,
    _hierarchy: &'a Hierarchy,
}

impl Group<'_> {
    fn inner(&self) -> PathBuf {
        self.dir.join("inner")
    }

    fn set(&self, file: &str, value: &str) {
        let path = self.dir.join(file);
        fs::write(&path, value).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Runs the command in the inner group, executed by the command `by` unless `by` is empty.
    fn run(&self, by: &[&str], plimsoll: &Command) -> Ended {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.inner().join("cgroup.procs"))
            .args(by)
            .arg(plimsoll.get_program())
            .args(plimsoll.get_args())
            .current_dir(plimsoll.get_current_dir().unwrap());
        for (name, value) in plimsoll.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        Ended::of(command)
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        for dir in [self.inner(), self.dir.clone()] {
            // The kernel removes an ended process from its group with a delay.
            crate::common::wait_until("the group is empty", || {
                fs::remove_dir(&dir).is_ok() || !dir.exists()
            });
        }
    }
}

#[test]
fn control_groups_of_version_1() {
    needs_root!();
    limits_count(Version::V1, "client_limits::control_groups_of_version_1");
}

#[test]
fn control_groups_of_version_2() {
    needs_root!();
    limits_count(Version::V2, "client_limits::control_groups_of_version_2");
}

/// Tests the limits of both controllers in this kernel, or in a User-Mode Linux kernel that has the given version.
fn limits_count(version: Version, test: &str) {
    let hierarchies = ["cpu", "memory"].map(|c| Hierarchy::mounted(version, c));
    let [Some(cpu), Some(memory)] = hierarchies else {
        return in_another_kernel(test);
    };
    quotas_count(version, &cpu);
    limits_of_memory_count(version, &memory);
}

fn throttled(run: &Run) -> bool {
    let mut codes = run.validity.reasons.iter().map(|r| &*r.code);
    codes.any(|code| code == "client_throttled")
}

fn quotas_count(version: Version, hierarchy: &Hierarchy) {
    let group = hierarchy.group().unwrap();
    let quota = |hundredths: u64| match version {
        Version::V1 => group.set("cpu.cfs_quota_us", &format!("{}", 1000 * hundredths)),
        Version::V2 => group.set("cpu.max", &format!("{} 100000", 1000 * hundredths)),
    };
    let bench = Bench::on_tmpfs();
    let command = bench.command_in_work(&bench.workload(READS), &[]);
    // As in a container, the group's path is relative to the root of a control-group namespace.
    let in_namespace = ["unshare", "--cgroup"];
    for by in [&[][..], &in_namespace] {
        quota(10);
        let run = group.run(by, &command).result(3);
        assert!(throttled(&run), "{by:?} {:?}", run.validity);
        assert_eq!(run.environment.cpu_quota, Some(0.1), "{by:?}");
        let used = run.system.quota.as_ref().unwrap();
        assert_eq!(used.processors, Some(0.1));
        assert!(
            used.throttled_periods > 0 && used.throttled_s > 0.1,
            "{used:?}"
        );
        assert!(used.throttled_periods <= used.periods, "{used:?}");
        let text = &run.validity.reasons[0].text;
        let dir = used.group.as_deref().unwrap();
        assert!(
            text.contains(dir) && text.ends_with("0.1 processors"),
            "{text}"
        );
        assert!(
            Path::new(dir).ends_with(group.dir.file_name().unwrap()),
            "{dir}"
        );
    }
    // This quota is more than the workers can use.
    quota(100 * 1000);
    let run = group.run(&[], &command).parsed().unwrap();
    assert!(!throttled(&run), "{:?}", run.validity);
    assert_eq!(run.environment.cpu_quota, Some(1000.0));
    assert_eq!(run.system.quota.as_ref().unwrap().throttled_s, 0.0);
}

fn limits_of_memory_count(version: Version, hierarchy: &Hierarchy) {
    const LIMIT: u64 = 200 << 20;
    let group = hierarchy.group().unwrap();
    let file = match version {
        Version::V1 => "memory.limit_in_bytes",
        Version::V2 => "memory.max",
    };
    group.set(file, &LIMIT.to_string());
    let bench = Bench::on_tmpfs();
    let with_memory = |size: &str, more: &[&str]| {
        let text = READS.replace("memsize=1m", &format!("memsize={size}"));
        let command = bench.command_in_work(&bench.workload(&text), more);
        group.run(&[], &command)
    };
    let name = group.dir.file_name().unwrap().to_string_lossy();
    let refusal = with_memory("250m", &[]).refusal();
    let refusals = [&*name, "take 1.95 GiB", "the control group `"];
    assert!(
        refusals.iter().all(|part| refusal.contains(part)),
        "{refusal}"
    );
    // The buffers of a single rank would fit.
    let refusal = with_memory("30m", &["--processes=2"]).refusal();
    let refusals = [&*name, "buffers of 2 ranks", "take 240 MiB"];
    assert!(
        refusals.iter().all(|part| refusal.contains(part)),
        "{refusal}"
    );
    let run = with_memory("1m", &[]).parsed().unwrap();
    assert_eq!(run.environment.memory_limit_bytes, Some(LIMIT));
    if version == Version::V2 {
        group.set("memory.high", &(LIMIT / 2).to_string());
        let run = with_memory("1m", &[]).parsed().unwrap();
        assert_eq!(run.environment.memory_limit_bytes, Some(LIMIT / 2));
    }
}

/// The value that a message advises for a `ulimit` option.
#[track_caller]
fn advised(message: &str, option: &str) -> u64 {
    let (_, rest) = message
        .split_once(&format!("`ulimit {option} "))
        .unwrap_or_else(|| panic!("{message}"));
    rest.split_once('`').unwrap().0.parse().unwrap()
}

#[test]
fn the_descriptors_that_are_named_suffice() {
    let bench = Bench::on_tmpfs();
    let server = plimsoll_testkit::ServeNfs::start().unwrap();
    let nfs = format!(
        "nfs3://{0}/?mountport={1}&nconnect=16",
        server.nfs_address(),
        server.nfs_address().port()
    );
    let workload = bench.workload(READS);
    for more in [
        &["--dir=work", "--target=posix:?io=sync"],
        &["--dir=work", "--target=posix:?io=uring"],
        &["--target", &*nfs],
    ] {
        let command = bench.command(&workload, more);
        let with = |n: u64| Ended::of(limited(&[&format!("--nofile={n}:{n}")], &command));
        let refusal = with(65).refusal();
        let needed = advised(&refusal, "-n");
        assert!(
            refusal.contains("64 of the program itself) and the limit is 65:"),
            "{refusal}"
        );
        with(needed - 1).refusal();
        let run = with(needed).parsed().unwrap();
        assert!(
            run.failure.is_none() && run.summary.ops > 0,
            "{more:?} {:?}",
            run.validity
        );
    }
}

#[test]
fn address_space_is_refused_before_it_runs_out() {
    let bench = Bench::on_tmpfs();
    let with = |text: &str, more: &[&str], limit: &str| {
        // A machine with other work may collect the figures of short intervals late, which takes memory.
        let more = [more, &["--interval=1s"]].concat();
        let command = bench.command_in_work(&bench.workload(text), &more);
        Ended::of(limited(&[limit], &command))
    };
    // In each load, something else takes the most memory: buffers, verification, stacks, histograms.
    let paced = READS.replace("run 1", "eventgen rate=100000\nrun 1");
    let paced = paced.replace("flowop close", "flowop eventlimit name=limit\nflowop close");
    let loads = [
        (READS.replace("memsize=1m", "memsize=64m"), &[][..]),
        (READS.replace("memsize=1m", "memsize=64m"), &["--verify"]),
        (READS.replace("instances=8", "instances=64"), &[]),
        (paced, &[]),
    ];
    for (option, limit, low) in [("-v", "--as", 180), ("-d", "--data", 60)] {
        for (text, more) in &loads {
            let refusal = with(text, more, &format!("{limit}={}", low << 20)).refusal();
            let parts = [
                "for the workers' buffers",
                "for the stacks of",
                &format!("and the limit is {low} MiB"),
            ];
            assert!(parts.iter().all(|part| refusal.contains(part)), "{refusal}");
            let needed = 1024 * advised(&refusal, option);
            let run = with(text, more, &format!("{limit}={needed}"))
                .parsed()
                .unwrap();
            assert!(
                run.failure.is_none() && run.summary.ops > 0,
                "{:?}",
                run.validity
            );
        }
    }
}

/// The check before the run does not count the memory for the directories of a random tree.
#[test]
fn memory_that_runs_out_is_an_error() {
    let bench = Bench::on_tmpfs();
    let workload = bench.workload(
        "define fileset name=s,path=files,entries=60000000,dirwidth=20,size=4k\n\
         define process name=p { thread name=t,memsize=1m { flowop statfile name=stat,filesetname=s } }\n\
         run 1\n",
    );
    let command = bench.command_in_work(&workload, &[]);
    let ended = Ended::of(limited(&["--as=314572800"], &command));
    assert_eq!(ended.code, Some(1), "{} {}", ended.stdout, ended.stderr);
    let last = ended.stderr.lines().last().unwrap();
    assert!(
        last.starts_with("error: no memory is left: an allocation of "),
        "{}",
        ended.stderr
    );
    assert!(
        last.ends_with("; `ulimit -v` limits what this process may have"),
        "{last}"
    );
    assert!(!bench.work().exists());
}
