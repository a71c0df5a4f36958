//! Operation mixes: numbers and effects of operations on real files, the choice of files, and schedules in virtual
//! time.
#![allow(missing_docs)]

mod common;
#[path = "common/mixes.rs"]
mod mixes;

use common::{codes, row, run_ok, run_virtually, try_run};
use mixes::{lasting, paced, plan, tree};
use plimsoll_engine::Outcome;
use plimsoll_plan::{
    Arrivals, BusinessMetric, Choice, Criteria, Layout, MixOp, OnError, OpsLimit, Plan, QuitMode,
    SizeSlot, SizeTable, Spots, WorkingSet,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

const MS: f64 = 1e6;

fn ops(plan: &Plan, outcome: &Outcome, name: &str) -> u64 {
    row(plan, outcome, name).ops
}

fn kept(mut plan: Plan) -> Plan {
    plan.options.keep = true;
    plan
}

/// Ends a run when each process has completed `per_worker` operations, regardless of the time.
fn counted(mut plan: Plan, per_worker: u64) -> Plan {
    plan.options.ops = Some(OpsLimit::PerWorker(per_worker));
    plan.quit = QuitMode::AllDone;
    lasting(plan, Duration::from_secs(60))
}

/// A temporary directory in memory, so that a test does not depend on a disk.
fn tmpfs() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// Operations that a posix target supports, in equal parts.
fn everything() -> Vec<(MixOp, f64)> {
    let can = |op: &MixOp| !matches!(op, MixOp::Lookup | MixOp::Readlink | MixOp::Readdirplus);
    let ops: Vec<MixOp> = MixOp::ALL.into_iter().filter(can).collect();
    let percent = 100.0 / ops.len() as f64;
    ops.into_iter().map(|op| (op, percent)).collect()
}

#[test]
fn every_operation_is_done_and_the_data_set_stays_what_it_is() {
    let dir = tmpfs();
    let plan = counted(kept(plan(dir.path(), 4, &everything(), |_| ())), 3000);
    let (outcome, _) = run_ok(&plan);
    assert!(outcome.reasons.is_empty(), "{:?}", outcome.reasons);
    let total: u64 = everything()
        .iter()
        .map(|(op, _)| ops(&plan, &outcome, op.name()))
        .sum();
    assert_eq!(total, 12_000);
    for (op, _) in everything() {
        let n = ops(&plan, &outcome, op.name()) as f64;
        let mean = total as f64 / 27.0;
        // The tolerance is six standard deviations of a count.
        assert!((n - mean).abs() < 6.0 * mean.sqrt(), "{op}: {n} of {mean}");
        assert_eq!(row(&plan, &outcome, op.name()).error_count(), 0, "{op}");
    }
    // After the mix all data files exist, each with at most twice its planned 64 KiB; turnover files and empty files
    // exist in part.
    let data = tree(&dir.path().join("data"));
    assert_eq!(data.len(), 100);
    assert!(data.values().all(|n| *n <= 128 << 10), "{data:?}");
    let turnover = tree(&dir.path().join("turnover"));
    assert!(turnover.len() <= 40 && !turnover.is_empty());
    let empty = tree(&dir.path().join("empty"));
    assert!(empty.len() <= 40 && empty.values().all(|n| *n == 0));
}

#[test]
fn every_operation_is_done_on_shared_files_too() {
    let dir = tmpfs();
    let mut ops = everything();
    // A mapped file must not be truncated by another worker.
    ops.retain(|(op, _)| *op != MixOp::Truncate);
    let percent = 100.0 / ops.len() as f64;
    ops.iter_mut().for_each(|(_, p)| *p = percent);
    let plan = plan(dir.path(), 4, &ops, |m| {
        m.files.shared = true;
        m.flags.osync_percent = 50.0;
        m.flags.commit_percent = 20.0;
    });
    let plan = counted(plan, 1500);
    let (outcome, _) = run_ok(&plan);
    assert!(outcome.reasons.is_empty(), "{:?}", outcome.reasons);
    for (op, _) in ops {
        assert!(row(&plan, &outcome, op.name()).ops > 20, "{op}");
    }
}

#[test]
fn transfers_move_what_the_tables_say() {
    let dir = tmpfs();
    let slot = |min, max, percent| SizeSlot { min, max, percent };
    let table = vec![slot(512, 512, 50.0), slot(16 << 10, 16 << 10, 50.0)];
    let all = [
        (MixOp::ReadRand, 30.0),
        (MixOp::WriteRand, 30.0),
        (MixOp::Rmw, 20.0),
        (MixOp::ReadFile, 10.0),
        (MixOp::Copyfile, 5.0),
        (MixOp::WriteFile, 5.0),
    ];
    let plan = plan(dir.path(), 2, &all, |m| {
        m.reads = SizeTable(table.clone());
        m.writes = SizeTable(table);
    });
    let plan = counted(plan, 6000);
    let (outcome, _) = run_ok(&plan);
    let mean = |name: &str| {
        let row = row(&plan, &outcome, name);
        row.bytes as f64 / row.ops as f64
    };
    let drawn = (512.0 + 16384.0) / 2.0;
    for (name, expected, spread) in [
        ("read_rand", drawn, 0.1),
        ("write_rand", drawn, 0.1),
        // A read-modify-write counts its bytes twice, because the bytes are read and written.
        ("rmw", 2.0 * drawn, 0.1),
        ("read_file", 65536.0, 0.0),
        ("copyfile", 131_072.0, 0.0),
        ("write_file", 8192.0, 0.0),
    ] {
        let mean = mean(name);
        assert!(
            (mean / expected - 1.0).abs() <= spread,
            "{name}: {mean} of {expected}"
        );
    }
}

#[test]
fn sequential_transfers_go_from_the_beginning_to_the_end() {
    let dir = tmpfs();
    // A file of 64 KiB is written in 16 pieces before the next file is written.
    let mut plan = kept(plan(dir.path(), 1, &[(MixOp::Write, 100.0)], |m| {
        m.flags.overwrite = false;
        m.working_set.millionths = 10_000;
    }));
    plan.options.ops = Some(OpsLimit::Total(24));
    let (outcome, _) = run_ok(&plan);
    assert_eq!(ops(&plan, &outcome, "write"), 24);
    assert_eq!(row(&plan, &outcome, "write").bytes, 24 * 4096);
    // The file was truncated to length 0 in the second round, and then half of the file was written.
    let sizes: Vec<u64> = tree(&dir.path().join("data")).into_values().collect();
    assert_eq!(
        sizes.iter().filter(|n| **n == 32 << 10).count(),
        1,
        "{sizes:?}"
    );
    assert_eq!(sizes.iter().filter(|n| **n == 64 << 10).count(), 99);
    let prepared = row(&plan, &outcome, "prepare").ops;
    assert_eq!(prepared, 3, "an open and two cuts");
}

#[test]
fn what_lacks_is_made_on_the_way() {
    let dir = tmpfs();
    let all = [
        (MixOp::Unlink, 25.0),
        (MixOp::Unlink2, 25.0),
        (MixOp::Rmdir, 25.0),
        (MixOp::Rename, 25.0),
    ];
    let plan = counted(kept(plan(dir.path(), 1, &all, |_| ())), 1200);
    let (outcome, _) = run_ok(&plan);
    // At the start twenty names of each kind existed, and far more names were removed during the run.
    for name in ["unlink", "unlink2", "rmdir"] {
        assert!(ops(&plan, &outcome, name) > 200, "{name}");
    }
    let made = row(&plan, &outcome, "prepare").ops;
    let removed: u64 = ["unlink", "unlink2", "rmdir"]
        .iter()
        .map(|n| ops(&plan, &outcome, n))
        .sum();
    assert!(
        made >= removed - 100 && made < 2 * removed,
        "{made} for {removed}"
    );
    // The summary counts exactly the operations of the mix.
    let counted: u64 = plan
        .operations
        .iter()
        .zip(&outcome.windows[0].totals.rows)
        .filter(|(o, _)| o.kind.counts())
        .map(|(_, r)| r.ops)
        .sum();
    assert_eq!(counted, removed + ops(&plan, &outcome, "rename"));
}

#[test]
fn names_are_made_where_none_is_free() {
    let dir = tmpfs();
    let all = [
        (MixOp::Create, 40.0),
        (MixOp::Mkdir, 30.0),
        (MixOp::WriteFile, 30.0),
    ];
    let plan = counted(kept(plan(dir.path(), 2, &all, |_| ())), 600);
    let (outcome, _) = run_ok(&plan);
    for name in ["create", "mkdir", "write_file"] {
        assert!(ops(&plan, &outcome, name) > 200, "{name}");
    }
    // A whole-file write first uses missing turnover files, and replaces an existing file when no file is missing.
    assert_eq!(tree(&dir.path().join("turnover")).len(), 40);
    let turnover = tree(&dir.path().join("turnover"));
    let whole = turnover.values().filter(|n| **n == 8192).count();
    assert!(
        whole >= 38,
        "each process may have been interrupted in one: {whole}"
    );
    assert!(tree(&dir.path().join("empty")).len() >= 38);
}

/// The data files that a chmod has touched, found by their permissions.
fn touched(dir: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let all = tree(&dir.join("data")).into_keys();
    let changed = all.filter(|p| p.metadata().unwrap().permissions().mode() & 0o777 == 0o600);
    changed
        .map(|p| p.strip_prefix(dir).unwrap().to_owned())
        .collect()
}

#[test]
fn the_working_set_does_not_depend_on_how_the_load_is_split() {
    // The files that one process touches at 16 000 operations per second, and eight processes at 2000 each, with shared
    // or separate files, and with a uniform or geometric choice.
    let run = |workers: u32, choice: Choice, shared: bool| {
        let dir = tmpfs();
        let ops = [(MixOp::Chmod, 100.0)];
        let mut plan = plan(dir.path(), workers, &ops, |m| {
            m.files.shared = shared;
            m.working_set = WorkingSet {
                millionths: 300_000,
                choice,
                spots: None,
            };
        });
        plan.filesets[0].entries = 2000;
        plan.filesets[0].size = plimsoll_plan::Value::Const(0);
        let mut plan = kept(paced(
            plan,
            16_000.0 / f64::from(workers),
            Arrivals::Constant,
        ));
        plan.options.ops = Some(OpsLimit::PerWorker(16_000 / u64::from(workers)));
        plan.quit = plimsoll_plan::QuitMode::AllDone;
        let (outcome, _) = run_ok(&lasting(plan, Duration::from_secs(60)));
        let done: u64 = outcome.processes.iter().map(|p| p.counts.completed).sum();
        assert_eq!(done, 16_000);
        touched(dir.path())
    };
    for shared in [true, false] {
        let (one, eight) = (
            run(1, Choice::Uniform, shared),
            run(8, Choice::Uniform, shared),
        );
        // Half of the changes are visible, because only the last of several changes of a file determines its
        // permissions.
        assert!(
            (250..350).contains(&one.len()),
            "{} of 600 files",
            one.len()
        );
        let differ = one.len().abs_diff(eight.len());
        assert!(differ < 80, "{} and {}", one.len(), eight.len());
    }
    let skewed = Choice::Geometric { percent: 100.0 };
    let (one, eight) = (run(1, skewed, false), run(8, skewed, false));
    assert!(
        one.len().abs_diff(eight.len()) < 80,
        "{} and {}",
        one.len(),
        eight.len()
    );
}

#[test]
fn only_files_of_the_working_set_are_touched_and_all_of_them() {
    // The size of a file shows every append, so after 40 appends per file on average every chosen file has grown.
    let run = |workers: u32, shared: bool| {
        let dir = tmpfs();
        let plan = kept(plan(dir.path(), workers, &[(MixOp::Append, 100.0)], |m| {
            m.files.shared = shared;
            m.working_set.millionths = 300_000;
            m.writes = SizeTable::fixed(100);
        }));
        run_ok(&counted(plan, 1200 / u64::from(workers)));
        let files = tree(&dir.path().join("data"));
        let grown = files.into_iter().filter(|(_, n)| *n > 64 << 10);
        let names = grown.map(|(path, _)| path.strip_prefix(dir.path()).unwrap().to_owned());
        names.collect::<Vec<PathBuf>>()
    };
    let one = run(1, true);
    assert_eq!(one.len(), 30);
    for (workers, shared) in [(8, true), (8, false), (1, false)] {
        assert_eq!(
            run(workers, shared),
            one,
            "{workers} processes, shared {shared}"
        );
    }
}

#[test]
fn processes_have_files_of_their_own_unless_they_share() {
    // The mix has more parts than workers; the remaining parts are for higher loads.
    let dir = tmpfs();
    let plan = kept(plan(dir.path(), 2, &[(MixOp::Append, 100.0)], |m| {
        m.files.parts = 4;
    }));
    // The appends are so few that no file doubles and is truncated.
    let plan = counted(plan, 600);
    run_ok(&plan);
    let layout = Layout::new(&plan, mixes::DATA).unwrap();
    for (path, len) in tree(&dir.path().join("data")) {
        let relative = path
            .strip_prefix(dir.path())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let number = (0..100).find(|n| {
            let mut name = Vec::new();
            layout.push_file(plimsoll_plan::FileId(*n), &mut name);
            name == relative.as_bytes()
        });
        let worked_on = number.unwrap() < 50;
        assert_eq!(len > 64 << 10, worked_on, "{relative}");
    }
}

#[test]
fn constant_arrivals_are_exactly_as_many() {
    let dir = tmpfs();
    let plan = plan(
        dir.path(),
        20,
        &[(MixOp::Stat, 60.0), (MixOp::ReadRand, 40.0)],
        |_| (),
    );
    let plan = lasting(
        paced(plan, 25.0, Arrivals::Constant),
        Duration::from_secs(100),
    );
    let outcome = run_virtually(&plan, "10ms");
    assert!(outcome.reasons.is_empty(), "{:?}", outcome.reasons);
    let numbers: BTreeSet<u32> = outcome.processes.iter().map(|p| p.number).collect();
    assert_eq!(numbers, (0..20).collect());
    assert_eq!(outcome.processes.len(), 20);
    for p in &outcome.processes {
        assert_eq!(p.counts.scheduled, 2500, "{p:?}");
        // The last of 2500 operations of a process may end after the window, and is then not counted as completed.
        assert!(
            p.counts.completed == 2500 || p.counts.completed == 2499,
            "{p:?}"
        );
        assert_eq!(p.counts.dropped, 0);
    }
    // No worker waits for another worker, so response times equal the latency and all starts are on time.
    for name in ["stat", "read_rand"] {
        let row = row(&plan, &outcome, name);
        assert_eq!(row.service.min(), 10_000_000);
        assert_eq!(row.service.max(), 10_000_000);
        // The first read of a file waits for the open of the file.
        let opening = if name == "stat" {
            10_000_000
        } else {
            20_000_000
        };
        assert!(
            row.response.max() <= opening,
            "{name}: {}",
            row.response.max()
        );
        assert_eq!(row.response.count(), row.ops);
    }
    assert_eq!(row(&plan, &outcome, "start").service.max(), 0);
    let share = ops(&plan, &outcome, "stat") as f64 / 50_000.0;
    assert!((share - 0.6).abs() < 0.01, "{share}");
}

#[test]
fn random_arrivals_meet_the_requested_rate_and_queue() {
    let dir = tmpfs();
    let plan = plan(dir.path(), 10, &[(MixOp::Stat, 100.0)], |_| ());
    let plan = lasting(
        paced(plan, 50.0, Arrivals::Poisson),
        Duration::from_secs(200),
    );
    let outcome = run_virtually(&plan, "10ms");
    assert!(outcome.reasons.is_empty(), "{:?}", outcome.reasons);
    let due: u64 = outcome.processes.iter().map(|p| p.counts.scheduled).sum();
    // The tolerance is four standard deviations of a count of 100 000.
    assert!((98_735..101_265).contains(&due), "{due}");
    let row = row(&plan, &outcome, "stat");
    assert_eq!(
        (row.service.min(), row.service.max()),
        (10_000_000, 10_000_000)
    );
    // A queue with random arrivals and a fixed service time at half load has a mean waiting time of ρ/(2(1 − ρ))
    // service times (Pollaczek, Khinchine), which is half a service time.
    let mean = row.response.mean() / MS;
    assert!((mean - 15.0).abs() < 0.3, "{mean} ms");
}

#[test]
fn what_falls_behind_by_more_than_a_second_is_given_up_and_counted() {
    let dir = tmpfs();
    // A worker with a latency of 10 ms completes 100 of the 200 operations that are due per second.
    let mut plan = plan(dir.path(), 2, &[(MixOp::Stat, 100.0)], |_| ());
    plan.metric = Some(BusinessMetric {
        name: "users".into(),
        load: 2,
        scale: 1.0,
        data: 1,
        rate: Some(200.0),
        criteria: Criteria {
            latency: Some(Duration::from_millis(500)),
            ..Criteria::default()
        },
    });
    let plan = lasting(
        paced(plan, 200.0, Arrivals::Constant),
        Duration::from_secs(60),
    );
    let outcome = run_virtually(&plan, "10ms");
    for p in &outcome.processes {
        assert_eq!(p.counts.scheduled, 12_000);
        assert!((5998..=6000).contains(&p.counts.completed), "{p:?}");
        // Operations that were due in the last second are not dropped before the end of the window.
        assert!((5790..=5810).contains(&p.counts.dropped), "{p:?}");
    }
    let row = row(&plan, &outcome, "stat");
    // An operation that is not dropped waits for up to a second, and then takes 10 ms.
    let max = row.response.max() as f64 / MS;
    assert!((1000.0..=1016.0).contains(&max), "{max}");
    assert!((row.response.mean() / MS - 1000.0).abs() < 30.0);
    assert_eq!(
        codes(&outcome),
        ["process_rate", "total_rate", "latency", "queue_growth"]
    );
}

#[test]
fn a_load_just_above_the_service_rate_makes_the_queue_grow() {
    let dir = tmpfs();
    // A worker with a latency of 10 ms completes 100 operations per second.
    let of_rate = |rate: f64| {
        let mut plan = plan(dir.path(), 2, &[(MixOp::Stat, 100.0)], |_| ());
        plan.metric = Some(BusinessMetric {
            name: "users".into(),
            load: 2,
            scale: 1.0,
            data: 1,
            rate: Some(rate),
            criteria: Criteria::default(),
        });
        let plan = paced(plan, rate, Arrivals::Constant);
        run_virtually(&lasting(plan, Duration::from_secs(60)), "10ms")
    };
    assert_eq!(codes(&of_rate(98.0)), [""; 0]);
    // All but 2 % of the operations complete, which is enough for the rates. After t seconds, a worker is behind by
    // 0.02 t: by 60 ms in the middle of the first tenth, and by 1140 ms in the middle of the last.
    let outcome = of_rate(102.0);
    assert_eq!(codes(&outcome), ["queue_growth"]);
    let growth = outcome.backlog.growth(10e6).unwrap();
    assert!((growth.first_ns / 1e6 - 60.0).abs() < 10.0, "{growth:?}");
    assert!((growth.last_ns / 1e6 - 1140.0).abs() < 30.0, "{growth:?}");
}

#[test]
fn runs_of_one_seed_are_the_same_and_of_another_are_not() {
    let dir = tmpfs();
    let spots = Spots {
        percent: 10.0,
        accesses: 5,
        multiplier: 3,
        affinity: 70.0,
        geometric: true,
    };
    let run = |seed| {
        let mut plan = plan(dir.path(), 8, &everything(), |m| {
            m.working_set.spots = Some(spots);
            m.working_set.choice = Choice::Geometric { percent: 50.0 };
            m.flags.direct_percent = 30.0;
        });
        plan.seed = seed;
        let plan = lasting(
            paced(plan, 40.0, Arrivals::Poisson),
            Duration::from_secs(20),
        );
        let outcome = run_virtually(&plan, "3ms");
        (outcome.processes, outcome.windows[0].totals.rows.clone())
    };
    let (first, again, other) = (run(1), run(1), run(2));
    assert_eq!(first.0, again.0);
    assert_eq!(first.1, again.1);
    assert_ne!(first.1, other.1);
}

#[test]
fn an_unpaced_mix_goes_on_at_once() {
    let dir = tmpfs();
    let mut plan = plan(dir.path(), 5, &[(MixOp::Stat, 100.0)], |_| ());
    let limited = |limit| {
        Some(BusinessMetric {
            name: "users".into(),
            load: 5,
            scale: 1.0,
            data: 1,
            rate: None,
            criteria: Criteria {
                latency: Some(Duration::from_millis(limit)),
                ..Criteria::default()
            },
        })
    };
    plan.metric = limited(10);
    let outcome = run_virtually(&lasting(plan.clone(), Duration::from_secs(10)), "10ms");
    let stat = row(&plan, &outcome, "stat");
    assert!((4995..=5000).contains(&stat.ops), "{}", stat.ops);
    assert_eq!((stat.response.count(), stat.paced), (0, 0));
    assert_eq!(stat.latency(), &stat.service);
    assert!(outcome.reasons.is_empty(), "{:?}", outcome.reasons);
    // The latency of an operation without a schedule is its service time, to which the latency limit applies.
    plan.metric = limited(9);
    let late = run_virtually(&lasting(plan.clone(), Duration::from_secs(10)), "10ms");
    assert_eq!(codes(&late), ["latency"]);
    assert!(
        outcome
            .processes
            .iter()
            .all(|p| p.counts.scheduled == 0 && p.counts.completed >= 999)
    );
}

#[test]
fn a_failed_operation_is_counted_or_ends_the_run() {
    // Another program renames the directory of the data files during the run.
    let with = |on_error| {
        let dir = tmpfs();
        let mut plan = plan(dir.path(), 1, &[(MixOp::Stat, 100.0)], |_| ());
        plan.options.on_error = on_error;
        let (data, empty) = (dir.path().join("data"), dir.path().join("empty"));
        let plan = lasting(
            paced(plan, 500.0, Arrivals::Constant),
            Duration::from_secs(1),
        );
        let thief = std::thread::spawn(move || {
            // The fileset `empty` is populated last, right before the workers start.
            while !empty.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(400));
            std::fs::rename(&data, data.with_file_name("gone")).unwrap();
        });
        let (outcome, _) = try_run(&plan, "posix").unwrap();
        thief.join().unwrap();
        (plan, outcome)
    };
    let (_, outcome) = with(OnError::Stop);
    let failure = outcome.failure.unwrap();
    assert_eq!(
        (failure.operation.as_str(), failure.worker.as_deref()),
        ("stat", Some("user-1/worker-1"))
    );
    assert!(
        failure.error.contains("ENOENT") && failure.path.as_ref().unwrap().contains("data/"),
        "{failure:?}"
    );
    let (plan, outcome) = with(OnError::Count);
    let stat = row(&plan, &outcome, "stat");
    assert!(stat.errors["ENOENT"] > 100, "{:?}", stat.errors);
    let p = &outcome.processes[0];
    assert!(
        p.counts.completed < 400 && p.counts.scheduled >= 499,
        "{p:?}"
    );
    assert!(outcome.reasons.iter().any(|r| r.code == "errors"));
}

#[test]
fn what_a_target_cannot_do_is_refused_by_name() {
    let dir = tmpfs();
    let nfs = [(MixOp::Lookup, 50.0), (MixOp::Readdirplus, 50.0)];
    let plan = plan(dir.path(), 1, &nfs, |_| ());
    let error = try_run(&plan, "posix").err().unwrap().to_string();
    assert!(
        error.contains("target `posix` cannot do `lookup`, `readdirplus`: NFS procedures"),
        "{error}"
    );
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "something was made");
    // The null target supports every operation.
    run_virtually(&lasting(plan, Duration::from_secs(1)), "1ms");
}

#[test]
fn everything_is_removed_afterwards() {
    let dir = tmpfs();
    run_ok(&plan(dir.path(), 3, &everything(), |_| ()));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}
