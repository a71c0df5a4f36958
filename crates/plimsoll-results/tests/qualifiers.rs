//! Qualifiers of runs with planted figures, and requirements on the client.

use crate::client_cache::{MIB, measured};
use plimsoll_measure::IntervalCounts;
use plimsoll_measure::control_groups::QuotaUse;
use plimsoll_measure::system::{
    DiskUse, MachineUse, NfsMountUse, PageCacheUse, ProcessUse, SystemUse,
};
use plimsoll_plan::{OpKind, Requirement};
use plimsoll_results::{
    ClockKind, Document, MeasuredRun, Qualifier, QualifierKind, ReadSource, Run, RunDir, Verdict,
};
use std::collections::BTreeMap;

/// Ten seconds of four processors, of which Plimsoll used a quarter and nobody else used any.
fn alone() -> SystemUse {
    SystemUse {
        seconds: 10.0,
        process: Some(ProcessUse {
            user_s: 6.0,
            system_s: 4.0,
            storage_read_bytes: Some(0),
            ..ProcessUse::default()
        }),
        machine: Some(MachineUse {
            cpus: 4,
            busy_share: 0.25,
            ..MachineUse::default()
        }),
        page_cache: Some(PageCacheUse::default()),
        ..SystemUse::default()
    }
}

/// The resources of [`alone`] on a machine with these fractions of busy and stolen time.
fn machine(busy_share: f64, steal_share: f64) -> SystemUse {
    let mut system = alone();
    let machine = system.machine.as_mut().unwrap();
    (machine.busy_share, machine.steal_share) = (busy_share, steal_share);
    system
}

/// A run on a local disk that wrote `bytes` in `ops` operations.
fn writing(ops: u64, bytes: u64, system: SystemUse) -> MeasuredRun {
    let rows = [(OpKind::WriteWhole, ops, bytes)];
    let mut run = measured(Some(ReadSource::ProcessIo), &rows, system);
    run.environment.cpus = 4;
    run
}

/// The resources of [`alone`] with `bytes` written to block devices.
fn written_out(bytes: u64) -> SystemUse {
    let mut system = alone();
    system.page_cache.as_mut().unwrap().written_out_bytes = bytes;
    system
}

/// A small run on a local disk.
fn small(system: SystemUse) -> MeasuredRun {
    writing(10, 1000, system)
}

fn of_kind(m: &MeasuredRun, kind: QualifierKind) -> Vec<Qualifier> {
    let all = Run::assemble(m.clone()).qualifiers.into_iter();
    all.filter(|q| q.kind == kind).collect()
}

#[track_caller]
fn assert_only(found: &[Qualifier], share: f64, text: &str) {
    let [found] = found else {
        panic!("not one: {found:?}");
    };
    assert!((found.share.unwrap() - share).abs() < 1e-9, "{found:?}");
    assert_eq!(found.text, text);
}

#[test]
fn a_quiet_run_has_one_qualifier() {
    let run = Run::assemble(small(alone()));
    let kinds: Vec<QualifierKind> = run.qualifiers.iter().map(|q| q.kind).collect();
    assert_eq!(kinds, [QualifierKind::OneRun]);
    assert_eq!(run.validity.verdict, Verdict::Valid);
}

#[test]
fn a_run_without_operations_has_no_qualifier() {
    let run = Run::assemble(writing(0, 0, machine(1.0, 0.5)));
    assert_eq!(run.qualifiers, []);
}

#[test]
fn writes_that_stay_in_memory_measure_memory() {
    let of = |ops, bytes, out| {
        let m = writing(ops, bytes, written_out(out));
        of_kind(&m, QualifierKind::MeasuresMemory)
    };
    // 8 KiB of 1.25 GiB arrived.
    assert_only(
        &of(80, 1280 * MIB, 8192),
        1.0 - 8192.0 / (1280.0 * 1_048_576.0),
        "99 % of the 1.25 GiB written was only in this machine's memory at the window end (8 KiB written to the \
         storage): fsync, direct I/O or more data measure the storage",
    );
    let has = |ops, bytes, out| !of(ops, bytes, out).is_empty();
    assert!(has(10, 100 * MIB, 50 * MIB) && !has(10, 100 * MIB, 50 * MIB + 1));
    assert!(has(10, 64 * MIB, 0) && !has(10, 64 * MIB - 1, 0));
    assert!(has(1000, 1000, 0) && !has(999, 1000, 0));
    assert!(!has(1000, 0, 0), "nothing was written");
    // The journal and other programs may write more.
    assert!(!has(10, 100 * MIB, 300 * MIB));
}

#[test]
fn writes_to_a_mounted_server_are_counted_by_its_mount() {
    let of = |point: &str, written| {
        let mut system = alone();
        let used = NfsMountUse {
            read_bytes: 0,
            written_bytes: written,
        };
        system.nfs_mounts = Some(BTreeMap::from([(point.into(), used)]));
        let rows = [(OpKind::WriteWhole, 10, 100 * MIB)];
        let m = measured(Some(ReadSource::NfsMount), &rows, system);
        of_kind(&m, QualifierKind::MeasuresMemory).len()
    };
    assert_eq!((of("/mnt", 90 * MIB), of("/mnt", 9 * MIB)), (0, 1));
    assert_eq!(of("/other", 90 * MIB), 1);
}

#[test]
fn files_in_memory_measure_memory() {
    let mut m = small(alone());
    m.environment.read_source = Some(ReadSource::Memory);
    let dir = m.environment.work_dir.as_mut().unwrap();
    dir.fs_type = Some("tmpfs".into());
    assert_only(
        &of_kind(&m, QualifierKind::MeasuresMemory),
        1.0,
        "the files are in this machine's memory (tmpfs)",
    );
}

#[test]
fn processors_that_others_used_are_shared() {
    let of = |busy, steal| of_kind(&small(machine(busy, steal)), QualifierKind::MachineShared);
    // Plimsoll used 10 of 40 processor seconds.
    assert_only(
        &of(0.755, 0.0),
        0.505,
        "other programs and the kernel used 50 % of the processors",
    );
    assert_only(
        &of(0.25, 0.035),
        0.035,
        "the hypervisor gave 3 % of the processors' time to other guests",
    );
    assert_eq!(of(0.9, 0.1).len(), 2);
    assert!(of(0.34, 0.019).is_empty());
    let mut short = machine(0.9, 0.1);
    short.seconds = 0.9;
    assert!(of_kind(&small(short), QualifierKind::MachineShared).is_empty());
}

#[test]
fn a_quota_that_was_used_up_is_shared() {
    let of = |throttled_periods| {
        let quota = QuotaUse {
            processors: Some(2.0),
            group: None,
            periods: 80,
            throttled_periods,
            throttled_s: 1.0,
        };
        let system = SystemUse {
            quota: Some(quota),
            ..alone()
        };
        of_kind(&small(system), QualifierKind::MachineShared)
    };
    let text = "the CPU quota was used up in 12 % of its periods";
    assert_only(&of(10), 0.125, text);
    assert!(of(3).is_empty() && of(4).len() == 1);
}

#[test]
fn reads_of_others_from_the_disk_of_the_files_are_shared() {
    let of = |device: &str, read: u64, own: u64| {
        let mut system = alone();
        let used = |read_bytes, written_bytes| DiskUse {
            read_bytes,
            written_bytes,
            ..DiskUse::default()
        };
        system.disks = Some(BTreeMap::from([
            ("sda".into(), used(read, 100 * MIB)),
            ("sdb".into(), used(9000 * MIB, 0)),
        ]));
        system.process.as_mut().unwrap().storage_read_bytes = Some(own);
        let mut m = small(system);
        m.environment.work_dir.as_mut().unwrap().device = Some(device.into());
        let share = Run::assemble(m.clone()).disk_share_of_others();
        (of_kind(&m, QualifierKind::MachineShared), share)
    };
    let (found, share) = of("/dev/sda1", 400 * MIB, 200 * MIB);
    let text = "other programs read 200 MiB from the disk sda, 40 % of its traffic";
    assert_only(&found, 0.4, text);
    assert_eq!(share, Some(0.4));
    for (device, read, own, share) in [
        ("/dev/sda1", 400 * MIB, 400 * MIB, Some(0.0)),
        // 63 MiB of others are few bytes.
        ("/dev/sda1", 70 * MIB, 7 * MIB, Some(0.0)),
        ("/dev/sda1", 1900 * MIB, 1800 * MIB, Some(0.05)),
        ("overlay", 400 * MIB, 0, None),
    ] {
        assert_eq!(of(device, read, own), (vec![], share));
    }
}

#[test]
fn a_client_that_used_its_processors_limits_unless_a_reason_says_so() {
    let of = |cpu_s: f64, quota| {
        let mut system = machine(cpu_s / 40.0, 0.0);
        let process = system.process.as_mut().unwrap();
        (process.user_s, process.system_s) = (cpu_s, 0.0);
        let mut m = small(system);
        m.environment.cpu_quota = quota;
        of_kind(&m, QualifierKind::ClientLimited)
    };
    assert_only(
        &of(39.0, None),
        0.975,
        "Plimsoll used 97 % of the processors that it may use, so the figures may measure the client",
    );
    assert!(of(37.9, None).is_empty());
    assert!(of(9.7, Some(1.0)).len() == 1 && of(9.7, Some(2.0)).is_empty());
    let mut system = machine(1.0, 0.0);
    system.process.as_mut().unwrap().user_s = 36.0;
    let mut m = small(system);
    let reason = plimsoll_plan::Reason::new("client_throttled", "the client was throttled");
    m.outcome.reasons.push(reason);
    assert!(of_kind(&m, QualifierKind::ClientLimited).is_empty());
}

#[test]
fn a_rate_that_changed_is_not_steady() {
    const SECOND: u64 = 1_000_000_000;
    let of = |rate: fn(u64) -> u64| {
        let mut m = small(alone());
        let totals = &mut m.outcome.windows[0].totals;
        totals.counts = IntervalCounts::default();
        totals.end = 20 * SECOND;
        (0..20).for_each(|n| totals.counts.add_ops(n, SECOND, rate(n)));
        of_kind(&m, QualifierKind::NotSteady)
    };
    assert!(of(|_| 1000).is_empty());
    let falling = of(|n| 1000 - 10 * n);
    assert_eq!(falling.len(), 1);
    assert!(falling[0].text.starts_with("falling, -"));
}

#[test]
fn virtual_time_says_nothing_about_the_machine() {
    let mut m = writing(5000, 100 * MIB, machine(1.0, 0.5));
    m.clock = ClockKind::Virtual;
    let kinds: Vec<QualifierKind> = Run::assemble(m).qualifiers.iter().map(|q| q.kind).collect();
    assert_eq!(kinds, [QualifierKind::OneRun]);
}

/// Codes of the reasons against a run with one requirement, which is in the verdict.
fn against(mut m: MeasuredRun, requirement: Requirement) -> Vec<(String, String)> {
    m.plan.options.require.insert(requirement);
    let validity = Run::assemble(m).validity;
    let is_valid = validity.verdict == Verdict::Valid;
    assert_eq!(is_valid, validity.reasons.is_empty(), "{validity:?}");
    let reasons = validity.reasons.into_iter();
    reasons.map(|r| (r.code, r.text)).collect()
}

#[test]
fn requirements_turn_qualifiers_into_reasons() {
    let cached = || writing(10, 100 * MIB, alone());
    let found = against(cached(), Requirement::Storage);
    assert_eq!((found.len(), &*found[0].0), (1, "measures_memory"));
    assert!(
        found[0]
            .1
            .starts_with("100 % of the 100 MiB written was only")
    );
    assert_eq!(against(cached(), Requirement::Quiet), []);
    let shared = || small(machine(0.65, 0.0));
    let expected = "other programs and the kernel used 40 % of the processors";
    assert_eq!(
        against(shared(), Requirement::Quiet),
        [("machine_shared".to_owned(), expected.to_owned())]
    );
    assert_eq!(against(shared(), Requirement::Storage), []);
}

#[test]
fn figures_that_are_unknown_do_not_meet_a_requirement() {
    let mut unknown = small(alone());
    unknown.environment.read_source = None;
    let mut compressed = writing(10, 100 * MIB, written_out(100 * MIB));
    let dir = compressed.environment.work_dir.as_mut().unwrap();
    dir.mount_options = vec!["compress=zstd:3".into()];
    let uncounted = SystemUse {
        page_cache: None,
        ..alone()
    };
    let uncounted = writing(10, 100 * MIB, uncounted);
    for m in [unknown, compressed, uncounted] {
        let found = against(m.clone(), Requirement::Storage);
        assert_eq!((found.len(), &*found[0].0), (1, "measures_memory"));
        assert!(found[0].1.starts_with("cannot tell, because "), "{found:?}");
        assert_eq!(of_kind(&m, QualifierKind::MeasuresMemory), []);
    }
    // What is known of the reads is said.
    let rows = [
        (OpKind::WriteWhole, 10, 100 * MIB),
        (OpKind::Read, 10, 200 * MIB),
    ];
    let mut half = measured(Some(ReadSource::ProcessIo), &rows, alone());
    half.environment.work_dir.as_mut().unwrap().mount_options = vec!["compress=lzo".into()];
    assert_eq!(of_kind(&half, QualifierKind::MeasuresMemory).len(), 1);
    assert_eq!(against(half, Requirement::Storage).len(), 2);
    let found = against(small(SystemUse::default()), Requirement::Quiet);
    assert_eq!((found.len(), &*found[0].0), (1, "machine_shared"));
    assert!(found[0].1.starts_with("cannot tell, because "), "{found:?}");
}

#[test]
fn a_run_that_ended_early_misses_no_requirement() {
    let mut m = writing(10, 100 * MIB, alone());
    m.outcome.interrupted = true;
    m.plan.options.require.insert(Requirement::Storage);
    let validity = Run::assemble(m).validity;
    assert_eq!(validity.verdict, Verdict::Interrupted);
    assert_eq!(validity.reasons.len(), 1);
}

#[test]
fn results_without_qualifiers_have_them_when_read() {
    let run = Run::assemble(writing(10, 100 * MIB, alone()));
    let old = Run {
        qualifiers: vec![],
        ..run.clone()
    };
    let dir = tempfile::tempdir().unwrap();
    let text = old.to_json();
    assert!(!text.contains("\"qualifiers\""));
    std::fs::write(dir.path().join(plimsoll_results::RUN_FILE), text).unwrap();
    let read = RunDir::at(dir.path()).read().unwrap();
    assert_eq!(read.qualifiers, run.qualifiers);
}

#[test]
fn a_reason_replaces_the_qualifiers_of_its_kind() {
    let mut m = writing(10, 100 * MIB, machine(0.9, 0.0));
    m.plan.options.require.insert(Requirement::Quiet);
    let run = Run::assemble(m);
    let beside = Qualifier::beside(&run.qualifiers, &run.validity.reasons);
    let kinds: Vec<QualifierKind> = beside.map(|q| q.kind).collect();
    assert_eq!(
        kinds,
        [QualifierKind::MeasuresMemory, QualifierKind::OneRun]
    );
}
