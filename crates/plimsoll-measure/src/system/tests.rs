use super::*;
use procfs::FromBufRead;
use std::time::Duration;

#[test]
fn a_busy_process_is_seen() {
    let before = Snapshot::take();
    let begin = Instant::now();
    let mut x = 0u64;
    while begin.elapsed() < Duration::from_millis(150) {
        x = std::hint::black_box(x + 1);
    }
    let used = before.until(&Snapshot::take_at_end());
    assert!(used.seconds >= 0.15);
    let process = used.process.expect("getrusage works everywhere");
    assert!(process.cpu_s() > 0.02, "{process:?}");
    // The process uses at most the time of all processors; 0.1 s is a margin for clock ticks.
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    assert!(
        process.cpu_s() <= (used.seconds + 0.1) * processors,
        "{process:?}"
    );
    assert!(process.max_rss_bytes > 1 << 20);
    if let Some(machine) = used.machine {
        assert!(machine.busy_share > 0.0 && machine.busy_share <= 1.0 + 1e-9);
    }
}

#[test]
fn shares_of_the_machine_are_of_all_ticks() {
    let ticks = |user, system, idle, iowait, steal| Ticks {
        cpus: 2,
        user,
        system,
        idle,
        iowait,
        steal,
    };
    let used = ticks(30, 20, 110, 25, 15)
        .since(&ticks(10, 10, 50, 20, 10))
        .unwrap();
    let shares = [
        used.busy_share,
        used.user_share,
        used.iowait_share,
        used.steal_share,
    ];
    assert_eq!(shares, [0.3, 0.2, 0.05, 0.05]);
    assert_eq!(ticks(1, 1, 1, 1, 1).since(&ticks(1, 1, 1, 1, 1)), None);
}

#[test]
fn idle_devices_are_left_out_and_new_ones_begin_at_zero() {
    let disk = |reads, busy_s| DiskUse {
        reads,
        busy_s,
        ..DiskUse::default()
    };
    let before = BTreeMap::from([("a".to_string(), disk(5, 1.0)), ("b".into(), disk(7, 1.0))]);
    let later = BTreeMap::from([
        ("a".to_string(), disk(5, 1.0)),
        ("b".into(), disk(9, 1.5)),
        ("c".into(), disk(2, 0.5)),
    ]);
    let used = used(&Some(before), &Some(later), DiskUse::since).unwrap();
    assert_eq!(
        used,
        BTreeMap::from([("b".to_string(), disk(2, 0.5)), ("c".into(), disk(2, 0.5))])
    );
    assert_eq!(super::used(&None, &Some(used), DiskUse::since), None);
}

/// `/proc/self/mountstats` in the format of Linux 6.1.
const MOUNTSTATS: &str = "\
device proc mounted on /proc with fstype proc
device host:/a mounted on /mnt/my\\040share with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=1048576,hard,proto=tcp,sec=sys,local_lock=none
\tage:\t127
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0x3ffbffff,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffafff,bm1=0xf9be3e,bm2=0x60800,acl=0x3,sessions,pnfs=not configured
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t5 26 0 0 4 8 37 2048 0 4 0 512 0 6 8 1 0 4 0 2044 0 0 0 0 0 0 0
\tbytes:\t8388608 2097152 4096 0 1052672 2097152 257 512
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 2 0 0 31 31 0 31 0 2 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 2 2 0 480 1052864 0 3 3 0

device tmpfs mounted on /dev/shm with fstype tmpfs
";

#[test]
fn bytes_from_and_to_the_server_are_those_of_nfs_mounts() {
    let MountStats(mounts) = MountStats::from_buf_read(MOUNTSTATS.as_bytes()).unwrap();
    let used = NfsMountUse {
        read_bytes: 1_052_672,
        written_bytes: 2_097_152,
    };
    let expected = BTreeMap::from([("/mnt/my share".to_owned(), used)]);
    assert_eq!(traffic(mounts), expected);
    assert_eq!(unescaped(r"/a\134b\011c\012d"), "/a\\b\tc\nd");
    assert_eq!(unescaped(r"/a\134040"), r"/a\040");
}

#[test]
fn bytes_from_the_storage_add_up_where_all_are_known() {
    let of = |storage_read_bytes| ProcessUse {
        storage_read_bytes,
        max_rss_bytes: 7,
        user_s: 1.0,
        ..ProcessUse::default()
    };
    let mut sum = of(Some(5));
    sum.add(&of(Some(6)));
    assert_eq!((sum.storage_read_bytes, sum.user_s), (Some(11), 2.0));
    assert_eq!(sum.max_rss_bytes, 7);
    assert_eq!(of(Some(9)).since(&of(Some(4))).storage_read_bytes, Some(5));
    sum.add(&of(None));
    assert_eq!(sum.storage_read_bytes, None);
}

#[test]
fn what_a_process_used_is_the_difference_of_its_counters() {
    let of = |n: u64| ProcessUse {
        user_s: 8.0 * n as f64,
        system_s: 16.0 * n as f64,
        max_rss_bytes: 100 * n,
        minor_faults: 3 * n,
        major_faults: 5 * n,
        voluntary_switches: 7 * n,
        involuntary_switches: 11 * n,
        storage_read_bytes: Some(13 * n),
    };
    let expected = ProcessUse {
        max_rss_bytes: 500,
        ..of(3)
    };
    assert_eq!(of(5).since(&of(2)), expected);
    let mut sum = of(5);
    sum.add(&of(2));
    assert_eq!(
        (sum.user_s, sum.system_s, sum.cpu_s()),
        (56.0, 112.0, 168.0)
    );
}

/// The evaluated figures of `/proc/vmstat`, in the format of Linux 6.1.
const VMSTAT: &str = "pgpgin 1000\npgpgout 2000\nnr_dirtied 30\nnr_written 20\nnr_dirty 3\n";
const MEMINFO: &str = "MemTotal: 1000 kB\nMemFree: 500 kB\nBuffers: 1 kB\nCached: 300 kB\nSwapCached: 0 kB\n\
        Active: 1 kB\nInactive: 1 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\nDirty: 12 kB\nWriteback: 0 kB\nMapped: 1 kB\n\
        Slab: 1 kB\nCommitted_AS: 1 kB\nVmallocTotal: 1 kB\nVmallocUsed: 1 kB\nVmallocChunk: 0 kB\n";
const DISKSTATS: &str = "   8       0 sda 10 1 200 3000 20 2 400 5000 1 6000 8000 0 0 0 0\n   8       1 sda1 9 1 199 2999 20 2 400 5000 0 6000 7999 0 0 0 0\n";
const NET_DEV: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
  eth0:    1000      10    1    2    0     0          0         0     2000      20    4    8    0     0       0          0
";

const STAT: &str = "cpu  100 20 30 4000 500 6 7 80 9 1\ncpu0 50 10 15 2000 250 3 3 40 4 0\ncpu1 50 10 15 2000 250 3 4 40 5 1\n\
        ctxt 1\nbtime 1\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";

#[test]
fn ticks_are_those_of_all_processors_and_of_each_kind() {
    use procfs::FromBufReadSI;
    let stat = procfs::KernelStats::from_buf_read(STAT.as_bytes(), procfs::current_system_info());
    let ticks = ticks_of(&stat.unwrap());
    let kinds = [
        ticks.user,
        ticks.system,
        ticks.idle,
        ticks.iowait,
        ticks.steal,
    ];
    assert_eq!((ticks.cpus, kinds), (2, [120, 43, 4000, 500, 80]));
    assert_eq!(ticks.total(), 4743);
}

/// The snapshot has the values that the kernel reports before and after.
#[test]
fn counters_are_read_where_the_kernel_has_them() {
    let storage = || {
        procfs::process::Process::myself()
            .ok()?
            .io()
            .ok()
            .map(|io| io.read_bytes)
    };
    let (before, read, after) = (storage(), storage_read_bytes(), storage());
    assert!((before..=after).contains(&read));
    let read_in = || {
        procfs::vmstat()
            .ok()?
            .get("pgpgin")
            .map(|kib| *kib as u64 * 1024)
    };
    let (before, read, after) = (read_in(), page_cache().map(|c| c.read_in_bytes), read_in());
    assert!((before..=after).contains(&read));
    // The interfaces are compared unless a device comes or goes during the test.
    let interfaces = || -> BTreeSet<String> {
        let all = procfs::net::dev_status().unwrap_or_default();
        all.into_keys().collect()
    };
    let (before, read, after) = (interfaces(), networks(), interfaces());
    if before == after {
        assert!(read.unwrap_or_default().keys().eq(&before));
    }
    let devices = || -> BTreeSet<String> {
        let all = procfs::diskstats().unwrap_or_default().into_iter();
        let in_sys = |name: &String| format!("/sys/block/{}", name.replace('/', "!"));
        all.map(|d| d.name)
            .filter(|name| std::path::Path::new(&in_sys(name)).exists())
            .collect()
    };
    let (before, read, after) = (devices(), disks(), devices());
    if before == after {
        assert!(read.unwrap_or_default().keys().eq(&before));
    }
    let stat = procfs::KernelStats::current().ok();
    assert_eq!(
        ticks().map(|t| t.cpus as usize),
        stat.map(|s| s.cpu_time.len())
    );
}

#[test]
fn a_process_that_is_idle_up_to_an_instant_uses_nothing_meanwhile() {
    let first = Snapshot::take();
    let later = first
        .clone()
        .unchanged_until(first.taken + Duration::from_secs(5));
    let used = first.until(&later);
    assert_eq!(used.seconds, 5.0);
    let process = used.process.unwrap();
    assert_eq!((process.cpu_s(), process.minor_faults), (0.0, 0));
    assert_eq!(later.until(&first).seconds, 0.0);
}

#[test]
fn mounts_and_networks_that_did_nothing_are_left_out() {
    let mount = |read_bytes, written_bytes| NfsMountUse {
        read_bytes,
        written_bytes,
    };
    assert_eq!(mount(5, 7).since(&mount(5, 7)), None);
    assert_eq!(mount(6, 9).since(&mount(5, 7)), Some(mount(1, 2)));
    assert_eq!(mount(5, 9).since(&mount(5, 7)), Some(mount(0, 2)));
    let network = |received_packets, sent_packets, errors| NetworkUse {
        received_packets,
        sent_packets,
        errors,
        ..NetworkUse::default()
    };
    let none = network(0, 0, 0);
    for used in [
        network(1, 0, 0),
        network(0, 1, 0),
        network(0, 0, 1),
        network(2, 3, 4),
    ] {
        assert_eq!(used.since(&none), Some(used));
    }
    let disk = |reads, writes, busy_s, io_s| DiskUse {
        reads,
        writes,
        busy_s,
        io_s,
        ..DiskUse::default()
    };
    let before = disk(1, 1, 2.0, 3.0);
    assert_eq!(
        disk(1, 3, 4.5, 7.0).since(&before),
        Some(disk(0, 2, 2.5, 4.0))
    );
    assert_eq!(
        disk(3, 1, 2.0, 3.0).since(&before),
        Some(disk(2, 0, 0.0, 0.0))
    );
    assert_eq!(disk(1, 1, 5.0, 5.0).since(&before), None);
}

#[test]
fn the_page_cache_is_counted_in_bytes() {
    let counters = procfs::VmStat::from_buf_read(VMSTAT.as_bytes()).unwrap().0;
    let memory = procfs::Meminfo::from_buf_read(MEMINFO.as_bytes()).unwrap();
    let used = page_cache_of(&counters, &memory, 4096).unwrap();
    let expected = PageCacheUse {
        read_in_bytes: 1000 << 10,
        written_out_bytes: 2000 << 10,
        dirtied_bytes: 30 << 12,
        written_back_bytes: 20 << 12,
        cached_bytes: 300 << 10,
        dirty_bytes_before: 12 << 10,
        dirty_bytes: 12 << 10,
    };
    assert_eq!(used, expected);
    let later = PageCacheUse {
        read_in_bytes: used.read_in_bytes + 1,
        written_out_bytes: used.written_out_bytes + 2,
        dirtied_bytes: used.dirtied_bytes + 3,
        written_back_bytes: used.written_back_bytes + 4,
        dirty_bytes_before: 99 << 10,
        dirty_bytes: 99 << 10,
        ..used.clone()
    };
    let expected = PageCacheUse {
        read_in_bytes: 1,
        written_out_bytes: 2,
        dirtied_bytes: 3,
        written_back_bytes: 4,
        dirty_bytes: 99 << 10,
        ..used
    };
    assert_eq!(later.since(&used), expected);
}

#[test]
fn disks_are_whole_devices_in_bytes_and_seconds() {
    let stats = || {
        procfs::DiskStats::from_buf_read(DISKSTATS.as_bytes())
            .unwrap()
            .0
    };
    let expected = DiskUse {
        reads: 10,
        writes: 20,
        read_bytes: 200 * 512,
        written_bytes: 400 * 512,
        busy_s: 6.0,
        io_s: 8.0,
    };
    let names = BTreeSet::from(["sda".to_owned()]);
    let disks = disks_of(stats(), Some(&names));
    assert_eq!(disks, BTreeMap::from([("sda".to_owned(), expected)]));
    assert_eq!(disks_of(stats(), None).len(), 2);
}

#[test]
fn networks_are_counted_in_bytes_packets_and_errors() {
    let status = procfs::net::InterfaceDeviceStatus::from_buf_read(NET_DEV.as_bytes());
    let expected = NetworkUse {
        received_bytes: 1000,
        received_packets: 10,
        sent_bytes: 2000,
        sent_packets: 20,
        errors: 15,
    };
    let used = networks_of(status.unwrap().0);
    assert_eq!(
        used,
        BTreeMap::from([("eth0".to_owned(), expected.clone())])
    );
    assert_eq!(expected.since(&expected), None);
    let errors = NetworkUse {
        errors: 16,
        ..expected.clone()
    };
    assert_eq!(errors.since(&expected).unwrap().errors, 1);
}
