//! Hit ratio of the client's own cache, and the qualifier on a high hit ratio.

use plimsoll_measure::system::{NfsMountUse, ProcessUse, SystemUse};
use plimsoll_measure::{Latency, MeasuredWindow, OpTotals, WindowTotals};
use plimsoll_plan::{
    Access, CACHED_DATA, Cold, EntriesPerDir, Fileset, OpKind, Operation, Plan, RelPath, Value,
};
use plimsoll_results::{
    ClientCache, ClockKind, Environment, MeasuredRun, Outcome, PopulatedFileset, QualifierKind,
    ReadSource, Run, Target, WorkDir,
};
use std::collections::BTreeMap;
use std::time::SystemTime;

pub(crate) const MIB: u64 = 1 << 20;

/// Totals of rows, each with a kind, a number of operations and a number of bytes.
fn totals(rows: &[(OpKind, u64, u64)]) -> Vec<OpTotals> {
    let row = |(_, ops, bytes): &(OpKind, u64, u64)| OpTotals {
        ops: *ops,
        bytes: (*bytes).into(),
        service: Latency::of((0..*ops).map(|_| 1000)),
        ..OpTotals::default()
    };
    rows.iter().map(row).collect()
}

pub(crate) fn measured(
    source: Option<ReadSource>,
    rows: &[(OpKind, u64, u64)],
    system: SystemUse,
) -> MeasuredRun {
    let mut plan = Plan::empty("reads");
    let operation = |(kind, ..): &(OpKind, u64, u64)| Operation {
        name: match kind {
            OpKind::Rpc => CACHED_DATA.into(),
            kind => kind.to_string(),
        },
        kind: *kind,
        location: None,
    };
    plan.operations = rows.iter().map(operation).collect();
    let window = WindowTotals {
        number: 1,
        start: 0,
        end: 1_000_000_000,
        rows: totals(rows),
        ..WindowTotals::default()
    };
    MeasuredRun {
        outcome: Outcome {
            windows: vec![MeasuredWindow {
                system,
                ..window.into()
            }],
            populated: vec![PopulatedFileset {
                fileset: "s".into(),
                files: 1,
                dirs: 1,
                bytes: (100 * MIB).into(),
                bytes_estimated: false,
                seconds: 1.0,
                reused: false,
            }],
            ..Outcome::default()
        },
        environment: Environment {
            read_source: source,
            memory_bytes: Some(1024 * MIB),
            work_dir: Some(WorkDir {
                mount_point: Some("/mnt".into()),
                ..WorkDir::default()
            }),
            ..Environment::default()
        },
        ..MeasuredRun::new(
            plan,
            Target {
                url: "posix".into(),
                description: "files of this machine".into(),
                system: None,
            },
            SystemTime::UNIX_EPOCH,
        )
    }
}

/// Resource use of a process that caused `bytes` to be read from block devices.
fn from_storage(bytes: u64) -> SystemUse {
    SystemUse {
        process: Some(ProcessUse {
            storage_read_bytes: Some(bytes),
            ..ProcessUse::default()
        }),
        ..SystemUse::default()
    }
}

fn local(rows: &[(OpKind, u64, u64)], storage: u64) -> MeasuredRun {
    measured(Some(ReadSource::ProcessIo), rows, from_storage(storage))
}

fn cache(m: MeasuredRun) -> Option<ClientCache> {
    Run::assemble(m).client_cache
}

/// Texts of the qualifiers on memory.
fn texts(m: MeasuredRun) -> Vec<String> {
    let all = Run::assemble(m).qualifiers.into_iter();
    let of_memory = all.filter(|q| q.kind == QualifierKind::MeasuresMemory);
    of_memory.map(|q| q.text).collect()
}

#[test]
fn files_fit_in_the_memory_that_the_control_group_leaves() {
    let fits = |limit: Option<u64>| {
        let mut m = local(&[(OpKind::Read, 2000, 500 * MIB)], 0);
        m.environment.memory_limit_bytes = limit.map(|mib| mib * MIB);
        let texts = texts(m);
        assert_eq!(texts.len(), 1, "{texts:?}");
        let shown =
            |memory| texts[0].contains(&format!("the file sets (100 MiB) fit in it ({memory})"));
        (
            shown("1 GiB"),
            shown("200 MiB"),
            texts[0].contains("fit in it"),
        )
    };
    assert_eq!(fits(None), (true, false, true));
    assert_eq!(fits(Some(200)), (false, true, true));
    assert_eq!(fits(Some(99)), (false, false, false));
}

#[test]
fn what_did_not_come_from_the_storage_came_from_the_cache() {
    let reads = [
        (OpKind::ReadWhole, 10, 60 * MIB),
        (OpKind::MmapRead, 5, 20 * MIB),
        // Half of the bytes of a copy were written, not read.
        (OpKind::CopyFile, 1, 40 * MIB),
        (OpKind::WriteWhole, 9, 500 * MIB),
    ];
    let cache = |storage| cache(local(&reads, storage)).unwrap();
    let c = cache(25 * MIB);
    assert_eq!((c.reads, c.read_bytes), (16, u128::from(100 * MIB)));
    assert_eq!((c.storage_bytes, c.hit_ratio), (Some(25 << 20), Some(0.75)));
    assert_eq!(
        c.to_string(),
        "100 MiB, 75 % from the client's page cache (25 MiB from the storage)"
    );
    // Read-ahead may bring more bytes from storage than the operations read.
    assert_eq!(cache(130 * MIB).hit_ratio, Some(0.0));
    assert_eq!(cache(0).hit_ratio, Some(1.0));
    let nearly = cache(1).to_string();
    assert!(
        nearly.contains("99 %") && nearly.contains("(1 B"),
        "{nearly}"
    );
}

#[test]
fn what_cannot_be_known_is_null() {
    let reads = [(OpKind::Read, 2000, 100 * MIB)];
    assert_eq!(cache(measured(None, &reads, from_storage(0))), None);
    for source in [ReadSource::ProcessIo, ReadSource::NfsMount] {
        assert_eq!(
            cache(measured(Some(source), &reads, SystemUse::default())),
            None
        );
    }
    let writes = [(OpKind::Write, 2000, 100 * MIB)];
    assert_eq!(cache(local(&writes, 5 * MIB)), None);
}

#[test]
fn each_source_has_its_own_counter() {
    let reads = [
        (OpKind::Read, 2000, 100 * MIB),
        (OpKind::Rpc, 1500, 70 * MIB),
    ];
    let own = cache(measured(
        Some(ReadSource::NfsClient),
        &reads,
        from_storage(0),
    ))
    .unwrap();
    assert_eq!(own.storage_bytes, Some(30 << 20));
    assert_eq!(
        own.to_string(),
        "100 MiB, 70 % from the client's cache (30 MiB from the server)"
    );
    let mounts = |point: &str| SystemUse {
        nfs_mounts: Some(BTreeMap::from([(
            point.into(),
            NfsMountUse {
                read_bytes: 40 * MIB,
                written_bytes: 0,
            },
        )])),
        ..SystemUse::default()
    };
    let mounted =
        |point| cache(measured(Some(ReadSource::NfsMount), &reads, mounts(point))).unwrap();
    assert_eq!(mounted("/mnt").storage_bytes, Some(40 << 20));
    assert_eq!(
        mounted("/mnt").to_string(),
        "100 MiB, 60 % from the client's page cache (40 MiB from the server)"
    );
    // Traffic of another mount does not count for the mount of the work directory.
    assert_eq!(mounted("/other").hit_ratio, Some(1.0));
    let memory = measured(Some(ReadSource::Memory), &reads, from_storage(5));
    let memory = cache(memory).unwrap();
    assert_eq!((memory.storage_bytes, memory.hit_ratio), (None, None));
    assert_eq!(
        memory.to_string(),
        "100 MiB, from files that are in this machine's memory"
    );
}

#[test]
fn memory_measured_instead_of_storage_is_reported() {
    let reads = [(OpKind::Read, 10, 100 * MIB)];
    assert_eq!(
        texts(local(&reads, 3 * MIB)),
        [
            "97 % of the 100 MiB read came from this machine's memory and not from the storage: the file \
             sets (100 MiB) fit in it (1 GiB); --drop-caches, direct I/O or larger file sets measure the storage"
        ]
    );
    // The text does not advise `--drop-caches` if caches were dropped, and does not say that files fit into memory if
    // the files do not fit.
    let mut cold = local(&reads, 50 * MIB);
    cold.plan.options.drop_caches = Cold::Files;
    cold.environment.memory_bytes = Some(99 * MIB);
    assert_eq!(
        texts(cold),
        [
            "50 % of the 100 MiB read came from this machine's memory and not from the storage: direct \
             I/O or larger file sets measure the storage"
        ]
    );
    assert_eq!(texts(local(&[(OpKind::Read, 1000, MIB)], 0)).len(), 1);
}

#[test]
fn bounds_of_the_qualifier_belong_to_it() {
    let number = |reads, bytes, from_storage| {
        texts(local(&[(OpKind::Read, reads, bytes)], from_storage)).len()
    };
    assert_eq!(
        (number(10, 64 * MIB, 0), number(10, 64 * MIB - 1, 0)),
        (1, 0)
    );
    assert_eq!((number(1000, MIB, 0), number(999, MIB, 0)), (1, 0));
    assert_eq!(
        (
            number(10, 100 * MIB, 50 * MIB),
            number(10, 100 * MIB, 50 * MIB + 1)
        ),
        (1, 0)
    );
    let fits = |memory, files: u64| {
        let mut m = local(&[(OpKind::Read, 10, 100 * MIB)], 0);
        m.environment.memory_bytes = memory;
        m.outcome.populated[0].bytes = files.into();
        texts(m)[0].contains("fit in it")
    };
    assert!(fits(Some(MIB), MIB) && !fits(Some(MIB), MIB + 1));
    assert!(!fits(Some(MIB), 0) && !fits(None, MIB));
}

fn cached_fileset() -> Fileset {
    Fileset {
        name: "s".into(),
        path: RelPath::default(),
        entries: 1,
        leaf_dirs: 0,
        width: EntriesPerDir {
            mean: 2.0,
            gamma_shape: None,
        },
        depth: None,
        size: Value::Const(1),
        prealloc_percent: 100,
        parallel_prealloc: false,
        reuse: false,
        trust_tree: false,
        grows: false,
        access: Access::ReadWrite,
        cached: Some(true),
        letters: None,
        initially: plimsoll_plan::InitialData::default(),
        content: None,
        location: None,
    }
}

#[test]
fn little_else_is_said() {
    let reads = [(OpKind::Read, 10, 100 * MIB), (OpKind::Rpc, 10, 100 * MIB)];
    let mut wanted = local(&reads, 0);
    wanted.plan.filesets.push(cached_fileset());
    let mut simulated = local(&reads, 0);
    simulated.clock = ClockKind::Virtual;
    let quiet = [
        ("a little less than half", local(&reads, 51 * MIB)),
        ("few", local(&[(OpKind::Read, 999, 63 * MIB)], 0)),
        ("cached=true of the workload", wanted),
        ("virtual time", simulated),
        (
            "cache= of the target",
            measured(Some(ReadSource::NfsClient), &reads, from_storage(0)),
        ),
    ];
    for (what, m) in quiet {
        assert_eq!(texts(m), Vec::<String>::new(), "{what}");
    }
}
