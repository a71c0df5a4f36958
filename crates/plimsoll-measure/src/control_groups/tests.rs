use super::*;
use tempfile::TempDir;

/// Files in the kernel's format, below a temporary root directory.
struct Tree(TempDir);

impl Tree {
    fn new(cgroup: &str, mountinfo: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.write("proc/self/cgroup", cgroup);
        tree.write("proc/self/mountinfo", mountinfo);
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn groups(&self) -> ControlGroups {
        ControlGroups::below(self.0.path())
    }

    fn quota(&self) -> Option<(f64, String)> {
        let groups = self.groups();
        groups
            .cpu_quota()
            .map(|(quota, dir)| (quota, self.name(dir)))
    }

    fn name(&self, dir: &Path) -> String {
        let below = dir.strip_prefix(self.0.path()).unwrap();
        below.display().to_string()
    }

    fn limit(&self, limit: Option<MemoryLimit>) -> Option<(u64, String)> {
        limit.map(|l| (l.bytes, self.name(&l.group)))
    }
}

const UNIFIED: &str = "25 1 0:5 / /sys rw - sysfs sysfs rw\n\
    30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

const HYBRID: &str = "31 25 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
    32 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
    33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
    34 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

#[test]
fn the_smallest_quota_on_the_way_to_the_root_counts() {
    let tree = Tree::new("0::/job/step/task\n", UNIFIED);
    let group = "sys/fs/cgroup/job/step";
    tree.write(&format!("{group}/task/cpu.max"), "max 100000\n");
    assert_eq!(tree.quota(), None);
    assert_eq!(tree.groups().cpu.len(), 4, "with the root");
    tree.write(&format!("{group}/task/cpu.max"), "150000 100000\n");
    assert_eq!(tree.quota(), Some((1.5, format!("{group}/task"))));
    tree.write(&format!("{group}/cpu.max"), "5000 50000\n");
    tree.write("sys/fs/cgroup/job/cpu.max", "200000 100000\n");
    assert_eq!(tree.quota(), Some((0.1, group.into())));
    // Groups outside the path from the process's own group to the root do not count.
    tree.write("sys/fs/cgroup/job/other/cpu.max", "1000 100000\n");
    assert_eq!(tree.quota(), Some((0.1, group.into())));
}

#[test]
fn a_controller_of_version_1_has_a_hierarchy_of_its_own() {
    let own = "12:memory:/m\n4:cpu,cpuacct:/c/d\n1:name=systemd:/s\n0::/s\n";
    let tree = Tree::new(own, HYBRID);
    let cpu = "sys/fs/cgroup/cpu,cpuacct/c";
    tree.write(&format!("{cpu}/d/cpu.cfs_quota_us"), "-1\n");
    tree.write(&format!("{cpu}/d/cpu.cfs_period_us"), "100000\n");
    tree.write("sys/fs/cgroup/unified/s/cpu.max", "1000 100000\n");
    assert_eq!(tree.quota(), None);
    tree.write(&format!("{cpu}/cpu.cfs_quota_us"), "25000\n");
    tree.write(&format!("{cpu}/cpu.cfs_period_us"), "100000\n");
    assert_eq!(tree.quota(), Some((0.25, cpu.into())));

    let memory = "sys/fs/cgroup/memory";
    let unlimited = "9223372036854771712\n";
    tree.write(&format!("{memory}/memory.limit_in_bytes"), unlimited);
    tree.write(&format!("{memory}/m/memory.limit_in_bytes"), unlimited);
    let limit = || tree.limit(tree.groups().memory_limit());
    assert_eq!(limit(), None);
    // `hierarchical_memory_limit` is the limit of a parent group that is not visible.
    let stat = "cache 5\nhierarchical_memory_limit 80000000\ntotal_inactive_file 4000000\n\
                total_active_file 1000000\ninactive_file 7\n";
    tree.write(&format!("{memory}/m/memory.stat"), stat);
    let own = || format!("{memory}/m");
    assert_eq!(limit(), Some((80_000_000, own())));
    tree.write(&format!("{memory}/m/memory.limit_in_bytes"), "50000000\n");
    assert_eq!(limit(), Some((50_000_000, own())));

    tree.write(&format!("{memory}/m/memory.usage_in_bytes"), "15000000\n");
    let available = tree.limit(tree.groups().available_memory().next());
    assert_eq!(
        available,
        Some((50_000_000 - 15_000_000 + 5_000_000, own()))
    );
}

#[test]
fn the_smallest_limit_of_memory_counts_and_the_smallest_rest() {
    let tree = Tree::new("0::/pod/app\n", UNIFIED);
    let (pod, app) = ("sys/fs/cgroup/pod", "sys/fs/cgroup/pod/app");
    let limit = || tree.limit(tree.groups().memory_limit());
    let available = || {
        let groups = tree.groups();
        tree.limit(groups.available_memory().min_by_key(|m| m.bytes))
    };
    tree.write(&format!("{app}/memory.max"), "max\n");
    tree.write(&format!("{app}/memory.high"), "max\n");
    assert_eq!((limit(), available()), (None, None));
    tree.write(&format!("{app}/memory.max"), "100000000\n");
    tree.write(&format!("{app}/memory.current"), "10000000\n");
    tree.write(&format!("{pod}/memory.max"), "300000000\n");
    tree.write(&format!("{pod}/memory.current"), "290000000\n");
    tree.write(
        &format!("{pod}/memory.stat"),
        "anon 200000000\ninactive_file 30000000\nactive_file 20000000\nslab_reclaimable 5000000\n",
    );
    assert_eq!(limit(), Some((100_000_000, app.into())));
    // Another container uses memory that is shared with this container.
    assert_eq!(available(), Some((65_000_000, pod.into())));
    tree.write(&format!("{pod}/memory.high"), "90000000\n");
    assert_eq!(limit(), Some((90_000_000, pod.into())));
    assert_eq!(available(), Some((0, pod.into())));
}

/// Mounts of containers, whose groups are below an invisible group.
#[test]
fn a_container_sees_its_own_groups_only() {
    // In a control group namespace, the container's own group is the group `/`.
    let tree = Tree::new("0::/\n", UNIFIED);
    tree.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
    assert_eq!(tree.quota(), Some((0.5, "sys/fs/cgroup".into())));

    // Without a control group namespace, the path is the machine's, and the container's own group is mounted.
    let mounts = "33 31 0:30 /docker/a\\040b /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
    for (own, group) in [
        ("4:cpu:/docker/a b\n", "sys/fs/cgroup/cpu"),
        ("4:cpu:/docker/a b/in\n", "sys/fs/cgroup/cpu/in"),
    ] {
        let tree = Tree::new(own, mounts);
        tree.write(&format!("{group}/cpu.cfs_quota_us"), "20000\n");
        tree.write(&format!("{group}/cpu.cfs_period_us"), "10000\n");
        assert_eq!(tree.quota(), Some((2.0, group.into())), "{own}");
    }

    // If a group is mounted twice, the mount that shows more parents counts.
    let mounts = format!("40 1 0:26 /job/step /mnt rw - cgroup2 cgroup2 rw\n{UNIFIED}");
    let tree = Tree::new("0::/job/step\n", &mounts);
    tree.write("sys/fs/cgroup/job/cpu.max", "1000 100000\n");
    assert_eq!(tree.quota(), Some((0.01, "sys/fs/cgroup/job".into())));
}

/// In a control group namespace without a mount of its own, `/` is a group of unknown name.
#[test]
fn a_group_without_a_name_is_found_by_its_processes() {
    let mounts = UNIFIED.replace("0:26 / ", "0:26 /../.. ");
    for own in ["0::/\n", "0::/../x\n"] {
        let tree = Tree::new(own, &mounts);
        tree.write("sys/fs/cgroup/cpu.max", "400000 100000\n");
        tree.write("sys/fs/cgroup/a/cpu.max", "100000 100000\n");
        tree.write("sys/fs/cgroup/a/cgroup.procs", "1\n");
        tree.write("sys/fs/cgroup/b/c/cpu.max", "300000 100000\n");
        assert_eq!(tree.quota(), Some((4.0, "sys/fs/cgroup".into())));
        let own = std::process::id();
        tree.write("sys/fs/cgroup/b/c/cgroup.procs", &format!("7\n{own}\n"));
        assert_eq!(tree.quota(), Some((3.0, "sys/fs/cgroup/b/c".into())));
    }
}

#[test]
fn a_machine_without_control_groups_has_no_limits() {
    for (own, mounts) in [
        ("", ""),
        ("0::/a\n", ""),
        ("4:cpu:/a\n", UNIFIED),
        ("nonsense", "nonsense"),
    ] {
        let groups = Tree::new(own, mounts).groups();
        assert_eq!((groups.cpu_quota(), groups.cpu_group_id()), (None, None));
        assert_eq!(
            (groups.memory_limit(), groups.quota_counters()),
            (None, None)
        );
    }
    let nothing = ControlGroups::below(Path::new("/nowhere"));
    assert_eq!((nothing.cpu.len(), nothing.memory.len()), (0, 0));
}

#[test]
fn throttling_is_that_of_the_time_between_two_readings() {
    let tree = Tree::new("0::/job/task\n", UNIFIED);
    let (job, task) = ("sys/fs/cgroup/job", "sys/fs/cgroup/job/task");
    let counters = || tree.groups().quota_counters().unwrap();
    let stat = |periods: u64, throttled: u64, usec: u64| {
        format!(
            "usage_usec 1\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec {usec}\n"
        )
    };
    tree.write(&format!("{task}/cpu.stat"), &stat(0, 0, 0));
    let idle = counters();
    assert_eq!(
        idle.until(&counters()),
        None,
        "neither a quota nor throttling"
    );

    tree.write(&format!("{job}/cpu.max"), "10000 100000\n");
    tree.write(&format!("{job}/cpu.stat"), &stat(100, 40, 5_000_000));
    tree.write(
        &format!("{task}/cpu.stat.local"),
        "throttled_usec 1000000\n",
    );
    let before = counters();
    let unused = before.until(&counters()).unwrap();
    assert_eq!((unused.processors, unused.throttled_s), (Some(0.1), 0.0));
    tree.write(&format!("{job}/cpu.stat"), &stat(120, 58, 5_900_000));
    let used = before.until(&counters()).unwrap();
    let expected = QuotaUse {
        processors: Some(0.1),
        group: Some(tree.0.path().join(job).display().to_string()),
        periods: 20,
        throttled_periods: 18,
        throttled_s: 0.9,
    };
    assert_eq!(used, expected);

    // The larger of the two times is the time lost by the process.
    tree.write(
        &format!("{task}/cpu.stat.local"),
        "throttled_usec 2500000\n",
    );
    let used = before.until(&counters()).unwrap();
    assert_eq!(
        used,
        QuotaUse {
            throttled_s: 1.5,
            ..expected
        }
    );
}

#[test]
fn the_quota_that_held_up_its_group_most_is_named() {
    let tree = Tree::new("0::/job/task\n", UNIFIED);
    let (job, task) = ("sys/fs/cgroup/job", "sys/fs/cgroup/job/task");
    let write = |group: &str, max: &str, throttled: u64| {
        tree.write(&format!("{group}/cpu.max"), max);
        let stat = format!("nr_periods 10\nnr_throttled 9\nthrottled_usec {throttled}\n");
        tree.write(&format!("{group}/cpu.stat"), &stat);
    };
    let counters = || tree.groups().quota_counters().unwrap();
    let named = |used: Option<QuotaUse>| {
        let used = used.unwrap();
        let group = used.group.unwrap();
        let is_job = group.ends_with("job");
        (is_job, used.processors, used.throttled_s)
    };
    write(task, "90000 100000\n", 0);
    write(job, "100000 100000\n", 0);
    let before = counters();
    assert_eq!(named(before.until(&counters())), (false, Some(0.9), 0.0));
    // Sibling groups of `task` exhaust the quota of `job`, which is larger and shared.
    write(job, "100000 100000\n", 2_500_000);
    assert_eq!(named(before.until(&counters())), (true, Some(1.0), 2.5));
    write(task, "90000 100000\n", 3_000_000);
    assert_eq!(named(before.until(&counters())), (false, Some(0.9), 3.0));
}

#[test]
fn a_quota_that_is_set_or_lifted_in_between_is_known() {
    let tree = Tree::new("0::/job\n", UNIFIED);
    let job = "sys/fs/cgroup/job";
    let reading = |max: &str, throttled: u64| {
        tree.write(&format!("{job}/cpu.max"), max);
        let stat = format!("throttled_usec {throttled}\n");
        tree.write(&format!("{job}/cpu.stat"), &stat);
        tree.groups().quota_counters().unwrap()
    };
    let free = reading("max 100000\n", 0);
    let limited = reading("10000 100000\n", 500_000);
    let lifted = reading("max 100000\n", 800_000);
    let processors = |a: &QuotaCounters, b| {
        let used = a.until(b).unwrap();
        (used.processors, used.throttled_s)
    };
    assert_eq!(processors(&free, &limited), (Some(0.1), 0.5));
    assert_eq!(processors(&limited, &lifted), (Some(0.1), 0.3));
    let whole = free.until(&lifted).unwrap();
    assert_eq!((whole.processors, whole.throttled_s), (None, 0.8));
    assert_eq!(
        whole.text(),
        "CPU quota of a group that is not visible, or lifted since, threads waited for 0.80 s"
    );
}

#[test]
fn throttling_by_a_group_that_is_not_visible_is_seen_too() {
    let tree = Tree::new(
        "3:cpu:/\n",
        "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
    );
    let local = "sys/fs/cgroup/cpu/cpu.stat.local";
    tree.write(local, "throttled_time 1000000000\n");
    let before = tree.groups().quota_counters().unwrap();
    tree.write(local, "throttled_time 1250000000\n");
    let used = before
        .until(&tree.groups().quota_counters().unwrap())
        .unwrap();
    assert_eq!(
        (used.throttled_s, used.processors, used.group),
        (0.25, None, None)
    );
}
